/* Reads results.jsonl as arms with their runs and knobs, and each run's training losses, smoothed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "report/internal.h"

/* Steps whose losses are averaged: a twentieth of the run. */
enum { SMOOTH_SHARE = 20 };

static double real_of(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  return json_is_number(v) ? json_number_value(v) : NAN;
}

/* losses[steps] -> the mean of each step and those before it, as many as there are up to `window`. */
static void smooth(double *losses, size_t steps, size_t window) {
  for (size_t i = steps; i-- > 0;) { /* from the back: a mean reads what lies before it */
    const size_t from = i + 1 > window ? i + 1 - window : 0;
    double sum = 0;
    for (size_t k = from; k <= i; k++) sum += losses[k];
    losses[i] = sum / (double)(i + 1 - from);
  }
}

static mx_status read_losses(mxi_run *run, const char *path, mx_error *err) {
  FILE *f = fopen(path, "r");
  if (!f) return errno == ENOENT ? MX_OK : mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  char *line = NULL;
  size_t size = 0, room = 0;
  mx_status status = MX_OK;
  for (ssize_t n; !status && (n = getline(&line, &size, f)) > 0;) {
    json_t *o = json_loadb(line, (size_t)n, 0, NULL);
    const json_t *loss = json_object_get(o, "loss");
    if (!json_is_number(loss) && line[n - 1] != '\n') { /* a kill cut it off */
      json_decref(o);
      break;
    }
    if (!json_is_number(loss)) status = mx_fail(err, MX_ERR_FORMAT, "%s: line %zu: expected a step with its loss", path, run->steps + 1);
    if (!status && run->steps == room) {
      double *more = realloc(run->smooth, (room = room ? 2 * room : 256) * sizeof *more);
      if (more)
        run->smooth = more;
      else
        status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
    }
    if (!status) run->smooth[run->steps++] = json_number_value(loss);
    json_decref(o);
  }
  free(line);
  fclose(f);
  const size_t window = run->steps / SMOOTH_SHARE;
  if (run->smooth) smooth(run->smooth, run->steps, window ? window : 1);
  return status;
}

/* ---- lines ---- */

static size_t arm_named(const mx_report *r, const char *name) {
  for (size_t i = r->n_arms; i-- > 0;)
    if (!strcmp(r->arms[i].told.name, name)) return i;
  return SIZE_MAX;
}

static int read_knobs(mxi_arm *a, json_t *knobs) {
  const char *axis;
  json_t *level;
  if (!(a->knobs = calloc(json_object_size(knobs) + 1, sizeof *a->knobs))) return 0;
  json_object_foreach(knobs, axis, level) {
    const char *name = json_string_value(level);
    mxi_knob *k = &a->knobs[a->n_knobs++];
    *k = (mxi_knob){strdup(axis), strdup(name ? name : "")};
    if (!k->axis || !k->level) return 0;
  }
  return 1;
}

static mxi_arm *arm_of(mx_report *r, const char *name, const char *reference, json_t *knobs) {
  const size_t known = arm_named(r, name);
  if (known != SIZE_MAX) return &r->arms[known];
  mxi_arm *more = realloc(r->arms, (r->n_arms + 1) * sizeof *more);
  if (!more) return NULL;
  r->arms = more;
  mxi_arm *a = &more[r->n_arms];
  *a = (mxi_arm){.told = {.name = strdup(name), .reference = reference ? strdup(reference) : NULL}, .reference = SIZE_MAX};
  r->n_arms++;
  return a->told.name && (!reference || a->told.reference) && read_knobs(a, knobs) ? a : NULL;
}

const mxi_run *mxi_run_of(const mxi_arm *a, uint64_t seed) {
  for (size_t i = 0; i < a->n_runs; i++)
    if (a->runs[i].seed == seed) return &a->runs[i];
  return NULL;
}

static mx_status add_run(mxi_arm *a, const json_t *line, const char *dir, mx_error *err) {
  mxi_run *more = realloc(a->runs, (a->n_runs + 1) * sizeof *more);
  if (!more) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  a->runs = more;
  mxi_run *run = &more[a->n_runs++];
  const char *end = json_string_value(json_object_get(line, "end")), *id = json_string_value(json_object_get(line, "id"));
  *run = (mxi_run){.seed = (uint64_t)json_integer_value(json_object_get(line, "seed")),
                   .finished = !strcmp(end, "finished"),
                   .loss = {real_of(line, "val_loss"), real_of(line, "val_loss_fp32")},
                   .accuracy = {real_of(line, "val_accuracy"), real_of(line, "val_accuracy_fp32")}};
  a->told.runs++;
  a->told.finished += (size_t)run->finished;
  a->told.diverged += !strcmp(end, "diverged");
  a->told.failed += !strcmp(end, "failed");
  a->told.dropped += !strcmp(end, "dropped");
  if (!run->finished) return MX_OK;
  char path[4352];
  snprintf(path, sizeof path, "%s/runs/%s/metrics.jsonl", dir, id);
  const mx_status status = read_losses(run, path, err);
  if (status || a->told.finished > 1) return status;
  snprintf(path, sizeof path, "%s/runs/%s/config.json", dir, id);
  json_error_t why;
  if (!(a->config = json_load_file(path, 0, &why))) return mx_fail(err, MX_ERR_FORMAT, "%s: %s", path, why.text);
  mxi_cost_count(&a->told, a->config);
  return MX_OK;
}

static mx_status take_line(mx_report *r, const char *text, size_t n, const char *dir, const char *path, size_t at, mx_error *err) {
  json_t *line = json_loadb(text, n, 0, NULL);
  const char *arm = json_string_value(json_object_get(line, "arm")), *end = json_string_value(json_object_get(line, "end")),
             *id = json_string_value(json_object_get(line, "id"));
  mx_status status = MX_OK;
  if (!arm || !end || !id || strlen(id) != 32 || strchr(id, '/') || !json_is_integer(json_object_get(line, "seed")))
    status = mx_fail(err, MX_ERR_FORMAT, "%s: line %zu: expected a run with arm, seed, id and end", path, at);
  mxi_arm *a = status ? NULL : arm_of(r, arm, json_string_value(json_object_get(line, "reference")), json_object_get(line, "knobs"));
  if (!status) status = a ? add_run(a, line, dir, err) : mx_fail(err, MX_ERR_NOMEM, "out of memory");
  json_decref(line);
  return status;
}

mx_status mxi_results_read(mx_report *r, const char *dir, mx_error *err) {
  char path[4200];
  snprintf(path, sizeof path, "%s/results.jsonl", dir);
  FILE *f = fopen(path, "r");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: %s; mxgold sweep writes it", path, strerror(errno));
  char *line = NULL;
  size_t size = 0, at = 0;
  mx_status status = MX_OK;
  for (ssize_t n; !status && (n = getline(&line, &size, f)) > 0;) status = take_line(r, line, (size_t)n, dir, path, ++at, err);
  free(line);
  fclose(f);
  if (!status && !r->n_arms) return mx_fail(err, MX_ERR_DATA, "%s: no run has ended yet", path);
  for (size_t i = 0; i < r->n_arms && !status; i++)
    if (r->arms[i].told.reference) r->arms[i].reference = arm_named(r, r->arms[i].told.reference);
  return status;
}
