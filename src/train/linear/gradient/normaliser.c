/* Computes what a block's scale is made of, Z, and dZ/dx (arXiv 2509.17791, eqs 4 and 5): the largest magnitude, or the log-sum-exp of the
 * magnitudes. */
#include <math.h>

#include "mxgold/math.h"
#include "train/linear/gradient/block.h"

static double sign_of(float x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/* dz += step at the largest magnitude. */
static void at_largest(double *dz, const float *x, size_t n, float most, int all, double step) {
  for (size_t i = 0; i < n; i++)
    if (fabsf(x[i]) == most) {
      dz[i] += step * sign_of(x[i]);
      if (!all) return;
    }
}

double mxi_normalise(double *dz, const mxi_normaliser *how, const float *x, size_t n, float *magnitude, float *weight) {
  float most = 0;
  for (size_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  for (size_t i = 0; i < n && dz; i++) dz[i] = 0;
  if (how->derivative == MX_GRAD_ABSMAX && !how->lse) {
    if (dz) at_largest(dz, x, n, most, how->all_ties, 1);
    return (double)most;
  }
  double unit = how->relative ? (double)most : how->unit, log_sum, mean = 0;
  if (unit == 0) unit = 1;
  for (size_t i = 0; i < n; i++) magnitude[i] = (float)(fabs((double)x[i]) / unit);
  if (mx_math_softmax(weight, n, &log_sum, magnitude, n, 1, n, how->beta, 0, &(mx_exec){.n_threads = 1})) return (double)NAN;
  const double z = how->lse ? (double)(float)(unit * (log_sum / (double)how->beta)) : (double)most; /* as the forward pass has it */
  if (!dz) return z;
  for (size_t i = 0; i < n; i++) {
    dz[i] = (double)weight[i] * sign_of(x[i]);
    mean += (double)weight[i] * (double)magnitude[i];
  }
  if (how->lse && how->relative) at_largest(dz, x, n, most, how->all_ties, z / unit - mean);
  return z;
}

double mxi_tensor_unit(const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld) {
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) return 1;
  float most = 0;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) most = fabsf(x[r * ld + c]) > most ? fabsf(x[r * ld + c]) : most;
  return most > 0 ? (double)most : 1;
}

mxi_normaliser mxi_normaliser_of(const mx_linear_recipe *r, double unit) {
  return (mxi_normaliser){.derivative = r->grad_config == MX_GRAD_ABSMAX ? MX_GRAD_ABSMAX : MX_GRAD_SOFTMAX,
                          .lse = r->grad_config == MX_GRAD_SOFTMAX,
                          .all_ties = r->grad_ties == MX_GRAD_TIES_ALL,
                          .relative = r->norm_lse_relative,
                          .beta = (float)mxi_linear_real(r->grad_beta, 80),
                          .unit = unit};
}
