/* Makes the code of a scale by a rounding that no key of a spec names. */
#include <math.h>
#include <string.h>

#include "verify/fault/elements.h"
#include "verify/fault/run.h"

/* The plan with scales in binary32, which hold the number that the rule rounds to a scale. */
static mx_plan unrounded(const fault_run *r, size_t k) {
  mx_plan p = *mxi_fault_plan(r, k / r->across, k % r->across);
  p.scale = mx_scale_format(MX_SCALE_FP32);
  p.scale_values = NULL;
  p.spec.scale_round = MX_SCALE_ROUND_RNE;
  p.spec.scale_min = 0;
  p.spec.scale_min_byte = p.spec.scale_max_byte = 0;
  p.spec.scale_zero = MX_SCALE_ZERO_ZERO;
  p.spec.scale_allzero = MX_SCALE_ALLZERO_ZERO;
  p.scale_encode = mx_scale_encoding(&p.spec);
  return p;
}

static float of_bits(uint32_t bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return isfinite(v) && v > 0 ? v : 0;
}

/* The number that the rule rounds to a scale, rounded to binary32; 0 for one that is rounded to no scale. */
static float number_of(const fault_run *r, const mx_block_stats *st, int map_to_4, size_t k) {
  const mx_plan p = unrounded(r, k);
  uint32_t bits;
  return st->amax_finite == 0 || mxi_block_scale_code(&bits, &p, st, map_to_4, k) ? 0 : of_bits(bits);
}

int mxi_fault_unrounded_scale(mx_block_scale *out, const fault_run *r, size_t k) {
  int changed;
  const mx_block_stats st = mxi_fault_stats(r, k / r->across, k % r->across, &changed);
  const mx_plan p = unrounded(r, k);
  const int rule = p.spec.scale_rule;
  mx_block_scale s;
  if (st.has_nan || st.has_inf || st.amax_finite == 0) return 0;
  if (rule == MX_SCALE_RULE_FLOOR || rule == MX_SCALE_RULE_CEIL || rule == MX_SCALE_RULE_EVEN) { /* what their integers are the log2 of */
    const float number = (float)ldexp((double)st.amax_finite, -p.emax);                          /* of tiny maxima it is rounded */
    if (number == 0) return 0;
    *out = (mx_block_scale){.how = MX_BY_NUMBER, .used = (double)number};
    return 1;
  }
  if (mxi_block_scale_find(&s, &p, &st, 0, k) || of_bits(s.code) == 0) return 0;
  *out = s;
  return 1;
}

static uint32_t nearest(const mx_format *f, float v) { return (uint32_t)mx_encode(f, (double)v, &(mx_encoding){0}, 0); }

/* A code of a power of two whose exponent may lie outside the format. */
static uint32_t exponent_code(const fault_run *r, int e) {
  return (uint32_t)fmin(fmax(e + r->plan.scale->bias, 0), (double)r->plan.scale->max_code);
}

/* The field of the exponent in binary32. */
static int field_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 23 & 255);
}

static uint32_t or_of_exponents(const fault_run *r, size_t d, size_t a) {
  int all = 0;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++) all |= field_of(r->x[row * r->cols + col]);
  return exponent_code(r, all - 127 - r->plan.emax);
}

/* floor(log2(x) + 1/2): m 2^e with m^2 of at least 2 goes up. Squares of binary32 are exact in binary64. */
static int log2_rounded(float x) {
  const int e = ilogb((double)x);
  const double m = ldexp((double)x, -e);
  return e + (m * m >= 2);
}

/* The exponent where log2 is rounded to a narrow type before the integer below or above it is taken. */
static uint32_t by_narrow_log2(const fault_run *r, const mx_fault *f, float amax, float v, uint32_t otherwise) {
  const int value = r->plan.spec.scale_rule == MX_SCALE_RULE_VALUE;
  const int up = value ? r->plan.spec.scale_round == MX_SCALE_ROUND_UP : r->plan.spec.scale_rule == MX_SCALE_RULE_CEIL;
  const float x = value ? v : amax;
  if (!(x > 0) || (!up && !(value ? r->plan.spec.scale_round == MX_SCALE_ROUND_DOWN : r->plan.spec.scale_rule == MX_SCALE_RULE_FLOOR)))
    return otherwise;
  const float l = mxi_round_dtype((float)log2((double)x), f->op == MX_FAULT_SCALE_LOG2_BF16 ? MX_INPUT_DTYPE_BFLOAT16 : MX_INPUT_DTYPE_FLOAT16);
  return exponent_code(r, (int)(up ? ceilf(l) : floorf(l)) - (value ? 0 : r->plan.emax));
}

