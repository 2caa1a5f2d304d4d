/* Runs networks of rows of numbers: linears with an activation between them.
 *
 *   gaussian    the output linear alone, one number, squared error: seed 004's regression
 *   digits      hidden layers h = relu(W h + b), an output for each class, cross-entropy
 *   diffusion   h = act(W h + b), plus h from the second on; two outputs, the noise of a point, squared error
 * Every linear is quantised, and is drawn as PyTorch's nn.Linear is: weights and biases evenly from -1 / sqrt(inputs) to 1 / sqrt(inputs). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/layers/layers.h"
#include "train/models/model.h"

typedef struct mlp {
  size_t N, hidden, outputs, out; /* positions, hidden layers, outputs of a row; the output linear */
  int residual;
  size_t *linear;         /* [hidden] */
  float **z, **h;         /* [hidden], each [N][width]: before and after the activation */
  float *y, *d, *dz, *d2; /* [N][outputs], [N][width] */
  double *sums;
} mlp;

static int function_of(const mxi_model *m) {
  static const int functions[MXI_ACTS] = {MX_MATH_GELU_TANH, MX_MATH_GELU_ERF, MX_MATH_SILU};
  return functions[m->config.act];
}

static mx_status act_forward(mxi_model *m, float *h, const float *z, size_t n) {
  if (m->config.kind == MXI_DIFFUSION) return mx_math_array(h, z, n, function_of(m), &m->exec);
  mxi_relu_forward(h, z, NULL, n, &m->exec);
  return MX_OK;
}

static mx_status act_backward(mxi_model *m, float *dz, const float *dh, const float *z, const float *h, size_t n) {
  if (m->config.kind == MXI_DIFFUSION) return mx_math_gradient(dz, z, dh, n, function_of(m), &m->exec);
  mxi_relu_backward(dz, dh, h, n, &m->exec);
  return MX_OK;
}

static mx_status loss(mxi_model *m) {
  const mlp *a = m->own;
  const size_t N = mxi_model_counted(m, a->N), V = a->outputs;
  if (m->config.kind != MXI_DIGITS) {
    mxi_squared_error(&m->loss, a->y, a->y, m->batch.y, N * V);
    return MX_OK;
  }
  m->hits = m->evaluate ? mxi_count_hits(a->y, m->batch.target, N, V) : 0;
  return mxi_cross_entropy(&m->loss, a->y, a->y, m->batch.target, N, V, a->sums, &m->exec);
}

static mx_status forward(mxi_model *m) {
  mlp *a = m->own;
  const size_t n = a->N * m->config.width;
  const float *x = m->batch.x;
  mx_status s = MX_OK;
  for (size_t i = 0; i < a->hidden && !s; i++) {
    s = mxi_model_linear_forward(m, a->linear[i], a->z[i], x);
    if (!s) s = act_forward(m, a->h[i], a->z[i], n);
    if (!s && a->residual && i) mxi_add(a->h[i], a->h[i - 1], n, &m->exec);
    if (!s) mxi_model_show(m, MXI_OUTPUT, a->h[i], n, "act.%zu", i);
    x = a->h[i];
  }
  if (!s) s = mxi_model_linear_forward(m, a->out, a->y, x);
  return s ? s : loss(m);
}

static mx_status backward(mxi_model *m) {
  mlp *a = m->own;
  const size_t n = a->N * m->config.width;
  float *d = a->d, *below = a->d2;
  mx_status s = mxi_model_linear_backward(m, a->out, a->hidden ? d : NULL, 0, a->y, a->hidden ? a->h[a->hidden - 1] : m->batch.x);
  for (size_t i = a->hidden; i-- > 0 && !s;) {
    mxi_model_show(m, MXI_OUTPUT_GRADIENT, d, n, "act.%zu", i);
    s = act_backward(m, a->dz, d, a->z[i], a->h[i], n);
    if (!s) s = mxi_model_linear_backward(m, a->linear[i], i ? below : NULL, 0, a->dz, i ? a->h[i - 1] : m->batch.x);
    if (!s && a->residual && i) mxi_add(below, d, n, &m->exec);
    float *const swap = d;
    d = below;
    below = swap;
  }
  return s;
}

static size_t linear_new(mxi_model *m, size_t N, size_t in, size_t out, const char *name) {
  const double bound = 1 / sqrt((double)in);
  const size_t w = mxi_model_param(m, bound, 0, out, in, "%s.weight", name), b = mxi_model_param(m, bound, 0, out, 0, "%s.bias", name);
  if (!m->no_memory) m->params[w].even = m->params[b].even = 1;
  return mxi_model_linear_add(m, N, in, out, (int)w, (int)b);
}

mx_status mxi_mlp_new(mxi_model *m) {
  const mxi_model_config *c = &m->config;
  mlp *a = m->own = calloc(1, sizeof *a);
  if (!a) return MX_ERR_NOMEM;
  const size_t N = a->N = m->B, W = c->width;
  a->hidden = c->kind == MXI_GAUSSIAN ? 0 : c->layers;
  a->outputs = c->kind == MXI_GAUSSIAN ? 1 : c->kind == MXI_DIGITS ? c->vocab : 2;
  a->residual = c->kind == MXI_DIFFUSION;
  a->linear = mxi_model_take(m, a->hidden, sizeof *a->linear);
  a->z = mxi_model_take(m, a->hidden, sizeof *a->z);
  a->h = mxi_model_take(m, a->hidden, sizeof *a->h);
  for (size_t i = 0; i < a->hidden && !m->no_memory; i++) {
    char name[32];
    snprintf(name, sizeof name, "linear.%zu", i);
    a->linear[i] = linear_new(m, N, i ? W : c->inputs, W, name);
    mxi_model_block_end(m);
    a->z[i] = mxi_model_floats(m, N * W);
    a->h[i] = mxi_model_floats(m, N * W);
  }
  a->out = linear_new(m, N, a->hidden ? W : c->inputs, a->outputs, "out");
  mxi_model_block_end(m);
  a->y = mxi_model_floats(m, N * a->outputs);
  a->d = mxi_model_floats(m, a->hidden ? N * W : 0);
  a->dz = mxi_model_floats(m, a->hidden ? N * W : 0);
  a->d2 = mxi_model_floats(m, a->hidden ? N * W : 0);
  a->sums = mxi_model_take(m, N, sizeof *a->sums);
  if (m->no_memory) return MX_ERR_NOMEM;
  m->dloss = a->y;
  m->n_dloss = N * a->outputs;
  m->forward = forward;
  m->backward = backward;
  return MX_OK;
}
