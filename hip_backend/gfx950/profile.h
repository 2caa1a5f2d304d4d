/** Declares the profile of a gfx950: what it does where no document says so, found by probes that run on the device.
 *
 *  A rule is settled by running inputs on which its answers differ, and comparing with what gfx950_convert() and gfx950_mfma() give under each
 *  answer. The sums of the products are found by mx_probe_fit_run(), on tiles of all 50 pairs of types. Then every instruction is checked
 *  against what was found, on inputs that no probe used.
 *  Oracle: make hip-rehearse, where the host runtime imitates devices whose rules the profile is not told. Not run on silicon. */
#ifndef MXH_GFX950_PROFILE_H
#define MXH_GFX950_PROFILE_H

#include <functional>
#include <string>
#include <vector>

#include "hip_backend/run/device_api.h"
#include "hip_backend/gfx950/host.h"

struct gfx950_answer {
  std::string rule;
  std::vector<int> choices; /* those that give every bit that the device gave; if there are none, the device does something else */
  size_t words;             /* words that were compared */
  std::string evidence;     /* an input on which the answers differ, and what the device gave */
};
struct gfx950_held {
  std::string instruction;
  uint64_t cases, words, differ;
  std::string first; /* the first case that differs */
  std::string note;  /* for products: how many kernels were launched, and what was not judged */
};
/** Pairs of types (gfx950_pair()) whose probe tiles have one model. */
struct gfx950_sums {
  std::vector<int> pairs;
  std::string types;             /* such as "16x16x128 e4m3 e4m3": the pair on which the model was found */
  int fits;                      /* the model gives every bit of the probe tiles of all these pairs */
  uint64_t words;                /* words in these tiles */
  std::string model;             /* for that pair, as mx_mma_model_find() takes it; the nearest one if none fits, "" if none was looked for */
  std::vector<std::string> same; /* rows of the tables that give the same bits */
  mx_accum accum;
};
struct gfx950_profile {
  gfx950_rules rules; /* the first fitting choice of each rule, or the default if none fits */
  std::vector<gfx950_answer> answers;
  std::vector<gfx950_sums> sums; /* each of the 50 pairs is in exactly one */
  std::vector<gfx950_held> held;
  bool complete() const; /* every rule answered, every product explained, no bit differs */
  uint64_t words() const, differ() const;
  const gfx950_sums *sums_of(int pair) const; /* gfx950_pair(); NULL before they are found */
};

struct gfx950_profile_options {
  const gfx950_rules *play; /* for the host runtime, the rules of the device that it imitates; NULL on a device */
  uint64_t seed;
  bool suites; /* check every conversion on gen's suites as well as on random words */
  int threads; /* threads for the search for the sums; 0: all */
  /* Called with what runs next, with each rule or model found (one line), and with each instruction checked, so that a fault of the device
   * does not lose them. May be empty. */
  std::function<void(const std::string &)> doing, found;
  std::function<void(const gfx950_held &)> held;
};
/** Makes the profile; returns false, with a line in why, if the device fails. */
bool gfx950_profile_run(gfx950_profile *out, mxh_device *dev, const gfx950_profile_options &options, std::string *why);

/** The spec "key=value ..." that expresses what was found about MXFP4 on this device, as far as keys can. */
std::string gfx950_profile_spec(const gfx950_profile &p);
/** Such as "16x16x128 e2m1 e2m1", or with another separator. */
std::string gfx950_pair_name(int pair, char between = ' ');
/** The name of one of the first five types, such as "e4m3" for GFX950_E4M3. */
const char *gfx950_type_name(int type);
/** How the products of a pair are summed, as `mxgold mma --model` and `mxgold gemm --accum` take it; "" if no model fits. */
std::string gfx950_profile_accum(const gfx950_profile &p, int pair);
enum { GFX950_PAIR_MXFP4 = GFX950_E2M1 * 5 + GFX950_E2M1 }; /* 16x16x128, FP4 by FP4 */
/** The pairs by name, or "all 50 pairs of types"; and the model, or that none fits. */
std::string gfx950_sums_pairs(const gfx950_sums &s);
std::string gfx950_sums_text(const gfx950_sums &s);
/** Prints the rules and sums, one line each. verbose: with the evidence. */
void gfx950_profile_print(const gfx950_profile &p, bool verbose);
/** The profile as JSON, under the name of its preset ("gfx950@2026-11-21"). The caller owns the reference. */
struct json_t;
json_t *gfx950_profile_json(const gfx950_profile &p, const char *name, mxh_device *dev, const char *date, const char *commit,
                            const char *compilers);
/** Writes files into folder: gfx950@DATE.json (the profile), .spec.json (the spec above, as `mxgold quantize --spec` reads it), .accum (the
 *  model of MXFP4's 16x16x128) and, for each pair of types whose products are summed differently, .SHAPE-A-B.accum. There is no .accum if no
 *  model fits. said: how to use them or, if the result is false, the path that cannot be written. */
bool gfx950_profile_write(const gfx950_profile &p, const char *folder, mxh_device *dev, const char *commit, const char *compilers,
                          std::string *said);
#endif
