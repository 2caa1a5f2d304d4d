/* Is a difference more than the luck of the blocks? Efron's bootstrap over units, paired. */
#include <math.h>
#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/random.h"

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double ratio_db(double a, double b) {
  if (!(a > 0) || !(b > 0)) return a > 0 ? -INFINITY : b > 0 ? INFINITY : 0; /* one of the two is exact */
  return 10 * mx_log2(b / a) * 0.30102999566398119521;
}

/* One resample of every column: sums[0] of a, sums[1 + k] of b[k]. The same units are drawn for all. */
static void resample(double *sums, const double *a, const double *const *b, size_t n_b, size_t n, uint64_t seed, int r) {
  for (size_t k = 0; k <= n_b; k++) sums[k] = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t u = mx_random(seed, MX_STREAM_DATA, (uint64_t)r * n + i);
    const size_t j = (size_t)(u * n >> 32);
    sums[0] += a[j];
    for (size_t k = 0; k < n_b; k++) sums[1 + k] += b[k][j];
  }
}

static double sum_of(const double *a, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i];
  return sum;
}

mx_status mx_bootstrap_db_all(mx_interval *out, const double *a, const double *const *b, size_t n_b, size_t n, int resamples, uint64_t seed) {
  if (!out || !a || !b || !n || n > UINT32_MAX) return MX_ERR_ARG;
  const size_t m = resamples > 0 ? (size_t)resamples : 400;
  double *at = malloc(m * n_b * sizeof *at + 1), *sums = malloc((n_b + 1) * sizeof *sums);
  const mx_status status = at && sums ? MX_OK : MX_ERR_NOMEM;
  for (size_t r = 0; r < m && !status; r++) {
    resample(sums, a, b, n_b, n, seed, (int)r);
    for (size_t k = 0; k < n_b; k++) at[k * m + r] = ratio_db(sums[0], sums[1 + k]);
  }
  for (size_t k = 0; k < n_b && !status; k++) {
    double *own = at + k * m;
    qsort(own, m, sizeof *own, compare);
    out[k] = (mx_interval){ratio_db(sum_of(a, n), sum_of(b[k], n)), own[m * 25 / 1000], own[m - 1 - m * 25 / 1000]};
  }
  free(at);
  free(sums);
  return status;
}

mx_status mx_bootstrap_db(mx_interval *out, const double *a, const double *b, size_t n, int resamples, uint64_t seed) {
  return b ? mx_bootstrap_db_all(out, a, &b, 1, n, resamples, seed) : MX_ERR_ARG;
}
