/* Walks over D by blocks of outputs, with their operands as panels over stretches of K, and runs a kernel for each output. */
#include <stdlib.h>
#include <string.h>

#include "lanes.h"
#include "mxgold/isa.h"

static int frac_of(const mx_format *f, int via) { return via == MX_ACC_VIA_F16 ? 10 : f->man_bits; }

int mxi_mma_top_of(const mx_format *f) { return f->kind == MX_KIND_INT ? f->bits - f->man_bits : (1 << f->exp_bits) - f->bias; }

void mxi_mma_plan_make(mma_plan *plan, const mx_mma_model *m, size_t K) {
  const mx_format *a = plan->a.type, *b = plan->b.type, *sa = plan->a.scale, *sb = plan->b.scale;
  const mx_accum *x = &m->accum;
  const int scale_frac = (sa ? sa->man_bits : 0) + (sb ? sb->man_bits : 0),
            scale_top = (sa ? mxi_mma_top_of(sa) : 0) + (sb ? mxi_mma_top_of(sb) : 0);
  plan->model = m;
  plan->x = *x;
  plan->frac = frac_of(a, x->via) + frac_of(b, x->via) + (x->P ? 0 : scale_frac);
  plan->scale_frac = x->P ? scale_frac : 0;
  plan->zero_exp = x->zero == MX_ACC_ZERO_E126 ? -126 : MMA_NO_EXP;
  plan->may_be_huge = x->huge == MX_ACC_HUGE_INF && mxi_mma_top_of(a) + mxi_mma_top_of(b) + scale_top > 128;
  plan->man = m->d->man_bits;
  plan->bias = m->d->bias;
  plan->exp_max = (1 << m->d->exp_bits) - 2 - m->d->bias;
  plan->exp_min = 1 - m->d->bias;
  plan->keep = mma_number_of(x->out_bits, m->d->man_bits);
  plan->floor = mma_number_of(x->floor, INT32_MIN);
  plan->c_drop = mma_number_of(x->c_drop, INT32_MAX);
  plan->k = m->k ? (size_t)m->k : K;
}

mma_kernel *mxi_mma_kernel_of(const mma_plan *plan) {
  static mma_kernel *const kernels[] = {[MX_ACC_OP_FUSED] = mxi_mma_fused,
                                        [MX_ACC_OP_PAIRWISE] = mxi_mma_pairwise,
                                        [MX_ACC_OP_FMA] = mxi_mma_fma,
                                        [MX_ACC_OP_INTEGER] = mxi_mma_integer};
  return kernels[plan->x.op];
}

enum { STRETCH = 1 << 16, ROOM = 1 << 20 }; /* most elements in a row, and in a panel */

size_t mxi_mma_stretch(const mma_plan *plan, size_t K) {
  size_t unit = plan->k ? plan->k : 1;
  if (plan->x.P && plan->block) /* scales are laid out by block, so stretches start at one */
    for (size_t step = unit; unit % plan->block; unit += step)
      if (unit > STRETCH) return K;
  if (K <= STRETCH || unit > STRETCH) return K;
  return STRETCH / unit * unit;
}

/* --- a block of D --- */

/* The memory in which a thread works. */
typedef struct desk {
  mma_panel a, b;
  mma_lanes_work lanes;
  uint64_t *acc; /* [side][side], kept between stretches */
  size_t strip;  /* the strip whose rows of A the panel holds, if it holds all of K */
} desk;

/* The outputs i0 .. i0+ni-1 by j0 .. j0+nj-1 of tile t, over elements k0 .. k0+n-1 of K. */
typedef struct block {
  size_t t, i0, j0, ni, nj, k0, n;
  int first, last;
} block;

static mma_acc take(const mma_work *w, const desk *k, const block *o, size_t i, size_t j) {
  if (!o->first) return (mma_acc){k->acc[i * w->side + j], 1};
  return w->has_c ? w->load(w, o->t, o->i0 + i, o->j0 + j) : (mma_acc){0, 0};
}

static void give(const mma_work *w, desk *k, const block *o, size_t i, size_t j, mma_acc acc) {
  if (o->last)
    w->store(w, o->t, o->i0 + i, o->j0 + j, acc);
  else
    k->acc[i * w->side + j] = acc.bits;
}

static void run_one(const mma_work *w, desk *k, const block *o, size_t i, size_t j) {
  give(w, k, o, i, j, w->kernel(w->plan, &k->a, i, &k->b, j, take(w, k, o, i, j)));
}

/* Computes columns j .. j+n-1 in lanes; rows and columns with an Inf or NaN are done one output at a time. */
static void run_lanes(const mma_work *w, desk *k, const block *o, size_t j, size_t n) {
  uint32_t *acc = k->lanes.acc;
  const int some = !o->first || w->has_c;
  for (size_t i = 0; some && i < o->ni; i++)
    for (size_t q = 0; q < MMA_LANES; q++) acc[i * MMA_LANES + q] = q < n ? (uint32_t)take(w, k, o, i, j + q).bits : 0;
  mxi_mma_lanes_block(w->lanes, w->plan, &k->lanes, &k->a, o->ni, &k->b, j, n, some);
  for (size_t i = 0; i < o->ni; i++)
    for (size_t q = 0; q < n; q++)
      if (k->a.special[i] | k->b.special[j + q])
        run_one(w, k, o, i, j + q);
      else
        give(w, k, o, i, j + q, (mma_acc){acc[i * MMA_LANES + q], 1});
}

