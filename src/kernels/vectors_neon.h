/* Defines the vocabulary of stages.inc.h in AArch64's NEON, with four lanes. */
#ifndef MX_KERNELS_VECTORS_NEON_H
#define MX_KERNELS_VECTORS_NEON_H

#include <arm_neon.h>

#define W 4
#define vf float32x4_t
#define vi int32x4_t
#define vm uint32x4_t

static inline vi vi_of(uint32x4_t a) { return vreinterpretq_s32_u32(a); }
static inline uint32x4_t vu_of(vi a) { return vreinterpretq_u32_s32(a); }
static inline vf vf_load(const float *p) { return vld1q_f32(p); }
static inline void vf_store(float *p, vf a) { vst1q_f32(p, a); }
static inline vf vf_set(float x) { return vdupq_n_f32(x); }
static inline vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); } /* a * b + c, rounded once */
static inline vm vf_lt(vf a, vf b) { return vcltq_f32(a, b); }
static inline vm vf_eq(vf a, vf b) { return vceqq_f32(a, b); }
static inline vf vf_blend(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }       /* m ? a : b */
static inline vf vf_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); } /* a < b ? a : b */
static inline vf vf_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); } /* a > b ? a : b */
static inline vi vf_bits(vf a) { return vreinterpretq_s32_f32(a); }
static inline vf vi_float(vi a) { return vreinterpretq_f32_s32(a); }
static inline vi vf_trunc(vf a) { return vcvtq_s32_f32(a); }
static inline vf vi_convert(vi a) { return vcvtq_f32_s32(a); }
static inline vi vi_load(const void *p) { return vld1q_s32(p); }
static inline vi vi_load_words(const uint16_t *p) { return vi_of(vmovl_u16(vld1_u16(p))); }
static inline void vi_store(void *p, vi a) { vst1q_s32(p, a); }
static inline vi vi_set(int32_t x) { return vdupq_n_s32(x); }
static inline vi vi_iota(void) {
  static const int32_t iota[W] = {0, 1, 2, 3};
  return vld1q_s32(iota);
}
static inline vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
static inline vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
static inline vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
static inline vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
static inline vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
static inline vi vi_min(vi a, vi b) { return vminq_s32(a, b); }
static inline vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
static inline vm vi_gt(vi a, vi b) { return vcgtq_s32(a, b); }
static inline vm vi_eq(vi a, vi b) { return vceqq_s32(a, b); }
static inline vm vm_or(vm a, vm b) { return vorrq_u32(a, b); }
static inline vm vm_and(vm a, vm b) { return vandq_u32(a, b); }
static inline vi vi_blend(vm m, vi a, vi b) { return vbslq_s32(m, a, b); } /* m ? a : b */
/* Shifts on NEON use the low byte of a count, which may be negative. So counts outside 0 .. 32 become 32, which gives 0. */
static inline vi within(vi n) { return vi_min(vi_blend(vi_gt(vi_set(0), n), vi_set(32), n), vi_set(32)); }
static inline vi vi_srlv(vi a, vi n) { return vi_of(vshlq_u32(vu_of(a), vnegq_s32(within(n)))); }
static inline vi vi_sllv(vi a, vi n) { return vi_of(vshlq_u32(vu_of(a), within(n))); }
static inline vi vi_srl(vi a, int n) { return vi_of(vshlq_u32(vu_of(a), vi_set(-n))); }
static inline vi vi_sll(vi a, int n) { return vi_of(vshlq_u32(vu_of(a), vi_set(n))); }
static inline int32_t vi_hmax(vi a) { return vmaxvq_s32(a); }

/* Puts a + b and a - b into the first and the second of two lanes whose numbers differ only in bit `stride`. The product with 1 or -1 is
 * exact. */
static inline __attribute__((always_inline)) vf vf_butterfly(vf v, const unsigned stride) {
  static const float one[W] = {1, -1, 1, -1}, two[W] = {1, 1, -1, -1};
  if (stride == 1) return vfmaq_f32(vrev64q_f32(v), v, vld1q_f32(one));
  return vfmaq_f32(vextq_f32(v, v, 2), v, vld1q_f32(two));
}

