/* Tests training: layers against central differences in binary64, runs against states computed elsewhere in binary64, and optimisers by
 * hand. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/run.h"
#include "mxgold/ablate.h"
#include "mxgold/random.h"
#include "ref/ref.h"
#include "train/layers/layers.h"
#include "train/models/model.h"
#include "train/optim/optim.h"
#include "train/run/data.h"
#include "train/run/metrics.h"
#include "train/run/threshold.h"

/* ---- layers ---- */

enum { N = 6, T = 3, C = 8, H = 2, V = 7, MOST = 4096 };

/* The sum of out * weight in binary64, as a function of inputs in binary64. */
typedef double scalar(const double *in);

static double weight[MOST];
static float weight32[MOST];

static void draw(float *x, size_t n, uint64_t seed) { mx_data_fill(x, 1, n, &(mx_data){0}, seed); }

static void draw_weight(size_t n) {
  draw(weight32, n, 99);
  for (size_t i = 0; i < n; i++) weight[i] = (double)weight32[i];
}

/* Compares the layer's gradient `got` for the inputs [from, from + n) with differences: the norm of the error over the norm must be below
 * 1e-6. */
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

/* ---- networks of rows ---- */

enum { ROWS = 6, INPUTS = 5, WIDE = 8, CLASSES = 3 };
static mxi_model *net;
static float net_x[ROWS * INPUTS], net_y[ROWS * 2];
static const int32_t net_label[ROWS] = {0, 2, 1, 1, 0, 2};

/* The loss of a network from its parameters, in the model's layout: one linear after another, W [out][in] and b [out]. */
static double network(const double *in) {
  const int kind = net->config.kind, hidden = kind == MXI_GAUSSIAN ? 0 : (int)net->config.layers;
  double loss = 0;
  for (int r = 0; r < ROWS; r++) {
    double h[WIDE], next[WIDE];
    int wide = INPUTS;
    for (int i = 0; i < INPUTS; i++) h[i] = net_x[r * INPUTS + i];
    for (int l = 0; l <= hidden; l++) {
      const mxi_param *w = &net->params[2 * l], *b = w + 1;
      for (size_t o = 0; o < w->rows; o++) {
        double z = in[b->offset + o];
        for (size_t i = 0; i < w->cols; i++) z += in[w->offset + o * w->cols + i] * h[i];
        const double act = kind == MXI_DIGITS ? fmax(z, 0) : z / (1 + exp(-z));
        next[o] = l == hidden ? z : act + (kind == MXI_DIFFUSION && l ? h[o] : 0);
      }
      wide = (int)w->rows;
      memcpy(h, next, sizeof h);
    }
    double all = 0;
    for (int o = 0; o < wide && kind == MXI_DIGITS; o++) all += exp(h[o]);
    if (kind == MXI_DIGITS) loss += (log(all) - h[net_label[r]]) / ROWS;
    for (int o = 0; o < wide && kind != MXI_DIGITS; o++) loss += (h[o] - net_y[r * wide + o]) * (h[o] - net_y[r * wide + o]) / (ROWS * wide);
  }
  return loss;
}

START_TEST(networks_by_differences) {
  static const mxi_model_kind kinds[] = {MXI_GAUSSIAN, MXI_DIGITS, MXI_DIFFUSION};
  const mxi_model_config c = {.kind = kinds[_i], .width = WIDE, .layers = 3, .context = 1, .vocab = CLASSES, .inputs = INPUTS, .act = MXI_SILU};
  mx_error err;
  double loss, x[MOST];
  ck_assert_int_eq(mxi_model_new(&net, &c, ROWS, NULL, &(mx_exec){.n_threads = 1}, &err), MX_OK);
  mxi_model_init(net, 5);
  draw(net_x, ROWS * INPUTS, 6);
  draw(net_y, ROWS * 2, 7);
  const mxi_batch batch = {.B = ROWS, .T = 1, .rows = ROWS, .target = net_label, .x = net_x, .y = net_y};
  ck_assert_int_eq(mxi_model_forward(net, &batch, 1, 0, 0, &loss, &err), MX_OK);
  ck_assert_int_eq(mxi_model_backward(net, &err), MX_OK);
  for (size_t i = 0; i < net->n_values; i++) x[i] = (double)net->w[i];
  ck_assert_double_eq_tol(loss, network(x), 1e-6);
  for (size_t i = 0; i < net->n_params; i++) {
    const mxi_param *p = &net->params[i];
    hold(p->name, network, net->w, net->n_values, net->g + p->offset, p->offset, p->rows * p->cols);
  }
  /* An evaluation of fewer rows is the mean over only these. */
  const mxi_batch part = {.B = ROWS, .T = 1, .rows = 1, .target = net_label, .x = net_x, .y = net_y};
  double one, two;
  ck_assert_int_eq(mxi_model_forward(net, &part, 1, 0, 1, &one, &err), MX_OK);
  const mxi_batch whole = {.B = ROWS, .T = 1, .rows = ROWS, .target = net_label, .x = net_x, .y = net_y};
  ck_assert_int_eq(mxi_model_forward(net, &whole, 1, 0, 1, &two, &err), MX_OK);
  ck_assert_double_eq(two, loss);
  ck_assert(one != two);
  mxi_model_free(net);
}
END_TEST

