/* Defines the bits of functions of one float32. */
#include "math.h"

#include <float.h>
#include <gmp.h>
#include <math.h>
#include <string.h>

#include "math_sums.h"

/* Polynomials by Horner's rule, one fma a coefficient. */
typedef struct poly {
  int n;
  double c[24];
} poly;
static double at(const poly *p, double x) {
  double y = p->c[p->n - 1];
  for (int i = p->n - 2; i >= 0; i--) y = fma(y, x, p->c[i]);
  return y;
}
#define COUNT(c) +1
static const poly exp_p = {0
#define MX_POLY_EXP(c) COUNT(c)
#include "../formats/math.def"
                           ,
                           {
#define MX_POLY_EXP(c) c,
#include "../formats/math.def"
                           }};
static const poly expm1_p = {0
#define MX_POLY_EXPM1(c) COUNT(c)
#include "../formats/math.def"
                             ,
                             {
#define MX_POLY_EXPM1(c) c,
#include "../formats/math.def"
                             }};
static const poly log_p = {0
#define MX_POLY_LOG(c) COUNT(c)
#include "../formats/math.def"
                           ,
                           {
#define MX_POLY_LOG(c) c,
#include "../formats/math.def"
                           }};
static const poly sin_p = {0
#define MX_POLY_SIN(c) COUNT(c)
#include "../formats/math.def"
                           ,
                           {
#define MX_POLY_SIN(c) c,
#include "../formats/math.def"
                           }};
static const poly cos_p = {0
#define MX_POLY_COS(c) COUNT(c)
#include "../formats/math.def"
                           ,
                           {
#define MX_POLY_COS(c) c,
#include "../formats/math.def"
                           }};
static const poly erf_p = {0
#define MX_POLY_ERF(c) COUNT(c)
#include "../formats/math.def"
                           ,
                           {
#define MX_POLY_ERF(c) c,
#include "../formats/math.def"
                           }};
static const poly erfcx_p = {0
#define MX_POLY_ERFCX(c) COUNT(c)
#include "../formats/math.def"
                             ,
                             {
#define MX_POLY_ERFCX(c) c,
#include "../formats/math.def"
                             }};

/* Constants to binary64, and what binary64 leaves of them. */
static const double LN2 = 0x1.62e42fefa39efp-1, LN2_REST = 0x1.abc9e3b39803fp-56, LOG2_E = 0x1.71547652b82fep+0;
static const double HALF_PI = 0x1.921fb54442d18p+0, HALF_PI_REST = 0x1.1a62633145c07p-54, TWO_OVER_PI = 0x1.45f306dc9c883p-1;
static const double SQRT_HALF = 0x1.6a09e667f3bcdp-1; /* sqrt(1/2) */
static const double TWO_SQRT_TWO_OVER_PI = 0x1.9884533d43651p+0, ONE_OVER_SQRT_TWO_PI = 0x1.9884533d43651p-2;
static const double GELU_CUBE = 0x1.6e4e26d4801f7p-5, GELU_CUBE_3 = 0x1.12ba9d1f60179p-3; /* 0.044715, and three times that */

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* a * b rounded to an integer, ties to even: by the place of 1.5 * 2^52, whose last bit is worth 1. */
static double nearest(double a, double b) { return fma(a, b, 0x1.8p52) - 0x1.8p52; }

/* x = n ln 2 + r. */
static double exp_rest(double *n, double x) {
  *n = nearest(x, LOG2_E);
  return fma(*n, -LN2_REST, fma(*n, -LN2, x));
}

double ref_math_exp64(double x) {
  double n;
  if (x != x) return x;
  const double r = exp_rest(&n, clamp(x, -708, 709));
  return ldexp(at(&exp_p, r), (int)n);
}

/* e^x - 1, x >= 0. */
static double expm1_64(double x) {
  double n;
  const double r = exp_rest(&n, clamp(x, 0, 40)), two_n = ldexp(1, (int)n);
  return fma(two_n, r * at(&expm1_p, r), two_n - 1);
}

/* x = 2^k m, sqrt(1/2) <= m < sqrt(2). */
double ref_math_log64(double x) {
  int k;
  double m = frexp(x, &k); /* 1/2 <= m < 1 */
  if (m < SQRT_HALF) m *= 2, k--;
  const double f = m - 1, s = f / (f + 2), z = s * s;
  return fma(k, LN2, fma(s * z, at(&log_p, z), s + s));
}

static double log_of(double x) {
  if (x != x) return x;
  if (x < 0) return NAN;
  return x == 0 ? -INFINITY : isinf(x) ? x : ref_math_log64(x);
}

static double tanh_of(double x) {
  if (x != x) return x;
  const double e = expm1_64(2 * fabs(x));
  return copysign(e / (e + 2), x);
}

/* e^(a^2) erfc(a) / 2, a >= 0. */
static double half_erfcx(double a) {
  a = clamp(a, 0, 12);
  return at(&erfcx_p, (a - 4) / (a + 4)) / fma(a, 4, 2);
}

static double erf_of(double x) {
  if (x != x) return x;
  const double a = fabs(x), z = a * a;
  return copysign(a < 1 ? a * at(&erf_p, z) : fma(-2, ref_math_exp64(-z) * half_erfcx(a), 1), x);
}

