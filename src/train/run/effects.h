/* Declares the search for keys of quantisation that are on and change no bit of a linear layer: in the first step each is set back, one at a time, and
 * the layer is run again. */
#ifndef TRAIN_EFFECTS_H
#define TRAIN_EFFECTS_H

#include <stdio.h>

#include "train/run/config.h"

/* A key that is on: a training key, or one of quant.set or quant.operands. */
typedef struct mxi_effect {
  char name[64];
  mx_linear_recipe without;
  int silent; /* no layer has changed yet */
  int sure;   /* none will: the recipe is the same without it */
} mxi_effect;

typedef struct mxi_effects {
  const mxi_model *m;
  const mx_linear_recipe *recipe;
  mxi_effect *keys;
  size_t n;
} mxi_effects;

/** The keys that are on in a configuration. q2.ema and tensor.hold, which begin later, and ramp.*, which is no linear's, are left out. Without memory
 *  there are none. */
void mxi_effects_begin(mxi_effects *e, const mxi_model *m, const mxi_config *c);
/** Compare a layer's output and gradients with those under each key set back. Memory that is not to be had ends it for this layer. */
void mxi_effects_linear(mxi_effects *e, size_t index, const float *dy, const float *x);
/** Names of the silent keys, a blank between; returns how many. And the end of it. */
size_t mxi_effects_names(char *out, size_t size, const mxi_effects *e);
void mxi_effects_end(mxi_effects *e);

#endif