/* ---- data ---- */

/* Compares the rows of batches with the order of an epoch, by Fisher and Yates from the reference's random words. */
START_TEST(rows_are_shuffled_as_the_specification_says) {
  enum { ALL = 20, TRAINED = 16, BATCH = 5, EPOCH = TRAINED / BATCH };
  mxi_config c = {.model.kind = MXI_GAUSSIAN, .data = {.split = .8, .rows = ALL, .features = 3}, .train = {.batch = BATCH, .seed_data = 7}};
  mxi_data data;
  mx_error err;
  ck_assert_int_eq(mxi_data_open(&data, &c, NULL, NULL, &err), MX_OK);
  for (uint64_t s = 2 * EPOCH; s-- > 0;) { /* backwards, since a batch does not depend on those before it */
    uint32_t order[TRAINED];
    const uint64_t i = s / EPOCH << 24 | MXI_USE_ORDER << 4 | 14;
    const uint64_t seed = ref_random(7, MX_STREAM_TRAIN, 2 * i) | (uint64_t)ref_random(7, MX_STREAM_TRAIN, 2 * i + 1) << 32;
    for (uint32_t k = 0; k < TRAINED; k++) order[k] = k;
    for (uint32_t k = TRAINED - 1; k >= 1; k--) {
      const uint64_t word = ref_random(seed, MX_STREAM_DATA, 2 * k) + ((uint64_t)ref_random(seed, MX_STREAM_DATA, 2 * k + 1) << 32);
      const uint32_t j = (uint32_t)(word % (k + 1)), kept = order[k];
      order[k] = order[j], order[j] = kept;
    }
    const mxi_batch b = mxi_data_batch(&data, &c, s);
    for (int r = 0; r < BATCH; r++) {
      const float *row = data.table.x + 3 * order[s % EPOCH * BATCH + (uint64_t)r];
      ck_assert_mem_eq(b.x + 3 * r, row, 3 * sizeof *row);
      ck_assert_float_eq(b.y[r], data.table.y[order[s % EPOCH * BATCH + (uint64_t)r]]);
    }
  }
  /* The validation part is complete: four rows in a batch of five. */
  ck_assert_uint_eq(mxi_data_validation(&data, &c, 0).rows, ALL - TRAINED);
  ck_assert_mem_eq(data.x, data.table.x + 3 * TRAINED, 3 * (ALL - TRAINED) * sizeof(float));
  ck_assert_uint_eq(mxi_data_validation(&data, &c, 1).rows, 0);
  mxi_data_free(&data);
}
END_TEST

/* A run leaves its rows to the next one, which takes them if it would have made the same, and makes its own if the seed, the keys of the
 * data or the file differ. */