/* |x| >= 2^28: x = m 2^e times the 128 bits of 2 / pi that stand at 2^(1 - e) and below it, in units of 2^-126 modulo 4. */
static int large_quadrant(double *r, double x) {
  int e;
  const double m = ldexp(frexp(fabs(x), &e), 24);
  e -= 24;
  mpz_t w, turn, f;
  mpz_init_set_str(w, "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561", 16);
  mpz_fdiv_q_2exp(w, w, (mp_bitcnt_t)(256 - (e + 126)));
  mpz_fdiv_r_2exp(w, w, 128);
  mpz_mul_ui(w, w, (unsigned long)m);
  mpz_fdiv_r_2exp(w, w, 128);
  mpz_init_set_ui(turn, 1); /* a quarter is 2^126 units */
  mpz_mul_2exp(turn, turn, 125);
  mpz_init(f);
  mpz_add(f, w, turn);
  mpz_fdiv_q_2exp(f, f, 126);
  const int q = (int)mpz_get_ui(f);
  mpz_mul_2exp(f, f, 126);
  mpz_sub(f, w, f); /* in [-2^125, 2^125) */
  mpz_fdiv_q_2exp(w, f, 64);
  mpz_fdiv_r_2exp(turn, f, 64);
  const double high = (double)mpz_get_si(w), low = (double)mpz_get_ui(turn);
  mpz_clears(w, turn, f, NULL);
  *r = copysign(1, x) * ((high * 0x1p64 + low) * 0x1p-126 * HALF_PI);
  return x < 0 ? -q : q;
}

static int quadrant(double *r, double x) {
  if (fabs(x) >= 0x1p28) return large_quadrant(r, x);
  const double n = nearest(x, TWO_OVER_PI);
  *r = fma(n, -HALF_PI_REST, fma(n, -HALF_PI, x));
  return (int)n;
}

static double trig(double x, int shift) {
  double r;
  if (!(fabs(x) < INFINITY)) return NAN;
  const int q = quadrant(&r, x) + shift;
  const double z = r * r, y = q & 1 ? at(&cos_p, z) : r * at(&sin_p, z);
  return q & 2 ? -y : y;
}

/* e^-x in *e, 1 / (1 + e^-x). */
static double logistic(double *e, double x) {
  *e = ref_math_exp64(-x);
  return 1 / (1 + *e);
}

/* The product and not the quotient of 0 by infinities: Inf stands for the largest number. */
static double without_inf(double x) { return x != x ? x : clamp(x, -(double)FLT_MAX, (double)FLT_MAX); }

static double two_u(double x) { return x * TWO_SQRT_TWO_OVER_PI * fma(x * x, GELU_CUBE, 1); }

/* The normal distribution, and e^(-x^2 / 2) in *g. */
static double normal(double *g, double x) {
  *g = ref_math_exp64(x * x * -0.5);
  const double tail = *g * half_erfcx(fabs(x) * SQRT_HALF);
  return x < 0 ? tail : 1 - tail;
}

double ref_math(int function, float value) {
  const double x = (double)value, y = x == -INFINITY ? -(double)FLT_MAX : x;
  double e;
  switch (function) {
  case MX_MATH_EXP:
    return ref_math_exp64(x);
  case MX_MATH_LOG:
    return log_of(x);
  case MX_MATH_TANH:
    return tanh_of(x);
  case MX_MATH_ERF:
    return erf_of(x);
  case MX_MATH_SIN:
    return trig(x, 0);
  case MX_MATH_COS:
    return trig(x, 1);
  case MX_MATH_RSQRT:
    return 1 / sqrt(x);
  case MX_MATH_SIGMOID:
    return logistic(&e, x);
  case MX_MATH_SILU:
    return y / (1 + ref_math_exp64(-y));
  case MX_MATH_GELU_TANH:
    return y / (1 + ref_math_exp64(-two_u(y)));
  case MX_MATH_GELU_ERF:
    return y * normal(&e, y);
  default:
    return NAN;
  }
}

double ref_math_slope(int function, float value) {
  const double x = (double)value, y = without_inf(x);
  double e, s;
  switch (function) {
  case MX_MATH_TANH:
    e = ref_math_exp64(fabs(x) * -2);
    s = 1 / (1 + e);
    return 4 * e * s * s;
  case MX_MATH_SIGMOID:
    s = logistic(&e, fabs(x));
    return e * s * s;
  case MX_MATH_SILU:
    s = logistic(&e, y);
    return s * fma(y, e * s, 1);
  case MX_MATH_GELU_TANH:
    s = logistic(&e, two_u(y));
    return s * fma(y * (e * s), TWO_SQRT_TWO_OVER_PI * fma(y * y, GELU_CUBE_3, 1), 1);
  case MX_MATH_GELU_ERF:
    s = normal(&e, y);
    return fma(y * e, ONE_OVER_SQRT_TWO_PI, s);
  default:
    return NAN;
  }
}

/* The one rounding to float32. */
float ref_math_store(double x) {
  static const uint32_t nan_bits = 0x7FC00000;
  float y = (float)x;
  if (y != y) memcpy(&y, &nan_bits, sizeof y);
  return y;
}

void ref_math_array(float *y, const float *x, size_t n, int function) {
  for (size_t i = 0; i < n; i++) y[i] = ref_math_store(ref_math(function, x[i]));
}

void ref_math_gradient(float *dx, const float *x, const float *dy, size_t n, int function) {
  for (size_t i = 0; i < n; i++) dx[i] = ref_math_store((double)dy[i] * ref_math_slope(function, x[i]));
}
