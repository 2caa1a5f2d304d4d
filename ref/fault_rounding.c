/* Makes the code of a scale by the roundings of SPEC 9 that no key names. */
#include "fault_run.h"

/* The number that the rule rounds, as a binary32, in the scale that it makes; 0 where it rounds none. */
static num number_of(const ref_run *r, size_t d, size_t a, num amax, int second, ref_scale out[2]) {
  ref_plan wide = *ref_plan_at(r, d, a);
  mx_spec spec = *r->plan.spec;
  const ref_block block = ref_load(r, d, a);
  spec.scale_round = MX_SCALE_ROUND_RNE;
  spec.scale_min = 0;
  spec.scale_min_byte = spec.scale_max_byte = 0;
  spec.scale_zero = MX_SCALE_ZERO_ZERO;
  spec.scale_allzero = MX_SCALE_ALLZERO_ZERO;
  wide.spec = &spec;
  wide.scale = ref_scale_format(MX_SCALE_FP32);
  if (num_is_zero(amax) || !ref_block_scales_from(out, &wide, &block, amax)) return num_zero(0);
  const num v = ref_value(wide.scale, out[second].code);
  return v.kind == NUM_FINITE && !v.sign ? v : num_zero(0);
}

int ref_unrounded(ref_scale *scale, const ref_run *r, size_t d, size_t a, num amax) {
  ref_scale out[2];
  const int rule = r->plan.spec->scale_rule;
  if (ref_has_special(r, d, a)) return 0;
  if (rule == MX_SCALE_RULE_FLOOR || rule == MX_SCALE_RULE_CEIL || rule == MX_SCALE_RULE_EVEN) { /* what their integers are the log2 of */
    if (amax.kind != NUM_FINITE) return 0;
    *scale = (ref_scale){.scaling = SCALING_USED};
    amax.exp -= ref_format_largest(r->plan.elem).exp;
    scale->used = num_round(amax, NUM_F32);
    return !num_is_zero(scale->used);
  }
  if (num_is_zero(number_of(r, d, a, amax, 0, out))) return 0;
  *scale = out[0];
  return 1;
}

static uint64_t nearest(const mx_format *f, num v) {
  const ref_how how = {0};
  return ref_code(f, v, &how, 0);
}

static uint64_t of_exponent(const ref_run *r, int e) {
  const int code = e + r->plan.scale->bias, most = (int)r->plan.scale->max_code;
  return (uint64_t)(code < 0 ? 0 : code > most ? most : code);
}

static uint64_t or_of_exponents(const ref_run *r, size_t d, size_t a) {
  const ref_block block = ref_load(r, d, a);
  uint32_t fields = 0;
  for (size_t i = 0; i < block.n; i++) fields |= num_bits32(block.x[i]) << 1 >> 24;
  return of_exponent(r, (int)fields - 127 - ref_format_largest(r->plan.elem).exp);
}

/* The integer nearest to log2(x), from 2^(n - 1/2) on n. */
static int log2_nearest(num x) {
  const num square = num_ratio((num[]){x, x}, 2, NULL, 0);
  return (square.exp + 1 + 4096) / 2 - 2048;
}

/* The integer below or above a log2 that was rounded to binary32 and to a narrow type. */
static uint64_t by_narrow_log2(const ref_run *r, const ref_fault *f, num amax, num v, uint64_t otherwise) {
  const mx_spec *s = r->plan.spec;
  const num_type narrow = IS(f, "log2 bfloat16") ? NUM_BF16 : NUM_F16;
  const int emax = ref_format_largest(r->plan.elem).exp;
  if (s->scale_rule == MX_SCALE_RULE_FLOOR) return of_exponent(r, num_floor(num_round(num_log2f(amax), narrow)) - emax);
  if (s->scale_rule == MX_SCALE_RULE_CEIL) return of_exponent(r, num_ceil(num_round(num_log2f(amax), narrow)) - emax);
  if (s->scale_rule != MX_SCALE_RULE_VALUE || num_is_zero(v)) return otherwise;
  if (s->scale_round == MX_SCALE_ROUND_UP) return of_exponent(r, num_ceil(num_round(num_log2f(v), narrow)));
  if (s->scale_round == MX_SCALE_ROUND_DOWN) return of_exponent(r, num_floor(num_round(num_log2f(v), narrow)));
  return otherwise;
}

