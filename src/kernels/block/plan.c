/* Makes a plan from a spec. */
#include "kernels/block/plan.h"

#include <float.h>
#include <math.h>
#include <string.h>

mx_status mxi_plan_init(mx_plan *p, const mx_spec *spec, size_t rows, size_t cols, mx_error *err) {
  mx_status status = mx_spec_check(spec, err);
  if (status) return status;
  memset(p, 0, sizeof *p);
  p->spec = *spec;
  p->elem = mx_elem_format(spec->elem);
  p->scale = mx_scale_format(spec->scale);
  p->rows = rows;
  p->cols = cols;
  mx_spec_block(spec, rows, cols, &p->block_rows, &p->block_cols);
  p->encode = mx_elem_encoding(spec);
  if (!p->encode.sr_bits) p->encode.sr_bits = 16;
  if (spec->sr_source == MX_SR_SOURCE_AMD_LFSR) { /* the conversion uses a random bit for every discarded bit */
    p->encode.sr_bits = 23 - p->elem->man_bits;
    p->encode.sr_mode = MX_SR_FASTEST;
  }
  p->scale_encode = mx_scale_encoding(spec);
  p->chain = mxi_chain_parsed(spec->chain);
  if (spec->elem_round == MX_ROUND_SCAN_X || spec->elem_round == MX_ROUND_SCAN_Y || spec->select == MX_SELECT_EDEN)
    p->values = mxi_elem_values(spec->elem);
  p->scale_values = mxi_scale_values(spec->scale);
  p->g = 1;
  p->tensor_scale = 1;
  if (p->elem->kind == MX_KIND_NONE) return MX_OK;
  p->emax = mx_format_emax(p->elem);
  p->f = mx_spec_scale_max(spec);
  p->m = mx_format_max(p->scale);
  p->target = spec->tensor_target != 0 ? (double)spec->tensor_target : (double)(float)(p->f * p->m);
  p->norm = 1;
  if (spec->tensor_norm == MX_TENSOR_NORM_NV || spec->tensor_norm == MX_TENSOR_NORM_CHMIEL) p->norm = p->target;
  if (spec->tensor_norm == MX_TENSOR_NORM_SEED004) p->norm = p->target / 2;
  p->has_tensor_scale = spec->tensor_norm != MX_TENSOR_NORM_NONE;
  p->uses_chain = spec->chain != MX_CHAIN_EXACT;
  if (!p->chain) return mx_fail(err, MX_ERR_ARG, "chain '%s' does not parse", mx_chain_row(spec->chain)->name);
  if (p->uses_chain) {
    p->vars[MX_VAR_F] = (float)p->f;
    p->vars[MX_VAR_M] = (float)p->m;
    p->vars[MX_VAR_K] = (float)p->target;
    mxi_chain_tensor(p->chain, p->vars, 0);
  }
  return MX_OK;
}

int mxi_plan_needs_amax(const mx_plan *p) {
  if (p->spec.scale_nan == MX_SCALE_NAN_TENSOR || p->spec.scale_inf == MX_SCALE_INF_TENSOR) return 1;
  return p->has_tensor_scale && !p->spec.tensor_given;
}

/* What the exact chain stores: MX_TENSOR_STORE_SCALE, _DIVISOR or _AMAX. */
static int store_of(const mx_spec *s) { return s->tensor_store == MX_TENSOR_STORE_CHAIN ? MX_TENSOR_STORE_SCALE : s->tensor_store; }

/* A NaN that is stored has no sign. */
static float as_result(float v) { return isnan(v) ? NAN : v; }

void mxi_plan_set_amax(mx_plan *p, float amax) {
  const mx_spec *s = &p->spec;
  if (s->scale_nan == MX_SCALE_NAN_TENSOR) p->tensor_nan = isnan(amax) || (isinf(amax) && s->scale_inf == MX_SCALE_INF_AS_NAN);
  if (s->scale_inf == MX_SCALE_INF_TENSOR) p->tensor_nan |= isinf(amax) != 0;
  if (!p->has_tensor_scale) return;
  const float given = s->tensor_given_value;
  if (p->uses_chain) {
    p->vars[MX_VAR_A] = amax;
    if (s->tensor_given && p->chain->store >= 0) p->vars[p->chain->store] = given;
    mxi_chain_tensor(p->chain, p->vars, s->tensor_given);
    p->tensor_scale = as_result(p->chain->store >= 0 ? p->vars[p->chain->store] : 1);
    return;
  }
  const float norm = (float)p->norm;
  if (!s->tensor_given) {
    p->g = amax;
    p->tensor_scale = store_of(s) == MX_TENSOR_STORE_AMAX ? amax : store_of(s) == MX_TENSOR_STORE_SCALE ? amax / norm : norm / amax;
  } else {
    p->tensor_scale = as_result(given);
    p->g = given;
    if (given != 0 && store_of(s) == MX_TENSOR_STORE_SCALE) p->norm = 1; /* g is the given number itself, not a maximum made from it */
    if (given != 0 && store_of(s) == MX_TENSOR_STORE_DIVISOR) {
      p->norm = given;
      p->g = 1;
    }
  }
  if (p->g == 0) p->g = 1;
}
