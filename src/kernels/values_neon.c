/* Compiles values from codes for NEON. */
#include "kernels/values.h"
#include "kernels/vectors_neon.h"

static inline void by_half(vf v[4], const mx_values *t, uint8x16_t codes) {
  const int16x8_t shift = vdupq_n_s16((int16_t)t->half_shift), sign = vdupq_n_s16((int16_t)t->half_sign);
  const uint16x8_t mask = vdupq_n_u16((uint16_t)t->half_mask), top = vdupq_n_u16(0x8000);
  const vf factor = vf_set(t->half_factor);
  for (int k = 0; k < 2; k++) {
    const uint16x8_t c = k ? vmovl_high_u8(codes) : vmovl_u8(vget_low_u8(codes));
    const float16x8_t h = vreinterpretq_f16_u16(vorrq_u16(vshlq_u16(vandq_u16(c, mask), shift), vandq_u16(vshlq_u16(c, sign), top)));
    v[2 * k] = vf_mul(vcvt_f32_f16(vget_low_f16(h)), factor);
    v[2 * k + 1] = vf_mul(vcvt_high_f32_f16(h), factor);
  }
}

static inline void look_up(vf v[4], const mx_values *t, const uint8_t *codes) {
  const uint8x16_t c = vld1q_u8(codes), nan = vceqq_u8(vandq_u8(c, vdupq_n_u8(t->nan_mask)), vdupq_n_u8(t->nan_code));
  if (t->half && !vmaxvq_u8(nan)) {
    by_half(v, t, c);
    return;
  }
  float x[4 * W]; /* one lookup for each byte, since the table is too large for a permutation */
  for (int i = 0; i < 4 * W; i++) x[i] = t->table[codes[i]];
  for (int k = 0; k < 4; k++) v[k] = vf_load(x + k * W);
}

#define VALUES4 NULL
#define TABLE mxi_values_neon
#include "kernels/values.inc.h"
