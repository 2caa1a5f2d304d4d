/* Is a difference more than the luck of the blocks? Efron's bootstrap over units, paired. */
#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/random.h"

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double ratio_db(double a, double b) {
  if (!(a > 0) || !(b > 0)) return a > 0 ? -1000 : b > 0 ? 1000 : 0; /* one of the two is exact */
  return 10 * mx_log2(b / a) * 0.30102999566398119521;
}

static double resample(const double *a, const double *b, size_t n, uint64_t seed, int r) {
  double sa = 0, sb = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t u = mx_random(seed, MX_STREAM_DATA, (uint64_t)r * n + i);
    const size_t j = (size_t)(u * n >> 32);
    sa += a[j];
    sb += b[j];
  }
  return ratio_db(sa, sb);
}

mx_status mx_bootstrap_db(mx_interval *out, const double *a, const double *b, size_t n, int resamples, uint64_t seed) {
  if (!out || !a || !b || !n || n > UINT32_MAX) return MX_ERR_ARG;
  const int m = resamples > 0 ? resamples : 400;
  double *at = malloc((size_t)m * sizeof *at), sa = 0, sb = 0;
  if (!at) return MX_ERR_NOMEM;
  for (size_t i = 0; i < n; i++) {
    sa += a[i];
    sb += b[i];
  }
#pragma omp parallel for schedule(static)
  for (int r = 0; r < m; r++) at[r] = resample(a, b, n, seed, r);
  qsort(at, (size_t)m, sizeof *at, compare);
  out->at = ratio_db(sa, sb);
  out->low = at[m * 25 / 1000];
  out->high = at[m - 1 - m * 25 / 1000];
  free(at);
  return MX_OK;
}
