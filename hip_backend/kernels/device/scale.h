/** Makes a block's scale: SPEC 3.1, and steps 5 to 9 of SPEC 3.2. */
#ifndef MXD_SCALE_H
#define MXD_SCALE_H

#include "chain.h"
#include "codec.h"
#include "random.h"

enum { MXD_USED, MXD_AS_IS, MXD_PLUS_ZERO, MXD_TIMES_ZERO, MXD_SIGNED_ZERO, MXD_TIMES_FLT_MAX };

struct mxd_scale {
  uint32_t code;
  int32_t how; /* MXD_USED .. */
  double used; /* S */
  float factor[MXD_CHAIN_FACTORS], again[MXD_CHAIN_FACTORS];
};

/* What the scale rules need to know about a block. */
struct mxd_stats {
  double amax; /* of the elements that count; may be NaN or Inf */
  double std;  /* only for scale.rule=quest */
  uint64_t index;
};

/* Whether x counts in a maximum, and with which magnitude. */
MXH_DEVICE bool mxd_counts(double *magnitude, const mxd_plan &p, float x) {
  double a = mxd_abs((double)x);
  *magnitude = a;
  if (mxd_isnan(a)) return p.act_nan != MX_SCALE_NAN_IGNORE && p.act_nan != MX_SCALE_NAN_CLAMP;
  if (!mxd_isinf(a)) return true;
  if (p.act_inf == MX_SCALE_NAN_CLAMP) *magnitude = (double)MXD_FLT_MAX;
  return p.act_inf != MX_SCALE_NAN_IGNORE;
}
/* The larger of two maxima; NaN wins. */
MXH_DEVICE double mxd_larger(double a, double b) { return mxd_isnan(a) || b <= a ? a : b; }

MXH_DEVICE double mxd_scale_value(const mxd_plan &p, uint32_t code) {
  double v = mxd_decode(p.scale, code);
  return p.spec.scale_sign == MX_SCALE_SIGN_SIGNED ? v : mxd_abs(v);
}
MXH_DEVICE bool mxd_is_e8m0(const mxd_plan &p) { return p.scale.kind == MX_KIND_EXP && p.scale.man_bits == 0; }
MXH_DEVICE uint32_t mxd_largest_code(const mxd_plan &p) {
  return p.spec.scale_max_byte && p.spec.scale_max_byte < p.scale.max_code ? p.spec.scale_max_byte : p.scale.max_code;
}
MXH_DEVICE uint32_t mxd_nan_scale_code(const mxd_plan &p) { return p.scale.nan_code != MXD_NO_CODE ? p.scale.nan_code : p.scale.max_code; }
MXH_DEVICE uint32_t mxd_code_of_one(const mxd_plan &p) { return mxd_encode(p.scale, 1, mxd_nearest(), 0); }
MXH_DEVICE uint32_t mxd_smallest_code(const mxd_plan &p) { return p.scale.kind == MX_KIND_EXP ? 0 : 1; }

/* Applies scale.min_byte and scale.max_byte; a sign is kept, and so is a NaN. */
MXH_DEVICE uint32_t mxd_clamp_code(const mxd_plan &p, uint32_t code) {
  if (mxd_code_is_nan(p.scale, code)) return code;
  uint32_t top = p.scale.sign_bits ? 1u << (p.scale.bits - 1) : 0, sign = code & top, mag = code ^ sign;
  if (mag < p.spec.scale_min_byte) mag = p.spec.scale_min_byte;
  if (p.spec.scale_max_byte && mag > p.spec.scale_max_byte) mag = p.spec.scale_max_byte;
  return sign | mag;
}

