/* Declares how one tile of D is computed from operands of any kind: operand.c (elements and scales as numbers), panel.c (sixteen decoded
 * rows side by side), lanes.inc.h (kernels on panels), one.c (one output of any numbers, not made for speed) with exact.c and wide.c,
 * combine.c (from a sum to D). SPEC section 4. */
#ifndef MX_GEMM_TILE_TILE_H
#define MX_GEMM_TILE_TILE_H

#include "mxgold/gemm.h"

enum { MXG_LANES = 16 }; /* rows in a panel; a tile is 16 x 16 outputs */

/* How codes lie along a line of memory. */
typedef enum mxg_pack { MXG_LOW_FIRST, MXG_HIGH_FIRST, MXG_HALF_BLOCK, MXG_SIX, MXG_8, MXG_16, MXG_32 } mxg_pack;

typedef struct mxg_operand {
  const mx_format *elem, *scale; /* scale NULL: none */
  size_t rows, K, block, kb;
  const uint8_t *data;
  size_t line_bytes; /* from one line to the next; a line is a row, or with k_strided a k */
  int k_strided;
  mxg_pack pack;
  const uint8_t *scales, *micro;
  size_t scale_bytes, scale_ld, scale_row0, rows_per_scale; /* the scale of row r: (scale_row0 + r) / rows_per_scale */
  int scale_layout, scale_transposed;
  int encode, scale_signed;
  int divides; /* the encode form with scales that are not powers of two: blocks are divided by their scale */
  float multiplier;
  int scale_bits;                           /* significant bits that a scale may have; 0: scales are always powers of two */
  int hi, lo;                               /* every finite element is below 2^(hi+1) and a multiple of 2^lo */
  double elem_value[256], scale_value[256]; /* of codes up to 8 bits */
} mxg_operand;

/** Fills in the tables and bounds that follow from elem, scale, micro, encode and scale_signed. */
void mxi_gemm_operand_prepare(mxg_operand *o);
/** The exact elements [k0, k0 + n) of a row, micro-scales included. */
void mxi_gemm_values(double *out, const mxg_operand *o, size_t row, size_t k0, size_t n);
/** Codes [k0, k0 + n) of a row, up to 8 bits each. */
void mxi_gemm_codes(uint8_t *out, const mxg_operand *o, size_t row, size_t k0, size_t n);
/** The same for codes of any width. */
void mxi_gemm_codes64(uint64_t *out, const mxg_operand *o, size_t row, size_t k0, size_t n);
/** The micro-scale of an element of an operand that has them: 1, 2 or 4. */
double mxi_gemm_micro(const mxg_operand *o, size_t row, size_t k);
/** element * scale, or element / scale, where 0 / 0 is the element, -0 too: a block that was stored as all zeros. */
double mxi_gemm_scaled(double element, double scale, int divides);
/** The code of a scale, with all its bits, for operands that have scales. */
uint32_t mxi_gemm_scale_code(const mxg_operand *o, size_t row, size_t b);
/** The number by which block b of a row is multiplied or, with `divides`, divided. 1 without scales. */
double mxi_gemm_scale(const mxg_operand *o, size_t row, size_t b);

/* Sixteen decoded rows: v[k * 16 + r], s[b * 16 + r]; rows beyond the last are zeros with scale 1. The model decides what v holds: elements
 * (f32_block), or elements times their scales, as binary32 in f (f32_seq, f32_pairwise) or as binary64 (f64). */
typedef struct mxg_panel {
  size_t rows, K, block, kb;
  double *v, *s;
  float *f;
  int16_t *hi, *lo; /* [kb] bounds as in mxg_operand, of this panel's own elements; only filled in where mxi_gemm_looks() */
  double *norm;     /* [kb * 16] the root of the sum of squares of each block's elements, or NULL; filled in with those bounds */
  /* exact: no Inf or NaN; every scale is below 2^(scale_hi + 1) and a multiple of 2^scale_lo */
  int finite, scale_hi, scale_lo;
  mx_workspace *from; /* where the memory comes from; NULL: the heap */
} mxg_panel;

/* What a call computes, which is the same for every tile of a matrix of the batch. */
typedef struct mxg_plan {
  mxg_operand a, b;
  size_t M, N, K, block, kb;
  int model;
  int bounded;      /* no block of these formats needs more than 53 bits, its scales included */
  int dots_bounded; /* no dot of a block of these formats needs more than 53 bits */
  mx_gemm_options o;
  int col_major;
  size_t ldc, ldd;
  float alpha, beta;
} mxg_plan;

mx_status mxi_gemm_panel_alloc(mxg_panel *p, const mxg_plan *plan);
void mxi_gemm_panel_free(mxg_panel *p);
void mxi_gemm_panel_fill(mxg_panel *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);
size_t mxi_gemm_panel_bytes(const mxg_plan *plan);

/** Whether binary64 holds every dot and term of a block exactly; and whether it holds the dots. */
int mxi_gemm_block_fits(const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b, size_t block);
int mxi_gemm_dots_fit(const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b, size_t block);

