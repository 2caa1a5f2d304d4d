/* mx_mma: cuts D into blocks of outputs, turns their operands into panels, and runs one kernel on each output. */
#include "mma_lanes.h"

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
  mma_tables(plan);
}

/* --- jobs --- */

typedef struct work {
  const mma_plan *plan;
  const mma_lanes_plan *lanes; /* NULL: one output at a time */
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

/* What a thread works in. */
typedef struct desk {
  mma_panel a, b;
  mma_lanes_work lanes;
  size_t strip; /* whose rows of A the panel holds */
} desk;

/* A block of D: outputs i0 .. i0+ni-1 by j0 .. j0+nj-1 of tile t. */
typedef struct block {
  size_t t, i0, j0, ni, nj;
} block;

static size_t place_of(const work *w, const block *k, size_t i, size_t j) { return (k->t * w->args->M + k->i0 + i) * w->args->N + k->j0 + j; }

static mma_acc c_at(const work *w, size_t at) {
  const mx_mma_model *m = w->plan->model;
  if (!w->args->c) return (mma_acc){0, 0};
  return (mma_acc){widen(m->c, m->d, mma_code(w->args->c, m->c, at)), 1};
}

static void run_one(const work *w, const desk *k, const block *o, size_t i, size_t j) {
  size_t at = place_of(w, o, i, j);
  store(w->d, w->plan->model->d, at, w->kernel(w->plan, &k->a, i, &k->b, j, c_at(w, at)).bits);
}

/* Columns j .. j+n-1 in lanes; rows and columns with an Inf or NaN one by one. */
static void run_lanes(const work *w, desk *k, const block *o, size_t j, size_t n) {
  uint32_t *acc = k->lanes.acc;
  for (size_t i = 0; w->args->c && i < o->ni; i++)
    for (size_t q = 0; q < MMA_LANES; q++) acc[i * MMA_LANES + q] = q < n ? (uint32_t)c_at(w, place_of(w, o, i, j + q)).bits : 0;
  mma_lanes_block(w->lanes, w->plan, &k->lanes, &k->a, o->ni, &k->b, j, n, w->args->c != NULL);
  for (size_t i = 0; i < o->ni; i++)
    for (size_t q = 0; q < n; q++)
      if (k->a.special[i] | k->b.special[j + q])
        run_one(w, k, o, i, j + q);
      else
        store(w->d, w->plan->model->d, place_of(w, o, i, j + q), acc[i * MMA_LANES + q]);
}

/* Block `job` of D. The panel of A is kept while only columns change. */
static void run_job(const work *w, size_t job, desk *k) {
  const mx_mma_args *g = w->args;
  const mx_mma_model *m = w->plan->model;
  size_t strip = job / w->cols;
  block o = {strip / w->rows, strip % w->rows * w->side, job % w->cols * w->side, 0, 0};
  o.ni = g->M - o.i0 < w->side ? g->M - o.i0 : w->side;
  o.nj = g->N - o.j0 < w->side ? g->N - o.j0 : w->side;
  if (k->strip != strip) fill(&k->a, w, m->a, g->a, g->scale_a, w->row_a, o.t * g->M + o.i0, o.ni);
  k->strip = strip;
  fill(&k->b, w, m->b, g->b, g->scale_b, w->row_b, o.t * g->N + o.j0, o.nj);
  for (size_t j = 0; w->lanes && j < o.nj; j += MMA_LANES) run_lanes(w, k, &o, j, o.nj - j < MMA_LANES ? o.nj - j : MMA_LANES);
  for (size_t i = 0; !w->lanes && i < o.ni; i++)
    for (size_t j = 0; j < o.nj; j++) run_one(w, k, &o, i, j);
}

static mx_status desk_alloc(desk *k, const work *w) {
  memset(k, 0, sizeof *k);
  k->strip = SIZE_MAX;
  mx_status status = mma_panel_alloc(&k->a, w->plan, w->side, w->args->K);
  if (!status) status = mma_panel_alloc(&k->b, w->plan, w->side, w->args->K);
  if (!status && w->lanes) status = mma_lanes_alloc(&k->lanes, w->lanes, w->plan, w->side, w->args->K);
  return status;
}

static void desk_free(desk *k) {
  mma_panel_free(&k->a);
  mma_panel_free(&k->b);
  mma_lanes_free(&k->lanes);
}

static mx_status run(const work *w, int threads) {
  size_t jobs = w->args->T * w->rows * w->cols;
  int failed = 0;
  (void)threads; /* without OpenMP */
#pragma omp parallel num_threads(threads)
  {
    desk k;
    int ok = desk_alloc(&k, w) == MX_OK;
    if (!ok) {
#pragma omp atomic write
      failed = 1;
    }
#pragma omp for schedule(dynamic)
    for (size_t job = 0; job < jobs; job++)
      if (ok) run_job(w, job, &k);
    desk_free(&k);
  }
  return failed ? MX_ERR_NOMEM : MX_OK;
}

/* Sizes that are multiplied later must not overflow: bytes of a tensor of x by y by z values, each at most 8 bytes. */
static int fits(size_t x, size_t y, size_t z) {
  size_t n;
  return !__builtin_mul_overflow(x, y, &n) && !__builtin_mul_overflow(n, z, &n) && n <= SIZE_MAX / 64;
}

static int thread_count(const mx_exec *exec) {
  int n = exec ? exec->n_threads : 0;
#ifdef _OPENMP
  if (n <= 0) n = omp_get_max_threads();
#endif
  return n > 0 ? n : 1;
}

static size_t blocks_of(const mx_mma_args *g, size_t side) { return g->T * ((g->M + side - 1) / side) * ((g->N + side - 1) / side); }

/* Rows and columns of a block: panels of at most about 2^20 numbers, and some work for every thread. */
static size_t side_of(const mx_mma_args *g, int lanes, int threads) {
  size_t side = lanes ? 128 : 32, room = g->K ? (UINT64_C(1) << 20) / g->K : side, needed = g->M > g->N ? g->M : g->N;
  while (side > MMA_LANES && (side > room || blocks_of(g, side) < 4 * (size_t)threads)) side /= 2;
  return side < needed ? side : needed;
}

static mx_status check_args(void *d, const mx_mma_model *model, const mx_mma_args *g, mx_error *err) {
  if (!d || !model || !g) return mx_fail(err, MX_ERR_ARG, "mma: NULL");
  mx_status status = mx_mma_model_check(model, err);
  if (status) return status;
  if (!g->a || !g->b) return mx_fail(err, MX_ERR_ARG, "mma: a or b is NULL");
  if (!model->scale != !g->scale_a || !model->scale != !g->scale_b)
    return mx_fail(err, MX_ERR_ARG, "mma: model '%s' %s", model->name, model->scale ? "needs scale_a and scale_b" : "has no scales");
  if (model->whole_k && g->K % (size_t)model->k)
    return mx_fail(err, MX_ERR_SHAPE, "mma: K=%zu is not a multiple of %d, the k of '%s'", g->K, model->k, model->name);
  if (!fits(g->T, g->M, g->N) || !fits(g->T, g->M, g->K) || !fits(g->T, g->N, g->K))
    return mx_fail(err, MX_ERR_SHAPE, "mma: %zu tiles of %zu x %zu x %zu are too large", g->T, g->M, g->N, g->K);
  return MX_OK;
}

mx_status mx_mma(void *d, const mx_mma_model *model, const mx_mma_args *args, const mx_exec *exec, mx_error *err) {
  static mma_kernel *const kernels[] = {
      [MX_ACC_OP_FUSED] = mma_fused, [MX_ACC_OP_PAIRWISE] = mma_pairwise, [MX_ACC_OP_FMA] = mma_fma, [MX_ACC_OP_INTEGER] = mma_integer};
  mx_status status = check_args(d, model, args, err);
  if (status) return status;
  const mx_mma_args g = *args;
  if (!g.T || !g.M || !g.N) return MX_OK;

  mma_plan plan;
  mma_lanes_plan lanes;
  make_plan(&plan, model, g.K);
  int in_lanes = g.K > 0 && mma_lanes_make(&lanes, &plan, exec);
  plan.with_bytes = in_lanes && lanes.kind == MMA_LANES_PRESUM;
  int threads = thread_count(exec);
  size_t side = side_of(&g, in_lanes, threads);
  work w = {&plan, in_lanes ? &lanes : NULL, &g, kernels[model->accum.op], d, side, (g.M + side - 1) / side, (g.N + side - 1) / side};
  w.row_a = mx_mma_bytes(model->a, g.K);
  w.row_b = mx_mma_bytes(model->b, g.K);
  if (model->scale) w.row_s = (g.K + (size_t)model->block - 1) / (size_t)model->block;
  status = run(&w, threads);
  return status ? mx_fail(err, status, "mma: no memory for %zu x %zu panels", side, g.K) : MX_OK;
}
