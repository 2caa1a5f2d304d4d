/* Computes the functions of formats/math.def in binary64 over the lanes of an ISA. The including file defines WD lanes:
 *
 *   vd vi vm            binary64, the same 64 bits as integers, a truth value for each lane
 *   vd_load vd_store    float32 in memory; stores round to nearest even and make every NaN 0x7FC00000
 *   vd_load64 vd_store64
 *   vd_set vd_add vd_sub vd_mul vd_div vd_sqrt vd_fma (a * b + c) vd_lt vd_eq vd_blend (m ? a : b) vm_any
 *   vd_bits vi_double vi_set vi_add vi_sub vi_and vi_or vi_xor vi_shl vi_shr (without sign) vi_is_zero
 *   NAME(x)             the name of an object that other files see
 *
 * Every operation corresponds to one in ref/math.c. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/math/kernels.h"

#define INLINE static inline __attribute__((always_inline))
#define C vd_set

static const double exp_c[] = {
#define MX_POLY_EXP(c) c,
#include "formats/math.def"
};
static const double expm1_c[] = {
#define MX_POLY_EXPM1(c) c,
#include "formats/math.def"
};
static const double log_c[] = {
#define MX_POLY_LOG(c) c,
#include "formats/math.def"
};
static const double sin_c[] = {
#define MX_POLY_SIN(c) c,
#include "formats/math.def"
};
static const double cos_c[] = {
#define MX_POLY_COS(c) c,
#include "formats/math.def"
};
static const double erf_c[] = {
#define MX_POLY_ERF(c) c,
#include "formats/math.def"
};
static const double erfcx_c[] = {
#define MX_POLY_ERFCX(c) c,
#include "formats/math.def"
};

/* Horner's rule. */
INLINE vd poly(const double *c, const int n, vd x) {
  vd p = C(c[n - 1]);
#pragma GCC unroll 32
  for (int i = n - 2; i >= 0; i--) p = vd_fma(p, x, C(c[i]));
  return p;
}
#define POLY(c, x) poly(c, (int)(sizeof c / sizeof *c), x)

INLINE vd abs64(vd x) { return vi_double(vi_and(vd_bits(x), vi_set(INT64_MAX))); }
INLINE vi sign_of(vd x) { return vi_and(vd_bits(x), vi_set(INT64_MIN)); }
INLINE vd with_sign(vd x, vi sign) { return vi_double(vi_xor(vd_bits(x), sign)); }
INLINE vd within(vd x, double low, double high) { /* clamps x; a NaN stays */
  x = vd_blend(vd_lt(x, C(low)), C(low), x);
  return vd_blend(vd_lt(C(high), x), C(high), x);
}
INLINE vd above_minus_inf(vd x) { return vd_blend(vd_lt(x, C(-0x1.fffffep127)), C(-0x1.fffffep127), x); }
INLINE vd not_inf(vd x) { return within(x, -0x1.fffffep127, 0x1.fffffep127); }

#define MAGIC 0x1.8p52 /* its last place is 1, so that what is added to it is rounded to an integer, which then is in the last bits */

/* x = n ln 2 + r; the bits of *t end in n. */
INLINE vd reduce_exp(vd *t, vd x) {
  *t = vd_fma(x, C(0x1.71547652b82fep+0), C(MAGIC));
  const vd n = vd_sub(*t, C(MAGIC));
  const vd r = vd_fma(n, C(-0x1.62e42fefa39efp-1), x);
  return vd_fma(n, C(-0x1.abc9e3b39803fp-56), r);
}
/* p * 2^n; p and the result are normal. */
INLINE vd scaled(vd p, vd t) { return vi_double(vi_add(vd_bits(p), vi_shl(vd_bits(t), 52))); }

/* exp(x). x is limited to two bounds, at which the result is already Inf or 0 in float32. */
INLINE vd exp64(vd x) {
  vd t;
  const vd r = reduce_exp(&t, within(x, -708, 709));
  return vd_blend(vd_eq(x, x), scaled(POLY(exp_c, r), t), x);
}

/* exp(x) - 1 for 0 <= x; 40 stands for everything larger. */
INLINE vd expm1_64(vd x) {
  vd t;
  const vd r = reduce_exp(&t, within(x, 0, 40));
  const vd two_n = scaled(C(1), t);
  return vd_fma(two_n, vd_mul(r, POLY(expm1_c, r)), vd_sub(two_n, C(1)));
}

/* log(x) with x = 2^k m, sqrt(1/2) <= m < sqrt(2), and s = (m - 1) / (m + 1). x is positive and normal in binary64. */
INLINE vd log64(vd x) {
  const vi biased = vi_shr(vi_add(vd_bits(x), vi_set(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)), 52);
  const vd k = vd_sub(vi_double(vi_or(biased, vi_set(0x4330000000000000))), C(0x1p52 + 1023));
  const vd m = vi_double(vi_sub(vd_bits(x), vi_shl(vi_sub(biased, vi_set(1023)), 52)));
  const vd f = vd_sub(m, C(1));
  const vd s = vd_div(f, vd_add(f, C(2)));
  const vd z = vd_mul(s, s);
  const vd log_m = vd_fma(vd_mul(s, z), POLY(log_c, z), vd_add(s, s));
  return vd_fma(k, C(0x1.62e42fefa39efp-1), log_m);
}

