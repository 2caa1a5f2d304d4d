/* Defines the vocabulary of stages.inc.h in AVX-512, with sixteen lanes. */
#ifndef MX_KERNELS_VECTORS_AVX512_H
#define MX_KERNELS_VECTORS_AVX512_H

#include <immintrin.h>

#define W 16
#define vf __m512
#define vi __m512i
#define vm __mmask16

static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf vf_set(float x) { return _mm512_set1_ps(x); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); } /* a * b + c, rounded once */
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }            /* a < b ? a : b */
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }            /* a > b ? a : b */
static inline vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vf vf_blend(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); } /* m ? a : b */
static inline vi vf_bits(vf a) { return _mm512_castps_si512(a); }
static inline vf vi_float(vi a) { return _mm512_castsi512_ps(a); }
static inline vi vf_trunc(vf a) { return _mm512_cvttps_epi32(a); }
static inline vf vi_convert(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
static inline vi vi_load_words(const uint16_t *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)); }
static inline void vi_store(void *p, vi a) { _mm512_storeu_si512(p, a); }
static inline vi vi_set(int32_t x) { return _mm512_set1_epi32(x); }
static inline vi vi_iota(void) { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
static inline vi vi_min(vi a, vi b) { return _mm512_min_epi32(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
static inline vi vi_srl(vi a, int n) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_sll(vi a, int n) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_srlv(vi a, vi n) { return _mm512_srlv_epi32(a, n); } /* 0 from n = 32, and for n < 0 */
static inline vi vi_sllv(vi a, vi n) { return _mm512_sllv_epi32(a, n); }
static inline vm vi_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
static inline vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
static inline vm vm_or(vm a, vm b) { return _kor_mask16(a, b); }
static inline vm vm_and(vm a, vm b) { return _kand_mask16(a, b); }
static inline vm vm_none(void) { return 0; }
static inline vi vi_blend(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); } /* m ? a : b */
static inline int32_t vi_hmax(vi a) { return _mm512_reduce_max_epi32(a); }

/* Puts a + b and a - b into the first and the second of two lanes whose numbers differ only in bit `stride`. The product with 1 or -1 is
 * exact. */
static inline __attribute__((always_inline)) vf vf_butterfly(vf v, const unsigned stride) {
  const __m512i lane = vi_iota(), second = _mm512_and_si512(lane, _mm512_set1_epi32((int)stride));
  const vf sign = _mm512_mask_blend_ps(_mm512_test_epi32_mask(second, second), _mm512_set1_ps(1), _mm512_set1_ps(-1));
  const vf other = stride == 1   ? _mm512_permute_ps(v, 0xB1)
                   : stride == 2 ? _mm512_permute_ps(v, 0x4E)
                   : stride == 4 ? _mm512_shuffle_f32x4(v, v, 0xB1)
                                 : _mm512_shuffle_f32x4(v, v, 0x4E);
  return _mm512_fmadd_ps(v, sign, other);
}

/* The product with a number; a NaN gives the NaN that all machines give. */
#define vf_mul_or_nan(a, b) _mm512_mask_mul_ps(_mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)), _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b)

/* Stores sixteen numbers below 256 as bytes. */
static inline void vi_store16(uint8_t *p, const vi *a) { _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(a[0])); }

/* Stores sixty-four numbers below 256 as bytes. Packs take four of each vector in turn. */
static inline void vi_store_bytes(uint8_t *p, const vi a[4]) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i packed = _mm512_packus_epi16(_mm512_packus_epi32(a[0], a[1]), _mm512_packus_epi32(a[2], a[3]));
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, packed));
}

/* Stores two vectors of numbers below 65536 as words. */
static inline void vi_store_words(uint16_t *p, const vi a[2]) {
  _mm256_storeu_si256((void *)p, _mm512_cvtepi32_epi16(a[0]));
  _mm256_storeu_si256((void *)(p + W), _mm512_cvtepi32_epi16(a[1]));
}

/* rnd(v * a), where the product is exact in binary64. */
static inline vf vf_times(vf v, double a) {
  const __m512d f = _mm512_set1_pd(a);
  const __m256 low = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(v)), f));
  const __m256 high = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)), f));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* Unpacks sixteen bytes into thirty-two codes. */
