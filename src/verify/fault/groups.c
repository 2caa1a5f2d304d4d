/* Computes with another tensor scale, also with one for each group of rows, as kernels do whose parts do not wait for the maximum of the whole. */
#include <math.h>
#include <stdlib.h>

#include "verify/fault/elements.h"
#include "verify/fault/run.h"

/* What is computed with where the stored number is rounded, and stored as well, or not; 0: the fault is another. */
enum { OTHER, STORED, USED };
static int rounded_scale(float *out, float t, int op) {
  switch (op) {
  case MX_FAULT_TENSOR_SCALE_POWER:
    *out = t != 0 && isfinite(t) ? copysignf(ldexpf(1, ilogbf(t)), t) : t;
    return STORED;
  case MX_FAULT_TENSOR_SCALE_BF16:
  case MX_FAULT_TENSOR_SCALE_USED_BF16:
    *out = mxi_round_dtype(t, MX_INPUT_DTYPE_BFLOAT16);
    return op == MX_FAULT_TENSOR_SCALE_BF16 ? STORED : USED;
  case MX_FAULT_TENSOR_SCALE_F16:
  case MX_FAULT_TENSOR_SCALE_USED_F16:
    *out = mxi_round_dtype(t, MX_INPUT_DTYPE_FLOAT16);
    return op == MX_FAULT_TENSOR_SCALE_F16 ? STORED : USED;
  default:
    return OTHER;
  }
}

int mxi_fault_stores_tensor_alone(int op) {
  return op == MX_FAULT_TENSOR_SCALE_STORED_RCP || op == MX_FAULT_TENSOR_SCALE_STORED_DIVISOR || op == MX_FAULT_TENSOR_SCALE_STORED_AMAX;
}

int mxi_fault_stores_tensor(int op) {
  float unused;
  if (mxi_fault_stores_tensor_alone(op)) return 1;
  return op == MX_FAULT_TENSOR_SCALE_DIVISOR || op == MX_FAULT_TENSOR_SCALE_LAST || op == MX_FAULT_TENSOR_SCALE_TARGET ||
         rounded_scale(&unused, 1, op) == STORED;
}

void mxi_fault_give_tensor(mx_plan *out, const mx_plan *p, const mx_fault *f) {
  *out = *p;
  if (f->op == MX_FAULT_TENSOR_SCALE_DIVISOR) { /* the formulas that have such a number are those of chain=ct */
    const float a = p->vars[MX_VAR_A], s = a != 0 ? (float)p->target / a : 1;
    if (!p->uses_chain) return;
    out->chain = mxi_chain_parsed(MX_CHAIN_CT);
    out->vars[out->chain->store] = out->tensor_scale = s;
    return;
  }
  const float amax = p->uses_chain ? p->vars[MX_VAR_A] : (float)p->g;
  if (mxi_fault_stores_tensor_alone(f->op)) {
    if (f->op == MX_FAULT_TENSOR_SCALE_STORED_AMAX)
      out->tensor_scale = amax;
    else if (f->op == MX_FAULT_TENSOR_SCALE_STORED_RCP)
      out->tensor_scale = 1 / p->tensor_scale;
    else
      out->tensor_scale = amax != 0 ? (float)p->target / amax : 1;
    return;
  }
  out->spec.tensor_given = 1;
  float given;
  const int rounded = rounded_scale(&given, p->tensor_scale, f->op);
  if (rounded == OTHER) given = f->op == MX_FAULT_TENSOR_SCALE_TIMES ? p->tensor_scale * (float)f->number : (float)f->number;
  out->spec.tensor_given_value = given;
  mxi_plan_set_amax(out, amax);
  if (p->uses_chain) out->vars[MX_VAR_A] = mxi_fault_chain_amax(out);
  out->spec = p->spec;
  out->tensor_scale = rounded == STORED ? given : p->tensor_scale;
}

