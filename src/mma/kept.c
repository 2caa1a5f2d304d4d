/* Keeps panels of whole operands, one pair for each way to decompose numbers: through binary16 or not, by the exponent of zeros, with scales
 * separate or not. */
#include "kept.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { WAYS = 8, MOST = 256 << 20 /* most bytes in a pair */ };

typedef struct pair {
  mma_panel a, b;
  int made, failed;
} pair;

struct mma_kept {
  mx_mma_model types;
  mx_mma_args args;
  pair pairs[WAYS];
};

mma_kept *mxi_mma_kept_new(const mx_mma_model *types, const mx_mma_args *args) {
  const mx_mma_args *g = args;
  const size_t each = sizeof(int32_t) * 2 + 1;
  if (g->K && g->T * (g->M + g->N) > MOST / each / g->K) return NULL;
  mma_kept *k = calloc(1, sizeof *k);
  if (!k) return NULL;
  k->types = *types;
  k->args = *args;
  return k;
}

void mxi_mma_kept_free(mma_kept *k) {
  if (!k) return;
  for (size_t i = 0; i < WAYS; i++) {
    mxi_mma_panel_free(&k->pairs[i].a);
    mxi_mma_panel_free(&k->pairs[i].b);
  }
  free(k);
}

/* A plan without the tables, which only filling needs. */
static void plan_of(mma_plan *plan, const mx_mma_model *m, const mx_mma_args *g) {
  mxi_mma_side_of(&plan->a, m, m->a, g->a, g->scale_a, g->K);
  mxi_mma_side_of(&plan->b, m, m->b, g->b, g->scale_b, g->K);
  plan->block = m->scale ? (size_t)m->block : 0;
  plan->with_bytes = 0;
  plan->vectors = mxi_mma_vectors(0);
  mxi_mma_plan_make(plan, m, g->K);
}

static size_t way_of(const mx_accum *x, const mx_mma_model *m) {
  return (size_t)((x->via == MX_ACC_VIA_F16) | (x->zero == MX_ACC_ZERO_E126) << 1 | (x->P && m->scale) << 2);
}

/* Most probes are zero except for a few elements, so sums can skip what takes no part. */
static int mark_live(mma_panel *p, size_t rows) {
  p->live_shift = 0;
  while ((p->K - 1) >> p->live_shift > 63) p->live_shift++;
  if (!(p->live = calloc(rows + 1, sizeof *p->live))) return 0;
  for (size_t r = 0, at = 0; r < rows; r++)
    for (size_t k = 0; k < p->K; k++, at++)
      if (p->sig[at] || p->exp[at] > MMA_NO_EXP / 4 * 3) p->live[r] |= UINT64_C(1) << (k >> p->live_shift);
  return 1;
}

static void make(pair *p, const mma_kept *k, const mma_plan *of) {
  const mx_mma_args *g = &k->args;
  mma_plan *plan = malloc(sizeof *plan);
  p->made = 1;
  p->failed = !plan;
  if (!plan) return;
  memcpy(plan, of, sizeof *plan);
  plan->x.order = MX_ACC_ORDER_SEQ;
  mxi_mma_tables(&plan->a, plan);
  mxi_mma_tables(&plan->b, plan);
  p->failed = mxi_mma_panel_alloc(&p->a, plan, g->T * g->M, g->K) || mxi_mma_panel_alloc(&p->b, plan, g->T * g->N, g->K);
  for (size_t r = 0; r < g->T * g->M && !p->failed; r++) mxi_mma_panel_fill(&p->a, r, plan, &plan->a, r, 0);
  for (size_t r = 0; r < g->T * g->N && !p->failed; r++) mxi_mma_panel_fill(&p->b, r, plan, &plan->b, r, 0);
  if (!p->failed && g->K) p->failed = !mark_live(&p->a, g->T * g->M) || !mark_live(&p->b, g->T * g->N);
  free(plan);
}

static const pair *pair_of(mma_kept *k, const mma_plan *plan) {
  pair *p = &k->pairs[way_of(&plan->x, &k->types)];
#pragma omp critical(mxi_mma_kept)
  if (!p->made) make(p, k, plan);
  return p->failed ? NULL : p;
}

/* --- sums in an order other than that of k: rows are put in order, one at a time --- */

typedef struct ordered {
  mma_panel one;
  size_t row; /* the row that it holds */
} ordered;

static void put_in_order(ordered *o, const mma_panel *from, size_t row, const size_t *place) {
  if (o->row == row) return;
  o->row = row;
  o->one.special[0] = from->special[row];
  for (size_t q = 0, at = row * from->K; q < from->K; q++, at++) {
    o->one.sig[place[q]] = from->sig[at];
    o->one.exp[place[q]] = from->exp[at];
    o->one.cls[place[q]] = from->cls[at];
  }
}

typedef struct desk {
  ordered a, b;
  size_t *place;
} desk;

static int desk_alloc(desk *s, const mma_plan *plan, size_t K) {
  memset(s, 0, sizeof *s);
  s->a.row = s->b.row = SIZE_MAX;
  s->place = malloc((K + 1) * sizeof *s->place);
  if (!s->place || mxi_mma_panel_alloc(&s->a.one, plan, 1, K) || mxi_mma_panel_alloc(&s->b.one, plan, 1, K)) return 0;
  for (size_t q = 0; q < K; q++) s->place[q] = mxi_mma_panel_place(plan, q, K);
  return 1;
}

static void desk_free(desk *s) {
  mxi_mma_panel_free(&s->a.one);
  mxi_mma_panel_free(&s->b.one);
  free(s->place);
}

mx_status mxi_mma_kept_run(void *d, mma_kept *k, const mx_mma_model *model, size_t first, size_t n) {
  const mx_mma_args *g = &k->args;
  const mx_mma_model *m = model;
  mma_plan plan;
  desk s = {0};
  if (m->accum.op != MX_ACC_OP_FUSED) return MX_ERR_UNSUPPORTED;
  mx_status status = mx_mma_model_check(m, NULL);
  if (status) return status;
  plan_of(&plan, m, g);
  const pair *p = pair_of(k, &plan);
  const int in_order = m->accum.order == MX_ACC_ORDER_SEQ;
  if (!p || (!in_order && !desk_alloc(&s, &plan, g->K))) {
    desk_free(&s);
    return MX_ERR_NOMEM;
  }
  size_t at = first * g->M * g->N, to = 0;
  for (size_t t = first; t < first + n; t++)
    for (size_t i = t * g->M; i < (t + 1) * g->M; i++)
      for (size_t j = t * g->N; j < (t + 1) * g->N; j++, at++, to++) {
        const mma_acc c = g->c ? (mma_acc){mxi_mma_widen(m->c, m->d, mxi_mma_code(g->c, m->c, at)), 1} : (mma_acc){0, 0};
        mma_acc acc;
        if (in_order)
          acc = mxi_mma_fused(&plan, &p->a, i, &p->b, j, c);
        else {
          put_in_order(&s.a, &p->a, i, s.place);
          put_in_order(&s.b, &p->b, j, s.place);
          acc = mxi_mma_fused(&plan, &s.a.one, 0, &s.b.one, 0, c);
        }
        mxi_mma_store(d, m->d, to, acc.bits);
      }
  desk_free(&s);
  return MX_OK;
}
