/* Finds the specs that give a tensor the very same values, so that a table and a chart show them once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"

/* Equal values have equal sums: to the bit, for any number of threads. */
static int may_be_same(const ablate_row *a, const ablate_row *b) {
  const mx_error_sums *s = &a->sums, *t = &b->sums;
  return a->repeats == b->repeats && s->n == t->n && s->n_spoiled == t->n_spoiled && s->n_underflow == t->n_underflow &&
         !memcmp(&s->yy, &t->yy, sizeof s->yy) && !memcmp(&s->xy, &t->xy, sizeof s->xy) && !memcmp(&s->ee, &t->ee, sizeof s->ee);
}

static mx_status values_of(float *y, const ablate_result *r, size_t tensor, size_t spec, const float *x, int n_threads, mx_error *err) {
  const ablate_tensor *t = &r->tensors->at[tensor];
  const mx_spec own = ablate_spec_of(&r->specs->at[spec], t);
  return mx_fake_quantize(y, x, t->rows, t->cols, &own, &(mx_exec){.n_threads = n_threads}, NULL, err);
}

mx_status ablate_find_same(const ablate_result *r, size_t tensor, const float *x, int n_threads, mx_error *err) {
  const size_t n = r->specs->n, bytes = r->tensors->at[tensor].rows * r->tensors->at[tensor].cols * sizeof(float);
  ablate_row *rows = &r->rows[tensor * n];
  float *a = NULL, *b = NULL;
  mx_status status = MX_OK;
  for (size_t s = 0; s < n; s++) rows[s].same_as = 0;
  for (size_t s = 1; s < n && !status; s++)
    for (size_t before = 0; before < s && !rows[s].same_as && !status; before++) {
      if (rows[before].same_as || !may_be_same(&rows[before], &rows[s])) continue;
      if (!a) a = malloc(bytes + 1), b = malloc(bytes + 1);
      if (!a || !b) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
      if (!status) status = values_of(a, r, tensor, before, x, n_threads, err);
      if (!status) status = values_of(b, r, tensor, s, x, n_threads, err);
      if (!status && !memcmp(a, b, bytes)) rows[s].same_as = before + 1;
    }
  free(a);
  free(b);
  return status;
}

/* The first spec that gives a tensor these values. */
static size_t first_same(const ablate_result *r, size_t tensor, size_t spec) {
  const size_t same_as = ablate_row_at(r, tensor, spec)->same_as;
  return same_as ? same_as - 1 : spec;
}

int ablate_same_values(const ablate_result *r, size_t tensor, size_t a, size_t b) {
  return first_same(r, tensor, a) == first_same(r, tensor, b);
}

int ablate_same_everywhere(const ablate_result *r, size_t a, size_t b) {
  for (size_t t = 0; t < r->tensors->n; t++)
    if (!ablate_same_values(r, t, a, b)) return 0;
  return 1;
}

size_t ablate_shown_as(const ablate_result *r, size_t spec) {
  size_t shown = spec;
  for (size_t s = 0; s < r->specs->n; s++) {
    const double more = r->summary[s].bits - r->summary[shown].bits;
    if ((more < 0 || (more == 0 && s < shown)) && ablate_same_everywhere(r, s, spec)) shown = s;
  }
  return shown;
}

const char *ablate_same_text(char *room, size_t size, const ablate_result *r, const ablate_row *row) {
  *room = 0;
  if (row->same_as) snprintf(room, size, "same values as %s", r->specs->at[row->same_as - 1].label);
  return room;
}
