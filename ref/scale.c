/* Makes a block's scale: SPEC 3.1, and steps 5 to 9 of SPEC 3.2. */
#include "rules.h"

_Static_assert((int)MX_SCALE_INF_PROPAGATE - 1 == (int)MX_SCALE_NAN_PROPAGATE && (int)MX_SCALE_INF_BYTE_ZERO - 1 == (int)MX_SCALE_NAN_BYTE_ZERO,
               "scale.inf is as_nan, then the rows of scale.nan");

num ref_real(float value, num otherwise) {
  num v = num_float(value);
  return num_is_zero(v) ? otherwise : v;
}

num ref_scale_max(const mx_spec *spec, const mx_format *elem) {
  num most = ref_format_largest(elem);
  const num margin = num_float(spec->scale_margin);
  if (spec->scale_max == MX_SCALE_MAX_POW2) most = num_pow2(most.exp);
  if (spec->scale_max == MX_SCALE_MAX_NUMBER) most = num_float(spec->scale_max_n);
  return num_is_zero(margin) ? most : num_mul_r(most, margin, NUM_F32);
}

/* Largest counted magnitude; NaN if there is one. */
static num block_amax(const ref_plan *plan, const ref_block *block) {
  num most = num_zero(0);
  for (size_t i = 0; i < block->n; i++) {
    num a;
    if (!ref_counts(&a, plan, block->x[i])) continue;
    if (num_is_nan(a)) return num_nan(0);
    if (num_cmp(a, most) > 0) most = a;
  }
  return most;
}

num ref_scale_value(const ref_plan *plan, uint64_t code) {
  num v = ref_value(plan->scale, code);
  return plan->spec->scale_sign == MX_SCALE_SIGN_SIGNED ? v : num_abs(v);
}

static int is_e8m0(const ref_plan *plan) { return plan->scale->kind == MX_KIND_EXP && plan->scale->man_bits == 0; }
static uint64_t smallest_code(const ref_plan *plan) { return plan->scale->kind == MX_KIND_EXP ? 0 : 1; }
static uint64_t nan_code(const ref_plan *plan) { return plan->scale->nan_code != MX_NO_CODE ? plan->scale->nan_code : plan->scale->max_code; }

static uint64_t largest_code(const ref_plan *plan) {
  uint64_t most = plan->scale->max_code;
  return plan->spec->scale_max_byte && plan->spec->scale_max_byte < most ? plan->spec->scale_max_byte : most;
}

/* scale.min_byte and scale.max_byte hold for every stored code but NaN and that of a block of zeros; a sign stays. */
static uint64_t clamp_code(const ref_plan *plan, uint64_t code) {
  if (num_is_nan(ref_value(plan->scale, code))) return code;
  uint64_t sign = code & ref_sign_bit(plan->scale), magnitude = code ^ sign;
  if (magnitude < plan->spec->scale_min_byte) magnitude = plan->spec->scale_min_byte;
  if (plan->spec->scale_max_byte && magnitude > plan->spec->scale_max_byte) magnitude = plan->spec->scale_max_byte;
  return sign | magnitude;
}

static num in_type(const ref_plan *plan, num v) { return plan->type == NUM_F32 ? v : num_round(v, plan->type); }

/* ---- a code is known: what do elements do? ---- */

/* `code` is stored, elements are scaled by `used`. scale.byte0 speaks of the stored code, however it came about (but for a block of zeros). */
static ref_scale with_byte0(const ref_plan *plan, ref_scale s) {
  if (s.code != 0) return s;
  switch (plan->spec->scale_byte0) {
  case MX_SCALE_BYTE0_DIV126:
    return (ref_scale){s.code, in_type(plan, num_pow2(-126)), SCALING_USED};
  case MX_SCALE_BYTE0_TIMES1:
    return (ref_scale){s.code, num_int(1), SCALING_USED};
  case MX_SCALE_BYTE0_TIMES0:
    s.scaling = SCALING_TIMES_0;
    break;
  case MX_SCALE_BYTE0_ZERO:
    s.scaling = SCALING_PLUS_ZERO;
    break;
  }
  return s;
}

static ref_scale finish(const ref_plan *plan, uint64_t code, num used, ref_scaling scaling) {
  return with_byte0(plan, (ref_scale){clamp_code(plan, code), in_type(plan, used), scaling});
}

