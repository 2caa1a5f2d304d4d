/* Says whether a run has diverged, and in which part of the model. */
#include "train/run/diverge.h"

#include <math.h>

#include "mxgold/math.h"

double mxi_loss_of_nothing(const mxi_model *m, const mxi_batch *batch) {
  if (m->config.kind != MXI_GAUSSIAN && m->config.kind != MXI_DIFFUSION) return log((double)m->config.vocab);
  double squares = 0;
  mx_math_row_sums(&squares, batch->y, m->n_dloss, batch->y, m->n_dloss, 1, m->n_dloss, &m->exec);
  return squares / (double)m->n_dloss;
}

int mxi_divergence_after(mxi_divergence *d, double loss, double of_nothing) {
  d->above = d->factor > 0 && loss > d->factor * of_nothing ? d->above + 1 : 0;
  return d->above >= MXI_DIVERGE_STEPS;
}

static double squares_of(const mxi_model *m, const mxi_param *p) {
  const float *g = m->g + p->offset;
  const size_t n = p->rows * p->cols;
  double squares = NAN;
  mx_math_row_sums(&squares, g, n, g, n, 1, n, &m->exec);
  return squares;
}

const char *mxi_gradient_not_finite(const mxi_model *m) {
  for (size_t i = m->n_params; i-- > 0;)
    if (!isfinite(squares_of(m, &m->params[i]))) return m->params[i].name;
  return NULL;
}

const char *mxi_gradient_largest(const mxi_model *m) {
  const char *name = "";
  double most = -1;
  for (size_t i = 0; i < m->n_params; i++) {
    const double squares = squares_of(m, &m->params[i]);
    if (squares > most) most = squares, name = m->params[i].name;
  }
  return name;
}
