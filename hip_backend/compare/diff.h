/** Declares the comparison: one row an operation, counted cases and differing ones. */
#ifndef MXH_DIFF_H
#define MXH_DIFF_H

#include <functional>
#include <stdint.h>
#include <string>
#include <vector>

#include "hip_backend/run/device_api.h"
#include "mxgold/mxgold.h"

/* Who says what is right: ref/ where it is linked, else the library. */
struct mxh_oracle {
  const char *name;
  mx_status (*quantize)(mx_tensor *, const float *, size_t, size_t, size_t, const mx_spec *, const mx_exec *, mx_error *);
  mx_status (*quantize_transposed)(mx_tensor *, const float *, size_t, size_t, size_t, const mx_spec *, const mx_exec *, mx_error *);
  mx_status (*dequantize)(float *, size_t, const mx_tensor *, const mx_spec *, const mx_exec *);
  mx_status (*amax)(float *, const float *, size_t, size_t, size_t, const mx_spec *, const mx_exec *);
  mx_status (*hadamard)(float *, size_t, const float *, size_t, size_t, size_t, unsigned, int, const uint8_t *, uint64_t);
  uint64_t (*encode)(const mx_format *, double, const mx_encoding *, uint32_t);
  double (*decode)(const mx_format *, uint64_t);
  uint32_t (*random)(uint64_t, uint32_t, uint64_t);
  void (*layout_pack)(uint8_t *, mx_layout, const uint8_t *, size_t, size_t, uint8_t);
  void (*layout_unpack)(uint8_t *, mx_layout, const uint8_t *, size_t, size_t);
  void (*pack4)(uint8_t *, const uint8_t *, size_t, int, size_t);
  void (*pack6)(uint8_t *, const uint8_t *, size_t);
  mx_status (*gemm)(void *, size_t, const mx_tensor *, const mx_spec *, const mx_tensor *, const mx_spec *, const mx_gemm_options *,
                    mx_error *);
};

struct gfx950_profile;
struct gfx950_rules;

struct mxh_row {
  std::string group, operation, first; /* first: the first case that differs, or why none ran */
  uint64_t cases = 0, values = 0, differences = 0;
  std::string note;     /* rules found on the device that the row was held to, kernels launched, what is open */
  uint64_t not_run = 0; /* cases that the oracle refuses or the kernel is not for; the note says which */
  uint64_t lost = 0;    /* cases that were to run and did not, since a fault ended the process: not equal */
  bool skipped = false;
  bool died = false; /* the process that ran it: a fault of the device, a hang */
  bool open = false; /* depends on a rule that has no name yet: differences are counted, not judged */
};

struct mxh_run {
  mxh_device *dev;
  const mxh_oracle *oracle;
  const char *hashes; /* golden/HASHES to hold digests to, or NULL */
  uint64_t large;     /* elements to quantise beside the golden suites: 0 none */
  const char *group;  /* of the rows that are added: "portable", "instruction", "native kernel" */
  std::vector<mxh_row> rows;
  gfx950_profile *profile;  /* what native.cc found; NULL: the device is not a gfx950 */
  const gfx950_rules *play; /* for the host runtime: the rules of the device that it plays; NULL: the suggested ones */
  bool quick;               /* a part of the cases of each row, and of every row some: rehearsals, on the host runtime alone */
  int first_part;           /* of a group that is taken up again after a fault: those before it are done, or died */
  bool counting;            /* parts first_part to last_part alone, on a device that does nothing: how many cases there are */
  int last_part;
  /* Told of what is done as it comes, for whoever watches (watch.h); may be empty. */
  std::function<void(const mxh_row &)> row_changed;
  std::function<void(const std::string &operation, const std::string &what)> begun;
  std::function<void(int)> part_begun;
  std::function<void(const std::string &)> found;
};

/** Every portable operation over the golden suites. False if a call failed; the row says why. */
bool mxh_run_portable(mxh_run *run);
/** Each of gfx950's instructions under the rules that the device shows (gfx950/profile.h), and each complete native kernel under the same rules: against
 *  the oracle where a spec's keys say them, else codes as the instruction makes them under these rules. On devices that have none of these, one skipped
 *  row for each group. False if a row that is not open differs, or a rule has no name. */
bool mxh_run_native(mxh_run *run);

/** The next part of a group, counted from 0; false if it has been run. */
bool mxh_part(mxh_run *run, int part);
/** What is run next, before anything of it runs: the row that a fault belongs to. */
void mxh_begin(mxh_run *run, const std::string &operation, const std::string &what);
/** A rule or a model that was found on the device, in a line. */
void mxh_found(mxh_run *run, const std::string &line);
/** A whole row. */
void mxh_add(mxh_run *run, const mxh_row &row);
/** A case of that row is not run: counted, and each reason said once in its note. */
void mxh_decline(mxh_run *run, const char *operation, const std::string &why);
/** Add to the row of that name. n values were compared, `bad` differ; what: the case. */
void mxh_count(mxh_run *run, const char *operation, uint64_t n, uint64_t bad, const std::string &what);
void mxh_skip(mxh_run *run, const char *operation, const std::string &why);
/** Bytes that differ, in units of `unit` bytes. */
uint64_t mxh_differ(const void *a, const void *b, size_t n, size_t unit);

#endif