INLINE vd f_exp(vd x) { return exp64(x); }

INLINE vd f_log(vd x) {
  vd y = log64(x);
  y = vd_blend(vd_lt(C(0x1.fffffep127), x), C(INFINITY), y);
  y = vd_blend(vd_eq(x, C(0)), C(-INFINITY), y);
  y = vd_blend(vd_lt(x, C(0)), C(NAN), y);
  return vd_blend(vd_eq(x, x), y, x);
}

INLINE vd f_tanh(vd x) {
  const vd a = abs64(x), e = expm1_64(vd_add(a, a));
  const vd y = with_sign(vd_div(e, vd_add(e, C(2))), sign_of(x));
  return vd_blend(vd_eq(x, x), y, x);
}

/* Half of erfc(a), divided by exp(-a^2). */
INLINE vd half_erfcx(vd a) {
  a = within(a, 0, 12);
  const vd t = vd_div(vd_sub(a, C(4)), vd_add(a, C(4)));
  return vd_div(POLY(erfcx_c, t), vd_fma(a, C(4), C(2)));
}

INLINE vd f_erf(vd x) {
  const vd a = abs64(x), z = vd_mul(a, a);
  const vd small = vd_mul(a, POLY(erf_c, z));
  const vd tail = vd_mul(exp64(vd_sub(C(0), z)), half_erfcx(a));
  const vd y = vd_blend(vd_lt(a, C(1)), small, vd_fma(C(-2), tail, C(1)));
  return vd_blend(vd_eq(x, x), with_sign(y, sign_of(x)), x);
}

/* Reduces x to a quadrant and a rest. Large arguments are done one at a time, with as many digits of 2 / pi as they need. */
INLINE vi reduce_trig(vd *rest, vd x) {
  const vd t = vd_fma(x, C(0x1.45f306dc9c883p-1), C(MAGIC));
  const vd n = vd_sub(t, C(MAGIC));
  vd r = vd_fma(n, C(-0x1.921fb54442d18p+0), x);
  r = vd_fma(n, C(-0x1.1a62633145c07p-54), r);
  vi q = vd_bits(t);
  if (__builtin_expect(vm_any(vd_lt(C(0x1.fffffep27), abs64(x))), 0)) {
    double lane[WD], of[WD], quadrant[WD];
    vd_store64(lane, x);
    vd_store64(of, r);
    vd_store64(quadrant, vi_double(q));
    for (int i = 0; i < WD; i++)
      if (fabs(lane[i]) >= 0x1p28 && fabs(lane[i]) <= 0x1.fffffep127) {
        const int64_t bits = mxi_math_reduce(&of[i], lane[i]);
        memcpy(&quadrant[i], &bits, sizeof bits);
      }
    r = vd_load64(of);
    q = vd_bits(vd_load64(quadrant));
  }
  *rest = r;
  return q;
}

INLINE vd trig(vd x, int shift) {
  vd r;
  const vi q = vi_add(reduce_trig(&r, x), vi_set(shift));
  const vd z = vd_mul(r, r);
  const vd y = vd_blend(vi_is_zero(vi_and(q, vi_set(1))), vd_mul(r, POLY(sin_c, z)), POLY(cos_c, z));
  return vd_blend(vd_lt(abs64(x), C(INFINITY)), with_sign(y, vi_shl(vi_and(q, vi_set(2)), 62)), C(NAN));
}
INLINE vd f_sin(vd x) { return trig(x, 0); }
INLINE vd f_cos(vd x) { return trig(x, 1); }

INLINE vd f_rsqrt(vd x) { return vd_div(C(1), vd_sqrt(x)); }

/* e = e^-x, s = 1 / (1 + e). */
INLINE vd sigmoid_of(vd *e, vd x) {
  *e = exp64(vd_sub(C(0), x));
  return vd_div(C(1), vd_add(C(1), *e));
}
INLINE vd f_sigmoid(vd x) {
  vd e;
  return sigmoid_of(&e, x);
}
INLINE vd f_silu(vd x) {
  x = above_minus_inf(x);
  return vd_div(x, vd_add(C(1), exp64(vd_sub(C(0), x))));
}

/* 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3), since x / 2 (1 + tanh(u)) is x / (1 + e^(-2 u)). */
INLINE vd two_u(vd x, vd z) { return vd_mul(vd_mul(x, C(0x1.9884533d43651p+0)), vd_fma(z, C(0x1.6e4e26d4801f7p-5), C(1))); }
INLINE vd f_gelu_tanh(vd x) {
  x = above_minus_inf(x);
  return vd_div(x, vd_add(C(1), exp64(vd_sub(C(0), two_u(x, vd_mul(x, x))))));
}