START_TEST(rows_are_kept_for_the_next_run_on_the_same) {
  mxi_config c = {.model.kind = MXI_GAUSSIAN, .data = {.split = .8, .rows = 20, .features = 3}, .train = {.batch = 5, .seed_data = 7}};
  c.json = json_pack("{s:{s:i}}", "data", "rows", 20);
  mx_train_data *kept = NULL;
  mxi_data data, alone;
  mx_error err;
  ck_assert_int_eq(mxi_data_open(&data, &c, &kept, NULL, &err), MX_OK);
  const float *made = data.table.x;
  mxi_data_batch(&data, &c, 11);
  mxi_data_free(&data);
  ck_assert_ptr_nonnull(kept);
  ck_assert_int_eq(mxi_data_open(&data, &c, &kept, NULL, &err), MX_OK);
  ck_assert_ptr_eq(data.table.x, made);
  ck_assert_ptr_null(kept);
  ck_assert_int_eq(mxi_data_open(&alone, &c, NULL, NULL, &err), MX_OK);
  for (uint64_t s = 0; s < 7; s++) {
    const mxi_batch b = mxi_data_batch(&data, &c, s), d = mxi_data_batch(&alone, &c, s);
    ck_assert_mem_eq(b.x, d.x, 15 * sizeof(float));
    ck_assert_mem_eq(b.y, d.y, 5 * sizeof(float));
  }
  mxi_data_free(&data);
  c.train.seed_data = 8;
  ck_assert_int_eq(mxi_data_open(&data, &c, &kept, NULL, &err), MX_OK);
  ck_assert_mem_ne(data.table.x, alone.table.x, 60 * sizeof(float));
  mxi_data_free(&data);
  json_object_set_new(json_object_get(c.json, "data"), "rows", json_integer(25));
  c.data.rows = 25;
  ck_assert_int_eq(mxi_data_open(&data, &c, &kept, NULL, &err), MX_OK);
  ck_assert_uint_eq(data.table.n, 25);
  mxi_data_free(&data);
  c.train.batch = 50; /* more than there are rows, so it fails, and nothing of it is kept */
  ck_assert_int_eq(mxi_data_open(&data, &c, &kept, NULL, &err), MX_ERR_DATA);
  ck_assert_ptr_null(kept);
  mxi_data_free(&alone);
  mx_train_data_free(kept);
  json_decref(c.json);
}
END_TEST

/* y = X w: all rows lie on one plane through 0, whose w follows from the first `features` rows. */
START_TEST(a_regression_is_linear) {
  enum { FEATURES = 4, ALL = 40 };
  mxi_config c = {.model.kind = MXI_GAUSSIAN, .data = {.split = .5, .rows = ALL, .features = FEATURES}, .train = {.batch = 2, .seed_data = 3}};
  mxi_data data;
  mx_error err;
  float w[FEATURES];
  ck_assert_int_eq(mxi_data_open(&data, &c, NULL, NULL, &err), MX_OK);
  mx_data_fill(w, 1, FEATURES, &(mx_data){0}, mxi_table_seed(&c, 0, MXI_USE_WEIGHTS));
  double squares = 0;
  for (int r = 0; r < ALL; r++) {
    float y = 0;
    for (int i = 0; i < FEATURES; i++) {
      y = fmaf(data.table.x[r * FEATURES + i], w[i], y);
      squares += (double)data.table.x[r * FEATURES + i] * (double)data.table.x[r * FEATURES + i];
    }
    ck_assert_float_eq(y, data.table.y[r]);
  }
  ck_assert_double_eq_tol(squares / (ALL * FEATURES), 1, .4);
  mxi_data_free(&data);
}
END_TEST

/* Noised points: the given noise and time lead back to the point, and the embedding of the time is that of a whole number. */
START_TEST(noised_points_come_from_points) {
  enum { ALL = 64, BATCH = 16, STEPS = 10 };
  mxi_config c = {.model.kind = MXI_DIFFUSION,
                  .data = {.split = 1, .rows = ALL, .points = _i, .noise = 0, .timesteps = STEPS, .beta_first = .01, .beta_last = .3},
                  .train = {.batch = BATCH, .seed_data = 3}};
  mxi_data data;
  mx_error err;
  ck_assert_int_eq(mxi_data_open(&data, &c, NULL, NULL, &err), MX_OK);
  const mxi_table *t = &data.table;
  double product = 1;
  for (int i = 0; i < STEPS; i++) {
    product *= 1 - (.01 + .29 * i / 9);
    ck_assert_double_eq_tol(t->keep[i] * t->keep[i], product, 1e-14);
    ck_assert_double_eq_tol(t->add[i] * t->add[i], 1 - product, 1e-14);
  }
  for (int r = 0; r < ALL; r++) { /* without noise they lie on the curve */
    const double x = (double)t->x[2 * r], y = (double)t->x[2 * r + 1], side = r % 2 ? hypot(x - .5, y - .25) : hypot(x + .5, y + .25);
    if (_i == MXI_MOONS) ck_assert_double_eq_tol(side, 1, 1e-6);
    const double turn = hypot(x, y) * 7; /* the angle, modulo 2 pi */
    if (_i == MXI_SWISS_ROLL) ck_assert_double_eq_tol(cos(turn), x / hypot(x, y), 1e-5);
  }
  const mxi_batch b = mxi_data_batch(&data, &c, 4);
  for (int r = 0; r < BATCH; r++) {
    const float *x = b.x + r * 32;
    int found = -1;
    for (int k = 0; k < STEPS; k++)
      if (!memcmp(x + 2, t->time + 30 * k, 30 * sizeof *x)) found = k;
    ck_assert_int_ge(found, 0);
    for (int k = 0; k < 15; k++) {
      ck_assert_double_eq_tol((double)x[2 + k], sin(found * exp2(-k / 2.0)), 1e-6);
      ck_assert_double_eq_tol((double)x[17 + k], cos(found * exp2(-k / 2.0)), 1e-6);
    }
    for (int k = 0; k < 2; k++)
      ck_assert_double_eq_tol((double)x[k],
                              t->keep[found] * (double)t->x[2 * t->picked[r] + (uint32_t)k] + t->add[found] * (double)b.y[2 * r + k], 1e-6);
  }
  mxi_data_free(&data);
}
END_TEST

