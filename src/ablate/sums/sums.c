/* Sums over pairs of values in an order that neither threads nor vectors change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/sums/sums.h"
#include "mxgold/ablate.h"
#include "mxgold/isa.h"

enum { LANES = SUM_LANES, MOST_AT_ONCE = 1024 };

static double join(const double v[LANES]) { return (v[0] + v[1]) + (v[2] + v[3]); }

static double larger(double a, double b) { return b > a ? b : a; }

/* Lane j takes value j. */
static void add(sum_scan *s, const float *x, const float *y, size_t j) {
  const double a = (double)x[j], b = (double)y[j], e = a - b, m = fabs(e);
  s->xx[j] += a * a;
  s->yy[j] += b * b;
  s->xy[j] += a * b;
  s->ee[j] += e * e;
  s->max_error[j] = m > s->max_error[j] ? m : s->max_error[j];
}

/* NaN and Inf are replaced by pairs of zeros, which change no sum. */
static size_t clean(mx_error_sums *s, float *x, float *y, size_t n) {
  size_t left = n;
  for (size_t i = 0; i < n; i++) {
    if (isfinite(x[i]) && isfinite(y[i])) continue;
    if (isnan(x[i]))
      s->n_nan++;
    else if (isinf(x[i]))
      s->n_inf++;
    else {
      s->n_spoiled++;
      s->lost += (double)x[i] * (double)x[i];
    }
    x[i] = y[i] = 0;
    left--;
  }
  return left;
}

/* The exponents' bits are compared as integers, since a floating-point sum would wait for each addition. */
static int not_finite(const float *x, const float *y, size_t n) {
  const uint32_t top = 0x7F800000;
  uint32_t bad = 0;
#pragma omp simd reduction(| : bad)
  for (size_t i = 0; i < n; i++) {
    uint32_t a, b;
    memcpy(&a, &x[i], sizeof a);
    memcpy(&b, &y[i], sizeof b);
    bad |= (uint32_t)((a & top) == top) | (uint32_t)((b & top) == top);
  }
  return bad != 0;
}

static void underflows(sum_scan *s, const float *x, const float *y, size_t n) {
  uint32_t under = 0, far = 0;
#pragma omp simd reduction(+ : under) reduction(| : far)
  for (size_t i = 0; i < n; i++) {
    under += (x[i] != 0) & (y[i] == 0);
    far |= (y[i] != 0) & (((x[i] < 0) != (y[i] < 0)) | (fabsf(y[i]) > 2 * fabsf(x[i])));
  }
  s->under += under;
  s->far |= far != 0;
}

static void scan(sum_scan *s, const float *x, const float *y, size_t n) {
  s->bad |= not_finite(x, y, n);
  underflows(s, x, y, n);
  sum_scan l = *s; /* in registers */
  for (size_t i = 0; i + LANES <= n; i += LANES)
    for (size_t j = 0; j < LANES; j++) add(&l, x + i, y + i, j);
  for (size_t j = 0; j < n % LANES; j++) add(&l, x + (n - n % LANES), y + (n - n % LANES), j);
  *s = l;
}

static double relative(const float *x, const float *y, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) {
    const double a = fabs((double)x[i]), e = fabs((double)x[i] - (double)y[i]);
    if (a > 0) most = larger(most, e / a);
  }
  return most;
}

static const sum_kernels plain = {scan, relative, 1};

static const sum_kernels *kernels(void) {
#if defined(__x86_64__)
  if (mx_isa_usable(0) & MX_ISA_AVX2) return &mxi_sum_kernels_avx2;
#endif
  return &plain;
}

/* The vector kernel does whole vectors; the rest starts again at lane 0. */
static void scan_all(sum_scan *s, const sum_kernels *k, const float *x, const float *y, size_t n) {
  const size_t whole = n - n % k->step;
  memset(s, 0, sizeof *s);
  k->scan(s, x, y, whole);
  if (whole < n) scan(s, x + whole, y + whole, n - whole);
}