/* Half of erfc(-x / sqrt(2)), and g = exp(-x^2 / 2). */
INLINE vd normal_cdf(vd *g, vd x) {
  *g = exp64(vd_mul(vd_mul(x, x), C(-0.5)));
  const vd tail = vd_mul(*g, half_erfcx(vd_mul(abs64(x), C(0x1.6a09e667f3bcdp-1))));
  return vd_blend(vd_lt(x, C(0)), tail, vd_sub(C(1), tail));
}
INLINE vd f_gelu_erf(vd x) {
  vd g;
  x = above_minus_inf(x);
  return vd_mul(x, normal_cdf(&g, x));
}

INLINE vd d_tanh(vd x) {
  const vd a = abs64(x), e = exp64(vd_mul(a, C(-2))), s = vd_div(C(1), vd_add(C(1), e));
  return vd_mul(vd_mul(vd_mul(C(4), e), s), s);
}
INLINE vd d_sigmoid(vd x) {
  vd e;
  const vd s = sigmoid_of(&e, abs64(x));
  return vd_mul(vd_mul(e, s), s);
}
INLINE vd d_silu(vd x) {
  vd e;
  x = not_inf(x);
  const vd s = sigmoid_of(&e, x);
  return vd_mul(s, vd_fma(x, vd_mul(e, s), C(1)));
}
INLINE vd d_gelu_tanh(vd x) {
  vd e;
  x = not_inf(x);
  const vd z = vd_mul(x, x), s = sigmoid_of(&e, two_u(x, z));
  const vd slope = vd_mul(C(0x1.9884533d43651p+0), vd_fma(z, C(0x1.12ba9d1f60179p-3), C(1)));
  return vd_mul(s, vd_fma(vd_mul(x, vd_mul(e, s)), slope, C(1)));
}
INLINE vd d_gelu_erf(vd x) {
  vd g;
  x = not_inf(x);
  const vd p = normal_cdf(&g, x);
  return vd_fma(vd_mul(x, g), C(0x1.9884533d43651p-2), p);
}

/* Functions over arrays. Values that do not fill a vector go through a padded one. */
#define ARRAY(f)                                                                                                                               \
  static void array_##f(float *y, const float *x, size_t n) {                                                                                  \
    size_t i = 0;                                                                                                                              \
    for (; i + WD <= n; i += WD) vd_store(y + i, f_##f(vd_load(x + i)));                                                                       \
    if (i == n) return;                                                                                                                        \
    float rest[WD] = {0};                                                                                                                      \
    memcpy(rest, x + i, (n - i) * sizeof *x);                                                                                                  \
    vd_store(rest, f_##f(vd_load(rest)));                                                                                                      \
    memcpy(y + i, rest, (n - i) * sizeof *x);                                                                                                  \
  }
#define GRADIENT(f)                                                                                                                            \
  static void gradient_##f(float *dx, const float *x, const float *dy, size_t n) {                                                             \
    size_t i = 0;                                                                                                                              \
    for (; i + WD <= n; i += WD) vd_store(dx + i, vd_mul(vd_load(dy + i), d_##f(vd_load(x + i))));                                             \
    if (i == n) return;                                                                                                                        \
    float rest[WD] = {0}, of[WD] = {0};                                                                                                        \
    memcpy(rest, x + i, (n - i) * sizeof *x);                                                                                                  \
    memcpy(of, dy + i, (n - i) * sizeof *x);                                                                                                   \
    vd_store(rest, vd_mul(vd_load(of), d_##f(vd_load(rest))));                                                                                 \
    memcpy(dx + i, rest, (n - i) * sizeof *x);                                                                                                 \
  }
ARRAY(exp)
ARRAY(log)
ARRAY(tanh)
ARRAY(erf)
ARRAY(sin)
ARRAY(cos)
ARRAY(rsqrt)
ARRAY(sigmoid)
ARRAY(silu)
ARRAY(gelu_tanh)
ARRAY(gelu_erf)
GRADIENT(tanh)
GRADIENT(sigmoid)
GRADIENT(silu)
GRADIENT(gelu_tanh)
GRADIENT(gelu_erf)

#include "kernels/math/rows.inc.h"

#define F(ID, f) [MX_MATH_##ID] = array_##f
#define D(ID, f) [MX_MATH_##ID] = gradient_##f
const mx_math_kernels TABLE = {{F(EXP, exp), F(LOG, log), F(TANH, tanh), F(ERF, erf), F(SIN, sin), F(COS, cos), F(RSQRT, rsqrt),
                                F(SIGMOID, sigmoid), F(SILU, silu), F(GELU_TANH, gelu_tanh), F(GELU_ERF, gelu_erf)},
                               {D(TANH, tanh), D(SIGMOID, sigmoid), D(SILU, silu), D(GELU_TANH, gelu_tanh), D(GELU_ERF, gelu_erf)},
                               sum_piece,
                               columns,
                               row_max,
                               exp_below,
                               times,
                               softmax_backward,
                               one_log};
