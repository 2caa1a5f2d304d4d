/* Packing sixteen rows of B side by side with AVX-512: what a product with few rows of A spends its time on. */
#include <immintrin.h>
#include <string.h>

#include "gemm/gemm_codes.h"

enum { L = MXG_LANES };

static inline __attribute__((always_inline)) void transpose(__m512i x[L]) {
  __m512i t[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; i += 2) {
    t[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < L; i += 4) {
    x[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  /* x[4 q + c], 128-bit lane l: rows 4 q .. 4 q + 3 of column 4 l + c */
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    t[c] = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x44);
    t[4 + c] = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xEE);
    t[8 + c] = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x44);
    t[12 + c] = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xEE);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    x[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
    x[4 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xDD);
    x[8 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
    x[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xDD);
  }
}

size_t mxg_pack_words_avx512(uint32_t *out, const uint8_t *first, size_t stride, size_t n) {
  size_t g = 0;
  for (; g + L <= n; g += L) {
    __m512i x[L];
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) {
      const uint8_t *at = first + r * stride + g * 4;
      x[r] = _mm512_loadu_si512(at);
      _mm_prefetch((const char *)((uintptr_t)at + 512), _MM_HINT_T0); /* sixteen streams of a page each are too many for the hardware's own */
    }
    transpose(x);
#pragma GCC unroll 16
    for (size_t c = 0; c < L; c++) _mm512_store_si512(out + (g + c) * L, x[c]);
  }
  return g;
}

/* Bytes of sixteen codes to binary32 bits, stored, and their range kept. */
typedef struct range {
  __m512i low, high;
} range;

static inline __attribute__((always_inline)) range decode(float *out, range seen, __m512i code, const float *table, int e8m0) {
  __m512i bits;
  if (e8m0) { /* the exponent itself; 0 is 2^-127 and 255 NaN */
    bits = _mm512_mask_mov_epi32(_mm512_slli_epi32(code, 23), _mm512_cmpeq_epi32_mask(code, _mm512_setzero_si512()),
                                 _mm512_set1_epi32(0x00400000));
    bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(code, _mm512_set1_epi32(255)), _mm512_set1_epi32(0x7FC00000));
  } else {
    bits = _mm512_i32gather_epi32(code, table, 4);
  }
  _mm512_store_si512(out, bits);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 counts =
      _mm512_cmplt_epu32_mask(_mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7F7FFFFF)); /* not 0, Inf or NaN */
  seen.low = _mm512_mask_min_epu32(seen.low, counts, seen.low, magnitude);
  seen.high = _mm512_mask_max_epu32(seen.high, counts, seen.high, magnitude);
  return seen;
}

void mxg_pack_scales_avx512(float *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n, const float *table,
                            int e8m0) {
  const __m512i byte = _mm512_set1_epi32(255);
  range seen = {_mm512_set1_epi32(-1), _mm512_setzero_si512()};
  for (size_t b = 0; b < n; b += 64) {
    const size_t m = n - b < 64 ? n - b : 64;
    const __mmask64 there = m == 64 ? ~UINT64_C(0) : (UINT64_C(1) << m) - 1;
    __m512i x[L]; /* after the transpose: byte q of lane r of x[c] is the scale of row r, block b + 4 c + q */
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) x[r] = _mm512_maskz_loadu_epi8(there, first + r * stride + b);
    transpose(x);
    for (size_t i = 0; i < m; i += 4)
#pragma GCC unroll 4
      for (size_t q = 0; q < 4; q++)
        if (i + q < m)
          seen = decode(out + (b + i + q) * L, seen, _mm512_and_si512(_mm512_srli_epi32(x[i / 4], (unsigned)(8 * q)), byte), table, e8m0);
  }
  const uint32_t l = _mm512_reduce_min_epu32(seen.low), h = _mm512_reduce_max_epu32(seen.high);
  *least = l < *least ? l : *least;
  *largest = h > *largest ? h : *largest;
}
