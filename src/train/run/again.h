/* Declares a linear's products computed a second time beside a step, in memory of their own: under its recipe, with other draws, or in the FP32
 * chain. */
#ifndef TRAIN_AGAIN_H
#define TRAIN_AGAIN_H

#include "train/models/model.h"

/* What one pass of a linear gave, [T][O], [T][I], [O][I]. */
typedef struct mxi_products {
  float *y, *dx, *dw;
} mxi_products;

typedef struct mxi_again {
  mxi_model *model;
  void *saved, *work;
} mxi_again;

/** Memory for any linear of the model; it is the model's. */
mx_status mxi_again_open(mxi_again *a, mxi_model *m, mx_error *err);
/** The largest of T O, T I and O I over the linears of the model. */
size_t mxi_again_most(const mxi_model *m);
/** Products of linear `index` from dy and x, without its bias. exact: in the FP32 chain; else under its recipe with the draws of step `step`, and
 *  operand (NULL: nobody) sees the operands. Gradients that are NULL are not computed. */
mx_status mxi_again_run(const mxi_again *a, const mxi_products *out, size_t index, const float *dy, const float *x, int exact, uint64_t step,
                        void (*operand)(void *self, int q, const mx_tensor *tensor, const mx_spec *spec), void *self, mx_error *err);

#endif