const fault_rule *mxi_fault_rule(int k) {
  static const fault_rule rules[] = {{"floor", MX_SCALE_RULE_FLOOR, MX_SCALE_ROUND_RNE},
                                     {"ceil", MX_SCALE_RULE_CEIL, MX_SCALE_ROUND_RNE},
                                     {"even", MX_SCALE_RULE_EVEN, MX_SCALE_ROUND_RNE},
                                     {"up", MX_SCALE_RULE_VALUE, MX_SCALE_ROUND_UP},
                                     {"nearest", MX_SCALE_RULE_VALUE, MX_SCALE_ROUND_RNE},
                                     {"down", MX_SCALE_RULE_VALUE, MX_SCALE_ROUND_DOWN},
                                     {"half up", MXI_RULE_HALF_UP, 0},
                                     {"cast", MXI_RULE_CAST, 0}};
  return k >= 0 && (size_t)k < sizeof rules / sizeof *rules ? &rules[k] : NULL;
}

uint32_t mxi_fault_code_by_rule(const fault_run *r, const mx_fault *f, const mx_block_stats *st, size_t k, uint32_t otherwise) {
  const mx_format *scale = r->plan.scale;
  mx_plan p = r->plan;
  uint32_t code;
  if (scale->kind != MX_KIND_EXP || scale->man_bits || p.has_tensor_scale || p.uses_chain || p.spec.scale_form != MX_SCALE_FORM_DECODE ||
      st->has_nan || st->has_inf)
    return otherwise;
  const int rule = mxi_fault_rule(f->format)->rule;
  if (rule < 0 && st->amax_finite > 0) {
    const double a = (double)st->amax_finite;
    const int e = ilogb(a), up = rule == MXI_RULE_CAST ? e < 0 && a > ldexp(1, e) : a >= ldexp(1.5, e);
    return exponent_code(r, e + up - r->plan.emax);
  }
  if (rule < 0) return otherwise;
  p.spec.scale_rule = (uint8_t)rule;
  p.spec.scale_round = (uint8_t)mxi_fault_rule(f->format)->round;
  p.spec.scale_margin = 0;
  p.f = mx_format_max(p.elem);
  p.scale_encode = mx_scale_encoding(&p.spec);
  return mxi_block_scale_code(&code, &p, st, 0, k) ? otherwise : code;
}

uint32_t mxi_fault_scale_rounded(const fault_run *r, const mx_fault *f, size_t d, size_t a, const mx_block_stats *st, int map_to_4,
                                 uint32_t code) {
  const mx_format *scale = r->plan.scale;
  const int powers = scale->kind == MX_KIND_EXP && !scale->man_bits;
  float v;
  if (st->has_nan || st->has_inf) return code;
  switch (f->op) {
  case MX_FAULT_SCALE_OR:
    return powers ? or_of_exponents(r, d, a) : code;
  case MX_FAULT_SCALE_LOG2_AMAX:
    return powers && st->amax_finite > 0 ? exponent_code(r, log2_rounded(st->amax_finite) - r->plan.emax) : code;
  case MX_FAULT_SCALE_LOG2_BF16:
  case MX_FAULT_SCALE_LOG2_F16:
    if (!powers || r->plan.has_tensor_scale) return code;
    return by_narrow_log2(r, f, st->amax_finite, number_of(r, st, map_to_4, d * r->across + a), code);
  case MX_FAULT_SCALE_BF16:
    v = number_of(r, st, map_to_4, d * r->across + a);
    return v > 0 ? nearest(scale, mxi_round_dtype(v, MX_INPUT_DTYPE_BFLOAT16)) : code;
  case MX_FAULT_SCALE_F16:
    v = number_of(r, st, map_to_4, d * r->across + a);
    return v > 0 ? nearest(scale, mxi_round_dtype(v, MX_INPUT_DTYPE_FLOAT16)) : code;
  case MX_FAULT_SCALE_FORMAT:
    v = number_of(r, st, map_to_4, d * r->across + a);
    return v > 0 ? nearest(mxi_fault_format(f->format), v) & (uint32_t)((UINT64_C(1) << scale->bits) - 1) : code;
  case MX_FAULT_SCALE_RULE:
    return mxi_fault_code_by_rule(r, f, st, d * r->across + a, code);
  case MX_FAULT_SCALE_MODULO:
    v = scale->kind == MX_KIND_FLOAT ? number_of(r, st, map_to_4, d * r->across + a) : 0;
    return v > 0 && (double)v < MXI_NO_STEPS
               ? (uint32_t)mxi_fault_count(scale, (double)v) & (uint32_t)((UINT64_C(1) << (scale->bits - scale->sign_bits)) - 1)
               : code;
  case MX_FAULT_SCALE_FLUSH_FIRST:
    v = number_of(r, st, map_to_4, d * r->across + a);
    return v > 0 && scale->kind == MX_KIND_FLOAT && (double)v < ldexp(1, 1 - scale->bias) ? 0 : code;
  default:
    return code;
  }
}
