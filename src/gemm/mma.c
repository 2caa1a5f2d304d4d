/* mx_mma: cuts D into blocks of outputs, turns their operands into panels, and runs one kernel on each output. */
#include "mma_internal.h"

#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* Bits of D at element `at`; no type of D is narrower than 16 bits. */
static void store(void *d, const mx_format *type, size_t at, uint64_t bits) {
  size_t size = mx_mma_bytes(type, 1);
  uint8_t *to = (uint8_t *)d + at * size;
  for (size_t i = 0; i < size; i++) to[i] = (uint8_t)(bits >> 8 * i);
}

/* An element of C as bits of type D: the accumulator's type is D's, and takes C's exponent from there (Volta: f16 C, f32 D). */
static uint64_t widen(const mx_format *c, const mx_format *d, uint64_t bits) {
  if (c->kind == MX_KIND_INT || (c->bits == d->bits && c->exp_bits == d->exp_bits)) return bits;
  mma_num n = mma_split(c, bits);
  uint64_t sign = (uint64_t)(bits >> (c->bits - 1) & 1) << (d->bits - 1);
  if (n.cls & MMA_NAN) return d->nan_code;
  if (n.cls & MMA_INF) return d->inf_code | sign;
  if (n.cls & MMA_ZERO) return sign;
  uint64_t sig = (uint64_t)(n.sig < 0 ? -n.sig : n.sig) << (d->man_bits - c->man_bits);
  int exp = n.exp;
  while (!(sig >> d->man_bits) && exp > 1 - d->bias) {
    sig <<= 1;
    exp--;
  }
  uint64_t biased = sig >> d->man_bits ? (uint64_t)(exp + d->bias) : 0;
  return sign | biased << d->man_bits | (sig & ((UINT64_C(1) << d->man_bits) - 1));
}

static int frac_of(const mx_format *f, int via) { return via == MX_ACC_VIA_F16 ? 10 : f->man_bits; }

/* log2 of a bound of the magnitudes of a type. */
static int top_of(const mx_format *f) { return f->kind == MX_KIND_INT ? f->bits - f->man_bits : (1 << f->exp_bits) - f->bias; }

static void make_plan(mma_plan *plan, const mx_mma_model *m, size_t K) {
  memset(plan, 0, sizeof *plan);
  plan->model = m;
  plan->x = m->accum;
  int scale_frac = m->scale ? 2 * m->scale->man_bits : 0, scale_top = m->scale ? 2 * top_of(m->scale) : 0;
  plan->frac = frac_of(m->a, m->accum.via) + frac_of(m->b, m->accum.via) + (m->accum.P ? 0 : scale_frac);
  plan->scale_frac = m->accum.P ? scale_frac : 0;
  plan->zero_exp = m->accum.zero == MX_ACC_ZERO_E126 ? -126 : MMA_NO_EXP;
  plan->may_be_huge = m->accum.huge == MX_ACC_HUGE_INF && top_of(m->a) + top_of(m->b) + scale_top > 128;
  plan->man = m->d->man_bits;
  plan->bias = m->d->bias;
  plan->exp_max = (1 << m->d->exp_bits) - 2 - m->d->bias;
  plan->exp_min = 1 - m->d->bias;
  plan->keep = m->accum.out_bits ? m->accum.out_bits : m->d->man_bits;
  plan->k = m->k ? (size_t)m->k : K;
}

/* --- jobs --- */

typedef struct work {
  const mma_plan *plan;
  const mx_mma_args *args;
  mma_kernel *kernel;
  void *d;
  size_t side;                /* rows and columns of a block */
  size_t rows, cols;          /* blocks of a tile */
  size_t row_a, row_b, row_s; /* bytes of a row */
} work;

static void fill(mma_panel *p, const work *w, const mx_format *type, const void *codes, const void *scales, size_t row_bytes, size_t first,
                 size_t n) {
  for (size_t r = 0; r < n; r++)
    mma_panel_fill(p, r, w->plan, type, (const uint8_t *)codes + (first + r) * row_bytes,
                   scales ? (const uint8_t *)scales + (first + r) * w->row_s : NULL);
}

