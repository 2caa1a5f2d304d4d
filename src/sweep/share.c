/* Chooses the runs of a call: its share of the identities, those without an outcome; and says what became of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sweep/internal.h"

mx_status mxi_make_folder(const char *dir, const char *name, mx_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
  return mkdir(path, 0777) && errno != EEXIST ? mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno)) : MX_OK;
}

static int compare_runs(const void *a, const void *b) {
  const mx_sweep_run *x = *(const mx_sweep_run *const *)a, *y = *(const mx_sweep_run *const *)b;
  const int by_id = strcmp(x->id, y->id);
  return by_id ? by_id : (x > y) - (x < y);
}

/* A run by the place of its seed among the sweep's seeds, then by its own in the sweep. */
typedef struct place {
  size_t seed;
  const mx_sweep_run *run;
} place;

static int compare_places(const void *a, const void *b) {
  const place *x = a, *y = b;
  return x->seed != y->seed ? (x->seed > y->seed) - (x->seed < y->seed) : (x->run > y->run) - (x->run < y->run);
}

/* Seed by seed: runs of one seed train on the same data, which a process then makes once, and a call that is stopped early leaves arms that can be
 * compared at the seeds that are done. */
static mx_status by_seed(const mx_sweep_run **chosen, size_t n, const mx_sweep *s, mx_error *err) {
  place *places = calloc(n + 1, sizeof *places);
  if (!places) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < n; i++) {
    places[i].run = chosen[i];
    while (s->runs[places[i].seed].seed != chosen[i]->seed) places[i].seed++; /* the first arm has all seeds in their order */
  }
  qsort(places, n, sizeof *places, compare_places);
  for (size_t i = 0; i < n; i++) chosen[i] = places[i].run;
  free(places);
  return MX_OK;
}

/* done NULL: all of the share. */
static mx_status choose(const mx_sweep_run ***tasks, size_t *n_tasks, size_t *runs, const mx_sweep *s, const mx_sweep_options *how,
                        const mxi_outcomes *done, mx_error *err) {
  const size_t shards = how->shards ? how->shards : 1;
  const mx_sweep_run **sorted = calloc(s->n_runs + 1, sizeof *sorted);
  unsigned char *again = calloc(s->n_runs + 1, 1);
  const mx_sweep_run **chosen = calloc(s->n_runs + 1, sizeof *chosen);
  *runs = *n_tasks = 0;
  *tasks = chosen;
  const int made = sorted && again && chosen;
  for (size_t i = 0; i < s->n_runs && made; i++) sorted[i] = &s->runs[i];
  if (made) qsort(sorted, s->n_runs, sizeof *sorted, compare_runs);
  for (size_t i = 1; i < s->n_runs && made; i++) again[sorted[i] - s->runs] = !strcmp(sorted[i]->id, sorted[i - 1]->id);
  for (size_t i = 0, distinct = 0; i < s->n_runs && made; i++) {
    if (again[i] || distinct++ % shards != (how->shards ? how->shard : 0)) continue;
    ++*runs;
    if (!done || !mxi_outcome_of(done, s->runs[i].id)) chosen[(*n_tasks)++] = &s->runs[i];
  }
  free(sorted);
  free(again);
  return made ? by_seed(chosen, *n_tasks, s, err) : mx_fail(err, MX_ERR_NOMEM, "out of memory");
}

mx_status mxi_share(const mx_sweep_run ***tasks, size_t *n_tasks, size_t *runs, const mx_sweep *sweep, const mx_sweep_options *how,
                    mx_error *err) {
  mxi_outcomes done = {0};
  *tasks = NULL;
  if (how->shards && how->shard >= how->shards)
    return mx_fail(err, MX_ERR_ARG, "shard %zu of %zu: expected one from 0 to %zu", how->shard, how->shards, how->shards - 1);
  mx_status status = mxi_make_folder(how->dir, "", err);
  if (!status) status = mxi_make_folder(how->dir, "runs", err);
  if (!status) status = mxi_make_folder(how->dir, "journal", err);
  if (!status) status = mxi_journals_read(&done, how->dir, err);
  if (!status) status = choose(tasks, n_tasks, runs, sweep, how, &done, err);
  mxi_outcomes_free(&done);
  return status;
}

void mxi_count(mx_sweep_result *out, const mx_sweep_run *const *tasks, size_t n, const mxi_outcomes *done) {
  *out = (mx_sweep_result){.runs = n};
  for (size_t i = 0; i < n; i++) {
    const mxi_outcome *o = mxi_outcome_of(done, tasks[i]->id);
    ++*(!o ? &out->left : o->end == MXI_END_FINISHED ? &out->finished : o->end == MXI_END_DIVERGED ? &out->diverged : &out->failed);
  }
}

mx_status mx_sweep_left(size_t **left, size_t *n, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err) {
  if (!left || !n || !sweep || !options || !options->dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  const mx_sweep_run **tasks;
  size_t runs;
  *left = NULL;
  mx_status status = mxi_share(&tasks, n, &runs, sweep, options, err);
  if (!status && !(*left = malloc((*n + 1) * sizeof **left))) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < *n && !status; i++) (*left)[i] = (size_t)(tasks[i] - sweep->runs);
  free(tasks);
  return status;
}

mx_status mx_sweep_collect(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err) {
  if (!result || !sweep || !options || !options->dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  const mx_sweep_run **tasks = NULL;
  size_t n, runs;
  mxi_outcomes done;
  mx_status status = mxi_journals_read(&done, options->dir, err);
  if (status) return status;
  status = choose(&tasks, &n, &runs, sweep, options, NULL, err);
  if (!status) mxi_count(result, tasks, n, &done);
  if (!status) status = mxi_results_write(sweep, &done, NULL, options->dir, err);
  free(tasks);
  mxi_outcomes_free(&done);
  return status;
}