/* ---- measurements beside a step, and the late switch ---- */

enum { TOKENS = 32, WIDTH = 64 };
static float seen_x[TOKENS * WIDTH], seen_dy[TOKENS];

static mx_linear_recipe recipe_of(const char *keys) {
  mx_linear_recipe r;
  mx_error err;
  ck_assert_msg(mx_linear_resolve(&r, NULL, &(mx_linear_text){.set = &keys, .n_set = 1}, &err) == MX_OK, "%s", err.text);
  return r;
}

/* A model of one linear with one output. */
static mxi_model *one_linear(const mx_linear_recipe *r) {
  mxi_model *m;
  mx_error err;
  const mxi_model_config c = {.kind = MXI_GAUSSIAN, .inputs = WIDTH, .context = 1};
  ck_assert_int_eq(mxi_model_new(&m, &c, TOKENS, r, &(mx_exec){.n_threads = 1}, &err), MX_OK);
  mxi_model_init(m, 5);
  draw(seen_x, TOKENS * WIDTH, 11);
  draw(seen_dy, TOKENS, 12);
  return m;
}

static mx_spec forward_spec[2];
static void keep_spec(void *self, int q, const mx_tensor *t, const mx_spec *spec) {
  (void)self, (void)t;
  if (q <= MX_Q2) forward_spec[q] = *spec;
}

/* Rounds x to the nearest bfloat16, ties to even: half of the distance between two of its numbers is added to the bits, minus one if the
 * lower is even. */
static float narrowed(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  memcpy(&x, &bits, sizeof bits);
  return x;
}

/* After the switch dW = dY^T f(X), where f(X) is what Fprop made of X: exactly without a rotation, and up to its rounding with one. In
 * bfloat16 both are rounded to that first. */
