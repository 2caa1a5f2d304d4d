/* Values from codes with AVX2. */
#include "kernels/values.h"
#include "kernels/vectors_avx2.h"

static inline void look_up(vf v[4], const mx_values *t, const uint8_t *codes) {
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
      const __m256i at = _mm256_srlv_epi32(_mm256_set1_epi32(four), by); /* the permutation reads the low three bits */
      const __m256 top = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28)); /* bit 3 to the sign */
      _mm256_storeu_ps(out + i, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, at), _mm256_permutevar8x32_ps(high, at), top));
    }
  }
}

#define VALUES4 values4
#define TABLE mx_values_avx2
#include "kernels/values.inc.h"
