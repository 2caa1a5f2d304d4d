/* HiFloat4: three levels of scale in a block of 64. SPEC 3.6, TECHNIQUES 4.9. */
#include <math.h>
#include <string.h>

#include "kernels/plan.h"

static double bf16(double x) {
  static const mx_encoding nearest = {0};
  const mx_format *f = mx_scale_format(MX_SCALE_BF16);
  return mx_decode(f, mx_encode(f, x, &nearest, 0));
}

static float amax_of(const float *x, size_t first, size_t count, size_t n) {
  float m = 0;
  for (size_t i = first; i < first + count && i < n; i++) m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
  return m;
}

double mx_hif4_factor(const uint8_t micro[3], size_t i) {
  const int two = micro[0] >> (i / 8) & 1, three = micro[1 + i / 32] >> (i / 4 % 8) & 1;
  return 1 << (two + three);
}

void mx_hif4_block(uint8_t *codes, uint32_t *scale_code, uint8_t micro[3], const float *x, size_t n) {
  static const mx_encoding nearest = {0}, half_up = {.round = MX_ROUND_RNA};
  const mx_format *scale = mx_scale_format(MX_SCALE_E6M2), *elem = mx_elem_format(MX_ELEM_E1M2);
  int has_nan = 0;
  for (size_t i = 0; i < n; i++) has_nan |= isnan(x[i]) || isinf(x[i]);
  memset(micro, 0, 3);
  if (has_nan) { /* OCP: a NaN scale makes the block NaN */
    *scale_code = (uint32_t)scale->nan_code;
    for (size_t i = 0; i < n; i++) codes[i] = (uint8_t)mx_encode(elem, (double)isnan(x[i]) ? copysignf(NAN, x[i]) : NAN, &nearest, 0);
    return;
  }
  *scale_code = (uint32_t)mx_encode(scale, bf16((double)amax_of(x, 0, n, n) * bf16(1.0 / 7)), &nearest, 0);
  const double rec = bf16(1 / mx_decode(scale, *scale_code));
  for (size_t g = 0; g < 8; g++)
    if ((double)amax_of(x, 8 * g, 8, n) * rec >= 4) micro[0] |= (uint8_t)(1 << g);
  for (size_t g = 0; g < 16; g++)
    if ((double)amax_of(x, 4 * g, 4, n) * rec / (1 << (micro[0] >> (g / 2) & 1)) >= 2) micro[1 + g / 8] |= (uint8_t)(1 << g % 8);
  for (size_t i = 0; i < n; i++) codes[i] = (uint8_t)mx_encode(elem, (double)x[i] * rec / mx_hif4_factor(micro, i), &half_up, 0);
}
