/* Writes results.jsonl, the outcomes of a sweep's runs in the sweep's order, and sweep.json beside it, the sweep that they are of. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "mxgold/file.h"
#include "sweep/internal.h"

/* What a line begins with: which run it is. */
static json_t *head(const mx_sweep_run *r) {
  json_t *line = json_object();
  json_object_set_new(line, "arm", json_string(r->arm));
  json_object_set_new(line, "reference", r->reference ? json_string(r->reference) : json_null());
  json_t *knobs = json_object();
  for (size_t i = 0; i < r->n_levels; i++) json_object_set_new(knobs, r->levels[i].axis, json_string(r->levels[i].level));
  json_object_set_new(line, "knobs", knobs);
  json_object_set_new(line, "seed", json_integer((json_int_t)r->seed));
  json_object_set_new(line, "id", json_string(r->id));
  return line;
}

static json_t *row(const mx_sweep_run *r, const mxi_outcome *o) {
  static const char *const ends[] = {NULL, "finished", "diverged", "failed"};
  json_t *line = head(r);
  json_object_set_new(line, "end", json_string(ends[o->end]));
  json_object_set_new(line, "steps", json_integer((json_int_t)o->steps));
  mxi_put_figures(line, o);
  if (*o->text) json_object_set_new(line, "text", json_string(o->text));
  return line;
}

/* A run that successive halving left where it was. */
static json_t *dropped_row(const mx_sweep_run *r, const mxi_rung *g) {
  json_t *line = head(r);
  json_object_set_new(line, "end", json_string("dropped"));
  json_object_set_new(line, "steps", json_integer((json_int_t)g->steps));
  json_object_set_new(line, "loss", isfinite(g->loss) ? json_real(g->loss) : json_null());
  return line;
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
    json_t *line = o ? row(&sweep->runs[i], o) : dropped_row(&sweep->runs[i], g);
    char *text = json_dumps(line, JSON_REAL_PRECISION(9));
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
