/* Defines the vocabulary of stages.inc.h in AVX2, with eight lanes. */
#ifndef MX_KERNELS_VECTORS_AVX2_H
#define MX_KERNELS_VECTORS_AVX2_H

#include <immintrin.h>

#define W 8
#define vf __m256
#define vi __m256i
#define vm __m256i /* all ones where true */

static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf vf_set(float x) { return _mm256_set1_ps(x); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); } /* a * b + c, rounded once */
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }            /* a < b ? a : b */
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }            /* a > b ? a : b */
static inline vm vf_lt(vf a, vf b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
static inline vm vf_eq(vf a, vf b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
static inline vf vf_blend(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m)); } /* m ? a : b */
static inline vi vf_bits(vf a) { return _mm256_castps_si256(a); }
static inline vf vi_float(vi a) { return _mm256_castsi256_ps(a); }
static inline vi vf_trunc(vf a) { return _mm256_cvttps_epi32(a); }
static inline vf vi_convert(vi a) { return _mm256_cvtepi32_ps(a); }
static inline vi vi_load(const void *p) { return _mm256_loadu_si256(p); }
static inline vi vi_load_words(const uint16_t *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)); }
static inline void vi_store(void *p, vi a) { _mm256_storeu_si256(p, a); }
static inline vi vi_set(int32_t x) { return _mm256_set1_epi32(x); }
static inline vi vi_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
static inline vi vi_min(vi a, vi b) { return _mm256_min_epi32(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
static inline vi vi_srl(vi a, int n) { return _mm256_srl_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_sll(vi a, int n) { return _mm256_sll_epi32(a, _mm_cvtsi32_si128(n)); }
static inline vi vi_srlv(vi a, vi n) { return _mm256_srlv_epi32(a, n); } /* 0 from n = 32, and for n < 0 */
static inline vi vi_sllv(vi a, vi n) { return _mm256_sllv_epi32(a, n); }
static inline vm vi_gt(vi a, vi b) { return _mm256_cmpgt_epi32(a, b); }
static inline vm vi_eq(vi a, vi b) { return _mm256_cmpeq_epi32(a, b); }
static inline vm vm_or(vm a, vm b) { return _mm256_or_si256(a, b); }
static inline vm vm_and(vm a, vm b) { return _mm256_and_si256(a, b); }
static inline vi vi_blend(vm m, vi a, vi b) { return _mm256_blendv_epi8(b, a, m); } /* m ? a : b */

static inline int32_t vi_hmax(vi a) {
  int32_t lane[W], most;
  vi_store(lane, a);
  most = lane[0];
  for (int i = 1; i < W; i++) most = lane[i] > most ? lane[i] : most;
  return most;
}

/* Puts a + b and a - b into the first and the second of two lanes whose numbers differ only in bit `stride`. The product with 1 or -1 is
 * exact. */
static inline __attribute__((always_inline)) vf vf_butterfly(vf v, const unsigned stride) {
  const vf one = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1), two = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1),
           four = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
  if (stride == 1) return _mm256_fmadd_ps(v, one, _mm256_permute_ps(v, 0xB1));
  if (stride == 2) return _mm256_fmadd_ps(v, two, _mm256_permute_ps(v, 0x4E));
  return _mm256_fmadd_ps(v, four, _mm256_permute2f128_ps(v, v, 1));
}

/* Stores sixteen numbers below 256 as bytes. */
static inline void vi_store16(uint8_t *p, const vi *a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(a[0], a[1]), 0xD8);
  _mm_storeu_si128((void *)p, _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

/* Stores thirty-two numbers below 256 as bytes. Packs take four of each vector in turn. */
static inline void vi_store_bytes(uint8_t *p, const vi a[4]) {
  const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(a[0], a[1]), _mm256_packus_epi32(a[2], a[3]));
  _mm256_storeu_si256((void *)p, _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

/* Stores two vectors of numbers below 65536 as words. */
static inline void vi_store_words(uint16_t *p, const vi a[2]) {
  _mm256_storeu_si256((void *)p, _mm256_permute4x64_epi64(_mm256_packus_epi32(a[0], a[1]), 0xD8));
}

/* rnd(v * a), where the product is exact in binary64. */
static inline vf vf_times(vf v, double a) {
  const __m256d f = _mm256_set1_pd(a);
  const __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(v)), f));
  const __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)), f));
  return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
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
  __m256 a[8];
  __m256d b[8];
  for (int i = 0; i < 8; i += 2) a[i] = _mm256_unpacklo_ps(t[i], t[i + 1]), a[i + 1] = _mm256_unpackhi_ps(t[i], t[i + 1]);
  for (int g = 0; g < 8; g += 4)
    for (int k = 0; k < 2; k++) {
      const __m256d x = _mm256_castps_pd(a[g + k]), y = _mm256_castps_pd(a[g + 2 + k]);
      b[g + 2 * k] = _mm256_unpacklo_pd(x, y);
      b[g + 2 * k + 1] = _mm256_unpackhi_pd(x, y);
    }
  for (int j = 0; j < 4; j++) {
    t[j] = _mm256_castpd_ps(_mm256_permute2f128_pd(b[j], b[4 + j], 0x20));
    t[4 + j] = _mm256_castpd_ps(_mm256_permute2f128_pd(b[j], b[4 + j], 0x31));
  }
}

