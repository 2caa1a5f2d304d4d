/** Declares the arguments of the portable kernels as structs that the host and the kernels share. */
#ifndef MXH_ARGS_H
#define MXH_ARGS_H

#include "hip_backend/run/kernel_plan.h"
#include "hip_backend/run/runtime.h"

/* A matrix to read; exchanging its two steps transposes it. */
struct mxd_source {
  mxh_ptr<const float> at;
  int64_t row_step, col_step;
};

struct quantize_args {
  mxd_source x;
  mxh_ptr<const mxd_plan> plan;
  mxh_ptr<const uint32_t> given; /* sr.source=given */
  mxh_ptr<uint8_t> codes;        /* [rows][cols_padded], one to a byte */
  mxh_ptr<uint32_t> values;      /* elem=none: [rows][cols] instead of codes */
  mxh_ptr<uint8_t> scales, micro;
  mxh_ptr<uint32_t> refused; /* set if the spec refuses a value */
};

struct pack_codes_args {
  mxh_ptr<const uint8_t> codes;                           /* [rows][cols_padded] */
  mxh_ptr<uint8_t> out;                                   /* [rows][cols_padded / 2] */
  uint64_t rows, cols_padded, cols_quantised, block_cols; /* columns beyond cols_quantised get code 0 */
  int32_t nibble;
};

struct dequantize_args {
  mxh_ptr<const mxd_plan> plan;
  mxh_ptr<const uint8_t> codes, scales, micro;
  mxh_ptr<float> out; /* [rows][cols] */
  float tensor_scale; /* as stored */
};

struct amax_args {
  mxd_source x;
  mxh_ptr<const mxd_plan> plan;
  mxh_ptr<uint32_t> amax; /* bits of the maximum, with NaN above Inf above numbers; 0 before the launch */
};

struct tensor_plan_args {
  mxh_ptr<mxd_plan> plan;
  mxh_ptr<const uint32_t> amax; /* bits */
};

struct prepare_args {
  mxd_source x;
  mxh_ptr<float> out; /* [rows][cols] */
  uint64_t rows, cols;
  int32_t dtype, flush;
};

/* had.sign=te: [1 1 1 -1 1 -1 -1 -1 -1 -1 -1 1 -1 1 -1 -1], bit i set where element i is negated. */
enum { MXD_TE_SIGNS = 0xD7E8 };

struct hadamard_args {
  mxh_ptr<const float> x; /* [rows][cols] with stride ld */
  mxh_ptr<float> out;     /* may be x */
  uint64_t rows, cols, ld, ld_out, seed;
  uint32_t size, sign; /* a power of two up to 1024; MX_HAD_SIGN_* */
  float factor;        /* rnd_f32(1 / sqrt(size)) */
  uint8_t signs[16];   /* fixed */
};

struct layout_args {
  mxh_ptr<const uint8_t> in;
  mxh_ptr<uint8_t> out;
  uint64_t rows, kb;
  int32_t layout; /* MX_LAYOUT_* */
  uint32_t pad;   /* the byte that fills the padding */
};

struct pack_args {
  mxh_ptr<const uint8_t> in;
  mxh_ptr<uint8_t> out;
  uint64_t n, block; /* codes; block of nibble=half_block */
  int32_t nibble;
};

struct codec_args {
  mxh_ptr<const float> x; /* encode */
  mxh_ptr<float> y;       /* decode */
  mxh_ptr<uint8_t> codes; /* one byte, two for formats of more than 8 bits */
  uint64_t n, seed;
  mxd_format format;
  mxd_encoding how; /* stochastic: Philox of (seed, stream 0, index) */
};

/* Arithmetic on which other kernels depend, tested by itself. */
enum { MXD_NUMBERS_QUOTIENT, MXD_NUMBERS_RECIPROCAL };
struct numbers_args {
  mxh_ptr<const double> x; /* quotient: [n][2], dividend and divisor */
  mxh_ptr<double> y;       /* quotient: [n] */
  mxh_ptr<uint32_t> bits;  /* reciprocal: [n], of the binary32 numbers with the bits first + i * step */
  uint64_t n;
  uint32_t first, step;
  int32_t what;
};

/* How the fast kernels find the scale of a plain block. */
enum { MXD_LEAD_FLOOR, MXD_LEAD_EVEN, MXD_LEAD_TE };
struct fast_rule {
  int32_t lead, drop; /* drop: elem.zero_sign=drop_input */
  uint32_t even_add;
  float r, d; /* te: amax * r is the scale's value, 1 / (sf * d) the factor */
};
struct fast_args {
  mxd_source x; /* col_step 1, rows 16-byte aligned */
  mxh_ptr<const mxd_plan> plan;
  mxh_ptr<uint32_t> codes;                  /* [rows][cols / 8] */
  mxh_ptr<uint8_t> scales;                  /* [rows][cols / block] */
  mxh_ptr<uint32_t> n_special, special;     /* blocks left to the interpreter: their number, 0 before the launch, and their indices */
  uint32_t n_blocks, block, blocks_per_row; /* fewer than 2^29 blocks */
  uint32_t shift;                           /* a block is 2^shift lanes of eight elements */
  int32_t dense;                            /* rows without gaps */
  fast_rule rule;
};
/* Both directions: [rows][cols] and its transpose from a single read; rows and cols are multiples of 32. */
struct both_args {
  fast_args along, across;
  uint32_t rows, cols;
};
struct fast_dequantize_args {
  mxh_ptr<const uint16_t> codes; /* four for each lane */
  mxh_ptr<const uint8_t> scales;
  mxh_ptr<float> out;
  uint32_t n4, shift; /* a block is 2^shift lanes of four elements */
  uint32_t e4m3;
  int32_t two_level, deq_arith;
  double times, over;       /* value * times / over; over is 1 for two_step, and for scale_first unless the stored tensor scale is a divisor */
  float ratio_hi, ratio_lo; /* their sum is times / over to 48 bits */
};
/* A copy of n4 groups of four, to measure what the card's memory can do. */
struct copy_args {
  mxh_ptr<const float> x;
  mxh_ptr<float> y;
  uint64_t n4;
};
struct fill_args {
  mxh_ptr<float> x;
  uint64_t n, seed;
};
struct fast_amax_args {
  mxh_ptr<const float> x;
  mxh_ptr<uint32_t> amax;
  uint64_t n4; /* groups of four */
};

struct gemm_args {
  mxh_ptr<const mxd_plan> a_plan, b_plan;
  mxh_ptr<const uint8_t> a_codes, a_scales, b_codes, b_scales;
  mxh_ptr<const float> c, bias;            /* or NULL */
  mxh_ptr<uint16_t> d;                     /* [M][N] of the output type, each one or two 16-bit words */
  mxh_ptr<const uint8_t> a_micro, b_micro; /* scale.rule=hif4 */
  uint64_t M, N, K, block;
  int32_t model;                   /* MX_GEMM_F32_BLOCK, MX_GEMM_F32_SEQ */
  int32_t wide;                    /* an operand has elem=none, scales of four bytes or scale.form=encode */
  int32_t alpha_zero, scaled, out; /* out: 0 binary32, 1 binary16, 2 bfloat16 */
  float t, beta;                   /* alpha * ga * gb, rounded as SPEC 4 says */
};

#endif
