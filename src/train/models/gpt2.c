/* Runs GPT-2: LayerNorm, learned positions, GELU, biases (or none), a tied head. Parameters have Hugging Face's names, matrices [out][in]. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/layers/layers.h"
#include "train/models/model.h"

static const double EPS = 1e-5;

typedef struct norm {
  size_t gain;
  int bias; /* parameters; bias -1: none */
} norm;

typedef struct block {
  norm norm1, norm2;
  size_t attn, proj, fc, out; /* linears */
  float *in, *n1, *mean1, *rstd1, *qkv, *p, *mix, *mid, *n2, *mean2, *rstd2, *fx,
      *ax; /* [N][C], mean and rstd [N], qkv [N][3 C], p [B H][T][T], fx, ax [N][F] */
} block;

typedef struct gpt2 {
  size_t N, wte, wpe, head;
  norm last;
  block *blocks;
  float *out, *x, *mean, *rstd, *logits;
  float *d, *d2, *dqkv, *df, *dp, *room;
  double *sums;
} gpt2;

static const int functions[] = {MX_MATH_GELU_TANH, MX_MATH_GELU_ERF, MX_MATH_SILU};

static float *bias_of(const mxi_model *m, norm n, float *base) { return n.bias >= 0 ? base + m->params[n.bias].offset : NULL; }

static mx_status norm_forward(mxi_model *m, norm n, float *out, float *mean, float *rstd, const float *x) {
  const gpt2 *a = m->own;
  return mxi_layernorm_forward(out, mean, rstd, x, m->w + m->params[n.gain].offset, bias_of(m, n, m->w), a->N, m->config.width, EPS, a->sums,
                               &m->exec);
}

static mx_status norm_backward(mxi_model *m, norm n, float *dx, const float *dout, const float *x, const float *mean, const float *rstd) {
  const gpt2 *a = m->own;
  const size_t gain = m->params[n.gain].offset;
  return mxi_layernorm_backward(dx, m->g + gain, bias_of(m, n, m->g), dout, x, mean, rstd, m->w + gain, a->N, m->config.width, a->sums, a->room,
                                &m->exec);
}

/* Shows a part of block i. */
static void show(const mxi_model *m, mxi_shown what, const float *x, size_t n, size_t i, const char *part) {
  mxi_model_show(m, what, x, n, "transformer.h.%zu.%s", i, part);
}

static mx_status forward(mxi_model *m) {
  gpt2 *a = m->own;
  const mxi_model_config *c = &m->config;
  const size_t N = a->N, C = c->width, T = c->context, H = c->heads, F = c->ffn;
  const mx_exec *e = &m->exec;
  mxi_embed_forward(a->blocks[0].in, m->batch.tokens, m->w + m->params[a->wte].offset, m->w + m->params[a->wpe].offset, N, T, C, e);
  mxi_model_show(m, MXI_OUTPUT, a->blocks[0].in, N * C, "transformer.embeddings");
  mx_status s = MX_OK;
  for (size_t i = 0; i < c->layers && !s; i++) {
    block *b = &a->blocks[i];
    float *next = i + 1 < c->layers ? a->blocks[i + 1].in : a->out;
    s = norm_forward(m, b->norm1, b->n1, b->mean1, b->rstd1, b->in);
    if (!s) show(m, MXI_OUTPUT, b->n1, N * C, i, "ln_1");
    if (!s) s = mxi_model_linear_forward(m, b->attn, b->qkv, b->n1);
    if (!s) s = mxi_attention_forward(b->mix, C, b->p, b->qkv, b->qkv + C, b->qkv + 2 * C, 3 * C, m->B, T, H, C / H, m->work, e);
    if (!s) show(m, MXI_OUTPUT, b->mix, N * C, i, "attn.attention");
    if (!s) s = mxi_model_linear_forward(m, b->proj, b->mid, b->mix);
    if (s) return s;
    mxi_add(b->mid, b->in, N * C, e);
    show(m, MXI_OUTPUT, b->mid, N * C, i, "attn.residual");
    s = norm_forward(m, b->norm2, b->n2, b->mean2, b->rstd2, b->mid);
    if (!s) show(m, MXI_OUTPUT, b->n2, N * C, i, "ln_2");
    if (!s) s = mxi_model_linear_forward(m, b->fc, b->fx, b->n2);
    if (!s) s = mx_math_array(b->ax, b->fx, N * F, functions[c->act], e);
    if (!s) show(m, MXI_OUTPUT, b->ax, N * F, i, "mlp.act");
    if (!s) s = mxi_model_linear_forward(m, b->out, next, b->ax);
    if (s) return s;
    mxi_add(next, b->mid, N * C, e);
    show(m, MXI_OUTPUT, next, N * C, i, "mlp.residual");
  }
  if (!s) s = norm_forward(m, a->last, a->x, a->mean, a->rstd, a->out);
  if (!s) mxi_model_show(m, MXI_OUTPUT, a->x, N * C, "transformer.ln_f");
  if (!s) s = mxi_model_head(m, a->logits, a->x, a->head, N);
  if (!s) mxi_model_show(m, MXI_OUTPUT, a->logits, N * c->vocab, "lm_head");
  return s ? s : mxi_cross_entropy(&m->loss, a->logits, a->logits, m->batch.target, mxi_model_counted(m, N), c->vocab, a->sums, e);
}

