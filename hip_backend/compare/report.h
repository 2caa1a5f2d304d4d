/** Declares what hip-diff prints and writes: one table, and one report as JSON (docs/reference/schemas/hip-diff.schema.json) and as HTML. */
#ifndef MXH_DIFF_REPORT_H
#define MXH_DIFF_REPORT_H

#include "hip_backend/compare/diff.h"
#include "mxgold/status.h"

struct mxh_bench_row {
  std::string preset;
  double quantize, dequantize, copy; /* bytes per second */
};
struct mxh_device_facts {
  std::string name, kind, arch, driver;
};
struct mxh_report {
  const mxh_run *run;
  std::vector<mxh_row> rows;
  std::vector<std::string> found; /* rules and models in the order in which they were found, one line each; a profile says more about them */
  mxh_device_facts device;
  std::vector<mxh_bench_row> bench;
  double seconds, device_seconds; /* of the whole run; of that, in calls of the device */
  bool whole;                     /* every group has finished or died */
  const char *commit, *compilers;
};

/** Prints the table, followed by the rules of a gfx950. */
void mxh_report_print(const mxh_report &report);
/** The file holds a complete report at any time, either the old one or the new one. */
mx_status mxh_report_json(const mxh_report &report, const char *path, mx_error *err);
mx_status mxh_report_html(const mxh_report &report, const char *path, mx_error *err);

#endif
