/* Aligns the terms of one group with AVX-512, sixteen products at a time, the even and the odd ones each as eight of 64 bits. fused.c does
 * the same one product at a time, and tests compare the two. */
#include "internal.h"

#include <immintrin.h>

typedef __m512i vec;

/* The lanes of those elements q .. q+15 that exist and are wanted. */
static inline __mmask16 lanes_of(const mma_terms *t, size_t q, unsigned which) {
  return (__mmask16)((t->n - q >= 16 ? 0xFFFF : (1u << (t->n - q)) - 1) & which);
}

static const unsigned wanted[] = {[MMA_TERMS_ALL] = 0xFFFF, [MMA_TERMS_EVEN] = 0x5555, [MMA_TERMS_ODD] = 0xAAAA};

int mxi_mma_terms_top_avx512(const mma_terms *t, int which) {
  vec top = _mm512_set1_epi32(INT32_MIN);
  for (size_t q = 0; q < t->n; q += 16) {
    const __mmask16 m = lanes_of(t, q, wanted[which]);
    const vec e = _mm512_add_epi32(_mm512_maskz_loadu_epi32(m, t->exp_a + q), _mm512_maskz_loadu_epi32(m, t->exp_b + q));
    top = _mm512_mask_max_epi32(top, m, top, e);
  }
  return _mm512_reduce_max_epi32(top);
}

/* p * 2^-shift, cut: mma_cut() in eight lanes. Counts of 64 or more, which include negative ones, shift everything out. */
static inline __attribute__((always_inline)) vec cut(vec p, vec shift, const int mode) {
  const vec zero = _mm512_setzero_si512(), one = _mm512_set1_epi64(1), back = _mm512_sub_epi64(zero, shift);
  const __mmask8 right = _mm512_cmpgt_epi64_mask(shift, zero);
  if (mode == MX_ACC_ALIGN_RD) return _mm512_mask_srav_epi64(_mm512_sllv_epi64(p, back), right, p, shift);
  const vec sign = _mm512_srai_epi64(p, 63), magnitude = _mm512_sub_epi64(_mm512_xor_si512(p, sign), sign);
  vec kept = _mm512_srlv_epi64(magnitude, shift);
  if (mode == MX_ACC_ALIGN_RNE) { /* adds half of the last place, minus one if that place is even; past 63 places nothing is left */
    const vec half = _mm512_sllv_epi64(one, _mm512_sub_epi64(shift, one));
    const vec more = _mm512_add_epi64(_mm512_sub_epi64(half, one), _mm512_and_si512(kept, one));
    kept = _mm512_mask_srlv_epi64(kept, right, _mm512_add_epi64(magnitude, more), shift);
  }
  kept = _mm512_mask_sllv_epi64(kept, (__mmask8)~right, magnitude, back);
  return _mm512_sub_epi64(_mm512_xor_si512(kept, sign), sign);
}

static inline __attribute__((always_inline)) int64_t sum(const mma_terms *t, int which, int down, const int mode) {
  vec all = _mm512_setzero_si512();
  for (size_t q = 0; q < t->n; q += 16) {
    const __mmask16 m = lanes_of(t, q, wanted[which]); /* other elements have the product 0 */
    const vec a = _mm512_maskz_loadu_epi32(m, t->sig_a + q), b = _mm512_maskz_loadu_epi32(m, t->sig_b + q);
    const vec e = _mm512_add_epi32(_mm512_maskz_loadu_epi32(m, t->exp_a + q), _mm512_maskz_loadu_epi32(m, t->exp_b + q));
    const vec shift = _mm512_sub_epi32(_mm512_set1_epi32(down), e);
    if (which != MMA_TERMS_ODD)
      all = _mm512_add_epi64(all, cut(_mm512_mul_epi32(a, b), _mm512_srai_epi64(_mm512_slli_epi64(shift, 32), 32), mode));
    if (which != MMA_TERMS_EVEN)
      all =
          _mm512_add_epi64(all, cut(_mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32)), _mm512_srai_epi64(shift, 32), mode));
  }
  return _mm512_reduce_add_epi64(all);
}

int64_t mxi_mma_terms_sum_avx512(const mma_terms *t, int which, int down, int mode) {
  return mode == MX_ACC_ALIGN_RZ   ? sum(t, which, down, MX_ACC_ALIGN_RZ)
         : mode == MX_ACC_ALIGN_RD ? sum(t, which, down, MX_ACC_ALIGN_RD)
                                   : sum(t, which, down, MX_ACC_ALIGN_RNE);
}
