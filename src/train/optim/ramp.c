/* Updates weights by Q-Ramping (arXiv 2502.20853): elements whose quantised value moves more than they do are updated once in a period, by the
 * mean of the period's gradients. */
#include <math.h>

#include "train/layers/parallel.h"
#include "train/optim/optim.h"

/* Each operation is one of binary32; a quotient that is no number gives 1. */
float mxi_ramp_period(float moved, float jumped, const mxi_ramp_config *c) {
  const float steps = (float)c->k2 * floorf(jumped / (float)c->k1 / (moved + 1e-8f)) + 1;
  return !(steps > 1) ? 1 : steps < (float)c->every ? steps : (float)c->every;
}

void mxi_ramp_moves(float *moved, float *jumped, const float *before, const float *w, const float *q_before, const float *q, size_t n,
                    const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) {
    moved[i] += fabsf(w[i] - before[i]);
    jumped[i] += fabsf(q[i] - q_before[i]);
  }
}

static int all_finite(const float *x, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isfinite(x[i])) return 0;
  return 1;
}

void mxi_ramp_step(mxi_ramp *r, size_t offset, size_t n, float *w, const float *g, float *m, float *v, mxi_adam a, const mx_exec *exec) {
  float *const sum = r->sum + offset, *const count = r->count + offset;
  const float *const period = r->period + offset;
  const int adds = all_finite(g, n);
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) {
    if (adds) sum[i] += g[i];
    count[i] += 1;
    w[i] *= a.decay;
    if ((uint32_t)count[i] % (uint32_t)period[i]) continue;
    const float mean = sum[i] / count[i];
    m[i] = a.keep1 * m[i] + a.take1 * mean;
    v[i] = a.keep2 * v[i] + a.take2 * (mean * mean);
    w[i] -= a.rate * count[i] * (m[i] / (sqrtf(v[i]) / a.root2 + a.eps));
    sum[i] = count[i] = 0;
  }
}

int mxi_ramp_is_sound(const mxi_ramp *r, const mxi_model *m) {
  int sound = 1;
  for (size_t i = 0; r->of && i < m->n_values && sound; i++) {
    const float n = r->count[i], p = r->period[i], most = (float)r->config.every;
    sound = n == floorf(n) && n >= 0 && n <= 2 * most && p == floorf(p) && p >= 1 && p <= most;
  }
  return sound;
}

uint64_t mxi_ramp_slowed(const mxi_ramp *r, const mxi_model *m) {
  uint64_t slowed = 0;
  for (size_t p = 0; p < m->n_params; p++)
    for (size_t i = 0; r->of[p] && i < m->params[p].rows * m->params[p].cols; i++) slowed += r->period[m->params[p].offset + i] > 1;
  return slowed;
}
