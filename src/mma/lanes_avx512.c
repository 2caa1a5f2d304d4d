/* Computes one row by 16 columns with AVX-512, with an output in each lane. fused.c does the same one output at a time, and tests compare
 * the two. */
#include "lanes.h"

#include <immintrin.h>

typedef __m512i vec;
typedef const mma_lanes_plan *plan_p;

static inline vec all(int x) { return _mm512_set1_epi32(x); }
static inline vec all64(int64_t x) { return _mm512_set1_epi64(x); }
static inline vec load(const void *x) { return _mm512_load_si512(x); }

/* The decomposed accumulator. Lanes with nothing in them (some = 0) have the exponent of a term that takes no part. */
typedef struct c_lanes {
  vec sig, exp, bits; /* sig: magnitude */
  __mmask16 negative, special;
} c_lanes;

static inline c_lanes take_apart(plan_p p, vec bits, int some) {
  c_lanes c = {_mm512_setzero_si512(), all(MMA_NO_EXP), bits, 0, 0};
  if (!some) return c;
  const vec top = all((1 << (p->bits - 1 - p->man)) - 1);
  vec field = _mm512_and_si512(_mm512_srli_epi32(bits, (unsigned)p->man), top), one = all(1);
  __mmask16 normal = _mm512_test_epi32_mask(field, field);
  c.sig = _mm512_and_si512(bits, all((1 << p->man) - 1));
  c.sig = _mm512_mask_or_epi32(c.sig, normal, c.sig, all(1 << p->man));
  c.exp = _mm512_sub_epi32(_mm512_max_epi32(field, one), all(p->bias));
  c.exp = _mm512_mask_mov_epi32(c.exp, _mm512_testn_epi32_mask(c.sig, c.sig), all(p->zero_exp));
  c.negative = _mm512_test_epi32_mask(bits, all((int)(1u << (p->bits - 1))));
  c.special = _mm512_cmpeq_epi32_mask(field, top);
  return c;
}

/* Lanes whose accumulator was Inf or NaN keep it, and a NaN becomes the model's NaN. No product is special here. */
static inline vec keep_special(plan_p p, vec result, const c_lanes *c) {
  if (!c->special) return result;
  __mmask16 nan = _mm512_mask_test_epi32_mask(c->special, c->bits, all((1 << p->man) - 1));
  result = _mm512_mask_mov_epi32(result, c->special, c->bits);
  return _mm512_mask_mov_epi32(result, nan, all((int)p->nan));
}

static inline vec signed_by(vec magnitude, __mmask16 negative) {
  return _mm512_mask_sub_epi32(magnitude, negative, _mm512_setzero_si512(), magnitude);
}
static inline vec signed_by64(vec magnitude, __mmask8 negative) {
  return _mm512_mask_sub_epi64(magnitude, negative, _mm512_setzero_si512(), magnitude);
}

/* Makes the bits of D from the exponent and the significand, which has `keep` fraction bits or, after rounding, one more; the hidden bit
 * adds one to the exponent field. */
static inline vec assemble(plan_p p, vec top, vec q, __mmask16 there, __mmask16 negative) {
  __mmask16 over = there & _mm512_cmpgt_epi32_mask(top, all(p->exp_max));
  vec bits = _mm512_slli_epi32(_mm512_add_epi32(top, all(p->bias - 1)), (unsigned)p->man);
  bits = _mm512_maskz_add_epi32(there, bits, _mm512_slli_epi32(q, (unsigned)(p->man - p->keep)));
  bits = _mm512_mask_mov_epi32(_mm512_min_epu32(bits, all((int)p->inf)), over, all((int)p->inf));
  if (p->under == MX_ACC_UNDER_PLUS) negative &= _mm512_test_epi32_mask(bits, bits);
  return _mm512_mask_or_epi32(bits, negative, bits, all((int)(1u << (p->bits - 1))));
}

