/* Computes what a block's scale is made of, and its derivative. */
#include <math.h>
#include <stdlib.h>

#include "gradient.h"
#include "math.h"

static double sign(float x) { return (x > 0) - (x < 0); }

double ref_normalise(double *dz, const mx_linear_recipe *r, int softmax, int lse, double unit, const float *x, size_t n) {
  const double beta_given = r->grad_beta;
  const float beta = (float)(beta_given == 0 && !signbit(beta_given) ? 80 : beta_given);
  double largest = 0, log_sum, mean = 0;
  for (size_t i = 0; i < n; i++) {
    dz[i] = 0;
    if (fabs((double)x[i]) > largest) largest = fabs((double)x[i]);
  }
  if (r->norm_lse_relative) unit = largest;
  if (unit == 0) unit = 1;
  double z = largest, at_largest = softmax ? 0 : 1;
  if (softmax || lse) {
    float *magnitude = calloc(n + 1, sizeof *magnitude), *weight = calloc(n + 1, sizeof *weight);
    if (!magnitude || !weight) abort();
    for (size_t i = 0; i < n; i++) magnitude[i] = (float)(fabs((double)x[i]) / unit);
    ref_math_softmax(weight, n, &log_sum, magnitude, n, 1, n, beta, 0);
    if (lse) z = (double)(float)(unit * (log_sum / (double)beta));
    for (size_t i = 0; i < n && softmax; i++) {
      dz[i] = (double)weight[i] * sign(x[i]);
      mean += (double)weight[i] * (double)magnitude[i];
    }
    if (lse && r->norm_lse_relative) at_largest = z / unit - mean; /* the unit moves with the largest magnitude */
    free(magnitude);
    free(weight);
  }
  for (size_t i = 0; i < n && at_largest != 0; i++)
    if (fabs((double)x[i]) == largest) {
      dz[i] += at_largest * sign(x[i]);
      if (r->grad_ties == MX_GRAD_TIES_FIRST) break;
    }
  return z;
}
