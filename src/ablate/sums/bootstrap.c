/* Decides whether a difference is more than the luck of the blocks. A paired bootstrap over units, symmetric and studentised (Hall, The Bootstrap
 * and Edgeworth Expansion, 1992, section 3.6): quantiles of resamples are too narrow where a few units hold much of the error, since a resample that
 * lacks them is off by many of its own standard errors; that is what is counted here. */
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

/* Of one column, and of two, over the units of a sample or a resample. */
typedef struct moments {
  double sum, squares;
} moments;

/* The delta method's standard error of ln(sum b / sum a). */
static double error_of(const moments *a, const moments *b, double ab, size_t n) {
  const double v = a->squares / (a->sum * a->sum) + b->squares / (b->sum * b->sum) - 2 * ab / (a->sum * b->sum);
  return n > 1 && v > 0 ? sqrt(v * (double)n / ((double)n - 1)) : 0;
}

/* Four sums side by side, added in one order on every machine. w: how often each unit was drawn. */
enum { LANES = 4 };
static double in_order(const double s[LANES]) { return (s[0] + s[1]) + (s[2] + s[3]); }

static moments moments_of(const double *w, const double *a, size_t n) {
  double sum[LANES] = {0}, squares[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) {
      sum[k] += w[i + k] * a[i + k];
      squares[k] += w[i + k] * (a[i + k] * a[i + k]);
    }
  for (; i < n; i++) {
    sum[i % LANES] += w[i] * a[i];
    squares[i % LANES] += w[i] * (a[i] * a[i]);
  }
  return (moments){in_order(sum), in_order(squares)};
}

static double product_of(const double *w, const double *a, const double *b, size_t n) {
  double sum[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) sum[k] += w[i + k] * (a[i + k] * b[i + k]);
  for (; i < n; i++) sum[i % LANES] += w[i] * (a[i] * b[i]);
  return in_order(sum);
}

/* How often resample r draws each unit: a function of the seed, the resample and n alone, so that a pair's interval depends on no other pair. */
static void draw(double *w, size_t n, uint64_t seed, size_t r) {
  for (size_t i = 0; i < n; i++) w[i] = 0;
  for (size_t i = 0; i < n; i++) w[(size_t)((uint64_t)mx_random(seed, MX_STREAM_DATA, (uint64_t)r * n + i) * n >> 32)]++;
}

static const double decibels = 4.3429448190325182765; /* 10 / ln 10 */

/* The distance of each resample from the sample in standard errors of that resample: Inf if it has no standard error, 0 if the difference is mere
 * rounding. */
static double studentised(const moments *a, const moments *b, double ab, size_t n, double at) {
  const double by = fabs(ratio_db(a->sum, b->sum) - at), error = error_of(a, b, ab, n) * decibels;
  return by <= 1e-12 ? 0 : error > 0 ? by / error : INFINITY;
}

/* What every pair is compared on. */
typedef struct sample {
  const double *const *units;
  size_t n_columns, n, resamples;
  uint64_t seed;
  double *w;      /* [n] */
  moments *drawn; /* [n_columns] */
} sample;

static void draw_columns(sample *s, size_t r) {
  draw(s->w, s->n, s->seed, r);
  for (size_t k = 0; k < s->n_columns; k++) s->drawn[k] = moments_of(s->w, s->units[k], s->n);
}

