/* Declares the plan: a spec made ready to run, with formats looked up, formulas parsed and tensor-level numbers filled in. */
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
  double norm;                /* N, the normaliser of the exact chain; for a given tensor scale, together with g */
  double g;                   /* max|X| or what stands for it; 1 without a tensor scale */
  int uses_chain, tensor_nan; /* tensor_nan: scale.nan=tensor or scale.inf=tensor, and the tensor has one */
  const mx_chain_program *chain;
  float vars[MX_CHAIN_VARS]; /* variables of the chain; each block sets amax and sf */
  int has_tensor_scale;
  float tensor_scale;         /* as stored */
  const float *values;        /* the value of each code, for elem.round=scan_x and scan_y */
  const double *scale_values; /* the value of each code; NULL for a scale format of more than 8 bits */
} mx_plan;

/** Makes a plan except for the tensor-level numbers. MX_ERR_CONFLICT names keys that exclude each other. */
mx_status mxi_plan_init(mx_plan *plan, const mx_spec *spec, size_t rows, size_t cols, mx_error *err);
/** Whether the plan needs the tensor's largest magnitude before the first block. */
int mxi_plan_needs_amax(const mx_plan *plan);
/** Sets the tensor-level numbers from A = max|X| (which is ignored if spec.tensor_given). */
void mxi_plan_set_amax(mx_plan *plan, float amax);

/* What the elements of a block are divided by, and what is stored. */
typedef struct mx_block_scale {
  uint32_t code;
  enum { MX_BY_NUMBER, MX_BY_CHAIN, MX_AS_IS, MX_TO_ZERO, MX_TO_SIGNED_ZERO, MX_TIMES_ZERO, MX_TIMES_FLT_MAX } how;
  double used;                    /* MX_BY_NUMBER */
  float sf;                       /* the decoded stored scale, for chains and errors */
  float factor[MX_CHAIN_FACTORS]; /* MX_BY_CHAIN */
  float again[MX_CHAIN_FACTORS];
  int plain; /* no choice for the ends of the range decided it; if two maxima have the same such scale, so has every maximum between them */
} mx_block_scale;

/* What is known about a block before its scale, over the elements after flush and rotation. */
typedef struct mx_block_stats {
  float amax; /* over all numbers and Inf, without NaN */
  float amax_finite;
  int has_nan, has_inf;
  double std; /* only for scale.rule=quest */
} mx_block_stats;

/** Adds an element; the caller sets amax at the end. */
static inline void mx_block_stats_add(mx_block_stats *st, float x) {
  const float a = fabsf(x);
  if (isnan(a))
    st->has_nan = 1;
  else if (isinf(a))
    st->has_inf = 1;
  else if (a > st->amax_finite)
    st->amax_finite = a;
}

/** Finds the scale of a block. map_to_4: that of the map-to-4 candidate of select=foursix. index: of the block, for scale.round=sr.
 *  Returns 0, or 1 if the block has a value that the spec refuses. */
int mxi_block_scale_find(mx_block_scale *out, const mx_plan *plan, const mx_block_stats *stats, int map_to_4, uint64_t index);

/** Finds only the stored code. */
int mxi_block_scale_code(uint32_t *code, const mx_plan *plan, const mx_block_stats *stats, int map_to_4, uint64_t index);

/** The scale of a block whose stored code is known, however it arose: what a kernel that stored `code` divides by if it follows the plan. */
void mxi_block_scale_given(mx_block_scale *out, const mx_plan *plan, uint32_t code);

/** The scaled value of an element, as a binary64 that rounds to any format as the exact value does. */
double mxi_scaled_value(const mx_plan *plan, const mx_block_scale *scale, float x);
/** The code of an element; index is row * cols + col of the unpadded tensor. */
uint32_t mxi_element_code(const mx_plan *plan, const mx_block_scale *scale, float x, uint64_t index);

/** The same if y = mxi_scaled_value() is known. */
uint32_t mxi_element_code_of(const mx_plan *plan, const mx_block_scale *scale, float x, double y, uint64_t index);

/** Quantises a block of 64 with three levels of scale: SPEC 3.9. codes: one to a byte; index: of the block. Returns 1 if the block has a
 *  value that the spec refuses. */
int mxi_hif4_block(uint8_t *codes, uint32_t *scale_code, uint8_t micro[3], const mx_plan *plan, const float *x, size_t n, uint64_t index);
/** The factor 1, 2 or 4 of element i under a block's micro-scales. */
double mxi_hif4_factor(const uint8_t micro[3], size_t i);

/** The real product / divisor as a binary64 rounded to odd, which rounds correctly to any narrower type. */
double mxi_quotient_to_odd(double product, double divisor);

/** The floor or ceil of log2 of a positive number; log2f: of the exact log2 rounded once to binary32. */
int mxi_floor_log2(double x, int log2f);
int mxi_ceil_log2(double x, int log2f);

/** The nearest bfloat16, ties to even. */
double mxi_to_bf16(double x);

/** Rounds a binary32 to the nearest value of an MX_INPUT_DTYPE_*. */
float mxi_round_dtype(float x, int dtype);
/** Rounds x toward zero to bfloat16, as wrong kernels do when they drop the lower half of a binary32. */
float mxi_cut_to_bf16(float x);

#endif
