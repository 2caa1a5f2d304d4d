/* Runs a sweep by synchronous successive halving: all arms are trained for a part of their steps, the better half for twice as many, and so on; what is left, and its
 * references, to the end. Which arms go on follows from the journals alone, so a call that was killed goes on to the same results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/internal.h"

/* Runs of one arm stand in a row. */
typedef struct arm {
  size_t from, to; /* runs */
  double loss;     /* mean of its seeds' at the last rung */
  int left;        /* 1: still in */
} arm;

typedef struct halving {
  const mx_sweep *sweep;
  const mx_sweep_options *how;
  arm *arms; /* that are compared, in the sweep's order */
  size_t n_arms, n_left;
  unsigned char *in;          /* [runs] 1: to be trained */
  double *dropped;            /* [runs] share of the rung after which it was dropped; 0 */
  const mx_sweep_run **tasks; /* room for all runs */
} halving;

static mx_status no_memory(mx_error *err) { return mx_fail(err, MX_ERR_NOMEM, "out of memory"); }

/* Arms with a reference; all, if there is none. */
static mx_status find_arms(halving *h, mx_error *err) {
  const mx_sweep *s = h->sweep;
  int any = 0;
  for (size_t i = 0; i < s->n_runs; i++) any |= s->runs[i].reference != NULL;
  h->arms = calloc(s->n_runs + 1, sizeof *h->arms);
  h->in = calloc(s->n_runs + 1, 1);
  h->dropped = calloc(s->n_runs + 1, sizeof *h->dropped);
  h->tasks = calloc(s->n_runs + 1, sizeof *h->tasks);
  if (!h->arms || !h->in || !h->dropped || !h->tasks) return no_memory(err);
  for (size_t i = 0; i < s->n_runs; i++) {
    if (any && !s->runs[i].reference) continue;
    if (!h->n_arms || strcmp(s->runs[h->arms[h->n_arms - 1].from].arm, s->runs[i].arm) != 0) h->arms[h->n_arms++] = (arm){i, i + 1, 0, 1};
    h->arms[h->n_arms - 1].to = i + 1;
    h->in[i] = 1;
  }
  h->n_left = h->n_arms;
  return MX_OK;
}

static int compare_ids(const void *a, const void *b) {
  return strcmp((*(const mx_sweep_run *const *)a)->id, (*(const mx_sweep_run *const *)b)->id);
}

static int compare_places(const void *a, const void *b) {
  const mx_sweep_run *x = *(const mx_sweep_run *const *)a, *y = *(const mx_sweep_run *const *)b;
  return (x > y) - (x < y);
}

/* Lists runs that are still in and have reached neither this rung nor an end, each identity once, in the sweep's order; returns how many. */
static size_t tasks_of(const halving *h, const mxi_outcomes *done, double share) {
  size_t n = 0, kept = 0;
  for (size_t i = 0; i < h->sweep->n_runs; i++) {
    const mx_sweep_run *r = &h->sweep->runs[i];
    if (h->in[i] && !mxi_outcome_of(done, r->id) && !(share < 1 && mxi_rung_of(done, r->id, share))) h->tasks[n++] = r;
  }
  qsort(h->tasks, n, sizeof *h->tasks, compare_ids);
  for (size_t i = 0; i < n; i++)
    if (!i || strcmp(h->tasks[i]->id, h->tasks[kept - 1]->id) != 0) h->tasks[kept++] = h->tasks[i];
  qsort(h->tasks, kept, sizeof *h->tasks, compare_places);
  return kept;
}

/* Trains the runs that are in up to the share; *left is how many did not get there because the call was stopped. */
static mx_status train(halving *h, double share, size_t *left, mx_error *err) {
  mxi_outcomes done;
  mx_status status = mxi_journals_read(&done, h->how->dir, err);
  if (status) return status;
  const size_t n = tasks_of(h, &done, share);
  mxi_outcomes_free(&done);
  status = mxi_execute_tasks(h->sweep, h->how, share, h->tasks, n, 0, err);
  if (status || (status = mxi_journals_read(&done, h->how->dir, err))) return status;
  *left = tasks_of(h, &done, share);
  mxi_outcomes_free(&done);
  return MX_OK;
}

/* The mean loss of an arm's seeds at a rung. Infinite if one of them failed or diverged; lowest for a run that finished long ago, whose rung may
 * be gone. */
