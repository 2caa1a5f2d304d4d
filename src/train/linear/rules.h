/* Declares gradient rules: what stands between the product that gives the gradient of a quantised operand and the gradient of the operand itself.
 *
 * rules.c      which rules a recipe asks for, what they look at, which exclude each other
 * gradient.c   a product's result is multiplied by the rules' factors
 * tiles.c      the same with derivatives of scales, one block after another
 * soft.c       operands whose scales are made of a log-sum-exp */
#ifndef TRAIN_LINEAR_RULES_H
#define TRAIN_LINEAR_RULES_H

#include "train/linear/gradient/block.h"
#include "train/linear/internal.h"

/* Into how many parts the work is cut, each with memory of its own. It is not the number of threads, which may differ between the call that counts
 * memory and the one that uses it. */
enum { MXI_MOST_WORKERS = 32 };

static inline size_t mxi_least(size_t a, size_t b) { return a < b ? a : b; }

/* What the backward call reads again of Q1 or Q2. */
enum { MXI_LOOKS_AT_NOTHING, MXI_LOOKS_AT_SCALES, MXI_LOOKS_AT_CODES };
int mxi_gradient_looks_at(const mx_linear_recipe *r, int q);
/** Do rules use the derivatives of scales? */
int mxi_gradient_of_scales(const mx_linear_recipe *r);
/** Can a layer follow the recipe's gradient rules? As mx_linear_check(). */
mx_status mxi_gradient_check(const mx_linear_recipe *r, mx_error *err);
/** Turns g [rows of values][ld], the gradient of the quantised operand q (MX_Q1, MX_Q2), into the gradient of q itself; both are rotated as q
 *  was. values are q's own, not rotated. */
mx_status mxi_gradient_apply(mxi_layer *y, int q, float *g, size_t ld, mxi_matrix values);

/** Is operand q made with the log-sum-exp of its blocks? The second call makes it; x is its matrix, padded, not rotated. */
int mxi_soft_acts(const mx_linear_recipe *r, int q);
mx_status mxi_soft_quantise(mxi_layer *y, int q, mxi_matrix x, mx_error *err);

/* A gradient and the operand that it belongs to; rows and columns are those of the quantised tensor. */
typedef struct mxi_ruled {
  const mx_linear_recipe *r;
  mxi_blocks blocks;
  mxi_matrix x; /* rotated as it was quantised */
  float *g;
  size_t ld;
  double trusted; /* the trust mask's bound, 0 without one */
  const mxi_estimator *elements;
  const mx_exec *exec;
} mxi_ruled;
/** Applies the rules with derivatives of scales. Memory comes from the layer; the call that only counts memory computes nothing. */
mx_status mxi_gradient_tiles(const mxi_ruled *m, mxi_arena *work);

#endif
