/* Updates parameters by Adam, AdamW and SGD, element by element in the order of operations of PyTorch's. */
#include <math.h>

#include "mxgold/math.h"
#include "train/layers/parallel.h"
#include "train/optim/optim.h"

double mxi_power(double beta, uint64_t n) {
  double power = 1;
  for (double square = beta; n; n >>= 1, square *= square)
    if (n & 1) power *= square;
  return power;
}

static void adam_array(float *w, const float *g, float *m, float *v, size_t n, mxi_adam a, int l2, float wd, const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) {
    const float grad = l2 ? g[i] + wd * w[i] : g[i];
    m[i] = a.keep1 * m[i] + a.take1 * grad;
    v[i] = a.keep2 * v[i] + a.take2 * (grad * grad);
    w[i] = w[i] * a.decay - a.rate * (m[i] / (sqrtf(v[i]) / a.root2 + a.eps));
  }
}

static void sgd_array(float *w, const float *g, float *m, size_t n, float lr, float momentum, float wd, const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) {
    m[i] = momentum * m[i] + (g[i] + wd * w[i]);
    w[i] -= lr * m[i];
  }
}

static mxi_adam adam_of(const mxi_optim_config *c, double lr, uint64_t t, double wd) {
  return (mxi_adam){(float)c->beta1,
                    (float)(1 - c->beta1),
                    (float)c->beta2,
                    (float)(1 - c->beta2),
                    (float)sqrt(1 - mxi_power(c->beta2, t)),
                    (float)c->eps,
                    (float)(lr / (1 - mxi_power(c->beta1, t))),
                    (float)(1 - lr * wd)};
}

static double norm_of(const float *x, size_t n, const mx_exec *exec) {
  double squares = 0;
  mx_math_row_sums(&squares, x, n, x, n, 1, n, exec);
  return sqrt(squares);
}

static double largest(const float *x, size_t n) {
  float most = 0;
  for (size_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  return (double)most;
}

static void scale(float *x, size_t n, double by, const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] * by);
}

/* AdaClip and AdaGN of one parameter: arXiv 2502.17055, in the order of its authors' code. */
static void stabilise(mxi_optim *o, size_t p, float *g, size_t n, uint64_t t, const mx_exec *exec) {
  const mxi_optim_config *c = &o->config;
  const double most = largest(g, n);
  o->clip[p] = c->theta * o->clip[p] + (1 - c->theta) * most;
  const double limit = o->clip[p] / (1 - mxi_power(c->theta, t));
  for (size_t i = 0; i < n; i++)
    if ((double)fabsf(g[i]) > limit) g[i] = (float)((double)g[i] / most * limit);
  const double norm = norm_of(g, n, exec);
  double *a = &o->norm[2 * p], *b = a + 1;
  *a = c->gamma1 * *a + (1 - c->gamma1) * norm;
  *b = c->gamma2 * *b + (1 - c->gamma2) * norm * norm;
  if (norm > 0) scale(g, n, *a / (1 - mxi_power(c->gamma1, t)) / (sqrt(*b / (1 - mxi_power(c->gamma2, t))) + c->eps) / norm, exec);
}

static void forget(mxi_optim *o, size_t n) {
  for (size_t i = 0; i < n; i++) o->m[i] = o->v[i] = 0;
}

void mxi_optim_step(mxi_optim *o, mxi_model *m, double lr) {
  const mxi_optim_config *c = &o->config;
  o->total++;
  o->t++;
  const int spam = c->kind == MXI_STABLESPAM, resets = spam && c->reset && o->total % c->reset == 0;
  if (resets && c->reset_order == MXI_RESET_GRAPHCORE) {
    forget(o, m->n_values);
    o->t = 1;
  }
  for (size_t i = 0; i < m->n_params; i++) {
    const mxi_param *p = &m->params[i];
    const size_t n = p->rows * p->cols;
    float *w = m->w + p->offset, *g = m->g + p->offset, *m1 = o->m + p->offset;
    const double wd = p->n_dims == 2 ? c->weight_decay : 0;
    if (c->kind == MXI_SGD) {
      sgd_array(w, g, m1, n, (float)lr, (float)c->momentum, (float)wd, &m->exec);
      continue;
    }
    if (o->ramp.of && o->ramp.of[i] && !o->ramp.rehearses) {
      mxi_ramp_step(&o->ramp, p->offset, n, w, g, m1, o->v + p->offset, adam_of(c, lr, o->t, wd), &m->exec);
      continue;
    }
    if (spam) stabilise(o, i, g, n, o->t, &m->exec);
    if (resets && c->reset_order == MXI_RESET_OFFICIAL) continue;
    adam_array(w, g, m1, o->v + p->offset, n, adam_of(c, lr, o->t, c->kind == MXI_ADAM ? 0 : wd), c->kind == MXI_ADAM && wd > 0, (float)wd,
               &m->exec);
  }
  if (!resets || c->reset_order != MXI_RESET_OFFICIAL) return;
  /* The authors' code then steps once more on the old moments, with t = 1, and discards the result. */
  for (size_t i = 0; i < m->n_params; i++) {
    const mxi_param *p = &m->params[i];
    adam_array(m->w + p->offset, m->g + p->offset, o->m + p->offset, o->v + p->offset, p->rows * p->cols,
               adam_of(c, lr, 1, p->n_dims == 2 ? c->weight_decay : 0), 0, 0, &m->exec);
  }
  forget(o, m->n_values);
  o->t = 1;
}
