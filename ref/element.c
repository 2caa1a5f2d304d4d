/* Makes the scaled value of x, and a code from that: step 10 of SPEC 3.2. */
#include "rules.h"

/* chain=exact: x P N / (S g), in the encode form x P S N / g, as elem.arith says. */
static num quotient(const ref_plan *plan, num s, num x) {
  const mx_spec *spec = plan->spec;
  const num prescale = ref_real(spec->elem_prescale, num_int(1)), n = plan->norm_over, g = plan->norm_under;
  const num times = spec->elem_arith == MX_ELEM_ARITH_EXACT ? num_ratio((num[]){x, prescale}, 2, NULL, 0) : num_mul_r(x, prescale, NUM_F32);
  switch (spec->elem_arith) {
  case MX_ELEM_ARITH_DIV32:
    return num_round(num_ratio((num[]){times, n}, 2, (num[]){s, g}, 2), NUM_F32);
  case MX_ELEM_ARITH_RECIP32:
    return num_mul_r(times, num_round(num_ratio(&n, 1, (num[]){s, g}, 2), NUM_F32), NUM_F32);
  case MX_ELEM_ARITH_MUL32:
    return num_round(num_ratio((num[]){times, s, n}, 3, &g, 1), NUM_F32);
  default:
    if (spec->scale_form == MX_SCALE_FORM_ENCODE) return num_ratio((num[]){times, s, n}, 3, &g, 1);
    return num_ratio((num[]){times, n}, 2, (num[]){s, g}, 2);
  }
}

/* y is rounded to input.dtype as well, if that is narrower. */
static num scaled_exact(const ref_plan *plan, num s, num x) {
  num y = quotient(plan, s, x);
  return plan->type == NUM_F32 ? y : num_round(y, plan->type);
}

static num formula(const ref_plan *plan, const chain_expr *expr, num s, num x, num q) {
  chain_env env = plan->env;
  env.var[VAR_SF] = s;
  env.var[VAR_X] = x;
  env.var[VAR_Q] = q;
  return ref_chain_eval(expr, &env);
}

num ref_scaled(const ref_plan *plan, const ref_scale *scale, num x) {
  switch (scale->scaling) {
  case SCALING_AS_IS:
    return x;
  case SCALING_PLUS_ZERO:
    return num_zero(0);
  case SCALING_TIMES_0:
    return num_mul_r(x, num_zero(0), NUM_F32);
  case SCALING_SIGNED_ZERO:
    return num_is_nan(x) ? x : num_zero(x.sign);
  case SCALING_FLT_MAX:
    return num_mul_r(x, ref_flt_max(), NUM_F32);
  default:
    break;
  }
  if (plan->chained) return formula(plan, &plan->chain.element, scale->used, x, x);
  return scaled_exact(plan, scale->used, x);
}

/* elem.round=scan_x: the first code of least |rnd_f32(value * scale - x)|, the product exact; one that overflows is out. */
static uint64_t scan_x(const ref_plan *plan, num s, num x) {
  uint64_t best = 0;
  num least = num_nan(0);
  for (uint64_t code = 0; code >> plan->elem->bits == 0; code++) {
    num product = num_ratio((num[]){ref_value(plan->elem, code), s}, 2, NULL, 0);
    if (num_round(product, NUM_F32).kind == NUM_INF) continue;
    num d = num_abs(num_sub_r(product, x, NUM_F32));
    if (num_is_nan(d) || (!num_is_nan(least) && num_cmp(d, least) >= 0)) continue;
    best = code;
    least = d;
  }
  return best;
}

/* The random integer of sr.bits bits for element `index` of the tensor, SPEC 6. */
static uint32_t random_integer(const ref_plan *plan, uint64_t index) {
  const mx_spec *spec = plan->spec;
  const int bits = plan->how.base.sr_bits;
  if (spec->elem_round != MX_ROUND_SR) return 0;
  if (spec->sr_source == MX_SR_SOURCE_GIVEN) return index == UINT64_MAX || !spec->given_bits ? 0 : spec->given_bits[index];
  if (spec->sr_source == MX_SR_SOURCE_PHILOX) return ref_random(spec->seed, MX_STREAM_ELEMENT, index) >> (32 - bits);
  uint32_t word = ref_random(spec->seed, MX_STREAM_ELEMENT, index / 2); /* the seed of a pair; its second element steps it once */
  return (index % 2 ? ref_random_lfsr(word) : word) >> (32 - bits);
}

uint64_t ref_element(const ref_plan *plan, const ref_scale *scale, num x, uint64_t index, num *value) {
  uint64_t code;
  if (plan->spec->elem_round == MX_ROUND_SCAN_X) {
    code = scan_x(plan, scale->used, x);
    *value = ref_value(plan->elem, code);
    return code;
  }
  const uint32_t random = random_integer(plan, index);
  num y = ref_scaled(plan, scale, x);
  code = ref_code(plan->elem, y, &plan->how, random);
  *value = ref_value(plan->elem, code);
  if (plan->spec->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO && plan->spec->elem_round != MX_ROUND_SCAN_Y)
    *value = y.kind == NUM_INF || (y.kind == NUM_FINITE && y.exp >= 127) ? num_nan(1) : ref_unbounded(plan->elem, y, &plan->how.base, random);
  if (plan->chained && plan->chain.again.n && scale->scaling == SCALING_USED) {
    num q = num_round(ref_value(plan->elem, code), NUM_F32);
    code = ref_code(plan->elem, formula(plan, &plan->chain.again, scale->used, x, q), &plan->how, random);
    *value = ref_value(plan->elem, code);
  }
  return code;
}
