/* Largest magnitude and values by table with AVX-512. */
#include <immintrin.h>

#include "kernels/plain_kernels.h"

uint32_t mx_amax_avx512(const float *x, size_t n) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i m[4];
  size_t i = 0;
  for (int k = 0; k < 4; k++) m[k] = _mm512_setzero_si512();
  for (; n - i >= 64; i += 64)
    for (int k = 0; k < 4; k++) m[k] = _mm512_max_epu32(m[k], _mm512_and_si512(_mm512_loadu_si512(x + i + 16 * k), magnitude));
  for (; i < n; i += 16) {
    const __mmask16 rest = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xFFFF;
    m[0] = _mm512_max_epu32(m[0], _mm512_and_si512(_mm512_maskz_loadu_epi32(rest, x + i), magnitude));
  }
  return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_max_epu32(m[0], m[1]), _mm512_max_epu32(m[2], m[3])));
}

void mx_values4_avx512(float *out, const uint8_t *codes, const uint8_t *scales, const float *table, size_t n, size_t block, int high_first) {
  const __m512i shifts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28),
                flip = _mm512_set1_epi32(high_first ? 4 : 0);
  const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), by = _mm512_xor_si512(shifts, flip);
  for (size_t b = 0; b < n; b += block) {
    const __m512 values = _mm512_loadu_ps(table + 16 * (size_t)*scales++);
    for (size_t i = b; i < b + block; i += 16) {
      const __m512i eight = _mm512_castsi128_si512(_mm_loadl_epi64((const __m128i *)(codes + i / 2)));
      const __m512i at = _mm512_srlv_epi32(_mm512_permutexvar_epi32(halves, eight), by); /* the permutation reads the low four bits */
      _mm512_storeu_ps(out + i, _mm512_permutexvar_ps(at, values));
    }
  }
}
