/* Keeps the tensor scale of an operand for several steps (tensor.hold), as the caller's mx_linear_hold says. */
#include <math.h>

#include "train/linear/internal.h"

mx_status mxi_hold_check(const mx_linear_recipe *r, mx_error *err) {
  const double n = mxi_linear_real(r->tensor_hold, 1);
  if (n == floor(n) && n >= 1 && n <= 1e9) return MX_OK;
  return mx_fail(err, MX_ERR_CONFLICT, "tensor.hold=%g: expected a whole number of steps, from 1", n + 0.0);
}

void mxi_hold_use(mxi_layer *y) {
  const mx_linear_hold *hold = y->l->hold;
  for (int q = 0; hold && !hold->refresh && q < MX_OPERANDS; q++)
    if (hold->scale[q] > 0 && y->q[q].tensor_norm != MX_TENSOR_NORM_NONE) y->q[q].tensor_given = 1, y->q[q].tensor_given_value = hold->scale[q];
}

void mxi_hold_keep(const mxi_layer *y, int q) {
  if (q < 0 || !y->l->hold || !y->l->hold->refresh) return;
  const float scale = y->t[q].tensor_scale;
  y->l->hold->scale[q] = y->t[q].has_tensor_scale && isfinite(scale) ? scale : 0;
}
