/* Declares the gradient rules of one block, in binary64: SPEC "Gradient rules". Nothing here knows a layer.
 *
 * numbers.c    the recipe's keys that are numbers
 * estimator.c  slopes of a rounding: Q' of elements, q' of scales
 * slopes.c     the public calls for them
 * blocks.c     the blocks of a quantised operand: where a scale stands, and what a code stands for
 * normaliser.c what a block's scale is made of, and its derivative
 * jacobian.c   the derivative of a block's quantiser, from its slopes and those of its scale */
#ifndef TRAIN_LINEAR_GRADIENT_BLOCK_H
#define TRAIN_LINEAR_GRADIENT_BLOCK_H

#include "mxgold/linear.h"

/** A training key that is a number: `fallback` where the recipe has +0. */
double mxi_linear_real(double number, double fallback);
/** Are the numbers among the gradient keys within their bounds? */
mx_status mxi_gradient_check_numbers(const mx_linear_recipe *r, mx_error *err);

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
/** The number by which the codes of block (i, j) are multiplied; *stored is the value of its scale. */
double mxi_block_multiplier(const mxi_blocks *b, size_t i, size_t j, double *stored);

/** x as it is scaled before it is rounded. */
double mxi_gradient_scaled(const mxi_blocks *b, double multiplier, float x);
/** rnd_f32, one NaN for all. */
float mxi_gradient_store(double x);

/* How magnitudes are normalised, and by which derivative. */
typedef struct mxi_normaliser {
  int derivative; /* MX_GRAD_ABSMAX or _SOFTMAX */
  int lse;        /* Z is the log-sum-exp */
  int all_ties;
  int relative; /* to the largest of them */
  float beta;
  double unit; /* else to this number */
} mxi_normaliser;
/** The recipe's normaliser for an operand whose magnitudes are counted in units of `unit`: mxi_tensor_unit(), which is max|X| under a tensor
 *  scale and otherwise 1. */
mxi_normaliser mxi_normaliser_of(const mx_linear_recipe *r, double unit);
double mxi_tensor_unit(const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld);
/** Computes Z of n values. dz [n], if not NULL, gets dZ/dx; magnitude and weight [n] are scratch for the softmax. */
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

#endif