START_TEST(late_gradients_are_of_the_quantised_forward) {
  const int is_narrow = _i >= 4, is_raw = _i == 6;
  static const char *const keys[] = {"elem.round=rne", "elem.prescale=0.75,elem.round=sr", "had.size=16,had.sign=fresh",
                                     "had.size=32,had.sign=te"};
  mx_linear_recipe r = recipe_of(is_raw ? "elem.round=rne" : keys[_i % 4]);
  if (is_raw) r.off[MX_FPROP] = 1;
  mxi_model *m = one_linear(&r);
  mx_error err;
  double loss;
  mx_linear_recipe narrow; /* it lives as long as m */
  ck_assert_int_eq(mx_linear_resolve(&narrow, NULL, &(mx_linear_text){.recipe = "recipe-bf16"}, &err), MX_OK);
  if (is_narrow) ck_assert_int_eq(mxi_model_late(m, &narrow, &err), MX_OK);
  const mxi_batch batch = {.B = TOKENS, .T = 1, .rows = TOKENS, .x = seen_x, .y = seen_dy};
  ck_assert_int_eq(mxi_model_keep_quantised(m), 0);
  m->late = MXI_LATE_BACKWARD;
  ck_assert_int_eq(mxi_model_forward(m, &batch, 1, 3, 0, &loss, &err), MX_OK);
  ck_assert_int_eq(mxi_model_backward(m, &err), MX_OK);
  /* Runs the forward pass by itself, for y and the random draws of its operands. */
  const mx_exec one = {.n_threads = 1};
  float y[TOKENS], x[TOKENS * WIDTH];
  mx_linear call = mxi_model_call(m, 0, &r);
  size_t saved, work;
  call.operand = keep_spec;
  ck_assert_int_eq(mx_linear_sizes(&saved, &work, &call, &one, &err), MX_OK);
  void *room = malloc(work);
  ck_assert_int_eq(mx_linear_forward(&call, (mx_linear_out){y, 1, MX_F32, 0}, (mx_linear_in){seen_x, WIDTH, MX_F32},
                                     (mx_linear_in){m->w, WIDTH, MX_F32}, m->w + m->params[1].offset, NULL, room, &one, &err),
                   MX_OK);
  free(room);
  memcpy(x, seen_x, sizeof x);
  if (!is_raw) ck_assert_int_eq(mx_fake_quantize(x, seen_x, TOKENS, WIDTH, &forward_spec[MX_Q1], &one, NULL, &err), MX_OK);
  for (int i = 0; i < WIDTH; i++) {
    float dw = 0;
    float narrow_dw = 0;
    for (int t = 0; t < TOKENS; t++) {
      const float dy = (float)(2 * ((double)y[t] - (double)seen_dy[t]) / TOKENS);
      dw = fmaf(dy, x[t * WIDTH + i], dw);
      narrow_dw = fmaf(narrowed(dy), narrowed(x[t * WIDTH + i]), narrow_dw);
    }
    if (is_narrow) {
      ck_assert(dw != narrow_dw);
      dw = narrow_dw;
    }
    if (r.q[MX_Q1].had_size)
      ck_assert_float_eq_tol(m->g[i], dw, 1e-6f);
    else
      ck_assert_float_eq(m->g[i], dw);
    ck_assert(m->g[i] != 0);
  }
  mxi_model_free(m);
}
END_TEST

/* arXiv 2505.19115 by TECHNIQUES 4.1b: dW = [3, 4], quantised [3.5, 3], gives 5 over 1.118034. Then one that is nothing but noise. */
START_TEST(threshold_by_hand) {
  mxi_param p = {.name = "w", .rows = 1, .cols = 2, .n_dims = 2};
  mxi_model_linear l = {.weight = 0, .T = 1, .I = 2, .O = 1};
  const mx_linear_recipe r = {0};
  mxi_model m = {.params = &p, .n_params = 1, .linears = &l, .n_linears = 1, .n_values = 2};
  mxi_config c = {.quantised = 1, .threshold.every = 1, .qaf = {.when = MXI_QAF_THRESHOLD, .patience = 2, .forward = 1, .lr = .5, .warmup = 4}};
  double signal = 0, noise = 0;
  float exact[2] = {3, 4};
  l.recipe = &r;
  mxi_threshold t = {.config = &c, .again.model = &m, .signal = &signal, .noise = &noise, .exact = exact, .late = UINT64_MAX};
  ck_assert(mxi_threshold_due(&t, 7));
  mxi_threshold_gradients(&t, (float[2]){3.5f, 3}, exact);
  mxi_threshold_close_step(&t);
  ck_assert_double_eq_tol(mxi_threshold_ratio(&t, 0), 4.472136, 1e-6);
  ck_assert_double_eq_tol(mxi_threshold_all(&t), 4.472136, 1e-6);
  ck_assert_uint_eq(t.below, 0);
  uint64_t step = 0;
  for (; m.late == MXI_LATE_NONE && step < 50; step++) {
    mxi_threshold_gradients(&t, (float[2]){13, 4}, exact);
    mxi_threshold_close_step(&t);
    mxi_threshold_switch(&t, &m, step);
  }
  /* The first of these brings the averages to .9 * 2.5 + 2.5 = 4.75 over .9 * .125 + 10 = 10.1125, which is below 3; the second is the last. */
  ck_assert_uint_eq(step, 2);
  ck_assert_int_eq(m.late, MXI_LATE_ALL);
  ck_assert(!mxi_threshold_due(&t, 8));
  ck_assert_double_eq_tol(mxi_threshold_rate(&t, .1, 1, 1), .05 / 4, 1e-15);
  ck_assert_double_eq_tol(mxi_threshold_rate(&t, .1, 1, 3), .05 * 3 / 4, 1e-15);
  ck_assert_double_eq_tol(mxi_threshold_rate(&t, .1, 1, 4), .05, 1e-15);
  ck_assert_double_eq(mxi_threshold_rate(&t, .1, 1, 0), .1);
  /* Printed and parsed again: the same bits, including the switch. */
  char *text = mxi_threshold_print(&t);
  double again_signal = 0, again_noise = 0;
  mxi_model other = m;
  other.late = MXI_LATE_NONE;
  mxi_threshold back = {.config = &c, .again.model = &other, .signal = &again_signal, .noise = &again_noise};
  ck_assert(mxi_threshold_parse(&back, &other, text));
  ck_assert_double_eq(again_signal, signal);
  ck_assert_double_eq(again_noise, noise);
  ck_assert_uint_eq(back.late, t.late);
  ck_assert_int_eq(other.late, MXI_LATE_ALL);
  ck_assert(!mxi_threshold_parse(&back, &other, "1 2"));
  free(text);
}
END_TEST

