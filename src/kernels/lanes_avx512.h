/* Sixteen encodings at once: lanes.h in AVX-512. */
#ifndef MX_KERNELS_LANES_AVX512_H
#define MX_KERNELS_LANES_AVX512_H

#include <immintrin.h>

#include "kernels/lanes.h"

static inline __attribute__((always_inline)) __m512i mx_pick(__mmask16 negative, const int32_t both[2]) {
  return _mm512_mask_blend_epi32(negative, _mm512_set1_epi32(both[0]), _mm512_set1_epi32(both[1]));
}

/* Magnitude codes of finite numbers, not yet held to the largest. */
static inline __attribute__((always_inline)) __m512i mx_magnitude(const mx_lanes *l, __m512i bits, const int round) {
  const __m512i one = _mm512_set1_epi32(1), zero = _mm512_setzero_si512();
  const __m512i a = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF)), e = _mm512_srli_epi32(a, 23);
  const __m512i below = _mm512_sub_epi32(_mm512_set1_epi32(l->emin), e);
  /* 25 places are enough: then everything is below one half, and still something. */
  const __m512i shift =
      _mm512_min_epi32(_mm512_add_epi32(_mm512_max_epi32(below, zero), _mm512_set1_epi32(23 - l->man)), _mm512_set1_epi32(25));
  __m512i base = l->fixed ? zero : _mm512_slli_epi32(_mm512_max_epi32(_mm512_sub_epi32(zero, below), zero), (unsigned)l->man);
  if (l->exp) base = _mm512_sub_epi32(base, _mm512_set1_epi32(1 << l->man)); /* EXP: the hidden bit is no step */
  /* A binary32 subnormal gets a hidden bit that it lacks; every format here is far above it. */
  const __m512i s = _mm512_ternarylogic_epi32(a, _mm512_set1_epi32(0x7FFFFF), _mm512_set1_epi32(0x800000), 0xEA);
  const __m512i half = _mm512_sllv_epi32(one, _mm512_sub_epi32(shift, one));
  __m512i more = zero;
  if (round == MX_ROUND_RNE)
    more = _mm512_add_epi32(_mm512_sub_epi32(half, one), _mm512_and_si512(_mm512_add_epi32(_mm512_srlv_epi32(s, shift), base), one));
  else if (round == MX_ROUND_RNA)
    more = half;
  else if (round == MX_ROUND_RTZ_TIE)
    more = _mm512_sub_epi32(half, one);
  else if (round == MX_ROUND_RTP || round == MX_ROUND_RTN) {
    const __mmask16 negative = _mm512_movepi32_mask(bits);
    more = _mm512_maskz_sub_epi32(round == MX_ROUND_RTN || !l->sign ? negative : (__mmask16)~negative, _mm512_slli_epi32(half, 1), one);
    if (!l->sign && !l->negate) more = round == MX_ROUND_RTP ? _mm512_sub_epi32(_mm512_slli_epi32(half, 1), one) : zero;
    if (l->negate) more = _mm512_maskz_sub_epi32(round == MX_ROUND_RTN ? negative : (__mmask16)~negative, _mm512_slli_epi32(half, 1), one);
  }
  __m512i code = _mm512_add_epi32(base, _mm512_srlv_epi32(_mm512_add_epi32(s, more), shift));
  if (l->exp) code = _mm512_mask_mov_epi32(code, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(l->flush)), zero);
  if (l->fixed) code = _mm512_mask_mov_epi32(code, _mm512_cmpge_epi32_mask(e, _mm512_set1_epi32(128)), _mm512_set1_epi32(l->max_code + 1));
  return _mm512_mask_mov_epi32(code, _mm512_testn_epi32_mask(a, a), zero);
}

