/* Runs --gemm and --six: every spec's product is measured, or found in the state, and then shown. */
#include "products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "charts.h"
#include "cli/base/files.h"
#include "cli/base/out.h"
#include "cli/base/progress.h"

/* ---- Measuring ---- */

/* What progress counts: STEPS a product. */
enum { STEPS = 1000 };
typedef struct shown_progress {
  progress line;
  uint64_t product; /* of all specs */
} shown_progress;

static void show(void *self, double share) {
  shown_progress *p = self;
  progress_at(&p->line, p->product * STEPS + (uint64_t)(share * STEPS));
}

static void fill_operand(ablate_operand *a, const mx_measure *m) {
  a->sums = m->sums;
  a->n_codes = m->counts.n;
  a->saturated = m->counts.saturated;
  a->repeats = m->repeats;
  a->bias = m->bias;
  a->bias_low = m->bias_low;
  a->bias_high = m->bias_high;
  if (m->repeats == 1 && a->drawn) a->bias = (double)NAN; /* one draw does not tell bias from noise */
}

/* q: the specs of the product's two operands. */
static mx_status measure(ablate_layer *a, const ablate_layers *l, int product, float *const *x, mx_measure *found, const mx_spec *q,
                         const mx_measure_options *how, mx_error *err) {
  const ablate_tensor *t = l->tensors->at;
  if (!l->how->six)
    return mx_product_split_measure(&a->product[0], x[0], x[1], t[0].rows, t[1].rows, t[0].cols, &q[0], &q[1], l->how->model, how, err);
  const mx_status status = mx_six_product_measure(found, &a->product[product], product, x[0], x[1], x[2], t[0].rows, t[0].cols, t[1].rows, q,
                                                  l->how->model, how, err);
  for (int i = 0; i < 2 && !status; i++) fill_operand(&a->operand[2 * product + i], &found[i]);
  return status;
}

/* Found in the state, or measured and kept there at once. */
static int one_product(const ablate_layers *l, size_t spec, int product, const mx_spec *q, float *const *x, mx_measure *found,
                       const mx_measure_options *how) {
  mx_error err;
  ablate_layer *a = &l->at[spec];
  if (ablate_product_find(a, l, spec, product)) return CLI_FINE;
  for (int i = 0; i < 2; i++) {
    size_t rows, cols;
    ablate_operand_shape(l, 2 * product + i, &rows, &cols);
    a->operand[2 * product + i] = (ablate_operand){.drawn = mx_spec_is_random(&q[i]), .bits = mx_bits_per_value(&q[i], rows, cols)};
  }
  if (measure(a, l, product, x, found, q, how, &err))
    return cli_error("--%s: %s: %s", l->how->six ? "six" : "gemm", l->specs->at[spec].label, err.text);
  return ablate_product_keep(l, spec, product, &err) ? cli_fail(&err) : CLI_FINE;
}

static int all_specs(const ablate_layers *l, float *const *x, const cli_context *ctx) {
  const ablate_products *p = l->how;
  mx_measure *found = malloc(2 * sizeof *found);
  if (!found) return cli_error("out of memory");
  shown_progress shown = {0};
  const mx_measure_options how = {.repeats = p->repeats,
                                  .n_threads = p->n_threads,
                                  .fused = p->model == MX_GEMM_FUSED ? &p->unit : NULL,
                                  .progress = show,
                                  .progress_self = &shown};
  progress_start_steps(&shown.line, ctx, p->six ? "ablate --six" : "ablate --gemm", l->specs->n * (uint64_t)l->n_products * STEPS);
  int rc = CLI_FINE;
  for (size_t spec = 0; spec < l->specs->n && !rc; spec++) {
    mx_spec q[ABLATE_OPERANDS];
    if (ablate_operand_specs(q, l->n_operands, p, &l->specs->at[spec])) rc = CLI_TROUBLE;
    for (int i = 0; i < l->n_products && !rc; i++, shown.product++) {
      show(&shown, 0);
      rc = one_product(l, spec, i, &q[2 * i], x, found, &how);
    }
  }
  progress_end(&shown.line);
  free(found);
  return rc;
}

