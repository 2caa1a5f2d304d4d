/* Rounds binary32 to binary16 and bfloat16. This is the only scalar code that does so by bits; vector kernels are tested against it. */
#ifndef MX_KERNELS_BLOCK_NARROW_H
#define MX_KERNELS_BLOCK_NARROW_H

#include <stdint.h>
#include <string.h>

/* What a finite value beyond the largest becomes: writers of checkpoints saturate, IEEE arithmetic overflows to Inf. */
typedef enum narrow_beyond { NARROW_TO_LARGEST, NARROW_TO_INF } narrow_beyond;

static inline uint32_t mxi_bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* bits >> dropped, rounded to nearest, ties to even; a carry goes into the exponent. */
static inline uint32_t mxi_round_bits(uint32_t bits, unsigned dropped) {
  return (bits + (UINT32_C(1) << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped;
}

/* It has no branches and uses signed numbers, which every vector ISA can compare. A NaN keeps its sign and the top of its payload, and
 * becomes quiet. */
static inline uint16_t mxi_bf16_of(float x, narrow_beyond beyond) {
  const int32_t u = (int32_t)mxi_bits_of(x), magnitude = u & 0x7FFFFFFF, most = beyond == NARROW_TO_INF ? 0x7F80 : 0x7F7F;
  const int32_t rounded = (int32_t)mxi_round_bits((uint32_t)magnitude, 16), finite = rounded > most ? most : rounded;
  const int32_t special = magnitude >> 16 | (magnitude > 0x7F800000 ? 0x40 : 0);
  return (uint16_t)((u >> 16 & 0x8000) | (magnitude >= 0x7F800000 ? special : finite));
}

/* A NaN keeps only its sign. */
static inline uint16_t mxi_f16_of(float x, narrow_beyond beyond) {
  const uint32_t u = mxi_bits_of(x), magnitude = u & 0x7FFFFFFFu, sign = u >> 16 & 0x8000, most = beyond == NARROW_TO_INF ? 0x7C00 : 0x7BFF;
  if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00);
  if (magnitude == 0x7F800000u) return (uint16_t)(sign | 0x7C00);
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | most); /* from 2^16 on */
  const int exponent = (int)(magnitude >> 23) - 127;
  if (exponent < -25) return (uint16_t)sign;
  /* A subnormal result loses one more bit for each step of the exponent below -14. */
  const int subnormal = exponent < -14;
  const uint32_t kept = mxi_round_bits((magnitude & 0x7FFFFF) | 0x800000, subnormal ? (unsigned)(13 + (-14 - exponent)) : 13);
  const uint32_t code = subnormal ? kept : (uint32_t)(exponent + 14) * 1024 + kept;
  return (uint16_t)(sign | (code > most ? most : code));
}

#endif
