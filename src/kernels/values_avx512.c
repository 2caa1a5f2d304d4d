/* Compiles values from codes for AVX-512. */
#include "kernels/values.h"
#include "kernels/vectors_avx512.h"

/* Looks up one byte of the bfloat16 of each of 64 codes. */
static inline __attribute__((always_inline)) __m512i byte_of(const uint8_t table[256], __m512i codes, __mmask64 upper) {
  const __m512i first = _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
  const __m512i last = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), codes, _mm512_loadu_si512(table + 192));
  return _mm512_mask_mov_epi8(first, upper, last);
}

static inline __attribute__((always_inline)) void look_up(vf v[4], const mx_values *t, const uint8_t *codes) {
  /* Unpacks work within 128-bit lanes, so lane i gets four of each sixteen codes, and the vectors come out in order. */
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i c = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(codes)), zero = _mm512_setzero_si512();
  __m512i high, low;
  if (t->one_sign) {
    high = _mm512_permutex2var_epi8(_mm512_loadu_si512(t->high), c, _mm512_loadu_si512(t->high + 64));
    low = _mm512_permutex2var_epi8(_mm512_loadu_si512(t->low), c, _mm512_loadu_si512(t->low + 64));
    high = _mm512_ternarylogic_epi32(high, c, _mm512_set1_epi8(-128), 0xF8);
  } else {
    const __mmask64 upper = _mm512_movepi8_mask(c);
    high = byte_of(t->high, c, upper);
    low = byte_of(t->low, c, upper);
  }
  const __m512i a = _mm512_unpacklo_epi8(low, high), b = _mm512_unpackhi_epi8(low, high);
  v[0] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, a));
  v[1] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, a));
  v[2] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, b));
  v[3] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, b));
}

static void values4(float *out, const uint8_t *codes, const uint8_t *scales, const float *table, size_t n, size_t block, int high_first) {
  const __m512i shifts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28),
                flip = _mm512_set1_epi32(high_first ? 4 : 0);
  const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), by = _mm512_xor_si512(shifts, flip);
  for (size_t b = 0; b < n; b += block) {
    const __m512 values = _mm512_loadu_ps(table + 16 * (size_t)*scales++);
    for (size_t i = b; i < b + block; i += 16) {
      const __m512i eight = _mm512_castsi128_si512(_mm_loadl_epi64((const __m128i *)(codes + i / 2)));
      const __m512i at = _mm512_srlv_epi32(_mm512_permutexvar_epi32(halves, eight), by); /* the permutation uses the low four bits */
      _mm512_storeu_ps(out + i, _mm512_permutexvar_ps(at, values));
    }
  }
}

#define VALUES4 values4
#define TABLE mxi_values_avx512
#include "kernels/values.inc.h"
