/* Gradient rules: what stands between the product that gives the gradient of a quantised operand and the gradient of the operand itself.
 *
 * rules.c      which rules a recipe asks for
 * estimator.c  slopes of a rounding: Q' of elements, q' of scales
 * blocks.c     the blocks of a quantised operand: which values, and what a code stands for
 * gradient.c   a product's result is multiplied by the rules' factors */
#ifndef TRAIN_LINEAR_GRADIENT_H
#define TRAIN_LINEAR_GRADIENT_H

#include "train/linear/internal.h"

enum { MXI_MOST_VALUES = 256, MXI_MOST_KNOTS = 1024, MXI_MOST_K = 16 };

/* The slope of a rounding to the values of a grid, at any number. */
typedef struct mxi_estimator {
  int kind;                     /* MX_QPRIME_* */
  unsigned k;                   /* of dge and baseline_compat */
  double lo, hi;                /* bounds of dge and spline */
  double one_below, one_above;  /* the slope is 1 outside */
  int clamped;                  /* numbers beyond the grid are its ends to baseline_compat too */
  size_t n, n_knots;            /* 2 or more, 0 without spline */
  double grid[MXI_MOST_VALUES]; /* ascending */
  double knot[MXI_MOST_KNOTS];  /* of spline, ascending */
  double slope[MXI_MOST_KNOTS]; /* between a knot and the next */
} mxi_estimator;

/** Q' under a recipe, of the values of an element format. */
void mxi_estimator_of_elements(mxi_estimator *out, const mx_linear_recipe *r, int elem);
/** The slope at v; 1 at a NaN. */
double mxi_slope(const mxi_estimator *e, double v);

/* A quantised matrix as blocks. */
typedef struct mxi_blocks {
  const mx_tensor *tensor;
  const mx_spec *spec;
  const mx_format *scale;
  size_t rows, cols;   /* of a block */
  size_t down, across; /* blocks */
  double over, under;  /* the tensor scale stands for over / under */
  double prescale;
} mxi_blocks;

void mxi_blocks_of(mxi_blocks *out, const mx_tensor *tensor, const mx_spec *spec);
/** What the codes of block (i, j) are multiplied by; *stored is the value of its scale. */
double mxi_block_multiplier(const mxi_blocks *b, size_t i, size_t j, double *stored);

/* What the backward call looks at again of Q1 or Q2. */
enum { MXI_LOOKS_AT_NOTHING, MXI_LOOKS_AT_SCALES, MXI_LOOKS_AT_CODES };
int mxi_gradient_looks_at(const mx_linear_recipe *r, int q);
/** Can a layer follow the recipe's gradient rules? As mx_linear_check(). */
mx_status mxi_gradient_check(const mx_linear_recipe *r, mx_error *err);
/** g [rows of values][ld], the gradient of what operand q (MX_Q1, MX_Q2) became, to that of q itself, both rotated as q was. values: q's own,
 *  not rotated. */
mx_status mxi_gradient_apply(mxi_layer *y, int q, float *g, size_t ld, mxi_matrix values);

#endif
