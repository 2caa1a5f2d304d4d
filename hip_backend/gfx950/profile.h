/** Declares what a gfx950 does where no document says it: probes run on the device, each answer by name, the rest of the instructions held to them.
 *
 *  A rule is settled by running inputs on which its answers differ, and comparing with what gfx950_convert() and gfx950_mfma() give under each answer;
 *  the sums of the products are found by mx_probe_fit_run(), on tiles of all 50 pairs of types. Then every instruction is held, on inputs that no probe used, to what was found.
 *  Oracle: make hip-rehearse, where the host runtime plays devices whose rules the profile is not told. Not run on silicon. */
#ifndef MXH_GFX950_PROFILE_H
#define MXH_GFX950_PROFILE_H

#include <functional>
#include <string>
#include <vector>

#include "hip_backend/run/device_api.h"
#include "hip_backend/gfx950/host.h"

struct gfx950_answer {
  std::string rule;
  std::vector<int> choices; /* those that give every bit that the device gave; none: the device does something else */
  size_t words;             /* compared */
  std::string evidence;     /* an input on which the answers differ, and what the device gave */
};
struct gfx950_held {
  std::string instruction;
  uint64_t cases, words, differ;
  std::string first; /* the first that differs */
  std::string note;  /* products: how many kernels were launched, what was not judged */
};
/** Pairs of types (gfx950_pair()) whose probe tiles have one model. */
struct gfx950_sums {
  std::vector<int> pairs;
  std::string types;             /* "16x16x128 e4m3 e4m3", the pair that the model was searched on */
  int fits;                      /* the model gives every bit of the probe tiles of all these pairs */
  uint64_t words;                /* in these tiles */
  std::string model;             /* as mx_mma_model_find() takes it, for that pair; the nearest one if none fits, "" if none was looked for */
  std::vector<std::string> same; /* rows of the tables with the same bits */
  mx_accum accum;
};
struct gfx950_profile {
  gfx950_rules rules; /* the first choice of each; that of the default where none fits */
  std::vector<gfx950_answer> answers;
  std::vector<gfx950_sums> sums; /* each of the 50 pairs is in one */
  std::vector<gfx950_held> held;
  bool complete() const; /* every rule answered, every product explained, no bit differs */
  uint64_t words() const, differ() const;
  const gfx950_sums *sums_of(int pair) const; /* gfx950_pair(); NULL before they are found */
};

struct gfx950_profile_options {
  const gfx950_rules *play; /* for the host runtime, the rules of the device that it plays; NULL on a device */
  uint64_t seed;
  bool suites; /* hold every conversion to gen's suites as well as to random words */
  int threads; /* of the search for the sums; 0: all */
  /* Told as it goes, so that what a fault of the device leaves is known: what runs next, a rule or model found (a line), an instruction held. May be
   * empty. */
  std::function<void(const std::string &)> doing, found;
  std::function<void(const gfx950_held &)> held;
};
/** Returns false, with a line in why, if the device fails. */
bool gfx950_profile_run(gfx950_profile *out, mxh_device *dev, const gfx950_profile_options &options, std::string *why);

/** The spec of formats/keys.def that says what could be told of MXFP4 on this device, "key=value ...". */
std::string gfx950_profile_spec(const gfx950_profile &p);
/** "16x16x128 e2m1 e2m1", with another separator if asked for. */
std::string gfx950_pair_name(int pair, char between = ' ');
/** "e4m3" of GFX950_E4M3; the first five types. */
const char *gfx950_type_name(int type);
/** How the products of a pair are summed, as `mxgold mma --model` and `mxgold gemm --accum` take it; "" if no model fits. */
std::string gfx950_profile_accum(const gfx950_profile &p, int pair);
enum { GFX950_PAIR_MXFP4 = GFX950_E2M1 * 5 + GFX950_E2M1 }; /* 16x16x128, FP4 by FP4 */
/** "all 50 pairs of types", or their names; the model, or that none fits. */
std::string gfx950_sums_pairs(const gfx950_sums &s);
std::string gfx950_sums_text(const gfx950_sums &s);
/** The rules and sums, a line each. verbose: with the evidence. */
void gfx950_profile_print(const gfx950_profile &p, bool verbose);
/** The profile as JSON; name is the preset's ("gfx950@2026-11-21"). The caller's reference. */
struct json_t;
json_t *gfx950_profile_json(const gfx950_profile &p, const char *name, mxh_device *dev, const char *date, const char *commit,
                            const char *compilers);
/** Files of folder: gfx950@DATE.json (the profile), .spec.json (the spec above, as `mxgold quantize --spec` reads it), .accum (the model of MXFP4's
 *  16x16x128) and, for each pair of types whose products are summed otherwise, .SHAPE-A-B.accum; none where no model fits. said: how to use them; if false comes back, the path that cannot be written. */
bool gfx950_profile_write(const gfx950_profile &p, const char *folder, mxh_device *dev, const char *commit, const char *compilers,
                          std::string *said);
#endif