/* What is stored is what is used; with another scale.used, what would be stored without scale.min_byte. */
static ref_scale stored_and_used(const ref_plan *plan, uint64_t code) {
  uint64_t used = plan->spec->scale_used != MX_SCALE_USED_STORED ? code : clamp_code(plan, code);
  return finish(plan, code, ref_scale_value(plan, used), SCALING_USED);
}

/* The scale is NaN: so is every quotient. */
static ref_scale nan_scale(const ref_plan *plan) { return finish(plan, nan_code(plan), num_nan(0), SCALING_USED); }

static uint64_t code_of_one(const ref_plan *plan) { return ref_code(plan->scale, num_int(1), &(ref_how){0}, 0); }

/* Step 7: amax = 0. */
static ref_scale allzero_scale(const ref_plan *plan) {
  uint64_t code = 0;
  switch (plan->spec->scale_allzero) {
  case MX_SCALE_ALLZERO_ONE:
    code = code_of_one(plan);
    break;
  case MX_SCALE_ALLZERO_MIN:
    code = smallest_code(plan);
    break;
  case MX_SCALE_ALLZERO_BYTE:
    code = (uint64_t)plan->spec->scale_allzero_n;
    break;
  }
  return (ref_scale){code, ref_scale_value(plan, code), SCALING_AS_IS}; /* as the key says: no clamp */
}

/* Step 9: the scale came out as zero. One that scale.min_byte lifts is not a zero. */
static ref_scale zero_scale(const ref_plan *plan) {
  static const ref_scaling stays[] = {
      [MX_SCALE_ZERO_ZERO] = SCALING_SIGNED_ZERO, [MX_SCALE_ZERO_MAX] = SCALING_FLT_MAX, [MX_SCALE_ZERO_CHAIN] = SCALING_USED};
  switch (plan->spec->scale_zero) {
  case MX_SCALE_ZERO_MIN:
    return stored_and_used(plan, smallest_code(plan));
  case MX_SCALE_ZERO_ONE:
    return stored_and_used(plan, code_of_one(plan));
  case MX_SCALE_ZERO_BYTE:
    return stored_and_used(plan, (uint64_t)plan->spec->scale_zero_n);
  default:
    if (clamp_code(plan, 0) != 0) return stored_and_used(plan, 0);
    return finish(plan, 0, num_zero(0), stays[plan->spec->scale_zero]);
  }
}

/* Step 6: a block with a NaN or an Inf whose scale is decided by that alone. */
static ref_scale special_scale(const ref_plan *plan, int act, float n) {
  uint64_t code = (uint64_t)n;
  switch (act) {
  case MX_SCALE_NAN_MAX:
    return stored_and_used(plan, largest_code(plan));
  case MX_SCALE_NAN_BYTE:
    return stored_and_used(plan, code);
  case MX_SCALE_NAN_BYTE_INF:
    return finish(plan, code, num_inf(0), SCALING_USED);
  case MX_SCALE_NAN_BYTE_NAN:
    return finish(plan, code, num_nan(0), SCALING_USED);
  case MX_SCALE_NAN_BYTE_ZERO:
    return finish(plan, code, num_zero(0), SCALING_USED);
  default:
    return nan_scale(plan);
  }
}

/* ---- from a value to a code ---- */

/* floor(d * 2^24) + b >= 2^24 on the first 24 bits of the word. */
static ref_how scale_rounding(const ref_plan *plan) {
  static const int rounds[] = {[MX_SCALE_ROUND_RNE] = MX_ROUND_RNE, [MX_SCALE_ROUND_UP] = MX_ROUND_RTP, [MX_SCALE_ROUND_DOWN] = MX_ROUND_RTZ,
                               [MX_SCALE_ROUND_RNA] = MX_ROUND_RNA, [MX_SCALE_ROUND_SR] = MX_ROUND_SR,  [MX_SCALE_ROUND_GGML] = MX_ROUND_RNE};
  return (ref_how){.base = {.round = rounds[plan->spec->scale_round], .sr_mode = MX_SR_FASTEST, .sr_bits = 24}};
}

static uint32_t scale_random(const ref_plan *plan, const ref_block *block) {
  return ref_random(plan->spec->seed, MX_STREAM_SCALE, block->index) >> 8;
}

enum { LOG2_OF_ZERO = -100000 };

