/* Holds the claims of the sweep's file against the results of its arms: for each pair of arms that a claim is about, the paired difference and
 * whether it agrees. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "report/internal.h"

static mx_status no_memory(mx_error *err) { return mx_fail(err, MX_ERR_NOMEM, "out of memory"); }

/* Is b the arm that a becomes if one of its knobs goes from `less` to `more`? Whole names stand for themselves. */
static int are_pair(const mxi_arm *a, const mxi_arm *b, const char *less, const char *more) {
  if (!strcmp(a->told.name, less)) return !strcmp(b->told.name, more);
  if (a->n_knobs != b->n_knobs) return 0;
  size_t changed = 0;
  for (size_t i = 0; i < a->n_knobs; i++) {
    if (strcmp(a->knobs[i].axis, b->knobs[i].axis) != 0) return 0;
    if (!strcmp(a->knobs[i].level, b->knobs[i].level)) continue;
    if (strcmp(a->knobs[i].level, less) != 0 || strcmp(b->knobs[i].level, more) != 0) return 0;
    changed++;
  }
  return changed == 1;
}

/* a's losses minus b's, of the seeds that both finished. */
static mx_status difference(mx_mean *out, const mxi_arm *a, const mxi_arm *b, int eval, double confidence) {
  double *x = malloc((2 * a->n_runs + 1) * sizeof *x), *y = x ? x + a->n_runs : NULL;
  size_t n = 0;
  if (!x) return MX_ERR_NOMEM;
  for (size_t i = 0; i < a->n_runs; i++) {
    const mxi_run *with = mxi_run_of(b, a->runs[i].seed);
    if (!a->runs[i].finished || !with || !with->finished) continue;
    x[n] = a->runs[i].loss[eval];
    y[n++] = with->loss[eval];
  }
  *out = mx_mean_of_pairs(x, y, n, confidence);
  free(x);
  return MX_OK;
}

static mx_status add_pair(mx_report *r, const json_t *claim, const mxi_arm *a, const mxi_arm *b, mx_error *err) {
  const char *source = json_string_value(json_object_get(claim, "source")), *of = json_string_value(json_object_get(claim, "of"));
  mx_report_claim *more = realloc(r->claims, (r->n_claims + 1) * sizeof *more);
  if (!more) return no_memory(err);
  r->claims = more;
  mx_report_claim *c = &more[r->n_claims++];
  *c = (mx_report_claim){.says = strdup(json_string_value(json_object_get(claim, "says"))),
                         .source = strdup(source ? source : ""),
                         .less = a->told.name,
                         .more = b->told.name,
                         .eval = of && !strcmp(of, "val_loss_fp32") ? MX_EVAL_FP32 : MX_EVAL_QUANTISED,
                         .within = json_number_value(json_object_get(claim, "within"))};
  if (!c->says || !c->source || difference(&c->difference, a, b, c->eval, r->confidence)) return no_memory(err);
  return MX_OK;
}

static mx_status take(mx_report *r, const json_t *claim, const char *path, mx_error *err) {
  const char *less = json_string_value(json_object_get(claim, "less")), *more = json_string_value(json_object_get(claim, "more"));
  if (!less || !more || !json_is_string(json_object_get(claim, "says")))
    return mx_fail(err, MX_ERR_FORMAT, "%s: claims: expected {\"says\": \"...\", \"less\": ARM, \"more\": ARM}", path);
  mx_status status = MX_OK;
  for (size_t i = 0; i < r->n_arms; i++)
    for (size_t k = 0; k < r->n_arms && !status; k++)
      if (are_pair(&r->arms[i], &r->arms[k], less, more)) status = add_pair(r, claim, &r->arms[i], &r->arms[k], err);
  return status;
}

/* For a claim with two bounds: it agrees if both ends of the interval lie inside, and disagrees if both lie outside on one side. */
static int inside(const mx_report_claim *c) {
  const mx_mean *d = &c->difference;
  if (isnan(d->low)) return 0;
  return d->low > -c->within && d->high < c->within ? 1 : d->low > c->within || d->high < -c->within ? -1 : 0;
}

static mx_status judge(mx_report *r, mx_error *err) {
  double *p = malloc((r->n_claims + 1) * sizeof *p);
  if (!p) return no_memory(err);
  for (size_t i = 0; i < r->n_claims; i++) p[i] = r->claims[i].within > 0 ? NAN : r->claims[i].difference.p;
  const mx_status status = mx_holm(p, p, r->n_claims);
  for (size_t i = 0; i < r->n_claims && !status; i++) {
    mx_report_claim *c = &r->claims[i];
    c->p = p[i];
    c->agrees = c->within > 0 ? inside(c) : p[i] < 1 - r->confidence ? c->difference.mean < 0 ? 1 : -1 : 0;
  }
  free(p);
  return status ? no_memory(err) : MX_OK;
}

mx_status mxi_claims(mx_report *r, const char *dir, mx_error *err) {
  char path[4200];
  json_error_t why;
  snprintf(path, sizeof path, "%s/sweep.json", dir);
  if (access(path, F_OK)) return MX_OK;
  json_t *root = json_load_file(path, 0, &why), *claim;
  if (!root) return mx_fail(err, MX_ERR_FORMAT, "%s: line %d: %s", path, why.line, why.text);
  size_t i;
  mx_status status = MX_OK;
  json_array_foreach(json_object_get(root, "claims"), i, claim) if (!status) status = take(r, claim, path, err);
  if (!status) status = judge(r, err);
  json_decref(root);
  return status;
}

void mxi_claims_free(mx_report *r) {
  for (size_t i = 0; i < r->n_claims; i++) {
    free((char *)r->claims[i].says);
    free((char *)r->claims[i].source);
  }
  free(r->claims);
}
