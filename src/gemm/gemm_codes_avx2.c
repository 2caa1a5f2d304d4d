/* f32_block on packed e2m1 codes with AVX2: eight columns in the lanes. Products of a byte d + 12 <= 24 and a byte |d| <= 12 are summed in 16 bits:
 * a word's two of a lane are at most 576 in magnitude, so that up to 56 fit before they are widened. */
#include <immintrin.h>
#include <string.h>

#include "gemm/gemm_codes.h"

enum { L = MXG_LANES, ROWS = 8, MOST = 16 }; /* MOST words, 32 sums of pairs, before widening */

static inline __m256i table(void) {
  return _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}

static inline __m256i word(const uint32_t *p) {
  int32_t v;
  memcpy(&v, p, sizeof v);
  return _mm256_set1_epi32(v);
}

/* Sums of a block for ROWS rows and eight columns: sum[r] is widened whenever 16 bits could run over. */
static inline __attribute__((always_inline)) void dots(__m256i sum[ROWS], const int32_t *offset, const uint32_t *a, const uint32_t *b, size_t groups) {
  const __m256i low = _mm256_set1_epi8(15), values = table(), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) sum[r] = _mm256_set1_epi32(offset[r]);
  for (size_t first = 0; first < groups; first += MOST) {
    const size_t n = groups - first < MOST ? groups - first : MOST;
    __m256i narrow[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) narrow[r] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (size_t g = first; g < first + n; g++) {
      const __m256i two = _mm256_load_si256((const __m256i *)(const void *)(b + g * L));
      const __m256i even = _mm256_shuffle_epi8(values, _mm256_and_si256(two, low));
      const __m256i odd = _mm256_shuffle_epi8(values, _mm256_and_si256(_mm256_srli_epi16(two, 4), low));
#pragma GCC unroll 16
      for (size_t r = 0; r < ROWS; r++) {
        const uint32_t *at = a + (r * groups + g) * 2;
        narrow[r] =
            _mm256_add_epi16(narrow[r], _mm256_add_epi16(_mm256_maddubs_epi16(even, word(at)), _mm256_maddubs_epi16(odd, word(at + 1))));
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(narrow[r], ones));
  }
}

/* The running sums stay in out: sixteen registers are few. */
static inline __attribute__((always_inline)) void blocks(float *out, const mxg_packed *a, const mxg_packed *b, size_t groups) {
  for (size_t i = 0; i < L * L; i++) out[i] = 0;
  for (size_t i = 0; i < a->rows; i += ROWS)
    for (size_t j = 0; j < L; j += 8)
      for (size_t k = 0; k < a->kb; k++) {
        __m256i sum[ROWS];
        dots(sum, a->offset + k * L + i, a->words + (k * L + i) * groups * 2, b->words + k * groups * L + j, groups);
        const __m256 sb = _mm256_load_ps(b->s + k * L + j);
#pragma GCC unroll 16
        for (size_t r = 0; r < ROWS; r++) {
          float *at = out + (i + r) * L + j;
          const __m256 s = _mm256_mul_ps(_mm256_set1_ps(a->s[k * L + i + r]), sb);
          _mm256_storeu_ps(at, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r]), s, _mm256_loadu_ps(at)));
        }
      }
}

void mxg_codes_avx2(float *acc, const mxg_packed *a, const mxg_packed *b) {
  if (a->groups == 4)
    blocks(acc, a, b, 4);
  else if (a->groups == 2)
    blocks(acc, a, b, 2);
  else
    blocks(acc, a, b, a->groups);
}