/* Exponent that a positive value rounds to under E8M0, without end in either direction. */
static int round_exponent(const ref_plan *plan, const ref_block *block, num v) {
  const mx_spec *spec = plan->spec;
  const int up = spec->scale_round == MX_SCALE_ROUND_UP, value = spec->scale_rule == MX_SCALE_RULE_VALUE;
  if (value && up && spec->scale_subnormal == MX_SCALE_SUBNORMAL_BUMP && v.exp < -126) return -126;
  const int rules_own = !value && v.sig == UINT64_C(1) << 63; /* a power of two already; scale.min need not be one */
  if (spec->scale_log2 == MX_SCALE_LOG2_LOG2F && (up || spec->scale_round == MX_SCALE_ROUND_DOWN) && !rules_own) {
    num l = num_log2f(num_round(v, NUM_F32));
    if (l.kind == NUM_INF) return l.sign ? LOG2_OF_ZERO : 127;
    return up ? num_ceil(l) : num_floor(l);
  }
  /* A format like E8M0 with exponents enough for any value here; its codes are as even or odd as E8M0's. */
  static const mx_format wide = {.name = "exponent",
                                 .kind = MX_KIND_EXP,
                                 .bits = 32,
                                 .exp_bits = 32,
                                 .bias = 20001,
                                 .max_code = 40000,
                                 .inf_code = MX_NO_CODE,
                                 .nan_first = MX_NO_CODE,
                                 .nan_last = MX_NO_CODE,
                                 .nan_code = MX_NO_CODE};
  ref_how how = scale_rounding(plan);
  return (int)ref_code(&wide, v, &how, scale_random(plan, block)) - wide.bias;
}

static ref_scale e8m0_scale(const ref_plan *plan, const ref_block *block, num v) {
  const mx_spec *spec = plan->spec;
  int exp = v.kind == NUM_INF ? 127 : round_exponent(plan, block, v), byte = exp + 127; /* Inf saturates, it does not wrap */
  if (spec->scale_used == MX_SCALE_USED_UNCLAMPED && exp < -149) return zero_scale(plan);
  if (spec->scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP && exp != LOG2_OF_ZERO) /* nor does the log2 of a zero */
    byte &= 255;
  else
    byte = byte < 0 ? 0 : byte > 254 ? 254 : byte;
  num used = num_pow2((int)clamp_code(plan, (uint64_t)byte) - 127);
  if (spec->scale_used == MX_SCALE_USED_CLAMPED) used = num_pow2(exp < -127 ? -127 : exp > 127 ? 127 : exp);
  if (spec->scale_used == MX_SCALE_USED_UNCLAMPED) used = num_pow2(exp);
  return finish(plan, (uint64_t)byte, used, SCALING_USED);
}

/* scale.round=ggml: ggml_fp32_to_ue4m3. */
static uint64_t ggml_code(num v) {
  v = num_round(v, NUM_F32);
  if (num_is_zero(v) || v.sign) return 0;
  if (v.kind == NUM_INF || v.exp >= 8) return 0x7E;
  int exp = v.exp + 7;
  if (exp <= 0) {
    int code = num_floor(num_add_r(num_mul_r(v, num_int(512), NUM_F32), num_pow2(-1), NUM_F32));
    return (uint64_t)(code > 7 ? 7 : code);
  }
  uint64_t code = ((uint64_t)exp << 3) + (v.sig << 1 >> 61) + (v.sig << 4 >> 63);
  return code >= 0x78 ? 0x7E : code; /* a carry to 2^8 is 448, not 256 */
}

/* Steps 8 and 9: round the value by scale.round, clamp, see whether it is zero. A NaN can only come out of a chain. */
static ref_scale cast(const ref_plan *plan, const ref_block *block, num v) {
  const mx_spec *spec = plan->spec;
  if (num_is_nan(v)) {
    ref_scale s = special_scale(plan, plan->act_nan, plan->nan_n);
    if (plan->act_nan == MX_SCALE_NAN_MAX && v.sign && spec->scale_sign == MX_SCALE_SIGN_SIGNED)
      return stored_and_used(plan, largest_code(plan) | ref_sign_bit(plan->scale));
    return s;
  }
  num least = num_float(spec->scale_min);
  if (!num_is_zero(least) && num_cmp(v, least) < 0) v = least;
  if (num_is_zero(v)) return zero_scale(plan);
  if (is_e8m0(plan)) return e8m0_scale(plan, block, v);
  ref_how how = scale_rounding(plan);
  uint64_t code = spec->scale_round == MX_SCALE_ROUND_GGML ? ggml_code(v) : ref_code(plan->scale, v, &how, scale_random(plan, block));
  if (num_is_zero(ref_value(plan->scale, code))) return zero_scale(plan);
  return stored_and_used(plan, code);
}