static mx_status backward(mxi_model *m) {
  gpt2 *a = m->own;
  const mxi_model_config *c = &m->config;
  const size_t N = a->N, C = c->width, T = c->context, H = c->heads, F = c->ffn;
  const mx_exec *e = &m->exec;
  float *d = a->d;
  mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->logits, N * c->vocab, "lm_head");
  mx_status s = mxi_model_head_backward(m, a->d2, a->logits, a->x, a->head, N);
  if (!s) mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, "transformer.ln_f");
  memset(d, 0, N * C * sizeof *d);
  if (!s) s = norm_backward(m, a->last, d, a->d2, a->out, a->mean, a->rstd);
  for (size_t i = c->layers; i-- > 0 && !s;) {
    block *b = &a->blocks[i];
    show(m, MXI_OUTPUT_GRADIENT, d, N * C, i, "mlp.residual");
    s = mxi_model_linear_backward(m, b->out, a->df, 0, d, b->ax);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->df, N * F, i, "mlp.act");
    if (!s) s = mx_math_gradient(a->df, b->fx, a->df, N * F, functions[c->act], e);
    if (!s) s = mxi_model_linear_backward(m, b->fc, a->d2, 0, a->df, b->n2);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, i, "ln_2");
    if (!s) s = norm_backward(m, b->norm2, d, a->d2, b->mid, b->mean2, b->rstd2);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, d, N * C, i, "attn.residual");
    if (!s) s = mxi_model_linear_backward(m, b->proj, a->d2, 0, d, b->mix);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, i, "attn.attention");
    float *dq = a->dqkv, *dk = dq + C, *dv = dk + C;
    if (!s)
      s = mxi_attention_backward(dq, dk, dv, a->dp, a->d2, C, b->p, b->qkv, b->qkv + C, b->qkv + 2 * C, 3 * C, m->B, T, H, C / H, m->work, e);
    if (!s) s = mxi_model_linear_backward(m, b->attn, a->d2, 0, a->dqkv, b->n1);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, i, "ln_1");
    if (!s) s = norm_backward(m, b->norm1, d, a->d2, b->in, b->mean1, b->rstd1);
  }
  if (!s) mxi_model_show(m, MXI_OUTPUT_GRADIENT, d, N * C, "transformer.embeddings");
  if (!s) mxi_embed_backward(m->g + m->params[a->wte].offset, m->g + m->params[a->wpe].offset, d, m->batch.tokens, N, T, C, e);
  return s;
}

static norm norm_new(mxi_model *m, const char *name, size_t i, int numbered) {
  const size_t C = m->config.width;
  norm n = {.bias = -1};
  n.gain = numbered ? mxi_model_param(m, 0, 1, C, 0, "transformer.h.%zu.%s.weight", i, name)
                    : mxi_model_param(m, 0, 1, C, 0, "transformer.%s.weight", name);
  if (m->config.bias)
    n.bias = (int)(numbered ? mxi_model_param(m, 0, 0, C, 0, "transformer.h.%zu.%s.bias", i, name)
                            : mxi_model_param(m, 0, 0, C, 0, "transformer.%s.bias", name));
  return n;
}

