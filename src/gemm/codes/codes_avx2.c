/* Computes f32_block on packed e2m1 codes with AVX2, sixteen columns in two registers. Products of a byte d + 12 <= 24 and a byte |d| <= 12
 * are summed in 16 bits: the two products that a lane takes from a word are at most 576 in magnitude, so up to 56 such sums fit before they
 * are widened. */
#include <immintrin.h>
#include <string.h>

#include "gemm/codes/codes.h"

enum { L = MXG_LANES, ROWS = 4, MOST = 16 }; /* MOST words, which make 32 sums of pairs, before widening */

static inline __m256i table(void) {
  return _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}

static inline __m256i word(const uint32_t *p) {
  int32_t v;
  memcpy(&v, p, sizeof v);
  return _mm256_set1_epi32(v);
}

typedef struct pair {
  __m256i low, high; /* columns 0..7 and 8..15 */
} pair;

static inline __attribute__((always_inline)) __m256i products(__m256i even, __m256i odd, __m256i a_even, __m256i a_odd) {
  return _mm256_add_epi16(_mm256_maddubs_epi16(even, a_even), _mm256_maddubs_epi16(odd, a_odd));
}

/* Sums of a block for ROWS rows and sixteen columns, widened before 16 bits could overflow. */
static inline __attribute__((always_inline)) void dots(pair sum[ROWS], const int32_t *offset, const uint32_t *a, const uint32_t *b,
                                                       size_t groups) {
  const __m256i nibble = _mm256_set1_epi8(15), values = table(), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 16
  for (size_t r = 0; r < ROWS; r++) sum[r].low = sum[r].high = _mm256_set1_epi32(offset[r]);
  for (size_t first = 0; first < groups; first += MOST) {
    const size_t n = groups - first < MOST ? groups - first : MOST;
    pair narrow[ROWS];
#pragma GCC unroll 16
    for (size_t r = 0; r < ROWS; r++) narrow[r].low = narrow[r].high = _mm256_setzero_si256();
    for (size_t g = first; g < first + n; g++) {
      const __m256i *at = (const __m256i *)(const void *)(b + g * L), two0 = _mm256_load_si256(at), two1 = _mm256_load_si256(at + 1);
      const __m256i even0 = _mm256_shuffle_epi8(values, _mm256_and_si256(two0, nibble)),
                    odd0 = _mm256_shuffle_epi8(values, _mm256_and_si256(_mm256_srli_epi16(two0, 4), nibble));
      const __m256i even1 = _mm256_shuffle_epi8(values, _mm256_and_si256(two1, nibble)),
                    odd1 = _mm256_shuffle_epi8(values, _mm256_and_si256(_mm256_srli_epi16(two1, 4), nibble));
#pragma GCC unroll 16
      for (size_t r = 0; r < ROWS; r++) {
        const __m256i a_even = word(a + (r * groups + g) * 2), a_odd = word(a + (r * groups + g) * 2 + 1);
        narrow[r].low = _mm256_add_epi16(narrow[r].low, products(even0, odd0, a_even, a_odd));
        narrow[r].high = _mm256_add_epi16(narrow[r].high, products(even1, odd1, a_even, a_odd));
      }
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < ROWS; r++) {
      sum[r].low = _mm256_add_epi32(sum[r].low, _mm256_madd_epi16(narrow[r].low, ones));
      sum[r].high = _mm256_add_epi32(sum[r].high, _mm256_madd_epi16(narrow[r].high, ones));
    }
  }
}

static inline __attribute__((always_inline)) void add_term(float *at, __m256i sum, float sa, const float *sb) {
  _mm256_storeu_ps(at, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(_mm256_set1_ps(sa), _mm256_load_ps(sb)), _mm256_loadu_ps(at)));
}

/* The running sums stay in out, because sixteen registers are too few. */
static inline __attribute__((always_inline)) void blocks(float *out, const mxg_packed *a, const mxg_packed *b, size_t groups) {
  for (size_t i = 0; i < L * L; i++) out[i] = 0;
  for (size_t k = 0; k < a->kb; k++)
    for (size_t i = 0; i < a->rows; i += ROWS) {
      pair sum[ROWS];
      dots(sum, a->offset + k * L + i, a->words + (k * L + i) * groups * 2, b->words + k * groups * L, groups);
#pragma GCC unroll 16
      for (size_t r = 0; r < ROWS; r++) {
        add_term(out + (i + r) * L, sum[r].low, a->s[k * L + i + r], b->s + k * L);
        add_term(out + (i + r) * L + 8, sum[r].high, a->s[k * L + i + r], b->s + k * L + 8);
      }
    }
}

