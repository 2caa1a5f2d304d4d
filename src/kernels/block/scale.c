/* Makes a block's scale from its amax: SPEC 3.1 to 3.3, in particular steps 6 to 9 of 3.2. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/block/plan.h"
#include "mxgold/random.h"

static uint32_t code_of(const mx_format *f, double value) {
  static const mx_encoding nearest = {0};
  return (uint32_t)mx_encode(f, value, &nearest, 0);
}

static double decode_scale(const mx_plan *p, uint32_t code) {
  const double v = p->scale_values ? p->scale_values[code & 0xFF] : mx_decode(p->scale, code);
  return p->spec.scale_sign == MX_SCALE_SIGN_SIGNED ? v : fabs(v);
}

/* The largest code that may be stored. */
static uint32_t largest_code(const mx_plan *p) {
  const uint32_t most = (uint32_t)p->scale->max_code, limit = p->spec.scale_max_byte;
  return limit && limit < most ? limit : most;
}

static uint32_t nan_scale_code(const mx_plan *p) {
  return p->scale->nan_code != MX_NO_CODE ? (uint32_t)p->scale->nan_code : (uint32_t)p->scale->max_code;
}

/* scale.rule=even: rounds half up to `bits` mantissa bits on the encoding of the input's type, so that subnormals become 0 or the smallest
 * normal. Under a tensor scale the maximum is a real number, which has no subnormals. */
static double even_round(const mx_plan *p, double amax) {
  const int dtype = p->spec.input_dtype, emin = dtype == MX_INPUT_DTYPE_FLOAT16 ? -14 : -126;
  const int all = dtype == MX_INPUT_DTYPE_FLOAT16 ? 10 : dtype == MX_INPUT_DTYPE_BFLOAT16 ? 7 : 23; /* mantissa bits of the encoding */
  const int bits = p->spec.scale_even_bits ? (int)p->spec.scale_even_bits : p->elem->man_bits;
  const int e = ilogb(amax);
  if (p->spec.tensor_norm == MX_TENSOR_NORM_NONE) {
    /* Nothing is left to round. A clamped Inf is the largest binary32, which has more bits than a shorter type. */
    if (bits >= all) return e < emin ? 0 : ldexp(1, e);
    if (e < emin) return ldexp(amax, -emin) * ldexp(1, bits) >= ldexp(1, bits) - 0.5 ? ldexp(1, emin) : 0;
  }
  const double m = floor(ldexp(amax, bits - e) + 0.5);
  return ldexp(m, e - bits);
}

/* The value that is rounded to the scale format. */
static double raw_value(const mx_plan *p, double amax, const mx_block_stats *stats, int map_to_4) {
  const mx_spec *s = &p->spec;
  const int log2f = s->scale_log2 == MX_SCALE_LOG2_LOG2F;
  const double f = map_to_4 ? 4 : p->f;
  /* SPEC 3.1: a power-of-two rule sees the maximum after the tensor scale has been applied. */
  const double scaled = s->tensor_norm == MX_TENSOR_NORM_NONE ? amax : mxi_quotient_to_odd(amax * p->norm, p->g);
  const int by_maximum = s->scale_rule == MX_SCALE_RULE_FLOOR || s->scale_rule == MX_SCALE_RULE_CEIL || s->scale_rule == MX_SCALE_RULE_EVEN;
  if (by_maximum && !(scaled > 0 && scaled < INFINITY)) return scaled; /* max|X| is NaN, Inf or 0 */
  const float seen = (float)scaled;                                    /* log2f takes a binary32 if the maximum is one */
  const int rounds = log2f && seen > 0 && isfinite(seen);
  switch (s->scale_rule) {
  case MX_SCALE_RULE_FLOOR:
    return ldexp(1, mxi_floor_log2(rounds ? (double)seen : scaled, rounds) - p->emax);
  case MX_SCALE_RULE_CEIL:
    return ldexp(1, mxi_ceil_log2(rounds ? (double)seen : scaled, rounds) - p->emax);
  case MX_SCALE_RULE_EVEN: {
    const double r = even_round(p, scaled);
    return r == 0 ? 0 : ldexp(1, ilogb(r) - p->emax);
  }
  case MX_SCALE_RULE_HIF4:
    return mxi_to_bf16(amax * mxi_to_bf16(1.0 / 7));
  case MX_SCALE_RULE_QUEST:
    return ldexp(1, mxi_floor_log2(2.92247856 / 6 * stats->std + 1e-8, 0));
  default:
    break;
  }
  if (p->uses_chain) {
    float vars[MX_CHAIN_VARS];
    memcpy(vars, p->vars, sizeof vars);
    vars[MX_VAR_AMAX] = (float)amax;
    const float v = mxi_chain_eval(&p->chain->scale, vars);
    return map_to_4 ? mxi_chain_step('*', v, 1.5f) : v;
  }
  if (s->scale_form == MX_SCALE_FORM_ENCODE) return mxi_quotient_to_odd(f * p->g, amax * p->norm);
  if (s->scale_arith == MX_SCALE_ARITH_DIV32) return (float)amax / (float)f;
  if (s->scale_arith == MX_SCALE_ARITH_RECIP32) return (float)amax * (1 / (float)f);
  return mxi_quotient_to_odd(amax * p->norm, f * p->g);
}

