/* Keeps what an optimiser carries from step to step besides its moments: the scale of the loss, and the moving average of the weights. */
#include <math.h>

#include "train/layers/parallel.h"
#include "train/optim/optim.h"

void mxi_loss_scale_after(mxi_loss_scale *s, int overflow) {
  if (overflow) {
    s->scale *= s->backoff;
    s->good = 0;
  } else if (++s->good == s->growth) {
    s->scale *= 2;
    s->good = 0;
  }
}

int mxi_gradients_are_finite(const mxi_model *m) {
  int all = 1;
  for (size_t i = 0; i < m->n_params; i++) {
    const mxi_param *p = &m->params[i];
    for (size_t k = 0; k < p->rows * p->cols && all; k++) all = isfinite(m->g[p->offset + k]) != 0;
  }
  return all;
}

void mxi_ema_step(mxi_ema *e, const mxi_model *m) {
  const float keep = (float)e->decay, take = (float)(1 - e->decay);
  e->steps++;
  for (size_t i = 0; i < m->n_linears; i++) {
    const mxi_param *p = &m->params[m->linears[i].weight];
    const size_t n = p->rows * p->cols;
    float *average = e->w + p->offset;
    const float *w = m->w + p->offset;
#pragma omp parallel for simd schedule(static) num_threads(train_threads(&m->exec, n))
    for (size_t k = 0; k < n; k++) average[k] = keep * average[k] + take * w[k];
  }
}