static inline void bytes32(uint8_t *codes, const uint8_t *in, int high_first) {
  const __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)in)), mask = _mm256_set1_epi16(15);
  const __m256i low = _mm256_and_si256(w, mask), high = _mm256_srli_epi16(w, 4);
  _mm256_storeu_si256((void *)codes,
                      high_first ? _mm256_or_si256(high, _mm256_slli_epi16(low, 8)) : _mm256_or_si256(low, _mm256_slli_epi16(high, 8)));
}

/* Transposes a square of W vectors. */
static inline __attribute__((always_inline)) void vf_transpose(vf t[W]) {
  __m512 a[16];
  __m512d b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) a[i] = _mm512_unpacklo_ps(t[i], t[i + 1]), a[i + 1] = _mm512_unpackhi_ps(t[i], t[i + 1]);
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4)
#pragma GCC unroll 2
    for (int k = 0; k < 2; k++) {
      const __m512d x = _mm512_castps_pd(a[g + k]), y = _mm512_castps_pd(a[g + 2 + k]);
      b[g + 2 * k] = _mm512_unpacklo_pd(x, y);
      b[g + 2 * k + 1] = _mm512_unpackhi_pd(x, y);
    }
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) { /* lane l of b[4 g + j] has rows 4 g to 4 g + 3 of column 4 l + j */
    const __m512d e = _mm512_shuffle_f64x2(b[j], b[4 + j], 0x88), f = _mm512_shuffle_f64x2(b[j], b[4 + j], 0xDD);
    const __m512d g = _mm512_shuffle_f64x2(b[8 + j], b[12 + j], 0x88), h = _mm512_shuffle_f64x2(b[8 + j], b[12 + j], 0xDD);
    t[j] = _mm512_castpd_ps(_mm512_shuffle_f64x2(e, g, 0x88));
    t[4 + j] = _mm512_castpd_ps(_mm512_shuffle_f64x2(f, h, 0x88));
    t[8 + j] = _mm512_castpd_ps(_mm512_shuffle_f64x2(e, g, 0xDD));
    t[12 + j] = _mm512_castpd_ps(_mm512_shuffle_f64x2(f, h, 0xDD));
  }
}

/* Lane i of the result is the largest lane of m[i]. */
static inline vi vi_reduce(const vi *m) {
  vi a[8], b[4], c[2];
  for (int i = 0; i < 8; i++) a[i] = vi_max(_mm512_unpacklo_epi32(m[2 * i], m[2 * i + 1]), _mm512_unpackhi_epi32(m[2 * i], m[2 * i + 1]));
  for (int i = 0; i < 4; i++) b[i] = vi_max(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]), _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
  for (int i = 0; i < 2; i++)
    c[i] = vi_max(_mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0x44), _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0xEE));
  return vi_max(_mm512_shuffle_i32x4(c[0], c[1], 0x88), _mm512_shuffle_i32x4(c[0], c[1], 0xDD));
}

/* Products of lanes 0, 2, 4 and so on as 64 bits; the upper halves of these. */
#define vi_mul_even(a, b) _mm512_mul_epu32(a, b)
static inline vi vi_high(vi a) { return _mm512_srli_epi64(a, 32); }
static inline vi vi_xor3(vi a, vi b, vi c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }
static inline vi vi_counters(void) { return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); } /* which vi_store_pairs() puts in order */
/* The even lanes of a, each followed by that of b. */
static inline vi vi_even_odd(vi a, vi b) {
  return _mm512_castps_si512(_mm512_mask_moveldup_ps(_mm512_castsi512_ps(a), 0xAAAA, _mm512_castsi512_ps(b)));
}
static inline void vi_store_pairs(uint32_t *p, vi a, vi b) {
  vi_store(p, _mm512_unpacklo_epi64(a, b));
  vi_store(p + W, _mm512_unpackhi_epi64(a, b));
}

