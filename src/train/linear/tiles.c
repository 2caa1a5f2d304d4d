/* Applies gradient rules with derivatives of scales to one block after another: each is copied out to binary64, and its gradient is written back. */
#include <math.h>
#include <string.h>

#include "mxgold/isa.h"
#include "train/linear/rules.h"

enum { N_DOUBLES = 8, N_FLOATS = 3 };

/* One worker's memory, for the elements of a block. */
typedef struct bench {
  double *v, *q, *slope, *dz, *up, *out, *dg, *trust;
  float *x, *magnitude, *weight;
} bench;

/* All blocks of an operand. */
typedef struct pass {
  const mxi_ruled *m;
  mxi_estimator *scales; /* q' */
  mxi_normaliser how;
  double g;         /* the tensor scale, its derivative; of_tensor of MX_JACOBIAN_FULL */
  const double *dg; /* [rows][cols]; NULL */
  double of_tensor;
  double value[256]; /* of codes */
  int encode;
  double rule_max;
} pass;

/* Where a block lies. */
typedef struct place {
  size_t row, col, rows, cols;
} place;
static place place_of(const mxi_blocks *b, size_t at) {
  const size_t row = at / b->across * b->rows, col = at % b->across * b->cols;
  return (place){row, col, mxi_least(b->rows, b->tensor->rows - row), mxi_least(b->cols, b->tensor->cols - col)};
}

static bench bench_of(double *doubles, float *floats, size_t n) {
  return (bench){doubles,         doubles + n,     doubles + 2 * n, doubles + 3 * n, doubles + 4 * n, doubles + 5 * n,
                 doubles + 6 * n, doubles + 7 * n, floats,          floats + n,      floats + 2 * n};
}

/* Block `at` in binary64. What is not finite is left out of all sums, as 0. */
static mxi_block take(const pass *p, const bench *w, size_t at) {
  const mxi_ruled *m = p->m;
  const mxi_blocks *b = &m->blocks;
  const place at_ = place_of(b, at);
  double stored;
  const double multiplier = mxi_block_multiplier(b, at / b->across, at % b->across, &stored);
  size_t n = 0;
  for (size_t r = at_.row; r < at_.row + at_.rows; r++)
    for (size_t c = at_.col; c < at_.col + at_.cols; c++, n++) {
      w->x[n] = m->x.at[r * m->x.ld + c];
      w->up[n] = (double)m->g[r * m->ld + c];
      w->v[n] = mxi_gradient_scaled(b, multiplier, w->x[n]);
      w->q[n] = p->value[mx_code_at(b->tensor, b->spec, r, c) & 255];
      w->trust[n] = m->trusted > 0 && !(fabs(w->v[n]) < m->trusted) ? 0 : 1;
      w->dg[n] = p->dg ? p->dg[r * b->tensor->cols + c] : 0;
    }
  mxi_slopes(w->slope, m->elements, w->v, n);
  for (size_t i = 0; i < n; i++)
    if (!(fabs(w->v[i]) < INFINITY) || !(fabs(w->q[i]) < INFINITY)) w->v[i] = w->q[i] = 0;
  double z = 0, lever = 0;
  if (m->r->grad_config == MX_GRAD_STE)
    memset(w->dz, 0, n * sizeof *w->dz);
  else {
    z = mxi_normalise(w->dz, &p->how, w->x, n, w->magnitude, w->weight);
    const double before = mxi_scale_before(p->encode, p->rule_max, multiplier, z, stored);
    lever = mxi_lever(p->encode, p->rule_max, b->prescale, multiplier, z, mxi_slope(p->scales, before));
  }
  return (mxi_block){n, w->v, w->q, w->slope, w->dz, multiplier / b->prescale, lever};
}

static void give(const pass *p, const bench *w, size_t at) {
  const mxi_ruled *m = p->m;
  const place to = place_of(&m->blocks, at);
  size_t n = 0;
  for (size_t r = to.row; r < to.row + to.rows; r++)
    for (size_t c = to.col; c < to.col + to.cols; c++, n++) m->g[r * m->ld + c] = mxi_gradient_store(w->out[n] * w->trust[n]);
}

/* The block's part of the product with dX/dg. */
static double part_of_tensor(const pass *p, const bench *w, size_t at) {
  const mxi_block b = take(p, w, at);
  return mxi_jacobian_of_tensor(&b, mxi_jacobian_sum(&b, w->up), p->g);
}

