/* Computes the functions of math.h by MPFR. */
#include "math_oracle.h"

#include <math.h>
#include <mpfr.h>

#include "mxgold/math.h"

enum { BITS = 160 };

/* Functions such as x / (1 + e^-z) lose no digits in this form; u is that of formats/math.def. */
static void two_u(mpfr_t out, mpfr_t slope, const mpfr_t x) {
  mpfr_t z, c;
  mpfr_inits2(BITS, z, c, (mpfr_ptr)0);
  mpfr_const_pi(c, MPFR_RNDN); /* 2 sqrt(2 / pi) */
  mpfr_ui_div(c, 8, c, MPFR_RNDN);
  mpfr_sqrt(c, c, MPFR_RNDN);
  mpfr_sqr(z, x, MPFR_RNDN);
  mpfr_mul_ui(z, z, 44715, MPFR_RNDN);
  mpfr_div_ui(z, z, 1000000, MPFR_RNDN);
  mpfr_mul_ui(slope, z, 3, MPFR_RNDN);
  mpfr_add_ui(slope, slope, 1, MPFR_RNDN);
  mpfr_mul(slope, slope, c, MPFR_RNDN);
  mpfr_add_ui(z, z, 1, MPFR_RNDN);
  mpfr_mul(z, z, x, MPFR_RNDN);
  mpfr_mul(out, z, c, MPFR_RNDN);
  mpfr_clears(z, c, (mpfr_ptr)0);
}

/* Sets s = 1 / (1 + e^-z); negative: of -z, so that 1 - s loses no digits. */
static void logistic(mpfr_t s, const mpfr_t z, int negative) {
  if (negative)
    mpfr_set(s, z, MPFR_RNDN);
  else
    mpfr_neg(s, z, MPFR_RNDN);
  mpfr_exp(s, s, MPFR_RNDN);
  mpfr_add_ui(s, s, 1, MPFR_RNDN);
  mpfr_ui_div(s, 1, s, MPFR_RNDN);
}

/* The normal distribution, erfc(-x / sqrt(2)) / 2, and its density. */
static void normal(mpfr_t p, mpfr_t density, const mpfr_t x) {
  mpfr_t t;
  mpfr_init2(t, BITS);
  mpfr_sqrt_ui(t, 2, MPFR_RNDN);
  mpfr_div(t, x, t, MPFR_RNDN);
  mpfr_neg(t, t, MPFR_RNDN);
  mpfr_erfc(p, t, MPFR_RNDN);
  mpfr_div_ui(p, p, 2, MPFR_RNDN);
  mpfr_sqr(density, t, MPFR_RNDN);
  mpfr_neg(density, density, MPFR_RNDN);
  mpfr_exp(density, density, MPFR_RNDN);
  mpfr_const_pi(t, MPFR_RNDN);
  mpfr_mul_ui(t, t, 2, MPFR_RNDN);
  mpfr_sqrt(t, t, MPFR_RNDN);
  mpfr_div(density, density, t, MPFR_RNDN);
  mpfr_clear(t);
}

static void value(mpfr_t y, int function, const mpfr_t x) {
  mpfr_t s, t;
  mpfr_inits2(BITS, s, t, (mpfr_ptr)0);
  switch (function) {
  case MX_MATH_EXP:
    mpfr_exp(y, x, MPFR_RNDN);
    break;
  case MX_MATH_LOG:
    mpfr_log(y, x, MPFR_RNDN);
    break;
  case MX_MATH_TANH:
    mpfr_tanh(y, x, MPFR_RNDN);
    break;
  case MX_MATH_ERF:
    mpfr_erf(y, x, MPFR_RNDN);
    break;
  case MX_MATH_SIN:
    mpfr_sin(y, x, MPFR_RNDN);
    break;
  case MX_MATH_COS:
    mpfr_cos(y, x, MPFR_RNDN);
    break;
  case MX_MATH_RSQRT:
    mpfr_rec_sqrt(y, x, MPFR_RNDN);
    break;
  case MX_MATH_SIGMOID:
    logistic(y, x, 0);
    break;
  case MX_MATH_SILU:
    logistic(s, x, 0);
    mpfr_mul(y, x, s, MPFR_RNDN);
    break;
  case MX_MATH_GELU_TANH:
    two_u(s, t, x);
    logistic(s, s, 0);
    mpfr_mul(y, x, s, MPFR_RNDN);
    break;
  case MX_MATH_GELU_ERF:
    normal(s, t, x);
    mpfr_mul(y, x, s, MPFR_RNDN);
    break;
  default:
    mpfr_set_nan(y);
  }
  mpfr_clears(s, t, (mpfr_ptr)0);
}

