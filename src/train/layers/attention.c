/* Computes causal attention, every head of every sequence as one product of the batch. */
#include <math.h>

#include "mxgold/dense.h"
#include "train/layers/layers.h"

/* The products of all (sequence b, head h). Operands lie as [B][T][heads of D], or as [B][H][T][T]. */
typedef struct shape {
  size_t B, T, H, D, ld;
} shape;

typedef enum place { HEADS, HEADS_TURNED, SCORES, SCORES_TURNED } place;

static void put_a(mx_dense *g, const float *x, place p, size_t ld, const shape *s) {
  const int scores = p >= SCORES, turned = p == HEADS_TURNED || p == SCORES_TURNED;
  const size_t row = scores ? s->T : ld;
  g->a = x;
  g->a_row = turned ? 1 : row;
  g->a_col = turned ? row : 1;
  g->a_batch[0] = scores ? s->H * s->T * s->T : s->T * ld;
  g->a_batch[1] = scores ? s->T * s->T : s->D;
}

static void put_b(mx_dense *g, const float *x, place p, size_t ld, const shape *s) {
  mx_dense t = {0};
  put_a(&t, x, p, ld, s);
  g->b = t.a, g->b_row = t.a_row, g->b_col = t.a_col;
  g->b_batch[0] = t.a_batch[0], g->b_batch[1] = t.a_batch[1];
}

static mx_dense to_scores(float *d, const float *a, size_t lda, const float *b, size_t ldb, const shape *s) {
  mx_dense g = {.M = s->T, .N = s->T, .K = s->D, .d = d, .ldd = s->T, .part = MX_DENSE_OUT_LOWER, .batch = {s->B, s->H}};
  g.d_batch[0] = s->H * s->T * s->T, g.d_batch[1] = s->T * s->T;
  put_a(&g, a, HEADS, lda, s);
  put_b(&g, b, HEADS, ldb, s);
  return g;
}

/* With `turned` the columns of the scores are the rows of the product. */
static mx_dense from_scores(float *d, size_t ldd, const float *p, int turned, const float *x, size_t ldx, const shape *s) {
  mx_dense g = {
      .M = s->T, .N = s->D, .K = s->T, .d = d, .ldd = ldd, .part = turned ? MX_DENSE_A_UPPER : MX_DENSE_A_LOWER, .batch = {s->B, s->H}};
  g.d_batch[0] = s->T * ldd, g.d_batch[1] = s->D;
  put_a(&g, p, turned ? SCORES_TURNED : SCORES, 0, s);
  put_b(&g, x, HEADS_TURNED, ldx, s);
  return g;
}

size_t mxi_attention_room(size_t B, size_t T, size_t H, size_t D, const mx_exec *exec) {
  const shape s = {B, T, H, D, 0};
  const mx_dense a = to_scores(NULL, NULL, H * D, NULL, H * D, &s), b = from_scores(NULL, H * D, NULL, 0, NULL, H * D, &s),
                 c = from_scores(NULL, H * D, NULL, 1, NULL, H * D, &s);
  const size_t room[] = {mx_dense_workspace(&a, exec), mx_dense_workspace(&b, exec), mx_dense_workspace(&c, exec)};
  size_t most = 0;
  for (int i = 0; i < 3; i++) most = room[i] > most ? room[i] : most;
  return most;
}

static float scale_of(size_t D) { return (float)(1 / sqrt((double)D)); }

mx_status mxi_attention_forward(float *out, size_t ldo, float *p, const float *q, const float *k, const float *v, size_t ld, size_t B, size_t T,
                                size_t H, size_t D, void *room, const mx_exec *exec) {
  const shape s = {B, T, H, D, ld};
  const mx_dense scores = to_scores(p, q, ld, k, ld, &s), mix = from_scores(out, ldo, p, 0, v, ld, &s);
  mx_status status = mx_dense_gemm(&scores, room, exec, NULL);
  if (!status) status = mx_math_softmax(p, T, NULL, p, T, B * H * T, T, scale_of(D), T, exec);
  if (!status) status = mx_dense_gemm(&mix, room, exec, NULL);
  return status;
}

mx_status mxi_attention_backward(float *dq, float *dk, float *dv, float *dp, const float *dout, size_t ldo, const float *p, const float *q,
                                 const float *k, const float *v, size_t ld, size_t B, size_t T, size_t H, size_t D, void *room,
                                 const mx_exec *exec) {
  const shape s = {B, T, H, D, ld};
  const mx_dense to_v = from_scores(dv, ld, p, 1, dout, ldo, &s), to_p = to_scores(dp, dout, ldo, v, ld, &s);
  const mx_dense to_q = from_scores(dq, ld, dp, 0, k, ld, &s), to_k = from_scores(dk, ld, dp, 1, q, ld, &s);
  mx_status status = mx_dense_gemm(&to_v, room, exec, NULL);
  if (!status) status = mx_dense_gemm(&to_p, room, exec, NULL);
  if (!status) status = mx_math_softmax_backward(dp, T, p, T, dp, T, B * H * T, T, scale_of(D), T, exec);
  if (!status) status = mx_dense_gemm(&to_q, room, exec, NULL);
  if (!status) status = mx_dense_gemm(&to_k, room, exec, NULL);
  return status;
}