/* Rounds magnitudes u in units of 2^unit to the bits of D. */
static inline vec round_32(plan_p p, vec u, vec unit, __mmask16 negative) {
  vec top = _mm512_sub_epi32(_mm512_add_epi32(unit, all(31)), _mm512_lzcnt_epi32(u));
  top = _mm512_max_epi32(top, all(p->exp_min));
  vec down = _mm512_sub_epi32(_mm512_sub_epi32(top, unit), all(p->keep)), up = _mm512_sub_epi32(_mm512_setzero_si512(), down);
  vec q = _mm512_or_si512(_mm512_srlv_epi32(u, down), _mm512_sllv_epi32(u, up)); /* counts outside 0..31 give 0 */
  if (p->round == MX_ACC_OUT_RNE) {
    const vec one = all(1);
    __mmask16 cut = _mm512_cmpgt_epi32_mask(down, _mm512_setzero_si512());
    cut &= _mm512_cmple_epi32_mask(down, all(32));
    vec rest = _mm512_andnot_si512(_mm512_sllv_epi32(all(-1), down), u), half = _mm512_sllv_epi32(one, _mm512_sub_epi32(down, one));
    __mmask16 more = _mm512_cmpgt_epu32_mask(rest, half), tie = _mm512_cmpeq_epi32_mask(rest, half) & _mm512_test_epi32_mask(q, one);
    q = _mm512_mask_add_epi32(q, cut & (more | tie), q, one);
  }
  return assemble(p, top, q, _mm512_test_epi32_mask(u, u), negative);
}

/* The same for eight 64-bit magnitudes; returns exponents and significands in 64-bit lanes. */
static inline void round_64(plan_p p, vec u, vec unit, vec *top_out, vec *q_out) {
  vec top = _mm512_sub_epi64(_mm512_add_epi64(unit, all64(63)), _mm512_lzcnt_epi64(u));
  top = _mm512_max_epi64(top, all64(p->exp_min));
  vec down = _mm512_sub_epi64(_mm512_sub_epi64(top, unit), all64(p->keep)), up = _mm512_sub_epi64(_mm512_setzero_si512(), down);
  vec q = _mm512_or_si512(_mm512_srlv_epi64(u, down), _mm512_sllv_epi64(u, up));
  if (p->round == MX_ACC_OUT_RNE) {
    const vec one = all64(1);
    __mmask8 cut = _mm512_cmpgt_epi64_mask(down, _mm512_setzero_si512());
    cut &= _mm512_cmple_epi64_mask(down, all64(64));
    vec rest = _mm512_andnot_si512(_mm512_sllv_epi64(all64(-1), down), u), half = _mm512_sllv_epi64(one, _mm512_sub_epi64(down, one));
    __mmask8 more = _mm512_cmpgt_epu64_mask(rest, half), tie = _mm512_cmpeq_epi64_mask(rest, half) & _mm512_test_epi64_mask(q, one);
    q = _mm512_mask_add_epi64(q, cut & (__mmask8)(more | tie), q, one);
  }
  *top_out = top;
  *q_out = q;
}

static inline vec join_halves(__m256i low, __m256i high) { return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1); }
static inline __m256i half_of(vec x, int h) { return h ? _mm512_extracti64x4_epi64(x, 1) : _mm512_castsi512_si256(x); }

/* Rounds sixteen signed sums, given as eight and eight of 64 bits. */
static inline vec round_both(plan_p p, const vec sum[2], vec unit) {
  __m256i top[2], q[2];
  __mmask16 negative = 0, there = 0;
  for (int h = 0; h < 2; h++) {
    vec t, s, u = _mm512_abs_epi64(sum[h]);
    round_64(p, u, _mm512_cvtepi32_epi64(half_of(unit, h)), &t, &s);
    top[h] = _mm512_cvtepi64_epi32(t);
    q[h] = _mm512_cvtepi64_epi32(s);
    negative |= (__mmask16)(_mm512_movepi64_mask(sum[h]) << 8 * h);
    there |= (__mmask16)(_mm512_test_epi64_mask(u, u) << 8 * h);
  }
  return assemble(p, join_halves(top[0], top[1]), join_halves(q[0], q[1]), there, negative);
}

