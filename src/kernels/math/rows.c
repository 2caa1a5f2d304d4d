/* Checks the arguments of ordered sums, maxima and softmax of rows, and divides the rows among threads. */
#include <math.h>

#include "core/sizes.h"
#include "kernels/math/kernels.h"
#include "kernels/threads.h"

enum { PIECE = MX_MATH_PIECE, HELD = 256 };

/* The same NaN on all machines. */
static double canonical(double sum) { return sum == sum ? sum : NAN; }

static double row_sum(const mx_math_kernels *k, const float *x, const float *y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i += PIECE) sum += k->sum(x + i, y ? y + i : NULL, size_least(PIECE, n - i));
  return sum;
}

/* Sums one long row: all threads sum pieces, which are then added in order, as many at a time as fit on the stack. */
static double long_sum(const mx_math_kernels *k, const float *x, const float *y, size_t n, int n_threads) {
  double sum = 0, piece[HELD];
  for (size_t from = 0; from < n; from += (size_t)HELD * PIECE) {
    const size_t n_pieces = size_least(HELD, (n - from + PIECE - 1) / PIECE);
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (size_t p = 0; p < n_pieces; p++) {
      const size_t i = from + p * PIECE;
      piece[p] = k->sum(x + i, y ? y + i : NULL, size_least(PIECE, n - i));
    }
    for (size_t p = 0; p < n_pieces; p++) sum += piece[p];
  }
  return sum;
}

/* Checks for NULL and the strides. A matrix of one row needs no stride. */
static mx_status check(const void *out, const void *x, size_t ldx, const void *y, size_t ldy, size_t rows, size_t cols) {
  if (!rows || !cols) return rows && !out ? MX_ERR_ARG : MX_OK;
  if (!out || !x) return MX_ERR_ARG;
  return rows > 1 && (ldx < cols || (y && ldy < cols)) ? MX_ERR_SHAPE : MX_OK;
}

mx_status mx_math_row_sums(double *out, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols, const mx_exec *exec) {
  const mx_status status = check(out, x, ldx, y, ldy, rows, cols);
  if (status) return status;
  const mx_math_kernels *k = mxi_math_kernels_for(exec);
  const int n_threads = mxi_math_threads(exec, rows * cols);
  if (n_threads > 1 && rows < (size_t)n_threads) {
    for (size_t r = 0; r < rows; r++) out[r] = canonical(long_sum(k, x + r * ldx, y ? y + r * ldy : NULL, cols, n_threads));
    return MX_OK;
  }
  if (n_threads < 2) { /* norms call this for single rows from their own threads, where another parallel region would cost more than the row */
    for (size_t r = 0; r < rows; r++) out[r] = canonical(row_sum(k, x + r * ldx, y ? y + r * ldy : NULL, cols));
    return MX_OK;
  }
#pragma omp parallel for schedule(static) num_threads(n_threads)
  for (size_t r = 0; r < rows; r++) out[r] = canonical(row_sum(k, x + r * ldx, y ? y + r * ldy : NULL, cols));
  return MX_OK;
}

mx_status mx_math_column_sums(float *out, int accumulate, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols,
                              const mx_exec *exec) {
  static const float none;
  const mx_status status = check(out, rows ? x : &none, ldx, y, ldy, rows ? rows : 1, cols);
  if (status) return status;
  const mx_math_kernels *k = mxi_math_kernels_for(exec);
  const int n_threads = mxi_math_threads(exec, rows * cols);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
  for (size_t c = 0; c < cols; c += MXI_MATH_COLUMNS) {
    double chain[MXI_MATH_COLUMNS];
    const size_t n = size_least(MXI_MATH_COLUMNS, cols - c);
    for (size_t i = 0; i < n; i++) chain[i] = accumulate ? (double)out[c + i] : 0;
    if (rows) k->columns(chain, x + c, ldx, y ? y + c : NULL, ldy, rows, n);
    for (size_t i = 0; i < n; i++) out[c + i] = chain[i] == chain[i] ? (float)chain[i] : NAN;
  }
  return MX_OK;
}