static double loss_of(const halving *h, const mxi_outcomes *done, const arm *a, double share) {
  double sum = 0;
  for (size_t i = a->from; i < a->to; i++) {
    const char *id = h->sweep->runs[i].id;
    const mxi_rung *g = mxi_rung_of(done, id, share);
    const mxi_outcome *o = mxi_outcome_of(done, id);
    sum += g ? g->loss : o && o->end == MXI_END_FINISHED ? o->figure[MXI_LOSS] : NAN;
  }
  return isfinite(sum) ? sum / (double)(a->to - a->from) : INFINITY;
}

static int compare_arms(const void *a, const void *b) {
  const arm *x = *(arm *const *)a, *y = *(arm *const *)b;
  return x->loss != y->loss ? (x->loss > y->loss) - (x->loss < y->loss) : (x > y) - (x < y);
}

static void drop(halving *h, arm *a, double share) {
  a->left = 0;
  for (size_t i = a->from; i < a->to; i++) {
    h->in[i] = 0;
    h->dropped[i] = share;
  }
  if (h->how->dropped) h->how->dropped(h->how->self, h->sweep->runs[a->from].arm, share, a->loss);
}

/* Drops the worse half, but keeps at least `keep` arms. */
static mx_status halve(halving *h, double share, size_t keep, mx_error *err) {
  mxi_outcomes done;
  const mx_status status = mxi_journals_read(&done, h->how->dir, err);
  if (status) return status;
  arm **order = malloc((h->n_arms + 1) * sizeof *order);
  size_t n = 0;
  for (size_t i = 0; i < h->n_arms && order; i++) {
    if (!h->arms[i].left) continue;
    h->arms[i].loss = loss_of(h, &done, &h->arms[i], share);
    order[n++] = &h->arms[i];
  }
  mxi_outcomes_free(&done);
  if (!order) return no_memory(err);
  qsort(order, n, sizeof *order, compare_arms);
  const size_t half = (n + 1) / 2;
  h->n_left = half > keep ? half : keep;
  for (size_t i = h->n_left; i < n; i++) drop(h, order[i], share);
  free(order);
  return MX_OK;
}

/* What an arm that is left is compared with is trained too. */
static void take_reference(halving *h, const char *name) {
  for (size_t i = 0; i < h->sweep->n_runs && name; i++)
    if (!h->sweep->runs[i].reference && !strcmp(h->sweep->runs[i].arm, name)) h->in[i] = 1;
}

/* The first rung's share: halved once for each rung. */
static double first_share(size_t n, size_t keep) {
  double share = 1;
  for (; n > keep; n = (n + 1) / 2) share /= 2;
  return share;
}

static mx_status finish(mx_sweep_result *result, halving *h, size_t left, mx_error *err) {
  mxi_outcomes done;
  mx_status status = mxi_journals_read(&done, h->how->dir, err);
  if (status) return status;
  size_t n = 0, dropped = 0;
  for (size_t i = 0; i < h->sweep->n_runs; i++) {
    if (h->in[i]) h->tasks[n++] = &h->sweep->runs[i];
    dropped += h->dropped[i] > 0;
  }
  mxi_count(result, h->tasks, n, &done);
  result->runs += result->dropped = dropped;
  if (left && result->left < left) result->left = left;
  status = mxi_results_write(h->sweep, &done, h->dropped, h->how->dir, err);
  mxi_outcomes_free(&done);
  return status;
}

mx_status mx_sweep_halve(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, size_t keep, mx_error *err) {
  if (!result || !sweep || !options || !options->dir || !keep) return mx_fail(err, MX_ERR_ARG, "NULL argument, or no arm to keep");
  if (options->shards) return mx_fail(err, MX_ERR_CONFLICT, "halving compares all arms at each rung, which a shard cannot");
  halving h = {.sweep = sweep, .how = options};
  const mx_sweep_run **all = NULL;
  size_t n, runs, left = 0;
  mx_sweep_lock *lock;
  mx_status status = mx_sweep_lock_take(&lock, options, err);
  if (status) return status;
  status = mxi_share(&all, &n, &runs, sweep, options, err); /* the folders are made */
  free(all);
  if (!status) status = find_arms(&h, err);
  for (double share = status ? 1 : first_share(h.n_arms, keep); share < 1 && !status && !left; share *= 2) {
    status = train(&h, share, &left, err);
    if (!status && !left) status = halve(&h, share, keep, err);
  }
  for (size_t i = 0; i < h.n_arms && !status && !left; i++)
    if (h.arms[i].left) take_reference(&h, sweep->runs[h.arms[i].from].reference);
  if (!status && !left) status = train(&h, 1, &left, err);
  if (!status) status = finish(result, &h, left, err);
  free(h.arms);
  free(h.in);
  free(h.dropped);
  free(h.tasks);
  mx_sweep_lock_free(lock);
  return status;
}
