/* Computes learning rates by step, and the norm of the gradients. */
#include <math.h>

#include "mxgold/math.h"
#include "train/layers/parallel.h"
#include "train/optim/optim.h"

/* cos(pi x), 0 <= x <= 1, from + and * alone: a C library's cosine is not the same everywhere. */
static double cosine_of_pi(double x) {
  const double y = x <= .5 ? x : 1 - x, angle = y * 3.14159265358979323846;
  double term = 1, sum = 0;
  for (int i = 0; i < 24; i += 2) {
    sum += term;
    term *= -angle * angle / ((i + 1) * (i + 2));
  }
  return x <= .5 ? sum : -sum;
}

double mxi_schedule_rate(const mxi_schedule *s, double peak, uint64_t t, uint64_t steps) {
  const double warm = s->warmup && t < s->warmup ? (double)t / (double)s->warmup : 1;
  const uint64_t last = s->decay_steps ? s->decay_steps : steps;
  const double along = t >= last ? 1 : (double)t / (double)last;
  switch (s->kind) {
  case MXI_LINEAR:
    return peak * warm * (1 - along) + s->min_lr;
  case MXI_COSINE:
    if (warm < 1) return peak * warm;
    if (t >= last || last <= s->warmup) return s->min_lr;
    return s->min_lr + .5 * (1 + cosine_of_pi((double)(t - s->warmup) / (double)(last - s->warmup))) * (peak - s->min_lr);
  default:
    return peak * warm;
  }
}

mx_status mxi_gradient_norm(double *norm, const mxi_model *m) {
  double total = 0;
  for (size_t i = 0; i < m->n_params; i++) {
    const mxi_param *p = &m->params[i];
    const float *g = m->g + p->offset;
    const size_t n = p->rows * p->cols;
    double squares;
    const mx_status status = mx_math_row_sums(&squares, g, n, g, n, 1, n, &m->exec);
    if (status) return status;
    total += squares;
  }
  *norm = sqrt(total);
  return MX_OK;
}

void mxi_gradient_clip(mxi_model *m, double norm, double most) {
  const float by = (float)(most / (norm + 1e-6));
  if (!(by < 1)) return;
#pragma omp parallel for simd schedule(static) num_threads(train_threads(&m->exec, m->n_values))
  for (size_t i = 0; i < m->n_values; i++) m->g[i] *= by;
}
