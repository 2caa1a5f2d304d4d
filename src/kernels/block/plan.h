/* Declares the plan: a spec made ready to run, with formats looked up, formulas parsed, tensor-level numbers filled in. */
#ifndef MX_KERNELS_BLOCK_PLAN_H
#define MX_KERNELS_BLOCK_PLAN_H

#include <math.h>

#include "kernels/block/tables.h"
#include "mxgold/quantize.h"

typedef struct mx_plan {
  mx_spec spec;
  const mx_format *elem, *scale;
  mx_encoding encode;       /* of elements */
  mx_encoding scale_encode; /* of scales */
  size_t rows, cols, block_rows, block_cols;
  int emax;                   /* floor(log2(largest element)) */
  double f, m;                /* scale.max as a number, the scale format's largest */
  double target;              /* K of the chains: what max|X| maps to */
  double norm;                /* N: the exact chain's normaliser; with g: of a tensor scale that is given */
  double g;                   /* max|X| or what stands for it, 1 without tensor scale */
  int uses_chain, tensor_nan; /* tensor_nan: scale.nan=tensor (or scale.inf) and there is one */
  const mx_chain_program *chain;
  float vars[MX_CHAIN_VARS]; /* the chain's, amax and sf left to the block */
  int has_tensor_scale;
  float tensor_scale;         /* as stored */
  const float *values;        /* of each code, for elem.round=scan_x and scan_y */
  const double *scale_values; /* of each code; NULL for a scale format of more than 8 bits */
} mx_plan;

/** Everything but the tensor-level numbers. MX_ERR_CONFLICT names keys that exclude each other. */
mx_status mxi_plan_init(mx_plan *plan, const mx_spec *spec, size_t rows, size_t cols, mx_error *err);
/** Does the plan need the tensor's largest magnitude before the first block? */
int mxi_plan_needs_amax(const mx_plan *plan);
/** The tensor-level numbers from A = max|X| (ignored if spec.tensor_given). */
void mxi_plan_set_amax(mx_plan *plan, float amax);

/* What a block's elements are divided by, and what is stored. */
typedef struct mx_block_scale {
  uint32_t code;
  enum { MX_BY_NUMBER, MX_BY_CHAIN, MX_AS_IS, MX_TO_ZERO, MX_TO_SIGNED_ZERO, MX_TIMES_ZERO, MX_TIMES_FLT_MAX } how;
  double used;                    /* MX_BY_NUMBER */
  float sf;                       /* decoded stored scale, for chains and errors */
  float factor[MX_CHAIN_FACTORS]; /* MX_BY_CHAIN */
  float again[MX_CHAIN_FACTORS];
  int plain; /* exact, since no choice for the ends of the range decided it: if two maxima have the same such scale, every maximum between them has it too */
} mx_block_scale;

/* What is known of a block before its scale: over the elements after flush and rotation. */
typedef struct mx_block_stats {
  float amax; /* of the numbers, Inf included, NaN left out */
  float amax_finite;
  int has_nan, has_inf;
  double std; /* scale.rule=quest alone */
} mx_block_stats;

/** One more element; amax is the caller's to set in the end. */
static inline void mx_block_stats_add(mx_block_stats *st, float x) {
  const float a = fabsf(x);
  if (isnan(a))
    st->has_nan = 1;
  else if (isinf(a))
    st->has_inf = 1;
  else if (a > st->amax_finite)
    st->amax_finite = a;
}

/** Scale of a block. p_factor: 1, or 1.5 for the map-to-4 candidate of select=foursix. index: of the block, for scale.round=sr.
 *  Returns 0, or 1 if the block has a value that the spec refuses. */
int mxi_block_scale_find(mx_block_scale *out, const mx_plan *plan, const mx_block_stats *stats, int map_to_4, uint64_t index);

/** Its stored code alone. */
int mxi_block_scale_code(uint32_t *code, const mx_plan *plan, const mx_block_stats *stats, int map_to_4, uint64_t index);

/** Scale of a block whose stored code is known, however it came about: what a kernel that stored `code` divides by if it follows the plan. */
void mxi_block_scale_given(mx_block_scale *out, const mx_plan *plan, uint32_t code);

/** The scaled value of an element: a binary64 that rounds to any format as the exact one does. */
double mxi_scaled_value(const mx_plan *plan, const mx_block_scale *scale, float x);
/** Code of an element; index is row * cols + col of the unpadded tensor. */
uint32_t mxi_element_code(const mx_plan *plan, const mx_block_scale *scale, float x, uint64_t index);

/** The same where y = mxi_scaled_value() is known. */
uint32_t mxi_element_code_of(const mx_plan *plan, const mx_block_scale *scale, float x, double y, uint64_t index);

/** Three-level scaling of a block of 64: SPEC 3.9. codes one a byte; index: of the block. Returns 1 if the block has a value that the spec refuses. */
int mxi_hif4_block(uint8_t *codes, uint32_t *scale_code, uint8_t micro[3], const mx_plan *plan, const float *x, size_t n, uint64_t index);
/** The factor 1, 2 or 4 of element i under a block's micro-scales. */
double mxi_hif4_factor(const uint8_t micro[3], size_t i);

/** a * b / c of reals as a binary64 rounded to odd (a * b exact): rounds correctly to anything narrower. */
double mxi_quotient_to_odd(double product, double divisor);

/** floor or ceil of log2 of a positive number; with log2f, of the exact log2 rounded once to binary32. */
int mxi_floor_log2(double x, int log2f);
int mxi_ceil_log2(double x, int log2f);

/** The nearest bfloat16, ties to even. */
double mxi_to_bf16(double x);

/** binary32 to the nearest value of an MX_INPUT_DTYPE_*. */
float mxi_round_dtype(float x, int dtype);
/** x toward zero to bfloat16: what is left of a binary32 whose lower half is dropped, as wrong kernels do. */
float mxi_cut_to_bf16(float x);

#endif
