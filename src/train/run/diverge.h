/* Declares when a run has diverged, and where. */
#ifndef TRAIN_DIVERGE_H
#define TRAIN_DIVERGE_H

#include "train/models/model.h"

/* A loss explodes when it is above `factor` times that of a model that knows nothing, in MXI_DIVERGE_STEPS steps in a row. */
enum { MXI_DIVERGE_STEPS = 10 };
typedef struct mxi_divergence {
  double factor;  /* train.divergence; 0: no finite loss is too large */
  uint64_t above; /* steps in a row so far */
} mxi_divergence;

/** The loss of a model that knows nothing: ln(vocab) nats, or the mean square of what is to be predicted. */
double mxi_loss_of_nothing(const mxi_model *m, const mxi_batch *batch);
/** Counts a step with this loss; 1: it explodes. */
int mxi_divergence_after(mxi_divergence *d, double loss, double of_nothing);
/** The first parameter, as the backward pass comes by them, with a gradient that is not finite; NULL: all are finite. */
const char *mxi_gradient_not_finite(const mxi_model *m);
/** The parameter whose gradient has the largest norm. */
const char *mxi_gradient_largest(const mxi_model *m);

#endif