/* Lane i of the result is the largest lane of m[i]. */
static inline vi vi_reduce(const vi *m) {
  vi a[4], b[2];
  for (int i = 0; i < 4; i++) a[i] = vi_max(_mm256_unpacklo_epi32(m[2 * i], m[2 * i + 1]), _mm256_unpackhi_epi32(m[2 * i], m[2 * i + 1]));
  for (int i = 0; i < 2; i++) b[i] = vi_max(_mm256_unpacklo_epi64(a[2 * i], a[2 * i + 1]), _mm256_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
  return vi_max(_mm256_permute2x128_si256(b[0], b[1], 0x20), _mm256_permute2x128_si256(b[0], b[1], 0x31));
}

/* Products of lanes 0, 2, 4 and so on as 64 bits; the upper halves of these. */
#define vi_mul_even(a, b) _mm256_mul_epu32(a, b)
static inline vi vi_high(vi a) { return _mm256_srli_epi64(a, 32); }
static inline vi vi_xor3(vi a, vi b, vi c) { return _mm256_xor_si256(_mm256_xor_si256(a, c), b); }
static inline vi vi_counters(void) { return _mm256_setr_epi64x(0, 2, 1, 3); } /* which vi_store_pairs() puts in order */
/* The even lanes of a, each followed by that of b. */
static inline vi vi_even_odd(vi a, vi b) { return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA); }
static inline void vi_store_pairs(uint32_t *p, vi a, vi b) {
  vi_store(p, _mm256_unpacklo_epi64(a, b));
  vi_store(p + W, _mm256_unpackhi_epi64(a, b));
}