/* Eight quotients of exact products, rounded to odd in binary32, or to nearest. */
static inline __attribute__((always_inline)) __m256 half_quotient(__m512d product, __m512d divisor, const int nearest) {
  const __m512d q = _mm512_div_pd(product, divisor), rest = _mm512_fnmadd_pd(q, divisor, product);
  const __m512i bits = _mm512_castpd_si512(q), one = _mm512_set1_epi64(1);
  const __mmask8 cut = _mm512_cmp_pd_mask(rest, _mm512_setzero_pd(), _CMP_NEQ_OQ);
  /* toward zero: one less if the quotient was rounded away from zero, that is if rest and product differ in sign (divisor > 0) */
  const __mmask8 away = cut & _mm512_movepi64_mask(_mm512_castpd_si512(_mm512_xor_pd(rest, product)));
  const __m512i down = _mm512_mask_sub_epi64(bits, away, bits, one), odd = _mm512_mask_or_epi64(down, cut, down, one);
  if (nearest) return _mm512_cvtpd_ps(_mm512_castsi512_pd(odd));
  const __m512d mag = _mm512_castsi512_pd(_mm512_and_si512(odd, _mm512_set1_epi64(INT64_MAX)));
  const __mmask8 zero = _mm512_cmp_pd_mask(mag, _mm512_setzero_pd(), _CMP_EQ_OQ);
  const __m512d kept = _mm512_max_pd(_mm512_min_pd(mag, _mm512_set1_pd(0x1p126)), _mm512_set1_pd(0x1p-125));
  const __m512i m = _mm512_castpd_si512(kept), low = _mm512_set1_epi64((1 << 29) - 1);
  const __mmask8 inexact = _mm512_test_epi64_mask(m, low);
  const __m512i sticky = _mm512_mask_or_epi64(_mm512_andnot_si512(low, m), inexact, _mm512_andnot_si512(low, m), _mm512_set1_epi64(1 << 29));
  const __m512i sign = _mm512_and_si512(bits, _mm512_set1_epi64(INT64_MIN));
  const __m512i all = _mm512_or_si512(_mm512_maskz_mov_epi64((__mmask8)~zero, sticky), sign);
  return _mm512_cvtpd_ps(_mm512_castsi512_pd(all));
}

/* x * times / over, or times / (x * over), where products are exact and over > 0: rounded to odd and limited to 2^-125 and 2^126, or the
 * first of them rounded to nearest. */
static inline __attribute__((always_inline)) vf vf_quotient(vf x, double times, double over, int inverse, const int nearest) {
  __m256 h[2];
  const __m512d t = _mm512_set1_pd(times), o = _mm512_set1_pd(over);
  for (int i = 0; i < 2; i++) {
    const __m512d d = _mm512_cvtps_pd(i ? _mm512_extractf32x8_ps(x, 1) : _mm512_castps512_ps256(x));
    h[i] = inverse ? half_quotient(t, _mm512_mul_pd(d, o), 0) : half_quotient(_mm512_mul_pd(d, t), o, nearest);
  }
  return _mm512_insertf32x8(_mm512_castps256_ps512(h[0]), h[1], 1);
}

/* The same with a factor for each lane: x * times / (f * over) or, with encode, x * (times * f) / over. */
static inline __attribute__((always_inline)) vf vf_quotient_by(vf x, double times, double over, vf f, int encode, const int nearest) {
  __m256 h[2];
  const __m512d t = _mm512_set1_pd(times), o = _mm512_set1_pd(over);
  for (int i = 0; i < 2; i++) {
    const __m512d d = _mm512_cvtps_pd(i ? _mm512_extractf32x8_ps(x, 1) : _mm512_castps512_ps256(x));
    const __m512d by = _mm512_cvtps_pd(i ? _mm512_extractf32x8_ps(f, 1) : _mm512_castps512_ps256(f));
    h[i] = encode ? half_quotient(_mm512_mul_pd(d, _mm512_mul_pd(t, by)), o, nearest)
                  : half_quotient(_mm512_mul_pd(d, t), _mm512_mul_pd(o, by), nearest);
  }
  return _mm512_insertf32x8(_mm512_castps256_ps512(h[0]), h[1], 1);
}

/* bytes[i] = table[bytes[i]], for sixteen bytes and a table of sixteen. */
static inline void bytes_lookup(uint8_t *bytes, const uint8_t *table) {
  _mm_storeu_si128((void *)bytes, _mm_shuffle_epi8(_mm_loadu_si128((const void *)table), _mm_loadu_si128((const void *)bytes)));
}

/* Packs thirty-two codes into sixteen bytes. */
static inline void nibbles32(uint8_t *out, const uint8_t *codes, int high_first) {
  const __m256i c = _mm256_loadu_si256((const void *)codes), w = _mm256_set1_epi16(high_first ? 0x0110 : 0x1001);
  _mm_storeu_si128((void *)out, _mm256_cvtepi16_epi8(_mm256_maddubs_epi16(c, w)));
}

#endif
