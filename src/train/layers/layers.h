/* Declares the layers of a model on plain float32 arrays, each a pair: x_forward, x_backward. Nothing is allocated; shapes stand beside each
 * argument.
 *
 * N is the number of positions of a batch (B sequences of T), C a width. Every sum has one order, and every function is of math.h or dense.h or is made
 * of +, -, *, / and sqrt alone, so that bits are the same for any number of threads and any ISA. */
#ifndef TRAIN_LAYERS_H
#define TRAIN_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "mxgold/math.h"

/** out [N][C] = table [V][C] row token[n]; with places (positions, [T][C]) row n mod T of it is added. */
void mxi_embed_forward(float *out, const int32_t *token, const float *table, const float *places, size_t N, size_t T, size_t C,
                       const mx_exec *exec);
/** dtable, dplaces += the rows of dout that came from them, n ascending. */
void mxi_embed_backward(float *dtable, float *dplaces, const float *dout, const int32_t *token, size_t N, size_t T, size_t C,
                        const mx_exec *exec);

/** out = x * rstd * gain, rstd [N] = rnd_f32(1 / sqrt(mean(x^2) + eps)), the mean in binary64. */
mx_status mxi_rmsnorm_forward(float *out, float *rstd, const float *x, const float *gain, size_t N, size_t C, double eps, const mx_exec *exec);
/** dx += ..., dgain [C] += ...; sums [N] and room [N][C] are scratch. */
mx_status mxi_rmsnorm_backward(float *dx, float *dgain, const float *dout, const float *x, const float *rstd, const float *gain, size_t N,
                               size_t C, double *sums, float *room, const mx_exec *exec);
/** out = (x - mean) * rstd * gain + bias; mean, rstd [N]; bias NULL: none. sums [N] is scratch. */
mx_status mxi_layernorm_forward(float *out, float *mean, float *rstd, const float *x, const float *gain, const float *bias, size_t N, size_t C,
                                double eps, double *sums, const mx_exec *exec);
/** dx += ..., dgain, dbias [C] += ...; sums [2 N] and room [N][C] are scratch. dbias NULL: none. */
mx_status mxi_layernorm_backward(float *dx, float *dgain, float *dbias, const float *dout, const float *x, const float *mean, const float *rstd,
                                 const float *gain, size_t N, size_t C, double *sums, float *room, const mx_exec *exec);

/** Tables [T][D / 2] of the rotary embedding: angle t * base^(-2 i / D), computed in binary64, rounded once. */
void mxi_rotary_tables(float *cosine, float *sine, size_t T, size_t D, double base);
/** In place: each head of x [N][C], D wide, first half and second half are rotated (rotate-half). back: by the negative angle. */
void mxi_rotary(float *x, const float *cosine, const float *sine, size_t N, size_t T, size_t C, size_t D, int back, const mx_exec *exec);

/** Causal attention of H heads of width D: out [N][ldo], q, k, v [N][ld], probabilities [B * H][T][T] kept for the way back.
 *  room: mxi_attention_room() bytes. */
mx_status mxi_attention_forward(float *out, size_t ldo, float *p, const float *q, const float *k, const float *v, size_t ld, size_t B, size_t T,
                                size_t H, size_t D, void *room, const mx_exec *exec);
/** dq, dk, dv [N][ld] are written; dp [B * H][T][T] is scratch. */
mx_status mxi_attention_backward(float *dq, float *dk, float *dv, float *dp, const float *dout, size_t ldo, const float *p, const float *q,
                                 const float *k, const float *v, size_t ld, size_t B, size_t T, size_t H, size_t D, void *room,
                                 const mx_exec *exec);
size_t mxi_attention_room(size_t B, size_t T, size_t H, size_t D, const mx_exec *exec);

/** out = a * b, and its two gradients; n numbers each. */
void mxi_multiply(float *out, const float *a, const float *b, size_t n, const mx_exec *exec);
/** x += y. */
void mxi_add(float *x, const float *y, size_t n, const mx_exec *exec);

/** h = relu(z), or relu(z + before); dz = dh where h is above 0, else 0 (dz may be dh). */
void mxi_relu_forward(float *h, const float *z, const float *before, size_t n, const mx_exec *exec);
void mxi_relu_backward(float *dz, const float *dh, const float *h, size_t n, const mx_exec *exec);

/** Mean cross-entropy in nats of logits [N][V] against target [N]; dlogits (NULL: not wanted; may be logits) its gradient. log_sum [N] is scratch. */
mx_status mxi_cross_entropy(double *loss, float *dlogits, const float *logits, const int32_t *target, size_t N, size_t V, double *log_sum,
                            const mx_exec *exec);
/** Rows of logits [N][V] whose largest value, the first among equals, is the target's. */
size_t mxi_count_hits(const float *logits, const int32_t *target, size_t N, size_t V);
/** Mean squared error over n numbers, each term and their sum in binary64 with i ascending, and its gradient (NULL: not wanted). */
void mxi_squared_error(double *loss, float *dout, const float *out, const float *target, size_t n);

#endif
