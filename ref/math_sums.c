/* Defines the bits of ordered sums, maxima and softmax of rows. */
#include "math_sums.h"

#include <math.h>

/* Sixteen sums, then neighbours at distance 8, 4, 2, 1. */
static double piece(const float *x, const float *y, size_t n) {
  double lane[16] = {0};
  for (size_t i = 0; i < n; i++) lane[i % 16] += y ? (double)x[i] * (double)y[i] : (double)x[i];
  double a[8], b[4];
  for (int l = 0; l < 8; l++) a[l] = lane[l] + lane[l + 8];
  for (int l = 0; l < 4; l++) b[l] = a[l] + a[l + 4];
  return (b[0] + b[2]) + (b[1] + b[3]);
}

static double row(const float *x, const float *y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i += MX_MATH_PIECE) sum += piece(x + i, y ? y + i : NULL, n - i < MX_MATH_PIECE ? n - i : MX_MATH_PIECE);
  return sum;
}

void ref_math_row_sums(double *out, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++) {
    out[r] = row(x + r * ldx, y ? y + r * ldy : NULL, cols);
    if (out[r] != out[r]) out[r] = NAN;
  }
}

void ref_math_column_sums(float *out, int accumulate, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols) {
  for (size_t c = 0; c < cols; c++) {
    double sum = accumulate ? (double)out[c] : 0;
    for (size_t r = 0; r < rows; r++) sum += y ? (double)x[r * ldx + c] * (double)y[r * ldy + c] : (double)x[r * ldx + c];
    out[c] = ref_math_store(sum);
  }
}

static double largest(const float *x, size_t n) {
  double m = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    if (x[i] != x[i]) return NAN;
    if ((double)x[i] > m) m = (double)x[i];
  }
  return m == 0 ? 0 : m;
}

void ref_math_row_max(float *out, const float *x, size_t ldx, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++) out[r] = ref_math_store(largest(x + r * ldx, cols));
}

static size_t used(size_t r, size_t cols, size_t causal) { return causal && r % causal + 1 < cols ? r % causal + 1 : cols; }

void ref_math_softmax(float *y, size_t ldy, double *log_sum, const float *x, size_t ldx, size_t rows, size_t cols, float scale, size_t causal) {
  for (size_t r = 0; r < rows; r++) {
    const float *from = x + r * ldx;
    float *to = y + r * ldy;
    const size_t n = used(r, cols, causal);
    const double s = (double)scale, m = largest(from, n);
    for (size_t c = 0; c < n; c++) to[c] = ref_math_store(ref_math_exp64(fma(s, (double)from[c], -(s * m))));
    const double sum = row(to, NULL, n), inverse = 1 / sum;
    for (size_t c = 0; c < cols; c++) to[c] = c < n ? ref_math_store((double)to[c] * inverse) : 0;
    if (log_sum) log_sum[r] = !n ? -INFINITY : sum != sum ? NAN : s * m + ref_math_log64(sum);
  }
}

void ref_math_softmax_backward(float *dx, size_t lddx, const float *y, size_t ldy, const float *dy, size_t lddy, size_t rows, size_t cols,
                               float scale, size_t causal) {
  for (size_t r = 0; r < rows; r++) {
    const size_t n = used(r, cols, causal);
    const double s = row(y + r * ldy, dy + r * lddy, n);
    for (size_t c = 0; c < cols; c++)
      dx[r * lddx + c] = c < n ? ref_math_store((double)scale * ((double)y[r * ldy + c] * ((double)dy[r * lddy + c] - s))) : 0;
  }
}