/* ---- the rules ---- */

static int elem_emax(const ref_plan *plan) { return ref_format_largest(plan->elem).exp; }

/* floor or ceil of log2 of a positive real. */
static int log2_int(const ref_plan *plan, num a, int up) {
  if (plan->spec->scale_log2 == MX_SCALE_LOG2_LOG2F && a.exp < 128) {
    num l = num_log2f(num_round(a, NUM_F32));
    if (l.kind != NUM_INF) return up ? num_ceil(l) : num_floor(l);
  }
  int power = a.sig == UINT64_C(1) << 63 && !a.sticky;
  return a.exp + (up && !power);
}

/* scale.rule=even. On amax alone it works on the encoding of input.dtype: half of the last kept bit is added, the bits below are cleared; a
 * subnormal becomes 0 or the smallest normal. With a tensor scale it rounds the real's significand half up. */
static num even_amax(const ref_plan *plan, num a) {
  static const struct { int man_bits, exp_min; } types[] = {[NUM_F32] = {23, -126}, [NUM_BF16] = {7, -126}, [NUM_F16] = {10, -14}};
  int keep = plan->spec->scale_even_bits ? (int)plan->spec->scale_even_bits : plan->elem->man_bits;
  if (plan->spec->tensor_norm == MX_TENSOR_NORM_NONE) {
    if (keep > types[plan->type].man_bits) keep = types[plan->type].man_bits;
    if (a.exp < types[plan->type].exp_min) { /* field 0: 1 - 2^-(keep+1) of the smallest normal carries into field 1 */
      num half = num_pow2(types[plan->type].exp_min - keep - 1), smallest = num_pow2(types[plan->type].exp_min);
      if (keep == types[plan->type].man_bits) return num_zero(0);
      return num_cmp(num_add(a, half), smallest) >= 0 ? smallest : num_zero(0);
    }
    if (keep == types[plan->type].man_bits) return num_pow2(a.exp);
  }
  unsigned __int128 rounded = (unsigned __int128)a.sig + (UINT64_C(1) << (62 - keep));
  return num_pow2(a.exp + (rounded >> 64 != 0));
}

/* scale.rule=value: amax N / (F g), or its inverse in the encode form. Not rounded to the scale format yet. */
static num value_rule(const ref_plan *plan, num amax, num most) {
  const num up[2] = {amax, plan->norm_over}, down[2] = {most, plan->norm_under};
  const int encode = plan->spec->scale_form == MX_SCALE_FORM_ENCODE;
  const num v = encode ? num_ratio(down, 2, up, 2) : num_ratio(up, 2, down, 2);
  if (plan->spec->scale_arith == MX_SCALE_ARITH_EXACT) return v;
  if (plan->spec->scale_arith == MX_SCALE_ARITH_DIV32) return num_round(v, NUM_F32);
  if (encode) return num_mul_r(most, num_round(num_ratio(&plan->norm_under, 1, up, 2), NUM_F32), NUM_F32);
  const num times[3] = {amax, plan->norm_over, num_div_r(num_int(1), most, NUM_F32)};
  return num_round(num_ratio(times, 3, &plan->norm_under, 1), NUM_F32);
}

/* scale.rule other than value: a power of two, or 0. *carried: even took amax to 2^128. */
static num power_rule(const ref_plan *plan, const ref_block *block, num amax, int *carried) {
  num over[2] = {amax, plan->norm_over};
  num a = num_ratio(over, 2, &plan->norm_under, 1);
  const int encode = plan->spec->scale_form == MX_SCALE_FORM_ENCODE;
  if (a.kind != NUM_FINITE) return encode ? num_ratio(NULL, 0, &a, 1) : a;
  int exp;
  switch (plan->spec->scale_rule) {
  case MX_SCALE_RULE_CEIL:
    exp = log2_int(plan, a, 1) - elem_emax(plan);
    break;
  case MX_SCALE_RULE_EVEN:
    a = even_amax(plan, a);
    if (num_is_zero(a)) return encode ? num_inf(0) : a;
    *carried = a.exp > (plan->type == NUM_F16 ? 15 : 127);
    exp = a.exp - elem_emax(plan);
    break;
  case MX_SCALE_RULE_QUEST:
    exp = ref_quest_exponent(plan, block);
    break;
  case MX_SCALE_RULE_HIF4:
    return num_mul_r(a, num_div_r(num_int(1), num_int(7), NUM_BF16), NUM_BF16);
  default:
    exp = log2_int(plan, a, 0) - elem_emax(plan);
  }
  return num_pow2(encode ? -exp : exp);
}

