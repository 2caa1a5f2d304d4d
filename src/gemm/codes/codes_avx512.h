/* Declares what the AVX-512 kernels on packed codes share. */
#ifndef MX_GEMM_CODES_CODES_AVX512_H
#define MX_GEMM_CODES_CODES_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "gemm/codes/codes.h"

enum { L = MXG_LANES };

/* d + 12 of a code, four times over: vpermb looks at six bits of a byte, and the two above the code do not matter. */
static inline __m512i table(void) { return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0)); }

/* dpbusd with all lanes of the last operand the word at p. Compilers load and spread the word by an instruction of its own, which takes a place among
 * the vector instructions; as part of this one it is free, and two of these a cycle make 1.7 times as many products. */
static inline __attribute__((always_inline)) __m512i dot_word(__m512i sum, __m512i x, const uint32_t *p) {
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(x), "m"(*p));
  return sum;
}

/* dot() in two chains, for few rows: there is nothing else to do while one sum waits for itself. */
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

/* Adds to sum[r] the products of `groups` words; GROUPS is a constant where the compiler is to unroll. */
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

/* Sixteen rows of sixteen words: word c of row r goes to lane r of x[c]. */
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

#endif
