/* Declares how Q-Ramping's periods are measured: some steps are run as without it, what they move is measured, and everything is put back. */
#ifndef TRAIN_REHEARSE_H
#define TRAIN_REHEARSE_H

#include "train/run/config.h"

typedef struct mxi_rehearsal {
  mxi_model *model;
  mxi_optim *optim; /* its ramp.of is NULL where nothing is rehearsed */
  float *kept[4];   /* parameters, moments and average before, [n_values] */
  mx_linear_hold *holds;
  float *w, *q, *now;    /* parameters and their quantised values after the step before, and after this one, [n_values] */
  float *moved, *jumped; /* sums of what they moved, [n_values] */
  mxi_optim before;      /* what no array holds */
} mxi_rehearsal;

/** Memory for Q-Ramping, in the optimiser and here; without ramp=on nothing is made. It is the model's. MX_ERR_NOMEM. */
mx_status mxi_rehearsal_open(mxi_rehearsal *t, mxi_model *m, mxi_optim *o, const mxi_config *c, mx_error *err);
/** Are periods to be measured before this step? */
int mxi_rehearsal_due(const mxi_rehearsal *t, uint64_t step);
/** Measures them. step() must run step number `step` as without Q-Ramping and say whether its loss is finite; the first loss that is not ends the
 *  measurement. Model and optimiser are then as before, except for the periods. */
mx_status mxi_rehearsal_run(mxi_rehearsal *t, uint64_t step, mx_status (*run)(void *self, uint64_t step, int *finite, mx_error *err),
                            void *self, mx_error *err);

#endif