static size_t linear_new(mxi_model *m, const char *name, size_t i, size_t I, size_t O, double init) {
  const gpt2 *a = m->own;
  const size_t w = mxi_model_param(m, init, 0, O, I, "transformer.h.%zu.%s.weight", i, name);
  const int b = m->config.bias ? (int)mxi_model_param(m, 0, 0, O, 0, "transformer.h.%zu.%s.bias", i, name) : -1;
  return mxi_model_linear_add(m, a->N, I, O, (int)w, b);
}

static void block_new(mxi_model *m, gpt2 *a, size_t i) {
  const mxi_model_config *c = &m->config;
  const size_t N = a->N, C = c->width, F = c->ffn;
  const double small = .02, out = .02 / sqrt(2 * (double)c->layers);
  block *b = &a->blocks[i];
  b->norm1 = norm_new(m, "ln_1", i, 1);
  b->attn = linear_new(m, "attn.c_attn", i, C, 3 * C, small);
  b->proj = linear_new(m, "attn.c_proj", i, C, C, out);
  b->norm2 = norm_new(m, "ln_2", i, 1);
  b->fc = linear_new(m, "mlp.c_fc", i, C, F, small);
  b->out = linear_new(m, "mlp.c_proj", i, F, C, out);
  float **of_width[] = {&b->in, &b->n1, &b->mix, &b->mid, &b->n2}, **of_rows[] = {&b->mean1, &b->rstd1, &b->mean2, &b->rstd2};
  for (size_t k = 0; k < sizeof of_width / sizeof *of_width; k++) *of_width[k] = mxi_model_floats(m, N * C);
  for (size_t k = 0; k < sizeof of_rows / sizeof *of_rows; k++) *of_rows[k] = mxi_model_floats(m, N);
  b->qkv = mxi_model_floats(m, N * 3 * C);
  b->fx = mxi_model_floats(m, N * F);
  b->ax = mxi_model_floats(m, N * F);
  b->p = mxi_model_floats(m, m->B * c->heads * c->context * c->context);
}

mx_status mxi_gpt2_new(mxi_model *m) {
  const mxi_model_config *c = &m->config;
  gpt2 *a = m->own = calloc(1, sizeof *a);
  if (!a) return MX_ERR_NOMEM;
  const size_t N = a->N = m->B * c->context, C = c->width;
  a->blocks = mxi_model_take(m, c->layers, sizeof *a->blocks);
  a->wte = mxi_model_param(m, .02, 0, c->vocab, C, "transformer.wte.weight");
  a->wpe = mxi_model_param(m, .02, 0, c->context, C, "transformer.wpe.weight");
  for (size_t i = 0; i < c->layers && a->blocks; i++) block_new(m, a, i), mxi_model_block_end(m);
  a->last = norm_new(m, "ln_f", 0, 0);
  a->head = c->tied ? a->wte : mxi_model_param(m, .02, 0, c->vocab, C, "lm_head.weight");
  float **of_width[] = {&a->out, &a->x, &a->d, &a->d2, &a->room};
  for (size_t i = 0; i < sizeof of_width / sizeof *of_width; i++) *of_width[i] = mxi_model_floats(m, N * C);
  a->mean = mxi_model_floats(m, N);
  a->rstd = mxi_model_floats(m, N);
  a->logits = mxi_model_floats(m, N * c->vocab);
  a->dqkv = mxi_model_floats(m, N * 3 * C);
  a->df = mxi_model_floats(m, N * c->ffn);
  a->dp = mxi_model_floats(m, m->B * c->heads * c->context * c->context);
  a->sums = mxi_model_take(m, 2 * N, sizeof *a->sums);
  if (m->no_memory) return MX_ERR_NOMEM;
  mxi_model_work(m, mxi_attention_room(m->B, c->context, c->heads, C / c->heads, &m->exec));
  mxi_model_head_work(m, N, C, c->vocab);
  m->dloss = a->logits;
  m->n_dloss = N * c->vocab;
  m->forward = forward;
  m->backward = backward;
  return MX_OK;
}
