/* Compiles functions and ordered sums of float32 arrays for AVX2: four lanes of binary64. */
#include <immintrin.h>

#define WD 4
#define vd __m256d
#define vi __m256i
#define vm __m256d
#define TABLE mxi_math_avx2
#define vd_load(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define vd_load64(p) _mm256_loadu_pd(p)
#define vd_store64(p, x) _mm256_storeu_pd(p, x)
#define vd_set(x) _mm256_set1_pd(x)
#define vd_add(a, b) _mm256_add_pd(a, b)
#define vd_sub(a, b) _mm256_sub_pd(a, b)
#define vd_mul(a, b) _mm256_mul_pd(a, b)
#define vd_div(a, b) _mm256_div_pd(a, b)
#define vd_sqrt(a) _mm256_sqrt_pd(a)
#define vd_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#define vd_lt(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define vd_eq(a, b) _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define vd_blend(m, a, b) _mm256_blendv_pd(b, a, m)
#define vm_any(m) (_mm256_movemask_pd(m) != 0)
#define vd_bits(a) _mm256_castpd_si256(a)
#define vi_double(a) _mm256_castsi256_pd(a)
#define vi_set(x) _mm256_set1_epi64x(x)
#define vi_add(a, b) _mm256_add_epi64(a, b)
#define vi_sub(a, b) _mm256_sub_epi64(a, b)
#define vi_and(a, b) _mm256_and_si256(a, b)
#define vi_or(a, b) _mm256_or_si256(a, b)
#define vi_xor(a, b) _mm256_xor_si256(a, b)
#define vi_shl(a, n) _mm256_slli_epi64(a, n)
#define vi_shr(a, n) _mm256_srli_epi64(a, n)
#define vi_is_zero(a) _mm256_castsi256_pd(_mm256_cmpeq_epi64(a, _mm256_setzero_si256()))

static inline __m128 vd_rounded(__m256d x) {
  const __m128 y = _mm256_cvtpd_ps(x), nan = _mm_castsi128_ps(_mm_set1_epi32(0x7FC00000));
  return _mm_blendv_ps(nan, y, _mm_cmp_ps(y, y, _CMP_EQ_OQ));
}

static inline void vd_store(float *p, __m256d x) { _mm_storeu_ps(p, vd_rounded(x)); }

#define VD_SOME
static inline __m128i first_lanes(size_t n) { return _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3)); }
static inline __m256d vd_load_some(const float *p, size_t n) { return _mm256_cvtps_pd(_mm_maskload_ps(p, first_lanes(n))); }
static inline void vd_store_some(float *p, __m256d x, size_t n) { _mm_maskstore_ps(p, first_lanes(n), vd_rounded(x)); }

#include "kernels/math/functions.inc.h"
