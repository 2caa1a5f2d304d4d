/* Measures one tensor under every spec for the charts, with a spec as the piece of work of a thread. */
#include <math.h>
#include <stdlib.h>

#include "charts.h"
#include "cli/base/pipeline.h"

typedef struct work {
  ablate_detail *d;
  const ablate_tensor *tensor;
  const float *x;
  int inner;
} work;

static void *new_desk(void *self) {
  const work *w = self;
  return malloc(w->tensor->rows * w->tensor->cols * sizeof(float) + 1);
}

static void leave(void *self, void *y) {
  (void)self;
  free(y);
}

/* Which column has most of the error. */
static int find_worst(chart_worst *out, const float *x, const float *y, size_t rows, size_t cols) {
  double *of = calloc(cols + 1, sizeof *of), all = 0;
  for (size_t r = 0; r < rows && of; r++)
    for (size_t c = 0; c < cols; c++) {
      const double e = (double)x[r * cols + c] - (double)y[r * cols + c];
      if (isfinite(e)) of[c] += e * e;
    }
  *out = (chart_worst){0};
  for (size_t c = 0; c < cols && of; c++) {
    all += of[c];
    if (of[c] > of[out->column]) out->column = c;
  }
  const int good = of != NULL;
  if (good && all > 0) out->share = of[out->column] / all;
  free(of);
  return good;
}

static mx_status make(void *self, void *y, size_t spec, mx_error *err) {
  const work *w = self;
  const ablate_tensor *t = w->tensor;
  const mx_exec exec = {.n_threads = w->inner};
  mx_error why;
  const mx_spec own = ablate_spec_of(&w->d->result->specs->at[spec], t);
  const mx_status status = mx_fake_quantize(y, w->x, t->rows, t->cols, &own, &exec, &w->d->counts[spec], &why);
  if (status) return mx_fail(err, status, "%s: %s", t->name, why.text);
  if (mx_detail_measure(&w->d->detail[spec], w->x, y, t->rows, t->cols, spec ? 0 : w->d->had_size) ||
      !find_worst(&w->d->worst[spec], w->x, y, t->rows, t->cols))
    return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  return MX_OK;
}

static mx_status keep(void *self, void *y, size_t spec, mx_error *err) {
  (void)y;
  (void)err;
  const work *w = self;
  const mx_detail *m = &w->d->detail[spec];
  for (size_t k = 0; k < m->cell_rows * m->cell_cols; k++)
    if (m->cell[k] > w->d->most) w->d->most = m->cell[k];
  return MX_OK;
}

int ablate_detail_make(ablate_detail *d, const ablate_result *r, size_t tensor, int n_threads) {
  const size_t n = r->specs->n;
  *d = (ablate_detail){.result = r,
                       .tensor = tensor,
                       .n = n,
                       .counts = calloc(n, sizeof *d->counts),
                       .detail = calloc(n, sizeof *d->detail),
                       .worst = calloc(n, sizeof *d->worst)};
  if (chart_order_make(&d->order, r)) return CLI_TROUBLE;
  d->had_size = 32; /* or the first size that a spec asks for */
  for (size_t i = n; i-- > 0;)
    if (r->specs->at[i].spec.had_size) d->had_size = r->specs->at[i].spec.had_size;
  mx_error err;
  float *x;
  const mx_status loaded = ablate_load(&x, &r->tensors->at[tensor], &err);
  work w = {.d = d, .tensor = &r->tensors->at[tensor], .x = x};
  pipeline p = {.n_pieces = n, .self = &w, .desk = new_desk, .leave = leave, .make = make, .keep = keep};
  pipeline_share(&p, n, n_threads);
  w.inner = p.inner;
  int rc = CLI_FINE;
  if (loaded)
    rc = cli_fail(&err);
  else if (!d->counts || !d->detail || !d->worst)
    rc = cli_error("out of memory");
  else if (pipeline_run(&p, &err))
    rc = cli_fail(&err);
  free(x);
  return rc;
}

void ablate_detail_free(ablate_detail *d) {
  free(d->counts);
  free(d->detail);
  free(d->worst);
  chart_order_free(&d->order);
}
