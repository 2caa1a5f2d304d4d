/* Training: layers against central differences in binary64, runs against states that were computed in binary64 elsewhere, optimisers by hand. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/ablate.h"
#include "train/layers/layers.h"
#include "train/optim/optim.h"

/* ---- layers ---- */

enum { N = 6, T = 3, C = 8, H = 2, V = 7, MOST = 4096 };

/* sum of out * weight, in binary64, of inputs in binary64. */
typedef double scalar(const double *in);

static double weight[MOST];
static float weight32[MOST];

static void draw(float *x, size_t n, uint64_t seed) { mx_data_fill(x, 1, n, &(mx_data){0}, seed); }

static void draw_weight(size_t n) {
  draw(weight32, n, 99);
  for (size_t i = 0; i < n; i++) weight[i] = (double)weight32[i];
}

/* got is the gradient by the layer, of inputs in [0, n). Its norm of the difference over the norm is to be below 1e-6. */
static void hold(const char *what, scalar *f, const float *in, size_t all, const float *got, size_t from, size_t n) {
  static double x[MOST];
  for (size_t i = 0; i < all; i++) x[i] = (double)in[i];
  double off = 0, norm = 0;
  for (size_t i = from; i < from + n; i++) {
    const double at = x[i], h = 1e-5;
    x[i] = at + h;
    const double up = f(x);
    x[i] = at - h;
    const double down = f(x);
    x[i] = at;
    const double want = (up - down) / (2 * h), e = (double)got[i - from] - want;
    off += e * e;
    norm += want * want;
  }
  ck_assert_msg(norm > 0 && sqrt(off / norm) < 1e-6, "%s: relative difference %g", what, sqrt(off / norm));
}

/* in: x [N][C], gain [C]. */
static double rmsnorm(const double *in) {
  double sum = 0;
  for (int n = 0; n < N; n++) {
    double squares = 0;
    for (int c = 0; c < C; c++) squares += in[n * C + c] * in[n * C + c];
    for (int c = 0; c < C; c++) sum += weight[n * C + c] * in[n * C + c] / sqrt(squares / C + 1e-5) * in[N * C + c];
  }
  return sum;
}

START_TEST(rmsnorm_by_differences) {
  static float in[N * C + C], out[N * C], rstd[N], dx[N * C], dgain[C], room[N * C];
  double sums[N];
  draw(in, N * C + C, 1);
  draw_weight(N * C);
  memset(dx, 0, sizeof dx), memset(dgain, 0, sizeof dgain);
  ck_assert_int_eq(mxi_rmsnorm_forward(out, rstd, in, in + N * C, N, C, 1e-5, NULL), MX_OK);
  ck_assert_int_eq(mxi_rmsnorm_backward(dx, dgain, weight32, in, rstd, in + N * C, N, C, sums, room, NULL), MX_OK);
  hold("rmsnorm, x", rmsnorm, in, N * C + C, dx, 0, N * C);
  hold("rmsnorm, gain", rmsnorm, in, N * C + C, dgain, N * C, C);
}
END_TEST

/* in: x [N][C], gain [C], bias [C]. */
static double layernorm(const double *in) {
  double sum = 0;
  for (int n = 0; n < N; n++) {
    double mean = 0, squares = 0;
    for (int c = 0; c < C; c++) mean += in[n * C + c] / C;
    for (int c = 0; c < C; c++) squares += (in[n * C + c] - mean) * (in[n * C + c] - mean) / C;
    for (int c = 0; c < C; c++) sum += weight[n * C + c] * ((in[n * C + c] - mean) / sqrt(squares + 1e-5) * in[N * C + c] + in[N * C + C + c]);
  }
  return sum;
}

START_TEST(layernorm_by_differences) {
  static float in[N * C + 2 * C], out[N * C], mean[N], rstd[N], dx[N * C], dgain[C], dbias[C], room[N * C];
  double sums[2 * N];
  draw(in, N * C + 2 * C, 2);
  draw_weight(N * C);
  memset(dx, 0, sizeof dx), memset(dgain, 0, sizeof dgain), memset(dbias, 0, sizeof dbias);
  const float *gain = in + N * C, *bias = gain + C;
  ck_assert_int_eq(mxi_layernorm_forward(out, mean, rstd, in, gain, bias, N, C, 1e-5, sums, NULL), MX_OK);
  ck_assert_int_eq(mxi_layernorm_backward(dx, dgain, dbias, weight32, in, mean, rstd, gain, N, C, sums, room, NULL), MX_OK);
  hold("layernorm, x", layernorm, in, N * C + 2 * C, dx, 0, N * C);
  hold("layernorm, gain", layernorm, in, N * C + 2 * C, dgain, N * C, C);
  hold("layernorm, bias", layernorm, in, N * C + 2 * C, dbias, N * C + C, C);
}
END_TEST