/* --- products of a group --- */

/* The largest exponent of the products first, first + step and so on. */
static inline vec largest(const int32_t *ea, const int32_t *eb, int first, int n, int step, vec most) {
#pragma GCC unroll 4
  for (int q = first; q < n; q += step) most = _mm512_max_epi32(most, _mm512_add_epi32(load(eb + q * MMA_LANES), all(ea[q])));
  return most;
}

/* The sum of the products, each cut toward zero; `base` is the largest exponent plus p->down. */
static inline vec sum_cut(const mma_lanes_row *a, const mma_columns *b, int k, int first, int n, int step, vec base) {
  vec sum = _mm512_setzero_si512(), minus = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int q = first; q < n; q += step) {
    vec product = _mm512_mullo_epi32(load(b->sig + (k + q) * MMA_LANES), all(a->sig[k + q]));
    vec down = _mm512_sub_epi32(_mm512_sub_epi32(base, all(a->exp[k + q])), load(b->exp + (k + q) * MMA_LANES));
    vec term = _mm512_srlv_epi32(_mm512_abs_epi32(product), down);
    sum = _mm512_add_epi32(sum, term);
    minus = _mm512_mask_add_epi32(minus, _mm512_movepi32_mask(product), minus, term);
  }
  return _mm512_sub_epi32(sum, _mm512_slli_epi32(minus, 1)); /* modulo 2^32, which is right since the sum fits into 31 bits and a sign */
}

/* join=in: the group and C, in two halves below 2^31 whose sum is below 2^32. */
static inline vec group_in(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int n, vec bits, int some) {
  c_lanes c = take_apart(p, bits, some);
  vec most = largest(a->exp + k, b->exp + k * MMA_LANES, 0, n, 1, c.exp);
  most = _mm512_max_epi32(most, all(p->floor));
  vec base = _mm512_add_epi32(most, all(p->down)), cut_c = _mm512_sub_epi32(_mm512_add_epi32(most, all(p->down_c)), c.exp);
  vec term_c = signed_by(_mm512_srlv_epi32(_mm512_slli_epi32(c.sig, (unsigned)p->up_c), cut_c), c.negative);
  vec one = sum_cut(a, b, k, 0, n / 2, 1, base), two = _mm512_add_epi32(sum_cut(a, b, k, n / 2, n, 1, base), term_c);
  /* floor((one + two) / 2) has the sign of the sum, which itself may need 33 bits */
  vec mean = _mm512_add_epi32(_mm512_srai_epi32(one, 1), _mm512_srai_epi32(two, 1));
  mean = _mm512_add_epi32(mean, _mm512_and_si512(_mm512_and_si512(one, two), all(1)));
  __mmask16 negative = _mm512_movepi32_mask(mean);
  vec magnitude = signed_by(_mm512_add_epi32(one, two), negative);
  return keep_special(p, round_32(p, magnitude, _mm512_sub_epi32(most, all(p->F)), negative), &c);
}

/* --- join=after --- */

static inline vec raise(plan_p p, vec exp) {
  return _mm512_mask_max_epi32(exp, _mm512_cmpgt_epi32_mask(exp, all(MMA_NO_EXP_SUM)), exp, all(p->floor));
}

/* Cuts 64-bit lanes by a right shift. */
static inline vec cut_64(plan_p p, vec x, vec down) {
  if (!p->join_rz) return _mm512_srav_epi64(x, down);
  return signed_by64(_mm512_srlv_epi64(_mm512_abs_epi64(x), down), _mm512_movepi64_mask(x));
}

static inline vec cut_32(plan_p p, vec x, vec down) {
  if (!p->join_rz) return _mm512_srav_epi32(x, down);
  return signed_by(_mm512_srlv_epi32(_mm512_abs_epi32(x), down), _mm512_movepi32_mask(x));
}

