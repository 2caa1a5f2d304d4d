/* Compares each arm with its reference, seed by seed, and says which differences are resolved. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"

/* First point of a falling curve that is at most `loss`, between steps, from 1; 0 if there is none. */
static double reached(const double *curve, size_t steps, double loss) {
  for (size_t i = 0; i < steps; i++) {
    if (!(curve[i] <= loss)) continue;
    if (!i) return 1;
    return (double)i + (curve[i - 1] - loss) / (curve[i - 1] - curve[i]);
  }
  return 0;
}

/* By what share this run needed more steps than the reference; NaN if one of them has no curve. */
static double extra_steps(const mxi_run *run, const mxi_run *reference) {
  const size_t n = run->steps;
  if (!n || n != reference->steps) return NAN;
  const double last = run->smooth[n - 1], aim = reference->smooth[n - 1];
  if (last >= aim) {
    const double t = reached(reference->smooth, n, last);
    return t > 0 ? (double)n / t - 1 : NAN;
  }
  const double t = reached(run->smooth, n, aim);
  return t > 0 ? t / (double)n - 1 : NAN;
}

/* The step after which this run had the reference's last loss; NaN if it never had. */
static double reached_reference(const mxi_run *run, const mxi_run *reference) {
  if (!run->steps || !reference->steps) return NAN;
  const double t = reached(run->smooth, run->steps, reference->smooth[reference->steps - 1]);
  return t > 0 ? t : NAN;
}

/* Values of finished runs and of their pairs, in arrays of n_runs. */
typedef struct columns {
  double *own, *with, *extra, *steps, *accuracy;
} columns;

static void measure(mxi_arm *a, const mxi_arm *reference, const columns *c, double confidence) {
  mx_report_arm *t = &a->told;
  for (int e = 0; e < MX_EVALS; e++) {
    size_t n = 0, pairs = 0, labelled = 0, there = 0;
    for (size_t i = 0; i < a->n_runs; i++) {
      if (!a->runs[i].finished) continue;
      c->own[n++] = a->runs[i].loss[e];
      if (!isnan(a->runs[i].accuracy[e])) c->accuracy[labelled++] = a->runs[i].accuracy[e];
    }
    t->loss[e] = mx_mean_of(c->own, n, confidence);
    t->accuracy[e] = mx_mean_of(c->accuracy, labelled, confidence);
    for (size_t i = 0; i < a->n_runs && reference; i++) {
      const mxi_run *r = mxi_run_of(reference, a->runs[i].seed);
      if (!a->runs[i].finished || !r || !r->finished) continue;
      c->own[pairs] = a->runs[i].loss[e];
      c->with[pairs] = r->loss[e];
      c->extra[pairs++] = extra_steps(&a->runs[i], r);
      const double step = reached_reference(&a->runs[i], r);
      if (!isnan(step)) c->steps[there++] = step;
    }
    t->behind[e] = mx_mean_of_pairs(c->own, c->with, pairs, confidence);
    if (!e) t->extra_steps = mx_mean_of(c->extra, pairs, confidence);
    if (!e) t->reached = mx_mean_of(c->steps, there, confidence);
  }
}

static mx_status correct(mx_report *r) {
  double *p = malloc((r->n_arms + 1) * sizeof *p);
  if (!p) return MX_ERR_NOMEM;
  mx_status status = MX_OK;
  for (int e = 0; e < MX_EVALS && !status; e++) {
    for (size_t i = 0; i < r->n_arms; i++) p[i] = r->arms[i].told.behind[e].p;
    status = mx_holm(p, p, r->n_arms);
    for (size_t i = 0; i < r->n_arms; i++) {
      mx_report_arm *t = &r->arms[i].told;
      t->p[e] = p[i];
      t->resolved[e] = p[i] < 1 - r->confidence ? t->behind[e].mean > 0 ? 1 : -1 : 0;
    }
  }
  free(p);
  return status;
}