/* Block `job` of D: which tile, which rows, which columns. The panel of A is kept while only columns change. */
static void run_job(const work *w, size_t job, mma_panel *a, mma_panel *b, size_t *have_a) {
  const mx_mma_args *g = w->args;
  const mx_mma_model *m = w->plan->model;
  size_t strip = job / w->cols, t = strip / w->rows, i0 = strip % w->rows * w->side, j0 = job % w->cols * w->side;
  size_t ni = g->M - i0 < w->side ? g->M - i0 : w->side, nj = g->N - j0 < w->side ? g->N - j0 : w->side;
  if (*have_a != strip) fill(a, w, m->a, g->a, g->scale_a, w->row_a, t * g->M + i0, ni);
  *have_a = strip;
  fill(b, w, m->b, g->b, g->scale_b, w->row_b, t * g->N + j0, nj);
  for (size_t i = 0; i < ni; i++)
    for (size_t j = 0; j < nj; j++) {
      size_t at = (t * g->M + i0 + i) * g->N + j0 + j;
      mma_acc acc = {0, 0};
      if (g->c) acc = (mma_acc){widen(m->c, m->d, mma_code(g->c, m->c, at)), 1};
      store(w->d, m->d, at, w->kernel(w->plan, a, i, b, j, acc).bits);
    }
}

static mx_status run(const work *w, int threads) {
  size_t jobs = w->args->T * w->rows * w->cols;
  int failed = 0;
#ifdef _OPENMP
  if (threads <= 0) threads = omp_get_max_threads();
#endif
  (void)threads;
#pragma omp parallel num_threads(threads)
  {
    mma_panel a = {0}, b = {0};
    size_t have_a = SIZE_MAX;
    int ok = !mma_panel_alloc(&a, w->plan, w->side, w->args->K) && !mma_panel_alloc(&b, w->plan, w->side, w->args->K);
    if (!ok) {
#pragma omp atomic write
      failed = 1;
    }
#pragma omp for schedule(dynamic, 4)
    for (size_t job = 0; job < jobs; job++)
      if (ok) run_job(w, job, &a, &b, &have_a);
    mma_panel_free(&a);
    mma_panel_free(&b);
  }
  return failed ? MX_ERR_NOMEM : MX_OK;
}

/* Sizes that are multiplied later must not overflow: bytes of a tensor of x by y by z values, each at most 8 bytes. */
static int fits(size_t x, size_t y, size_t z) {
  size_t n;
  return !__builtin_mul_overflow(x, y, &n) && !__builtin_mul_overflow(n, z, &n) && n <= SIZE_MAX / 64;
}

mx_status mx_mma(void *d, const mx_mma_model *model, const mx_mma_args *args, int threads) {
  static mma_kernel *const kernels[] = {
      [MX_ACC_OP_FUSED] = mma_fused, [MX_ACC_OP_PAIRWISE] = mma_pairwise, [MX_ACC_OP_FMA] = mma_fma, [MX_ACC_OP_INTEGER] = mma_integer};
  if (!d || !model || !args) return MX_ERR_ARG;
  mx_status status = mx_mma_model_check(model, NULL);
  if (status) return status;
  const mx_mma_args g = *args;
  if (!g.a || !g.b || !model->scale != !g.scale_a || !model->scale != !g.scale_b) return MX_ERR_ARG;
  if (model->whole_k && g.K % (size_t)model->k) return MX_ERR_SHAPE;
  if (!fits(g.T, g.M, g.N) || !fits(g.T, g.M, g.K) || !fits(g.T, g.N, g.K)) return MX_ERR_SHAPE;
  if (!g.T || !g.M || !g.N) return MX_OK;

  mma_plan plan;
  make_plan(&plan, model, g.K);
  /* Panels of at most about 2^20 numbers, 32 rows where they fit. */
  size_t side = g.K ? (UINT64_C(1) << 20) / g.K : 32;
  side = side < 1 ? 1 : side > 32 ? 32 : side;
  work w = {&plan,
            &g,
            kernels[model->accum.op],
            d,
            side,
            (g.M + side - 1) / side,
            (g.N + side - 1) / side,
            mx_mma_bytes(model->a, g.K),
            mx_mma_bytes(model->b, g.K),
            0};
  if (model->scale) w.row_s = (g.K + (size_t)model->block - 1) / (size_t)model->block;
  return run(&w, threads);
}
