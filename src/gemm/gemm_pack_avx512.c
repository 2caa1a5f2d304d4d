/* Packing sixteen rows of B side by side with AVX-512: what a product with few rows of A spends its time on. */
#include <immintrin.h>
#include <string.h>

#include "gemm/gemm_codes.h"
#include "gemm/gemm_codes_avx512.h"

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

void mxg_pack_signed_avx512(uint32_t *out, size_t n) {
  const __m512i doubled = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
  for (size_t g = 0; g < n; g++) {
    const __m512i two = _mm512_load_si512(out + (n + g) * L);
    _mm512_store_si512(out + 2 * g * L, _mm512_permutexvar_epi8(two, doubled)); /* looks at six bits: the two above the code do not matter */
    _mm512_store_si512(out + (2 * g + 1) * L, _mm512_permutexvar_epi8(_mm512_srli_epi16(two, 4), doubled));
  }
}

/* Bytes of sixteen codes to binary32 bits, stored, and their range kept. */
typedef struct range {
  __m512i low, high;
} range;

static inline __attribute__((always_inline)) range decode(float *out, range seen, __m512i code, const float *table) {
  const __m512i bits = _mm512_i32gather_epi32(code, table, 4);
  _mm512_store_si512(out, bits);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 counts =
      _mm512_cmplt_epu32_mask(_mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7F7FFFFF)); /* not 0, Inf or NaN */
  seen.low = _mm512_mask_min_epu32(seen.low, counts, seen.low, magnitude);
  seen.high = _mm512_mask_max_epu32(seen.high, counts, seen.high, magnitude);
  return seen;
}

/* The same for e8m0, whose codes are exponents: 0 is 2^-127 and 255 NaN. */
static inline __attribute__((always_inline)) void decode_e8m0(float *out, __m512i code, __mmask16 nan) {
  const __m512i bits = _mm512_max_epi32(_mm512_slli_epi32(code, 23), _mm512_set1_epi32(0x00400000));
  _mm512_store_si512(out, _mm512_mask_mov_epi32(bits, nan, _mm512_set1_epi32(0x7FC00000)));
}

static uint8_t least_byte(__m512i x) {
  uint8_t bytes[64], least = 255;
  _mm512_storeu_si512(bytes, x);
  for (int i = 0; i < 64; i++) least = bytes[i] < least ? bytes[i] : least;
  return least;
}

static uint32_t bits_of_e8m0(uint32_t code) { return code ? code << 23 : 0x00400000; }

/* The same for scales whose codes below `top` are bits of a binary32 but for a power of two: as wide as an exponent and a fraction, shifted. */
static inline __attribute__((always_inline)) void decode_linear(float *out, __m512i code, unsigned shift, __m512 factor) {
  _mm512_store_ps(out, _mm512_mul_ps(_mm512_castsi512_ps(_mm512_sll_epi32(code, _mm_cvtsi32_si128((int)shift))), factor));
}

typedef struct byte_range {
  __m512i low, high; /* bytes: the least of code - 1 modulo 256, so that 0 counts as the largest; the largest */
} byte_range;

static inline __attribute__((always_inline)) byte_range see_bytes(byte_range seen, __m512i codes, __mmask64 there) {
  seen.low = _mm512_mask_min_epu8(seen.low, there, seen.low, _mm512_add_epi8(codes, _mm512_set1_epi8(-1)));
  seen.high = _mm512_mask_max_epu8(seen.high, there, seen.high, codes);
  return seen;
}

static uint32_t magnitude(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7FFFFFFF;
}

void mxg_pack_scales_avx512(float *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n, const float *table,
                            const mxg_scale_codes *codes, const uint8_t *ahead) {
  const __m512i byte = _mm512_set1_epi32(255), ones = _mm512_set1_epi8(-1);
  const __m512 factor = _mm512_set1_ps(codes->factor);
  const int e8m0 = codes->e8m0;
  range seen = {ones, _mm512_setzero_si512()};
  byte_range linear = {ones, _mm512_setzero_si512()};
  __m512i low = ones, high = ones; /* e8m0: the least code, and the least of 255 - (code + 1) modulo 256: 255 for NaN */
  for (size_t b = 0; b < n; b += 64) {
    const size_t m = n - b < 64 ? n - b : 64;
    const __mmask64 there = m == 64 ? ~UINT64_C(0) : (UINT64_C(1) << m) - 1;
    __mmask64 nans = 0;
    __m512i x[L], most = _mm512_setzero_si512(); /* after the transpose: byte q of lane r of x[c] is the scale of row r, block b + 4 c + q */
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) {
      x[r] = _mm512_maskz_loadu_epi8(there, first + r * stride + b);
      if (ahead && m == 64) _mm_prefetch((const char *)((uintptr_t)ahead + (b / 64 * L + r) * 64), _MM_HINT_T0);
      most = _mm512_max_epu8(most, x[r]);
      if (!e8m0) continue;
      low = _mm512_mask_min_epu8(low, there, low, x[r]);
      high = _mm512_mask_min_epu8(high, there, high, _mm512_xor_si512(_mm512_sub_epi8(x[r], ones), ones));
      nans |= _mm512_cmpeq_epi8_mask(x[r], ones);
    }
    const int plain = !e8m0 && codes->top && !_mm512_cmpge_epu8_mask(most, _mm512_set1_epi8((char)codes->top));
    if (plain)
#pragma GCC unroll 16
      for (size_t r = 0; r < L; r++) linear = see_bytes(linear, x[r], there);
    transpose(x);
    for (size_t i = 0; i < m; i += 4)
#pragma GCC unroll 4
      for (size_t q = 0; q < 4; q++) {
        const __m512i code = _mm512_and_si512(_mm512_srli_epi32(x[i / 4], (unsigned)(8 * q)), byte);
        if (i + q >= m) continue;
        if (e8m0)
          decode_e8m0(out + (b + i + q) * L, code, nans ? _mm512_cmpeq_epi32_mask(code, byte) : 0);
        else if (plain)
          decode_linear(out + (b + i + q) * L, code, codes->shift, factor);
        else
          seen = decode(out + (b + i + q) * L, seen, code, table);
      }
  }
  uint32_t l = _mm512_reduce_min_epu32(seen.low), h = _mm512_reduce_max_epu32(seen.high);
  if (e8m0) {
    const uint32_t lowest = least_byte(low), inverted = least_byte(high); /* 255 - (largest + 1) */
    if (inverted < 255) l = bits_of_e8m0(lowest), h = bits_of_e8m0(254 - inverted);
  }
  const uint32_t before = least_byte(linear.low), inverse = least_byte(_mm512_xor_si512(linear.high, ones));
  if (before < 255) {
    const uint32_t at_least = magnitude(table[before + 1]), at_most = magnitude(table[255 - inverse]);
    l = at_least < l ? at_least : l;
    h = at_most > h ? at_most : h;
  }
  *least = l < *least ? l : *least;
  *largest = h > *largest ? h : *largest;
}
