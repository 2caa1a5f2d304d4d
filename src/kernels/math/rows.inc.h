/* Computes ordered sums and the parts of a row's softmax over the same lanes as functions.inc.h, which includes this. */

enum { L = MXI_MATH_LANES, VECTORS = L / WD };

#ifndef VD_SOME
/* n < WD numbers, zeros behind them; a lane set that has masks does it without memory. */
INLINE vd vd_load_some(const float *p, size_t n) {
  float rest[WD] = {0};
  memcpy(rest, p, n * sizeof *p);
  return vd_load(rest);
}
INLINE void vd_store_some(float *p, vd x, size_t n) {
  float rest[WD];
  vd_store(rest, x);
  memcpy(p, rest, n * sizeof *p);
}
#endif

INLINE vd term(const float *x, const float *y, const int two, size_t i, vd sum) {
  return two ? vd_fma(vd_load(x + i), vd_load(y + i), sum) : vd_add(sum, vd_load(x + i));
}

INLINE double lanes16(const float *x, const float *y, const int two, size_t n) {
  vd sum[VECTORS];
  double lane[WD];
  size_t i = 0;
#pragma GCC unroll 16
  for (int v = 0; v < VECTORS; v++) sum[v] = C(0);
  for (; i + L <= n; i += L)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) sum[v] = term(x + v * WD, y + v * WD, two, i, sum[v]);
#pragma GCC unroll 16
  for (int v = 0; v < VECTORS; v++, i += WD) {
    if (i + WD > n) { /* no lane is -0, so adding +0 changes nothing */
      if (i >= n) break;
      const vd a = vd_load_some(x + i, n - i);
      sum[v] = two ? vd_fma(a, vd_load_some(y + i, n - i), sum[v]) : vd_add(sum[v], a);
      break;
    }
    sum[v] = term(x, y, two, i, sum[v]);
  }
#pragma GCC unroll 16
  for (int half = VECTORS / 2; half; half /= 2)
#pragma GCC unroll 16
    for (int v = 0; v < half; v++) sum[v] = vd_add(sum[v], sum[v + half]);
  vd_store64(lane, sum[0]);
  for (int half = WD / 2; half; half /= 2)
    for (int l = 0; l < half; l++) lane[l] += lane[l + half];
  return lane[0];
}
static double sum_piece(const float *x, const float *y, size_t n) { return y ? lanes16(x, y, 1, n) : lanes16(x, x, 0, n); }

static void columns(double *chain, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols) {
  size_t c = 0;
  for (; c + L <= cols; c += L) {
    vd sum[VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) sum[v] = vd_load64(chain + c + (size_t)v * WD);
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 16
      for (int v = 0; v < VECTORS; v++) {
        const vd a = vd_load(x + r * ldx + c + (size_t)v * WD);
        sum[v] = y ? vd_fma(a, vd_load(y + r * ldy + c + (size_t)v * WD), sum[v]) : vd_add(sum[v], a);
      }
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) vd_store64(chain + c + (size_t)v * WD, sum[v]);
  }
  for (; c < cols; c++) /* a product of two float32 is exact in binary64, so no fma is needed */
    for (size_t r = 0; r < rows; r++) chain[c] += y ? (double)x[r * ldx + c] * (double)y[r * ldy + c] : (double)x[r * ldx + c];
}

/* a > b ? a : b gives b, the maximum so far, if a is NaN, and either one of two zeros. */
static float row_max(const float *x, size_t n) {
  vd most[VECTORS], nan = C(0);
  double lane[L + WD], m = -INFINITY;
  size_t i = 0;
#pragma GCC unroll 16
  for (int v = 0; v < VECTORS; v++) most[v] = C(-INFINITY);
  for (; i + L <= n; i += L)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) {
      const vd a = vd_load(x + i + (size_t)v * WD);
      most[v] = vd_blend(vd_lt(most[v], a), a, most[v]);
      nan = vd_blend(vd_eq(a, a), nan, a);
    }
  for (int v = 0; v < VECTORS; v++) vd_store64(lane + v * WD, most[v]);
  vd_store64(lane + L, nan);
  for (int l = 0; l < L; l++) m = lane[l] > m ? lane[l] : m;
  for (; i < n; i++) {
    if (x[i] != x[i]) return NAN;
    m = (double)x[i] > m ? (double)x[i] : m;
  }
  for (int l = L; l < L + WD; l++)
    if (lane[l] != lane[l]) return NAN;
  return (float)m + 0.0f;
}

static void exp_below(float *y, const float *x, size_t n, double scale, double m) {
  const vd s = C(scale), top = C(-(scale * m));
  size_t i = 0;
  for (; i + WD <= n; i += WD) vd_store(y + i, exp64(vd_fma(s, vd_load(x + i), top)));
  if (i < n) vd_store_some(y + i, exp64(vd_fma(s, vd_load_some(x + i, n - i), top)), n - i);
}

static void times(float *y, size_t n, double factor) {
  size_t i = 0;
  for (; i + WD <= n; i += WD) vd_store(y + i, vd_mul(vd_load(y + i), C(factor)));
  if (i < n) vd_store_some(y + i, vd_mul(vd_load_some(y + i, n - i), C(factor)), n - i);
}

INLINE vd d_softmax(vd y, vd dy, double scale, double s) { return vd_mul(C(scale), vd_mul(y, vd_sub(dy, C(s)))); }
static void softmax_backward(float *dx, const float *y, const float *dy, size_t n, double scale, double s) {
  size_t i = 0;
  for (; i + WD <= n; i += WD) vd_store(dx + i, d_softmax(vd_load(y + i), vd_load(dy + i), scale, s));
  if (i < n) vd_store_some(dx + i, d_softmax(vd_load_some(y + i, n - i), vd_load_some(dy + i, n - i), scale, s), n - i);
}

static double one_log(double x) {
  double lane[WD];
  vd_store64(lane, log64(C(x)));
  return lane[0];
}
