/* Checks the arguments of a float32 product, and divides D among threads. */
#include <limits.h>
#include <omp.h>
#include <stdint.h>

#include "core/sizes.h"
#include "gemm/dense/tile.h"
#include "kernels/threads.h"

enum {
  THREAD_LOG2 = 17, /* the binary logarithm of the number of products for which one more thread pays */
  SQUARE = 256,     /* parts of at least as many rows and columns are still efficient; making more of them evens out threads that are delayed */
  N_SLOTS = 48,     /* the largest b_width of any kernel */
  LINE = 64
};

static size_t batch_of(const mx_dense *p) { return (p->batch[0] ? p->batch[0] : 1) * (p->batch[1] ? p->batch[1] : 1); }

static const mxg_dense_kernels *kernels_for(const mx_exec *exec) {
  const uint32_t usable = mx_isa_usable(exec ? exec->isa_mask : 0);
  (void)usable;
#if defined(__x86_64__)
  if (usable & MX_ISA_AVX512) return &mxi_dense_avx512;
  if (usable & MX_ISA_AVX2) return &mxi_dense_avx2;
#elif defined(__aarch64__)
  if (usable & MX_ISA_NEON) return &mxi_dense_neon;
#endif
  return &mxi_dense_scalar;
}

/* --- threads and their memory --- */

/* The caller's number of threads, or one for each processor, but no more than the work justifies. It is computed in doubles, which cannot
 * overflow. */
static int threads_wanted(const mx_dense *p, const mx_exec *exec) {
  const double worth = (double)p->M * (double)p->N * (double)p->K * (double)batch_of(p) / (1 << THREAD_LOG2);
  const int n = mxi_threads_wanted(exec ? exec->n_threads : 0);
  return worth < 1 ? 1 : worth < n ? (int)worth : n;
}

/* Floats in a packed block, for any kernel: widths are at most 4/3 of the rows, in whole cache lines. */
static size_t a_floats(const mx_dense *p) {
  return (p->M >= MXG_DENSE_A_SLOTS ? MXG_DENSE_A_SLOTS : size_least(MXG_DENSE_A_SLOTS, p->M + p->M / 3 + 16)) *
         size_least(p->K, MXG_DENSE_K_BLOCK);
}
static size_t b_floats(const mx_dense *p) { return (size_least(p->N, MXG_DENSE_N_BLOCK) + N_SLOTS) * size_least(p->K, MXG_DENSE_K_BLOCK); }
static size_t in_lines(size_t floats) { return (floats * sizeof(float) + LINE - 1) / LINE * LINE; }
static size_t bytes_each(const mx_dense *p) { return in_lines(a_floats(p)) + in_lines(b_floats(p)); }

size_t mx_dense_workspace(const mx_dense *p, const mx_exec *exec) {
  return p && p->M && p->N && p->K ? LINE + (size_t)threads_wanted(p, exec) * bytes_each(p) : 0;
}

/* --- parts --- */

/* D as a grid of parts. Each part packs its own operands: its rows and its columns, times K. */
typedef struct grid {
  size_t rows, cols;
} grid;

/* The grid of n parts that packs the least. */
static grid grid_of(const mx_dense *p, size_t n) {
  grid best = {1, 1};
  double least_packed = 0;
  for (size_t rows = 1; rows <= n; rows++) {
    if (n % rows || rows > p->M || n / rows > p->N) continue;
    const double packed = (double)rows * (double)p->N + (double)(n / rows) * (double)p->M;
    if (least_packed > 0 && packed >= least_packed) continue;
    least_packed = packed;
    best = (grid){rows, n / rows};
  }
  return best;
}

/* One part for each thread, or one for each product if the batch is large; up to four times as many if they stay large enough. */
static grid parts_for(const mx_dense *p, int n_threads) {
  const size_t n = (size_t)n_threads, batch = batch_of(p), each = (n + batch - 1) / batch;
  if (n == 1 || each == 1) return (grid){1, 1};
  for (size_t more = 4; more > 1; more /= 2)
    if (p->M / SQUARE * (p->N / SQUARE) >= each * more) return grid_of(p, each * more);
  return grid_of(p, each);
}

static mxg_dense_part part_of(const mx_dense *p, const mxg_dense_kernels *kernels, grid g, size_t task) {
  const size_t index = task / (g.rows * g.cols), in = task % (g.rows * g.cols), r = in / g.cols, c = in % g.cols;
  const size_t per_row = p->batch[1] ? p->batch[1] : 1, i = index / per_row, j = index % per_row;
  const size_t panels = (p->N + kernels->cols - 1) / kernels->cols; /* all full but perhaps the last */
  return (mxg_dense_part){.p = p,
                          .kernels = kernels,
                          .a = p->K ? p->a + i * p->a_batch[0] + j * p->a_batch[1] : NULL,
                          .b = p->K ? p->b + i * p->b_batch[0] + j * p->b_batch[1] : NULL,
                          .d = p->d + i * p->d_batch[0] + j * p->d_batch[1],
                          .m0 = r * (p->M / g.rows) + size_least(r, p->M % g.rows),
                          .m1 = (r + 1) * (p->M / g.rows) + size_least(r + 1, p->M % g.rows),
                          .n0 = size_least(p->N, c * panels / g.cols * kernels->cols),
                          .n1 = size_least(p->N, (c + 1) * panels / g.cols * kernels->cols)};
}

