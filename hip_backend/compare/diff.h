/** Declares the comparison of a device with the emulator: one row for each operation, with counts of its cases and differences. */
#ifndef MXH_DIFF_H
#define MXH_DIFF_H

#include <functional>
#include <stdint.h>
#include <string>
#include <vector>

#include "hip_backend/run/device_api.h"
#include "mxgold/mxgold.h"

/* What the device is compared with: ref/ if it is linked, otherwise the library. */
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
  std::string note;     /* the device's rules under which the row was judged, kernels launched, what is open */
  uint64_t not_run = 0; /* cases that the oracle refuses or that the kernel does not handle; the note says which */
  uint64_t lost = 0;    /* cases that did not run because a fault ended the process; the row does not count as equal */
  bool skipped = false;
  bool died = false; /* the process that ran it ended by a fault or hang of the device */
  bool open = false; /* it depends on a rule that has no name yet: differences are counted but not judged */
};

struct mxh_run {
  mxh_device *dev;
  const mxh_oracle *oracle;
  const char *hashes; /* golden/HASHES to compare digests with, or NULL */
  uint64_t large;     /* elements to quantise beside the golden suites; 0: none */
  const char *group;  /* of the rows that are added: "portable", "instruction", "native kernel" */
  std::vector<mxh_row> rows;
  gfx950_profile *profile;  /* the rules found on the device; NULL: it is not a gfx950 */
  const gfx950_rules *play; /* for the host runtime: the rules of the device that it imitates; NULL: the suggested ones */
  bool quick;               /* run only some cases of each row; for rehearsals, on the host runtime alone */
  size_t part;              /* run one in so many cases of each row; 0: all of them */
  int first_part;           /* of a group that is resumed after a fault: the parts before it are done or have died */
  bool counting;            /* only count the cases of parts first_part to last_part, on a device that does nothing */
  int last_part;
  /* Called with each step, for the process that watches (watch.h); may be empty. */
  std::function<void(const mxh_row &)> row_changed;
  std::function<void(const std::string &operation, const std::string &what)> begun;
  std::function<void(int)> part_begun;
  std::function<void(const std::string &)> found;
};

/** Every portable operation over the golden suites. False if a call failed; the row says why. */
bool mxh_run_portable(mxh_run *run);
/** Each of gfx950's instructions and each complete native kernel, under the rules found on the device (gfx950/profile.h). A kernel is
 *  compared with the oracle if a spec's keys can express these rules, otherwise with the codes that the instructions give under them. On
 *  other devices each group is one skipped row. False if a row that is not open differs, or a rule has no name. */
bool mxh_run_native(mxh_run *run);

/** Begins a part of a group, counted from 0; false if it has been run already. */
bool mxh_part(mxh_run *run, int part);
/** Announces what runs next, before it runs, so that a fault can be attributed to its row. */
void mxh_begin(mxh_run *run, const std::string &operation, const std::string &what);
/** Reports a rule or a model found on the device, in one line. */
void mxh_found(mxh_run *run, const std::string &line);
/** Adds a complete row. */
void mxh_add(mxh_run *run, const mxh_row &row);
/** Counts a case of that row as not run; each reason appears once in its note. */
void mxh_decline(mxh_run *run, const char *operation, const std::string &why);
/** Adds a case to the row of that name: n values were compared and `bad` of them differ; what names the case. */
void mxh_count(mxh_run *run, const char *operation, uint64_t n, uint64_t bad, const std::string &what);
void mxh_skip(mxh_run *run, const char *operation, const std::string &why);
/** How many units of `unit` bytes differ. */
uint64_t mxh_differ(const void *a, const void *b, size_t n, size_t unit);

#endif