static inline vec sum_after(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int n, vec *exp) {
  const int32_t *ea = a->exp + k, *eb = b->exp + k * MMA_LANES;
  const vec none = all(2 * MMA_NO_EXP), down = all(p->down);
  if (!p->split) {
    *exp = raise(p, largest(ea, eb, 0, n, 1, none));
    return sum_cut(a, b, k, 0, n, 1, _mm512_add_epi32(*exp, down));
  }
  vec even = raise(p, largest(ea, eb, 0, n, 2, none)), odd = raise(p, largest(ea, eb, 1, n, 2, none));
  vec sum_even = sum_cut(a, b, k, 0, n, 2, _mm512_add_epi32(even, down)), sum_odd = sum_cut(a, b, k, 1, n, 2, _mm512_add_epi32(odd, down));
  *exp = _mm512_max_epi32(even, odd);
  return _mm512_add_epi32(cut_32(p, sum_even, _mm512_sub_epi32(*exp, even)), cut_32(p, sum_odd, _mm512_sub_epi32(*exp, odd)));
}

static inline vec group_after(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int n, vec bits, int some) {
  c_lanes c = take_apart(p, bits, some);
  vec exp, sum = sum_after(p, a, b, k, n, &exp), most = _mm512_max_epi32(exp, c.exp), both[2];
  vec far_s = _mm512_add_epi32(_mm512_sub_epi32(most, exp), all(p->sum_down)), below_c = _mm512_sub_epi32(most, c.exp);
  vec far_c = _mm512_add_epi32(below_c, all(p->c_down));
  if (p->c_drop != INT32_MAX) c.sig = _mm512_mask_mov_epi32(c.sig, _mm512_cmpgt_epi32_mask(below_c, all(p->c_drop)), _mm512_setzero_si512());
  vec sig = signed_by(c.sig, c.negative);
  for (int h = 0; h < 2; h++) {
    vec s = _mm512_slli_epi64(_mm512_cvtepi32_epi64(half_of(sum, h)), (unsigned)p->sum_up);
    vec t = _mm512_slli_epi64(_mm512_cvtepi32_epi64(half_of(sig, h)), (unsigned)p->c_up);
    s = cut_64(p, s, _mm512_cvtepi32_epi64(half_of(far_s, h)));
    t = cut_64(p, t, _mm512_cvtepi32_epi64(half_of(far_c, h)));
    both[h] = _mm512_add_epi64(_mm512_slli_epi64(s, (unsigned)p->sum_place), _mm512_slli_epi64(t, (unsigned)p->c_place));
  }
  return keep_special(p, round_both(p, both, _mm512_sub_epi32(most, all(p->join_bits))), &c);
}

/* --- sums of P products --- */

/* The exact sum of P byte products from element k on, times the significands of the scales, and its exponent. */
static inline vec presum(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int n, vec *exp) {
  vec sum = load(b->bias + k / p->P * MMA_LANES);
  for (int q = k; q < k + n; q += 4) {
    int32_t four;
    __builtin_memcpy(&four, a->bytes + q, 4);
    sum = _mm512_dpbusd_epi32(sum, all(four), load(b->bytes + q * MMA_LANES));
  }
  int at = k / a->block;
  *exp = _mm512_add_epi32(load(b->scale_exp + at * MMA_LANES), all(a->scale_exp[at]));
  sum = _mm512_mullo_epi32(sum, _mm512_mullo_epi32(load(b->scale_sig + at * MMA_LANES), all(a->scale_sig[at])));
  if (p->skip) *exp = _mm512_mask_mov_epi32(*exp, _mm512_testn_epi32_mask(sum, sum), all(MMA_NO_EXP));
  return sum;
}

static inline vec cut_term(vec magnitude, vec down, int up, __mmask8 negative) {
  return signed_by64(_mm512_srlv_epi64(_mm512_slli_epi64(magnitude, (unsigned)up), down), negative);
}

