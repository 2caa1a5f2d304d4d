/* Makes an element of D from its sum: the last paragraphs of SPEC section 4. */
#include <math.h>
#include <string.h>

#include "gemm/tile/tile.h"
#include "kernels/block/narrow.h"

float mxi_gemm_combine(const mxg_plan *plan, float acc, float c, float bias) {
  const float g = plan->a.multiplier * plan->b.multiplier, t = plan->alpha * g;
  float d = plan->alpha == 0 ? 0 : acc * t;
  if (plan->beta != 0) d = fmaf(plan->beta, c, d);
  if (plan->o.bias) d += bias;
  return d;
}

/* d = acc * t, plus bias if there is one; every NaN becomes the canonical one. */
static inline __attribute__((always_inline)) void times(float *restrict d, const float *restrict acc, float t, const float *restrict bias,
                                                        size_t n) {
  static const uint32_t canonical = 0x7FC00000;
  float nan;
  memcpy(&nan, &canonical, sizeof nan);
  for (size_t j = 0; j < n; j++) {
    const float product = acc[j] * t, x = bias ? product + bias[j] : product;
    d[j] = x == x ? x : nan;
  }
}

int mxi_gemm_combine_row(const mxg_plan *plan, float *d, const float *acc, size_t j0, size_t n) {
  if (plan->beta != 0 || (plan->o.bias && plan->o.bias_of_rows) || plan->o.out != MX_F32 || plan->col_major || plan->alpha == 0) return 0;
  const float g = plan->a.multiplier * plan->b.multiplier, t = plan->alpha * g, *bias = plan->o.bias ? plan->o.bias + j0 : NULL;
  if (n == MXG_LANES && bias) /* a constant count, which the compiler turns into vectors */
    times(d, acc, t, bias, MXG_LANES);
  else if (n == MXG_LANES)
    times(d, acc, t, NULL, MXG_LANES);
  else
    times(d, acc, t, bias, n);
  return 1;
}

void mxi_gemm_store(void *out, size_t index, mx_dtype dtype, float x) {
  if (dtype == MX_F32) {
    static const uint32_t nan_bits = 0x7FC00000;
    memcpy((uint8_t *)out + index * 4, x != x ? (const void *)&nan_bits : (const void *)&x, 4);
    return;
  }
  static const uint16_t nan_f16 = 0x7E00, nan_bf16 = 0x7FC0;
  const uint16_t bits = x != x            ? (dtype == MX_F16 ? nan_f16 : nan_bf16)
                        : dtype == MX_F16 ? mxi_f16_of(x, NARROW_TO_INF)
                                          : mxi_bf16_of(x, NARROW_TO_INF);
  memcpy((uint8_t *)out + index * 2, &bits, 2);
}

float mxi_gemm_load(const void *from, size_t index, mx_dtype dtype) {
  float x;
  uint16_t bits;
  if (dtype == MX_F32) {
    memcpy(&x, (const uint8_t *)from + index * 4, 4);
    return x;
  }
  memcpy(&bits, (const uint8_t *)from + index * 2, 2);
  if (dtype == MX_F16) return (float)mx_decode(mx_operand_format(MX_OPERAND_F16), bits);
  const uint32_t wide = (uint32_t)bits << 16;
  memcpy(&x, &wide, 4);
  return x;
}
