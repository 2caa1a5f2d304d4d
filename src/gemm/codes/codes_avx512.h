/* Declares what the AVX-512 kernels on packed codes share. */
#ifndef MX_GEMM_CODES_CODES_AVX512_H
#define MX_GEMM_CODES_CODES_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "gemm/codes/codes.h"

enum { L = MXG_LANES };

/* d + 12 for each code, four times: vpermb uses six bits of a byte, so the two bits above the code do not matter. */
static inline __m512i table(void) { return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0)); }

/* dpbusd with the word at p in all lanes of the last operand. Compilers load and broadcast the word by a separate instruction, which
 * competes with other vector instructions. As part of this one the load is free, and with two of these per cycle there are 1.7 times as many
 * products. */
static inline __attribute__((always_inline)) __m512i dot_word(__m512i sum, __m512i x, const uint32_t *p) {
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(x), "m"(*p));
  return sum;
}

/* dot() in two chains, for few rows, where there is no other work while a sum waits for its last addition. */
static inline __attribute__((always_inline)) __m512i dot2(__m512i sum, const uint32_t *a, const __m512i *even, const __m512i *odd,
                                                          size_t groups) {
  __m512i other = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (size_t g = 0; g < groups; g++) {
    sum = dot_word(sum, even[g], a + 2 * g);
    other = dot_word(other, odd[g], a + 2 * g + 1);
  }
  return _mm512_add_epi32(sum, other);
}

/* Adds the products of `groups` words to sum; groups is a constant where the compiler should unroll. */
static inline __attribute__((always_inline)) __m512i dot(__m512i sum, const uint32_t *a, const __m512i *even, const __m512i *odd,
                                                         size_t groups) {
#pragma GCC unroll 4
  for (size_t g = 0; g < groups; g++) {
    sum = dot_word(sum, even[g], a + 2 * g);
    sum = dot_word(sum, odd[g], a + 2 * g + 1);
  }
  return sum;
}

static inline __attribute__((always_inline)) void unpack_in(__m512i *even, __m512i *odd, const __m512i *two, size_t groups) {
  const __m512i values = table();
#pragma GCC unroll 4
  for (size_t g = 0; g < groups; g++) {
    even[g] = _mm512_permutexvar_epi8(two[g], values);
    odd[g] = _mm512_permutexvar_epi8(_mm512_srli_epi16(two[g], 4), values);
  }
}

static inline __attribute__((always_inline)) void unpack(__m512i *even, __m512i *odd, const uint32_t *b, size_t groups) {
#pragma GCC unroll 4
  for (size_t g = 0; g < groups; g++) {
    const __m512i two = _mm512_load_si512(b + g * L);
    unpack_in(even + g, odd + g, &two, 1);
  }
}

/* Transposes sixteen rows of sixteen words: word c of row r goes to lane r of x[c]. */
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
  /* 128-bit lane l of x[4 q + c] now has rows 4 q .. 4 q + 3 of column 4 l + c */
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

#endif
