/* Gives the slopes of a recipe's gradient rules through the public calls. */
#include "train/linear/gradient/block.h"

static mx_status check(const double *out, const double *v, size_t n, const mx_linear_recipe *recipe, const mx_format *format, mx_error *err) {
  if (!recipe || (n && (!out || !v))) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (!format) return mx_fail(err, MX_ERR_ARG, "no such format");
  return mxi_gradient_check_numbers(recipe, err);
}

mx_status mx_linear_slopes(double *out, const double *v, size_t n, const mx_linear_recipe *recipe, int elem, mx_error *err) {
  mxi_estimator e;
  const mx_status status = check(out, v, n, recipe, mx_elem_format(elem), err);
  if (status) return status;
  mxi_estimator_of_elements(&e, recipe, elem);
  mxi_slopes(out, &e, v, n);
  return MX_OK;
}

mx_status mx_linear_scale_slopes(double *out, const double *s, size_t n, const mx_linear_recipe *recipe, int scale, mx_error *err) {
  mxi_estimator e;
  const mx_status status = check(out, s, n, recipe, mx_scale_format(scale), err);
  if (status) return status;
  mxi_estimator_of_scales(&e, recipe, scale);
  mxi_slopes(out, &e, s, n);
  return MX_OK;
}