/* What the tensor's maximum maps to: that of the spec, or of the last fault that says another. */
static void set_target(mx_plan *plan, const fault_run *r) {
  plan->target = r->target;
  plan->norm = r->norm;
  for (size_t i = 0; i < r->n_faults && plan->has_tensor_scale && !r->spec.tensor_given; i++) {
    const float c = fabsf((float)r->faults[i].number);
    if (r->faults[i].op != MX_FAULT_TENSOR_SCALE_TARGET || c == 0 || isinf(c)) continue;
    if (plan->norm == plan->target) plan->norm = (double)c;
    if (r->spec.tensor_norm == MX_TENSOR_NORM_SEED004) plan->norm = (double)c / 2;
    plan->target = (double)c;
  }
  if (plan->uses_chain) plan->vars[MX_VAR_K] = (float)plan->target;
}

/* The tensor's numbers from its maximum. With a fault of the tensor scale all but the stored one are those of another tensor scale. */
void mxi_fault_set_tensor(mx_plan *plan, const fault_run *r, float amax) {
  set_target(plan, r);
  plan->chain = r->chain;
  const double norm = plan->norm;
  mxi_plan_set_amax(plan, amax);
  for (size_t i = 0; i < r->n_faults && plan->has_tensor_scale && !r->spec.tensor_given; i++)
    if (mxi_fault_stage(&r->faults[i]) == MX_STAGE_TENSOR && !mxi_fault_is_grouping(r->faults[i].op) &&
        r->faults[i].op != MX_FAULT_TENSOR_SCALE_TARGET) {
      mx_plan stored = *plan;
      stored.norm = norm;
      mxi_fault_give_tensor(plan, &stored, &r->faults[i]);
    }
}

mx_status mxi_fault_group_amax(float *out, const fault_run *r, const mx_fault *f, size_t g, float before) {
  const size_t n = (size_t)f->number, first = f->op == MX_FAULT_TENSOR_SCALE_BEFORE ? g - 1 : g;
  float own = 1; /* of a maximum's register before the first rows */
  if (f->op == MX_FAULT_TENSOR_SCALE_BEFORE && g < 2) before = 0;
  if (f->op != MX_FAULT_TENSOR_SCALE_BEFORE || g) {
    const size_t end = (first + 1) * n < r->all_rows ? (first + 1) * n : r->all_rows;
    const mx_status status = mxi_fault_rows_amax(&own, r, first * n, end);
    if (status) return status;
  }
  const int nan = isnan(before) || isnan(own); /* which fmaxf leaves out */
  *out = !mxi_fault_is_running(f->op) ? own : nan ? NAN : fmaxf(before, own);
  return MX_OK;
}

/* The last fault of that kind; the others of the stage act on each group as on the tensor. */
mx_status mxi_fault_set_groups(fault_run *r) {
  const mx_fault *f = NULL;
  free(r->groups);
  r->groups = NULL;
  for (size_t i = 0; i < r->n_faults; i++)
    if (mxi_fault_is_grouping(r->faults[i].op)) f = &r->faults[i];
  if (!f || f->number < 1 || !r->plan.has_tensor_scale || r->spec.tensor_given) return MX_OK;
  r->group = (size_t)f->number;
  r->of_groups = f;
  const size_t n = r->all_rows / r->group + (r->all_rows % r->group != 0);
  mx_plan *groups = malloc((n + 1) * sizeof *groups);
  mx_status status = groups ? MX_OK : MX_ERR_NOMEM;
  float amax = 0;
  for (size_t g = 0; g < n && !status; g++) {
    status = mxi_fault_group_amax(&amax, r, f, g, amax);
    groups[g] = r->plan;
    if (!status) mxi_fault_set_tensor(&groups[g], r, amax);
    if (f->op == MX_FAULT_TENSOR_SCALE_LAST && g + 1 == n) r->plan.tensor_scale = groups[g].tensor_scale;
  }
  for (size_t g = 0; g < n && !status; g++) groups[g].tensor_scale = r->plan.tensor_scale; /* what is stored */
  r->groups = groups;
  return status;
}
