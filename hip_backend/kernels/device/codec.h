/** Encodes one value and decodes one code: SPEC 2. */
#ifndef MXD_CODEC_H
#define MXD_CODEC_H

#include "hip_backend/run/kernel_plan.h"
#include "number.h"

MXH_DEVICE uint32_t mxd_all(const mxd_format &f) { return f.bits == 32 ? 0xFFFFFFFFu : (1u << f.bits) - 1; }
MXH_DEVICE bool mxd_code_is_nan(const mxd_format &f, uint32_t code) {
  if (f.nan_first == MXD_NO_CODE) return false;
  if (f.kind != MX_KIND_FNUZ) code &= mxd_all(f) >> f.sign_bits;
  return code >= f.nan_first && code <= f.nan_last;
}

MXH_DEVICE double mxd_decode(const mxd_format &f, uint32_t code) {
  code &= mxd_all(f);
  if (f.kind == MX_KIND_INT) {
    uint32_t sign = f.sign_bits ? 1u << (f.bits - 1) : 0;
    return (double)((int32_t)(code ^ sign) - (int32_t)sign) * mxd_pow2(-f.man_bits);
  }
  uint32_t mag = code & (mxd_all(f) >> f.sign_bits);
  bool negative = f.sign_bits && mag != code;
  if (mxd_code_is_nan(f, code)) return mxd_with_sign(mxd_nan(), negative && f.kind != MX_KIND_FNUZ); /* the only NaN of FNUZ has no sign */
  if (mag == f.inf_code) return mxd_with_sign(mxd_inf(), negative);
  int e = (int)(mag >> f.man_bits);
  uint32_t man = mag & ((1u << f.man_bits) - 1);
  bool normal = e > 0 || f.kind == MX_KIND_EXP;
  double v = (double)(normal ? man | 1u << f.man_bits : man) * mxd_pow2((normal ? e : 1) - f.bias - f.man_bits);
  return mxd_with_sign(v, negative);
}

/* Whether the discarded part rounds up: sig, of 53 bits, over 2^shift is the magnitude in steps of the target; odd: the code below is odd. */
MXH_DEVICE bool mxd_rounds_up(uint64_t sig, int shift, bool odd, bool negative, const mxd_encoding &how, uint32_t random) {
  uint64_t rest = shift >= 64 ? sig : sig & ((1ull << shift) - 1);
  uint64_t half = shift > 64 ? ~0ull : 1ull << (shift - 1);
  switch (how.round) {
  case MX_ROUND_RNE:
    return rest > half || (rest == half && odd);
  case MX_ROUND_RNA:
    return rest >= half;
  case MX_ROUND_RTZ_TIE:
    return rest > half;
  case MX_ROUND_RTZ:
    return false;
  case MX_ROUND_RTP:
    return rest && !negative;
  case MX_ROUND_RTN:
    return rest && negative;
  default:
    break;
  }
  uint64_t b = random & ((1ull << how.sr_bits) - 1);
  int keep = how.sr_mode == MX_SR_FAST ? how.sr_bits + 1 : how.sr_bits, drop = shift - keep;
  uint64_t d = drop >= 64 ? 0 : drop >= 0 ? rest >> drop : rest << -drop; /* the fraction in units of 2^-keep */
  if (how.sr_mode == MX_SR_FAST) return d + 2 * b + 1 >= 1ull << keep;
  if (how.sr_mode != MX_SR_FASTEST && drop > 0 && drop < 64) {
    uint64_t low = rest & ((1ull << drop) - 1), middle = 1ull << (drop - 1);
    d += low > middle || (low == middle && (how.sr_mode == MX_SR_ODD ? !(d & 1) : d & 1));
  }
  return d + b >= 1ull << how.sr_bits;
}

/* Finite |x| > 0 rounded to steps of 2^*quantum; its code is *base plus their number. last: above the format's largest binade its steps go
 * on. */
MXH_DEVICE uint64_t mxd_steps(const mxd_format &f, double x, bool last, uint64_t *base, int *quantum, const mxd_encoding &how,
                              uint32_t random) {
  int at = mxd_exponent(x), e = at;
  uint64_t sig = (mxh_bits<uint64_t>(x) & 0xFFFFFFFFFFFFFull) | 1ull << 52;
  int emin = 1 - f.bias, emax = (int)(f.max_code >> f.man_bits) - f.bias;
  if (f.kind == MX_KIND_INT) {
    e = 0;
    *base = 0;
  } else if (f.kind == MX_KIND_EXP) {
    *base = (uint64_t)(int64_t)(e + f.bias - 1) << f.man_bits;
  } else {
    if (e < emin) e = emin;
    if (last && e > emax) e = emax;
    *base = (uint64_t)(e - emin) << f.man_bits;
  }
  *quantum = e - f.man_bits;
  int shift = *quantum - (at - 52);
  if (how.round == MX_ROUND_RNA_F32 || how.round == MX_ROUND_RNE_F32) {
    float u = (float)(mxd_abs(x) * mxd_pow2(-*quantum)), t = u - 0.5f;
    uint64_t up = (uint64_t)mxh_floor(u + 0.5f);
    return up - (how.round == MX_ROUND_RNE_F32 && t * 0.5f == mxh_floor(t * 0.5f));
  }
  if (shift <= 0) return sig << -shift;
  uint64_t steps = shift >= 64 ? 0 : sig >> shift;
  return steps + mxd_rounds_up(sig, shift, (*base + steps) & 1, f.sign_bits && mxd_negative(x), how, random);
}

