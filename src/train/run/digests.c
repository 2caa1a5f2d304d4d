/* Writes digests of what a step computes. */
#include "train/run/digests.h"

#include <inttypes.h>

#include "mxgold/file.h"

static void line(mxi_digests *d, const char *what, const char *name, const float *x, size_t n) {
  char digest[33], text[400];
  mx_digest(digest, x, n * sizeof *x);
  snprintf(text, sizeof text, "%" PRIu64 " %s%s %s\n", d->step, what, name, digest);
  mxi_lines_put(&d->lines, text);
}

static void show(void *self, mxi_shown what, const char *name, const float *x, size_t n) {
  mxi_digests *d = self;
  char kind[80];
  snprintf(kind, sizeof kind, "%s%s:", d->pass, what == MXI_OUTPUT ? "output" : "output_gradient");
  line(d, kind, name, x, n);
}

static void begin(mxi_digests *d, mxi_model *m, uint64_t step) {
  d->step = step;
  m->show = d->all ? show : NULL;
  m->show_self = d;
}

void mxi_digests_batch(mxi_digests *d, mxi_model *m, uint64_t step, size_t k, size_t n) {
  *d->pass = 0;
  if (n > 1) snprintf(d->pass, sizeof d->pass, "batch.%zu:", k);
  begin(d, m, step);
}

void mxi_digests_evaluation(mxi_digests *d, mxi_model *m, uint64_t step, int how, size_t k) {
  snprintf(d->pass, sizeof d->pass, "evaluation.%s.%zu:", how == 2 ? "fp32" : "quantised", k);
  begin(d, m, step);
}

void mxi_digests_gradients(mxi_digests *d, const mxi_model *m) {
  for (size_t i = m->n_params; i-- > 0 && d->all;) {
    const mxi_param *p = &m->params[i];
    line(d, "gradient:", p->name, m->g + p->offset, p->rows * p->cols);
  }
}

void mxi_digests_parameters(mxi_digests *d, const mxi_model *m) {
  if (!d->all) line(d, "", "parameters", m->w, m->n_values);
  for (size_t i = 0; i < m->n_params && d->all; i++) {
    const mxi_param *p = &m->params[i];
    line(d, "", p->name, m->w + p->offset, p->rows * p->cols);
  }
}
