/* Which gradient rules a recipe asks for, what they look at, and which exclude each other. */
#include <math.h>

#include "train/linear/gradient.h"

static int acts_on(const mx_linear_recipe *r, int q) {
  if (r->q[q].elem == MX_ELEM_NONE) return 0;
  return r->grad_operands == MX_GRAD_OF_BOTH || r->grad_operands == (q == MX_Q1 ? MX_GRAD_OF_X : MX_GRAD_OF_W);
}

int mxi_gradient_looks_at(const mx_linear_recipe *r, int q) {
  if (!acts_on(r, q)) return MXI_LOOKS_AT_NOTHING;
  return r->grad_qprime != MX_QPRIME_STE || r->grad_trust_mask ? MXI_LOOKS_AT_SCALES : MXI_LOOKS_AT_NOTHING;
}

/* A whole number from least to most, or its default. */
static mx_status check_count(const char *key, double number, double fallback, int least, int most, mx_error *err) {
  const double n = mxi_linear_real(number, fallback);
  if (n == floor(n) && n >= least && n <= most) return MX_OK;
  return mx_fail(err, MX_ERR_CONFLICT, "%s=%g: expected a whole number from %d to %d", key, n + 0.0, least, most);
}

mx_status mxi_gradient_check(const mx_linear_recipe *r, mx_error *err) {
  mx_status status = check_count("grad.k", r->grad_k, 5, 1, MXI_MOST_K, err);
  if (!status) status = check_count("spline.knots", r->spline_knots, 40, 2, MXI_MOST_KNOTS, err);
  if (status) return status;
  const double lo = mxi_linear_real(r->grad_qprime_lo, 0.5), hi = mxi_linear_real(r->grad_qprime_hi, 1e4);
  if (!(lo <= hi)) return mx_fail(err, MX_ERR_CONFLICT, "grad.qprime_lo=%g is above grad.qprime_hi=%g", lo + 0.0, hi + 0.0);
  for (int q = MX_Q1; q <= MX_Q2 && !mxi_linear_is_plain(r, MX_FPROP); q++)
    if (mxi_gradient_looks_at(r, q) && r->q[q].scale_rule == MX_SCALE_RULE_HIF4)
      return mx_fail(err, MX_ERR_CONFLICT, "Q%d: gradient rules (grad.*) do not know scale.rule=hif4", q + 1);
  return MX_OK;
}
