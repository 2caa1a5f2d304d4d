/* Single values to codes with AVX-512. */
#include "kernels/codec_kernels.h"
#include "kernels/lanes_avx512.h"

static inline __attribute__((always_inline)) size_t run(void *out, const float *x, size_t n, const mx_lanes *l, int wide, const int round) {
  const mx_lanes lanes = *l;
  size_t i = 0;
  for (; n - i >= 16; i += 16) {
    const __m512i code = mx_encode_lanes(&lanes, _mm512_loadu_si512(x + i), round);
    if (wide)
      _mm256_storeu_si256((__m256i *)((uint16_t *)out + i), _mm512_cvtepi32_epi16(code));
    else
      _mm_storeu_si128((__m128i *)((uint8_t *)out + i), _mm512_cvtepi32_epi8(code));
  }
  return i;
}

size_t mx_encode_avx512(void *out, const float *x, size_t n, const mx_lanes *lanes, int wide) {
  size_t done = 0;
#define RUN(R) done = run(out, x, n, lanes, wide, R)
  MX_BY_ROUND(lanes->round, RUN)
  return done;
}