/* ggml's UE4M3: half up on the bit below the mantissa, subnormals stop at 7, and everything from 248 on is 448. */
static uint32_t ggml_ue4m3(float v) {
  if (!(v > 0)) return 0;
  if (v > 448) v = 448;
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  int e = (int)(bits >> 23) - 127 + 7;
  uint32_t m = (bits >> 20 & 7) + (bits >> 19 & 1);
  if (e <= 0) {
    const float n = v * 512 + 0.5f;
    return n >= 7 ? 7 : (uint32_t)n;
  }
  if (m > 7) m = 0, e++;
  return e >= 15 ? 0x7E : (uint32_t)e << 3 | m;
}

enum { BELOW_ALL = -10000 }; /* floor(log2 0) */

/* The exponent of an E8M0 scale from its value, which is positive and finite. */
static int rounded_exponent(const mx_plan *p, double v, uint64_t index) {
  const mx_spec *s = &p->spec;
  const int log2f = s->scale_log2 == MX_SCALE_LOG2_LOG2F, e = mxi_floor_log2(v, 0);
  const double m = ldexp(v, -e);                                                                 /* 1 <= m < 2 */
  if (log2f && (s->scale_round == MX_SCALE_ROUND_UP || s->scale_round == MX_SCALE_ROUND_DOWN)) { /* of v as a binary32, which may be 0 or Inf */
    if (isinf((float)v)) return (int)p->scale->max_code - p->scale->bias;
    if ((float)v == 0) return s->scale_round == MX_SCALE_ROUND_UP && s->scale_subnormal == MX_SCALE_SUBNORMAL_BUMP ? -126 : BELOW_ALL;
    v = (double)(float)v;
  }
  switch (s->scale_round) {
  case MX_SCALE_ROUND_UP:
    if (s->scale_subnormal == MX_SCALE_SUBNORMAL_BUMP && s->scale_rule == MX_SCALE_RULE_VALUE && v < 0x1p-126) return -126;
    return mxi_ceil_log2(v, log2f);
  case MX_SCALE_ROUND_DOWN:
    return mxi_floor_log2(v, log2f);
  case MX_SCALE_ROUND_RNA:
    return e + (m >= 1.5);
  case MX_SCALE_ROUND_SR:
    return e + ((uint64_t)((m - 1) * 0x1p24) + (mx_random(s->seed, MX_STREAM_SCALE, index) >> 8) >= 1u << 24);
  default:
    return e + (m > 1.5 || (m == 1.5 && (e + p->scale->bias) % 2 != 0)); /* a tie goes to the even code */
  }
}

/* Clamps a code between the smallest and the largest one that the spec allows to be stored; a sign is kept, and so is a NaN. */
static uint32_t clamp_code(const mx_plan *p, uint32_t code) {
  const uint32_t least = p->spec.scale_min_byte, largest = p->spec.scale_max_byte ? p->spec.scale_max_byte : UINT32_MAX;
  const uint32_t sign = p->scale->sign_bits ? code & 1u << (p->scale->bits - 1) : 0, magnitude = code ^ sign;
  if (mx_format_is_nan(p->scale, code)) return code;
  return sign | (magnitude < least ? least : magnitude > largest ? largest : magnitude);
}

