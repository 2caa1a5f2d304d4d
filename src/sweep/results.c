/* Writes results.jsonl, the outcomes of a sweep's runs in the sweep's order, and sweep.json beside it, the sweep that they are of. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "mxgold/file.h"
#include "sweep/internal.h"

/* Puts what a line begins with: which run it is. */
static int put_head(json_t *line, const mx_sweep_run *r) {
  int failed = json_object_set_new(line, "arm", json_string(r->arm));
  failed |= json_object_set_new(line, "reference", r->reference ? json_string(r->reference) : json_null());
  json_t *knobs = json_object();
  for (size_t i = 0; i < r->n_levels; i++) failed |= json_object_set_new(knobs, r->levels[i].axis, json_string(r->levels[i].level));
  failed |= json_object_set_new(line, "knobs", knobs);
  failed |= json_object_set_new(line, "seed", json_integer((json_int_t)r->seed));
  return failed | json_object_set_new(line, "id", json_string(r->id));
}

static int put_row(json_t *line, const mx_sweep_run *r, const mxi_outcome *o) {
  static const char *const ends[] = {NULL, "finished", "diverged", "failed"};
  int failed = put_head(line, r);
  failed |= json_object_set_new(line, "end", json_string(ends[o->end]));
  failed |= mxi_put_outcome(line, o);
  return failed | mxi_put_text(line, o->text);
}

/* A run that successive halving left where it was. */
static int put_dropped(json_t *line, const mx_sweep_run *r, const mxi_rung *g) {
  int failed = put_head(line, r);
  failed |= json_object_set_new(line, "end", json_string("dropped"));
  failed |= json_object_set_new(line, "steps", json_integer((json_int_t)g->steps));
  return failed | mxi_put_number(line, "loss", g->loss);
}

static mx_status write_sweep(const mx_sweep *sweep, const char *dir, mx_error *err) {
  char path[4096];
  mx_text file;
  snprintf(path, sizeof path, "%s/sweep.json", dir);
  const mx_status status = mx_text_begin(&file, path, err);
  if (status) return status;
  fputs(sweep->text, file.to);
  return mx_text_end(&file, err);
}

mx_status mxi_results_write(const mx_sweep *sweep, const mxi_outcomes *all, const double *dropped, const char *dir, mx_error *err) {
  char path[4096];
  mx_text file;
  snprintf(path, sizeof path, "%s/results.jsonl", dir);
  mx_status status = write_sweep(sweep, dir, err);
  if (!status) status = mx_text_begin(&file, path, err);
  if (status) return status;
  for (size_t i = 0; i < sweep->n_runs && !status; i++) {
    const mxi_outcome *o = mxi_outcome_of(all, sweep->runs[i].id);
    const mxi_rung *g = !o && dropped && dropped[i] > 0 ? mxi_rung_of(all, sweep->runs[i].id, dropped[i]) : NULL;
    if (!o && !g) continue;
    json_t *line = json_object();
    const int failed = o ? put_row(line, &sweep->runs[i], o) : put_dropped(line, &sweep->runs[i], g);
    char *text = failed ? NULL : json_dumps(line, JSON_REAL_PRECISION(9));
    json_decref(line);
    if (text)
      fprintf(file.to, "%s\n", text);
    else
      status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
    free(text);
  }
  if (!status) return mx_text_end(&file, err);
  mx_text_drop(&file);
  return status;
}
