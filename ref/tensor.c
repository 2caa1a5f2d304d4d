/* Computes the tensor scale, the shape of what comes out, and the keys with their defaults filled in: SPEC 3.3. */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes ---- */

static size_t extent(int key, size_t otherwise, size_t whole) {
  if (key == MX_BLOCK_WHOLE) return whole ? whole : 1;
  return key ? (size_t)key : otherwise;
}

void ref_block_extent(const mx_spec *spec, size_t rows, size_t cols, size_t *block_rows, size_t *block_cols) {
  *block_rows = extent(spec->block_rows, 1, rows);
  *block_cols = extent(spec->block_cols, 32, cols);
}

static int round_up(size_t *out, size_t n, size_t to) {
  size_t last;
  if (__builtin_add_overflow(n, to - 1, &last)) return 0;
  *out = last / to * to;
  return 1;
}

mx_status ref_tensor_layout(mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec) {
  mx_status status = ref_spec_check(spec, NULL);
  if (status != MX_OK) return status;
  const mx_format *elem = ref_elem_format(spec->elem), *scale = ref_scale_format(spec->scale);
  size_t block_rows, block_cols;
  ref_block_extent(spec, rows, cols, &block_rows, &block_cols);
  *out = (mx_tensor){.rows = rows, .cols = cols, .tensor_scale = 1, .has_tensor_scale = spec->tensor_norm != MX_TENSOR_NORM_NONE};
  const int by_column = block_cols == 1 && block_rows > 1; /* one scale a column of each block row */
  if (!round_up(&out->cols_padded, cols, block_cols)) return MX_ERR_NOMEM;
  if (elem->bits == 4 && !round_up(&out->cols_padded, out->cols_padded, 2)) return MX_ERR_NOMEM;
  out->code_stride = elem->kind == MX_KIND_NONE ? 4 * cols : elem->bits == 4 ? out->cols_padded / 2 : out->cols_padded;
  out->scale_rows = by_column ? rows / block_rows + (rows % block_rows != 0) : rows;
  out->scale_cols = by_column ? cols : cols / block_cols + (cols % block_cols != 0);
  out->scale_bytes = scale->bits <= 8 ? 1 : scale->bits <= 16 ? 2 : 4;
  size_t n;
  if (__builtin_mul_overflow(rows, out->cols_padded, &n) || __builtin_mul_overflow(n, (size_t)4, &n) ||
      __builtin_mul_overflow(out->scale_rows, out->scale_cols, &n) || __builtin_mul_overflow(n, (size_t)4, &n))
    return MX_ERR_NOMEM;
  return MX_OK;
}

mx_status ref_tensor_alloc(mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec) {
  mx_status status = ref_tensor_layout(out, rows, cols, spec);
  if (status != MX_OK) return status;
  const size_t n_scales = out->scale_rows * out->scale_cols;
  if (out->code_stride) out->codes = calloc(rows * out->code_stride + 1, 1);
  out->scales = calloc(n_scales * out->scale_bytes + 1, 1);
  if (spec->scale_rule == MX_SCALE_RULE_HIF4) out->micro = calloc(n_scales * 3 + 1, 1);
  if ((out->code_stride && !out->codes) || !out->scales || (spec->scale_rule == MX_SCALE_RULE_HIF4 && !out->micro)) {
    ref_tensor_free(out);
    return MX_ERR_NOMEM;
  }
  return MX_OK;
}

void ref_tensor_free(mx_tensor *tensor) {
  if (!tensor) return;
  free(tensor->codes);
  free(tensor->scales);
  free(tensor->micro);
  *tensor = (mx_tensor){0};
}

/* ---- the plan ---- */

mx_status ref_plan_make(ref_plan *plan, const mx_spec *spec, size_t rows, size_t cols) {
  static const num_type types[] = {
      [MX_INPUT_DTYPE_FLOAT32] = NUM_F32, [MX_INPUT_DTYPE_BFLOAT16] = NUM_BF16, [MX_INPUT_DTYPE_FLOAT16] = NUM_F16};
  *plan =
      (ref_plan){.spec = spec, .elem = ref_elem_format(spec->elem), .scale = ref_scale_format(spec->scale), .type = types[spec->input_dtype]};
  ref_block_extent(spec, rows, cols, &plan->block_rows, &plan->block_cols);
  plan->most = ref_scale_max(spec, plan->elem);
  plan->target = ref_real(spec->tensor_target, num_mul_r(plan->most, ref_format_largest(plan->scale), NUM_F32));
  plan->act_nan = spec->scale_nan;
  plan->nan_n = spec->scale_nan_n;
  plan->act_inf = spec->scale_inf == MX_SCALE_INF_AS_NAN ? spec->scale_nan : spec->scale_inf - 1;
  plan->inf_n = spec->scale_inf == MX_SCALE_INF_AS_NAN ? spec->scale_nan_n : spec->scale_inf_n;
  plan->norm_over = plan->norm_under = num_int(1);
  plan->chained = spec->chain != MX_CHAIN_EXACT;
  if (plan->chained && !ref_chain_read(&plan->chain, spec->chain)) return MX_ERR_UNSUPPORTED;
  const int lfsr = spec->sr_source == MX_SR_SOURCE_AMD_LFSR; /* every discarded bit, and its own rule */
  plan->how.base = (mx_encoding){.round = spec->elem_round,
                                 .overflow = spec->elem_overflow,
                                 .saturate_to = spec->elem_saturate_to,
                                 .nan = spec->elem_nan,
                                 .inf = spec->elem_inf,
                                 .zero_sign = spec->elem_zero_sign,
                                 .sr_mode = lfsr ? MX_SR_FASTEST : spec->sr_mode,
                                 .sr_bits = lfsr            ? 23 - plan->elem->man_bits
                                            : spec->sr_bits ? (int)spec->sr_bits
                                                            : 16,
                                 .nan_code = (uint32_t)spec->elem_nan_n,
                                 .inf_code = (uint32_t)spec->elem_inf_n};
  return MX_OK;
}

