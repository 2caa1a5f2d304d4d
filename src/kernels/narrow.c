/* RNE by bits: each case equals mx_encode of the format (tests/cli/quantize-all.sh compares). */
#include "mxgold/dtype.h"

#include <stdint.h>
#include <string.h>

#include "mxgold/isa.h"

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* Without branches, and in signed numbers, which every vector ISA compares. */
static uint16_t bf16_of(float x) {
  const int32_t u = (int32_t)bits_of(x), magnitude = u & 0x7FFFFFFF, odd = magnitude >> 16 & 1;
  const int32_t rounded = (int32_t)((uint32_t)magnitude + 0x7FFF + (uint32_t)odd) >> 16, finite = rounded > 0x7F7F ? 0x7F7F : rounded;
  const int32_t special = magnitude >> 16 | (magnitude > 0x7F800000 ? 0x40 : 0); /* Inf, or NaN made quiet */
  return (uint16_t)((u >> 16 & 0x8000) | (magnitude >= 0x7F800000 ? special : finite));
}

static uint16_t f16_of(float x) {
  const uint32_t u = bits_of(x), magnitude = u & 0x7FFFFFFFu, sign = u >> 16 & 0x8000;
  if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00);
  if (magnitude == 0x7F800000u) return (uint16_t)(sign | 0x7C00);
  if (magnitude >= 0x477FE000u) return (uint16_t)(sign | 0x7BFF); /* 65504 and beyond */
  const int exponent = (int)(magnitude >> 23) - 127;
  if (exponent < -25) return (uint16_t)sign;
  /* Subnormal results lose as many bits more as the exponent lies below -14. */
  const unsigned drop = exponent < -14 ? (unsigned)(13 + (-14 - exponent)) : 13;
  const uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000, half = 1u << (drop - 1);
  const uint32_t kept = (significand + half - 1 + (significand >> drop & 1)) >> drop;
  const uint32_t code = exponent < -14 ? kept : (uint32_t)(exponent + 14) * 1024 + kept;
  return (uint16_t)(sign | (code > 0x7BFF ? 0x7BFF : code));
}

void mx_narrow(void *out, const float *x, size_t n, mx_dtype dtype, int n_threads) {
  if (dtype == MX_F32) {
    memcpy(out, x, n * sizeof *x);
    return;
  }
  uint16_t *to = out;
  const int threads = mx_thread_count(n_threads);
  if (dtype == MX_BF16) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (size_t i = 0; i < n; i++) to[i] = bf16_of(x[i]);
  } else {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < n; i++) to[i] = f16_of(x[i]);
  }
}
