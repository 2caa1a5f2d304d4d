/* Compiles values from codes for AVX2. */
#include "kernels/values.h"
#include "kernels/vectors_avx2.h"

static inline __attribute__((always_inline)) void by_half(vf v[4], const mx_values *t, __m256i codes) {
  const __m128i shift = _mm_cvtsi32_si128(t->half_shift), sign = _mm_cvtsi32_si128(t->half_sign);
  const __m256i mask = _mm256_set1_epi16((short)t->half_mask), top = _mm256_set1_epi16(INT16_MIN);
  const vf factor = vf_set(t->half_factor);
  for (int k = 0; k < 2; k++) {
    const __m256i c = _mm256_cvtepu8_epi16(k ? _mm256_extracti128_si256(codes, 1) : _mm256_castsi256_si128(codes));
    const __m256i h = _mm256_or_si256(_mm256_sll_epi16(_mm256_and_si256(c, mask), shift), _mm256_and_si256(_mm256_sll_epi16(c, sign), top));
    v[2 * k] = vf_mul(_mm256_cvtph_ps(_mm256_castsi256_si128(h)), factor);
    v[2 * k + 1] = vf_mul(_mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)), factor);
  }
}

static inline __attribute__((always_inline)) void look_up(vf v[4], const mx_values *t, const uint8_t *codes) {
  const __m256i c = _mm256_loadu_si256((const void *)codes);
  const __m256i nan = _mm256_cmpeq_epi8(_mm256_and_si256(c, _mm256_set1_epi8((char)t->nan_mask)), _mm256_set1_epi8((char)t->nan_code));
  if (t->half && !_mm256_movemask_epi8(nan)) {
    by_half(v, t, c);
    return;
  }
  if (t->whole) {
    for (int k = 0; k < 4; k++)
      v[k] = vf_mul(vi_convert(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(codes + k * W)))), vf_set(t->half_factor));
    return;
  }
  for (int k = 0; k < 4; k++)
    v[k] = _mm256_i32gather_ps(t->table, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(codes + k * W))), 4);
}

static void values4(float *out, const uint8_t *codes, const uint8_t *scales, const float *table, size_t n, size_t block, int high_first) {
  const __m256i by = _mm256_xor_si256(_mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28), _mm256_set1_epi32(high_first ? 4 : 0));
  for (size_t b = 0; b < n; b += block) {
    const __m256 low = _mm256_loadu_ps(table + 16 * (size_t)*scales), high = _mm256_loadu_ps(table + 16 * (size_t)*scales + 8);
    scales++;
    for (size_t i = b; i < b + block; i += 8) {
      int32_t four;
      __builtin_memcpy(&four, codes + i / 2, sizeof four);
      const __m256i at = _mm256_srlv_epi32(_mm256_set1_epi32(four), by); /* the permutation uses the low three bits */
      const __m256 top = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28)); /* moves bit 3 to the sign */
      _mm256_storeu_ps(out + i, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, at), _mm256_permutevar8x32_ps(high, at), top));
    }
  }
}

#define VALUES4 values4
#define TABLE mxi_values_avx2
#include "kernels/values.inc.h"