/* N of SPEC 3.3. */
static num normaliser(const ref_plan *plan) {
  switch (plan->spec->tensor_norm) {
  case MX_TENSOR_NORM_NV:
  case MX_TENSOR_NORM_CHMIEL:
    return plan->target;
  case MX_TENSOR_NORM_SEED004:
    return num_ratio((num[]){plan->target, num_pow2(-1)}, 2, NULL, 0);
  default:
    return num_int(1);
  }
}

/* What the stored number is: MX_TENSOR_STORE_SCALE, _DIVISOR or _AMAX, never _CHAIN; a chain's own variable counts as what it stands for. */
static int convention(const ref_plan *plan) {
  if (plan->spec->tensor_store != MX_TENSOR_STORE_CHAIN) return plan->spec->tensor_store;
  if (!plan->chained) return MX_TENSOR_STORE_SCALE;
  return plan->chain.store == 'A' - 'A'   ? MX_TENSOR_STORE_AMAX
         : plan->chain.store == 'S' - 'A' ? MX_TENSOR_STORE_DIVISOR
                                          : MX_TENSOR_STORE_SCALE;
}

static num zero_as_one(num a) { return num_is_zero(a) ? num_int(1) : a; }

void ref_plan_tensor(ref_plan *plan, num amax, num *stored) {
  const mx_spec *spec = plan->spec;
  plan->amax = plan->seen = amax;
  *stored = num_int(1);
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) {
    if (!plan->chained) return;
  }
  const num n = plan->chained ? plan->target : normaliser(plan), given = num_float(spec->tensor_given_value);
  const int how = convention(plan), own = plan->chained && spec->tensor_store == MX_TENSOR_STORE_CHAIN;
  const num *fixed = NULL;
  plan->norm_over = plan->chained ? num_int(1) : n;
  plan->norm_under = plan->chained ? num_int(1) : zero_as_one(amax);
  if (spec->tensor_given) {
    switch (how) {
    case MX_TENSOR_STORE_AMAX:
      plan->amax = given;
      break;
    case MX_TENSOR_STORE_DIVISOR:
      plan->amax = num_div_r(n, given, NUM_F32);
      break;
    default:
      plan->amax = num_mul_r(given, n, NUM_F32);
    }
    if (own && plan->chain.store >= 0 && how != MX_TENSOR_STORE_AMAX) fixed = &given;
    if (!plan->chained && !num_is_zero(given)) { /* the number itself, not an amax made from it */
      plan->norm_over = how == MX_TENSOR_STORE_SCALE ? num_int(1) : how == MX_TENSOR_STORE_DIVISOR ? given : n;
      plan->norm_under = how == MX_TENSOR_STORE_DIVISOR ? num_int(1) : given;
    } else if (!plan->chained) {
      plan->norm_under = num_int(1);
    }
  }
  if (plan->chained) {
    plan->env.var['A' - 'A'] = plan->amax;
    plan->env.var['F' - 'A'] = plan->most;
    plan->env.var['M' - 'A'] = ref_format_largest(plan->scale);
    plan->env.var['K' - 'A'] = num_round(plan->target, NUM_F32);
    ref_chain_tensor(&plan->chain, &plan->env, fixed);
  }
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) return;
  if (spec->tensor_given)
    *stored = given;
  else if (own && plan->chain.store >= 0)
    *stored = plan->env.var[plan->chain.store];
  else if (how == MX_TENSOR_STORE_AMAX)
    *stored = amax;
  else
    *stored = how == MX_TENSOR_STORE_DIVISOR ? num_div_r(n, amax, NUM_F32) : num_div_r(amax, n, NUM_F32);
}

void ref_tensor_multiplier(const ref_plan *plan, num stored, num *over, num *under) {
  *over = *under = num_int(1);
  if (plan->spec->tensor_norm == MX_TENSOR_NORM_NONE) return;
  const num n = plan->chained ? plan->target : normaliser(plan);
  switch (convention(plan)) {
  case MX_TENSOR_STORE_AMAX:
    *over = stored, *under = n;
    break;
  case MX_TENSOR_STORE_DIVISOR:
    *under = stored;
    break;
  default:
    *over = stored;
  }
  ref_scale_first_multiplier(plan, convention(plan) == MX_TENSOR_STORE_DIVISOR, over, under);
}

mx_status ref_tensor_scale(float *out, float amax, const mx_spec *spec) {
  ref_plan plan;
  num stored;
  if (!out || !spec) return MX_ERR_ARG;
  mx_status status = ref_spec_check(spec, NULL);
  if (status == MX_OK) status = ref_plan_make(&plan, spec, 1, 1);
  if (status != MX_OK) return status;
  ref_plan_tensor(&plan, num_float(amax), &stored);
  *out = num_result(stored);
  return MX_OK;
}

void ref_scale_first_multiplier(const ref_plan *plan, int divisor, num *over, num *under) {
  if (plan->spec->deq_arith != MX_DEQ_ARITH_SCALE_FIRST || divisor) return;
  *over = num_div_r(*over, *under, NUM_F32); /* T itself, or rnd(A / N) */
  *under = num_int(1);
}
