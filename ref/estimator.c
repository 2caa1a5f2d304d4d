/* Computes the slopes that stand for the derivative of a rounding. Binary64 additions, multiplications and divisions in the order below are the
 * definition: the slopes are real numbers of no format, so there is no exact result to which another order could be held. */
#include <math.h>
#include <stdlib.h>

#include "gradient.h"
#include "ref.h"

/* A training key that is a number. */
static double real(double number, double otherwise) { return number == 0 && !signbit(number) ? otherwise : number; }

/* a^(1/k - 1), a > 0. Scaled by 2^(k j) so that 2^-k <= b < 1; eight steps z += z (1 - b z^k) r, r = 1 / k. */
static double power(double a, int k) {
  int exponent, j = 0;
  (void)frexp(a, &exponent); /* 2^(exponent - 1) <= a < 2^exponent */
  while (exponent + k * j > 0) j--;
  while (exponent + k * (j + 1) <= 0) j++;
  const double b = ldexp(a, k * j), r = 1 / (double)k;
  double z = 1 - (double)(exponent + k * j) * r;
  for (int step = 0; step < 8; step++) {
    double zk = 1;
    for (int i = 0; i < k; i++) zk *= z;
    z = z + z * (1 - b * zk) * r;
  }
  double out = 1;
  for (int i = 0; i < k - 1; i++) out *= z;
  return ldexp(out, j * (k - 1));
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The format's finite values, ascending, each once. Returns how many. */
static int values(double *out, const mx_format *f) {
  int n = 0, kept = 0;
  for (uint64_t code = 0; code < UINT64_C(1) << f->bits; code++) {
    const double v = ref_decode(f, code);
    if (fabs(v) < INFINITY) out[n++] = v + 0.0; /* no -0 */
  }
  qsort(out, (size_t)n, sizeof *out, ascending);
  for (int i = 0; i < n; i++)
    if (i == 0 || out[i] != out[kept - 1]) out[kept++] = out[i];
  return kept;
}

static double nearest(const double *grid, int n, double x) {
  int best = 0;
  for (int i = 1; i < n; i++)
    if (fabs(grid[i] - x) < fabs(grid[best] - x)) best = i; /* a tie stays with the lower */
  return grid[best];
}

static double bounded(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

/* The line through the knots from `from` to `to`, each at the nearest value of the grid: its slope over [knot, next). */
static double spline(const mx_linear_recipe *r, const double *grid, int n, double from, double to, double v) {
  const int steps = (int)real(r->spline_knots, 40) - 1;
  int at = 0;
#define KNOT(i) ((from * (double)(steps - (i)) + to * (double)(i)) / steps)
  while (at + 1 < steps && KNOT(at + 1) <= v) at++;
  const double rise = nearest(grid, n, KNOT(at + 1)) - nearest(grid, n, KNOT(at));
#undef KNOT
  return rise * steps / (to - from);
}

static double slope(const mx_linear_recipe *r, int kind, const double *grid, int n, double v) {
  const int k = (int)real(r->grad_k, 5), dge = kind == MX_QPRIME_DGE;
  int i = 0;
  while (i + 2 < n && grid[i + 1] < v) i++; /* (grid[i], grid[i + 1]] */
  const double half = (grid[i + 1] - grid[i]) / 2, a = fabs(v - (grid[i] + grid[i + 1]) / 2);
  if (dge) return a == 0 && k > 1 ? INFINITY : (k == 1 ? 1 : power(a / half, k) / k);
  return a == 0 ? 0 : (k == 1 ? half : half * power(a, k) / k);
}

double ref_qprime(const mx_linear_recipe *r, int elem, double v) {
  const double lo = real(r->grad_qprime_lo, 0.5), hi = real(r->grad_qprime_hi, 1e4);
  double grid[256];
  if (r->grad_qprime == MX_QPRIME_STE || ref_elem_format(elem)->kind == MX_KIND_NONE || v != v) return 1;
  const int n = values(grid, ref_elem_format(elem));
  const double most = grid[n - 1];
  if (r->grad_mask == MX_GRAD_MASK_GRAPHCORE && v < most) return 1;
  if (r->grad_qprime == MX_QPRIME_SPLINE) return bounded(spline(r, grid, n, -most, most, v), lo, hi);
  const double inside = v > most ? most : v < grid[0] ? grid[0] : v;
  const double out = slope(r, r->grad_qprime, grid, n, inside);
  return r->grad_qprime == MX_QPRIME_DGE ? bounded(out, lo, hi) : out;
}

double ref_scale_qprime(const mx_linear_recipe *r, int scale, double s) {
  const int region = (int)real(r->grad_scale_region, 20), graphcore = r->grad_scale_mask == MX_SCALE_MASK_GRAPHCORE;
  const int n = graphcore ? region : region + 1, kind = r->grad_scale_qprime;
  double grid[257];
  if (kind == MX_QPRIME_STE || s != s) return 1;
  for (int code = 0; code <= region; code++) grid[code] = ref_decode(ref_scale_format(scale), (uint64_t)code);
  if (graphcore ? s < grid[n - 1] : s > grid[n - 1]) return 1;
  const double lo = real(r->grad_qprime_lo, 0.5), hi = real(r->grad_qprime_hi, 1e4);
  if (kind == MX_QPRIME_SPLINE) return bounded(spline(r, grid, n, 0, grid[region], s), lo, hi);
  if (kind == MX_QPRIME_BASELINE_COMPAT) return slope(r, kind, grid, n, s);
  return bounded(slope(r, kind, grid, n, bounded(s, grid[0], grid[n - 1])), lo, hi);
}