static void transform(const pass *p, const bench *w, size_t at) {
  const mxi_block b = take(p, w, at);
  const double *dg = p->dg ? w->dg : NULL;
  if (p->m->r->grad_jacobian == MX_JACOBIAN_FULL)
    mxi_jacobian_full(w->out, &b, w->up, mxi_jacobian_sum(&b, w->up), dg, p->of_tensor);
  else {
    mxi_jacobian_diag(w->out, &b, (mxi_tensor_slope){p->g, dg});
    for (size_t i = 0; i < b.n; i++) w->out[i] *= w->up[i];
  }
  give(p, w, at);
}

/* The derivative of g at every element, [rows][cols]; room for three matrices. */
static void slope_of_tensor(pass *p, double *dg, float *room) {
  const mxi_matrix from = p->m->x;
  const size_t n = from.rows * from.cols;
  for (size_t r = 0; r < from.rows; r++) memcpy(room + r * from.cols, from.at + r * from.ld, from.cols * sizeof *room);
  mxi_normaliser how = p->how;
  how.derivative = p->m->r->grad_tensor == MX_GRAD_TENSOR_SOFTMAX ? MX_GRAD_SOFTMAX : MX_GRAD_ABSMAX;
  how.lse = 0;
  how.unit = 1;
  mxi_normalise(dg, &how, room, n, room + n, room + 2 * n);
  p->dg = dg;
}

/* What all blocks have in common. */
static void begin(pass *p) {
  const mxi_ruled *m = p->m;
  const mx_spec *s = m->blocks.spec;
  const mx_format *elem = mx_elem_format(s->elem);
  for (uint64_t code = 0; code < 256; code++) p->value[code] = mx_decode(elem, code);
  mxi_estimator_of_scales(p->scales, m->r, s->scale);
  p->encode = s->scale_form == MX_SCALE_FORM_ENCODE;
  p->rule_max = mxi_rule_max(s);
  p->g = mxi_tensor_unit(s, m->x.at, m->x.rows, m->x.cols, m->x.ld);
  p->how = mxi_normaliser_of(m->r, p->g);
}

mx_status mxi_gradient_tiles(const mxi_ruled *m, mxi_arena *work) {
  const mxi_blocks *b = &m->blocks;
  const size_t n_tiles = b->down * b->across, n = b->rows * b->cols, all = m->x.rows * m->x.cols;
  const size_t n_workers = mxi_least(MXI_MOST_WORKERS, n_tiles);
  const int of_tensor = m->r->grad_tensor != MX_GRAD_TENSOR_IGNORE;
  pass p = {.m = m, .scales = mxi_arena_take(work, 1, sizeof *p.scales)};
  double *doubles = mxi_arena_take(work, n_workers * n, N_DOUBLES * sizeof *doubles);
  float *floats = mxi_arena_take(work, n_workers * n, N_FLOATS * sizeof *floats);
  double *dg = of_tensor ? mxi_arena_take(work, all, sizeof *dg) : NULL,
         *parts = of_tensor ? mxi_arena_take(work, n_tiles, sizeof *parts) : NULL;
  float *room = of_tensor ? mxi_arena_take(work, all, 3 * sizeof *room) : NULL;
  if (!work->base || !n_tiles) return MX_OK;
  begin(&p);
  if (of_tensor) slope_of_tensor(&p, dg, room);
  if (of_tensor && m->r->grad_jacobian == MX_JACOBIAN_FULL) {
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(m->exec->n_threads)) if (n_workers > 1)
    for (size_t i = 0; i < n_workers; i++) {
      const bench w = bench_of(doubles + i * N_DOUBLES * n, floats + i * N_FLOATS * n, n);
      for (size_t t = i; t < n_tiles; t += n_workers) parts[t] = part_of_tensor(&p, &w, t);
    }
    for (size_t t = 0; t < n_tiles; t++) p.of_tensor += parts[t];
  }
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(m->exec->n_threads)) if (n_workers > 1)
  for (size_t i = 0; i < n_workers; i++) {
    const bench w = bench_of(doubles + i * N_DOUBLES * n, floats + i * N_FLOATS * n, n);
    for (size_t t = i; t < n_tiles; t += n_workers) transform(&p, &w, t);
  }
  return MX_OK;
}
