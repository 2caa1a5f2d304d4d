/* Declares the steps of SPEC 3.2 and the structs that one step hands to the next. */
#ifndef REF_RULES_H
#define REF_RULES_H

#include "chain.h"
#include "codec.h"

/* Everything that is the same for all blocks of a tensor. */
typedef struct ref_plan {
  const mx_spec *spec;
  const mx_format *elem, *scale;
  size_t block_rows, block_cols; /* of this tensor */
  num_type type;                 /* of the rule's arithmetic: input.dtype */
  num most, target;              /* F = scale.max and K = tensor.target, defaults filled in */
  int act_nan, act_inf;          /* MX_SCALE_NAN_*, scale.inf in the terms of scale.nan */
  float nan_n, inf_n;
  num amax;                  /* A: max|X|, or what a tensor scale that is given says it is */
  num seen;                  /* max|X| of step 4 */
  num norm_over, norm_under; /* N and g of the exact chain: N / g = 1 without a tensor scale */
  int chained;               /* chain is not exact */
  ref_chain chain;
  chain_env env; /* after the chain's tensor statements */
  ref_how how;   /* of the elements */
} ref_plan;

/* How the elements of a block are scaled. */
typedef enum ref_scaling {
  SCALING_USED,        /* by `used`, as elem.arith or the chain says */
  SCALING_AS_IS,       /* y = x: a block of zeros */
  SCALING_PLUS_ZERO,   /* y = +0 */
  SCALING_TIMES_0,     /* y = x * 0 in binary32 */
  SCALING_SIGNED_ZERO, /* y = 0 with the sign of x; NaN stays */
  SCALING_FLT_MAX      /* y = rnd_f32(x * FLT_MAX) */
} ref_scaling;

typedef struct ref_scale {
  uint64_t code; /* stored */
  num used;
  ref_scaling scaling;
} ref_scale;

/* A block: its elements in row-major order of the tile, missing ones as +0. */
typedef struct ref_block {
  const num *x;
  size_t n;
  size_t index; /* among the blocks of the tensor, row-major: random bits of the scale */
} ref_block;

/* Makes one scale of a block, or two under select=foursix: for a largest value of 6, and of 4. Returns how many; 0 for a block that the spec refuses. */
int ref_block_scales(ref_scale out[2], const ref_plan *plan, const ref_block *block);
/* The same from a maximum that is not the block's own. */
int ref_block_scales_from(ref_scale out[2], const ref_plan *plan, const ref_block *block, num amax);
/* What the elements do under a code that the rule did not make: they are scaled by its value, with scale.byte0 and scale.zero=zero, max. */
ref_scale ref_scale_given(const ref_plan *plan, uint64_t code);
/* F: scale.max times scale.margin. */
num ref_scale_max(const mx_spec *spec, const mx_format *elem);
/* Does the element count for amax, and as what? Returns 0 when it does not. */
int ref_counts(num *magnitude, const ref_plan *plan, num x);
/* Value of a stored scale code, scale.sign heeded. */
num ref_scale_value(const ref_plan *plan, uint64_t code);
num ref_flt_max(void);
num ref_real(float value, num otherwise); /* a MX_REAL key: 0 means the default */

/* scale.rule=quest: floor(log2(2.92247856/6 * std + 1e-8)) over the elements that count, each times N/g. */
int ref_quest_exponent(const ref_plan *plan, const ref_block *block);

/* The scaled value y of x. */
num ref_scaled(const ref_plan *plan, const ref_scale *scale, num x);
/* Code of x; *value is what select=foursix counts it as (NaN: an element that overflowed without end). index: of the element in the tensor. */
uint64_t ref_element(const ref_plan *plan, const ref_scale *scale, num x, uint64_t index, num *value);

/* select=foursix: 1 if the second candidate has the lower error. */
int ref_second_wins(const ref_plan *plan, const ref_scale scales[2], const num *values[2], const ref_block *block);

/* select=eden: the factor that corrects the scales of a group, sum z^2 / sum z q over its n elements. 0 if that is no positive number. */
int ref_eden_factor(num *factor, const num *z, const num *q, size_t n);
/* The code that is stored for `code` under that factor; index: of the block. */
uint64_t ref_eden_code(const ref_plan *plan, uint64_t code, num factor, size_t index);

/* The multiplier that a stored tensor scale stands for, as the quotient over / under. */
void ref_tensor_multiplier(const ref_plan *plan, num stored, num *over, num *under);
/* The same as a number to multiply by, rounded once, for deq.arith=scale_first; a divisor (over is 1) stays one. */
void ref_scale_first_multiplier(const ref_plan *plan, int divisor, num *over, num *under);
/* rnd_f32(code * scale * multiplier), or as spec->deq_arith says. */
num ref_dequantized(const ref_plan *plan, num code, num scale, num over, num under);

/* Fills in the defaults of a spec for a tensor; then, once A = max|X| is known, what follows from it. The stored tensor scale goes to *stored. */
mx_status ref_plan_make(ref_plan *plan, const mx_spec *spec, size_t rows, size_t cols);
void ref_plan_tensor(ref_plan *plan, num amax, num *stored);

/* Steps 1 to 3 of a tensor, into memory of its own; step 4; and step 11: codes of a byte each, [rows][cols_padded], into their bytes, and the scale
 * of the block whose first element is (row, col). */
mx_status ref_prepare(float **out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec);
num ref_largest(const ref_plan *plan, const float *x, size_t n);
void ref_store_codes(mx_tensor *t, const uint8_t *codes, const ref_plan *plan);
void ref_store_scale(mx_tensor *t, const ref_plan *plan, size_t row, size_t col, uint64_t code);
/* Was `a` allocated for what `b` says? */
int ref_same_shape(const mx_tensor *a, const mx_tensor *b);

/* A rotation's butterflies, and the factor after them: rnd_f32(1 / sqrt(size)). */
void ref_butterflies(num *x, unsigned size);
num ref_rotation_factor(unsigned size);

/* scale.rule=hif4: codes and micro bits of a block of 64; the scale is made as under every rule. Returns 0 if the spec refuses the block. */
int ref_hif4_block(uint64_t *scale_code, uint8_t micro[3], uint64_t codes[64], const ref_plan *plan, const ref_block *block);

#endif