uint64_t ref_code_by_rule(const ref_run *r, const ref_fault *f, size_t d, size_t a, num amax, uint64_t otherwise) {
  static const struct {
    const char *name;
    int rule, round;
  } rules[] = {{"floor", MX_SCALE_RULE_FLOOR, MX_SCALE_ROUND_RNE}, {"ceil", MX_SCALE_RULE_CEIL, MX_SCALE_ROUND_RNE},
               {"even", MX_SCALE_RULE_EVEN, MX_SCALE_ROUND_RNE},   {"nearest", MX_SCALE_RULE_VALUE, MX_SCALE_ROUND_RNE},
               {"up", MX_SCALE_RULE_VALUE, MX_SCALE_ROUND_UP},     {"down", MX_SCALE_RULE_VALUE, MX_SCALE_ROUND_DOWN}};
  const mx_format *scale = r->plan.scale;
  mx_spec spec = *r->plan.spec;
  ref_plan plan = r->plan;
  ref_scale out[2];
  if (scale->kind != MX_KIND_EXP || scale->man_bits || spec.tensor_norm != MX_TENSOR_NORM_NONE || plan.chained ||
      spec.scale_form != MX_SCALE_FORM_DECODE || ref_has_special(r, d, a))
    return otherwise;
  if (!strcmp(f->rule, "cast")) { /* of a negative log2 that is no integer the next one above */
    if (num_is_zero(amax)) return otherwise;
    const int up = amax.exp < 0 && num_cmp(amax, num_pow2(amax.exp)) > 0;
    return of_exponent(r, amax.exp + up - ref_format_largest(plan.elem).exp);
  }
  if (!strcmp(f->rule, "half up")) { /* the upper bit behind the leading one is added to the exponent */
    if (num_is_zero(amax)) return otherwise;
    return of_exponent(r, amax.exp + (int)(amax.sig >> 62 & 1) - ref_format_largest(plan.elem).exp);
  }
  for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
    if (!strcmp(rules[k].name, f->rule)) spec.scale_rule = (uint8_t)rules[k].rule, spec.scale_round = (uint8_t)rules[k].round;
  spec.scale_margin = 0;
  plan.spec = &spec;
  plan.most = ref_format_largest(plan.elem);
  const ref_block block = ref_load(r, d, a);
  return ref_block_scales_from(out, &plan, &block, amax) ? out[0].code : otherwise;
}

uint64_t ref_fault_rounded(const ref_run *r, const ref_fault *f, size_t d, size_t a, num amax, int second, uint64_t code) {
  const mx_format *scale = r->plan.scale;
  const int powers = scale->kind == MX_KIND_EXP && !scale->man_bits;
  if (IS(f, "or of exponents")) return powers ? or_of_exponents(r, d, a) : code;
  if (IS(f, "log2 of amax rounded"))
    return powers && !num_is_zero(amax) ? of_exponent(r, log2_nearest(amax) - ref_format_largest(r->plan.elem).exp) : code;
  ref_scale made[2];
  const num v = number_of(r, d, a, amax, second, made);
  if (IS(f, "log2 bfloat16") || IS(f, "log2 float16"))
    return powers && r->plan.spec->tensor_norm == MX_TENSOR_NORM_NONE && !num_is_zero(amax) ? by_narrow_log2(r, f, amax, v, code) : code;
  if (num_is_zero(v)) return code;
  if (IS(f, "modulo")) {
    const unsigned bits = (unsigned)(scale->bits - (scale->sign_bits != 0));
    return scale->kind != MX_KIND_FLOAT || v.exp >= 40 ? code : ref_count(scale, v) & ((UINT64_C(1) << bits) - 1);
  }
  if (IS(f, "flush first")) return scale->kind == MX_KIND_FLOAT && v.exp < 1 - scale->bias ? 0 : code;
  if (IS(f, "format")) return nearest(f->format, v) & ((UINT64_C(1) << scale->bits) - 1);
  return nearest(scale, num_round(v, IS(f, "bfloat16") ? NUM_BF16 : NUM_F16));
}
