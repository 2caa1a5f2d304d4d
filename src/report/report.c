/* Each arm against its reference, seed by seed; which differences are resolved; the verdict in words. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"

static const mxi_run *run_of(const mxi_arm *a, uint64_t seed) {
  for (size_t i = 0; i < a->n_runs; i++)
    if (a->runs[i].seed == seed) return &a->runs[i];
  return NULL;
}

/* First point of a falling curve that is at most `loss`, between steps, from 1; 0 if there is none. */
static double reached(const double *curve, size_t steps, double loss) {
  for (size_t i = 0; i < steps; i++) {
    if (!(curve[i] <= loss)) continue;
    if (!i) return 1;
    return (double)i + (curve[i - 1] - loss) / (curve[i - 1] - curve[i]);
  }
  return 0;
}

/* The share of steps more than the reference that this run needed; NaN if one of them has no curve. */
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

/* Values of finished runs and of their pairs, in arrays of n_runs. */
typedef struct columns {
  double *own, *with, *extra;
} columns;

static void measure(mxi_arm *a, const mxi_arm *reference, const columns *c, double confidence) {
  mx_report_arm *t = &a->told;
  for (int e = 0; e < MX_EVALS; e++) {
    size_t n = 0, pairs = 0;
    for (size_t i = 0; i < a->n_runs; i++)
      if (a->runs[i].finished) c->own[n++] = a->runs[i].loss[e];
    t->loss[e] = mx_mean_of(c->own, n, confidence);
    for (size_t i = 0; i < a->n_runs && reference; i++) {
      const mxi_run *r = run_of(reference, a->runs[i].seed);
      if (!a->runs[i].finished || !r || !r->finished) continue;
      c->own[pairs] = a->runs[i].loss[e];
      c->with[pairs] = r->loss[e];
      c->extra[pairs++] = extra_steps(&a->runs[i], r);
    }
    t->behind[e] = mx_mean_of_pairs(c->own, c->with, pairs, confidence);
    if (!e) t->extra_steps = mx_mean_of(c->extra, pairs, confidence);
  }
  t->gain = t->score = NAN;
}

static void give_score(mx_report_arm *t, const mx_report_arm *reference) {
  const double of = reference->loss[MX_EVAL_QUANTISED].mean;
  t->gain = (of - t->loss[MX_EVAL_QUANTISED].mean) / of;
  t->score = t->gain / (1 + t->omega);
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
  double *room = malloc(3 * most * sizeof *room);
  if (!room) return MX_ERR_NOMEM;
  const columns c = {room, room + most, room + 2 * most};
  for (size_t i = 0; i < r->n_arms; i++) {
    mxi_arm *a = &r->arms[i];
    a->told.missing = runs - a->told.runs;
    measure(a, a->reference == SIZE_MAX ? NULL : &r->arms[a->reference], &c, r->confidence);
  }
  for (size_t i = 0; i < r->n_arms; i++)
    if (r->arms[i].reference != SIZE_MAX) give_score(&r->arms[i].told, &r->arms[r->arms[i].reference].told);
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
  mx_status status = mxi_results_read(r, dir, err);
  if (!status && (status = compare_all(r))) mx_fail(err, status, "out of memory");
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
    free((char *)r->arms[i].told.name);
    free((char *)r->arms[i].told.reference);
  }
  free(r->arms);
  free(r);
}

const mx_report_arm *mx_report_arm_at(const mx_report *r, size_t index) { return r && index < r->n_arms ? &r->arms[index].told : NULL; }

size_t mx_report_curve(double *steps, double *losses, size_t n, const mx_report *r, size_t index) {
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
    double sum = 0;
    for (size_t i = 0; i < a->n_runs; i++)
      if (a->runs[i].smooth && a->runs[i].finished) sum += a->runs[i].smooth[at];
    steps[k] = (double)at + 1;
    losses[k] = sum / (double)curves;
  }
  return points;
}

/* ---- words ---- */

typedef struct verdict {
  char *out;
  size_t size, n;
} verdict;

__attribute__((format(printf, 2, 3))) static void say(verdict *v, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(v->out ? v->out + (v->n < v->size ? v->n : v->size) : NULL, v->n < v->size ? v->size - v->n : 0, format, args);
  va_end(args);
  v->n += n > 0 ? (size_t)n : 0;
}

static void say_arm(verdict *v, const mx_report_arm *a) {
  const mx_mean *b = &a->behind[MX_EVAL_QUANTISED];
  say(v, "%s (%+.4f, %.4f to %.4f)", a->name, b->mean, b->low, b->high);
}

size_t mx_report_verdict(char *out, size_t size, const mx_report *r) {
  verdict v = {out, size, 0};
  size_t arms = 0, worse = 0, better = 0, lost = 0;
  const mx_report_arm *best = NULL, *worst = NULL;
  double least = NAN, most = NAN; /* standard deviations of references over their seeds */
  for (size_t i = 0; i < r->n_arms; i++) {
    const mx_report_arm *a = &r->arms[i].told;
    const mx_mean *b = &a->behind[MX_EVAL_QUANTISED];
    if (!a->reference) least = fmin(least, a->loss[MX_EVAL_QUANTISED].sd), most = fmax(most, a->loss[MX_EVAL_QUANTISED].sd);
    if (!a->reference) continue;
    arms++;
    lost += a->diverged || a->failed;
    worse += a->resolved[MX_EVAL_QUANTISED] > 0;
    better += a->resolved[MX_EVAL_QUANTISED] < 0;
    if (isnan(b->mean)) continue;
    if (!best || b->mean < best->behind[MX_EVAL_QUANTISED].mean) best = a;
    if (!worst || b->mean > worst->behind[MX_EVAL_QUANTISED].mean) worst = a;
  }
  if (!arms) {
    say(&v, "There is no arm with a reference to compare it with.");
    return v.n;
  }
  say(&v,
      "Of %zu arm%s, %zu %s a higher validation loss than the reference and %zu a lower one at %g %% confidence; %zu cannot be told from it.",
      arms, arms == 1 ? "" : "s", worse, worse == 1 ? "has" : "have", better, 100 * r->confidence, arms - worse - better);
  if (best && best != worst) {
    say(&v, " The lowest difference is that of ");
    say_arm(&v, best);
    say(&v, ", the highest that of ");
    say_arm(&v, worst);
    say(&v, ".");
  } else if (best) {
    say(&v, " It is ");
    say_arm(&v, best);
    say(&v, ".");
  }
  if (!isnan(least)) say(&v, " Between seeds the reference's loss varies by %.4f", least);
  if (most > least) say(&v, " to %.4f", most);
  if (!isnan(least)) say(&v, " (standard deviation).");
  if (lost) say(&v, " %zu arm%s runs that diverged or failed.", lost, lost == 1 ? " has" : "s have");
  return v.n;
}
