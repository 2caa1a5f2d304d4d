/* Computes what a block's elements are divided by, rounded to binary32. */
#include "fault_run.h"

num ref_tensor_of(const ref_plan *plan) {
  if (plan->spec->tensor_norm == MX_TENSOR_NORM_NONE) return num_int(1);
  if (!plan->chained) return num_div_r(plan->norm_under, plan->norm_over, NUM_F32);
  return num_is_zero(plan->amax) ? num_int(1) : num_div_r(plan->amax, num_round(plan->target, NUM_F32), NUM_F32);
}

char ref_chain_factor(const ref_plan *plan, const ref_scale *s, num *factor) {
  const chain_expr *e = &plan->chain.element;
  chain_env env = plan->env;
  if (!plan->chained || s->scaling != SCALING_USED) return 0;
  int depth = 1, factors = 0;
  for (int i = 1; i < e->n; i++) {
    const char op = e->ops[i].op;
    const int operands = op == '#' || op == '$' ? 0 : op == 'r' || op == 'a' ? 1 : 2;
    depth += 1 - operands;
    factors += depth == 1;
  }
  if (factors != 1) return 0;
  chain_expr alone = {.n = e->n - 2};
  memcpy(alone.ops, e->ops + 1, (size_t)alone.n * sizeof *alone.ops);
  env.var[VAR_SF] = s->used;
  *factor = ref_chain_eval(&alone, &env);
  return e->ops[e->n - 1].op;
}

num ref_divisor(const ref_plan *plan, const ref_scale *s) {
  num factor;
  const char op = ref_chain_factor(plan, s, &factor);
  if (op) return op == '/' ? factor : num_div_r(num_int(1), factor, NUM_F32);
  if (plan->chained && s->scaling == SCALING_USED) return num_mul_r(s->used, ref_tensor_of(plan), NUM_F32);
  const num up[2] = {s->used, plan->norm_under}, down[2] = {s->used, plan->norm_over};
  if (plan->spec->scale_form == MX_SCALE_FORM_ENCODE) return num_round(num_ratio(&plan->norm_under, 1, down, 2), NUM_F32);
  return num_round(num_ratio(up, 2, &plan->norm_over, 1), NUM_F32);
}