/* in: q, k, v [N][C] of N / T sequences, H heads. */
static double attention(const double *in) {
  const double *q = in, *k = q + N * C, *v = k + N * C;
  const int D = C / H;
  double sum = 0;
  for (int b = 0; b < N / T; b++)
    for (int h = 0; h < H; h++)
      for (int t = 0; t < T; t++) {
        double e[T], all = 0;
        for (int s = 0; s <= t; s++) {
          double dot = 0;
          for (int d = 0; d < D; d++) dot += q[(b * T + t) * C + h * D + d] * k[(b * T + s) * C + h * D + d];
          all += e[s] = exp(dot / sqrt(D));
        }
        for (int s = 0; s <= t; s++)
          for (int d = 0; d < D; d++) sum += weight[(b * T + t) * C + h * D + d] * e[s] / all * v[(b * T + s) * C + h * D + d];
      }
  return sum;
}

START_TEST(attention_by_differences) {
  enum { B = N / T };
  static float in[3 * N * C], out[N * C], p[B * H * T * T], dp[B * H * T * T], d[3 * N * C];
  draw(in, 3 * N * C, 3);
  draw_weight(N * C);
  void *room = malloc(mxi_attention_room(B, T, H, C / H, NULL) + 1);
  const float *q = in, *k = q + N * C, *v = k + N * C;
  ck_assert_int_eq(mxi_attention_forward(out, C, p, q, k, v, C, B, T, H, C / H, room, NULL), MX_OK);
  ck_assert_int_eq(mxi_attention_backward(d, d + N * C, d + 2 * N * C, dp, weight32, C, p, q, k, v, C, B, T, H, C / H, room, NULL), MX_OK);
  hold("attention, q", attention, in, 3 * N * C, d, 0, N * C);
  hold("attention, k", attention, in, 3 * N * C, d + N * C, N * C, N * C);
  hold("attention, v", attention, in, 3 * N * C, d + 2 * N * C, 2 * N * C, N * C);
  free(room);
}
END_TEST

static double rotary(const double *in) {
  const int D = C / H;
  double sum = 0;
  for (int n = 0; n < N; n++)
    for (int h = 0; h < H; h++)
      for (int i = 0; i < D / 2; i++) {
        const double angle = n % T * pow(10000, -2.0 * i / D), a = in[n * C + h * D + i], b = in[n * C + h * D + i + D / 2];
        sum += weight[n * C + h * D + i] * (a * cos(angle) - b * sin(angle)) +
               weight[n * C + h * D + i + D / 2] * (b * cos(angle) + a * sin(angle));
      }
  return sum;
}

START_TEST(rotary_by_differences) {
  static float in[N * C], c[T * C], s[T * C], d[N * C], back[N * C];
  draw(in, N * C, 4);
  draw_weight(N * C);
  mxi_rotary_tables(c, s, T, C / H, 10000);
  memcpy(d, weight32, sizeof d);
  mxi_rotary(d, c, s, N, T, C, C / H, 1, NULL);
  hold("rotary", rotary, in, N * C, d, 0, N * C);
  memcpy(back, in, sizeof back);
  mxi_rotary(back, c, s, N, T, C, C / H, 0, NULL);
  mxi_rotary(back, c, s, N, T, C, C / H, 1, NULL);
  for (int i = 0; i < N * C; i++) ck_assert_float_eq_tol(back[i], in[i], 1e-6f);
}
END_TEST

START_TEST(rotary_tables_are_the_rounded_values) {
  enum { LONG = 500, D = 64 };
  static float c[LONG * D / 2], s[LONG * D / 2];
  mxi_rotary_tables(c, s, LONG, D, 10000);
  for (int t = 0; t < LONG; t++)
    for (int i = 0; i < D / 2; i++) {
      const double angle = t * pow(10000, -2.0 * i / D);
      ck_assert_msg(fabs((double)c[t * D / 2 + i] - cos(angle)) <= 0x1.01p-25 && fabs((double)s[t * D / 2 + i] - sin(angle)) <= 0x1.01p-25,
                    "position %d, pair %d", t, i);
    }
}
END_TEST

static int32_t targets[N];

static double cross_entropy(const double *in) {
  double sum = 0;
  for (int n = 0; n < N; n++) {
    double all = 0;
    for (int v = 0; v < V; v++) all += exp(in[n * V + v]);
    sum += log(all) - in[n * V + targets[n]];
  }
  return sum / N;
}

START_TEST(cross_entropy_by_differences) {
  static float in[N * V], d[N * V];
  double sums[N], loss, x[N * V];
  draw(in, N * V, 5);
  for (int i = 0; i < N; i++) targets[i] = i % V;
  for (int i = 0; i < N * V; i++) x[i] = (double)in[i];
  ck_assert_int_eq(mxi_cross_entropy(&loss, d, in, targets, N, V, sums, NULL), MX_OK);
  ck_assert_double_eq_tol(loss, cross_entropy(x), 1e-7);
  hold("cross-entropy", cross_entropy, in, N * V, d, 0, N * V);
}
END_TEST

