/* Declares the search for training keys that are on and change no bit of a linear layer: in the first step each is set back, one at a time, and the
 * layer is run again. */
#ifndef TRAIN_EFFECTS_H
#define TRAIN_EFFECTS_H

#include <stdio.h>

#include "train/models/model.h"

enum { MXI_MOST_KEYS = 64 };

typedef struct mxi_effects {
  const mxi_model *m;
  const mx_linear_recipe *recipe;
  int silent[MXI_MOST_KEYS]; /* of each training key: it is on, and no layer has changed yet */
} mxi_effects;

/** The keys that are on in a recipe. q2.ema and tensor.hold, which begin later, and ramp.*, which is no linear's, are left out. */
void mxi_effects_begin(mxi_effects *e, const mxi_model *m, const mx_linear_recipe *recipe);
/** Compare a layer's output and gradients with those under each key set back. Memory that is not to be had ends it for this layer. */
void mxi_effects_linear(mxi_effects *e, size_t index, const float *dy, const float *x);
/** Names of the silent keys, a blank between; returns how many. */
size_t mxi_effects_names(char *out, size_t size, const mxi_effects *e);

#endif
