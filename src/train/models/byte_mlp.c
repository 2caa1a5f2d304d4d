/* Runs the byte MLP: the embeddings of `context` tokens side by side, three linears with ReLU of which the last two have residuals, and an output
 * layer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/layers/layers.h"
#include "train/models/model.h"

enum { LINEARS = 3, EMBEDDING = 32 };

/* Of the configuration: width is that of the hidden layers, context the tokens that are seen; an embedding is EMBEDDING wide. */
typedef struct byte_mlp {
  size_t N, I, embed, out, bias; /* positions; parameters */
  size_t linear[LINEARS];
  float *x, *h[LINEARS], *z, *logits; /* [N][I], [N][width], scratch [N][width], [N][V] */
  float *d, *d2, *dx;
  double *sums;
} byte_mlp;

static mx_status forward(mxi_model *m) {
  byte_mlp *a = m->own;
  const size_t N = a->N, W = m->config.width, V = m->config.vocab, T = m->config.context;
  const mx_exec *e = &m->exec;
  mxi_embed_forward(a->x, m->batch.tokens, m->w + m->params[a->embed].offset, NULL, N * T, T, EMBEDDING, e);
  mxi_model_show(m, MXI_OUTPUT, a->x, N * a->I, "embed");
  mx_status s = MX_OK;
  for (int i = 0; i < LINEARS && !s; i++) {
    s = mxi_model_linear_forward(m, a->linear[i], a->z, i ? a->h[i - 1] : a->x);
    if (!s) mxi_relu_forward(a->h[i], a->z, i ? a->h[i - 1] : NULL, N * W, e);
    if (!s) mxi_model_show(m, MXI_OUTPUT, a->h[i], N * W, "relu.%d", i);
  }
  if (!s) s = mxi_model_head(m, a->logits, a->h[LINEARS - 1], a->out, N);
  const float *b = m->w + m->params[a->bias].offset;
  for (size_t n = 0; n < N && !s; n++)
    for (size_t v = 0; v < V; v++) a->logits[n * V + v] += b[v];
  if (!s) mxi_model_show(m, MXI_OUTPUT, a->logits, N * V, "out");
  return s ? s : mxi_cross_entropy(&m->loss, a->logits, a->logits, m->batch.target, mxi_model_counted(m, N), V, a->sums, e);
}

static mx_status backward(mxi_model *m) {
  byte_mlp *a = m->own;
  const size_t N = a->N, W = m->config.width, V = m->config.vocab, T = m->config.context;
  const mx_exec *e = &m->exec;
  mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->logits, N * V, "out");
  mx_status s = mx_math_column_sums(m->g + m->params[a->bias].offset, 1, a->logits, V, NULL, 0, N, V, e);
  if (!s) s = mxi_model_head_backward(m, a->d, a->logits, a->h[LINEARS - 1], a->out, N);
  for (int i = LINEARS; i-- > 0 && !s;) {
    mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->d, N * W, "relu.%d", i);
    mxi_relu_backward(a->d, a->d, a->h[i], N * W, e);
    s = mxi_model_linear_backward(m, a->linear[i], i ? a->d2 : a->dx, 0, a->d, i ? a->h[i - 1] : a->x);
    if (i && !s) mxi_add(a->d, a->d2, N * W, e);
  }
  if (!s) mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->dx, N * a->I, "embed");
  if (!s) mxi_embed_backward(m->g + m->params[a->embed].offset, NULL, a->dx, m->batch.tokens, N * T, T, EMBEDDING, e);
  return s;
}

mx_status mxi_byte_mlp_new(mxi_model *m) {
  const mxi_model_config *c = &m->config;
  byte_mlp *a = m->own = calloc(1, sizeof *a);
  if (!a) return MX_ERR_NOMEM;
  const size_t N = a->N = m->B, W = c->width, I = a->I = c->context * EMBEDDING;
  a->embed = mxi_model_param(m, .5, 0, c->vocab, EMBEDDING, "embed.weight");
  for (int i = 0; i < LINEARS; i++) {
    const size_t in = i ? W : I;
    const size_t w = mxi_model_param(m, sqrt(2 / (double)in), 0, W, in, "linear.%d.weight", i),
                 b = mxi_model_param(m, 0, 0, W, 0, "linear.%d.bias", i);
    a->linear[i] = mxi_model_linear_add(m, N, in, W, (int)w, (int)b);
    mxi_model_block_end(m);
    a->h[i] = mxi_model_floats(m, N * W);
  }
  a->out = mxi_model_param(m, sqrt(2 / (double)W), 0, c->vocab, W, "out.weight");
  a->bias = mxi_model_param(m, 0, 0, c->vocab, 0, "out.bias");
  a->x = mxi_model_floats(m, N * I);
  a->dx = mxi_model_floats(m, N * I);
  a->z = mxi_model_floats(m, N * W);
  a->d = mxi_model_floats(m, N * W);
  a->d2 = mxi_model_floats(m, N * W);
  a->logits = mxi_model_floats(m, N * c->vocab);
  a->sums = mxi_model_take(m, N, sizeof *a->sums);
  if (m->no_memory) return MX_ERR_NOMEM;
  mxi_model_head_work(m, N, W, c->vocab);
  m->dloss = a->logits;
  m->n_dloss = N * c->vocab;
  m->forward = forward;
  m->backward = backward;
  return MX_OK;
}