static mx_status compare_all(mx_report *r) {
  size_t most = 1, runs = 0;
  for (size_t i = 0; i < r->n_arms; i++) {
    if (r->arms[i].n_runs > most) most = r->arms[i].n_runs;
    if (r->arms[i].told.runs > runs) runs = r->arms[i].told.runs;
  }
  double *room = malloc(5 * most * sizeof *room);
  if (!room) return MX_ERR_NOMEM;
  const columns c = {room, room + most, room + 2 * most, room + 3 * most, room + 4 * most};
  for (size_t i = 0; i < r->n_arms; i++) {
    mxi_arm *a = &r->arms[i];
    a->told.missing = runs - a->told.runs;
    measure(a, a->reference == SIZE_MAX ? NULL : &r->arms[a->reference], &c, r->confidence);
  }
  mxi_score(r);
  free(room);
  return correct(r);
}

mx_status mx_report_read(mx_report **out, const char *dir, double confidence, mx_error *err) {
  if (!out || !dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (!(confidence > 0 && confidence < 1)) return mx_fail(err, MX_ERR_ARG, "a confidence of %g: expected one between 0 and 1", confidence);
  mx_report *r = calloc(1, sizeof *r);
  *out = NULL;
  if (!r) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  r->confidence = confidence;
  for (int k = 0; k < MX_TECHNIQUES; k++) r->weights[k] = 1;
  mx_status status = mxi_results_read(r, dir, err);
  if (!status && ((status = compare_all(r)) || (status = mxi_effects(r)))) mx_fail(err, status, "out of memory");
  if (!status) status = mxi_claims(r, dir, err);
  if (!status) mxi_front(r);
  if (status)
    mx_report_free(r);
  else
    *out = r;
  return status;
}

void mx_report_free(mx_report *r) {
  if (!r) return;
  for (size_t i = 0; i < r->n_arms; i++) {
    for (size_t k = 0; k < r->arms[i].n_runs; k++) free(r->arms[i].runs[k].smooth);
    free(r->arms[i].runs);
    json_decref(r->arms[i].config);
    for (size_t k = 0; k < r->arms[i].n_knobs; k++) free(r->arms[i].knobs[k].axis), free(r->arms[i].knobs[k].level);
    free(r->arms[i].knobs);
    free((char *)r->arms[i].told.name);
    free((char *)r->arms[i].told.reference);
  }
  free(r->arms);
  free(r->effects);
  mxi_claims_free(r);
  free(r);
}

const mx_report_arm *mx_report_arm_at(const mx_report *r, size_t index) { return r && index < r->n_arms ? &r->arms[index].told : NULL; }

const mx_report_effect *mx_report_effect_at(const mx_report *r, size_t index) { return r && index < r->n_effects ? &r->effects[index] : NULL; }

const mx_report_claim *mx_report_claim_at(const mx_report *r, size_t index) { return r && index < r->n_claims ? &r->claims[index] : NULL; }

size_t mx_report_curve(double *steps, double *losses, double *low, double *high, size_t n, const mx_report *r, size_t index) {
  if (!r || index >= r->n_arms || !n) return 0;
  const mxi_arm *a = &r->arms[index];
  size_t least = SIZE_MAX, curves = 0;
  for (size_t i = 0; i < a->n_runs; i++)
    if (a->runs[i].smooth && a->runs[i].finished) {
      least = a->runs[i].steps < least ? a->runs[i].steps : least;
      curves++;
    }
  if (!curves || !least) return 0;
  const size_t points = least < n ? least : n;
  for (size_t k = 0; k < points; k++) {
    const size_t at = points > 1 ? k * (least - 1) / (points - 1) : least - 1;
    double sum = 0, least_loss = INFINITY, most_loss = -INFINITY;
    for (size_t i = 0; i < a->n_runs; i++) {
      if (!a->runs[i].smooth || !a->runs[i].finished) continue;
      const double loss = a->runs[i].smooth[at];
      sum += loss;
      least_loss = fmin(least_loss, loss);
      most_loss = fmax(most_loss, loss);
    }
    steps[k] = (double)at + 1;
    losses[k] = sum / (double)curves;
    if (low) low[k] = least_loss;
    if (high) high[k] = most_loss;
  }
  return points;
}
