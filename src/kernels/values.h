/* Declares values from codes, a row at a time (SPEC 3.7), in the forms that vector kernels know. */
#ifndef MX_KERNELS_VALUES_H
#define MX_KERNELS_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "mxgold/format.h"

enum { MX_VALUES_MOST = 512 }; /* most elements in one call */

/* How the value of a code becomes that of an element; f is the factor of the block. */
typedef enum mx_values_how {
  MX_VALUES_MUL,     /* rnd(v * f) */
  MX_VALUES_MUL_MUL, /* rnd(rnd(v * f) * then) */
  MX_VALUES_DIV,     /* rnd(v / f), 0 / 0 is the dividend */
  MX_VALUES_DIV_MUL, /* rnd(rnd(v / f) * then), 0 / 0 is the dividend */
  MX_VALUES_WIDE     /* rnd(v * wide), where binary64 holds the product */
} mx_values_how;

typedef struct mx_values {
  float table[256]; /* values of one-byte codes */
  uint8_t high[256],
      low[256];  /* the upper and lower bytes of these as bfloat16, which is exact since no code has more than eight significant bits */
  int keeps_nan; /* 1: a NaN keeps its sign; 0: it is canonical */
  int one_sign;  /* codes 128 .. 255 have the values of codes 0 .. 127 with the other sign */
  /* Values can also be computed through binary16: (code & half_mask) << half_shift, with the bit above the mask moved to the top, times
   * half_factor. A code c with (c & nan_mask) == nan_code is NaN. */
  int whole; /* or the code counts whole steps of half_factor */
  int half, half_sign, half_shift, half_mask;
  uint8_t nan_mask, nan_code;
  float half_factor;
  mx_values_how how;
  int may_be_invalid; /* 0 * Inf and the like can occur, so NaNs must be made canonical */
  float then;
} mx_values;

typedef struct mx_value_kernels {
  /* Computes n <= MX_VALUES_MOST values. f[i >> shift] is the factor of elements 16 i to 16 i + 15 or, with shift < 0, f[i] is that of
   * element i. WIDE uses wide[] instead of f[], without shift < 0. */
  void (*values)(float *out, const uint8_t *codes, size_t n, const mx_values *v, const float *f, const double *wide, int shift);
  /* Computes the values of n 4-bit codes, where n is a multiple of block and block one of 16: value = table[16 * scale + code]. high_first:
   * element 2i is in bits 7:4. May be NULL. */
  void (*values4)(float *out, const uint8_t *codes, const uint8_t *scales, const float *table, size_t n, size_t block, int high_first);
  /* Rounds n numbers, whose NaNs are canonical, to the nearest bfloat16. */
  void (*to_bf16)(uint16_t *out, const float *x, size_t n);
  /* Unpacks n 4-bit codes from (n + 1) / 2 bytes, to one a byte. */
  void (*unpack4)(uint8_t *codes, const uint8_t *in, size_t n, int high_first);
} mx_value_kernels;

extern const mx_value_kernels mxi_values_scalar, mxi_values_avx2, mxi_values_avx512, mxi_values_neon;

/** Makes the tables of a format of at most 8 bits; keeps_nan must be set. */
void mxi_values_tables(mx_values *out, const mx_format *format);

#endif
