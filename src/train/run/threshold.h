/* Declares how a run notices that quantisation noise outgrows the gradient, and what it switches then: arXiv 2505.19115. */
#ifndef TRAIN_THRESHOLD_H
#define TRAIN_THRESHOLD_H

#include <stdio.h>

#include "train/run/again.h"
#include "train/run/config.h"

typedef struct mxi_threshold {
  const mxi_config *config;
  mxi_again again;
  double *signal, *noise;   /* [n_linears]: averages of |dW|^2 and of |dW quantised - dW|^2 */
  float *exact, *quantised; /* dW of the linear under way; threshold.full: all gradients */
  float *other;             /* other outputs that nothing needs */
  uint64_t count, below;    /* measurements, and how many of them in a row were below sqrt 3 */
  uint64_t late;            /* the first step in high precision; UINT64_MAX: none yet */
  mx_linear_recipe recipe;  /* of the products in high precision */
  int fresh;                /* measured in the step under way */
  mx_status status;
  mx_error err;
} mxi_threshold;

mx_status mxi_threshold_open(mxi_threshold *t, mxi_model *m, const mxi_config *c, mx_error *err);
/** Is this step measured? Not before there is a quantised Wgrad, and not after the switch. */
int mxi_threshold_due(const mxi_threshold *t, uint64_t step);
/** Measure a linear of the backward pass under way, from its dy and x. */
void mxi_threshold_linear(mxi_threshold *t, size_t index, const float *dy, const float *x);
/** threshold.full: the same from whole gradients [n_values], quantised and of a backward pass in FP32. */
void mxi_threshold_gradients(mxi_threshold *t, const float *quantised, const float *exact);
/** Counts whether the measured linears of a step are below the threshold. */
void mxi_threshold_close_step(mxi_threshold *t);
/** |dW| over noise of a linear, and of all together; Inf without noise, NaN before the first measurement. */
double mxi_threshold_ratio(const mxi_threshold *t, size_t index);
double mxi_threshold_all(const mxi_threshold *t);
/** Write ', "rho_all": ..., "rho": {...}' of a step that was measured. */
void mxi_threshold_text(mxi_threshold *t, FILE *to);

/** Switch the model to high precision if it is time to, before step `step`. */
void mxi_threshold_switch(mxi_threshold *t, mxi_model *m, uint64_t step);
/** The learning rate of a step after the switch; peak and rate are the schedule's otherwise. */
double mxi_threshold_rate(const mxi_threshold *t, double rate, double peak, uint64_t step);

/** Writes what is kept from step to step as text from which it can be read back to the bit, and reads it. The caller frees the text; NULL: no
 *  memory. */
char *mxi_threshold_print(const mxi_threshold *t);
int mxi_threshold_parse(mxi_threshold *t, mxi_model *m, const char *text);

#endif
