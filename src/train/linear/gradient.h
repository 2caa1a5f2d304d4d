/* Gradient rules: what stands between the product that gives the gradient of a quantised operand and the gradient of the operand itself.
 *
 * rules.c      which rules a recipe asks for
 * estimator.c  slopes of a rounding: Q' of elements, q' of scales
 * blocks.c     the blocks of a quantised operand: which values, and what a code stands for
 * normaliser.c what a block's scale is made of, and its derivative
 * jacobian.c   the derivative of a block's quantiser, from its slopes and those of its scale
 * tiles.c      one block after another through that derivative
 * soft.c       operands whose scales are made of a log-sum-exp
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
/** q' likewise, of the smallest values of a scale format. */
void mxi_estimator_of_scales(mxi_estimator *out, const mx_linear_recipe *r, int scale);
/** The slope at v; 1 at a NaN. */
double mxi_slope(const mxi_estimator *e, double v);
/** The slopes at n numbers, several side by side. */
void mxi_slopes(double *out, const mxi_estimator *e, const double *v, size_t n);

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
/** F of scale.rule: what the largest magnitude is divided by. */
double mxi_rule_max(const mx_spec *spec);
/** What the codes of block (i, j) are multiplied by; *stored is the value of its scale. */
double mxi_block_multiplier(const mxi_blocks *b, size_t i, size_t j, double *stored);

/* How magnitudes are normalised, and by which derivative. */
typedef struct mxi_normaliser {
  int derivative; /* MX_GRAD_ABSMAX or _SOFTMAX */
  int lse;        /* Z is the log-sum-exp */
  int all_ties;
  int relative; /* to the largest of them */
  float beta;
  double unit; /* else to this number */
} mxi_normaliser;
/** The recipe's, for an operand whose magnitudes are counted in units of `unit`: mxi_tensor_unit(), max|X| under a tensor scale, else 1. */
mxi_normaliser mxi_normaliser_of(const mx_linear_recipe *r, double unit);
double mxi_tensor_unit(const mx_spec *spec, mxi_matrix x);
/** Z of n values. dz [n], if not NULL, gets dZ/dx; magnitude and weight [n] are scratch for the softmax. */
double mxi_normalise(double *dz, const mxi_normaliser *how, const float *x, size_t n, float *magnitude, float *weight);

/* The quantiser of one block of n elements at one place, in binary64. x = v * unit, its quantised value q * unit. */
typedef struct mxi_block {
  size_t n;
  const double *v;     /* scaled values */
  const double *q;     /* what they are rounded to */
  const double *slope; /* Q'(v) */
  const double *dz;    /* dZ/dx */
  double unit;
  double lever; /* L: dq_i/dx_j is slope_i (i = j) + L (q_i - v_i slope_i) dz_j */
} mxi_block;
/** L of a block whose codes are multiplied by multiplier, with q' at its scale. */
double mxi_lever(int encode, double rule_max, double prescale, double multiplier, double z, double scale_slope);
/** The number that was rounded to the stored scale. */
double mxi_scale_before(int encode, double rule_max, double multiplier, double z, double stored);
/* The derivative of a tensor scale g: dg/dx of the block's elements. */
typedef struct mxi_tensor_slope {
  double g;
  const double *dg; /* NULL: g's derivative is left out */
} mxi_tensor_slope;
/** out[i] = the diagonal of the block's Jacobian. */
void mxi_jacobian_diag(double *out, const mxi_block *b, mxi_tensor_slope t);
/** Sum over i of up_i times the part of dq_i that goes through the scale, L left out. */
double mxi_jacobian_sum(const mxi_block *b, const double *up);
/** What a block whose sum is `sum` adds to up's product with dX/dg. */
double mxi_jacobian_of_tensor(const mxi_block *b, double sum, double g);
/** out[j] = sum over i of up_i dq_i/dx_j, with of_tensor the sum of mxi_jacobian_of_tensor() over all blocks. */
void mxi_jacobian_full(double *out, const mxi_block *b, const double *up, double sum, const double *dg, double of_tensor);

/* What the backward call looks at again of Q1 or Q2. */
enum { MXI_LOOKS_AT_NOTHING, MXI_LOOKS_AT_SCALES, MXI_LOOKS_AT_CODES };
int mxi_gradient_looks_at(const mx_linear_recipe *r, int q);
/** Do rules look at the derivatives of scales? */
int mxi_gradient_of_scales(const mx_linear_recipe *r);
/** Can a layer follow the recipe's gradient rules? As mx_linear_check(). */
mx_status mxi_gradient_check(const mx_linear_recipe *r, mx_error *err);
/** g [rows of values][ld], the gradient of what operand q (MX_Q1, MX_Q2) became, to that of q itself, both rotated as q was. values: q's own,
 *  not rotated. */
mx_status mxi_gradient_apply(mxi_layer *y, int q, float *g, size_t ld, mxi_matrix values);

/** The operand's values as they were quantised: rotated, filled up to whole tiles; x itself without a rotation. NULL at while counting. */
mx_status mxi_linear_as_quantised(mxi_matrix *out, mxi_layer *y, int q, mxi_matrix x);
/** Is operand q made with the log-sum-exp of its blocks? And make it: x is its matrix, widened, not rotated. */
int mxi_soft_acts(const mx_linear_recipe *r, int q);
mx_status mxi_soft_quantise(mxi_layer *y, int q, mxi_matrix x, mx_error *err);

/* A gradient and what it is of, in memory at hand; rows and columns are the quantised tensor's. */
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
/** x as it is scaled before it is rounded. */
double mxi_gradient_scaled(const mxi_blocks *b, double multiplier, float x);
/** rnd_f32, one NaN for all. */
float mxi_gradient_store(double x);
/** The rules with derivatives of scales. Memory is the layer's; while it is counted, nothing else is done. */
mx_status mxi_gradient_tiles(const mxi_ruled *m, mxi_arena *work);

#endif
