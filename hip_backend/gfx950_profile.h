/** What a gfx950 does where no document says it: probes run on the device, each answer by name, the rest of the instructions held to them.
 *
 *  A rule is settled by running inputs on which its answers differ, and comparing with what gfx950_convert() and gfx950_mfma() give under each answer;
 *  the sums of the products are found by mx_probe_fit(). Then every instruction is held, on inputs that no probe used, to what was found.
 *  Oracle: make hip-rehearse, where the host runtime plays devices whose rules the profile is not told. Not run on silicon. */
#ifndef MXH_GFX950_PROFILE_H
#define MXH_GFX950_PROFILE_H

#include <string>
#include <vector>

#include "hip_backend/device_api.h"
#include "hip_backend/gfx950_host.h"

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
};
struct gfx950_sums {
  std::string types;             /* "16x16x128 e4m3 e4m3" */
  int fits;                      /* a model gives every bit of the probe tiles */
  std::string model;             /* as mx_mma_model_find() takes it; the nearest one if none fits */
  std::vector<std::string> same; /* rows of the tables with the same bits */
  mx_accum accum;
};
struct gfx950_profile {
  gfx950_rules rules; /* the first choice of each; that of the default where none fits */
  std::vector<gfx950_answer> answers;
  std::vector<gfx950_sums> sums; /* of FP8; of other types only where those differ */
  std::vector<gfx950_held> held;
  bool complete() const; /* every rule answered, every product explained, no bit differs */
  uint64_t words() const, differ() const;
};

struct gfx950_profile_options {
  const gfx950_rules *play; /* for the host runtime, the rules of the device that it plays; NULL on a device */
  uint64_t seed;
  bool suites; /* hold every conversion to gen's suites as well as to random words */
  int threads; /* of the search for the sums; 0: all */
};
/** Returns false, with a line in why, if the device fails. */
bool gfx950_profile_run(gfx950_profile *out, mxh_device *dev, const gfx950_profile_options &options, std::string *why);

/** The spec of formats/keys.def that says what could be told of MXFP4 on this device, "key=value ...". */
std::string gfx950_profile_spec(const gfx950_profile &p);
/** How its products are summed, as `mxgold mma --model` and `mxgold gemm --accum` take it; "" if no model fits. */
std::string gfx950_profile_accum(const gfx950_profile &p);
/** The rules and sums, a line each. verbose: with the evidence. */
void gfx950_profile_print(const gfx950_profile &p, bool verbose);
/** The profile as JSON; name is the preset's ("gfx950@2026-11-21"). The caller's reference. */
struct json_t;
json_t *gfx950_profile_json(const gfx950_profile &p, const char *name, mxh_device *dev, const char *date, const char *commit,
                            const char *compilers);
/** Three files of folder: gfx950@DATE.json (the profile), .spec.json (the spec above, as `mxgold quantize --spec` reads it), .accum (the model; not
 *  written if none fits). said: how to use them; if false comes back, the path that cannot be written. */
bool gfx950_profile_write(const gfx950_profile &p, const char *folder, mxh_device *dev, const char *commit, const char *compilers,
                          std::string *said);
#endif