mx_status mx_math_row_max(float *out, const float *x, size_t ldx, size_t rows, size_t cols, const mx_exec *exec) {
  const mx_status status = check(out, x, ldx, NULL, 0, rows, cols);
  if (status) return status;
  const mx_math_kernels *k = mxi_math_kernels_for(exec);
  const int n_threads = mxi_math_threads(exec, rows * cols);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
  for (size_t r = 0; r < rows; r++) out[r] = cols ? k->max(x + r * ldx, cols) : -INFINITY;
  return MX_OK;
}

static size_t used(size_t r, size_t cols, size_t causal) { return causal ? size_least(r % causal + 1, cols) : cols; }

/* What all rows of a softmax share. */
typedef struct softmax {
  const mx_math_kernels *k;
  float *y;
  const float *x;
  size_t ldy, ldx, cols, causal;
  float scale;
  double *log_sum; /* may be NULL */
} softmax;

static void softmax_row(const softmax *s, size_t r) {
  const size_t n = used(r, s->cols, s->causal);
  const float *from = s->x + r * s->ldx;
  float *to = s->y + r * s->ldy;
  const double m = n ? (double)s->k->max(from, n) : -INFINITY;
  s->k->exp_below(to, from, n, (double)s->scale, m);
  const double sum = row_sum(s->k, to, NULL, n);
  s->k->times(to, n, 1 / sum);
  for (size_t c = n; c < s->cols; c++) to[c] = 0;
  if (s->log_sum) s->log_sum[r] = sum == sum && n ? (double)s->scale * m + s->k->log(sum) : n ? NAN : -INFINITY;
}

mx_status mx_math_softmax(float *y, size_t ldy, double *log_sum, const float *x, size_t ldx, size_t rows, size_t cols, float scale,
                          size_t causal, const mx_exec *exec) {
  const mx_status status = check(y, x, ldx, y, ldy, rows, cols);
  if (status) return status;
  if (!(scale > 0 && scale < INFINITY)) return MX_ERR_ARG;
  const int n_threads = mxi_math_threads(exec, rows * cols);
  const softmax s = {mxi_math_kernels_for(exec), y, x, ldy, ldx, cols, causal, scale, log_sum};
  if (n_threads < 2) { /* a parallel region of one thread costs more than a short row */
    for (size_t r = 0; r < rows; r++) softmax_row(&s, r);
    return MX_OK;
  }
#pragma omp parallel for schedule(dynamic, 16) num_threads(n_threads)
  for (size_t r = 0; r < rows; r++) softmax_row(&s, r);
  return MX_OK;
}

mx_status mx_math_softmax_backward(float *dx, size_t lddx, const float *y, size_t ldy, const float *dy, size_t lddy, size_t rows, size_t cols,
                                   float scale, size_t causal, const mx_exec *exec) {
  mx_status status = check(dx, y, ldy, dy, lddy, rows, cols);
  if (!status) status = check(dx, dy, lddy, dx, lddx, rows, cols);
  if (status) return status;
  if (!(scale > 0 && scale < INFINITY)) return MX_ERR_ARG;
  const mx_math_kernels *k = mxi_math_kernels_for(exec);
  const int n_threads = mxi_math_threads(exec, rows * cols);
#pragma omp parallel for schedule(dynamic, 16) num_threads(n_threads) if (n_threads > 1)
  for (size_t r = 0; r < rows; r++) {
    const size_t n = used(r, cols, causal);
    float *to = dx + r * lddx;
    const double s = row_sum(k, y + r * ldy, dy + r * lddy, n);
    k->softmax_backward(to, y + r * ldy, dy + r * lddy, n, (double)scale, s);
    for (size_t c = n; c < cols; c++) to[c] = 0;
  }
  return MX_OK;
}
