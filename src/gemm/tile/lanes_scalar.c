/* Compiles the kernels on decoded panels in plain C, one lane at a time. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gemm/tile/tile.h"

#define vf float
#define vd double
#define WF 1
#define WD 1
#define ROWS 4
#define HIGH 4
#define ACROSS 2
#define TABLE mxi_gemm_lanes_scalar
#define F_LOAD(p) (*(p))
#define F_STORE(p, x) (*(p) = (x))
#define F_SET1(x) (x)
#define F_ADD(a, b) ((a) + (b))
#define F_MUL(a, b) ((a) * (b))
#define F_FMA(a, b, c) fmaf(a, b, c)
#define D_LOAD(p) (*(p))
#define D_SET1(x) (x)
#define D_ADD(a, b) ((a) + (b))
#define D_SUB(a, b) ((a) - (b))
#define D_ABS(x) fabs(x)
#define D_STORE(p, x) (*(p) = (x))
#define D_MUL(a, b) ((a) * (b))
#define D_FMA(a, b, c) fma(a, b, c)
#define D_EXACT(a, b, c) ((a) * (b) + (c))
#define D_STORE_F32(p, x) (*(p) = (float)(x))
#define D_LOAD_F32(p) ((double)*(p))
#define D_NUMBER(x) number(x)
#define D_TO_ODD(s, rest) to_odd(s, rest)
#define STORE_NEAR(p, x, near, error) store_near(p, x, near, error)
#define ADD_TERM(p, t) (*(p) = (float)add_to_odd((double)*(p), t))
#define ADD_QUOTIENT(p, dot, up, under) add_quotient(p, dot, up, under)

static inline double number(double x) { return x == x ? x : 0; }

static inline double to_odd(double s, double rest) {
  uint64_t bits;
  memcpy(&bits, &s, sizeof bits);
  if (!(rest < 0 || rest > 0) || bits & 1) return s;
  bits += (rest > 0) == (s > 0) ? 1 : UINT64_MAX;
  memcpy(&s, &bits, sizeof s);
  return s;
}

/* 53 bits, the last one set if anything was cut, round to 24 bits as the exact sum does. */
static inline double add_to_odd(double x, double t) {
  const double s = x + t, back = s - x;
  return to_odd(s, (x - (s - back)) + (t - back));
}

static inline unsigned store_near(float *p, double x, double near, double error) {
  const float from = (float)(x - near), to = (float)(x + near);
  *p = from + 0.0f;
  return !(from == to && fabsf(from) <= FLT_MAX && (from != 0 || error == 0));
}

/* The quotient is rounded to odd, by the sign of the remainder; lanes_avx512.c says why this is enough. */
static inline unsigned add_quotient(float *p, double dot, double up, double under) {
  const double x = (double)*p, t = dot * up, over = dot == 0 && under == 0 ? 1 : under; /* 0 / 0 is 0 */
  const double about = t / over + 0.0, rest = fma(-about, over, t), q = to_odd(about, over < 0 ? -rest : rest), sum = add_to_odd(x, q);
  *p = (float)sum;
  const int known = fabs(t) <= DBL_MAX && fabs(x) <= DBL_MAX && fabs(over) <= DBL_MAX && over != 0;
  return !known || ((rest < 0 || rest > 0) && !(fabs(sum) >= fabs(q) * 0x1p-20));
}

#include "gemm/tile/lanes.inc.h"
