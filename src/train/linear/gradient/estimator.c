/* Computes slopes of a rounding: dge (arXiv 2501.17116), baseline_compat (what Graphcore's simulator computes under that name) and spline
 * (2509.17791). Everything is computed in binary64 by +, -, * and /, as ref/estimator.c has it again. */
#include <math.h>
#include <string.h>

#include "mxgold/format.h"
#include "train/linear/gradient/block.h"

enum { GROUP = 16 }; /* powers that are computed side by side: each is a long chain of operations */

static double power_of_two(int e) {
  const uint64_t bits = (uint64_t)(1023 + e) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The e of 2^(e-1) <= a < 2^e, a normal. */
static int exponent_of(double a) {
  uint64_t bits;
  memcpy(&bits, &a, sizeof bits);
  return (int)(bits >> 52 & 0x7FF) - 1022;
}

static void times_z(double *power, const double *z) {
  for (int i = 0; i < GROUP; i++) power[i] *= z[i];
}

/* a^(1/k - 1), a > 0, k from 2 to 16: with a = b 2^-jk, 2^-k <= b < 1, it is z^(k-1) 2^(j (k-1)), z = b^(-1/k) by eight of Newton's steps
 * from the straight line between its values at 2^-k and 1, at the power of two above b. a from 2^-900 to 2^900. */
static void root_powers(double *a, unsigned k) {
  double b[GROUP], z[GROUP], power[GROUP];
  int up[GROUP];
  const int n = (int)k;
  const double r = 1 / (double)n;
  for (int i = 0; i < GROUP; i++) {
    const int e = exponent_of(a[i]), j = e > 0 ? -((e + n - 1) / n) : -e / n; /* floor(-e / k) */
    b[i] = a[i] * power_of_two(n * j);
    z[i] = 1 - (double)(e + n * j) * r;
    up[i] = j * (n - 1);
  }
  for (int step = 0; step < 8; step++) {
    memcpy(power, z, sizeof power);
    for (int t = 1; t < n; t++) times_z(power, z);
    for (int i = 0; i < GROUP; i++) z[i] += z[i] * (1 - b[i] * power[i]) * r;
  }
  memcpy(power, z, sizeof power);
  for (int t = 2; t < n; t++) times_z(power, z);
  for (int i = 0; i < GROUP; i++) a[i] = power[i] * power_of_two(up[i]);
}

/* The i of the interval (x[i], x[i + 1]] that v lies in; the first or the last one for a v outside. */
static size_t interval_below(const double *x, size_t n, double v) {
  size_t first = 0, left = n - 1;
  while (left > 1) {
    const size_t half = left / 2;
    first += x[first + half] < v ? half : 0;
    left -= half;
  }
  return first;
}

/* The same for [x[i], x[i + 1]). */
static size_t interval_from(const double *x, size_t n, double v) {
  size_t first = 0, left = n - 1;
  while (left > 1) {
    const size_t half = left / 2;
    first += x[first + half] <= v ? half : 0;
    left -= half;
  }
  return first;
}

static double clamp(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

/* Sets *slope and returns 1 if the slope at v needs no power. Otherwise returns 0; the slope is then *over times a power of *a, divided by k. */
static int direct(double *slope, double *a, double *over, const mxi_estimator *e, double v) {
  *a = *over = *slope = 1;
  if (e->kind == MX_QPRIME_STE || v != v || v < e->one_below || v > e->one_above) return 1;
  if (e->kind == MX_QPRIME_SPLINE) {
    *slope = clamp(e->slope[interval_from(e->knot, e->n_knots, v)], e->lo, e->hi);
    return 1;
  }
  const int dge = e->kind == MX_QPRIME_DGE;
  if (dge || e->clamped) v = clamp(v, e->grid[0], e->grid[e->n - 1]);
  const size_t i = interval_below(e->grid, e->n, v);
  const double half = (e->grid[i + 1] - e->grid[i]) / 2, away = fabs(v - (e->grid[i] + e->grid[i + 1]) / 2);
  if (!dge) *over = half;
  *slope = away == 0 ? (dge && e->k > 1 ? e->hi : 0) : *over;
  if (dge && e->k == 1) *slope = clamp(1, e->lo, e->hi);
  if (away == 0 || e->k == 1) return 1;
  *a = dge ? away / half : away;
  return 0;
}

void mxi_slopes(double *out, const mxi_estimator *e, const double *v, size_t n) {
  for (size_t from = 0; from < n; from += GROUP) {
    const size_t some = n - from < GROUP ? n - from : GROUP;
    double a[GROUP], over[GROUP], slope;
    int ready[GROUP], all = 1;
    for (size_t i = 0; i < GROUP; i++) a[i] = 1;
    for (size_t i = 0; i < some; i++) {
      all &= ready[i] = direct(&slope, &a[i], &over[i], e, v[from + i]);
      out[from + i] = slope;
    }
    if (all) continue;
    root_powers(a, e->k);
    for (size_t i = 0; i < some; i++) {
      if (ready[i]) continue;
      slope = over[i] * a[i] / (double)e->k;
      out[from + i] = e->kind == MX_QPRIME_DGE ? clamp(slope, e->lo, e->hi) : slope;
    }
  }
}

double mxi_slope(const mxi_estimator *e, double v) {
  double slope;
  mxi_slopes(&slope, e, &v, 1);
  return slope;
}

/* Every finite value, ascending; zero once. */
static void values_of(mxi_estimator *e, const mx_format *f) {
  e->n = 0;
  for (uint64_t code = 0; code >> f->bits == 0; code++) {
    const double v = mx_decode(f, code);
    if (!(fabs(v) < INFINITY) || e->n == MXI_MOST_VALUES) continue;
    size_t at = e->n;
    while (at > 0 && e->grid[at - 1] > v) at--;
    if (at > 0 && e->grid[at - 1] == v) continue;
    for (size_t i = e->n++; i > at; i--) e->grid[i] = e->grid[i - 1];
    e->grid[at] = v;
  }
}

/* Equidistant knots from `from` to `to`; the line goes through the value of the grid that is nearest to a knot, a tie to the lower one. */
static void lay_knots(mxi_estimator *e, double from, double to) {
  const double steps = (double)(e->n_knots - 1);
  double below = 0;
  for (size_t i = 0; i < e->n_knots; i++) {
    const double x = (from * (steps - (double)i) + to * (double)i) / steps;
    const size_t at = interval_below(e->grid, e->n, x);
    const double value = x - e->grid[at] <= e->grid[at + 1] - x ? e->grid[at] : e->grid[at + 1];
    e->knot[i] = x;
    if (i > 0) e->slope[i - 1] = (value - below) * steps / (to - from);
    below = value;
  }
}

static void begin(mxi_estimator *e, const mx_linear_recipe *r, int kind) {
  e->kind = kind;
  e->k = (unsigned)mxi_linear_real(r->grad_k, 5);
  e->lo = mxi_linear_real(r->grad_qprime_lo, 0.5);
  e->hi = mxi_linear_real(r->grad_qprime_hi, 1e4);
  e->one_below = -INFINITY;
  e->one_above = INFINITY;
  e->n_knots = kind == MX_QPRIME_SPLINE ? (size_t)mxi_linear_real(r->spline_knots, 40) : 0;
}

void mxi_estimator_of_elements(mxi_estimator *out, const mx_linear_recipe *r, int elem) {
  begin(out, r, mx_elem_format(elem)->kind == MX_KIND_NONE ? MX_QPRIME_STE : r->grad_qprime);
  out->clamped = 1;
  if (out->kind == MX_QPRIME_STE) return;
  values_of(out, mx_elem_format(elem));
  const double most = out->grid[out->n - 1];
  if (r->grad_mask == MX_GRAD_MASK_GRAPHCORE) out->one_below = most;
  if (out->n_knots) lay_knots(out, -most, most);
}

void mxi_estimator_of_scales(mxi_estimator *out, const mx_linear_recipe *r, int scale) {
  const mx_format *f = mx_scale_format(scale);
  const int graphcore = r->grad_scale_mask == MX_SCALE_MASK_GRAPHCORE;
  const uint64_t region = (uint64_t)mxi_linear_real(r->grad_scale_region, 20);
  begin(out, r, r->grad_scale_qprime);
  out->clamped = 0;
  if (out->kind == MX_QPRIME_STE) return;
  out->n = (size_t)region + (graphcore ? 0 : 1);
  for (uint64_t code = 0; code < out->n; code++) out->grid[code] = mx_decode(f, code);
  const double last = out->grid[out->n - 1];
  *(graphcore ? &out->one_below : &out->one_above) = last;
  if (out->n_knots) lay_knots(out, 0, mx_decode(f, region));
}