ref_scale ref_scale_given(const ref_plan *plan, uint64_t code) {
  const num given = ref_scale_value(plan, code), value = num_is_zero(given) ? num_zero(0) : given;
  ref_scaling scaling = SCALING_USED;
  if (num_is_zero(value) && plan->spec->scale_zero == MX_SCALE_ZERO_ZERO) scaling = SCALING_SIGNED_ZERO;
  if (num_is_zero(value) && plan->spec->scale_zero == MX_SCALE_ZERO_MAX) scaling = SCALING_FLT_MAX;
  return with_byte0(plan, (ref_scale){code, in_type(plan, value), scaling}); /* unclamped: as it is given */
}

int ref_block_scales(ref_scale out[2], const ref_plan *plan, const ref_block *block) {
  return ref_block_scales_from(out, plan, block, block_amax(plan, block));
}

int ref_block_scales_from(ref_scale out[2], const ref_plan *plan, const ref_block *block, num amax) {
  const mx_spec *spec = plan->spec;
  if (num_is_nan(plan->seen) && plan->act_nan == MX_SCALE_NAN_TENSOR) return out[0] = nan_scale(plan), 1;
  if (plan->seen.kind == NUM_INF && plan->act_inf == MX_SCALE_NAN_TENSOR) return out[0] = nan_scale(plan), 1;

  if (num_is_nan(amax)) {
    int flows =
        plan->chained && (plan->act_nan == MX_SCALE_NAN_PROPAGATE || plan->act_nan == MX_SCALE_NAN_RULE || plan->act_nan == MX_SCALE_NAN_MAX);
    if (plan->act_nan == MX_SCALE_NAN_ERROR) return 0;
    if (!flows) return out[0] = special_scale(plan, plan->act_nan, plan->nan_n), 1;
  } else if (amax.kind == NUM_INF) {
    if (plan->act_inf == MX_SCALE_NAN_ERROR) return 0;
    if (plan->act_inf == MX_SCALE_NAN_RULE) {
      if (!plan->chained) amax = num_pow2(128);
    } else if (plan->act_inf == MX_SCALE_NAN_PROPAGATE && plan->chained) {
      amax = num_nan(0);
    } else {
      return out[0] = special_scale(plan, plan->act_inf, plan->inf_n), 1;
    }
  }
  if (num_is_zero(amax) && spec->scale_allzero != MX_SCALE_ALLZERO_CHAIN) return out[0] = allzero_scale(plan), 1;

  const int n = spec->select == MX_SELECT_FOURSIX ? 2 : 1; /* map to 6, then to 4: F = 4, or in a chain the value times 1.5 */
  for (int i = 0; i < n; i++) {
    num v;
    if (plan->chained) {
      chain_env env = plan->env;
      env.var[VAR_AMAX] = amax;
      v = ref_chain_eval(&plan->chain.scale, &env);
      if (i) v = num_mul_r(v, num_ratio((num[]){num_int(3)}, 1, (num[]){num_int(2)}, 1), NUM_F32);
    } else if (spec->scale_rule == MX_SCALE_RULE_VALUE) {
      v = value_rule(plan, amax, i ? num_int(4) : plan->most);
    } else {
      int carried = 0;
      v = power_rule(plan, block, amax, &carried);
      if (carried && spec->scale_carry == MX_SCALE_CARRY_INF) {
        int act = plan->act_inf;
        if (act == MX_SCALE_NAN_ERROR) return 0;
        if (act != MX_SCALE_NAN_IGNORE && act != MX_SCALE_NAN_CLAMP && act != MX_SCALE_NAN_RULE)
          return out[0] = special_scale(plan, act, plan->inf_n), 1;
      }
    }
    out[i] = cast(plan, block, v);
  }
  return n;
}