static double metric(const char *text, const char *object, const char *name) {
  char key[64];
  snprintf(key, sizeof key, "\"%s\": {", object);
  const char *at = strstr(text, key), *end = at ? strchr(at, '}') : NULL;
  snprintf(key, sizeof key, "\"%s\": ", name);
  const char *value = at ? strstr(at, key) : NULL;
  return value && value < end ? strtod(value + strlen(key), NULL) : NAN;
}

/* Compares the metrics of a linear with one output, from its dY and X, with the same in binary64. */
START_TEST(metrics_are_those_of_their_definitions) {
  const mx_linear_recipe r = recipe_of("scale.rule=value,scale.round=up");
  mxi_model *m = one_linear(&r);
  mxi_config c = {.quantised = 1, .metrics.every = 1};
  mxi_metrics t;
  mx_error err;
  char text[3][4096];
  ck_assert_int_eq(mxi_metrics_open(&t, m, &c, &err), MX_OK);
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < WIDTH && k == 2; i++) m->w[i] = -m->w[i];
    FILE *to = fmemopen(text[k], sizeof text[k], "w");
    mxi_metrics_linear(&t, 0, seen_dy, seen_x, 1);
    ck_assert_int_eq(mxi_metrics_text(&t, to, &err), MX_OK);
    fclose(to);
  }
  /* dW, and the quantised dW from the values of its operands. */
  float q5[TOKENS], xt[WIDTH * TOKENS], q6[WIDTH * TOKENS];
  double dd = 0, ed = 0, ee = 0, aa = 0, ad = 0;
  for (int i = 0; i < WIDTH * TOKENS; i++) xt[i] = seen_x[i % TOKENS * WIDTH + i / TOKENS];
  ck_assert_int_eq(mx_fake_quantize(q5, seen_dy, 1, TOKENS, &r.q[MX_Q5], NULL, NULL, &err), MX_OK);
  ck_assert_int_eq(mx_fake_quantize(q6, xt, WIDTH, TOKENS, &r.q[MX_Q6], NULL, NULL, &err), MX_OK);
  for (int i = 0; i < WIDTH; i++) {
    double exact = 0, got = 0;
    for (int k = 0; k < TOKENS; k++) {
      exact += (double)seen_dy[k] * (double)xt[i * TOKENS + k];
      got += (double)q5[k] * (double)q6[i * TOKENS + k];
    }
    dd += exact * exact, ed += (got - exact) * exact, ee += (got - exact) * (got - exact), aa += got * got, ad += got * exact;
  }
  ck_assert_double_eq_tol(metric(text[0], "wgrad", "norm"), sqrt(dd), 1e-5);
  ck_assert_double_eq_tol(metric(text[0], "wgrad", "noise"), sqrt(ee), 1e-5);
  ck_assert_double_eq_tol(metric(text[0], "wgrad", "gain"), ad / dd, 1e-6);
  ck_assert_double_eq_tol(metric(text[0], "wgrad", "cosine"), ad / sqrt(aa * dd), 1e-6);
  ck_assert_double_eq_tol(metric(text[0], "wgrad", "bias"), sqrt(ee / dd), 1e-6); /* since nothing is random */
  ck_assert(isnan(metric(text[0], "wgrad", "correlation")));
  ck_assert_double_eq_tol(metric(text[1], "wgrad", "correlation"), 1, 1e-9); /* the same error twice */
  /* Operands: W's, and dY's along T. */
  float q2[WIDTH];
  int zero = 0, nonzero = 0;
  mx_error_terms terms = {0};
  ck_assert_int_eq(mx_fake_quantize(q2, m->w, 1, WIDTH, &r.q[MX_Q2], NULL, NULL, &err), MX_OK);
  for (int i = 0; i < WIDTH; i++) zero += q2[i] == 0 && m->w[i] != 0, nonzero += q2[i] != 0;
  ck_assert_double_eq_tol(metric(text[0], "Q2", "underflow"), (double)zero / WIDTH, 1e-9);
  ck_assert_int_eq(mx_error_terms_add(&terms, seen_dy, q5, 1, TOKENS, &r.q[MX_Q5]), MX_OK);
  ck_assert_double_eq_tol(metric(text[0], "Q5", "error"), sqrt(terms.total / terms.xx), 1e-8);
  ck_assert_double_eq_tol(metric(text[0], "Q5", "scale"), terms.scale / terms.total, 1e-8);
  ck_assert_double_eq_tol(metric(text[0], "Q5", "scale_grid"), terms.scale_grid / terms.total, 1e-8);
  ck_assert(isnan(metric(text[0], "Q2", "changed")));
  ck_assert_double_eq(metric(text[1], "Q2", "changed"), 0);
  ck_assert_double_eq(metric(text[1], "Q2", "flipped"), 0);
  ck_assert_double_eq_tol(metric(text[2], "Q2", "flipped"), (double)nonzero / WIDTH, 1e-9);
  mxi_metrics_close(&t);
  mxi_model_free(m);
}
END_TEST