/* Stores sixteen numbers below 256 as bytes. */
static inline void vi_store16(uint8_t *p, const vi *a) {
  const uint16x8_t low = vcombine_u16(vmovn_u32(vu_of(a[0])), vmovn_u32(vu_of(a[1])));
  const uint16x8_t high = vcombine_u16(vmovn_u32(vu_of(a[2])), vmovn_u32(vu_of(a[3])));
  vst1q_u8(p, vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
}

static inline void vi_store_bytes(uint8_t *p, const vi a[4]) { vi_store16(p, a); }

/* Stores two vectors of numbers below 65536 as words. */
static inline void vi_store_words(uint16_t *p, const vi a[2]) { vst1q_u16(p, vcombine_u16(vmovn_u32(vu_of(a[0])), vmovn_u32(vu_of(a[1])))); }

/* rnd(v * a), where the product is exact in binary64. */
static inline vf vf_times(vf v, double a) {
  const float64x2_t f = vdupq_n_f64(a);
  const float32x2_t low = vcvt_f32_f64(vmulq_f64(vcvt_f64_f32(vget_low_f32(v)), f));
  return vcvt_high_f32_f64(low, vmulq_f64(vcvt_high_f64_f32(v), f));
}

/* Unpacks sixteen bytes into thirty-two codes. */
static inline void bytes32(uint8_t *codes, const uint8_t *in, int high_first) {
  const uint8x16_t b = vld1q_u8(in), low = vandq_u8(b, vdupq_n_u8(15)), high = vshrq_n_u8(b, 4);
  const uint8x16x2_t c = {{high_first ? high : low, high_first ? low : high}};
  vst2q_u8(codes, c);
}

/* Transposes a square of W vectors. */
static inline void vf_transpose(vf t[W]) {
  const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(t[0], t[1])), b = vreinterpretq_f64_f32(vtrn2q_f32(t[0], t[1]));
  const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(t[2], t[3])), d = vreinterpretq_f64_f32(vtrn2q_f32(t[2], t[3]));
  t[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
  t[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
  t[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
  t[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

/* Lane i of the result is the largest lane of m[i]. */
static inline vi vi_reduce(const vi *m) { return vpmaxq_s32(vpmaxq_s32(m[0], m[1]), vpmaxq_s32(m[2], m[3])); }

/* The low and high halves of the unsigned product a * b. */
static inline void vi_mul_wide(vi *high, vi *low, vi a, vi b) {
  const uint32x4_t x = vu_of(a), y = vu_of(b);
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(x), vget_low_u32(y)));
  const uint32x4_t last = vreinterpretq_u32_u64(vmull_u32(vget_high_u32(x), vget_high_u32(y)));
  *low = vi_of(vuzp1q_u32(first, last));
  *high = vi_of(vuzp2q_u32(first, last));
}

/* Stores w[0][0], w[1][0], w[2][0], w[3][0], w[0][1] and so on. */
static inline void vi_store_four(uint32_t *p, const vi w[4]) {
  const uint32x4x4_t all = {{vu_of(w[0]), vu_of(w[1]), vu_of(w[2]), vu_of(w[3])}};
  vst4q_u32(p, all);
}

/* Two quotients of exact products, rounded to odd in binary32, or to nearest. */
static inline __attribute__((always_inline)) float32x2_t half_quotient(float64x2_t product, float64x2_t divisor, const int nearest) {
  const float64x2_t zero = vdupq_n_f64(0), q = vdivq_f64(product, divisor), rest = vfmsq_f64(product, q, divisor);
  const uint64x2_t bits = vreinterpretq_u64_f64(q), one = vdupq_n_u64(1), top = vdupq_n_u64(UINT64_C(1) << 63);
  const uint64x2_t cut = vbicq_u64(vdupq_n_u64(UINT64_MAX), vceqq_f64(rest, zero));
  /* toward zero: one less if the quotient was rounded away from zero, that is if rest and product differ in sign (divisor > 0) */
  const uint64x2_t differ = vtstq_u64(veorq_u64(vreinterpretq_u64_f64(rest), vreinterpretq_u64_f64(product)), top);
  const uint64x2_t down = vaddq_u64(bits, vandq_u64(cut, differ)); /* adds -1 */
  const uint64x2_t odd = vorrq_u64(down, vandq_u64(cut, one));
  if (nearest) return vcvt_f32_f64(vreinterpretq_f64_u64(odd));
  const float64x2_t mag = vreinterpretq_f64_u64(vbicq_u64(odd, top));
  const uint64x2_t zeros = vceqq_f64(mag, zero);
  const uint64x2_t m = vreinterpretq_u64_f64(vmaxq_f64(vminq_f64(mag, vdupq_n_f64(0x1p126)), vdupq_n_f64(0x1p-125)));
  const uint64x2_t low = vdupq_n_u64((1 << 29) - 1), high = vbicq_u64(m, low);
  const uint64x2_t sticky = vorrq_u64(high, vbicq_u64(vdupq_n_u64(1 << 29), vceqq_u64(m, high)));
  return vcvt_f32_f64(vreinterpretq_f64_u64(vorrq_u64(vbicq_u64(sticky, zeros), vandq_u64(bits, top))));
}

/* x * times / over, or times / (x * over), where products are exact and over > 0: rounded to odd and limited to 2^-125 and 2^126, or the
 * first of them rounded to nearest. */
static inline __attribute__((always_inline)) vf vf_quotient(vf x, double times, double over, int inverse, const int nearest) {
  const float64x2_t t = vdupq_n_f64(times), o = vdupq_n_f64(over);
  const float64x2_t a = vcvt_f64_f32(vget_low_f32(x)), b = vcvt_high_f64_f32(x);
  const float32x2_t first = inverse ? half_quotient(t, vmulq_f64(a, o), 0) : half_quotient(vmulq_f64(a, t), o, nearest);
  const float32x2_t last = inverse ? half_quotient(t, vmulq_f64(b, o), 0) : half_quotient(vmulq_f64(b, t), o, nearest);
  return vcombine_f32(first, last);
}

/* The same with a factor for each lane: x * times / (f * over) or, with encode, x * (times * f) / over. */
static inline __attribute__((always_inline)) vf vf_quotient_by(vf x, double times, double over, vf f, int encode, const int nearest) {
  const float64x2_t t = vdupq_n_f64(times), o = vdupq_n_f64(over);
  const float64x2_t a = vcvt_f64_f32(vget_low_f32(x)), b = vcvt_high_f64_f32(x);
  const float64x2_t c = vcvt_f64_f32(vget_low_f32(f)), d = vcvt_high_f64_f32(f);
  const float32x2_t first =
      encode ? half_quotient(vmulq_f64(a, vmulq_f64(t, c)), o, nearest) : half_quotient(vmulq_f64(a, t), vmulq_f64(o, c), nearest);
  const float32x2_t last =
      encode ? half_quotient(vmulq_f64(b, vmulq_f64(t, d)), o, nearest) : half_quotient(vmulq_f64(b, t), vmulq_f64(o, d), nearest);
  return vcombine_f32(first, last);
}

/* bytes[i] = table[bytes[i]], for sixteen bytes and a table of sixteen. */
static inline void bytes_lookup(uint8_t *bytes, const uint8_t *table) { vst1q_u8(bytes, vqtbl1q_u8(vld1q_u8(table), vld1q_u8(bytes))); }

/* Packs thirty-two codes into sixteen bytes. */
static inline void nibbles32(uint8_t *out, const uint8_t *codes, int high_first) {
  const uint8x16x2_t c = vld2q_u8(codes);
  vst1q_u8(out, high_first ? vsliq_n_u8(c.val[1], c.val[0], 4) : vsliq_n_u8(c.val[0], c.val[1], 4));
}

#endif
