/* The float32 product: checks, batches, threads, and blocks of D and of K. B is packed a block of K at a time, by all threads for all of them; a
 * task packs its own rows of A and goes through all tiles of its part of D. A chain goes on from one block of K to the next through D itself. */
#include "gemm/dense/tile.h"

#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "kernels/threads.h"

enum {
  K_BLOCK = 384,    /* terms of a chain between two stores of D */
  N_BLOCK = 1536,   /* columns of packed B: a multiple of every kernel's b_width */
  N_SLOTS = 48,     /* b_width of any kernel at most */
  THREAD_LOG2 = 17, /* products that pay for one more thread, as a power of two */
  LINE = 64
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
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

/* The caller's number or all processors, but no more than the work pays for. In doubles, which cannot overflow. */
static int threads_wanted(const mx_dense *p, const mx_exec *exec) {
  const double worth = (double)p->M * (double)p->N * (double)p->K * (double)batch_of(p) / (1 << THREAD_LOG2);
  const int n = mxi_threads_wanted(exec ? exec->n_threads : 0);
  return worth < 1 ? 1 : worth < n ? (int)worth : n;
}

/* A batch of at least as many products as threads: each has products of its own; else all work on one product after the other. */
static int apart(const mx_dense *p, int n_threads) { return n_threads > 1 && batch_of(p) >= (size_t)n_threads; }

/* Floats of a packed block, whatever the kernel: widths are at most 4/3 of the rows, and whole lines. */
static size_t a_floats(const mx_dense *p) {
  return p->M >= MXG_DENSE_A_SLOTS ? (size_t)MXG_DENSE_A_SLOTS * least(p->K, K_BLOCK)
                                   : least(MXG_DENSE_A_SLOTS, p->M + p->M / 3 + 16) * least(p->K, K_BLOCK);
}
static size_t b_floats(const mx_dense *p) { return (least(p->N, N_BLOCK) + N_SLOTS) * least(p->K, K_BLOCK); }
static size_t in_lines(size_t floats) { return (floats * sizeof(float) + LINE - 1) / LINE * LINE; }

size_t mx_dense_workspace(const mx_dense *p, const mx_exec *exec) {
  if (!p || !p->M || !p->N || !p->K) return 0;
  const size_t n = (size_t)threads_wanted(p, exec); /* the call may be granted fewer, and then work apart where n could not */
  return LINE + n * in_lines(a_floats(p)) + least(n, batch_of(p)) * in_lines(b_floats(p));
}

/* Threads that work on one product, and the tasks that they take. Each phase ends when every thread has asked once in vain. */
typedef struct dense_team {
  int n, id;
  size_t *next; /* shared: the next task of all phases together */
  size_t base;  /* the first of this phase */
  float *a, *b; /* packed: a thread's own, the team's */
} dense_team;

static int take(dense_team *t, size_t *task, size_t n_tasks) {
  *task = (t->n == 1 ? (*t->next)++ : __atomic_fetch_add(t->next, 1, __ATOMIC_RELAXED)) - t->base;
  return *task < n_tasks;
}

static void phase_over(dense_team *t, size_t n_tasks) {
  t->base += n_tasks + (size_t)t->n;
  if (t->n > 1) {
#pragma omp barrier
  }
}

/* --- one product --- */

/* A block of D and of K: columns [n0, n0 + cols), terms [k0, k0 + terms). */
typedef struct block {
  const mx_dense *p;
  const mxg_dense_kernels *kernels;
  const float *a, *b;
  float *d;
  size_t tiles; /* of all rows */
  size_t n0, cols, k0, terms;
} block;

static int triangular(const mx_dense *p) { return p->part == MX_DENSE_A_LOWER || p->part == MX_DENSE_A_UPPER; }

/* Tiles of nearly the same height. */
static size_t row_of(const block *x, size_t tile) { return tile * (x->p->M / x->tiles) + least(tile, x->p->M % x->tiles); }

/* Terms [k0, k1) of rows [r0, r1) of a tile that begins at row m0. */
static void part_of_tile(const block *x, mxg_dense_tile t, size_t r0, size_t r1, size_t k0, size_t k1) {
  if (k0 >= k1) return;
  t.rows = r1 - r0;
  t.K = k1 - k0;
  t.a += (k0 - x->k0) * x->kernels->a_width + r0;
  t.b += (k0 - x->k0) * x->kernels->b_width;
  t.d += r0 * t.ldd;
  x->kernels->tile(&t);
}

/* The triangle that a tile of A has of its own is done row by row, the rest at once; D holds the start. */
static void triangle_tile(const block *x, mxg_dense_tile t, size_t m0) {
  const size_t k0 = x->k0, k1 = k0 + x->terms, rows = t.rows, m1 = m0 + rows;
  t.load = 1;
  if (x->p->part == MX_DENSE_A_LOWER) {
    part_of_tile(x, t, 0, rows, k0, least(k1, m0 + 1));
    for (size_t r = 1; r < rows; r++) part_of_tile(x, t, r, r + 1, k0 > m0 + 1 ? k0 : m0 + 1, least(k1, m0 + r + 1));
  } else {
    for (size_t r = 0; r < rows; r++) part_of_tile(x, t, r, r + 1, k0 > m0 + r ? k0 : m0 + r, least(k1, m1));
    part_of_tile(x, t, 0, rows, k0 > m1 ? k0 : m1, k1);
  }
}

/* Of a tile that the diagonal crosses the outputs n <= m alone are written. */
static void lower_tile(const block *x, mxg_dense_tile t, size_t m0, size_t n0) {
  float d[1024]; /* no tile is larger */
  float *to = t.d;
  const size_t ldd = t.ldd;
  if (n0 >= m0 + t.rows) return;
  if (n0 + t.cols <= m0 + 1) {
    x->kernels->tile(&t);
    return;
  }
  for (size_t r = 0; r < t.rows && t.load; r++)
    for (size_t c = 0; c < t.cols; c++) d[r * t.cols + c] = n0 + c <= m0 + r ? to[r * ldd + c] : 0;
  t.d = d;
  t.ldd = t.cols;
  x->kernels->tile(&t);
  for (size_t r = 0; r < t.rows; r++)
    for (size_t c = 0; c < t.cols && n0 + c <= m0 + r; c++) to[r * ldd + c] = d[r * t.cols + c];
}

static void zero(const block *x, size_t m0, size_t m1, size_t n0, size_t n1) {
  for (size_t m = m0; m < m1; m++) memset(x->d + m * x->p->ldd + n0, 0, (n1 - n0) * sizeof *x->d);
}

/* What no tile did: the bias of triangular products, and the whole of chains without a term. */
static void finish(const block *x, size_t m0, size_t m1, size_t n0, size_t n1) {
  static const uint32_t nan_bits = 0x7FC00000;
  for (size_t m = m0; m < m1; m++)
    for (size_t n = n0; n < n1; n++) {
      float *d = x->d + m * x->p->ldd + n;
      if (x->p->part == MX_DENSE_OUT_LOWER && n > m) break;
      if (x->p->bias) *d += x->p->bias[n];
      if (*d != *d) memcpy(d, &nan_bits, sizeof nan_bits);
    }
}

/* Rows of tiles [tile0, tile1) and columns of panels [panel0, panel1) of the block. */
static void task_of(const block *x, float *a, const float *b, size_t tile0, size_t tile1, size_t panel0, size_t panel1) {
  const mx_dense *p = x->p;
  const mxg_dense_kernels *k = x->kernels;
  const size_t m_begin = row_of(x, tile0), m_end = row_of(x, tile1), n_begin = x->n0 + panel0 * k->cols;
  const size_t n_end = least(x->n0 + panel1 * k->cols, x->n0 + x->cols);
  const int first = x->k0 == 0, last = x->k0 + x->terms == p->K;
  if (p->part == MX_DENSE_OUT_LOWER && n_begin >= m_end) return;
  if (triangular(p) && first && !p->accumulate) zero(x, m_begin, m_end, n_begin, n_end);
  for (size_t i = tile0; i < tile1; i++)
    k->pack(a + (i - tile0) * k->a_width * x->terms, k->a_width, x->a + row_of(x, i) * p->a_row + x->k0 * p->a_col, p->a_row, p->a_col,
            row_of(x, i + 1) - row_of(x, i), p->M - row_of(x, i), x->terms);
  for (size_t j = panel0; j < panel1; j++)
    for (size_t i = tile0; i < tile1; i++) {
      const size_t m0 = row_of(x, i), n0 = x->n0 + j * k->cols;
      const mxg_dense_tile t = {.rows = row_of(x, i + 1) - m0,
                                .cols = least(k->cols, x->n0 + x->cols - n0),
                                .K = x->terms,
                                .a = a + (i - tile0) * k->a_width * x->terms,
                                .b = b + j * k->b_width * x->terms,
                                .d = x->d + m0 * p->ldd + n0,
                                .ldd = p->ldd,
                                .load = p->accumulate || !first,
                                .bias = p->bias && last && !triangular(p) ? p->bias + n0 : NULL};
      if (triangular(p))
        triangle_tile(x, t, m0);
      else if (p->part == MX_DENSE_OUT_LOWER)
        lower_tile(x, t, m0, n0);
      else
        k->tile(&t);
    }
  if (triangular(p) && last) finish(x, m_begin, m_end, n_begin, n_end);
}

/* A block: its part of B packed, then its tiles. Rows are divided first, since every task packs its own; columns where rows do not suffice. */
static void block_of(const block *x, dense_team *team) {
  const mxg_dense_kernels *k = x->kernels;
  const size_t panels = (x->cols + k->cols - 1) / k->cols, wanted = team->n > 1 ? 4 * (size_t)team->n : 1;
  size_t task;
  while (take(team, &task, panels)) {
    const size_t n0 = x->n0 + task * k->cols;
    k->pack(team->b + task * k->b_width * x->terms, k->b_width, x->b + n0 * x->p->b_row + x->k0 * x->p->b_col, x->p->b_row, x->p->b_col,
            least(k->cols, x->n0 + x->cols - n0), x->p->N - n0, x->terms);
  }
  phase_over(team, panels);
  size_t rows = least(x->tiles / wanted, MXG_DENSE_A_SLOTS / k->a_width);
  if (rows < 1) rows = 1;
  const size_t n_rows = (x->tiles + rows - 1) / rows;
  size_t groups = (wanted + n_rows - 1) / n_rows;
  if (groups > panels) groups = panels;
  while (take(team, &task, n_rows * groups)) {
    const size_t i = task / groups, j = task % groups;
    task_of(x, team->a, team->b, i * rows, least((i + 1) * rows, x->tiles), j * panels / groups, (j + 1) * panels / groups);
  }
  phase_over(team, n_rows * groups);
}

static void product(const mx_dense *p, const mxg_dense_kernels *kernels, size_t index, dense_team *team) {
  const size_t per_row = p->batch[1] ? p->batch[1] : 1, i = index / per_row, j = index % per_row;
  block x = {p,
             kernels,
             p->a + i * p->a_batch[0] + j * p->a_batch[1],
             p->b + i * p->b_batch[0] + j * p->b_batch[1],
             p->d + i * p->d_batch[0] + j * p->d_batch[1],
             (p->M + kernels->rows - 1) / kernels->rows,
             0,
             0,
             0,
             0};
  const size_t wide = N_BLOCK / kernels->cols * kernels->cols, k_blocks = (p->K + K_BLOCK - 1) / K_BLOCK; /* of nearly the same length */
  const size_t k_block = (p->K + k_blocks - 1) / k_blocks;
  for (x.n0 = 0; x.n0 < p->N; x.n0 += x.cols) {
    x.cols = least(wide, p->N - x.n0);
    for (x.k0 = 0; x.k0 < p->K; x.k0 += x.terms) {
      x.terms = least(k_block, p->K - x.k0);
      block_of(&x, team);
    }
  }
}

/* K = 0: nothing but starts and biases. */
static void no_terms(const mx_dense *p) {
  const size_t per_row = p->batch[1] ? p->batch[1] : 1;
  for (size_t index = 0; index < batch_of(p); index++) {
    const block x = {.p = p, .d = p->d + index / per_row * p->d_batch[0] + index % per_row * p->d_batch[1]};
    for (size_t m = 0; m < p->M; m++) {
      const size_t end = p->part == MX_DENSE_OUT_LOWER ? least(m + 1, p->N) : p->N;
      if (!p->accumulate) zero(&x, m, m + 1, 0, end);
      finish(&x, m, m + 1, 0, end);
    }
  }
}

/* --- the call --- */

/* Does base + (n - 1) * stride stay within half of the address space, in floats? */
static int grows(size_t *base, size_t n, size_t stride) {
  size_t more;
  if (n < 2) return 1;
  return !__builtin_mul_overflow(n - 1, stride, &more) && !__builtin_add_overflow(*base, more, base) && *base <= SIZE_MAX / 2 / sizeof(float);
}

static mx_status check(const mx_dense *p, const void *workspace, const mx_exec *exec, mx_error *err) {
  if (!p) return mx_fail(err, MX_ERR_ARG, "dense: no product");
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

mx_status mx_dense_gemm(const mx_dense *p, void *workspace, const mx_exec *exec, mx_error *err) {
  const mx_status status = check(p, workspace, exec, err);
  if (status || !p->M || !p->N) return status;
  if (!p->K) {
    no_terms(p);
    return MX_OK;
  }
  const mxg_dense_kernels *kernels = kernels_for(exec);
  const size_t n_products = batch_of(p);
  const int most = mxi_threads_granted(threads_wanted(p, exec)), each_alone = apart(p, most);
  const size_t a_bytes = in_lines(a_floats(p)), b_bytes = in_lines(b_floats(p));
  uint8_t *memory = (uint8_t *)(((uintptr_t)workspace + LINE - 1) / LINE * LINE);
  size_t next = 0;
  if (most == 1) { /* without OpenMP, which a caller's own threads may be in the middle of */
    dense_team alone = {.n = 1, .next = &next, .a = (float *)memory, .b = (float *)(memory + a_bytes)};
    for (size_t index = 0; index < n_products; index++) product(p, kernels, index, &alone);
    return MX_OK;
  }
#pragma omp parallel num_threads(most)
  {
    const int id = omp_get_thread_num(), n = omp_get_num_threads();
    float *a = (float *)(memory + (size_t)id * a_bytes),
          *b = (float *)(memory + (size_t)most * a_bytes + (each_alone ? (size_t)id * b_bytes : 0));
    if (each_alone) {
      size_t index, own = 0;
      while ((index = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < n_products) {
        dense_team alone = {.n = 1, .next = &own, .base = own, .a = a, .b = b};
        product(p, kernels, index, &alone);
      }
    } else {
      dense_team all = {.n = n, .id = id, .next = &next, .a = a, .b = b};
      for (size_t index = 0; index < n_products; index++) product(p, kernels, index, &all);
    }
  }
  return MX_OK;
}
