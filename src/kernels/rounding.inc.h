/* Rounds magnitudes to a format in lanes: finds codes under each rounding, and the values of codes. Part of stages.inc.h. */

/* Adding the power of two whose last place is one step of the format rounds to that step, ties to even. */
INLINE vi nearest(vi a, const mx_stage_encode *e) {
  const int up = 23 - e->man_bits;
  const vi exponent = vi_and(vi_max(a, vi_set(e->min_normal)), vi_set(0x7F800000)), magic = vi_add(exponent, vi_set(up << 23));
  const vi steps = vi_sub(vf_bits(vf_add(vi_float(a), vi_float(magic))), magic);
  return vi_add(vi_srl(vi_sub(exponent, vi_set(e->min_normal)), up), steps);
}

typedef struct split {
  vi significand, shift, base; /* |y| = significand / 2^shift steps above base */
} split;

INLINE split split_of(vi a, const mx_stage_encode *e) {
  const vi field = vi_srl(a, 23), least = vi_set(e->min_normal >> 23), one = vi_set(1);
  const vi E = vi_max(field, least);
  split s;
  s.significand = vi_or(vi_and(a, vi_set(0x7FFFFF)), vi_blend(vi_gt(field, vi_set(0)), vi_set(0x800000), vi_set(0)));
  s.shift = vi_add(vi_sub(E, vi_max(field, one)), vi_set(23 - e->man_bits));
  s.base = vi_sll(vi_sub(E, least), e->man_bits);
  return s;
}

INLINE vi biased(vi a, vi negative, const mx_stage_encode *e) {
  split s = split_of(a, e);
  const vi one = vi_set(1), sh = vi_min(s.shift, vi_set(31)), half = vi_sllv(one, vi_sub(sh, one));
  vi add;
  switch (e->round) {
  case MX_ROUND_RNA:
    add = half;
    break;
  case MX_ROUND_RTZ_TIE:
    add = vi_sub(half, one);
    break;
  case MX_ROUND_RTP:
  case MX_ROUND_RTN: {
    const vi all = vi_sub(vi_add(half, half), one);
    const vm down = vi_eq(negative, vi_set(0));
    add = e->round == MX_ROUND_RTP ? vi_blend(down, all, vi_set(0)) : vi_blend(down, vi_set(0), all);
    break;
  }
  default:
    add = vi_set(0);
  }
  return vi_add(s.base, vi_srlv(vi_add(s.significand, add), sh));
}

/* For random integers whose last bit is above the last bit of the number, and numbers that are not subnormal in binary32 (those give 0
 * anyway). */
INLINE vi stochastic_simply(vi a, vi word, const mx_stage_encode *e) {
  const int fast = e->sr_mode == MX_SR_FAST, keep = e->sr_bits + fast;
  const vi above = vi_sub(vi_srl(a, 23), vi_set(e->min_normal >> 23)), normal = vi_max(above, vi_set(0));
  const vi significand = vi_or(vi_and(a, vi_set(0x7FFFFF)), vi_set(0x800000));
  const vi drop = vi_add(vi_sub(normal, above), vi_set(23 - e->man_bits - keep));
  const vi random = vi_or(vi_srl(word, 32 - keep), vi_set(fast)); /* b, or 2 b + 1 */
  return vi_add(vi_sll(normal, e->man_bits), vi_srl(vi_add(vi_srlv(significand, drop), random), keep));
}

INLINE vi stochastic(vi a, vi word, const mx_stage_encode *e) {
  if (e->sr_simple) return stochastic_simply(a, word, e);
  const split s = split_of(a, e);
  const vi one = vi_set(1), sh = vi_min(s.shift, vi_set(31));
  const vi steps = vi_srlv(s.significand, sh), rest = vi_sub(s.significand, vi_sllv(steps, sh));
  const vi b = vi_srl(word, 32 - e->sr_bits);
  const int keep = e->sr_mode == MX_SR_FAST ? e->sr_bits + 1 : e->sr_bits;
  const vi drop = vi_sub(s.shift, vi_set(keep)), none = vi_set(0);
  vi d = vi_blend(vi_gt(none, drop), vi_sllv(rest, vi_sub(none, drop)), vi_srlv(rest, drop));
  vi sum;
  if (e->sr_mode == MX_SR_FAST)
    sum = vi_add(d, vi_add(vi_add(b, b), one));
  else {
    if (e->sr_mode != MX_SR_FASTEST) {
      const vi low = vi_sub(rest, vi_sllv(d, drop)), middle = vi_sllv(one, vi_sub(drop, one));
      const vi odd = vi_and(d, one), tie_up = e->sr_mode == MX_SR_ODD ? vi_sub(one, odd) : odd;
      const vm more = vm_and(vi_gt(drop, none), vi_gt(vi_add(vi_add(low, low), tie_up), vi_add(middle, middle)));
      /* from drop = 32 on the rest is below a quarter of a unit, and 2^drop would not fit */
      d = vi_add(d, vi_blend(vm_and(more, vi_gt(vi_set(30), drop)), one, none));
    }
    sum = vi_add(d, b);
  }
  return vi_add(s.base, vi_add(steps, vi_srl(sum, keep)));
}

