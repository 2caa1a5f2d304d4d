/* Encodes arrays of single values over the lanes of vectors_*.h, in the integer arithmetic of lanes.h. The including file gives its name in
 * KERNEL. */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE vi pick(vm negative, const int32_t both[2]) { return vi_blend(negative, vi_set(both[1]), vi_set(both[0])); }

/* The magnitude codes of finite numbers, not yet limited to the largest code. */
INLINE vi magnitude(const mx_lanes *l, vi a, vm negative, const int round) {
  const vi one = vi_set(1), zero = vi_set(0);
  /* This gives a binary32 subnormal a hidden bit that it lacks, which does not matter to most formats, as they are far above such numbers. */
  vi e = vi_srl(a, 23), s = vi_or(vi_and(a, vi_set(0x7FFFFF)), vi_set(0x800000));
  if (l->low) { /* the other formats see the normal number that it would be with a longer exponent */
    const vm small = vi_eq(e, zero);
    const vi normal = vf_bits(vi_convert(a));
    e = vi_blend(small, vi_sub(vi_srl(normal, 23), vi_set(149)), e);
    s = vi_blend(small, vi_or(vi_and(normal, vi_set(0x7FFFFF)), vi_set(0x800000)), s);
  }
  const vi below = vi_sub(vi_set(l->emin), e);
  /* 25 places are enough, since everything is then below one half but not zero. */
  const vi shift = vi_min(vi_add(vi_max(below, zero), vi_set(23 - l->man)), vi_set(25));
  vi base = l->fixed ? zero : vi_sll(vi_max(vi_sub(zero, below), zero), l->man);
  if (l->exp) base = vi_sub(base, vi_set(1 << l->man)); /* EXP: the hidden bit does not count as a step */
  const vi half = vi_sllv(one, vi_sub(shift, one)), all = vi_sub(vi_add(half, half), one);
  vi more = zero;
  if (round == MX_ROUND_RNE)
    more = vi_add(vi_sub(half, one), vi_and(vi_add(vi_srlv(s, shift), base), one));
  else if (round == MX_ROUND_RNA)
    more = half;
  else if (round == MX_ROUND_RTZ_TIE)
    more = vi_sub(half, one);
  else if (round == MX_ROUND_RTP)
    more = l->sign || l->negate ? vi_blend(negative, zero, all) : all;
  else if (round == MX_ROUND_RTN)
    more = l->sign || l->negate ? vi_blend(negative, all, zero) : zero;
  vi code = vi_add(base, vi_srlv(vi_add(s, more), shift));
  if (l->exp) code = vi_blend(vi_gt(vi_set(l->flush), e), zero, code);
  if (l->fixed) code = vi_blend(vi_gt(e, vi_set(127)), vi_set(l->max_code + 1), code);
  return vi_blend(vi_eq(a, zero), zero, code);
}

/* The complete codes of any numbers, including NaN and Inf. */
INLINE vi encoded(const mx_lanes *l, vi bits, const int round) {
  const vi a = vi_and(bits, vi_set(0x7FFFFFFF)), inf = vi_set(0x7F800000), zero = vi_set(0);
  const vm negative = vi_gt(zero, bits);
  const vi mag = magnitude(l, a, negative, round);
  vi code = vi_or(mag, vi_blend(negative, vi_set(l->sign), zero));
  if (l->negate) code = vi_blend(negative, vi_sub(zero, code), code);
  code = vi_blend(vi_gt(mag, vi_set(l->max_code)), pick(negative, l->over), code);
  code = vi_blend(vi_eq(mag, zero), pick(negative, l->tiny), code);
  code = vi_blend(vi_eq(a, zero), pick(negative, l->zero), code);
  code = vi_blend(vi_eq(a, inf), pick(negative, l->inf), code);
  return vi_blend(vi_gt(a, inf), pick(negative, l->nan), code);
}

INLINE size_t run(void *out, const float *x, size_t n, const mx_lanes *l, int wide, const int round) {
  const mx_lanes lanes = *l; /* a copy, so that the compiler knows that stores to out do not change it */
  const vi byte = vi_set(255), word = vi_set(0xFFFF);
  size_t i = 0;
  for (; n - i >= 4 * W; i += 4 * W) {
    vi c[4];
    for (size_t k = 0; k < 4; k++) c[k] = vi_and(encoded(&lanes, vf_bits(vf_load(x + i + k * W)), round), wide ? word : byte);
    if (wide) {
      vi_store_words((uint16_t *)out + i, c);
      vi_store_words((uint16_t *)out + i + 2 * W, c + 2);
    } else
      vi_store_bytes((uint8_t *)out + i, c);
  }
  return i;
}

#ifndef PLAINLY
#define PLAINLY(out, x, n, lanes) plainly(out, x, n, lanes)

/* For mx_lanes.plain: adding the power of two whose last place is one step rounds to that step. Handles runs without NaN and Inf. */
static size_t plainly(uint8_t *out, const float *x, size_t n, const mx_lanes *lanes) {
  enum { RUN = 32 * W };
  const mx_lanes l = *lanes;
  const int up = 23 - l.man, shift = __builtin_clz((unsigned)l.sign);
  const vi least = vi_set(l.emin << 23), most = vf_bits(vf_set(l.most)), rest = vi_set(0x7FFFFFFF);
  size_t i = 0;
  for (; n - i >= 4 * W; i += n - i < RUN ? (n - i) / (4 * W) * (4 * W) : RUN) {
    const size_t here = n - i < RUN ? (n - i) / (4 * W) * (4 * W) : RUN;
    vi largest = vi_set(0);
    for (size_t k = 0; k < here; k += W) largest = vi_max(largest, vi_and(vf_bits(vf_load(x + i + k)), rest));
    if (vi_hmax(largest) >= 0x7F800000) {
      run(out + i, x + i, here, &l, 0, MX_ROUND_RNE);
      continue;
    }
    for (size_t k = 0; k < here; k += 4 * W) {
      vi c[4];
      for (size_t j = 0; j < 4; j++) {
        const vi bits = vf_bits(vf_load(x + i + k + j * W)), a = vi_min(vi_and(bits, rest), most);
        const vi exponent = vi_and(vi_max(a, least), vi_set(0x7F800000)), magic = vi_add(exponent, vi_set(up << 23));
        const vi steps = vi_sub(vf_bits(vf_add(vi_float(a), vi_float(magic))), magic);
        const vi code = vi_add(vi_srl(vi_sub(exponent, least), up), steps);
        c[j] = vi_or(code, vi_srl(vi_and(bits, vi_set(INT32_MIN)), shift));
      }
      vi_store_bytes(out + i + k, c);
    }
  }
  return i;
}
#endif

size_t KERNEL(void *out, const float *x, size_t n, const mx_lanes *lanes, int wide) {
  if (lanes->plain && !wide) return PLAINLY(out, x, n, lanes);
  switch (lanes->round) {
  case MX_ROUND_RNE:
    return run(out, x, n, lanes, wide, MX_ROUND_RNE);
  case MX_ROUND_RNA:
    return run(out, x, n, lanes, wide, MX_ROUND_RNA);
  case MX_ROUND_RTZ_TIE:
    return run(out, x, n, lanes, wide, MX_ROUND_RTZ_TIE);
  case MX_ROUND_RTP:
    return run(out, x, n, lanes, wide, MX_ROUND_RTP);
  case MX_ROUND_RTN:
    return run(out, x, n, lanes, wide, MX_ROUND_RTN);
  default:
    return run(out, x, n, lanes, wide, MX_ROUND_RTZ);
  }
}