/* A code is stored and elements are scaled by `used`; scale.byte0 acts on a code of 0, however it arose. */
MXH_DEVICE mxd_scale mxd_finish(const mxd_plan &p, uint32_t code, double used, int how) {
  mxd_scale s = {};
  s.code = mxd_clamp_code(p, code);
  s.used = used;
  s.how = how;
  if (s.code == 0) {
    switch (p.spec.scale_byte0) {
    case MX_SCALE_BYTE0_DIV126:
      s.used = 0x1p-126;
      s.how = MXD_USED;
      break;
    case MX_SCALE_BYTE0_TIMES1:
      s.used = 1;
      s.how = MXD_USED;
      break;
    case MX_SCALE_BYTE0_TIMES0:
      s.how = MXD_TIMES_ZERO;
      break;
    case MX_SCALE_BYTE0_ZERO:
      s.how = MXD_PLUS_ZERO;
      break;
    default:
      break;
    }
  }
  s.used = mxd_to_dtype(s.used, p.spec.input_dtype);
  return s;
}
MXH_DEVICE mxd_scale mxd_store(const mxd_plan &p, uint32_t code) {
  return mxd_finish(p, code, mxd_scale_value(p, p.spec.scale_used != MX_SCALE_USED_STORED ? code : mxd_clamp_code(p, code)), MXD_USED);
}

/* Step 7. */
MXH_DEVICE mxd_scale mxd_allzero_scale(const mxd_plan &p) {
  mxd_scale s = {};
  s.code = p.spec.scale_allzero == MX_SCALE_ALLZERO_ONE    ? mxd_code_of_one(p)
           : p.spec.scale_allzero == MX_SCALE_ALLZERO_MIN  ? mxd_smallest_code(p)
           : p.spec.scale_allzero == MX_SCALE_ALLZERO_BYTE ? (uint32_t)p.spec.scale_allzero_n
                                                           : 0;
  s.used = mxd_scale_value(p, s.code);
  s.how = MXD_AS_IS;
  return s;
}

/* Step 9. */
MXH_DEVICE mxd_scale mxd_zero_scale(const mxd_plan &p) {
  switch (p.spec.scale_zero) {
  case MX_SCALE_ZERO_MIN:
    return mxd_store(p, mxd_smallest_code(p));
  case MX_SCALE_ZERO_ONE:
    return mxd_store(p, mxd_code_of_one(p));
  case MX_SCALE_ZERO_BYTE:
    return mxd_store(p, (uint32_t)p.spec.scale_zero_n);
  default:
    break;
  }
  if (mxd_clamp_code(p, 0) != 0) return mxd_store(p, 0);
  return mxd_finish(p, 0, 0,
                    p.spec.scale_zero == MX_SCALE_ZERO_ZERO  ? MXD_SIGNED_ZERO
                    : p.spec.scale_zero == MX_SCALE_ZERO_MAX ? MXD_TIMES_FLT_MAX
                                                             : MXD_USED);
}

/* Step 6: the scale of a block with a NaN or an Inf. */
MXH_DEVICE mxd_scale mxd_special_scale(const mxd_plan &p, int act, float n) {
  switch (act) {
  case MX_SCALE_NAN_MAX:
    return mxd_store(p, mxd_largest_code(p));
  case MX_SCALE_NAN_BYTE:
    return mxd_store(p, (uint32_t)n);
  case MX_SCALE_NAN_BYTE_INF:
    return mxd_finish(p, (uint32_t)n, mxd_inf(), MXD_USED);
  case MX_SCALE_NAN_BYTE_NAN:
    return mxd_finish(p, (uint32_t)n, mxd_nan(), MXD_USED);
  case MX_SCALE_NAN_BYTE_ZERO:
    return mxd_finish(p, (uint32_t)n, 0, MXD_USED);
  default:
    return mxd_finish(p, mxd_nan_scale_code(p), mxd_nan(), MXD_USED);
  }
}

/* The floor or ceil of log2 of a positive finite number; log2f: of that log2 rounded once to binary32. */
MXH_DEVICE int mxd_log2(const mxd_plan &p, double a, bool up, bool log2f) {
  if (log2f) {
    float r = (float)a;
    if (r > 0 && r <= MXD_FLT_MAX) {
      a = (double)r;
      int e = mxd_exponent(a), i = e - MXD_LOG2_FIRST;
      double m = a * mxd_pow2(-e);
      if (m == 1) return e;
      if ((2 - m) * 0x1p23 <= (double)p.log2_below[i + 1]) return e + 1;
      if ((m - 1) * 0x1p23 <= (double)p.log2_above[i]) return e;
      return e + up;
    }
  }
  int e = mxd_exponent(a);
  return e + (up && a != mxd_pow2(e));
}

