/* f32_block on packed e2m1 codes with AVX-512 VNNI: sixteen columns in the lanes, sixteen rows in registers. */
#include <immintrin.h>
#include <string.h>

#include "gemm/gemm_codes.h"

enum { L = MXG_LANES };

/* d + 12 of a code, in each 128-bit lane. */
static inline __m512i table(void) { return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0)); }

static inline int32_t word(const uint32_t *p) {
  int32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* Adds to sum[r] the products of `groups` words; GROUPS is a constant where the compiler is to unroll. */
static inline __attribute__((always_inline)) __m512i dot(__m512i sum, const uint32_t *a, const __m512i *even, const __m512i *odd,
                                                         size_t groups) {
#pragma GCC unroll 4
  for (size_t g = 0; g < groups; g++) {
    sum = _mm512_dpbusd_epi32(sum, even[g], _mm512_set1_epi32(word(a + 2 * g)));
    sum = _mm512_dpbusd_epi32(sum, odd[g], _mm512_set1_epi32(word(a + 2 * g + 1)));
  }
  return sum;
}

static inline __attribute__((always_inline)) void unpack(__m512i *even, __m512i *odd, const uint32_t *b, size_t groups) {
  const __m512i low = _mm512_set1_epi8(15), values = table();
#pragma GCC unroll 4
  for (size_t g = 0; g < groups; g++) {
    const __m512i two = _mm512_load_si512(b + g * L);
    even[g] = _mm512_shuffle_epi8(values, _mm512_and_si512(two, low));
    odd[g] = _mm512_shuffle_epi8(values, _mm512_and_si512(_mm512_srli_epi16(two, 4), low));
  }
}

static inline __attribute__((always_inline)) void blocks(float *out, const mxg_packed *a, const mxg_packed *b, size_t groups,
                                                         const size_t rows) {
  __m512 acc[L];
#pragma GCC unroll 16
  for (size_t r = 0; r < rows; r++) acc[r] = _mm512_setzero_ps();
  for (size_t k = 0; k < a->kb; k++) {
    __m512i even[4], odd[4];
    unpack(even, odd, b->words + k * groups * L, groups);
    const uint32_t *words = a->words + k * groups * L * 2;
    const __m512 sb = _mm512_load_ps(b->s + k * L);
#pragma GCC unroll 16
    for (size_t r = 0; r < rows; r++) {
      const __m512i sum = dot(_mm512_set1_epi32(a->offset[k * L + r]), words + r * groups * 2, even, odd, groups);
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(_mm512_set1_ps(a->s[k * L + r]), sb), acc[r]);
    }
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < rows; r++) _mm512_storeu_ps(out + r * L, acc[r]);
}

/* Blocks of any number of words, one at a time. */
static void long_blocks(float *out, const mxg_packed *a, const mxg_packed *b) {
  const size_t groups = a->groups;
  for (size_t i = 0; i < L * L; i++) out[i] = 0;
  for (size_t k = 0; k < a->kb; k++) {
    __m512i sum[L], even, odd;
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) sum[r] = _mm512_set1_epi32(a->offset[k * L + r]);
    for (size_t g = 0; g < groups; g++) {
      unpack(&even, &odd, b->words + (k * groups + g) * L, 1);
#pragma GCC unroll 16
      for (size_t r = 0; r < L; r++) sum[r] = dot(sum[r], a->words + ((k * L + r) * groups + g) * 2, &even, &odd, 1);
    }
    const __m512 sb = _mm512_load_ps(b->s + k * L);
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++)
      _mm512_storeu_ps(out + r * L, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(_mm512_set1_ps(a->s[k * L + r]), sb),
                                                    _mm512_loadu_ps(out + r * L)));
  }
}

void mxg_codes_avx512(float *acc, const mxg_packed *a, const mxg_packed *b) {
  const size_t rows = a->rows;
  if (a->groups == 4) { /* blocks of 32 */
    if (rows > 8)
      blocks(acc, a, b, 4, 16);
    else if (rows > 4)
      blocks(acc, a, b, 4, 8);
    else if (rows > 2)
      blocks(acc, a, b, 4, 4);
    else if (rows > 1)
      blocks(acc, a, b, 4, 2);
    else
      blocks(acc, a, b, 4, 1);
  } else if (a->groups == 2) { /* blocks of 16 */
    if (rows > 4)
      blocks(acc, a, b, 2, 16);
    else
      blocks(acc, a, b, 2, 4);
  } else {
    long_blocks(acc, a, b);
  }
}
