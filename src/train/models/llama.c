/* Runs Llama: RMSNorm, rotary positions, SwiGLU, no biases. Parameters have Hugging Face's names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/layers/layers.h"
#include "train/models/model.h"

static const double EPS = 1e-5, ROTARY_BASE = 10000;

typedef struct block {
  size_t norm1, norm2;               /* parameters */
  size_t q, k, v, o, gate, up, down; /* linears */
  float *in, *n1, *rstd1, *qx, *kx, *vx, *p, *mix, *mid, *n2, *rstd2, *gx, *ux, *sx,
      *ax; /* activations: [N][C], rstd [N], p [B H][T][T], gx .. [N][F] */
} block;

typedef struct llama {
  size_t N, embed, norm, head; /* positions; parameters */
  block *blocks;
  float *out, *last, *rstd, *logits;              /* [N][C], [N][C], [N], [N][V] */
  float *d, *d2, *d3, *d4, *df, *df2, *dp, *room; /* gradients: [N][C], [N][F], [B H][T][T]; scratch [N][C] */
  float *cosine, *sine;
  double *sums;
} llama;

/* Shows a part of block i. */
static void show(const mxi_model *m, mxi_shown what, const float *x, size_t n, size_t i, const char *part) {
  mxi_model_show(m, what, x, n, "model.layers.%zu.%s", i, part);
}

static mx_status forward(mxi_model *m) {
  llama *a = m->own;
  const mxi_model_config *c = &m->config;
  const size_t N = a->N, C = c->width, T = c->context, H = c->heads, F = c->ffn, D = C / H;
  const mx_exec *e = &m->exec;
  float *x = a->blocks[0].in;
  mxi_embed_forward(x, m->batch.tokens, m->w + m->params[a->embed].offset, NULL, N, T, C, e);
  mxi_model_show(m, MXI_OUTPUT, x, N * C, "model.embed_tokens");
  mx_status s = MX_OK;
  for (size_t i = 0; i < c->layers && !s; i++) {
    block *b = &a->blocks[i];
    float *next = i + 1 < c->layers ? a->blocks[i + 1].in : a->out;
    s = mxi_rmsnorm_forward(b->n1, b->rstd1, b->in, m->w + m->params[b->norm1].offset, N, C, EPS, e);
    if (!s) show(m, MXI_OUTPUT, b->n1, N * C, i, "input_layernorm");
    if (!s) s = mxi_model_linear_forward(m, b->q, b->qx, b->n1);
    if (!s) s = mxi_model_linear_forward(m, b->k, b->kx, b->n1);
    if (!s) s = mxi_model_linear_forward(m, b->v, b->vx, b->n1);
    if (s) return s;
    mxi_rotary(b->qx, a->cosine, a->sine, N, T, C, D, 0, e);
    mxi_rotary(b->kx, a->cosine, a->sine, N, T, C, D, 0, e);
    show(m, MXI_OUTPUT, b->qx, N * C, i, "self_attn.q_rotary");
    show(m, MXI_OUTPUT, b->kx, N * C, i, "self_attn.k_rotary");
    s = mxi_attention_forward(b->mix, C, b->p, b->qx, b->kx, b->vx, C, m->B, T, H, D, m->work, e);
    if (!s) show(m, MXI_OUTPUT, b->mix, N * C, i, "self_attn.attention");
    if (!s) s = mxi_model_linear_forward(m, b->o, b->mid, b->mix);
    if (s) return s;
    mxi_add(b->mid, b->in, N * C, e);
    show(m, MXI_OUTPUT, b->mid, N * C, i, "self_attn.residual");
    s = mxi_rmsnorm_forward(b->n2, b->rstd2, b->mid, m->w + m->params[b->norm2].offset, N, C, EPS, e);
    if (!s) show(m, MXI_OUTPUT, b->n2, N * C, i, "post_attention_layernorm");
    if (!s) s = mxi_model_linear_forward(m, b->gate, b->gx, b->n2);
    if (!s) s = mxi_model_linear_forward(m, b->up, b->ux, b->n2);
    if (!s) s = mx_math_array(b->sx, b->gx, N * F, MX_MATH_SILU, e);
    if (s) return s;
    mxi_multiply(b->ax, b->sx, b->ux, N * F, e);
    show(m, MXI_OUTPUT, b->sx, N * F, i, "mlp.silu");
    show(m, MXI_OUTPUT, b->ax, N * F, i, "mlp.product");
    s = mxi_model_linear_forward(m, b->down, next, b->ax);
    if (s) return s;
    mxi_add(next, b->mid, N * C, e);
    show(m, MXI_OUTPUT, next, N * C, i, "mlp.residual");
  }
  if (!s) s = mxi_rmsnorm_forward(a->last, a->rstd, a->out, m->w + m->params[a->norm].offset, N, C, EPS, e);
  if (!s) mxi_model_show(m, MXI_OUTPUT, a->last, N * C, "model.norm");
  if (!s) s = mxi_model_head(m, a->logits, a->last, a->head, N);
  if (!s) mxi_model_show(m, MXI_OUTPUT, a->logits, N * c->vocab, "lm_head");
  return s ? s : mxi_cross_entropy(&m->loss, a->logits, a->logits, m->batch.target, mxi_model_counted(m, N), c->vocab, a->sums, e);
}

