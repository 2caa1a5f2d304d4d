/* Works out the figures of --gemm and --six: what each operand's spec is, and how a spec stands beside the others. */
#include <stdio.h>
#include <string.h>

#include "products.h"

/* "preset=NAME,...": that preset instead, with the seed that there is; *keys then stands at the rest. */
static mx_status preset_of(mx_spec *s, const char **keys, mx_error *err) {
  char name[80];
  const char *from = *keys + 7;
  const size_t n = strcspn(from, ", ");
  snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), from);
  const uint64_t seed = s->seed;
  const mx_status status = mx_preset_find(s, name, err);
  s->seed = seed;
  *keys = from + n + (from[n] != 0);
  return status;
}

int ablate_operand_specs(mx_spec *specs, int n, const ablate_products *p, const ablate_spec *base) {
  mx_error err;
  for (int i = 0; i < n; i++) specs[i] = base->spec;
  if (base->recipe && mx_recipe_operands(specs, base->recipe, &err)) return cli_error("%s: %s", base->label, err.text);
  for (size_t i = 0; i < p->operands->n; i++) {
    const char *text = p->operands->items[i];
    if (text[0] != 'Q' || text[1] < '1' || text[1] >= '1' + n || text[2] != ':')
      return cli_error("--operand: '%.80s', expected Q1 to Q%d, a colon and KEY=VALUE", text, n);
    mx_spec *s = &specs[text[1] - '1'];
    const char *keys = text + 3;
    if (!strncmp(keys, "preset=", 7) && preset_of(s, &keys, &err)) return cli_error("--operand: Q%c: %s", text[1], err.text);
    if (mx_spec_parse(s, keys, &err) || mx_spec_check(s, &err)) return cli_error("--operand: Q%c: %s", text[1], err.text);
  }
  /* The two operands of a product draw the bits of their rounding apart. */
  for (int i = 1; i < n; i += 2) specs[i].seed += (uint64_t)1 << 32;
  return CLI_FINE;
}

void ablate_operand_shape(const ablate_layers *l, int i, size_t *rows, size_t *cols) {
  const ablate_tensor *x = &l->tensors->at[0], *w = &l->tensors->at[1];
  const size_t of[ABLATE_OPERANDS][2] = {{x->rows, x->cols}, {w->rows, w->cols}, {x->rows, w->rows},
                                         {w->cols, w->rows}, {w->rows, x->rows}, {x->cols, x->rows}};
  *rows = of[i][0];
  *cols = of[i][1];
}

/* ---- Ranking ---- */

const char *ablate_product_name(const ablate_layers *l, int product) {
  static const char *const names[] = {"Fprop Y = X W^T", "Dgrad dX = dY W", "Wgrad dW = dY^T X"};
  return l->how->six ? names[product] : "X W^T";
}

int ablate_product_drawn(const ablate_layer *a, int product) { return a->operand[2 * product].drawn && a->operand[2 * product + 1].drawn; }

double ablate_layer_error(const ablate_layers *l, size_t spec) {
  double worst = 0;
  for (int p = 0; p < l->n_products; p++) {
    const double e = l->at[spec].product[p].total.relative;
    if (!(e <= worst)) worst = isnan(e) ? (double)INFINITY : e;
  }
  return worst;
}

static int same_error(const mx_product_error *a, const mx_product_error *b) {
  return !memcmp(&a->relative, &b->relative, sizeof a->relative) && !memcmp(&a->gain, &b->gain, sizeof a->gain) &&
         !memcmp(&a->cosine, &b->cosine, sizeof a->cosine) && a->left_out == b->left_out;
}

static int same_figures(const ablate_layers *l, size_t a, size_t b) {
  for (int p = 0; p < l->n_products; p++) {
    const mx_product_split *s = &l->at[a].product[p], *t = &l->at[b].product[p];
    if (!same_error(&s->x, &t->x) || !same_error(&s->w, &t->w) || !same_error(&s->total, &t->total)) return 0;
  }
  return 1;
}

size_t ablate_layer_same(const ablate_layers *l, size_t spec) {
  for (size_t s = 0; s < spec; s++)
    if (same_figures(l, s, spec)) return s + 1;
  return 0;
}

static void say_errors(char *room, size_t size, const ablate_layers *l, size_t spec) {
  const mx_product_split *s = l->at[spec].product;
  if (l->how->six) {
    snprintf(room, size, "errors of %.1f %% in Fprop, %.1f %% in Dgrad and %.1f %% in Wgrad", 100 * s[0].total.relative,
             100 * s[1].total.relative, 100 * s[2].total.relative);
    return;
  }
  const double x = s->x.relative, w = s->w.relative;
  const char *through = fabs(x - w) <= 0.1 * fmax(x, w) ? "about as much through either operand"
                        : x > w                         ? "most of it through the first operand"
                                                        : "most of it through the second operand";
  if (s->accumulate.relative > x && s->accumulate.relative > w) through = "most of it through the sums";
  snprintf(room, size, "an error of %.1f %% of the product's norm, %s, and a gain of %.3f", 100 * s->total.relative, through, s->total.gain);
}

void ablate_layers_verdict(char *room, size_t size, const ablate_layers *l) {
  size_t best = 0, next = SIZE_MAX;
  for (size_t s = 1; s < l->specs->n; s++)
    if (ablate_layer_error(l, s) < ablate_layer_error(l, best)) best = s;
  for (size_t s = 0; s < l->specs->n; s++)
    if (s != best && !ablate_layer_same(l, s) && (next == SIZE_MAX || ablate_layer_error(l, s) < ablate_layer_error(l, next))) next = s;
  char errors[256];
  say_errors(errors, sizeof errors, l, best);
  const char *name = l->specs->at[best].label;
  if (!isfinite(ablate_layer_error(l, best)))
    snprintf(room, size, "No spec leaves a product without NaN or Inf.");
  else if (next == SIZE_MAX)
    snprintf(room, size, "%s has %s.", name, errors);
  else
    snprintf(room, size, "%s is the best of %zu specs, with %s; next is %s, %s%.1f %%.", name, l->specs->n, errors, l->specs->at[next].label,
             l->how->six ? "whose worst product is off by " : "with ", 100 * ablate_layer_error(l, next));
}