static inline __attribute__((always_inline)) void store_dots(double *out, __m256i sum) {
  _mm256_store_pd(out, _mm256_cvtepi32_pd(_mm256_castsi256_si128(sum)));
  _mm256_store_pd(out + 4, _mm256_cvtepi32_pd(_mm256_extracti128_si256(sum, 1)));
}

static inline __attribute__((always_inline)) void dots_of(double *out, const mxg_packed *a, const mxg_packed *b, size_t k, size_t groups) {
  for (size_t i = 0; i < L; i += ROWS) {
    pair sum[ROWS];
    dots(sum, a->offset + k * L + i, a->words + (k * L + i) * groups * 2, b->words + k * groups * L, groups);
    for (size_t r = 0; r < ROWS; r++) {
      store_dots(out + (i + r) * L, sum[r].low);
      store_dots(out + (i + r) * L + 8, sum[r].high);
    }
  }
}

void mxi_gemm_codes_dots_avx2(double *out, const mxg_packed *a, const mxg_packed *b, size_t block) {
  if (a->groups == 4)
    dots_of(out, a, b, block, 4);
  else if (a->groups == 2)
    dots_of(out, a, b, block, 2);
  else
    dots_of(out, a, b, block, a->groups);
}

/* Turns four words into signed bytes, for each word the even codes and then the odd ones. Returns the sums of both, in four lanes. */
static inline __m128i signed_bytes(uint32_t *out, __m128i two) {
  const __m128i nibble = _mm_set1_epi8(15), doubled = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
  const __m128i even = _mm_shuffle_epi8(doubled, _mm_and_si128(two, nibble)),
                odd = _mm_shuffle_epi8(doubled, _mm_and_si128(_mm_srli_epi16(two, 4), nibble));
  _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi32(even, odd));
  _mm_storeu_si128((__m128i *)(void *)(out + 4), _mm_unpackhi_epi32(even, odd));
  return _mm_madd_epi16(_mm_maddubs_epi16(_mm_set1_epi8(1), _mm_add_epi8(even, odd)), _mm_set1_epi16(1));
}

static inline __m128i four_words(const uint32_t *p) {
  __m128i x;
  memcpy(&x, p, sizeof x);
  return x;
}

/* Blocks of two words, two at a time: the bytes of the first are the lower ones of signed_bytes(). Returns how many it did. */
static size_t pairs_of_blocks(uint32_t *out, int32_t *offset, const uint32_t *words, size_t n_blocks) {
  size_t b = 0;
  for (; b + 2 <= n_blocks; b += 2) {
    uint32_t both[8];
    const __m128i each = signed_bytes(both, four_words(words + 2 * b)), sum = _mm_add_epi32(each, _mm_shuffle_epi32(each, 0xB1));
    memcpy(out + b * L * 4, both, 16);
    memcpy(out + (b + 1) * L * 4, both + 4, 16);
    offset[b * L] = -12 * _mm_cvtsi128_si32(sum);
    offset[(b + 1) * L] = -12 * _mm_extract_epi32(sum, 2);
  }
  return b;
}

/* Blocks of four words. */
static void whole_blocks(uint32_t *out, int32_t *offset, const uint32_t *words, size_t n_blocks) {
  for (size_t b = 0; b < n_blocks; b++) {
    __m128i sum = signed_bytes(out + b * L * 8, four_words(words + 4 * b));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    offset[b * L] = -12 * _mm_cvtsi128_si32(sum);
  }
}

void mxi_gemm_pack_a_avx2(uint32_t *out, int32_t *offset, const uint32_t *words, size_t groups, size_t n_blocks) {
  if (groups == 4) {
    whole_blocks(out, offset, words, n_blocks);
    return;
  }
  const size_t done = groups == 2 ? pairs_of_blocks(out, offset, words, n_blocks) : 0;
  out += done * L * groups * 2, words += done * groups;
  for (size_t b = done; b < n_blocks; b++, out += L * groups * 2, words += groups) {
    __m128i sum = _mm_setzero_si128();
    for (size_t g = 0; g < groups; g += 4) {
      uint32_t in[4] = {0}, last[8];
      const size_t n = groups - g < 4 ? groups - g : 4;
      memcpy(in, words + g, n * 4);
      sum = _mm_add_epi32(sum, signed_bytes(n == 4 ? out + 2 * g : last, four_words(in)));
      if (n < 4) memcpy(out + 2 * g, last, n * 8);
    }
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    offset[b * L] = -12 * _mm_cvtsi128_si32(sum);
  }
}

void mxi_gemm_codes_avx2(float *acc, const mxg_packed *a, const mxg_packed *b) {
  if (a->groups == 4)
    blocks(acc, a, b, 4);
  else if (a->groups == 2)
    blocks(acc, a, b, 2);
  else
    blocks(acc, a, b, a->groups);
}
