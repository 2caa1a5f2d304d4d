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

/** Is any product of any linear quantised? */
int mxi_effects_acts(const mxi_model *m);
/** Lists the keys that are on in a configuration, except those that take effect only later: q2.ema and tensor.hold where they have something to act
 *  on, and ramp.*, which belongs to no linear. Without memory the list is empty. */
void mxi_effects_begin(mxi_effects *e, const mxi_model *m, const mxi_config *c);
/** Compares a layer's output and gradients with those under each key set back. Without memory this layer is skipped. */
void mxi_effects_linear(mxi_effects *e, size_t index, const float *dy, const float *x);
/** Writes the names of the silent keys, separated by blanks, and returns how many; and frees the list. */
size_t mxi_effects_names(char *out, size_t size, const mxi_effects *e);
void mxi_effects_end(mxi_effects *e);

#endif