/* Two draws distinguish bias from noise: stochastic rounding under RCEIL has almost no bias, although its error is larger than that of
 * rounding to nearest. */
START_TEST(bias_is_told_from_noise) {
  double bias = 0, noise = 0;
  const mx_linear_recipe r = recipe_of("scale.rule=value,scale.round=up,elem.round=sr");
  mxi_model *m = one_linear(&r);
  mxi_config c = {.quantised = 1, .metrics = {.every = 1, .layers = (char[]){"o*"}}};
  mxi_metrics t;
  mx_error err;
  ck_assert_int_eq(mxi_metrics_open(&t, m, &c, &err), MX_OK);
  for (int k = 0; k < 40; k++) {
    char text[4096];
    FILE *to = fmemopen(text, sizeof text, "w");
    m->step = (uint64_t)k;
    mxi_metrics_linear(&t, 0, seen_dy, seen_x, 1);
    ck_assert_int_eq(mxi_metrics_text(&t, to, &err), MX_OK);
    fclose(to);
    bias += pow(metric(text, "wgrad", "bias"), 2) / 40; /* 0 if the errors of two draws point away from each other */
    noise += pow(metric(text, "wgrad", "noise") / metric(text, "wgrad", "norm"), 2) / 40;
  }
  ck_assert_msg(bias < .15 * noise && noise > .01, "bias^2 %g, noise^2 %g", bias, noise);
  mxi_metrics_close(&t);
  c.metrics.layers = (char[]){"in, lin*"};
  ck_assert_int_eq(mxi_metrics_open(&t, m, &c, &err), MX_ERR_KEY);
  ck_assert_str_eq(err.text, "metrics.layers: no linear is named 'in, lin*'; the first is out");
  mxi_metrics_close(&t);
  mxi_model_free(m);
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
  mxi_optim_step(&o, &m, .01); /* the first step has length lr along the gradient */
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
  tcase_add_loop_test(t, networks_by_differences, 0, 3);
  tcase_add_test(t, rows_are_shuffled_as_the_specification_says);
  tcase_add_test(t, rows_are_kept_for_the_next_run_on_the_same);
  tcase_add_test(t, a_regression_is_linear);
  tcase_add_loop_test(t, noised_points_come_from_points, MXI_MOONS, MXI_SWISS_ROLL + 1);
  tcase_add_loop_test(t, late_gradients_are_of_the_quantised_forward, 0, 7);
  tcase_add_test(t, threshold_by_hand);
  tcase_add_test(t, metrics_are_those_of_their_definitions);
  tcase_add_test(t, bias_is_told_from_noise);
  tcase_add_test(t, stablespam_by_hand);
  tcase_add_test(t, adamw_by_hand);
  tcase_add_test(t, schedules);
  suite_add_tcase(s, t);
  return run_suite(s);
}