INLINE vf without_negative_zero(vf y) { return vf_add(y, vf_set(0)); } /* -0 + 0 is +0 */

/* The complete code under MX_PLAIN_*. */
INLINE vi plain_code(vf y, const mx_stage_encode *e, const int plain) {
  if (plain == MX_PLAIN_DROP) y = without_negative_zero(y);
  const vi bits = vf_bits(y), a = vi_min(vi_and(bits, vi_set(0x7FFFFFFF)), vi_set(e->big));
  return vi_or(vi_min(nearest(a, e), vi_set(e->max_code)), vi_srl(vi_and(bits, vi_set(INT32_MIN)), e->sign_shift));
}

/* Rounds an ordinary y to the nearest bfloat16 or binary16, subnormals of the type included. */
INLINE vf to_dtype(vf y, int dtype) {
  const vi bits = vf_bits(y), one = vi_set(1);
  if (dtype == MX_INPUT_DTYPE_BFLOAT16) {
    const vi up = vi_add(vi_and(vi_srl(bits, 16), one), vi_set(0x7FFF)); /* a NaN from 0 / 0 or 0 * Inf stays a NaN */
    return vi_float(vi_and(vi_add(bits, up), vi_set((int32_t)0xFFFF0000)));
  }
  const vi a = vi_min(vi_and(bits, vi_set(0x7FFFFFFF)), vi_set(160 << 23)),
           sign = vi_and(bits, vi_set(INT32_MIN)); /* the limit is far beyond 2^16 */
  const vi magic = vi_add(vi_and(vi_max(a, vi_set(113 << 23)), vi_set(0x7F800000)), vi_set(13 << 23));
  const vi rounded = vi_or(vf_bits(vf_sub(vf_add(vi_float(a), vi_float(magic)), vi_float(magic))), sign);
  return vi_float(vi_blend(vi_gt(vi_and(bits, vi_set(0x7FFFFFFF)), vi_set(0x7F800000)), bits, rounded));
}

/* What a magnitude past the largest wraps to (elem.overflow=wrap_negzero): it is rounded in the steps of the last binade and to bfloat16,
 * and then cut. */
INLINE vi wrapped(vi a, const mx_stage_encode *e) {
  const vf grid = vf_set(e->wrap_grid), y = vi_float(a), on = vf_blend(vf_lt(y, grid), vf_sub(vf_add(y, grid), grid), y);
  const vi bits = vi_sub(vf_bits(to_dtype(on, MX_INPUT_DTYPE_BFLOAT16)), vi_set(e->min_normal - (1 << 23)));
  return vi_and(vi_srl(bits, 23 - e->man_bits), vi_set(e->wrap));
}