enum { MXD_LOG2_OF_ZERO = -100000 };

/* The exponent that a positive finite value rounds to under e8m0, as if exponents were unbounded. */
MXH_DEVICE int mxd_round_exponent(const mxd_plan &p, double v, uint64_t index) {
  const mx_spec &s = p.spec;
  const bool up = s.scale_round == MX_SCALE_ROUND_UP, value = s.scale_rule == MX_SCALE_RULE_VALUE;
  if (value && up && s.scale_subnormal == MX_SCALE_SUBNORMAL_BUMP && v < 0x1p-126) return -126;
  int e = mxd_exponent(v);
  double m = v * mxd_pow2(-e);
  const bool rules_own = !value && m == 1; /* it is a power of two already */
  if (s.scale_log2 == MX_SCALE_LOG2_LOG2F && (up || s.scale_round == MX_SCALE_ROUND_DOWN) && !rules_own) {
    const float r = (float)v;
    if (r == 0) return MXD_LOG2_OF_ZERO;
    if (r > MXD_FLT_MAX) return 127;
    return mxd_log2(p, v, up, true);
  }
  switch (s.scale_round) {
  case MX_SCALE_ROUND_UP:
    return e + (m > 1);
  case MX_SCALE_ROUND_DOWN:
    return e;
  case MX_SCALE_ROUND_RNA:
    return e + (m >= 1.5);
  case MX_SCALE_ROUND_SR:
    return e + ((uint64_t)((m - 1) * 0x1p24) + (mxd_random(s.seed, MX_STREAM_SCALE, index) >> 8) >= 1u << 24);
  default:
    return e + (m > 1.5 || (m == 1.5 && ((e + p.scale.bias) & 1))); /* ties go to the even code */
  }
}

MXH_DEVICE mxd_scale mxd_e8m0_scale(const mxd_plan &p, double v, uint64_t index) {
  const mx_spec &s = p.spec;
  int e = mxd_isinf(v) ? 127 : mxd_round_exponent(p, v, index), byte = e + 127;
  if (s.scale_used == MX_SCALE_USED_UNCLAMPED && e < -149) return mxd_zero_scale(p);
  byte = s.scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP && e != MXD_LOG2_OF_ZERO ? byte & 255 : byte < 0 ? 0 : byte > 254 ? 254 : byte;
  double used = mxd_pow2((int)mxd_clamp_code(p, (uint32_t)byte) - 127);
  if (s.scale_used == MX_SCALE_USED_CLAMPED) used = mxd_pow2(e < -127 ? -127 : e > 127 ? 127 : e);
  if (s.scale_used == MX_SCALE_USED_UNCLAMPED) used = mxd_pow2(e);
  return mxd_finish(p, (uint32_t)byte, used, MXD_USED);
}

/* scale.round=ggml. */
MXH_DEVICE uint32_t mxd_ggml_code(double value) {
  float v = (float)value;
  if (!(v > 0)) return 0;
  if (v >= 256) return 0x7E;
  uint32_t bits = mxh_bits<uint32_t>(v);
  int e = (int)(bits >> 23) - 127 + 7;
  if (e <= 0) {
    float n = v * 512;
    n = mxh_floor(n + 0.5f);
    return n >= 7 ? 7 : (uint32_t)n;
  }
  uint32_t code = ((uint32_t)e << 3) + (bits >> 20 & 7) + (bits >> 19 & 1);
  return code >= 0x78 ? 0x7E : code;
}

