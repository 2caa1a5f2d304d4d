/* Sums with AVX2: a register of four doubles is the four lanes. */
#include <immintrin.h>

#include "ablate/sums/sums.h"

/* Four pairs, as doubles. */
typedef struct quad {
  __m256d xx, yy, xy, ee, most;
} quad;

static inline __m256d magnitude(__m256d v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }

static inline void add(quad *q, __m128 x, __m128 y) {
  const __m256d a = _mm256_cvtps_pd(x), b = _mm256_cvtps_pd(y), e = _mm256_sub_pd(a, b);
  q->xx = _mm256_add_pd(q->xx, _mm256_mul_pd(a, a));
  q->yy = _mm256_add_pd(q->yy, _mm256_mul_pd(b, b));
  q->xy = _mm256_add_pd(q->xy, _mm256_mul_pd(a, b));
  q->ee = _mm256_add_pd(q->ee, _mm256_mul_pd(e, e));
  q->most = _mm256_max_pd(magnitude(e), q->most);
}

static void scan(sum_scan *s, const float *x, const float *y, size_t n) {
  const __m256i top = _mm256_set1_epi32(0x7F800000);
  const __m256 zero = _mm256_setzero_ps(), sign = _mm256_set1_ps(-0.0f), two = _mm256_set1_ps(2);
  __m256i bad = _mm256_setzero_si256();
  __m256 far = zero;
  quad q = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  for (size_t i = 0; i < n; i += 8) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(y + i);
    const __m256i ia = _mm256_castps_si256(a), ib = _mm256_castps_si256(b);
    bad = _mm256_or_si256(
        bad, _mm256_or_si256(_mm256_cmpeq_epi32(_mm256_and_si256(ia, top), top), _mm256_cmpeq_epi32(_mm256_and_si256(ib, top), top)));
    const __m256 stays = _mm256_cmp_ps(b, zero, _CMP_NEQ_UQ);
    s->under += (uint64_t)__builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_andnot_ps(stays, _mm256_cmp_ps(a, zero, _CMP_NEQ_UQ))));
    const __m256 turned = _mm256_xor_ps(_mm256_cmp_ps(a, zero, _CMP_LT_OQ), _mm256_cmp_ps(b, zero, _CMP_LT_OQ));
    const __m256 doubled = _mm256_cmp_ps(_mm256_andnot_ps(sign, b), _mm256_mul_ps(two, _mm256_andnot_ps(sign, a)), _CMP_GT_OQ);
    far = _mm256_or_ps(far, _mm256_and_ps(stays, _mm256_or_ps(turned, doubled)));
    add(&q, _mm256_castps256_ps128(a), _mm256_castps256_ps128(b));
    add(&q, _mm256_extractf128_ps(a, 1), _mm256_extractf128_ps(b, 1));
  }
  _mm256_storeu_pd(s->xx, q.xx);
  _mm256_storeu_pd(s->yy, q.yy);
  _mm256_storeu_pd(s->xy, q.xy);
  _mm256_storeu_pd(s->ee, q.ee);
  _mm256_storeu_pd(s->max_error, q.most);
  s->far = _mm256_movemask_ps(far) != 0;
  s->bad = _mm256_movemask_epi8(bad) != 0;
}

static double relative(const float *x, const float *y, size_t n) {
  __m256d most = _mm256_setzero_pd();
  for (size_t i = 0; i < n; i += 4) {
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x + i)), e = _mm256_sub_pd(a, _mm256_cvtps_pd(_mm_loadu_ps(y + i)));
    const __m256d ratio = _mm256_div_pd(magnitude(e), magnitude(a)), there = _mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_NEQ_OQ);
    most = _mm256_max_pd(_mm256_and_pd(ratio, there), most);
  }
  double m[SUM_LANES], largest = 0;
  _mm256_storeu_pd(m, most);
  for (int j = 0; j < SUM_LANES; j++) largest = m[j] > largest ? m[j] : largest;
  return largest;
}

const sum_kernels mxi_sum_kernels_avx2 = {scan, relative, 8};
