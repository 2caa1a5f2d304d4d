/* What the files of a report share.
 *
 * paired.c    statistics of paired runs
 * results.c   results.jsonl and the runs' metrics, as arms and seeds
 * report.c    each arm against its reference, and the verdict */
#ifndef REPORT_INTERNAL_H
#define REPORT_INTERNAL_H

#include "mxgold/report.h"

typedef struct mxi_run {
  uint64_t seed;
  int finished;
  double loss[MX_EVALS];
  double *smooth; /* [steps] smoothed training losses; NULL if there are none */
  size_t steps;
} mxi_run;

typedef struct mxi_arm {
  mx_report_arm told; /* what the public call gives */
  mxi_run *runs;
  size_t n_runs;
  size_t reference; /* its index; SIZE_MAX: none */
} mxi_arm;

struct mx_report {
  mxi_arm *arms;
  size_t n_arms;
  double confidence;
};

/** Arms, their runs and counts of ends; techniques of told.omega too. */
mx_status mxi_results_read(mx_report *r, const char *dir, mx_error *err);

#endif
