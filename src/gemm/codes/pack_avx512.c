/* Packs sixteen rows of B side by side with AVX-512, which takes most of the time of a product with few rows of A. */
#include <immintrin.h>
#include <string.h>

#include "gemm/codes/codes.h"
#include "gemm/codes/codes_avx512.h"

size_t mxi_gemm_pack_words_avx512(uint32_t *out, const uint8_t *first, size_t stride, size_t n) {
  size_t g = 0;
  for (; g + L <= n; g += L) {
    __m512i x[L];
#pragma GCC unroll 16
    for (size_t r = 0; r < L; r++) {
      const uint8_t *at = first + r * stride + g * 4;
      x[r] = _mm512_loadu_si512(at);
      _mm_prefetch((const char *)((uintptr_t)at + 512),
                   _MM_HINT_T0); /* the hardware does not prefetch sixteen streams that are each in a page of their own */
    }
    transpose(x);
#pragma GCC unroll 16
    for (size_t c = 0; c < L; c++) _mm512_store_si512(out + (g + c) * L, x[c]);
  }
  return g;
}

void mxi_gemm_pack_signed_avx512(uint32_t *out, size_t n) {
  const __m512i doubled = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
  for (size_t g = 0; g < n; g++) {
    const __m512i two = _mm512_load_si512(out + (n + g) * L);
    _mm512_store_si512(out + 2 * g * L, _mm512_permutexvar_epi8(two, doubled)); /* it uses six bits, so the two above the code do not matter */
    _mm512_store_si512(out + (2 * g + 1) * L, _mm512_permutexvar_epi8(_mm512_srli_epi16(two, 4), doubled));
  }
}

/* The range of the scales that have been decoded, as binary32 bits. */
typedef struct range {
  __m512i low, high;
} range;

static inline __attribute__((always_inline)) range decode(float *out, range seen, __m512i code, const float *table) {
  const __m512i bits = _mm512_i32gather_epi32(code, table, 4);
  _mm512_store_si512(out, bits);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 counts = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)),
                                                   _mm512_set1_epi32(0x7F7FFFFF)); /* those that are not 0, Inf or NaN */
  seen.low = _mm512_mask_min_epu32(seen.low, counts, seen.low, magnitude);
  seen.high = _mm512_mask_max_epu32(seen.high, counts, seen.high, magnitude);
  return seen;
}

/* Moves byte q of each word to bit `shift`; left is shift - 8 q, modulo 32. */
static inline __attribute__((always_inline)) __m512i byte_at(__m512i x, __m512i left, __m512i mask) {
  return _mm512_and_si512(_mm512_rolv_epi32(x, left), mask);
}

/* Decodes e8m0, whose codes are exponents and are already in their place; 0 is 2^-127 and 255 is NaN. */
static inline __attribute__((always_inline)) void decode_e8m0(float *out, __m512i bits, int special) {
  if (special) {
    const __mmask16 nan = _mm512_cmpeq_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
    bits = _mm512_mask_mov_epi32(_mm512_max_epi32(bits, _mm512_set1_epi32(0x00400000)), nan, _mm512_set1_epi32(0x7FC00000));
  }
  _mm512_store_si512(out, bits);
}

static uint8_t least_byte(__m512i x) {
  uint8_t bytes[64], least = 255;
  _mm512_storeu_si512(bytes, x);
  for (int i = 0; i < 64; i++) least = bytes[i] < least ? bytes[i] : least;
  return least;
}

static uint32_t bits_of_e8m0(uint32_t code) { return code ? code << 23 : 0x00400000; }

/* Decodes scales whose codes below `top` are the bits of a binary32 up to a power of two, and are already in their place. */
static inline __attribute__((always_inline)) void decode_linear(float *out, __m512i bits, __m512 factor) {
  _mm512_store_ps(out, _mm512_mul_ps(_mm512_castsi512_ps(bits), factor));
}

typedef enum scale_kind { E8M0, E8M0_SPECIAL, LINEAR, ANY } scale_kind;

/* Decodes m blocks of sixteen rows: byte q of lane r of x[c] is the scale of row r, block 4 c + q. */
static inline __attribute__((always_inline)) range decode_all(float *out, range seen, const __m512i x[L], size_t m, const scale_kind kind,
                                                              const float *table, const mxg_scale_codes *codes) {
  const unsigned shift = kind == LINEAR ? codes->shift : kind == ANY ? 0 : 23;
  const __m512i mask = _mm512_set1_epi32((int)(UINT32_C(255) << shift));
  const __m512 factor = _mm512_set1_ps(codes->factor);
  __m512i left[4];
  for (unsigned q = 0; q < 4; q++) left[q] = _mm512_set1_epi32((int)(shift + 32 - 8 * q));
  for (size_t i = 0; i < m; i += 4)
#pragma GCC unroll 4
    for (size_t q = 0; q < 4; q++) {
      float *to = out + (i + q) * L;
      const __m512i bits = byte_at(x[i / 4], left[q], mask);
      if (i + q >= m) continue;
      if (kind == LINEAR)
        decode_linear(to, bits, factor);
      else if (kind == ANY)
        seen = decode(to, seen, bits, table);
      else
        decode_e8m0(to, bits, kind == E8M0_SPECIAL);
    }
  return seen;
}