static double relative_all(const sum_kernels *k, const float *x, const float *y, size_t n) {
  const size_t whole = n - n % k->step;
  return larger(k->relative(x, y, whole), relative(x + whole, y + whole, n - whole));
}

static void piece(mx_error_sums *out, const sum_kernels *k, const float *x, const float *y, size_t n) {
  float own_x[MX_PIECE], own_y[MX_PIECE];
  sum_scan s;
  memset(out, 0, sizeof *out);
  out->n = n;
  scan_all(&s, k, x, y, n);
  if (s.bad) {
    memcpy(own_x, x, n * sizeof *x);
    memcpy(own_y, y, n * sizeof *y);
    out->n = clean(out, own_x, own_y, n);
    x = own_x;
    y = own_y;
    scan_all(&s, k, x, y, n);
  }
  out->xx = join(s.xx);
  out->yy = join(s.yy);
  out->xy = join(s.xy);
  out->ee = join(s.ee);
  for (int j = 0; j < LANES; j++) out->max_error = larger(out->max_error, s.max_error[j]);
  out->max_relative = s.under && !s.far ? 1 : relative_all(k, x, y, n); /* one that became 0 is off by its own size */
  out->n_underflow = s.under;
}

void mx_error_sums_join(mx_error_sums *a, const mx_error_sums *b) {
  a->n += b->n;
  a->n_nan += b->n_nan;
  a->n_inf += b->n_inf;
  a->n_spoiled += b->n_spoiled;
  a->n_underflow += b->n_underflow;
  a->xx += b->xx;
  a->yy += b->yy;
  a->xy += b->xy;
  a->ee += b->ee;
  a->lost += b->lost;
  a->max_error = larger(a->max_error, b->max_error);
  a->max_relative = larger(a->max_relative, b->max_relative);
}

void mx_error_sums_add(mx_error_sums *sums, const float *x, const float *y, size_t n, int n_threads) {
  const size_t pieces = n / MX_PIECE + (n % MX_PIECE != 0);
  const sum_kernels *k = kernels();
  mx_error_sums part[MOST_AT_ONCE]; /* the pieces are added in order, so many at a time */
  for (size_t p0 = 0; p0 < pieces; p0 += MOST_AT_ONCE) {
    const size_t m = pieces - p0 < MOST_AT_ONCE ? pieces - p0 : MOST_AT_ONCE;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads)) if (m > 8)
    for (size_t p = 0; p < m; p++) {
      const size_t first = (p0 + p) * MX_PIECE;
      piece(&part[p], k, x + first, y + first, n - first < MX_PIECE ? n - first : MX_PIECE);
    }
    for (size_t p = 0; p < m; p++) mx_error_sums_join(sums, &part[p]);
  }
}

static double db(double ratio) { return 10 * mx_log2(ratio) * 0.30102999566398119521; }

double mx_sqnr(const mx_error_sums *s) {
  if (!(s->ee > 0)) return s->n ? INFINITY : 0;
  return s->xx > 0 ? db(s->xx / s->ee) : -INFINITY;
}
double mx_sqnr_of_all(const mx_error_sums *s) {
  mx_error_sums all = *s;
  all.n += s->n_spoiled;
  all.xx += s->lost;
  all.ee += s->lost;
  return mx_sqnr(&all);
}
double mx_mse(const mx_error_sums *s) { return s->n ? s->ee / (double)s->n : 0; }
double mx_relative_error(const mx_error_sums *s) { return s->xx > 0 ? sqrt(s->ee / s->xx) : 0; }
double mx_cosine(const mx_error_sums *s) { return s->xx > 0 && s->yy > 0 ? s->xy / (sqrt(s->xx) * sqrt(s->yy)) : 0; }
double mx_gain(const mx_error_sums *s) { return s->xx > 0 ? s->xy / s->xx : 0; }
