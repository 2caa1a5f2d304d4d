/* Declares what is measured of each linear of a model during a run, on request: gradients, operands, weights. */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H

#include <stdio.h>

#include "mxgold/ablate.h"
#include "train/run/again.h"
#include "train/run/config.h"
#include "train/run/files.h"

/* One operand as it was quantised. */
typedef struct mxi_operand_metrics {
  int seen;
  double saturated, underflow, error; /* shares of its values; norm of the error over its own */
  mx_error_terms terms;
  int has_terms;
} mxi_operand_metrics;

typedef struct mxi_metrics {
  const mxi_config *config;
  mxi_again again;
  unsigned char *wanted;             /* [n_linears] */
  mxi_products exact, first, second; /* of the linear under way; the two draws become their errors */
  float **error;                     /* [n_linears]: the error of dw at the measurement before; NULL: none yet */
  float **codes;                     /* the same of the codes of W, [O][code_cols] */
  size_t *code_cols;
  mxi_operand_metrics operand[MX_OPERANDS]; /* of the linear under way */
  double changed, flipped;                  /* shares of W's codes since the measurement before; below 0: none */
  size_t index;                             /* the linear under way, its inputs */
  const float *dy, *x;
  FILE *to; /* the text of the step under way */
  char *text;
  size_t size;
  int any; /* a linear is in it */
  mx_status status;
  mx_error err;
} mxi_metrics;

/** Is there something to measure in this step? */
int mxi_metrics_due(const mxi_metrics *t, uint64_t step);
/** metrics.every 0: nothing is made. MX_ERR_KEY: metrics.layers names no linear. */
mx_status mxi_metrics_open(mxi_metrics *t, mxi_model *m, const mxi_config *c, mx_error *err);
void mxi_metrics_close(mxi_metrics *t);
/** Measure a linear of the backward pass under way. Errors are kept for mxi_metrics_text(). */
void mxi_metrics_linear(mxi_metrics *t, size_t index, const float *dy, const float *x, int wants_dx);
/** Write the step's text, ', "layers": {...}', if there is any. */
mx_status mxi_metrics_text(mxi_metrics *t, FILE *to, mx_error *err);

/** Puts what is kept from measurement to measurement, errors of dw and W's codes, into `kept` for the state; there is room for two a linear.
 *  Returns how many there are. */
size_t mxi_metrics_state(mxi_kept *kept, const mxi_metrics *t);
/** Reads them back from the state at `path`; what it lacks begins anew. */
mx_status mxi_metrics_resume(mxi_metrics *t, const char *path, mx_error *err);

#endif