static void slope_of(mpfr_t y, int function, const mpfr_t x) {
  mpfr_t s, t, z, d;
  mpfr_inits2(BITS, s, t, z, d, (mpfr_ptr)0);
  mpfr_set(z, x, MPFR_RNDN);
  mpfr_set_ui(d, 1, MPFR_RNDN);
  switch (function) {
  case MX_MATH_TANH: /* 1 / cosh^2 */
    mpfr_sech(y, x, MPFR_RNDN);
    mpfr_sqr(y, y, MPFR_RNDN);
    break;
  case MX_MATH_SIGMOID:
    logistic(s, x, 0);
    logistic(t, x, 1);
    mpfr_mul(y, s, t, MPFR_RNDN);
    break;
  case MX_MATH_GELU_TANH:
    two_u(z, d, x); /* goes on below: s (1 + x (1 - s) z') */
  /* fallthrough */
  case MX_MATH_SILU:
    logistic(s, z, 0);
    logistic(t, z, 1);
    mpfr_mul(t, t, d, MPFR_RNDN);
    mpfr_mul(t, t, x, MPFR_RNDN);
    mpfr_add_ui(t, t, 1, MPFR_RNDN);
    mpfr_mul(y, s, t, MPFR_RNDN);
    break;
  case MX_MATH_GELU_ERF:
    normal(s, t, x);
    mpfr_mul(t, t, x, MPFR_RNDN);
    mpfr_add(y, s, t, MPFR_RNDN);
    break;
  default:
    mpfr_set_nan(y);
  }
  mpfr_clears(s, t, z, d, (mpfr_ptr)0);
}

/* Sets the values that neither the formulas nor MPFR give at infinities. */
static int limit(double *y, int function, int slope, float x) {
  if (function == MX_MATH_RSQRT && x == 0) {
    *y = signbit(x) ? -INFINITY : INFINITY; /* IEEE 754-2019 9.2.1; MPFR's is positive */
    return 1;
  }
  const int activation = function == MX_MATH_SILU || function == MX_MATH_GELU_TANH || function == MX_MATH_GELU_ERF;
  if (!isinf(x) || !(activation || slope)) return 0;
  *y = slope ? activation && x > 0 : x > 0 ? INFINITY : -0.0;
  return 1;
}

double math_oracle_ulps(int function, int slope, float x, float y) {
  double known;
  if (limit(&known, function, slope, x)) return known == (double)y && (slope || !signbit(known) == !signbit(y)) ? 0 : INFINITY;
  mpfr_t a, b;
  mpfr_inits2(BITS, a, b, (mpfr_ptr)0);
  mpfr_set_flt(a, x, MPFR_RNDN);
  if (slope)
    slope_of(b, function, a);
  else
    value(b, function, a);
  double ulps = INFINITY;
  if (mpfr_nan_p(b) || y != y)
    ulps = mpfr_nan_p(b) && y != y ? 0 : INFINITY;
  else if (mpfr_inf_p(b) || mpfr_zero_p(b)) {
    const double exact = mpfr_get_d(b, MPFR_RNDN);
    ulps = exact == (double)y && (isinf(y) || slope || !signbit(exact) == !signbit(y)) ? 0 : INFINITY;
  } else {
    const long top = mpfr_get_exp(b), place = top - 24 < -149 ? -149 : top > 128 ? 104 : top - 24;
    if (isinf(y)) /* measures as if the range of exponents did not end */
      mpfr_set_ui_2exp(a, 1, 128, MPFR_RNDN);
    else
      mpfr_set_flt(a, y, MPFR_RNDN);
    if (isinf(y) && y < 0) mpfr_neg(a, a, MPFR_RNDN);
    const int overflows = isinf(y) && top > 128; /* beyond 2^128, where Inf is right */
    mpfr_sub(a, a, b, MPFR_RNDN);
    mpfr_mul_2si(a, a, -place, MPFR_RNDN);
    ulps = overflows ? 0 : fabs(mpfr_get_d(a, MPFR_RNDA));
    if (y == 0 && !slope && !signbit(y) == (mpfr_sgn(b) < 0)) ulps = INFINITY; /* a result that underflows keeps its sign */
  }
  mpfr_clears(a, b, (mpfr_ptr)0);
  return ulps;
}
