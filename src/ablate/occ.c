/* Clamps outliers and computes what compensates for them: TECHNIQUES 3.2. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"

static int compare(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return isnan(x) || isnan(y) ? !!isnan(x) - !!isnan(y) : (x > y) - (x < y);
}

mx_status mx_occ(float *clamped, float *rest, size_t *n_rest, const float *x, size_t n, double alpha, int index) {
  if (!clamped || !rest || !n_rest || !x || !n || !(alpha > 0.5 && alpha <= 1)) return MX_ERR_ARG;
  float *sorted = malloc(n * sizeof *sorted);
  if (!sorted) return MX_ERR_NOMEM;
  memcpy(sorted, x, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, compare);
  size_t low, high;
  if (index == MX_OCC_MSAMP) {
    low = (size_t)((1 - alpha) * (double)n);
    high = (size_t)(alpha * (double)n);
    if (high >= n) high = n - 1;
  } else {
    low = (size_t)floor((1 - alpha) * (double)(n - 1));
    high = n - 1 - low;
  }
  const float from = sorted[low], to = sorted[high];
  free(sorted);
  *n_rest = 0;
  for (size_t i = 0; i < n; i++) {
    clamped[i] = x[i] < from ? from : x[i] > to ? to : x[i];
    rest[i] = 0;
    if (clamped[i] == x[i] || isnan(x[i])) continue;
    rest[i] = x[i] - clamped[i];
    ++*n_rest;
  }
  return MX_OK;
}