/* Four quotients of exact products, rounded to odd in binary32, or to nearest. */
static inline __attribute__((always_inline)) __m128 half_quotient(__m256d product, __m256d divisor, const int nearest) {
  const __m256d zero = _mm256_setzero_pd();
  const __m256d q = _mm256_div_pd(product, divisor), rest = _mm256_fnmadd_pd(q, divisor, product);
  const __m256i bits = _mm256_castpd_si256(q), one = _mm256_set1_epi64x(1);
  const __m256i cut = _mm256_castpd_si256(_mm256_cmp_pd(rest, zero, _CMP_NEQ_OQ));
  /* toward zero: one less if the quotient was rounded away from zero, that is if rest and product differ in sign (divisor > 0) */
  const __m256i differ = _mm256_cmpgt_epi64(_mm256_setzero_si256(), _mm256_castpd_si256(_mm256_xor_pd(rest, product)));
  const __m256i down = _mm256_add_epi64(bits, _mm256_and_si256(cut, differ)); /* adds -1 */
  const __m256i odd = _mm256_or_si256(down, _mm256_and_si256(cut, one));
  if (nearest) return _mm256_cvtpd_ps(_mm256_castsi256_pd(odd));
  const __m256d mag = _mm256_castsi256_pd(_mm256_and_si256(odd, _mm256_set1_epi64x(INT64_MAX)));
  const __m256i zeros = _mm256_castpd_si256(_mm256_cmp_pd(mag, zero, _CMP_EQ_OQ));
  const __m256i m = _mm256_castpd_si256(_mm256_max_pd(_mm256_min_pd(mag, _mm256_set1_pd(0x1p126)), _mm256_set1_pd(0x1p-125)));
  const __m256i low = _mm256_set1_epi64x((1 << 29) - 1), high = _mm256_andnot_si256(low, m);
  const __m256i whole = _mm256_cmpeq_epi64(m, high), sticky = _mm256_or_si256(high, _mm256_andnot_si256(whole, _mm256_set1_epi64x(1 << 29)));
  const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi64x(INT64_MIN));
  return _mm256_cvtpd_ps(_mm256_castsi256_pd(_mm256_or_si256(_mm256_andnot_si256(zeros, sticky), sign)));
}

/* x * times / over, or times / (x * over), where products are exact and over > 0: rounded to odd and limited to 2^-125 and 2^126, or the
 * first of them rounded to nearest. */
static inline __attribute__((always_inline)) vf vf_quotient(vf x, double times, double over, int inverse, const int nearest) {
  __m128 h[2];
  const __m256d t = _mm256_set1_pd(times), o = _mm256_set1_pd(over);
  for (int i = 0; i < 2; i++) {
    const __m256d d = _mm256_cvtps_pd(i ? _mm256_extractf128_ps(x, 1) : _mm256_castps256_ps128(x));
    h[i] = inverse ? half_quotient(t, _mm256_mul_pd(d, o), 0) : half_quotient(_mm256_mul_pd(d, t), o, nearest);
  }
  return _mm256_insertf128_ps(_mm256_castps128_ps256(h[0]), h[1], 1);
}

/* The same with a factor for each lane: x * times / (f * over) or, with encode, x * (times * f) / over. */
static inline __attribute__((always_inline)) vf vf_quotient_by(vf x, double times, double over, vf f, int encode, const int nearest) {
  __m128 h[2];
  const __m256d t = _mm256_set1_pd(times), o = _mm256_set1_pd(over);
  for (int i = 0; i < 2; i++) {
    const __m256d d = _mm256_cvtps_pd(i ? _mm256_extractf128_ps(x, 1) : _mm256_castps256_ps128(x));
    const __m256d by = _mm256_cvtps_pd(i ? _mm256_extractf128_ps(f, 1) : _mm256_castps256_ps128(f));
    h[i] = encode ? half_quotient(_mm256_mul_pd(d, _mm256_mul_pd(t, by)), o, nearest)
                  : half_quotient(_mm256_mul_pd(d, t), _mm256_mul_pd(o, by), nearest);
  }
  return _mm256_insertf128_ps(_mm256_castps128_ps256(h[0]), h[1], 1);
}

/* bytes[i] = table[bytes[i]], for sixteen bytes and a table of sixteen. */
static inline void bytes_lookup(uint8_t *bytes, const uint8_t *table) {
  _mm_storeu_si128((void *)bytes, _mm_shuffle_epi8(_mm_loadu_si128((const void *)table), _mm_loadu_si128((const void *)bytes)));
}

/* Packs thirty-two codes into sixteen bytes. */
static inline void nibbles32(uint8_t *out, const uint8_t *codes, int high_first) {
  const __m128i w = _mm_set1_epi16(high_first ? 0x0110 : 0x1001);
  const __m128i a = _mm_maddubs_epi16(_mm_loadu_si128((const void *)codes), w),
                b = _mm_maddubs_epi16(_mm_loadu_si128((const void *)(codes + 16)), w);
  _mm_storeu_si128((void *)out, _mm_packus_epi16(a, b));
}

#endif
