/** Makes the code of an element from its block's scale: step 10 of SPEC 3.2, and SPEC 3.6 and 3.8. */
#ifndef MXD_ELEMENT_H
#define MXD_ELEMENT_H

#include "scale.h"

/* chain=exact: x P N / (S g), in the encode form x P S N / g, as elem.arith says; then input.dtype. */
MXH_DEVICE double mxd_scaled_exact(const mxd_plan &p, double s, float xf) {
  const mx_spec &k = p.spec;
  if (mxd_isnan(xf)) return mxd_widen(xf);
  const double pre = k.elem_prescale != 0 ? (double)k.elem_prescale : 1, x = (double)xf;
  double y;
  if (k.elem_arith == MX_ELEM_ARITH_EXACT) {
    /* Of several NaNs the first passes, in the order of the formula, and before any that a product makes. */
    const bool encode = k.scale_form == MX_SCALE_FORM_ENCODE;
    const double second = encode ? s : p.over, third = encode ? p.over : s;
    if (mxd_isnan(second) || mxd_isnan(third)) return mxd_nan_of(second, third);
    if (mxd_isnan(p.under)) return p.under;
    y = encode ? mxd_quotient(x * pre * s * p.over, p.under) : mxd_quotient(x * pre * p.over, s * p.under);
    if (mxd_isnan(y)) y = mxd_with_sign(y, true);
  } else {
    const float times = k.elem_prescale != 0 ? mxd_step('*', xf, k.elem_prescale) : xf;
    if (mxd_isnan(times)) return mxd_widen(times);
    if (mxd_isnan(s)) return s;
    const double t = (double)times;
    if (k.elem_arith == MX_ELEM_ARITH_DIV32)
      y = mxd_quotient(t, s);
    else if (k.elem_arith == MX_ELEM_ARITH_RECIP32)
      y = t * (double)(float)mxd_quotient(1, s);
    else
      y = t * s; /* MUL32 */
    y = mxd_isnan(y) ? mxd_with_sign(y, true) : (double)(float)y;
  }
  return mxd_to_dtype(y, k.input_dtype);
}

MXH_DEVICE double mxd_scaled(const mxd_plan &p, const mxd_scale &s, float x) {
  switch (s.how) {
  case MXD_AS_IS:
    return mxd_widen(x);
  case MXD_PLUS_ZERO:
    return 0;
  case MXD_TIMES_ZERO:
    return mxd_widen(mxd_step('*', x, 0));
  case MXD_SIGNED_ZERO:
    return mxd_isnan(x) ? mxd_widen(x) : mxd_with_sign(0, mxd_negative(x));
  case MXD_TIMES_FLT_MAX:
    return mxd_widen(mxd_step('*', x, MXD_FLT_MAX));
  default:
    break;
  }
  if (!p.uses_chain) return mxd_scaled_exact(p, s.used, x);
  float y = x;
  for (int i = 0; i < p.chain.element.n; i++) y = mxd_step((char)p.chain.element.op[i], y, s.factor[i]);
  return mxd_widen(y);
}

/* elem.round=scan_y and scan_x: the first code at the least distance; a NaN distance never wins. */
MXH_DEVICE uint32_t mxd_scan(const mxd_plan &p, float x, double y, double used) {
  uint32_t best = 0;
  float least = mxd_nanf(false);
  const bool scan_y = p.spec.elem_round == MX_ROUND_SCAN_Y;
  for (uint32_t c = 0; c < 1u << p.elem.bits; c++) {
    double v = mxd_decode(p.elem, c);
    float d;
    if (scan_y)
      d = mxd_abs((float)y - (float)v);
    else {
      const double product = v * used; /* exact */
      if (mxd_isinf((double)(float)product)) continue;
      d = mxd_abs((float)mxd_difference(product, (double)x));
    }
    if (mxd_isnan(d) || d >= least) continue; /* while `least` is NaN, any number replaces it */
    best = c;
    least = d;
  }
  return best;
}

/* The random integer of element `index`; given: the input tensor of integers, or NULL. */
MXH_DEVICE uint32_t mxd_element_random(const mxd_plan &p, uint64_t index, bool padding, mxh_ptr<const uint32_t> given) {
  const mx_spec &s = p.spec;
  if (s.elem_round != MX_ROUND_SR || padding) return 0;
  if (s.sr_source == MX_SR_SOURCE_GIVEN) return given[index];
  if (s.sr_source == MX_SR_SOURCE_PHILOX) return mxd_random(s.seed, MX_STREAM_ELEMENT, index) >> (32 - p.encode.sr_bits);
  uint32_t word = mxd_random(s.seed, MX_STREAM_ELEMENT, index / 2);
  return (index & 1 ? mxd_lfsr(word) : word) >> (32 - p.encode.sr_bits);
}

/* The code of the scaled value y. */
MXH_DEVICE uint32_t mxd_code(const mxd_plan &p, const mxd_scale &s, float x, double y, uint32_t random) {
  return p.spec.elem_round == MX_ROUND_SCAN_Y ? mxd_scan(p, x, y, s.used) : mxd_encode(p.elem, y, p.encode, random);
}

/* The code of x; *value is the value from which select computes its error. */
MXH_DEVICE uint32_t mxd_element(const mxd_plan &p, const mxd_scale &s, float x, uint32_t random, float *value) {
  const int round = p.spec.elem_round;
  uint32_t code;
  if (round == MX_ROUND_SCAN_X) {
    code = mxd_scan(p, x, 0, s.used);
    *value = mxd_narrow(mxd_decode(p.elem, code));
    return code;
  }
  const double y = mxd_scaled(p, s, x);
  code = mxd_code(p, s, x, y, random);
  if (p.spec.elem_overflow == MX_OVERFLOW_WRAP_NEGZERO && round != MX_ROUND_SCAN_Y) {
    const double r = mxd_isnan(y) ? y : mxd_past_largest(p.elem, y, p.encode, random);
    *value = mxd_isinf(r) ? mxd_nanf(true) : mxd_narrow(r);
  } else
    *value = mxd_narrow(mxd_decode(p.elem, code));
  if (p.uses_chain && p.chain.again.n && s.how == MXD_USED) {
    float q = mxd_narrow(mxd_decode(p.elem, code));
    for (int i = 0; i < p.chain.again.n; i++) q = mxd_step((char)p.chain.again.op[i], q, s.again[i]);
    code = mxd_code(p, s, x, mxd_widen(q), random);
    *value = mxd_narrow(mxd_decode(p.elem, code));
  }
  return code;
}

/* How far the code's value is from x, in binary32: SPEC 3.6. */
MXH_DEVICE float mxd_distance(const mxd_plan &p, const mxd_scale &s, float value, float x) {
  float v;
  if (p.uses_chain) {
    v = mxd_step('*', value, mxd_narrow(s.used));
    if (p.has_tensor_scale) v = mxd_step('/', mxd_step('*', v, p.amax), p.k);
  } else if (p.has_tensor_scale && p.spec.deq_arith == MX_DEQ_ARITH_TWO_STEP)
    v = mxd_step('*', mxd_narrow((double)value * s.used), mxd_narrow(mxd_quotient(p.under, p.over)));
  else if (p.has_tensor_scale && p.spec.deq_arith == MX_DEQ_ARITH_SCALE_FIRST)
    v = mxd_step('*', value, mxd_narrow(s.used * mxd_widen(mxd_narrow(mxd_quotient(p.under, p.over)))));
  else
    v = mxd_narrow(mxd_quotient((double)value * s.used * p.under, p.over));
  return mxd_step('-', v, x);
}
#endif