/* Stores the code of a power of two, whose exponent may lie outside the byte. */
static void store_exponent(mx_block_scale *out, const mx_plan *p, int e) {
  const mx_spec *s = &p->spec;
  const int least = -p->scale->bias, largest = (int)p->scale->max_code - p->scale->bias;
  const int clamped = e < least ? least : e > largest ? largest : e;
  if (s->scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP) {
    out->code = (uint32_t)(e + p->scale->bias) & 0xFF;
  } else {
    out->code = (uint32_t)(clamped + p->scale->bias);
  }
  out->used = ldexp(1, (int)clamp_code(p, out->code) - p->scale->bias); /* if it wrapped, byte 255 means 2^128 */
  if (s->scale_used == MX_SCALE_USED_UNCLAMPED) out->used = ldexp(1, e);
  if (s->scale_used == MX_SCALE_USED_CLAMPED) out->used = ldexp(1, clamped);
}

/* Finds what elements are divided by, once the code is known. */
static void meet(mx_block_scale *out, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  out->sf = out->code == 0 && out->used == 0 ? 0 : (float)decode_scale(p, out->code); /* e8m0's byte 0 may stand for a zero */
  if (isnan(out->used)) out->sf = NAN;                                                /* even in a format without NaN */
  if (out->how == MX_BY_NUMBER && p->uses_chain) out->how = MX_BY_CHAIN;
  if (out->code == 0 && (out->how == MX_BY_NUMBER || out->how == MX_BY_CHAIN)) {
    switch (s->scale_byte0) {
    case MX_SCALE_BYTE0_DIV126:
      out->used = 0x1p-126;
      break;
    case MX_SCALE_BYTE0_TIMES1:
      out->used = 1;
      break;
    case MX_SCALE_BYTE0_TIMES0:
      out->how = MX_TIMES_ZERO;
      break;
    case MX_SCALE_BYTE0_ZERO:
      out->how = MX_TO_ZERO;
      break;
    default:
      break;
    }
  }
  if (s->input_dtype != MX_INPUT_DTYPE_FLOAT32) out->used = mxi_round_dtype((float)out->used, s->input_dtype);
  if (out->how != MX_BY_CHAIN) return;
  float vars[MX_CHAIN_VARS];
  memcpy(vars, p->vars, sizeof vars);
  vars[MX_VAR_SF] = out->sf;
  for (int i = 0; i < p->chain->element.n; i++) out->factor[i] = mxi_chain_eval(&p->chain->element.factor[i], vars);
  for (int i = 0; i < p->chain->again.n; i++) out->again[i] = mxi_chain_eval(&p->chain->again.factor[i], vars);
}

static void finish(mx_block_scale *out, const mx_plan *p) {
  out->code = clamp_code(p, out->code);
  out->plain = out->plain && out->code != 0; /* scale.byte0 may decide code 0 */
}

/* Stores a code. Elements are scaled by its value or, under another scale.used, by that of the code before it was clamped. */
static void store_code(mx_block_scale *out, const mx_plan *p, uint32_t code) {
  out->code = code;
  out->used = decode_scale(p, p->spec.scale_used == MX_SCALE_USED_STORED ? clamp_code(p, code) : code);
}

/* Stores the code of NaN, or the largest code in a format without NaN; elements are divided by NaN in both cases. */
static void store_nan(mx_block_scale *out, const mx_plan *p) {
  out->code = nan_scale_code(p);
  out->used = NAN;
}

/* How elements meet a scale that stays zero; by the number itself unless the key says otherwise. */
static void divide_by_zero(mx_block_scale *out, const mx_plan *p) {
  if (p->spec.scale_zero == MX_SCALE_ZERO_ZERO) out->how = MX_TO_SIGNED_ZERO;
  if (p->spec.scale_zero == MX_SCALE_ZERO_MAX) out->how = MX_TIMES_FLT_MAX;
}

