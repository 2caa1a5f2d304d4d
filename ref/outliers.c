/* Clamps outliers by sorting, and multiplies what the clamp took away: include/mxgold/linear.h, "Outliers". */
#include "outliers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "num.h"

/* Ascending, -0 before +0, NaN last. */
static int ascending(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  if (isnan(x) || isnan(y)) return !!isnan(x) - !!isnan(y);
  if (x < y || x > y) return x < y ? -1 : 1;
  return !!signbit(y) - !!signbit(x);
}

/* The two thresholds of n numbers. The ranks are binary64 arithmetic by definition. */
static mx_status thresholds(float *low, float *high, const float *x, size_t n, const mx_linear_recipe *r) {
  float *sorted = malloc((n + 1) * sizeof *sorted);
  if (!sorted) return MX_ERR_NOMEM;
  memcpy(sorted, x, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, ascending);
  size_t below, above;
  if (r->occ_index == MX_OCC_MSAMP) {
    below = (size_t)floor((1 - r->occ_alpha) * (double)n);
    above = (size_t)floor(r->occ_alpha * (double)n);
    if (above == n) above = n - 1;
  } else {
    below = (size_t)floor((1 - r->occ_alpha) * (double)(n - 1));
    above = n - 1 - below;
  }
  *low = sorted[below];
  *high = sorted[above];
  free(sorted);
  return MX_OK;
}

mx_status ref_outliers(float *clamped, double *residual, const float *x, size_t rows, size_t cols, const mx_linear_recipe *r) {
  const size_t n = r->occ_axis == MX_OCC_TENSOR ? rows * cols : cols;
  for (size_t i = 0; i < rows * cols; i += n) {
    float low, high;
    const mx_status status = thresholds(&low, &high, x + i, n, r);
    if (status) return status;
    for (size_t k = i; k < i + n; k++) {
      clamped[k] = x[k];
      if (x[k] < low) clamped[k] = low;
      if (x[k] > high) clamped[k] = high;
      residual[k] = clamped[k] == x[k] || isnan(x[k]) ? 0 : (double)x[k] - (double)clamped[k];
      if (residual[k] != 0 && (float)((double)clamped[k] + residual[k]) != x[k]) clamped[k] = x[k], residual[k] = 0;
    }
  }
  return MX_OK;
}

void ref_compensate(float *y, const double *residual, const float *w, size_t ldw, size_t rows, size_t cols, size_t n_out) {
  for (size_t t = 0; t < rows; t++) {
    int any = 0;
    for (size_t i = 0; i < cols; i++) any |= residual[t * cols + i] != 0;
    for (size_t o = 0; any && o < n_out; o++) {
      double sum = 0; /* binary64 products and additions with i ascending are the definition */
      for (size_t i = 0; i < cols; i++)
        if (residual[t * cols + i] != 0) sum += residual[t * cols + i] * (double)w[o * ldw + i];
      y[t * n_out + o] = num_to_float(num_add_r(num_float(y[t * n_out + o]), num_float((float)sum), NUM_F32));
    }
  }
}
