/* --gemm and --six: what quantising its operands does to a product. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "cli/base/out.h"
#include "cli/base/progress.h"

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

/* The spec of each operand: the preset or recipe with --set, then what the recipe says of it, then what --operand does. */
static int operand_specs(mx_spec *specs, int n, const ablate_products *p, const ablate_spec *base) {
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

/* What a product was computed of, for a machine: each operand's values and keys. */
static void origin(out *o, const ablate_tensors *t, float *const *x, const char *const *names, const ablate_specs *specs,
                   const ablate_products *p) {
  ablate_say_origin(o, specs, p->repeats, p->json);
  for (size_t i = 0; i < t->n && p->json; i++) {
    char key[16], digest[33];
    mx_digest(digest, x[i], t->at[i].rows * t->at[i].cols * sizeof *x[i]);
    snprintf(key, sizeof key, "%s", names[i]);
    out_text(o, key, t->at[i].name);
    snprintf(key, sizeof key, "%s_digest", names[i]);
    out_text(o, key, digest);
    snprintf(key, sizeof key, "%s_shape", names[i]);
    out_shape(o, key, (uint64_t[]){t->at[i].rows, t->at[i].cols}, 2);
  }
}

static void specs_of_operands(out *o, const ablate_specs *specs, int n, const ablate_products *p) {
  if (!p->json) return;
  out_table(o, "specs");
  for (size_t s = 0; s < specs->n; s++) {
    mx_spec q[6];
    if (operand_specs(q, n, p, &specs->at[s])) break; /* said before */
    for (int i = 0; i < n; i++) {
      char name[3] = {'Q', (char)('1' + i), 0}, keys[4096];
      mx_spec_print(keys, sizeof keys, &q[i], 1);
      out_row(o);
      out_text(o, "preset", specs->at[s].label);
      out_text(o, "operand", name);
      out_text(o, "keys", keys);
    }
  }
  out_end(o);
}

/* What progress counts: STEPS a spec. */
enum { STEPS = 1000 };
typedef struct shown_progress {
  progress line;
  size_t spec;
} shown_progress;

static void show(void *self, double share) {
  shown_progress *p = self;
  progress_at(&p->line, p->spec * STEPS + (uint64_t)(share * STEPS));
}

static mx_measure_options how_to(const ablate_products *p, shown_progress *shown) {
  return (mx_measure_options){.repeats = p->repeats,
                              .n_threads = p->n_threads,
                              .fused = p->model == MX_GEMM_FUSED ? &p->unit : NULL,
                              .progress = show,
                              .progress_self = shown};
}

/* NaN and Inf of an operand, where there are any; a machine is always told. */
static void count_nan(out *o, const char *name, const float *x, size_t n, int json) {
  uint64_t bad = 0;
  char key[64];
  for (size_t i = 0; i < n; i++) bad += !isfinite(x[i]);
  snprintf(key, sizeof key, json ? "%s_nan_or_inf" : "NaN and Inf in %s", name);
  if (json || bad) out_u64(o, key, bad);
}

static void product_rows(out *o, const char *spec, const char *product, const mx_product_split *s, int json) {
  const struct {
    const char *name;
    const mx_product_error *e;
  } parts[] = {{"first operand alone", &s->x},
               {"second operand alone", &s->w},
               {"both, binary64 sums", &s->both},
               {"sums alone", &s->accumulate},
               {"all", &s->total}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    out_row(o);
    out_text(o, "preset", spec);
    out_text(o, "product", product);
    out_text(o, "quantised", parts[i].name);
    if (isnan(parts[i].e->relative) && !json)
      out_text(o, "relative error", "none left");
    else
      out_figure(o, "relative error", parts[i].e->relative, "%.3e", json);
    out_figure(o, "bias", parts[i].e->bias, "%.3e", json);
    out_figure(o, "gain", parts[i].e->gain, "%.5f", json);
    out_figure(o, "1-cos", parts[i].e->cosine >= 1 ? 0 : 1 - parts[i].e->cosine, "%.1e", json);
    if (json || s->total.left_out) out_u64(o, json ? "left_out" : "NaN, left out", parts[i].e->left_out);
  }
}

/* Keys of recipes that are of training a layer over many steps, and of no single product. */
static void training_keys(out *o, const ablate_specs *specs, int json) {
  size_t n = 0;
  for (size_t s = 0; s < specs->n; s++) n += specs->at[s].recipe && *specs->at[s].recipe->train;
  if (!n && !json) return;
  out_table(o, json ? "training_keys_ignored" : "training keys");
  for (size_t s = 0; s < specs->n; s++) {
    const mx_recipe *r = specs->at[s].recipe;
    if (!r || !*r->train) continue;
    out_row(o);
    out_text(o, "preset", specs->at[s].label);
    out_text(o, json ? "keys" : "training keys that --six leaves out", r->train);
  }
  out_end(o);
}

static void release(float **x, size_t n) {
  for (size_t i = 0; i < n; i++) free(x[i]);
}

static int load(float **x, const ablate_tensors *t, size_t n, int refuse_nan) {
  memset(x, 0, n * sizeof *x);
  mx_error err;
  for (size_t i = 0; i < n; i++) {
    if (!ablate_load(&x[i], &t->at[i], &err) && !(refuse_nan && ablate_refuse_nan(&t->at[i], x[i], &err))) continue;
    release(x, n);
    memset(x, 0, n * sizeof *x);
    return cli_fail(&err);
  }
  return CLI_FINE;
}

int ablate_gemm(const ablate_tensors *t, const cli_context *ctx, const ablate_products *p) {
  if (t->n != 2) return cli_error("--gemm: %zu tensors, expected two: X [rows][K] and W [columns][K]", t->n);
  const ablate_tensor *x = &t->at[0], *w = &t->at[1];
  if (x->cols != w->cols)
    return cli_error("--gemm: %s is %zux%zu and %s %zux%zu, expected the same number of columns", x->name, x->rows, x->cols, w->name, w->rows,
                     w->cols);
  ablate_specs specs;
  if (ablate_specs_make(&specs, p->presets, p->set, p->seed, 0)) return CLI_TROUBLE;
  float *at[2];
  int rc = load(at, t, 2, p->refuse_nan);
  out *o = out_new();
  static const char *const names[] = {"X", "W"};
  if (!rc) origin(o, t, at, names, &specs, p);
  out_text(o, "product", "first operand x second operand^T");
  out_text(o, "accumulate", p->accum);
  for (int i = 0; i < 2 && !rc; i++) count_nan(o, names[i], at[i], t->at[i].rows * t->at[i].cols, p->json);
  out_table(o, "error");
  shown_progress shown = {0};
  progress_start_steps(&shown.line, ctx, "ablate --gemm", specs.n * STEPS);
  for (size_t s = 0; s < specs.n && !rc; s++) {
    mx_spec q[2];
    mx_product_split split;
    mx_error err;
    const mx_measure_options how = how_to(p, &shown);
    shown.spec = s;
    if ((rc = operand_specs(q, 2, p, &specs.at[s]))) break;
    if (mx_product_split_measure(&split, at[0], at[1], x->rows, w->rows, x->cols, &q[0], &q[1], p->model, &how, &err))
      rc = cli_error("--gemm: %s: %s", specs.at[s].label, err.text);
    else
      product_rows(o, specs.at[s].label, "X W^T", &split, p->json);
  }
  progress_end(&shown.line);
  out_end(o);
  if (!rc) specs_of_operands(o, &specs, 2, p);
  if (!rc)
    rc = out_print(o, p->json);
  else
    out_free(o);
  release(at, 2);
  ablate_specs_free(&specs);
  return rc;
}

/* Of what is left of an operand. */
static void left_figure(out *o, const char *key, const mx_measure *m, double figure, const char *format, int json) {
  if (!m->sums.n && !json)
    out_text(o, key, "none left");
  else
    out_figure(o, key, m->sums.n ? figure : (double)NAN, format, json);
}

static void six_rows(out *o, const char *spec, const mx_six *six, int json) {
  static const char *const names[6] = {"Q1 X along I", "Q2 W along I", "Q3 dY along O", "Q4 W^T along O", "Q5 dY^T along T", "Q6 X^T along T"};
  static const char *const products[3] = {"Fprop Y = X W^T", "Dgrad dX = dY W", "Wgrad dW = dY^T X"};
  for (int i = 0; i < 6; i++) {
    const mx_measure *m = &six->q[i];
    const mx_product_split *s = &six->product[i / 2];
    const mx_product_error *own = i % 2 ? &s->w : &s->x;
    out_row(o);
    out_text(o, "preset", spec);
    out_text(o, "product", products[i / 2]);
    out_text(o, "operand", names[i]);
    left_figure(o, "SQNR dB", m, mx_sqnr(&m->sums), "%.3f", json);
    left_figure(o, "gain", m, mx_gain(&m->sums), "%.4f", json);
    left_figure(o, "bias", m, m->bias, "%.4f", json);
    out_figure(o, json ? "sat %" : "saturated %", m->counts.n ? 100 * (double)m->counts.saturated / (double)m->counts.n : 0, "%.3f", json);
    left_figure(o, json ? "under %" : "underflow %", m, 100 * (double)m->sums.n_underflow / (double)m->sums.n, "%.3f", json);
    out_figure(o, "product error", own->relative, "%.4f", json);
    out_figure(o, "both error", s->total.relative, "%.4f", json);
    out_figure(o, "both bias", s->total.bias, "%.4f", json);
    out_figure(o, "both gain", s->total.gain, "%.4f", json);
    const uint64_t spoiled = m->sums.n_spoiled / (uint64_t)m->repeats;
    if (json || spoiled || s->total.left_out) {
      out_u64(o, "spoiled", spoiled);
      out_u64(o, json ? "left_out" : "NaN, left out", s->total.left_out);
    }
  }
}

int ablate_six(const ablate_tensors *t, const cli_context *ctx, const ablate_products *p) {
  if (t->n != 3) return cli_error("--six: %zu tensors, expected three: X [T][I], W [O][I] and DY [T][O]", t->n);
  const ablate_tensor *x = &t->at[0], *w = &t->at[1], *dy = &t->at[2];
  if (x->cols != w->cols || x->rows != dy->rows || w->rows != dy->cols)
    return cli_error("--six: X is %zux%zu, W %zux%zu and DY %zux%zu, expected [T][I], [O][I] and [T][O]", x->rows, x->cols, w->rows, w->cols,
                     dy->rows, dy->cols);
  ablate_specs specs;
  if (ablate_specs_make(&specs, p->presets, p->set, p->seed, 1)) return CLI_TROUBLE;
  float *at[3];
  int rc = load(at, t, 3, p->refuse_nan);
  mx_six *six = malloc(sizeof *six);
  if (!six && !rc) rc = cli_error("out of memory");
  out *o = out_new();
  static const char *const names[] = {"X", "W", "DY"};
  if (!rc) origin(o, t, at, names, &specs, p);
  out_text(o, "accumulate", p->accum);
  for (int i = 0; i < 3 && !rc; i++) count_nan(o, names[i], at[i], t->at[i].rows * t->at[i].cols, p->json);
  out_table(o, "operands");
  shown_progress shown = {0};
  progress_start_steps(&shown.line, ctx, "ablate --six", specs.n * STEPS);
  for (size_t s = 0; s < specs.n && !rc; s++) {
    mx_spec q[6];
    mx_error err;
    const mx_measure_options how = how_to(p, &shown);
    shown.spec = s;
    if ((rc = operand_specs(q, 6, p, &specs.at[s]))) break;
    if (mx_six_measure(six, at[0], at[1], at[2], x->rows, x->cols, w->rows, q, p->model, &how, &err))
      rc = cli_error("--six: %s: %s", specs.at[s].label, err.text);
    else
      six_rows(o, specs.at[s].label, six, p->json);
  }
  progress_end(&shown.line);
  out_end(o);
  if (!rc) specs_of_operands(o, &specs, 6, p);
  if (!rc) training_keys(o, &specs, p->json);
  if (!rc)
    rc = out_print(o, p->json);
  else
    out_free(o);
  free(six);
  release(at, 3);
  ablate_specs_free(&specs);
  return rc;
}