static void take(const mx_dense *p, const mxg_dense_kernels *kernels, grid g, size_t task, uint8_t *memory) {
  const mxg_dense_part part = part_of(p, kernels, g, task);
  mxi_dense_part(&part, (float *)(void *)memory, (float *)(void *)(memory + in_lines(a_floats(p))));
}

/* --- the call --- */

/* Adds (n - 1) * stride to *base; false if that exceeds half of the address space, counted in floats. */
static int grows(size_t *base, size_t n, size_t stride) {
  size_t more;
  if (n < 2) return 1;
  return !__builtin_mul_overflow(n - 1, stride, &more) && !__builtin_add_overflow(*base, more, base) && *base <= SIZE_MAX / 2 / sizeof(float);
}

static mx_status check(const mx_dense *p, const void *workspace, const mx_exec *exec, mx_error *err) {
  if (!p) return mx_fail(err, MX_ERR_ARG, "dense: the product is NULL");
  if ((unsigned)p->part > MX_DENSE_A_UPPER) return mx_fail(err, MX_ERR_ARG, "dense: part is %d, expected 0 to %d", p->part, MX_DENSE_A_UPPER);
  if (!p->M || !p->N) return MX_OK;
  if (!p->d) return mx_fail(err, MX_ERR_ARG, "dense: d is NULL");
  if (p->K && (!p->a || !p->b)) return mx_fail(err, MX_ERR_ARG, "dense: %s is NULL", p->a ? "b" : "a");
  if (p->ldd < p->N) return mx_fail(err, MX_ERR_SHAPE, "dense: ldd is %zu, expected at least N = %zu", p->ldd, p->N);
  size_t a = 0, b = 0, d = p->N, n = 1;
  int fits = grows(&a, p->M, p->a_row) && grows(&a, p->K, p->a_col) && grows(&b, p->N, p->b_row) && grows(&b, p->K, p->b_col) &&
             grows(&d, p->M, p->ldd);
  for (int i = 0; i < 2; i++)
    fits = fits && grows(&a, p->batch[i], p->a_batch[i]) && grows(&b, p->batch[i], p->b_batch[i]) && grows(&d, p->batch[i], p->d_batch[i]) &&
           !__builtin_mul_overflow(n, p->batch[i] ? p->batch[i] : 1, &n);
  if (!fits) return mx_fail(err, MX_ERR_SHAPE, "dense: %zu x %zu x %zu with these strides does not fit into memory", p->M, p->N, p->K);
  if (!workspace && mx_dense_workspace(p, exec)) return mx_fail(err, MX_ERR_ARG, "dense: workspace is NULL");
  return MX_OK;
}

/* Computes one product by the caller's sgemm. Returns 0 if sgemm cannot do it. */
static int by_sgemm(const mx_dense *p) {
  enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
  const size_t lda = p->a_col == 1 ? p->a_row : p->a_col, ldb = p->b_col == 1 ? p->b_row : p->b_col;
  const int unit = (p->a_col == 1 || p->a_row == 1) && (p->b_col == 1 || p->b_row == 1);
  const int fits = p->M <= INT_MAX && p->N <= INT_MAX && p->K <= INT_MAX && lda <= INT_MAX && ldb <= INT_MAX && p->ldd <= INT_MAX;
  if (!unit || !fits || !p->K || p->part != MX_DENSE_WHOLE || batch_of(p) != 1) return 0;
  const int by_rows = p->a_col == 1, columns = p->b_col == 1;
  if (lda < (by_rows ? p->K : p->M) || ldb < (columns ? p->K : p->N)) return 0; /* rows overlap, or a column is repeated */
  p->sgemm(ROW_MAJOR, by_rows ? AS_IT_IS : TRANSPOSED, columns ? TRANSPOSED : AS_IT_IS, (int)p->M, (int)p->N, (int)p->K, 1, p->a, (int)lda,
           p->b, (int)ldb, p->accumulate ? 1 : 0, p->d, (int)p->ldd);
  for (size_t m = 0; m < p->M && p->bias; m++)
    for (size_t n = 0; n < p->N; n++) p->d[m * p->ldd + n] += p->bias[n];
  return 1;
}

mx_status mx_dense_gemm(const mx_dense *p, void *workspace, const mx_exec *exec, mx_error *err) {
  const mx_status status = check(p, workspace, exec, err);
  if (status || !p->M || !p->N || (p->sgemm && by_sgemm(p))) return status;
  const mxg_dense_kernels *kernels = kernels_for(exec);
  const int n_threads = mxi_threads_granted(threads_wanted(p, exec));
  const grid g = parts_for(p, n_threads);
  const size_t n_tasks = batch_of(p) * g.rows * g.cols, bytes = bytes_each(p);
  uint8_t *memory = (uint8_t *)(((uintptr_t)workspace + LINE - 1) / LINE * LINE);
  if (n_threads == 1) { /* no parallel region, so that the caller's own threads are left alone */
    for (size_t task = 0; task < n_tasks; task++) take(p, kernels, g, task, memory);
    return MX_OK;
  }
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
  for (size_t task = 0; task < n_tasks; task++) take(p, kernels, g, task, memory + (size_t)omp_get_thread_num() * bytes);
  return MX_OK;
}
