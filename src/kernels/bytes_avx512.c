/* Compiles packing, unpacking and layouts for AVX-512, which uses VBMI for four codes in three bytes. */
#include "kernels/bytes.h"
#include "kernels/bytes_x86.h"

#define TABLE mxi_bytes_avx512

/* The permutation that moves the first three bytes of each dword together, or back. */
static __m512i order(int spread) {
  uint8_t at[64] = {0};
  for (int i = 0; i < 48; i++)
    if (spread)
      at[i / 3 * 4 + i % 3] = (uint8_t)i;
    else
      at[i] = (uint8_t)(i / 3 * 4 + i % 3);
  return _mm512_loadu_si512(at);
}

static size_t pack6(uint8_t *out, const uint8_t *codes, size_t n) {
  const __m512i three = order(0);
  size_t i = 0;
  for (; i + 64 <= n; i += 64, out += 48) {
    const __m512i c = _mm512_and_si512(_mm512_loadu_si512(codes + i), _mm512_set1_epi8(63));
    const __m512i fours = _mm512_madd_epi16(_mm512_maddubs_epi16(c, _mm512_set1_epi16(0x4001)), _mm512_set1_epi32(0x10000001));
    const __m512i v = _mm512_permutexvar_epi8(three, fours);
    _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(v));
    _mm_storeu_si128((void *)(out + 32), _mm512_extracti32x4_epi32(v, 2));
  }
  return i;
}

static size_t unpack6(uint8_t *codes, const uint8_t *in, size_t n) {
  const __m512i spread = order(1), places = _mm512_set1_epi64(0x322C2620120C0600); /* from bits 0 6 12 18 32 38 44 50 */
  size_t i = 0;
  for (; i + 64 <= n; i += 64, in += 48) {
    const __m512i d = _mm512_permutexvar_epi8(spread, _mm512_maskz_loadu_epi8(0xFFFFFFFFFFFF, in));
    _mm512_storeu_si512(codes + i, _mm512_and_si512(_mm512_multishift_epi64_epi8(places, d), _mm512_set1_epi8(63)));
  }
  return i;
}

#include "kernels/bytes.inc.h"
