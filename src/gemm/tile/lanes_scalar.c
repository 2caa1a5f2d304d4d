/* Compiles the kernels on decoded panels in plain C, one lane at a time. */
#include <math.h>
#include <string.h>

#include "gemm/tile/tile.h"

#define vf float
#define vd double
#define WF 1
#define WD 1
#define ROWS 4
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
#define ADD_TERM(p, t) add_term(p, t)

/* Rounds to odd first: 53 bits, the last one set if anything was cut, round to 24 bits as the exact sum does. */
static void add_term(float *p, double t) {
  const double x = (double)*p, s = x + t, back = s - x, rest = (x - (s - back)) + (t - back);
  if (!(rest < 0 || rest > 0)) {
    *p = (float)s;
    return;
  }
  uint64_t bits;
  memcpy(&bits, &s, sizeof bits);
  if (!(bits & 1)) bits += (rest > 0) == (s > 0) ? 1 : UINT64_MAX;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  *p = (float)odd;
}

#include "gemm/tile/lanes.inc.h"