/* Decides what becomes of a scale that rounded to zero. */
static void zero_scale(mx_block_scale *out, const mx_plan *p) {
  store_code(out, p, 0);
  switch (p->spec.scale_zero) {
  case MX_SCALE_ZERO_MIN:
    store_code(out, p, code_of(p->scale, mx_format_min(p->scale)));
    break;
  case MX_SCALE_ZERO_ONE:
    store_code(out, p, code_of(p->scale, 1));
    break;
  case MX_SCALE_ZERO_BYTE:
    store_code(out, p, (uint32_t)p->spec.scale_zero_n);
    break;
  default: /* stays zero, even in e8m0, whose byte 0 is 2^-127: a chain sees it, and a fault that divides by it */
    if (clamp_code(p, 0) == 0) out->used = 0;
    divide_by_zero(out, p);
  }
}

/* Handles the choices of scale.nan and scale.inf that fix the code at once. Returns 0 if this choice does not. */
static int special_code(mx_block_scale *out, const mx_plan *p, int choice, float number) {
  switch (choice) {
  case MX_SCALE_NAN_MAX:
    store_code(out, p, largest_code(p));
    return 1;
  case MX_SCALE_NAN_BYTE:
    store_code(out, p, (uint32_t)number);
    return 1;
  case MX_SCALE_NAN_BYTE_INF:
    out->used = INFINITY;
    break;
  case MX_SCALE_NAN_BYTE_NAN:
    out->used = NAN;
    break;
  case MX_SCALE_NAN_BYTE_ZERO:
    out->used = 0;
    break;
  default:
    return 0;
  }
  out->code = (uint32_t)number;
  return 1;
}

/* Rounds a value to the scale format. */
static void cast_value(mx_block_scale *out, const mx_plan *p, double v, uint64_t index) {
  const mx_spec *s = &p->spec;
  if (isnan(v)) {
    if (s->scale_nan == MX_SCALE_NAN_MAX && s->scale_sign == MX_SCALE_SIGN_SIGNED && signbit(v) && p->scale->sign_bits)
      store_code(out, p, largest_code(p) | 1u << (p->scale->bits - 1));
    else if (!special_code(out, p, s->scale_nan, s->scale_nan_n)) /* the other choices do not apply here */
      store_nan(out, p);
    return;
  }
  const int lifted = s->scale_min > 0 && v < (double)s->scale_min;
  if (lifted) v = (double)s->scale_min;
  if (v == 0) {
    zero_scale(out, p);
    return;
  }
  const int power_rule = s->scale_rule != MX_SCALE_RULE_VALUE && !lifted; /* v is a power of two already */
  if (p->scale->kind == MX_KIND_EXP && p->scale->man_bits == 0) {
    const int least = -p->scale->bias, largest = (int)p->scale->max_code - p->scale->bias;
    const int e = isinf(v) ? largest : power_rule ? ilogb(v) : rounded_exponent(p, v, index);
    if (s->scale_used == MX_SCALE_USED_UNCLAMPED && e < -149)
      zero_scale(out, p); /* a power of two that underflows in binary32 */
    else
      store_exponent(out, p, e == BELOW_ALL ? least : e);
    out->plain = e >= least && e <= largest && (power_rule || s->scale_round != MX_SCALE_ROUND_SR);
    return;
  }
  if (s->scale_round == MX_SCALE_ROUND_GGML)
    out->code = ggml_ue4m3((float)v);
  else
    out->code = (uint32_t)mx_encode(p->scale, v, &p->scale_encode,
                                    s->scale_round == MX_SCALE_ROUND_SR ? mx_random(s->seed, MX_STREAM_SCALE, index) >> 8 : 0);
  if (decode_scale(p, out->code) == 0) {
    zero_scale(out, p);
    return;
  }
  store_code(out, p, out->code);
  out->plain = out->used > 0 && isfinite(v) && s->scale_round != MX_SCALE_ROUND_SR;
}

