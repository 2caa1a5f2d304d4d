/* Computes f32_block on packed e2m1 codes with AVX-512 VNNI: sixteen columns in the lanes, sixteen rows in registers. */
#include <immintrin.h>
#include <string.h>

#include "gemm/codes/codes.h"
#include "gemm/codes/codes_avx512.h"

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

/* The dots of a block of `groups` words, where that is not a constant; each word is a step. */
static inline __attribute__((always_inline)) void long_dots(__m512i sum[L], const mxg_packed *a, const mxg_packed *b, size_t k, size_t groups) {
  __m512i even, odd;
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) sum[r] = _mm512_set1_epi32(a->offset[k * L + r]);
  for (size_t g = 0; g < groups; g++) {
    unpack(&even, &odd, b->words + (k * groups + g) * L, 1);
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) sum[r] = dot(sum[r], a->words + ((k * L + r) * groups + g) * 2, &even, &odd, 1);
  }
}

/* Handles blocks of any number of words, one at a time. */
static void long_blocks(float *out, const mxg_packed *a, const mxg_packed *b) {
  const size_t groups = a->groups;
  for (size_t i = 0; i < L * L; i++) out[i] = 0;
  for (size_t k = 0; k < a->kb; k++) {
    __m512i sum[L];
    long_dots(sum, a, b, k, groups);
    const __m512 sb = _mm512_load_ps(b->s + k * L);
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++)
      _mm512_storeu_ps(out + r * L, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(_mm512_set1_ps(a->s[k * L + r]), sb),
                                                    _mm512_loadu_ps(out + r * L)));
  }
}

static inline __attribute__((always_inline)) void store_dots(double *out, __m512i sum) {
  _mm512_store_pd(out, _mm512_cvtepi32_pd(_mm512_castsi512_si256(sum)));
  _mm512_store_pd(out + 8, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(sum, 1)));
}

static inline __attribute__((always_inline)) void short_dots(double *out, const mxg_packed *a, const mxg_packed *b, size_t k,
                                                             const size_t groups) {
  __m512i even[4], odd[4];
  unpack(even, odd, b->words + k * groups * L, groups);
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++)
    store_dots(out + r * L, dot(_mm512_set1_epi32(a->offset[k * L + r]), a->words + (k * L + r) * groups * 2, even, odd, groups));
}

void mxi_gemm_codes_dots_avx512(double *out, const mxg_packed *a, const mxg_packed *b, size_t block) {
  if (a->groups == 4) {
    short_dots(out, a, b, block, 4);
  } else if (a->groups == 2) {
    short_dots(out, a, b, block, 2);
  } else {
    __m512i sum[L];
    long_dots(sum, a, b, block, a->groups);
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) store_dots(out + r * L, sum[r]);
  }
}

void mxi_gemm_codes_avx512(float *acc, const mxg_packed *a, const mxg_packed *b) {
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