/* ---- optimisers ---- */

static mxi_param one_param(size_t n) { return (mxi_param){.name = "p", .rows = n, .cols = 1, .n_dims = 1}; }

/* The worked example of arXiv 2502.17055's authors' code: gradients [3,4], [30,-40], [3,4], [3,4], lr 1e-3, a reset at step 3. */
static void stablespam(int order, const double want[4][2]) {
  float w[2] = {0, 0}, g[2], m1[2] = {0}, v[2] = {0};
  double clip = 0, norm[2] = {0};
  mxi_param p = one_param(2);
  mxi_model m = {.params = &p, .n_params = 1, .n_values = 2, .w = w, .g = g};
  mxi_optim o = {
      .config = {MXI_STABLESPAM, 1e-3, .9, .999, 1e-8, 0, 0, 0, .999, .7, .9, 3, order}, .m = m1, .v = v, .clip = &clip, .norm = norm};
  static const float gradients[4][2] = {{3, 4}, {30, -40}, {3, 4}, {3, 4}};
  for (int s = 0; s < 4; s++) {
    memcpy(g, gradients[s], sizeof g);
    mxi_optim_step(&o, &m, 1e-3);
    for (int i = 0; i < 2; i++)
      ck_assert_msg(fabs((double)w[i] - want[s][i]) < 1e-8, "order %d, step %d: %.9g, expected %.9g", order, s + 1, (double)w[i], want[s][i]);
  }
}

START_TEST(stablespam_by_hand) {
  stablespam(MXI_RESET_OFFICIAL,
             (const double[4][2]){{-.001, -.001}, {-.00199592, -.00099962}, {-.00353466, -.00148375}, {-.00427879, -.00222789}});
  stablespam(MXI_RESET_GRAPHCORE,
             (const double[4][2]){{-.001, -.001}, {-.00199592, -.00099962}, {-.00299592, -.00199962}, {-.00397777, -.00298147}});
}
END_TEST

START_TEST(adamw_by_hand) {
  float w[2] = {1, -2}, g[2] = {.5f, -.25f}, m1[2] = {0}, v[2] = {0};
  mxi_param p = {.name = "p", .rows = 1, .cols = 2, .n_dims = 2};
  mxi_model m = {.params = &p, .n_params = 1, .n_values = 2, .w = w, .g = g};
  mxi_optim o = {.config = {.kind = MXI_ADAMW, .beta1 = .9, .beta2 = .95, .eps = 1e-8, .weight_decay = .1}, .m = m1, .v = v};
  mxi_optim_step(&o, &m, .01); /* the first step is lr in the gradient's direction */
  ck_assert_double_eq_tol((double)w[0], 1 * (1 - .001) - .01, 1e-6);
  ck_assert_double_eq_tol((double)w[1], -2 * (1 - .001) + .01, 1e-6);
}
END_TEST

START_TEST(schedules) {
  const mxi_schedule linear = {MXI_LINEAR, 100, 0, 1e-6}, cosine = {MXI_COSINE, 10, 110, 1e-4}, constant = {MXI_CONSTANT, 4, 0, 0};
  ck_assert_double_eq_tol(mxi_schedule_rate(&linear, .002, 50, 1000), .002 * .5 * .95 + 1e-6, 1e-15);
  ck_assert_double_eq_tol(mxi_schedule_rate(&linear, .002, 500, 1000), .002 * .5 + 1e-6, 1e-15);
  ck_assert_double_eq_tol(mxi_schedule_rate(&cosine, 1e-3, 5, 1000), 5e-4, 1e-15);
  ck_assert_double_eq_tol(mxi_schedule_rate(&cosine, 1e-3, 60, 1000), 5.5e-4, 1e-15);
  ck_assert_double_eq_tol(mxi_schedule_rate(&cosine, 1e-3, 85, 1000), 1e-4 + .5 * (1 + cos(M_PI * .75)) * 9e-4, 1e-15);
  ck_assert_double_eq_tol(mxi_schedule_rate(&cosine, 1e-3, 500, 1000), 1e-4, 1e-15);
  ck_assert_double_eq_tol(mxi_schedule_rate(&constant, 1, 2, 9), .5, 1e-15);
  ck_assert_double_eq(mxi_schedule_rate(&constant, 1, 8, 9), 1);
}
END_TEST

int main(void) {
  Suite *s = suite_create("train");
  TCase *t = tcase_create("train");
  tcase_add_test(t, rmsnorm_by_differences);
  tcase_add_test(t, layernorm_by_differences);
  tcase_add_test(t, attention_by_differences);
  tcase_add_test(t, rotary_by_differences);
  tcase_add_test(t, rotary_tables_are_the_rounded_values);
  tcase_add_test(t, cross_entropy_by_differences);
  tcase_add_test(t, stablespam_by_hand);
  tcase_add_test(t, adamw_by_hand);
  tcase_add_test(t, schedules);
  suite_add_tcase(s, t);
  return run_suite(s);
}