/* ---- Operands ---- */

/* Does any operand of any spec draw random bits? */
static int any_drawn(const ablate_layers *l) {
  int drawn = 0;
  for (size_t s = 0; s < l->specs->n; s++) {
    mx_spec q[ABLATE_OPERANDS];
    if (ablate_operand_specs(q, l->n_operands, l->how, &l->specs->at[s])) return -1;
    for (int i = 0; i < l->n_operands; i++) drawn |= mx_spec_is_random(&q[i]);
  }
  return drawn;
}

static int load(float **x, ablate_layers *l) {
  mx_error err;
  for (size_t i = 0; i < l->tensors->n; i++) {
    const ablate_tensor *t = &l->tensors->at[i];
    const size_t n = t->rows * t->cols;
    if (ablate_load(&x[i], t, &err) || (l->how->refuse_nan && ablate_refuse_nan(t, x[i], &err))) return cli_fail(&err);
    mx_digest(l->digest[i], x[i], n * sizeof *x[i]);
    for (size_t k = 0; k < n; k++) l->bad[i] += !isfinite(x[i][k]);
  }
  return CLI_FINE;
}

static int check_shapes(const ablate_tensors *t, int six) {
  const ablate_tensor *x = &t->at[0], *w = &t->at[1], *dy = &t->at[2];
  if (t->n != (six ? 3 : 2))
    return six ? cli_error("--six: %zu tensors, expected three: X [T][I], W [O][I] and DY [T][O]", t->n)
               : cli_error("--gemm: %zu tensors, expected two: X [rows][K] and W [columns][K]", t->n);
  if (!six && x->cols != w->cols)
    return cli_error("--gemm: %s is %zux%zu and %s %zux%zu, expected the same number of columns", x->name, x->rows, x->cols, w->name, w->rows,
                     w->cols);
  if (six && (x->cols != w->cols || x->rows != dy->rows || w->rows != dy->cols))
    return cli_error("--six: X is %zux%zu, W %zux%zu and DY %zux%zu, expected [T][I], [O][I] and [T][O]", x->rows, x->cols, w->rows, w->cols,
                     dy->rows, dy->cols);
  return CLI_FINE;
}

/* ---- All of it ---- */

static int check_outputs(const ablate_products *p) {
  if (ablate_state_check(p->state) || (p->image && ablate_image_check(p->image)) || (p->html && file_check(p->html))) return CLI_TROUBLE;
  return p->image || p->html ? gnuplot_check() : CLI_FINE;
}

static int report(const ablate_layers *l) {
  const ablate_products *p = l->how;
  out *o = ablate_layers_document(l, p->json || p->csv);
  int rc = p->csv ? out_print_csv(o, p->six ? "operands" : "error") : out_print(o, p->json);
  fflush(stdout);
  if (!rc && p->image) rc = ablate_layers_image(l, p->image);
  if (!rc && p->html) rc = ablate_layers_html(l, p->html);
  return rc;
}

int ablate_products_run(const ablate_tensors *t, const cli_context *ctx, const ablate_products *p) {
  ablate_specs specs;
  if (check_shapes(t, p->six) || check_outputs(p) || ablate_specs_make(&specs, p->presets, p->set, p->seed, p->six)) return CLI_TROUBLE;
  ablate_layers l = {.how = p,
                     .tensors = t,
                     .specs = &specs,
                     .n_products = p->six ? MX_SIX_PRODUCTS : 1,
                     .n_operands = p->six ? ABLATE_OPERANDS : 2,
                     .at = calloc(specs.n, sizeof *l.at)};
  float *x[3] = {0};
  int rc = l.at ? CLI_FINE : cli_error("out of memory");
  const int drawn = p->repeats && !rc ? any_drawn(&l) : 1;
  if (drawn < 1) rc = drawn ? CLI_TROUBLE : ablate_refuse_repeats();
  if (!rc) rc = load(x, &l);
  if (!rc) rc = all_specs(&l, x, ctx);
  for (int i = 0; i < 3; i++) free(x[i]);
  if (!rc) rc = report(&l);
  free(l.at);
  ablate_specs_free(&specs);
  return rc;
}
