/* Is a difference more than the luck of the blocks? A paired bootstrap over units, symmetric and studentised (Hall, The Bootstrap and Edgeworth Expansion,
 * 1992, section 3.6): quantiles of resamples are too narrow where a few units hold much of the error, since a resample that lacks them is off by many of its
 * own standard errors; that is what is counted here. */
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

enum { PER_CENT = 95 };

/* Of pairs (a, b) over the units of a sample or a resample. */
typedef struct moments {
  double a, b, aa, bb, ab;
} moments;

/* The delta method's standard error of ln(sum b / sum a). */
static double error_of(const moments *m, size_t n) {
  const double v = m->aa / (m->a * m->a) + m->bb / (m->b * m->b) - 2 * m->ab / (m->a * m->b);
  return n > 1 && v > 0 ? sqrt(v * (double)n / ((double)n - 1)) : 0;
}

static void add_unit(moments *m, double a, double b) {
  m->a += a;
  m->b += b;
  m->aa += a * a;
  m->bb += b * b;
  m->ab += a * b;
}

/* One resample of every column, the same units drawn for all. */
static void resample(moments *m, const double *a, const double *const *b, size_t n_b, size_t n, uint64_t seed, int r) {
  for (size_t k = 0; k < n_b; k++) m[k] = (moments){0};
  for (size_t i = 0; i < n; i++) {
    const uint64_t u = mx_random(seed, MX_STREAM_DATA, (uint64_t)r * n + i);
    const size_t j = (size_t)(u * n >> 32);
    for (size_t k = 0; k < n_b; k++) add_unit(&m[k], a[j], b[k][j]);
  }
}

/* |difference of a resample to the sample| in standard errors of that resample: Inf where it has none, 0 where there is no difference but of rounding. */
static double studentised(const moments *m, size_t n, double at) {
  const double by = fabs(ratio_db(m->a, m->b) - at), error = error_of(m, n) * 4.3429448190325182765; /* 10 / ln 10 */
  return by <= 1e-12 ? 0 : error > 0 ? by / error : INFINITY;
}

mx_status mx_bootstrap_db_all(mx_interval *out, const double *a, const double *const *b, size_t n_b, const unsigned char *ranked, size_t n,
                              int resamples, uint64_t seed) {
  if (!out || !a || !b || !n || n > UINT32_MAX) return MX_ERR_ARG;
  const size_t m = resamples > 0 ? (size_t)resamples : 400;
  double *t = malloc(m * n_b * sizeof *t + 1);
  moments *drawn = malloc(n_b * sizeof *drawn + 1), *own = calloc(n_b + 1, sizeof *own);
  const mx_status status = t && drawn && own ? MX_OK : MX_ERR_NOMEM;
  for (size_t k = 0; k < n_b && !status; k++) {
    for (size_t i = 0; i < n; i++) add_unit(&own[k], a[i], b[k][i]);
    out[k].at = ratio_db(own[k].a, own[k].b);
  }
  for (size_t r = 0; r < m && !status; r++) {
    resample(drawn, a, b, n_b, n, seed, (int)r);
    for (size_t k = 0; k < n_b; k++)
      t[k * m + r] = ranked && ranked[k] ? ratio_db(drawn[k].a, drawn[k].b) : isfinite(out[k].at) ? studentised(&drawn[k], n, out[k].at) : 0;
  }
  for (size_t k = 0; k < n_b && !status; k++) {
    qsort(t + k * m, m, sizeof *t, compare);
    if (ranked && ranked[k]) { /* as many left out at either end */
      const size_t cut = m * (100 - PER_CENT) / 200;
      out[k].low = t[k * m + cut];
      out[k].high = t[k * m + m - 1 - cut];
      continue;
    }
    const double most = t[k * m + m * PER_CENT / 100], error = isfinite(out[k].at) ? error_of(&own[k], n) * 4.3429448190325182765 : 0;
    const double half = error > 0 ? most * error : 0;
    out[k].low = out[k].at - half;
    out[k].high = out[k].at + half;
  }
  free(t);
  free(drawn);
  free(own);
  return status;
}

mx_status mx_bootstrap_db(mx_interval *out, const double *a, const double *b, size_t n, int resamples, uint64_t seed) {
  return b ? mx_bootstrap_db_all(out, a, &b, 1, NULL, n, resamples, seed) : MX_ERR_ARG;
}
