/* Largest magnitude and values by table with AVX2. */
#include <immintrin.h>

#include "kernels/plain_kernels.h"

uint32_t mx_amax_avx2(const float *x, size_t n) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i m[4];
  size_t i = 0;
  for (int k = 0; k < 4; k++) m[k] = _mm256_setzero_si256();
  for (; n - i >= 32; i += 32)
    for (int k = 0; k < 4; k++)
      m[k] = _mm256_max_epu32(m[k], _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + i + 8 * k)), magnitude));
  uint32_t part[8], largest = 0;
  _mm256_storeu_si256((__m256i *)part, _mm256_max_epu32(_mm256_max_epu32(m[0], m[1]), _mm256_max_epu32(m[2], m[3])));
  for (int k = 0; k < 8; k++) largest = part[k] > largest ? part[k] : largest;
  for (; i < n; i++) {
    uint32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    bits &= 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

void mx_values4_avx2(float *out, const uint8_t *codes, const uint8_t *scales, const float *table, size_t n, size_t block, int high_first) {
  const __m256i by = _mm256_xor_si256(_mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28), _mm256_set1_epi32(high_first ? 4 : 0));
  for (size_t b = 0; b < n; b += block) {
    const __m256 low = _mm256_loadu_ps(table + 16 * (size_t)*scales), high = _mm256_loadu_ps(table + 16 * (size_t)*scales + 8);
    scales++;
    for (size_t i = b; i < b + block; i += 8) {
      int32_t four;
      __builtin_memcpy(&four, codes + i / 2, sizeof four);
      const __m256i at = _mm256_srlv_epi32(_mm256_set1_epi32(four), by); /* the permutation reads the low three bits */
      const __m256 top = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28)); /* bit 3 to the sign */
      _mm256_storeu_ps(out + i, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, at), _mm256_permutevar8x32_ps(high, at), top));
    }
  }
}