/* Finds everything but what elements are divided by. */
static int find(mx_block_scale *out, const mx_plan *p, const mx_block_stats *stats, int map_to_4, uint64_t index) {
  const mx_spec *s = &p->spec;
  /* The lists SCALE_NAN and SCALE_INF have the same rows, except that SCALE_INF begins with one more. */
  int choice = -1;
  float number = 0;
  const int nan_ignored = s->scale_nan == MX_SCALE_NAN_IGNORE || s->scale_nan == MX_SCALE_NAN_CLAMP;
  const int nan_decides = stats->has_nan && !(nan_ignored && stats->has_inf);
  if (nan_decides)
    choice = s->scale_nan, number = s->scale_nan_n;
  else if (stats->has_inf && s->scale_inf == MX_SCALE_INF_AS_NAN)
    choice = s->scale_nan, number = s->scale_nan_n;
  else if (stats->has_inf)
    choice = s->scale_inf - 1, number = s->scale_inf_n;
  *out = (mx_block_scale){.how = MX_BY_NUMBER};
  if (p->tensor_nan) choice = MX_SCALE_NAN_PROPAGATE; /* every scale is NaN, and nothing is refused */
  if (choice == MX_SCALE_NAN_ERROR) return 1;
  double amax = stats->amax;
  if (choice == MX_SCALE_NAN_IGNORE) amax = stats->amax_finite;
  if (choice == MX_SCALE_NAN_CLAMP && isinf(amax)) amax = FLT_MAX;
  const int flows = p->uses_chain && !p->tensor_nan;
  const int of_nan = choice == MX_SCALE_NAN_RULE || choice == MX_SCALE_NAN_MAX || choice == MX_SCALE_NAN_TENSOR;
  if (flows && (choice == MX_SCALE_NAN_PROPAGATE || (nan_decides && of_nan))) {
    amax = NAN;
  } else if (choice == MX_SCALE_NAN_PROPAGATE || choice == MX_SCALE_NAN_TENSOR || (choice == MX_SCALE_NAN_RULE && nan_decides)) {
    store_nan(out, p);
    finish(out, p);
    return 0;
  } else if (choice >= 0 && special_code(out, p, choice, number)) {
    finish(out, p);
    return 0;
  } else if (choice == MX_SCALE_NAN_RULE && !p->uses_chain)
    amax = 0x1p128;

  if (amax == 0 && s->scale_allzero != MX_SCALE_ALLZERO_CHAIN) {
    const uint32_t code = s->scale_allzero == MX_SCALE_ALLZERO_ONE    ? code_of(p->scale, 1)
                          : s->scale_allzero == MX_SCALE_ALLZERO_MIN  ? code_of(p->scale, mx_format_min(p->scale))
                          : s->scale_allzero == MX_SCALE_ALLZERO_BYTE ? (uint32_t)s->scale_allzero_n
                                                                      : 0;
    out->code = code; /* not clamped, as the key says */
    out->used = decode_scale(p, code);
    out->how = MX_AS_IS;
    out->sf = (float)out->used;
    return 0;
  }
  double v;
  if (amax == 0 && !p->uses_chain && isfinite(p->norm) && isfinite(p->g))
    v = 0;
  else
    v = raw_value(p, amax, stats, map_to_4);
  if (s->scale_rule == MX_SCALE_RULE_EVEN && s->scale_carry == MX_SCALE_CARRY_INF && !stats->has_inf && isfinite(amax) && amax < 0x1p128 &&
      even_round(p, amax) >= (s->input_dtype == MX_INPUT_DTYPE_FLOAT16 ? 0x1p16 : 0x1p128)) {
    const mx_block_stats inf = {.amax = INFINITY, .amax_finite = stats->amax_finite, .has_inf = 1};
    return find(out, p, &inf, map_to_4, index);
  }
  cast_value(out, p, v, index);
  finish(out, p);
  return 0;
}

int mxi_block_scale_find(mx_block_scale *out, const mx_plan *p, const mx_block_stats *stats, int map_to_4, uint64_t index) {
  if (find(out, p, stats, map_to_4, index)) return 1;
  if (out->how != MX_AS_IS) meet(out, p);
  return 0;
}

int mxi_block_scale_code(uint32_t *code, const mx_plan *p, const mx_block_stats *stats, int map_to_4, uint64_t index) {
  mx_block_scale b;
  const int refused = find(&b, p, stats, map_to_4, index);
  *code = b.code;
  return refused;
}

void mxi_block_scale_given(mx_block_scale *out, const mx_plan *p, uint32_t code) {
  *out = (mx_block_scale){.how = MX_BY_NUMBER};
  out->code = code;
  out->used = decode_scale(p, code);
  if (out->used == 0) {
    out->used = 0; /* of -0 too: quotients have the signs of their elements */
    divide_by_zero(out, p);
  }
  meet(out, p);
}