static void run_stretch(const mma_work *w, desk *k, const block *o, int has_a) {
  const mma_plan *plan = w->plan;
  mxi_mma_panel_shorten(&k->a, plan, o->n);
  mxi_mma_panel_shorten(&k->b, plan, o->n);
  for (size_t r = 0; r < o->ni && !has_a; r++) mxi_mma_panel_fill(&k->a, r, plan, &plan->a, o->t * w->M + o->i0 + r, o->k0);
  for (size_t r = 0; r < o->nj; r++) mxi_mma_panel_fill(&k->b, r, plan, &plan->b, o->t * w->N + o->j0 + r, o->k0);
  for (size_t j = 0; w->lanes && j < o->nj; j += MMA_LANES) run_lanes(w, k, o, j, o->nj - j < MMA_LANES ? o->nj - j : MMA_LANES);
  for (size_t i = 0; !w->lanes && i < o->ni; i++)
    for (size_t j = 0; j < o->nj; j++) run_one(w, k, o, i, j);
}

/* Computes block `job` of D. The panel of A is kept while only columns change. */
static void run_job(const mma_work *w, size_t job, desk *k) {
  const size_t strip = job / w->cols;
  block o = {.t = strip / w->rows, .i0 = strip % w->rows * w->side, .j0 = job % w->cols * w->side};
  o.ni = w->M - o.i0 < w->side ? w->M - o.i0 : w->side;
  o.nj = w->N - o.j0 < w->side ? w->N - o.j0 : w->side;
  const int whole = w->stretch >= w->K;
  do {
    o.n = w->K - o.k0 < w->stretch ? w->K - o.k0 : w->stretch;
    o.first = o.k0 == 0;
    o.last = o.k0 + o.n == w->K;
    run_stretch(w, k, &o, whole && k->strip == strip);
    o.k0 += o.n;
  } while (!o.last);
  k->strip = strip;
}

static void desk_free(desk *k) {
  mxi_mma_panel_free(&k->a);
  mxi_mma_panel_free(&k->b);
  mxi_mma_lanes_free(&k->lanes);
  free(k->acc);
}

static mx_status desk_alloc(desk *k, const mma_work *w) {
  memset(k, 0, sizeof *k);
  k->strip = SIZE_MAX;
  mx_status status = mxi_mma_panel_alloc(&k->a, w->plan, w->side, w->stretch);
  if (!status) status = mxi_mma_panel_alloc(&k->b, w->plan, w->side, w->stretch);
  if (!status && w->lanes) status = mxi_mma_lanes_alloc(&k->lanes, w->lanes, w->plan, w->side, w->stretch);
  if (!status && w->stretch < w->K && !(k->acc = malloc(w->side * w->side * sizeof *k->acc))) status = MX_ERR_NOMEM;
  return status;
}

/* --- all of D --- */

static size_t blocks_of(const mma_work *w, size_t side) { return w->T * ((w->M + side - 1) / side) * ((w->N + side - 1) / side); }

/* How many rows and columns a block has: panels have at most ROOM numbers (fewer if many threads have their own), and every thread gets some
 * work. */
static size_t side_of(const mma_work *w, int threads) {
  const size_t numbers = threads > 2 ? 2 * (size_t)ROOM / (size_t)threads : (size_t)ROOM;
  size_t side = w->lanes ? 128 : 32, least = w->lanes ? MMA_LANES : 1, room = w->stretch ? numbers / w->stretch : side,
         needed = w->M > w->N ? w->M : w->N;
  while (side > least && side > room) side /= 2;
  while (side > MMA_LANES && blocks_of(w, side) < 4 * (size_t)threads) side /= 2;
  return side < needed ? side : needed;
}

mx_status mxi_mma_run(mma_work *w, mma_plan *plan, const mx_exec *exec) {
  const int threads = mx_thread_count(exec ? exec->n_threads : 0);
  mma_lanes_plan lanes;
  int failed = 0;
  w->lanes = w->K > 0 && mxi_mma_lanes_make(&lanes, plan, exec) ? &lanes : NULL;
  plan->with_bytes = w->lanes && lanes.kind == MMA_LANES_PRESUM;
  plan->vectors = mxi_mma_vectors(exec ? exec->isa_mask : 0);
  w->kernel = mxi_mma_kernel_of(plan);
  w->stretch = mxi_mma_stretch(plan, w->K);
  w->side = side_of(w, threads);
  w->rows = (w->M + w->side - 1) / w->side;
  w->cols = (w->N + w->side - 1) / w->side;
  const size_t jobs = w->T * w->rows * w->cols;
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
