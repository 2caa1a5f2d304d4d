/* Declares digests.txt: a line "STEP NAME DIGEST" for the parameters after each step, or for everything that a step computes. */
#ifndef TRAIN_DIGESTS_H
#define TRAIN_DIGESTS_H

#include "train/run/files.h"

typedef struct mxi_digests {
  mxi_lines lines;
  int all;       /* every activation and gradient too */
  uint64_t step; /* that is under way */
  char pass[48]; /* which forward pass of the step, in front of a name: "", "batch.1:", "evaluation.fp32.0:" */
} mxi_digests;

/** Has what the model computes written from now on, if that was asked for: for batch k of the n whose gradients make a step, */
void mxi_digests_batch(mxi_digests *d, mxi_model *m, uint64_t step, size_t k, size_t n);
/** or for batch k of an evaluation (how: as mxi_model_forward()'s evaluate) after a step. */
void mxi_digests_evaluation(mxi_digests *d, mxi_model *m, uint64_t step, int how, size_t k);
/** Gradients of the parameters, last ones first, as the backward pass comes by them; before clipping, since that scales all of them alike. */
void mxi_digests_gradients(mxi_digests *d, const mxi_model *m);
/** The parameters: one digest of all together, or one each. */
void mxi_digests_parameters(mxi_digests *d, const mxi_model *m);

#endif
