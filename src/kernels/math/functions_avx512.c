/* Compiles functions and ordered sums of float32 arrays for AVX-512: eight lanes of binary64. */
#include <immintrin.h>

#define WD 8
#define vd __m512d
#define vi __m512i
#define vm __mmask8
#define TABLE mxi_math_avx512
#define vd_load(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define vd_load64(p) _mm512_loadu_pd(p)
#define vd_store64(p, x) _mm512_storeu_pd(p, x)
#define vd_set(x) _mm512_set1_pd(x)
#define vd_add(a, b) _mm512_add_pd(a, b)
#define vd_sub(a, b) _mm512_sub_pd(a, b)
#define vd_mul(a, b) _mm512_mul_pd(a, b)
#define vd_div(a, b) _mm512_div_pd(a, b)
#define vd_sqrt(a) _mm512_sqrt_pd(a)
#define vd_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#define vd_lt(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define vd_eq(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define vd_blend(m, a, b) _mm512_mask_blend_pd(m, b, a)
#define vm_any(m) ((m) != 0)
#define vd_bits(a) _mm512_castpd_si512(a)
#define vi_double(a) _mm512_castsi512_pd(a)
#define vi_set(x) _mm512_set1_epi64(x)
#define vi_add(a, b) _mm512_add_epi64(a, b)
#define vi_sub(a, b) _mm512_sub_epi64(a, b)
#define vi_and(a, b) _mm512_and_si512(a, b)
#define vi_or(a, b) _mm512_or_si512(a, b)
#define vi_xor(a, b) _mm512_xor_si512(a, b)
#define vi_shl(a, n) _mm512_slli_epi64(a, n)
#define vi_shr(a, n) _mm512_srli_epi64(a, n)
#define vi_is_zero(a) _mm512_testn_epi64_mask(a, a)

static inline __m256 vd_rounded(__m512d x) {
  const __m256 y = _mm512_cvtpd_ps(x);
  return _mm256_mask_blend_ps(_mm256_cmp_ps_mask(y, y, _CMP_EQ_OQ), _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000)), y);
}

static inline void vd_store(float *p, __m512d x) { _mm256_storeu_ps(p, vd_rounded(x)); }

#define VD_SOME
static inline __m512d vd_load_some(const float *p, size_t n) { return _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1), p)); }
static inline void vd_store_some(float *p, __m512d x, size_t n) { _mm256_mask_storeu_ps(p, (__mmask8)((1u << n) - 1), vd_rounded(x)); }

#include "kernels/math/functions.inc.h"