/* The magnitude code of finite x, as if the format had exponents above its largest value. */
MXH_DEVICE uint64_t mxd_magnitude(const mxd_format &f, double x, const mxd_encoding &how, uint32_t random) {
  uint64_t base;
  int quantum;
  double a = mxd_abs(x);
  if (a == 0) return 0;
  if (f.kind == MX_KIND_EXP && a < mxd_pow2(-f.bias)) return 0;
  if (f.kind == MX_KIND_INT && a >= mxd_pow2(f.bits - f.sign_bits - f.man_bits)) return (uint64_t)f.max_code + 1;
  uint64_t steps = mxd_steps(f, x, false, &base, &quantum, how, random);
  return base + steps;
}

/* What x rounds to on a grid that goes on above the largest value in the steps of the last binade. */
MXH_DEVICE double mxd_past_largest(const mxd_format &f, double x, const mxd_encoding &how, uint32_t random) {
  uint64_t base;
  int quantum;
  if (!(mxd_abs(x) < 0x1p127)) return mxd_isnan(x) ? x : mxd_with_sign(mxd_inf(), mxd_negative(x));
  if (x == 0 || mxd_exponent(x) >= (int)(f.max_code >> f.man_bits) - f.bias + 52) return x;
  uint64_t steps = mxd_steps(f, x, true, &base, &quantum, how, random);
  return mxd_with_sign((double)steps * mxd_pow2(quantum), mxd_negative(x));
}

MXH_DEVICE bool mxd_stays_below(double x, const mxd_encoding &how) {
  bool down = mxd_negative(x) ? how.round == MX_ROUND_RTP : how.round == MX_ROUND_RTN;
  return !mxd_isinf(x) && (down || how.round == MX_ROUND_RTZ);
}

MXH_DEVICE uint32_t mxd_encode(const mxd_format &f, double x, const mxd_encoding &how, uint32_t random) {
  const uint32_t all = mxd_all(f), top = 1u << (f.bits - 1);
  const bool integer = f.kind == MX_KIND_INT, negative = f.sign_bits && mxd_negative(x), nan = mxd_isnan(x);
  const uint32_t sign = negative && !integer ? top : 0;
  if (!nan && how.overflow == MX_OVERFLOW_WRAP_NEGZERO && mxd_abs(x) >= 0x1p127) x = mxd_with_sign(mxd_inf(), mxd_negative(x));
  const bool inf = mxd_isinf(x);
  uint32_t mag;
  if (nan) { /* step 2 */
    const uint32_t natural = f.nan_code != MXD_NO_CODE ? f.nan_code : f.max_code;
    if (integer && how.nan == MX_ELEM_NAN_POSMAX) return f.max_code;
    if (integer && how.nan == MX_ELEM_NAN_CODE) return how.nan_code;
    switch (how.nan) {
    case MX_ELEM_NAN_POSMAX:
      mag = natural;
      break;
    case MX_ELEM_NAN_SATMAX:
      mag = sign | f.max_code;
      break;
    case MX_ELEM_NAN_ZERO:
      mag = 0;
      break;
    case MX_ELEM_NAN_ZERO_FLIP:
      mag = f.kind == MX_KIND_FLOAT && f.sign_bits && !sign ? top : 0;
      break;
    case MX_ELEM_NAN_CODE:
      mag = sign | how.nan_code;
      break;
    default:
      mag = f.kind == MX_KIND_FNUZ ? natural : sign | natural;
    }
  } else if (inf && how.inf == MX_ELEM_INF_ZERO) { /* step 3 */
    return 0;
  } else if (inf && how.inf == MX_ELEM_INF_CODE) {
    if (integer) return how.inf_code;
    mag = sign | how.inf_code;
  } else {
    uint64_t m = inf ? (uint64_t)f.max_code + 1 : mxd_magnitude(f, x, how, random); /* step 4 */
    if (m > f.max_code) {                                                           /* step 5 */
      const bool below = mxd_stays_below(x, how);
      if (how.overflow == MX_OVERFLOW_WRAP_NEGZERO && !inf) {
        const double r = mxd_to_bf16(mxd_abs(mxd_past_largest(f, x, how, random)));
        mxd_encoding cut = how;
        cut.round = MX_ROUND_RTZ;
        return (sign | (uint32_t)mxd_magnitude(f, r, cut, 0)) & all;
      }
      if (how.overflow == MX_OVERFLOW_IEEE && !below && f.inf_code != MXD_NO_CODE)
        m = f.inf_code;
      else if (how.overflow == MX_OVERFLOW_IEEE && !below && f.nan_code != MXD_NO_CODE)
        m = f.nan_code;
      else
        m = how.saturate_to == MX_SATURATE_TO_NAN && f.nan_code != MXD_NO_CODE ? f.nan_code : f.max_code;
    }
    mag = (uint32_t)m;
    const bool dropped = mag == 0 && (f.kind == MX_KIND_FNUZ || how.zero_sign == MX_ZERO_SIGN_DROP_ALL ||
                                      (how.zero_sign == MX_ZERO_SIGN_DROP_INPUT && x == 0)); /* step 6 */
    if (!integer && !dropped && !(f.kind == MX_KIND_FNUZ && mag == f.nan_code))
      mag |= how.zero_sign == MX_ZERO_SIGN_FORCE && !(x > 0) ? top : sign;
  }
  return integer && negative ? (~mag + 1) & all : mag;
}

MXH_DEVICE mxd_encoding mxd_nearest() {
  mxd_encoding how = {};
  how.sr_bits = 16;
  return how;
}
#endif