/* Some pairs at a time: their distances, [pair][resample], are all that takes much memory. */
static void some_pairs(mx_interval *out, sample *s, double *t, const mx_column_pair *pairs, size_t n_pairs, const unsigned char *ranked) {
  const size_t m = s->resamples, n = s->n;
  for (size_t i = 0; i < n; i++) s->w[i] = 1;
  for (size_t p = 0; p < n_pairs; p++) {
    const double *a = s->units[pairs[p].a], *b = s->units[pairs[p].b];
    const moments ma = moments_of(s->w, a, n), mb = moments_of(s->w, b, n);
    out[p].at = ratio_db(ma.sum, mb.sum);
    out[p].high = isfinite(out[p].at) ? error_of(&ma, &mb, product_of(s->w, a, b, n), n) * decibels : 0; /* till the resamples are drawn */
  }
  for (size_t r = 0; r < m; r++) {
    draw_columns(s, r);
    for (size_t p = 0; p < n_pairs; p++) {
      const moments *a = &s->drawn[pairs[p].a], *b = &s->drawn[pairs[p].b];
      if (ranked && ranked[p])
        t[p * m + r] = ratio_db(a->sum, b->sum);
      else
        t[p * m + r] =
            isfinite(out[p].at) ? studentised(a, b, product_of(s->w, s->units[pairs[p].a], s->units[pairs[p].b], n), n, out[p].at) : 0;
    }
  }
  for (size_t p = 0; p < n_pairs; p++) {
    qsort(t + p * m, m, sizeof *t, compare);
    if (ranked && ranked[p]) { /* as many left out at either end */
      const size_t cut = m * (100 - PER_CENT) / 200;
      out[p].low = t[p * m + cut];
      out[p].high = t[p * m + m - 1 - cut];
      continue;
    }
    const double half = out[p].high > 0 ? t[p * m + m * PER_CENT / 100] * out[p].high : 0;
    out[p].low = out[p].at - half;
    out[p].high = out[p].at + half;
  }
}

enum { AT_ONCE = 256 };

mx_status mx_bootstrap_db_pairs(mx_interval *out, const double *const *units, size_t n_columns, const mx_column_pair *pairs, size_t n_pairs,
                                const unsigned char *ranked, size_t n, int resamples, uint64_t seed) {
  if (!out || !units || (!pairs && n_pairs) || !n || n > UINT32_MAX) return MX_ERR_ARG;
  for (size_t p = 0; p < n_pairs; p++)
    if (pairs[p].a >= n_columns || pairs[p].b >= n_columns) return MX_ERR_ARG;
  sample s = {units, n_columns, n, resamples > 0 ? (size_t)resamples : 400, seed, NULL, NULL};
  double *t = malloc(s.resamples * (n_pairs < AT_ONCE ? n_pairs : AT_ONCE) * sizeof *t + 1);
  s.w = malloc(n * sizeof *s.w);
  s.drawn = malloc(n_columns * sizeof *s.drawn + 1);
  const mx_status status = t && s.w && s.drawn ? MX_OK : MX_ERR_NOMEM;
  for (size_t p = 0; p < n_pairs && !status; p += AT_ONCE)
    some_pairs(out + p, &s, t, pairs + p, n_pairs - p < AT_ONCE ? n_pairs - p : AT_ONCE, ranked ? ranked + p : NULL);
  free(t);
  free(s.w);
  free(s.drawn);
  return status;
}

mx_status mx_bootstrap_db_all(mx_interval *out, const double *a, const double *const *b, size_t n_b, const unsigned char *ranked, size_t n,
                              int resamples, uint64_t seed) {
  if (!out || !a || !b) return MX_ERR_ARG;
  const double **units = malloc((n_b + 1) * sizeof *units);
  mx_column_pair *pairs = malloc(n_b * sizeof *pairs + 1);
  if (units) units[0] = a;
  for (size_t k = 0; k < n_b && units && pairs; k++) {
    units[k + 1] = b[k];
    pairs[k] = (mx_column_pair){0, k + 1};
  }
  const mx_status status = units && pairs ? mx_bootstrap_db_pairs(out, units, n_b + 1, pairs, n_b, ranked, n, resamples, seed) : MX_ERR_NOMEM;
  free(units);
  free(pairs);
  return status;
}

mx_status mx_bootstrap_db(mx_interval *out, const double *a, const double *b, size_t n, int resamples, uint64_t seed) {
  return b ? mx_bootstrap_db_all(out, a, &b, 1, NULL, n, resamples, seed) : MX_ERR_ARG;
}
