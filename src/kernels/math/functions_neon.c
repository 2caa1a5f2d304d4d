/* Compiles functions and ordered sums of float32 arrays for NEON: two lanes of binary64. */
#include <arm_neon.h>

#define WD 2
#define vd float64x2_t
#define vi int64x2_t
#define vm uint64x2_t
#define TABLE mxi_math_neon
#define vd_load(p) vcvt_f64_f32(vld1_f32(p))
#define vd_load64(p) vld1q_f64(p)
#define vd_store64(p, x) vst1q_f64(p, x)
#define vd_set(x) vdupq_n_f64(x)
#define vd_add(a, b) vaddq_f64(a, b)
#define vd_sub(a, b) vsubq_f64(a, b)
#define vd_mul(a, b) vmulq_f64(a, b)
#define vd_div(a, b) vdivq_f64(a, b)
#define vd_sqrt(a) vsqrtq_f64(a)
#define vd_fma(a, b, c) vfmaq_f64(c, a, b)
#define vd_lt(a, b) vcltq_f64(a, b)
#define vd_eq(a, b) vceqq_f64(a, b)
#define vd_blend(m, a, b) vbslq_f64(m, a, b)
#define vm_any(m) ((vgetq_lane_u64(m, 0) | vgetq_lane_u64(m, 1)) != 0)
#define vd_bits(a) vreinterpretq_s64_f64(a)
#define vi_double(a) vreinterpretq_f64_s64(a)
#define vi_set(x) vdupq_n_s64(x)
#define vi_add(a, b) vaddq_s64(a, b)
#define vi_sub(a, b) vsubq_s64(a, b)
#define vi_and(a, b) vandq_s64(a, b)
#define vi_or(a, b) vorrq_s64(a, b)
#define vi_xor(a, b) veorq_s64(a, b)
#define vi_shl(a, n) vshlq_n_s64(a, n)
#define vi_shr(a, n) vreinterpretq_s64_u64(vshrq_n_u64(vreinterpretq_u64_s64(a), n))
#define vi_is_zero(a) vceqzq_s64(a)

static inline void vd_store(float *p, float64x2_t x) {
  const float32x2_t y = vcvt_f32_f64(x);
  vst1_f32(p, vbsl_f32(vceq_f32(y, y), y, vreinterpret_f32_u32(vdup_n_u32(0x7FC00000))));
}

#include "kernels/math/functions.inc.h"
