/* Keeps measured products in a state file, so that a run that was stopped goes on. One line a product of a spec: KEY of all that its figures depend on,
 * then the figures. A spec that is added later finds those of the others, since no figure depends on another spec or on another product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/version.h"
#include "products.h"
#include "state_lines.h"

/* Everything that the numbers depend on. */
static int make_key(char key[33], const ablate_layers *l, size_t spec, int product) {
  mx_spec q[ABLATE_OPERANDS];
  char *text = NULL;
  size_t n;
  if (ablate_operand_specs(q, l->n_operands, l->how, &l->specs->at[spec])) return 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return 0;
  fprintf(f, "%s product 3 %d of %d %s %d\n", MX_VERSION, product, l->n_products, l->how->accum,
          l->how->repeats); /* 3: raised when a line holds something else */
  for (size_t i = 0; i < l->tensors->n; i++) fprintf(f, "%s %zu %zu\n", l->digest[i], l->tensors->at[i].rows, l->tensors->at[i].cols);
  for (int i = 2 * product; i < 2 * product + 2; i++) {
    char keys[4096];
    mx_spec_print(keys, sizeof keys, &q[i], 1);
    fprintf(f, "%s\n", keys);
  }
  if (fclose(f)) return 0;
  mx_digest(key, text, n);
  free(text);
  return 1;
}

enum { MOST = 128, LINE = 48 + MOST * 25 };

/* Each figure of a layer, in order; counts stay far below 2^53. */
typedef void visit(double *value, void *self);
static void count_at(uint64_t *n, visit *v, void *self) {
  double d = (double)*n;
  v(&d, self);
  *n = (uint64_t)d;
}

static void each_error(mx_product_error *e, visit *v, void *self) {
  v(&e->relative, self);
  v(&e->bias, self);
  v(&e->bias_low, self);
  v(&e->bias_high, self);
  v(&e->gain, self);
  v(&e->cosine, self);
  count_at(&e->left_out, v, self);
}

static void each_figure(mx_product_split *s, ablate_operand q[2], visit *v, void *self) {
  mx_product_error *const parts[] = {&s->x, &s->w, &s->both, &s->accumulate, &s->total};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) each_error(parts[i], v, self);
  for (int i = 0; i < 2; i++) {
    ablate_operand *o = &q[i];
    mx_error_sums *e = &o->sums;
    double drawn = o->drawn, repeats = o->repeats, *const reals[] = {&drawn, &repeats, &o->bits, &o->bias, &o->bias_low, &o->bias_high,
                                                                     &e->xx, &e->yy,   &e->xy,   &e->ee,   &e->lost};
    uint64_t *const counts[] = {&e->n, &e->n_nan, &e->n_inf, &e->n_spoiled, &e->n_underflow, &o->n_codes, &o->saturated};
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) v(reals[k], self);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) count_at(counts[k], v, self);
    o->drawn = (int)drawn;
    o->repeats = (int)repeats;
  }
}

typedef struct text {
  char *at;
  int bad;
} text;

static void print_one(double *value, void *self) {
  text *t = self;
  t->at += sprintf(t->at, " %a", *value); /* at most 24 characters */
}

static void parse_one(double *value, void *self) {
  text *t = self;
  char *end;
  *value = strtod(t->at, &end);
  t->bad |= end == t->at;
  t->at = end;
}

int ablate_product_find(ablate_layer *a, const ablate_layers *l, size_t spec, int product) {
  char key[33];
  if (!l->how->state || !make_key(key, l, spec, product)) return 0;
  int found = 0;
  state_reader all;
  state_open(&all, l->how->state);
  for (char *line; !found && (line = state_next(&all));) {
    if (strncmp(line, key, 32) || !state_line_whole(line)) continue;
    mx_product_split figures = {0};
    ablate_operand q[2] = {0};
    text t = {line + 32, 0};
    each_figure(&figures, q, parse_one, &t);
    found = !t.bad && !*t.at;
    if (!found) continue;
    a->product[product] = figures;
    memcpy(&a->operand[2 * product], q, sizeof q);
  }
  state_close(&all);
  return found;
}

mx_status ablate_product_keep(const ablate_layers *l, size_t spec, int product, mx_error *err) {
  if (!l->how->state) return MX_OK;
  char *line = malloc(LINE), key[33];
  if (!line || !make_key(key, l, spec, product)) {
    free(line);
    return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  }
  text t = {line + sprintf(line, "%s", key), 0};
  each_figure(&l->at[spec].product[product], &l->at[spec].operand[2 * product], print_one, &t);
  const mx_status status = state_line_add(l->how->state, line, (size_t)(t.at - line), err);
  free(line);
  return status;
}
