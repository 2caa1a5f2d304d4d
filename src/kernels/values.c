/* The kernels of values.h by scalar code, and which table is used. */
#include "kernels/values.h"

#include <math.h>
#include <string.h>

#include "mxgold/isa.h"

const mx_value_kernels *mx_value_kernels_for(uint32_t isa) {
#if defined(__x86_64__)
  if (isa & MX_ISA_AVX512) return &mx_values_avx512;
  if (isa & MX_ISA_AVX2) return &mx_values_avx2;
#elif defined(__aarch64__)
  if (isa & MX_ISA_NEON) return &mx_values_neon;
#endif
  (void)isa;
  return &mx_values_scalar;
}

static void values(float *out, const uint8_t *codes, size_t n, const mx_values *t, const float *f, const double *wide, int shift) {
  const int divides = t->how == MX_VALUES_DIV || t->how == MX_VALUES_DIV_MUL;
  for (size_t i = 0; i < n; i++) {
    const size_t at = shift < 0 ? i : i / 16 >> shift;
    const float v = t->table[codes[i]];
    float r;
    if (t->how == MX_VALUES_WIDE)
      r = (float)((double)v * wide[at]);
    else if (divides)
      r = v == 0 && f[at] == 0 ? v : v / f[at];
    else
      r = v * f[at];
    if (t->how == MX_VALUES_MUL_MUL || t->how == MX_VALUES_DIV_MUL) r = r * t->then;
    out[i] = isnan(r) ? NAN : r;
  }
}

static void to_bf16(uint16_t *out, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    out[i] = (uint16_t)((bits + (bits >> 16 & 1) + 0x7FFF) >> 16);
  }
}

static void unpack4(uint8_t *codes, const uint8_t *in, size_t n, int high_first) {
  for (size_t i = 0; i < n; i++) codes[i] = in[i / 2] >> ((i % 2 != 0) != (high_first != 0) ? 4 : 0) & 15;
}

const mx_value_kernels mx_values_scalar = {values, NULL, to_bf16, unpack4};