/* d is the gradient of the residual stream throughout. */
static mx_status backward(mxi_model *m) {
  llama *a = m->own;
  const mxi_model_config *c = &m->config;
  const size_t N = a->N, C = c->width, T = c->context, H = c->heads, F = c->ffn, D = C / H;
  const mx_exec *e = &m->exec;
  float *d = a->d;
  mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->logits, N * c->vocab, "lm_head");
  mx_status s = mxi_model_head_backward(m, a->d2, a->logits, a->last, a->head, N);
  if (!s) mxi_model_show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, "model.norm");
  memset(d, 0, N * C * sizeof *d);
  if (!s)
    s = mxi_rmsnorm_backward(d, m->g + m->params[a->norm].offset, a->d2, a->out, a->rstd, m->w + m->params[a->norm].offset, N, C, a->sums,
                             a->room, e);
  for (size_t i = c->layers; i-- > 0 && !s;) {
    block *b = &a->blocks[i];
    show(m, MXI_OUTPUT_GRADIENT, d, N * C, i, "mlp.residual");
    s = mxi_model_linear_backward(m, b->down, a->df, 0, d, b->ax);
    if (s) return s;
    show(m, MXI_OUTPUT_GRADIENT, a->df, N * F, i, "mlp.product");
    mxi_multiply(a->df2, a->df, b->sx, N * F, e); /* to up */
    mxi_multiply(a->df, a->df, b->ux, N * F, e);
    show(m, MXI_OUTPUT_GRADIENT, a->df, N * F, i, "mlp.silu");
    s = mx_math_gradient(a->df, b->gx, a->df, N * F, MX_MATH_SILU, e); /* to gate */
    if (!s) s = mxi_model_linear_backward(m, b->gate, a->d2, 0, a->df, b->n2);
    if (!s) s = mxi_model_linear_backward(m, b->up, a->d2, 1, a->df2, b->n2);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, i, "post_attention_layernorm");
    if (!s)
      s = mxi_rmsnorm_backward(d, m->g + m->params[b->norm2].offset, a->d2, b->mid, b->rstd2, m->w + m->params[b->norm2].offset, N, C, a->sums,
                               a->room, e);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, d, N * C, i, "self_attn.residual");
    if (!s) s = mxi_model_linear_backward(m, b->o, a->d2, 0, d, b->mix);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, i, "self_attn.attention");
    float *dq = a->d3, *dk = a->d4, *dv = a->room;
    if (!s) s = mxi_attention_backward(dq, dk, dv, a->dp, a->d2, C, b->p, b->qx, b->kx, b->vx, C, m->B, T, H, D, m->work, e);
    if (s) return s;
    show(m, MXI_OUTPUT_GRADIENT, dq, N * C, i, "self_attn.q_rotary");
    show(m, MXI_OUTPUT_GRADIENT, dk, N * C, i, "self_attn.k_rotary");
    mxi_rotary(dq, a->cosine, a->sine, N, T, C, D, 1, e);
    mxi_rotary(dk, a->cosine, a->sine, N, T, C, D, 1, e);
    s = mxi_model_linear_backward(m, b->q, a->d2, 0, dq, b->n1);
    if (!s) s = mxi_model_linear_backward(m, b->k, a->d2, 1, dk, b->n1);
    if (!s) s = mxi_model_linear_backward(m, b->v, a->d2, 1, dv, b->n1);
    if (!s) show(m, MXI_OUTPUT_GRADIENT, a->d2, N * C, i, "input_layernorm");
    if (!s)
      s = mxi_rmsnorm_backward(d, m->g + m->params[b->norm1].offset, a->d2, b->in, b->rstd1, m->w + m->params[b->norm1].offset, N, C, a->sums,
                               a->room, e);
  }
  if (!s) mxi_model_show(m, MXI_OUTPUT_GRADIENT, d, N * C, "model.embed_tokens");
  if (!s) mxi_embed_backward(m->g + m->params[a->embed].offset, NULL, d, m->batch.tokens, N, T, C, e);
  return s;
}

