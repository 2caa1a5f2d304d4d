/* Compiles packing, unpacking and layouts for AVX2. */
#include "kernels/bytes.h"
#include "kernels/bytes_x86.h"

#define TABLE mxi_bytes_avx2

/* Packs thirty-two codes into twenty-four bytes: pairs into twelve bits, pairs of those into twenty-four, and then the three bytes of each
 * dword. */
static size_t pack6(uint8_t *out, const uint8_t *codes, size_t n) {
  const __m256i three =
      _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m256i dwords = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
  size_t i = 0;
  for (; i + 32 <= n; i += 32, out += 24) {
    const __m256i c = _mm256_and_si256(_mm256_loadu_si256((const void *)(codes + i)), _mm256_set1_epi8(63));
    const __m256i pairs = _mm256_maddubs_epi16(c, _mm256_set1_epi16(0x4001));
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x10000001));
    const __m256i v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, three), dwords);
    _mm_storeu_si128((void *)out, _mm256_castsi256_si128(v));
    _mm_storel_epi64((void *)(out + 16), _mm256_extracti128_si256(v, 1));
  }
  return i;
}

/* Unpacks thirty-two codes from twenty-four bytes, but reads thirty-two bytes. */
static size_t unpack6(uint8_t *codes, const uint8_t *in, size_t n) {
  const __m256i dwords = _mm256_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5);
  const __m256i spread =
      _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  size_t i = 0;
  for (; i + 48 <= n; i += 32, in += 24) {
    const __m256i v = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)in), dwords), d = _mm256_shuffle_epi8(v, spread);
    const __m256i a = _mm256_and_si256(d, _mm256_set1_epi32(0x3F)), b = _mm256_and_si256(_mm256_slli_epi32(d, 2), _mm256_set1_epi32(0x3F00));
    const __m256i e = _mm256_and_si256(_mm256_slli_epi32(d, 4), _mm256_set1_epi32(0x3F0000));
    const __m256i f = _mm256_and_si256(_mm256_slli_epi32(d, 6), _mm256_set1_epi32(0x3F000000));
    _mm256_storeu_si256((void *)(codes + i), _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(e, f)));
  }
  return i;
}

#include "kernels/bytes.inc.h"
