/* Declares what the files of a report share.
 *
 * paired.c    statistics of paired runs
 * results.c   results.jsonl and the runs' metrics, as arms and seeds
 * unlike.c    whether an arm and its reference differ in more than the number format
 * cost.c      what an arm's configuration costs: techniques, bits, products, overhead
 * effects.c   main effects and interactions of the knobs of a grid
 * claims.c    what the sweep's file claims, held against the arms
 * front.c     arms that no other beats in loss and cost
 * verdict.c   the results in words
 * report.c    each arm against its reference */
#ifndef REPORT_INTERNAL_H
#define REPORT_INTERNAL_H

#include <jansson.h>

#include "mxgold/report.h"

typedef struct mxi_run {
  uint64_t seed;
  int finished;
  double loss[MX_EVALS], accuracy[MX_EVALS];
  double *smooth; /* [steps] smoothed training losses; NULL if there are none */
  size_t steps;
} mxi_run;

/* A value of a knob: the axis of the sweep's grid and the value's name in it. */
typedef struct mxi_knob {
  char *axis, *level;
} mxi_knob;

typedef struct mxi_arm {
  mx_report_arm told; /* what the public call gives */
  mxi_run *runs;
  size_t n_runs;
  size_t reference; /* its index; SIZE_MAX: none */
  mxi_knob *knobs;  /* in the sweep's order */
  size_t n_knobs;
  json_t *config; /* of its first finished run; NULL if there is none */
} mxi_arm;

struct mx_report {
  mxi_arm *arms;
  size_t n_arms;
  mx_report_effect *effects; /* main effects first */
  size_t n_effects;
  mx_report_claim *claims;
  size_t n_claims;
  double confidence;
  double weights[MX_TECHNIQUES];
};

/** Gain, omega and score of every arm, by the weights. Losses and techniques are there. */
void mxi_score(mx_report *report);

/** Arms, their runs and counts of ends, techniques and cost. */
mx_status mxi_results_read(mx_report *r, const char *dir, mx_error *err);
/** The run with this seed; NULL if the arm has none. */
const mxi_run *mxi_run_of(const mxi_arm *a, uint64_t seed);
/** Techniques and cost of the resolved configuration in a run's config.json. */
void mxi_cost_count(mx_report_arm *told, const json_t *config);
/** The first key, "section.key", that an arm and its reference have unlike although it is not of the number format: data, model, batch, optimiser; "" if there
 * is none, or no finished run of one of them. */
void mxi_unlike(char *out, size_t size, const mx_report *r, const mxi_arm *a);

/* After the arms are compared. */
mx_status mxi_effects(mx_report *r);
/** Those of sweep.json in the folder; none if there is no such file. */
mx_status mxi_claims(mx_report *r, const char *dir, mx_error *err);
void mxi_claims_free(mx_report *r);
void mxi_front(mx_report *r);

#endif
