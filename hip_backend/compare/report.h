/** Declares what hip-diff prints and writes: one table, one report as JSON (docs/reference/schemas/hip-diff.schema.json) and HTML. */
#ifndef MXH_DIFF_REPORT_H
#define MXH_DIFF_REPORT_H

#include "hip_backend/compare/diff.h"
#include "mxgold/status.h"

struct mxh_bench_row {
  std::string preset;
  double quantize, dequantize, copy; /* bytes a second */
};
struct mxh_device_facts {
  std::string name, kind, arch, driver;
};
struct mxh_report {
  const mxh_run *run;
  std::vector<mxh_row> rows;
  std::vector<std::string> found; /* rules and models, a line each, as they come; with a profile there is more of them in it */
  mxh_device_facts device;
  std::vector<mxh_bench_row> bench;
  double seconds, device_seconds; /* all; in calls of the device */
  bool whole;                     /* every group has run to its end, or to its death */
  const char *commit, *compilers;
};

/** The table, and the rules of a gfx950 under it. */
void mxh_report_print(const mxh_report &report);
/** A report is whole at any time: the old one or the new one. */
mx_status mxh_report_json(const mxh_report &report, const char *path, mx_error *err);
mx_status mxh_report_html(const mxh_report &report, const char *path, mx_error *err);

#endif
