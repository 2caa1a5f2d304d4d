/* Computes Student's t, intervals of means and of paired differences, and Holm's correction. */
#include "mxgold/paired.h"

#include <math.h>
#include <stdlib.h>

/* Beyond this many terms the fraction has converged for every t and number of degrees of freedom that a double can tell apart. */
enum { MOST_TERMS = 100000 };

/* The continued fraction of the incomplete beta function, DLMF 8.17.22, by Lentz's method as Thompson and Barnett modified it (J. Comput. Phys. 64, 1986). */
static double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (fabs(d) < tiny) d = tiny;
  d = 1 / d;
  double f = d;
  for (int m = 1; m < MOST_TERMS; m++) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    const double terms[] = {even, odd};
    double step = 1;
    for (int i = 0; i < 2; i++) {
      d = 1 + terms[i] * d;
      c = 1 + terms[i] / c;
      if (fabs(d) < tiny) d = tiny;
      if (fabs(c) < tiny) c = tiny;
      d = 1 / d;
      step = c * d;
      f *= step;
    }
    if (fabs(step - 1) < 1e-16) break;
  }
  return f;
}

/* Gamma(a + 1/2) / Gamma(a): the asymptotic series (DLMF 5.11.13 with the logarithm taken), after stepping up to where it has all digits. lgamma's difference
 * would lose them for many degrees of freedom. */
static double gamma_ratio(double a) {
  double steps = 1;
  for (; a < 20; a++) steps *= a / (a + .5);
  const double r = 1 / a, s = r * r;
  return steps * sqrt(a) * exp(r * (-1. / 8 + s * (1. / 192 + s * (-1. / 640 + s * (17. / 14336 + s * (-31. / 18432))))));
}

/* P(T > t), t >= 0: half of the incomplete beta function I_x(degrees / 2, 1 / 2), x = degrees / (degrees + t^2), from its smaller side. */
static double upper_tail(double t, double degrees) {
  if (isinf(t)) return 0;
  if (isinf(degrees)) return .5 * erfc(t / sqrt(2));
  const double a = .5 * degrees, q = t * t / degrees, x = 1 / (1 + q), y = q / (1 + q);
  if (t == 0 || y == 0) return .5;
  const double front = gamma_ratio(a) / sqrt(M_PI) * exp(-a * log1p(q)) * sqrt(y);
  return x < (a + 1) / (a + 2.5) ? .5 * front * beta_fraction(a, .5, x) / a : .5 - front * beta_fraction(.5, a, y);
}

double mx_student_cdf(double t, double degrees) {
  if (isnan(t) || !(degrees > 0)) return NAN;
  return t < 0 ? upper_tail(-t, degrees) : 1 - upper_tail(t, degrees);
}

double mx_student_quantile(double p, double degrees) {
  if (!(p >= 0 && p <= 1) || !(degrees > 0)) return NAN;
  if (p == .5) return 0;
  const double tail = p < .5 ? p : 1 - p;
  if (tail == 0) return p < .5 ? -INFINITY : INFINITY;
  double low = 0, high = 1;
  while (upper_tail(high, degrees) > tail && high < 1e300) low = high, high *= 2;
  for (int i = 0; i < 200; i++) { /* until the two are neighbours */
    const double middle = low + .5 * (high - low);
    if (middle == low || middle == high) break;
    *(upper_tail(middle, degrees) > tail ? &low : &high) = middle;
  }
  return p < .5 ? -high : high;
}

/* Of x[i] - y[i], or of x[i] where y is NULL. */
static mx_mean interval_of(const double *x, const double *y, size_t n, double confidence) {
  mx_mean r = {n, NAN, NAN, NAN, NAN, NAN};
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += y ? x[i] - y[i] : x[i];
  if (!n || !isfinite(sum)) return r;
  r.mean = sum / (double)n;
  if (n < 2) return r;
  for (size_t i = 0; i < n; i++) {
    const double off = (y ? x[i] - y[i] : x[i]) - r.mean;
    squares += off * off;
  }
  r.sd = sqrt(squares / (double)(n - 1));
  const double error = r.sd / sqrt((double)n), wide = error * mx_student_quantile(.5 + .5 * confidence, (double)(n - 1));
  r.low = r.mean - wide;
  r.high = r.mean + wide;
  r.p = error > 0 ? 2 * upper_tail(fabs(r.mean) / error, (double)(n - 1)) : r.mean == 0;
  return r;
}

mx_mean mx_mean_of(const double *x, size_t n, double confidence) { return interval_of(x, NULL, n, confidence); }

mx_mean mx_mean_of_pairs(const double *a, const double *b, size_t n, double confidence) { return interval_of(a, b, n, confidence); }

typedef struct hypothesis {
  double p;
  size_t index;
} hypothesis;

static int compare(const void *a, const void *b) {
  const hypothesis *x = a, *y = b;
  return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->index > y->index) - (x->index < y->index);
}

double mx_score(double reference, double loss, double omega) { return (reference - loss) / reference / (1 + omega); }

mx_status mx_holm(double *adjusted, const double *p, size_t n) {
  hypothesis *h = malloc((n + 1) * sizeof *h);
  if (!h) return MX_ERR_NOMEM;
  size_t m = 0;
  for (size_t i = 0; i < n; i++) {
    adjusted[i] = p[i];
    if (!isnan(p[i])) h[m++] = (hypothesis){p[i], i};
  }
  qsort(h, m, sizeof *h, compare);
  double so_far = 0;
  for (size_t rank = 0; rank < m; rank++) {
    so_far = fmax(so_far, h[rank].p * (double)(m - rank));
    adjusted[h[rank].index] = fmin(so_far, 1);
  }
  free(h);
  return MX_OK;
}