static inline vec group_presum(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int n, vec bits, int some) {
  c_lanes c = take_apart(p, bits, some);
  vec term[MMA_PRESUMS], exp[MMA_PRESUMS], most = c.exp, both[2];
  int count = 0;
  for (int q = 0; q < n; q += p->P, count++) {
    term[count] = presum(p, a, b, k + q, n - q < p->P ? n - q : p->P, &exp[count]);
    most = _mm512_max_epi32(most, exp[count]);
  }
  most = _mm512_max_epi32(most, all(p->floor));
  vec down_c = _mm512_add_epi32(_mm512_sub_epi32(most, c.exp), all(p->down_c));
  for (int h = 0; h < 2; h++)
    both[h] =
        cut_term(_mm512_cvtepu32_epi64(half_of(c.sig, h)), _mm512_cvtepi32_epi64(half_of(down_c, h)), p->up_c, (__mmask8)(c.negative >> 8 * h));
  for (int i = 0; i < count; i++) {
    vec down = _mm512_add_epi32(_mm512_sub_epi32(most, exp[i]), all(p->down)), magnitude = _mm512_abs_epi32(term[i]);
    __mmask16 negative = _mm512_movepi32_mask(term[i]);
    for (int h = 0; h < 2; h++)
      both[h] = _mm512_add_epi64(both[h], cut_term(_mm512_cvtepu32_epi64(half_of(magnitude, h)), _mm512_cvtepi32_epi64(half_of(down, h)), p->up,
                                                   (__mmask8)(negative >> 8 * h)));
  }
  return keep_special(p, round_both(p, both, _mm512_sub_epi32(most, all(p->F))), &c);
}

/* --- join=add: one ordinary addition in the type of D --- */

static inline vec add_f32(plan_p p, vec x, vec y) {
  __m512 sum = _mm512_add_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y));
  return _mm512_mask_mov_epi32(_mm512_castps_si512(sum), _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q), all((int)p->nan));
}

/* Binary32 has the 2p + 2 bits for which rounding twice to binary16 gives the same as rounding once. */
static inline vec add_f16(plan_p p, vec x, vec y) {
  __m512 sum = _mm512_add_ps(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(x)), _mm512_cvtph_ps(_mm512_cvtepi32_epi16(y)));
  vec bits = _mm512_cvtepu16_epi32(_mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  return _mm512_mask_mov_epi32(bits, _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q), all((int)p->nan));
}

static inline vec add(plan_p p, vec x, vec y) { return p->bits == 16 ? add_f16(p, x, y) : add_f32(p, x, y); }

/* --- the walk --- */

typedef vec group_fn(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int n, vec bits, int some);

static inline __attribute__((always_inline)) vec instruction(plan_p p, const mma_lanes_row *a, const mma_columns *b, int k, int end, vec bits,
                                                             int some, group_fn *one_group) {
  vec sum = bits;
  int there = p->add ? 0 : some;
  for (; k < end; k += p->L, there = 1) sum = one_group(p, a, b, k, end - k < p->L ? end - k : p->L, sum, there);
  return p->add && some ? add(p, sum, bits) : sum;
}

/* Rows alternate at every instruction: each row is a chain of dependent operations, and several chains side by side hide each other's
 * latency. */
static inline __attribute__((always_inline)) void walk(plan_p p, const mma_lanes_row *a, int rows, const mma_columns *b, int n, uint32_t *acc,
                                                       int some, group_fn *one_group) {
  for (int k = 0; k < n; k += p->k, some = 1)
    for (int r = 0; r < rows; r++) {
      vec bits = load(acc + r * MMA_LANES);
      bits = instruction(p, a + r, b, k, n - k < p->k ? n : k + p->k, bits, some, one_group);
      _mm512_store_si512(acc + r * MMA_LANES, bits);
    }
}

void mxi_mma_lanes_avx512(const mma_lanes_plan *p, const mma_lanes_row *a, int rows, const mma_columns *b, size_t n, uint32_t *acc, int some) {
  switch (p->kind) {
  case MMA_LANES_IN:
    walk(p, a, rows, b, (int)n, acc, some, group_in);
    break;
  case MMA_LANES_AFTER:
    walk(p, a, rows, b, (int)n, acc, some, group_after);
    break;
  default:
    walk(p, a, rows, b, (int)n, acc, some, group_presum);
    break;
  }
}
