/* Computes the logarithm, the exponential and the quantile of the normal distribution by polynomials. */
#include "ablate/sums/real.h"

#include <math.h>

#include "mxgold/ablate.h"

static const double ln2 = 0.69314718055994530942, ln2_hi = 0x1.62e42fee00000p-1, ln2_lo = 0x1.a39ef35793c76p-33;

/* x = m * 2^e with m in [sqrt(1/2), sqrt 2); ln m = 2 atanh((m - 1) / (m + 1)) by its series. */
static double ln_parts(int *e, double x) {
  double m = frexp(x, e);
  if (m < 0.70710678118654752440) {
    m *= 2;
    *e -= 1;
  }
  const double z = (m - 1) / (m + 1), zz = z * z;
  double p = 1.0 / 27;
  for (int k = 25; k >= 1; k -= 2) p = p * zz + 1.0 / k;
  return 2 * z * p;
}

double mxi_real_ln(double x) {
  int e;
  const double l = ln_parts(&e, x);
  return (double)e * ln2_hi + ((double)e * ln2_lo + l);
}

double mx_log2(double x) {
  int e;
  const double l = ln_parts(&e, x);
  return (double)e + l / ln2;
}

double mxi_real_exp(double x) {
  const double k = floor(x / ln2 + 0.5), r = (x - k * ln2_hi) - k * ln2_lo;
  double p = 1;
  for (int i = 14; i >= 1; i--) p = p * r / i + 1;
  return ldexp(p, (int)k);
}

static double ratio(const double num[8], const double den[8], double r) {
  double a = num[7], b = den[7];
  for (int i = 6; i >= 0; i--) {
    a = a * r + num[i];
    b = b * r + den[i];
  }
  return a / b;
}

double mxi_real_normal(double p) {
  static const double mid_n[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                  4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static const double mid_d[8] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  static const double far_n[8] = {1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
                                  1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static const double far_d[8] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static const double tail_n[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,  2.96560571828504891230e-1,
                                   2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static const double tail_d[8] = {1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (fabs(q) <= 0.425) return q * ratio(mid_n, mid_d, 0.180625 - q * q);
  const double r = sqrt(-mxi_real_ln(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? ratio(far_n, far_d, r - 1.6) : ratio(tail_n, tail_d, r - 5);
  return q < 0 ? -x : x;
}
