/* A product with few rows of A: B is read once, so that its sixteen rows are turned in registers and never stored. What is left to wait for is
 * memory: sixteen streams at once are too many for the hardware's own prefetching, which sees one line after the other of the next panel instead. */
#include "gemm/gemm_codes_avx512.h"

/* Blocks of 8 * groups elements; chunks of 128 elements. The first lines of the next panel were asked for
 * while scales were unpacked, the rest are asked for here. */
static inline __attribute__((always_inline)) void panel(float *out, const mxg_packed *a, const mxg_packed *b, const mxg_stream *from,
                                                        const size_t groups, const size_t rows) {
  const size_t n_blocks = L / groups, chunks = a->kb / n_blocks, stride = from->stride, stride3 = 3 * stride, asked = mxg_asked(a->kb);
  __m512 acc[L];
#pragma GCC unroll 16
  for (size_t r = 0; r < rows; r++) acc[r] = _mm512_setzero_ps();
  for (size_t c = 0; c < chunks; c++) {
    __m512i x[L];
#pragma GCC unroll 2
    for (size_t q = 0; q < n_blocks / 4; q++) _mm_prefetch((const char *)((uintptr_t)from->scales + (c * n_blocks / 4 + q) * 64), _MM_HINT_T0);
    const uint8_t *row = from->first + c * 64, *next = c < asked ? row : from->ahead + c * L * 64;
#pragma GCC unroll 4
    for (size_t r = 0; r < L; r += 4) {
      __asm__("" : "+r"(row)); /* or sixteen addresses are kept, most of them out of registers */
      x[r] = _mm512_loadu_si512(row);
      x[r + 1] = _mm512_loadu_si512(row + stride);
      x[r + 2] = _mm512_loadu_si512(row + 2 * stride);
      x[r + 3] = _mm512_loadu_si512(row + stride3);
      row += 4 * stride;
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; i++) _mm_prefetch((const char *)((uintptr_t)next + (r + i) * 64), _MM_HINT_T0);
    }
    transpose(x);
#pragma GCC unroll 8
    for (size_t q = 0; q < n_blocks; q++) {
      __m512i even[4], odd[4];
      const size_t k = c * n_blocks + q;
      unpack_in(even, odd, x + q * groups, groups);
      const __m512 sb = _mm512_load_ps(b->s + k * L);
      const uint32_t *record = a->few + k * rows * (2 + 2 * groups), *words = record + 2 * rows;
#pragma GCC unroll 16
      for (size_t r = 0; r < rows; r++) {
        const __m512i offset = _mm512_set1_epi32((int)record[r]);
        const __m512i sum =
            rows > 2 ? dot(offset, words + r * groups * 2, even, odd, groups) : dot2(offset, words + r * groups * 2, even, odd, groups);
        acc[r] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(_mm512_castsi512_ps(_mm512_set1_epi32((int)record[rows + r])), sb), acc[r]);
      }
    }
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < rows; r++) _mm512_storeu_ps(out + r * L, acc[r]);
}

/* One row runs as two: it has too little to do to ask for lines evenly. */
#define EACH(groups)                                                                                                                           \
  do {                                                                                                                                         \
    if (a->few_rows == 16)                                                                                                                     \
      panel(out, a, b, from, groups, 16);                                                                                                      \
    else if (a->few_rows == 8)                                                                                                                 \
      panel(out, a, b, from, groups, 8);                                                                                                       \
    else if (a->few_rows == 4)                                                                                                                 \
      panel(out, a, b, from, groups, 4);                                                                                                       \
    else                                                                                                                                       \
      panel(out, a, b, from, groups, 2);                                                                                                       \
  } while (0)

void mxg_skinny_avx512(float *out, const mxg_packed *a, const mxg_packed *b, const mxg_stream *from) {
  if (a->groups == 4)
    EACH(4);
  else
    EACH(2);
}