static void block_new(mxi_model *m, llama *a, size_t i) {
  const mxi_model_config *c = &m->config;
  const size_t N = a->N, C = c->width, F = c->ffn;
  const double small = .02, out = .02 / sqrt(2 * (double)c->layers);
  block *b = &a->blocks[i];
  const char *const of = "model.layers.%zu.%s.weight";
  b->norm1 = mxi_model_param(m, 0, 1, C, 0, of, i, "input_layernorm");
  const size_t q = mxi_model_param(m, small, 0, C, C, of, i, "self_attn.q_proj"),
               k = mxi_model_param(m, small, 0, C, C, of, i, "self_attn.k_proj"),
               v = mxi_model_param(m, small, 0, C, C, of, i, "self_attn.v_proj"),
               o = mxi_model_param(m, out, 0, C, C, of, i, "self_attn.o_proj");
  b->norm2 = mxi_model_param(m, 0, 1, C, 0, of, i, "post_attention_layernorm");
  const size_t gate = mxi_model_param(m, small, 0, F, C, of, i, "mlp.gate_proj"), up = mxi_model_param(m, small, 0, F, C, of, i, "mlp.up_proj"),
               down = mxi_model_param(m, out, 0, C, F, of, i, "mlp.down_proj");
  b->q = mxi_model_linear_add(m, N, C, C, (int)q, -1);
  b->k = mxi_model_linear_add(m, N, C, C, (int)k, -1);
  b->v = mxi_model_linear_add(m, N, C, C, (int)v, -1);
  b->o = mxi_model_linear_add(m, N, C, C, (int)o, -1);
  b->gate = mxi_model_linear_add(m, N, C, F, (int)gate, -1);
  b->up = mxi_model_linear_add(m, N, C, F, (int)up, -1);
  b->down = mxi_model_linear_add(m, N, F, C, (int)down, -1);
  if (c->smooth && !m->no_memory) m->linears[b->down].smooth = mxi_model_floats(m, mxi_smooth_floats(&m->linears[b->down]));
  float **of_width[] = {&b->in, &b->n1, &b->qx, &b->kx, &b->vx, &b->mix, &b->mid, &b->n2}, **of_ffn[] = {&b->gx, &b->ux, &b->sx, &b->ax};
  for (size_t k2 = 0; k2 < sizeof of_width / sizeof *of_width; k2++) *of_width[k2] = mxi_model_floats(m, N * C);
  for (size_t k2 = 0; k2 < sizeof of_ffn / sizeof *of_ffn; k2++) *of_ffn[k2] = mxi_model_floats(m, N * F);
  b->rstd1 = mxi_model_floats(m, N);
  b->rstd2 = mxi_model_floats(m, N);
  b->p = mxi_model_floats(m, m->B * c->heads * c->context * c->context);
}

mx_status mxi_llama_new(mxi_model *m) {
  const mxi_model_config *c = &m->config;
  llama *a = m->own = calloc(1, sizeof *a);
  if (!a) return MX_ERR_NOMEM;
  const size_t N = a->N = m->B * c->context, C = c->width;
  a->blocks = mxi_model_take(m, c->layers, sizeof *a->blocks);
  a->embed = mxi_model_param(m, .02, 0, c->vocab, C, "model.embed_tokens.weight");
  for (size_t i = 0; i < c->layers && a->blocks; i++) block_new(m, a, i), mxi_model_block_end(m);
  a->norm = mxi_model_param(m, 0, 1, C, 0, "model.norm.weight");
  a->head = c->tied ? a->embed : mxi_model_param(m, .02, 0, c->vocab, C, "lm_head.weight");
  float **of_width[] = {&a->out, &a->last, &a->d, &a->d2, &a->d3, &a->d4, &a->room}, **of_ffn[] = {&a->df, &a->df2};
  for (size_t i = 0; i < sizeof of_width / sizeof *of_width; i++) *of_width[i] = mxi_model_floats(m, N * C);
  for (size_t i = 0; i < 2; i++) *of_ffn[i] = mxi_model_floats(m, N * c->ffn);
  a->rstd = mxi_model_floats(m, N);
  a->logits = mxi_model_floats(m, N * c->vocab);
  a->dp = mxi_model_floats(m, m->B * c->heads * c->context * c->context);
  a->sums = mxi_model_take(m, 2 * N, sizeof *a->sums);
  a->cosine = mxi_model_floats(m, c->context * (C / c->heads / 2));
  a->sine = mxi_model_floats(m, c->context * (C / c->heads / 2));
  if (m->no_memory) return MX_ERR_NOMEM;
  mxi_rotary_tables(a->cosine, a->sine, c->context, C / c->heads, ROTARY_BASE);
  mxi_model_work(m, mxi_attention_room(m->B, c->context, c->heads, C / c->heads, &m->exec));
  mxi_model_head_work(m, N, C, c->vocab);
  m->dloss = a->logits;
  m->n_dloss = N * c->vocab;
  m->forward = forward;
  m->backward = backward;
  return MX_OK;
}