/* The code of y with its sign. word: random bits. */
INLINE vi code_of(vf y, vi word, const mx_stage_encode *e, int way) {
  const vi bits = vf_bits(y), zero = vi_set(0), top = vi_set(INT32_MIN);
  vi a = vi_and(bits, vi_set(0x7FFFFFFF)), sign = vi_and(bits, top);
  const vm is_zero = vi_eq(a, zero);
  const vi past = e->wrap ? vi_or(wrapped(a, e), vi_srl(sign, e->sign_shift)) : zero;
  a = vi_min(a, vi_set(e->big));
  vi m;
  if (way == MX_WAY_NEAREST)
    m = nearest(a, e);
  else if (way == MX_WAY_BIASED)
    m = biased(a, sign, e);
  else
    m = stochastic(a, word, e);
  if (e->f32_tie >= 0) m = vi_blend(vi_eq(a, vi_set(e->f32_tie - 1)), vi_set(1), m);
  const vi unbounded = m;
  if (e->over_code == e->max_code && e->over_negative == e->max_code)
    m = vi_min(m, vi_set(e->max_code));
  else
    m = vi_blend(vi_gt(m, vi_set(e->max_code)), vi_blend(vi_gt(zero, sign), vi_set(e->over_negative), vi_set(e->over_code)), m);
  if (e->integer) {
    const vi flip = vi_sub(zero, vi_srl(sign, 31));
    return vi_and(vi_sub(vi_xor(m, flip), flip), vi_set(0xFF));
  }
  if (e->zero_sign == MX_ZERO_SIGN_DROP_INPUT)
    sign = vi_blend(is_zero, zero, sign);
  else if (e->zero_sign == MX_ZERO_SIGN_DROP_ALL)
    sign = vi_blend(vi_eq(m, zero), zero, sign);
  else if (e->zero_sign == MX_ZERO_SIGN_FORCE)
    sign = vi_blend(vi_gt(bits, zero), zero, top);
  const vi code = vi_or(m, vi_srl(sign, e->sign_shift));
  return e->wrap ? vi_blend(vi_gt(unbounded, vi_set(e->max_code)), past, code) : code;
}

/* The value of a magnitude code. */
INLINE vf magnitude_value(vi m, const mx_stage_encode *e) {
  const vi normal = vi_add(vi_sll(m, 23 - e->man_bits), vi_set(e->min_normal - (1 << 23)));
  const vf step = vi_float(vi_set(e->min_normal - (e->man_bits << 23)));
  return vf_blend(vi_gt(vi_set(1 << e->man_bits), m), vf_mul(vi_convert(m), step), vi_float(normal));
}

/* elem.round=scan_x (for scan_y u is 1 and x is y): of the two values next to x / u, takes the one whose product with u is nearer to x,
 * where distances are rounded once to binary32; of equal ones, the first in the order of codes. If the quotient rounds to a value, x / u is
 * nearer to it than to any other. e rounds toward zero. far: more than two may be equal, and the first of them is taken. */
INLINE vi scanned_code(vf x, vf u, const mx_stage_encode *e, const int far) {
  const vi zero = vi_set(0), one = vi_set(1), sign = vi_and(vf_bits(x), vi_set(INT32_MIN));
  const vm negative = vi_gt(zero, sign);
  const vi most = e->integer ? vi_blend(negative, vi_set(e->max_code + 1), vi_set(e->max_code)) : vi_set(e->max_code);
  const vi below = vi_min(biased(vi_min(magnitude_of(vf_div(x, u)), vi_set(e->big)), zero, e), most), above = vi_min(vi_add(below, one), most);
  const vf from = vi_float(vi_xor(magnitude_of(x), vi_set(INT32_MIN))); /* -|x| */
  const vi d_below = magnitude_of(vf_fma(magnitude_value(below, e), u, from)),
           d_above = magnitude_of(vf_fma(magnitude_value(above, e), u, from));
  vm up = vi_gt(d_below, d_above);
  if (e->integer) up = vm_or(up, vm_and(vm_and(vi_eq(d_below, d_above), negative), vi_gt(below, zero))); /* negative codes begin with -128 */
  vi m = vi_blend(up, above, below);
  if (far) { /* counts the magnitudes that are further away */
    const vi d = vi_min(d_below, d_above);
    vi first = zero;
    for (int step = 64; step; step >>= 1) {
      const vi middle = vi_min(vi_add(first, vi_set(step - 1)), m);
      const vm further = vi_gt(magnitude_of(vf_fma(magnitude_value(middle, e), u, from)), d);
      first = vi_blend(further, vi_add(first, vi_set(step)), first);
    }
    if (e->integer) first = vi_blend(vm_and(negative, vi_gt(first, zero)), m, first);
    m = first;
  }
  if (e->integer) {
    const vi flip = vi_sub(zero, vi_srl(sign, 31));
    return vi_and(vi_sub(vi_xor(m, flip), flip), vi_set(0xFF));
  }
  return vi_or(m, vi_blend(vi_gt(m, zero), vi_srl(sign, e->sign_shift), zero));
}

INLINE vi code_by(vf y, vi word, const mx_stage_encode *e) {
  if (e->way == MX_WAY_NEAREST) return code_of(y, word, e, MX_WAY_NEAREST);
  if (e->way == MX_WAY_BIASED) return code_of(y, word, e, MX_WAY_BIASED);
  return code_of(y, word, e, MX_WAY_SR);
}
