/* Reads the gradient keys that are numbers. */
#include <math.h>

#include "train/linear/gradient/block.h"

double mxi_linear_real(double number, double fallback) { return number == 0 && !signbit(number) ? fallback : number; }

/* A whole number from least to most, or its default. */
static mx_status check_count(const char *key, double number, double fallback, int least, int most, mx_error *err) {
  const double n = mxi_linear_real(number, fallback);
  if (n == floor(n) && n >= least && n <= most) return MX_OK;
  return mx_fail(err, MX_ERR_CONFLICT, "%s=%g: expected a whole number from %d to %d", key, n + 0.0, least, most);
}

mx_status mxi_gradient_check_numbers(const mx_linear_recipe *r, mx_error *err) {
  mx_status status = check_count("grad.k", r->grad_k, 5, 1, MXI_MOST_K, err);
  if (!status) status = check_count("spline.knots", r->spline_knots, 40, 2, MXI_MOST_KNOTS, err);
  if (!status) status = check_count("grad.scale_region", r->grad_scale_region, 20, 2, MXI_MOST_VALUES - 1, err);
  if (status) return status;
  const double lo = mxi_linear_real(r->grad_qprime_lo, 0.5), hi = mxi_linear_real(r->grad_qprime_hi, 1e4);
  const double beta = mxi_linear_real(r->grad_beta, 80);
  if (!(lo <= hi)) return mx_fail(err, MX_ERR_CONFLICT, "grad.qprime_lo=%g is above grad.qprime_hi=%g", lo + 0.0, hi + 0.0);
  if (!(beta >= 1e-6 && beta <= 1e6)) return mx_fail(err, MX_ERR_CONFLICT, "grad.beta=%g: expected a number from 1e-6 to 1e6", beta + 0.0);
  return MX_OK;
}