static uint32_t magnitude(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7FFFFFFF;
}

/* The range of codes as bytes. low is of codes minus 1 modulo 256, so that 0 counts as the largest (of codes themselves for e8m0); high is
 * of codes. */
typedef struct byte_range {
  __m512i low, high;
} byte_range;

/* Loads up to 64 blocks of a row into each x; returns their range. */
static inline __attribute__((always_inline)) byte_range load_scales(__m512i x[L], const uint8_t *first, size_t stride, __mmask64 there,
                                                                    int e8m0) {
  const __m512i ones = _mm512_set1_epi8(-1), down = e8m0 ? _mm512_setzero_si512() : ones;
  byte_range seen = {ones, _mm512_setzero_si512()};
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) {
    x[r] = _mm512_maskz_loadu_epi8(there, first + r * stride);
    seen.high = _mm512_max_epu8(seen.high, x[r]);
    seen.low = _mm512_mask_min_epu8(seen.low, there, seen.low, _mm512_add_epi8(x[r], down));
  }
  return seen;
}

static __mmask64 of_blocks(size_t n) { return n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0); }

/* Whether all codes are below `top`, so that their bits are those of a binary32. */
static int all_linear(byte_range seen, const mxg_scale_codes *codes) {
  return !codes->e8m0 && codes->top && !_mm512_cmpge_epu8_mask(seen.high, _mm512_set1_epi8((char)codes->top));
}

static void widen(uint32_t *least, uint32_t *largest, byte_range seen, const float *table, int e8m0) {
  const uint32_t low = least_byte(seen.low), high = 255 - (uint32_t)least_byte(_mm512_xor_si512(seen.high, _mm512_set1_epi8(-1)));
  if (low == 255) return; /* there is nothing but 0, or there is a NaN */
  const uint32_t lower = e8m0 ? bits_of_e8m0(low) : magnitude(table[low + 1]), higher = e8m0 ? bits_of_e8m0(high) : magnitude(table[high]);
  *least = lower < *least ? lower : *least;
  *largest = higher > *largest ? higher : *largest;
}

void mxi_gemm_pack_scales_avx512(float *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n,
                                 const float *table, const mxg_scale_codes *codes) {
  const __m512i ones = _mm512_set1_epi8(-1);
  const int e8m0 = codes->e8m0;
  range seen = {ones, _mm512_setzero_si512()};
  byte_range all = {ones, _mm512_setzero_si512()};
  for (size_t b = 0; b < n; b += 64) {
    const size_t m = n - b < 64 ? n - b : 64;
    const __mmask64 there = of_blocks(m);
    __m512i x[L];
    const byte_range here = load_scales(x, first + b, stride, there, e8m0);
    const int nan = e8m0 && _mm512_cmpeq_epi8_mask(here.high, ones), linear = all_linear(here, codes);
    if (nan)
      for (size_t r = 0; r < L; r++) all.high = _mm512_mask_max_epu8(all.high, _mm512_cmpneq_epi8_mask(x[r], ones), all.high, x[r]);
    else if (e8m0 || linear)
      all.high = _mm512_max_epu8(all.high, here.high);
    if (e8m0 || linear) all.low = _mm512_min_epu8(all.low, here.low);
    transpose(x);
    float *to = out + b * L;
    if (linear)
      seen = decode_all(to, seen, x, m, LINEAR, table, codes);
    else if (!e8m0)
      seen = decode_all(to, seen, x, m, ANY, table, codes);
    else if (nan || _mm512_mask_cmpeq_epi8_mask(there, here.low, _mm512_setzero_si512()))
      seen = decode_all(to, seen, x, m, E8M0_SPECIAL, table, codes);
    else
      seen = decode_all(to, seen, x, m, E8M0, table, codes);
  }
  const uint32_t l = _mm512_reduce_min_epu32(seen.low), h = _mm512_reduce_max_epu32(seen.high);
  *least = l < *least ? l : *least;
  *largest = h > *largest ? h : *largest;
  widen(least, largest, all, table, e8m0);
}

int mxi_gemm_turn_scales_avx512(uint32_t *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n,
                                const float *table, const mxg_scale_codes *codes) {
  const __m512i ones = _mm512_set1_epi8(-1);
  byte_range all = {ones, _mm512_setzero_si512()};
  for (size_t b = 0; b < n; b += 64) {
    const size_t m = n - b < 64 ? n - b : 64;
    __m512i x[L];
    const byte_range here = load_scales(x, first + b, stride, of_blocks(m), codes->e8m0);
    all.low = _mm512_min_epu8(all.low, here.low);
    all.high = _mm512_max_epu8(all.high, here.high);
    transpose(x);
#pragma GCC unroll 16
    for (size_t i = 0; i < L; i++)
      if (4 * i < m) _mm512_store_si512(out + (b / 4 + i) * L, x[i]);
  }
  widen(least, largest, all, table, codes->e8m0);
  if (!codes->e8m0) return all_linear(all, codes);
  return !_mm512_cmpeq_epi8_mask(all.high, ones) && least_byte(all.low); /* no NaN, and nothing below the normal numbers */
}