/* Whole codes of any numbers, NaN and Inf among them. */
static inline __attribute__((always_inline)) __m512i mx_encode_lanes(const mx_lanes *l, __m512i bits, const int round) {
  const __mmask16 negative = _mm512_movepi32_mask(bits);
  const __m512i a = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF)), inf = _mm512_set1_epi32(0x7F800000);
  const __m512i mag = mx_magnitude(l, bits, round);
  __m512i code = _mm512_mask_or_epi32(mag, negative, mag, _mm512_set1_epi32(l->sign));
  if (l->negate) code = _mm512_mask_sub_epi32(code, negative, _mm512_setzero_si512(), code);
  const __mmask16 none = _mm512_testn_epi32_mask(mag, mag), over = _mm512_cmpgt_epi32_mask(mag, _mm512_set1_epi32(l->max_code));
  const __mmask16 far = _mm512_cmpge_epi32_mask(a, inf);
  code = _mm512_mask_mov_epi32(code, over, mx_pick(negative, l->over));
  code = _mm512_mask_mov_epi32(code, none, mx_pick(negative, l->tiny));
  code = _mm512_mask_mov_epi32(code, _mm512_testn_epi32_mask(a, a), mx_pick(negative, l->zero));
  if (far) {
    code = _mm512_mask_mov_epi32(code, far, mx_pick(negative, l->inf));
    code = _mm512_mask_mov_epi32(code, _mm512_cmpgt_epi32_mask(a, inf), mx_pick(negative, l->nan));
  }
  return code;
}

/* The same for mx_lanes.plain and finite numbers below 2^100. A power of two that puts the format's last place at the end of the significand is added:
 * the processor rounds, and the steps are the difference of the bits. */
static inline __attribute__((always_inline)) __m512i mx_encode_plain(const mx_lanes *l, __m512i bits, const int drop) {
  if (drop) bits = _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(bits), _mm512_setzero_ps())); /* -0 + 0 is +0 */
  const __m512i a = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF)), least = _mm512_set1_epi32(l->emin << 23);
  const __m512i binade = _mm512_max_epi32(_mm512_and_si512(a, _mm512_set1_epi32(0x7F800000)), least);
  const __m512i magic = _mm512_add_epi32(binade, _mm512_set1_epi32((23 - l->man) << 23));
  const __m512i sum = _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(magic)));
  const __m512i base = _mm512_srli_epi32(_mm512_sub_epi32(binade, least), (unsigned)(23 - l->man));
  const __m512i code = _mm512_min_epi32(_mm512_add_epi32(base, _mm512_sub_epi32(sum, magic)), _mm512_set1_epi32(l->max_code));
  const __m512i top = _mm512_srli_epi32(bits, (unsigned)l->sign_shift);
  return _mm512_ternarylogic_epi32(code, top, _mm512_set1_epi32(l->sign), 0xF8);
}

/* The rounding as a constant, so that the compiler drops what it does not need. */
#define MX_BY_ROUND(ROUND, DO)                                                                                                                 \
  switch (ROUND) {                                                                                                                             \
  case MX_ROUND_RNE:                                                                                                                           \
    DO(MX_ROUND_RNE);                                                                                                                          \
    break;                                                                                                                                     \
  case MX_ROUND_RNA:                                                                                                                           \
    DO(MX_ROUND_RNA);                                                                                                                          \
    break;                                                                                                                                     \
  case MX_ROUND_RTZ_TIE:                                                                                                                       \
    DO(MX_ROUND_RTZ_TIE);                                                                                                                      \
    break;                                                                                                                                     \
  case MX_ROUND_RTZ:                                                                                                                           \
    DO(MX_ROUND_RTZ);                                                                                                                          \
    break;                                                                                                                                     \
  case MX_ROUND_RTP:                                                                                                                           \
    DO(MX_ROUND_RTP);                                                                                                                          \
    break;                                                                                                                                     \
  default:                                                                                                                                     \
    DO(MX_ROUND_RTN);                                                                                                                          \
    break;                                                                                                                                     \
  }

#endif