/* Steps 8 and 9. */
MXH_DEVICE mxd_scale mxd_cast(const mxd_plan &p, double v, uint64_t index) {
  const mx_spec &s = p.spec;
  if (mxd_isnan(v)) {
    if (p.act_nan == MX_SCALE_NAN_MAX && mxd_negative(v) && s.scale_sign == MX_SCALE_SIGN_SIGNED)
      return mxd_store(p, mxd_largest_code(p) | (p.scale.sign_bits ? 1u << (p.scale.bits - 1) : 0));
    return mxd_special_scale(p, p.act_nan, p.nan_n);
  }
  if (s.scale_min > 0 && v < (double)s.scale_min) v = (double)s.scale_min;
  if (v == 0) return mxd_zero_scale(p);
  if (mxd_is_e8m0(p)) return mxd_e8m0_scale(p, v, index);
  uint32_t random = s.scale_round == MX_SCALE_ROUND_SR ? mxd_random(s.seed, MX_STREAM_SCALE, index) >> 8 : 0;
  uint32_t code = s.scale_round == MX_SCALE_ROUND_GGML ? mxd_ggml_code(v) : mxd_encode(p.scale, v, p.scale_encode, random);
  if (mxd_decode(p.scale, code) == 0) return mxd_zero_scale(p);
  return mxd_store(p, code);
}

/* scale.rule=even: half of the last kept bit of the encoding is added, and the bits below it are cleared. The result is a power of two or 0. */
MXH_DEVICE double mxd_even(const mxd_plan &p, double a) {
  const int dtype = p.spec.input_dtype, f16 = dtype == MX_INPUT_DTYPE_FLOAT16, emin = f16 ? -14 : -126;
  const int man = f16 ? 10 : dtype == MX_INPUT_DTYPE_BFLOAT16 ? 7 : 23;
  int keep = p.spec.scale_even_bits ? (int)p.spec.scale_even_bits : p.elem.man_bits, e = mxd_exponent(a);
  if (p.spec.tensor_norm == MX_TENSOR_NORM_NONE) {
    if (keep > man) keep = man;
    if (e < emin) {
      if (keep == man) return 0;
      return a + mxd_pow2(emin - keep - 1) >= mxd_pow2(emin) ? mxd_pow2(emin) : 0;
    }
    if (keep == man) return mxd_pow2(e);
  }
  double m = a * mxd_pow2(-e); /* half up: whether 1.m + half reaches 2 */
  return mxd_pow2(e + (m >= 2 - mxd_pow2(-keep - 1)));
}

/* The value that is rounded to the scale format. *carried: `even` rounded amax up to 2^128. */
MXH_DEVICE double mxd_raw_scale(const mxd_plan &p, const mxd_stats &st, double amax, bool map_to_4, bool *carried) {
  const mx_spec &s = p.spec;
  const bool encode = s.scale_form == MX_SCALE_FORM_ENCODE, log2f = s.scale_log2 == MX_SCALE_LOG2_LOG2F;
  *carried = false;
  if (p.uses_chain) {
    float vars[MXD_CHAIN_VARS];
    for (int i = 0; i < MXD_CHAIN_VARS; i++) vars[i] = p.vars[i];
    vars[MXD_VAR_AMAX] = mxd_narrow(amax);
    float v = mxd_eval(p.chain.scale, vars);
    return mxd_widen(map_to_4 ? mxd_step('*', v, 1.5f) : v);
  }
  if (s.scale_rule == MX_SCALE_RULE_VALUE) {
    const double f = map_to_4 ? 4 : p.f, up = mxd_times(amax, p.over), down = mxd_times(f, p.under);
    if (s.scale_arith == MX_SCALE_ARITH_EXACT) return encode ? mxd_quotient(down, up) : mxd_quotient(up, down);
    if (s.scale_arith == MX_SCALE_ARITH_DIV32) return mxd_widen(mxd_narrow(encode ? mxd_quotient(down, up) : mxd_quotient(up, down)));
    if (encode) return mxd_widen(mxd_narrow(f * mxd_widen(mxd_narrow(mxd_quotient(1, up)))));
    return mxd_widen(mxd_narrow(up * mxd_widen(mxd_narrow(mxd_quotient(1, f)))));
  }
  const double a = mxd_quotient(mxd_times(amax, p.over), p.under);
  if (!(a > 0 && a < mxd_inf())) return encode ? mxd_quotient(1, a) : a;
  int e;
  switch (s.scale_rule) {
  case MX_SCALE_RULE_CEIL:
    e = mxd_log2(p, a, true, log2f) - p.emax;
    break;
  case MX_SCALE_RULE_EVEN: {
    const double r = mxd_even(p, a);
    if (r == 0) return encode ? mxd_inf() : 0;
    *carried = mxd_exponent(r) > (s.input_dtype == MX_INPUT_DTYPE_FLOAT16 ? 15 : 127);
    e = mxd_exponent(r) - p.emax;
    break;
  }
  case MX_SCALE_RULE_QUEST:
    e = mxd_exponent(2.92247856 / 6 * st.std * p.over / p.under + 1e-8);
    break;
  case MX_SCALE_RULE_HIF4:
    return mxd_to_bf16(a * mxd_to_bf16(mxd_quotient(1, 7)));
  default:
    e = mxd_log2(p, a, false, log2f) - p.emax;
  }
  return mxd_pow2(encode ? -e : e);
}

