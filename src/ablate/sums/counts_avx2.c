/* Counts saturated codes with AVX2: sixteen codes in a register of bytes, their values in two of floats. */
#include <immintrin.h>

#include "ablate/sums/counts.h"

/* Sixteen codes, one a byte. */
static inline __m128i sixteen(const uint8_t *codes, size_t i, const count_form *f) {
  if (f->bits != 4) return _mm_loadu_si128((const __m128i *)(const void *)(codes + i));
  const __m128i pairs = _mm_loadl_epi64((const __m128i *)(const void *)(codes + i / 2)), nibble = _mm_set1_epi8(15);
  const __m128i low = _mm_and_si128(pairs, nibble), high = _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble);
  return f->high_first ? _mm_unpacklo_epi8(high, low) : _mm_unpacklo_epi8(low, high);
}

/* A bit a value: |x| > |y| and y != 0, which is so where |y| > 0. */
static inline unsigned beyond(const float *x, const float *y) {
  const __m256 sign = _mm256_set1_ps(-0.0f), a = _mm256_andnot_ps(sign, _mm256_loadu_ps(x)), b = _mm256_andnot_ps(sign, _mm256_loadu_ps(y));
  return (unsigned)_mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), _mm256_cmp_ps(b, _mm256_setzero_ps(), _CMP_GT_OQ)));
}

uint64_t mxi_saturated_avx2(const uint8_t *codes, const float *x, const float *y, size_t n, const count_form *form) {
  const __m128i mask = _mm_set1_epi8((char)form->mask), most = _mm_set1_epi8((char)form->most);
  uint64_t count = 0;
  for (size_t i = 0; i < n; i += 16) {
    const unsigned top = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(sixteen(codes, i, form), mask), most));
    count += (uint64_t)__builtin_popcount(top & (beyond(x + i, y + i) | beyond(x + i + 8, y + i + 8) << 8));
  }
  return count;
}