/* The scales of a block for sixteen rows and sixteen columns: those that multiply and those that divide, 1 where there are none. */
typedef struct mxg_factors {
  const double *up_a, *up_b, *under_a, *under_b;
} mxg_factors;
static inline mxg_factors mxg_factors_of(const mxg_plan *plan, const double *sa, const double *sb) {
  static const double ones[MXG_LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const int a = plan->a.divides, b = plan->b.divides;
  return (mxg_factors){a ? ones : sa, b ? ones : sb, a ? sa : ones, b ? sb : ones};
}

/** Computes the sums of a tile, acc[i * 16 + j], over all of K. */
typedef void mxg_kernel(float *acc, const mxg_panel *a, const mxg_panel *b);
/** For `exact`, if mxi_gemm_exact_split() found a way: sums [n_sums][16][16] that together are each output's exact sum. */
typedef void mxg_exact_kernel(double *sums, const mxg_panel *a, const mxg_panel *b, const double *place, int n_sums);
/** f32_block for numbers that `f32_block` is not for, if no scale divides. Bit j of unsure[i], 0 before, is set if output (i, j) needs
 *  mxi_gemm_one_block(), because a number is not finite, or because an interval did not decide it. */
typedef void mxg_unsure_kernel(float *acc, uint16_t unsure[MXG_LANES], const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b);
/** f32_block if a scale divides and plan->bounded. */
typedef void mxg_divided_kernel(float *acc, const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b);
/** Adds the terms of a block, from its exact dots: dot * (sa * sb), or dot * up / under, in which case binary64 holds dot * up. */
typedef void mxg_long_kernel(float *acc, const double *dots, const double *sa, const double *sb);
typedef void mxg_quotient_kernel(float *acc, const double *dots, const mxg_factors *f);
/** The dots of a block of a tile in binary64, summed in order, and what their operations rounded away: its sum, and the sum of its
 *  magnitudes, which is 0 if nothing was rounded. */
typedef struct mxg_dots {
  double dot[MXG_LANES * MXG_LANES], lost[MXG_LANES * MXG_LANES], lost_size[MXG_LANES * MXG_LANES];
} mxg_dots;
typedef void mxg_dots_kernel(mxg_dots *out, const mxg_panel *a, const mxg_panel *b, size_t block);
typedef struct mxg_kernels {
  mxg_kernel *f32_block, *f32_seq, *f32_pairwise, *f64, *group64;
  mxg_exact_kernel *exact;
  mxg_unsure_kernel *f32_any;
  mxg_divided_kernel *f32_divided;
  mxg_long_kernel *terms_long;
  mxg_quotient_kernel *terms_divided;
  mxg_dots_kernel *rounded_dots;
} mxg_kernels;
extern const mxg_kernels mxi_gemm_lanes_scalar, mxi_gemm_lanes_avx2, mxi_gemm_lanes_avx512;
const mxg_kernels *mxi_gemm_kernels_best(const mx_exec *exec);

/* One row of a decoded operand: v[k * step], s[b * step]. */
typedef struct mxg_line {
  const double *v, *s;
  size_t step;
} mxg_line;
/** One output of f32_block, for any numbers. */
float mxi_gemm_one_block(const mxg_plan *plan, mxg_line a, mxg_line b);
/** Adds one block to an output of f32_block, for any numbers: acc with the block's dot and scales. at: the output's place in dots, i * 16 +
 *  j. */
float mxi_gemm_one_step(const mxg_plan *plan, mxg_line a, mxg_line b, size_t block, float acc, const mxg_dots *dots, size_t at);
/** Adds one block in the same way where dot * up is exact in binary64: acc + dot * up / over. */
float mxi_gemm_one_quotient(float acc, double dot, double up, double over);
/** One output of a model other than exact, from lines that hold what the model's panels hold (values that are binary32 already for f32_*). */
float mxi_gemm_one_sum(const mxg_plan *plan, mxg_line a, mxg_line b);
/** One element of D under model exact, as a binary32 that has already been rounded to o.out. c and bias are numbers, 0 if not given. */
float mxi_gemm_one_exact(const mxg_plan *plan, mxg_line a, mxg_line b, float c, float bias);
/** What follows the sum in `exact`, for a sum given as n numbers below 2^960, each a multiple of 2^-1000. */
float mxi_gemm_exact_finish(const mxg_plan *plan, const double *sums, size_t step, int n, float c, float bias);
enum { MXG_SUMS = 3 };
/** How many sums (1 .. MXG_SUMS) hold the terms of a tile without rounding, and place[] for the kernel; 0: no such number is enough. */
int mxi_gemm_exact_split(double place[MXG_SUMS], const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b);
/** Turns the elements of a row (step 1) in place into what the model takes: elements times their scales, rounded, or elements as they are. */
void mxi_gemm_line_values(double *v, const double *s, const mxg_plan *plan, int divides);

/** What follows the sum, up to but without rounding to the output type. */
float mxi_gemm_combine(const mxg_plan *plan, float acc, float c, float bias);
/** Combines and stores a row of binary32 outputs from column j0 on, without C and a bias of rows; returns 0 if the plan needs more. d need not be
 *  aligned to a vector. */
int mxi_gemm_combine_row(const mxg_plan *plan, float *d, const float *acc, size_t j0, size_t n);
/** Stores x at out[index] after rounding it once to dtype, ties to even; and reads such a number back as binary32. */
void mxi_gemm_store(void *out, size_t index, mx_dtype dtype, float x);
float mxi_gemm_load(const void *from, size_t index, mx_dtype dtype);

#endif
