/** Declares the plan that a kernel is given: the keys of a spec (mx_spec itself) and what follows from them. The host makes it and copies it
 *  to the device once; mxh_tensor_plan fills in there what depends on the tensor's maximum, so that nothing waits for the host. */
#ifndef MXH_KERNEL_PLAN_H
#define MXH_KERNEL_PLAN_H

#include <stdint.h>

#include "mxgold/random.h"
#include "mxgold/spec.h"

enum : uint32_t { MXD_NO_CODE = 0xFFFFFFFFu };

/* A row of formats/elements.def or scales.def, up to 32 bits. */
struct mxd_format {
  int32_t kind, bits, sign_bits, man_bits, bias;
  uint32_t max_code, inf_code, nan_first, nan_last, nan_code;
};

/* mx_encoding with sr_bits filled in. */
struct mxd_encoding {
  int32_t round, overflow, saturate_to, nan, inf, zero_sign, sr_mode, sr_bits;
  uint32_t nan_code, inf_code;
};

/* Formulas of formats/chains.def in postfix order. */
enum { MXD_CHAIN_OPS = 24, MXD_CHAIN_FACTORS = 3, MXD_CHAIN_STATEMENTS = 4, MXD_CHAIN_VARS = 12 };
enum { MXD_VAR_A, MXD_VAR_F, MXD_VAR_M, MXD_VAR_K, MXD_VAR_AMAX, MXD_VAR_SF, MXD_VAR_FIRST };
enum {
  MXD_NUMBER,
  MXD_VAR,
  MXD_ADD,
  MXD_SUB,
  MXD_MUL,
  MXD_DIV,
  MXD_MIN,
  MXD_MAX,
  MXD_IFZERO,
  MXD_IFINF,
  MXD_IFNAN,
  MXD_ZEROIF,
  MXD_RCP0,
  MXD_RCPA
};
struct mxd_op {
  int32_t op, var;
  float number;
};
struct mxd_expr {
  int32_t n;
  mxd_op op[MXD_CHAIN_OPS];
};
struct mxd_product {
  int32_t n, op[MXD_CHAIN_FACTORS]; /* '*' or '/' */
  mxd_expr factor[MXD_CHAIN_FACTORS];
};
struct mxd_chain {
  int32_t n_statements, target[MXD_CHAIN_STATEMENTS], store;
  mxd_expr statement[MXD_CHAIN_STATEMENTS], scale;
  mxd_product element, again;
};

enum { MXD_LOG2_FIRST = -150, MXD_LOG2_COUNT = 280 };
enum { MXD_STORE_NONE, MXD_STORE_SCALE, MXD_STORE_DIVISOR, MXD_STORE_AMAX };

struct mxd_plan {
  mx_spec spec; /* the device does not use its pointer */
  mxd_format elem, scale;
  mxd_encoding encode, scale_encode;
  uint64_t rows, cols, block_rows, block_cols; /* of the matrix that is quantised, after transposing */
  uint64_t bands, tiles;                       /* blocks along rows, along columns */
  uint64_t cols_padded, code_stride, scale_rows, scale_cols;
  int32_t scale_bytes, emax, uses_chain, needs_amax, has_tensor_scale, store;
  double f, target, norm;   /* scale.max, K, N */
  float k;                  /* K as chains use it */
  int32_t act_nan, act_inf; /* MX_SCALE_NAN_* for a block with a NaN, with an Inf */
  float nan_n, inf_n;
  mxd_chain chain;
  /* how far below 2^k log2f still rounds up to k, in units of 2^(k-24), and how far above it down to k, in units of 2^(k-23); k from
   * MXD_LOG2_FIRST */
  uint8_t log2_below[MXD_LOG2_COUNT], log2_above[MXD_LOG2_COUNT];
  /* Filled in by mxh_tensor_plan: */
  double over, under; /* the real amax of a block is amax * over / under before F: N and g of SPEC 3.5 */
  float amax;         /* A */
  float seen;         /* the tensor's maximum, even if a tensor scale is given */
  float vars[MXD_CHAIN_VARS];
  float tensor_scale;
};
#endif
