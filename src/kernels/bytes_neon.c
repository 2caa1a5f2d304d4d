/* Compiles packing, unpacking and layouts for NEON. */
#include <arm_neon.h>

#include "kernels/bytes.h"

#define TABLE mxi_bytes_neon
#define q uint8x16_t

static inline q q_load(const void *p) { return vld1q_u8(p); }
static inline void q_store(void *p, q a) { vst1q_u8(p, a); }
static inline q q_set(int x) { return vdupq_n_u8((uint8_t)x); }
static inline q q_and(q a, q b) { return vandq_u8(a, b); }
static inline q q_or(q a, q b) { return vorrq_u8(a, b); }
static inline q q_shift_left_4(q a) { return vshlq_n_u8(a, 4); }
static inline q q_shift_right_4(q a) { return vshrq_n_u8(a, 4); }
/* Packs thirty-two codes into sixteen bytes. */
static inline q q_pairs(const uint8_t *codes, int high_first) {
  const uint8x16x2_t c = vld2q_u8(codes);
  const q a = vandq_u8(c.val[0], q_set(15)), b = vandq_u8(c.val[1], q_set(15));
  return high_first ? vsliq_n_u8(b, a, 4) : vsliq_n_u8(a, b, 4);
}
static inline void q_store_zipped(uint8_t *p, q a, q b) { vst2q_u8(p, (uint8x16x2_t){{a, b}}); }
static inline q q_look_up(q table, q index) { return vqtbl1q_u8(table, index); }
static inline q q_load_two(const void *a, const void *b) { return vcombine_u8(vld1_u8(a), vld1_u8(b)); }
static inline void q_store_two(void *a, void *b, q v) {
  vst1_u8(a, vget_low_u8(v));
  vst1_u8(b, vget_high_u8(v));
}
static inline void q_transpose(q s[4]) {
  const uint32x4_t s0 = vreinterpretq_u32_u8(s[0]), s1 = vreinterpretq_u32_u8(s[1]), s2 = vreinterpretq_u32_u8(s[2]),
                   s3 = vreinterpretq_u32_u8(s[3]);
  const uint32x4_t a = vzip1q_u32(s0, s2), b = vzip2q_u32(s0, s2), c = vzip1q_u32(s1, s3), d = vzip2q_u32(s1, s3);
  s[0] = vreinterpretq_u8_u32(vzip1q_u32(a, c));
  s[1] = vreinterpretq_u8_u32(vzip2q_u32(a, c));
  s[2] = vreinterpretq_u8_u32(vzip1q_u32(b, d));
  s[3] = vreinterpretq_u8_u32(vzip2q_u32(b, d));
}

static size_t pack6(uint8_t *out, const uint8_t *codes, size_t n) {
  const q all = q_set(63);
  size_t i = 0;
  for (; i + 64 <= n; i += 64, out += 48) {
    const uint8x16x4_t c = vld4q_u8(codes + i);
    const q a = vandq_u8(c.val[0], all), b = vandq_u8(c.val[1], all), d = vandq_u8(c.val[2], all), e = vandq_u8(c.val[3], all);
    vst3q_u8(out, (uint8x16x3_t){{vorrq_u8(a, vshlq_n_u8(b, 6)), vorrq_u8(vshrq_n_u8(b, 2), vshlq_n_u8(d, 4)),
                                  vorrq_u8(vshrq_n_u8(d, 4), vshlq_n_u8(e, 2))}});
  }
  return i;
}

static size_t unpack6(uint8_t *codes, const uint8_t *in, size_t n) {
  const q all = q_set(63);
  size_t i = 0;
  for (; i + 64 <= n; i += 64, in += 48) {
    const uint8x16x3_t v = vld3q_u8(in);
    vst4q_u8(codes + i, (uint8x16x4_t){{vandq_u8(v.val[0], all), vandq_u8(vorrq_u8(vshrq_n_u8(v.val[0], 6), vshlq_n_u8(v.val[1], 2)), all),
                                        vandq_u8(vorrq_u8(vshrq_n_u8(v.val[1], 4), vshlq_n_u8(v.val[2], 4)), all), vshrq_n_u8(v.val[2], 2)}});
  }
  return i;
}

#include "kernels/bytes.inc.h"