/* Computes the factors of a chain's element and again. */
MXH_DEVICE void mxd_factors(mxd_scale *s, const mxd_plan &p) {
  if (!p.uses_chain || s->how != MXD_USED) return;
  float vars[MXD_CHAIN_VARS];
  for (int i = 0; i < MXD_CHAIN_VARS; i++) vars[i] = p.vars[i];
  vars[MXD_VAR_SF] = mxd_narrow(s->used);
  for (int i = 0; i < p.chain.element.n; i++) s->factor[i] = mxd_eval(p.chain.element.factor[i], vars);
  for (int i = 0; i < p.chain.again.n; i++) s->again[i] = mxd_eval(p.chain.again.factor[i], vars);
}

/* The scale of a block. Candidate 1 maps to 4. Returns how many candidates there are, or 0 if the spec refuses the block. */
MXH_DEVICE int mxd_block_scale(mxd_scale *out, const mxd_plan &p, const mxd_stats &st, int candidate) {
  double amax = st.amax;
  const bool tensor_nan =
      (mxd_isnan(p.seen) && p.act_nan == MX_SCALE_NAN_TENSOR) || (mxd_isinf((double)p.seen) && p.act_inf == MX_SCALE_NAN_TENSOR);
  if (tensor_nan) {
    *out = mxd_finish(p, mxd_nan_scale_code(p), mxd_nan(), MXD_USED);
    mxd_factors(out, p);
    return 1;
  }
  int act = -1;
  float n = 0;
  if (mxd_isnan(amax)) {
    act = p.act_nan;
    n = p.nan_n;
    if (p.uses_chain && (act == MX_SCALE_NAN_PROPAGATE || act == MX_SCALE_NAN_RULE || act == MX_SCALE_NAN_MAX)) act = -1;
  } else if (mxd_isinf(amax)) {
    act = p.act_inf;
    n = p.inf_n;
    if (act == MX_SCALE_NAN_RULE) {
      if (!p.uses_chain) amax = 0x1p128;
      act = -1;
    } else if (act == MX_SCALE_NAN_PROPAGATE && p.uses_chain) {
      amax = mxd_nan();
      act = -1;
    }
  }
  if (act == MX_SCALE_NAN_ERROR) return 0;
  if (act >= 0) {
    *out = mxd_special_scale(p, act, n);
    mxd_factors(out, p);
    return 1;
  }
  if (amax == 0 && p.spec.scale_allzero != MX_SCALE_ALLZERO_CHAIN) {
    *out = mxd_allzero_scale(p);
    return 1;
  }
  bool carried;
  const double v = mxd_raw_scale(p, st, amax, candidate == 1, &carried);
  if (carried && p.spec.scale_carry == MX_SCALE_CARRY_INF) {
    if (p.act_inf == MX_SCALE_NAN_ERROR) return 0;
    if (p.act_inf != MX_SCALE_NAN_IGNORE && p.act_inf != MX_SCALE_NAN_CLAMP && p.act_inf != MX_SCALE_NAN_RULE) {
      *out = mxd_special_scale(p, p.act_inf, p.inf_n);
      mxd_factors(out, p);
      return 1;
    }
  }
  *out = mxd_cast(p, v, st.index);
  mxd_factors(out, p);
  return p.spec.select == MX_SELECT_FOURSIX ? 2 : 1;
}
#endif
