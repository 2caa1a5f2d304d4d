/* Tests techniques of training by numbers worked by hand: outliers, moving averages, the scale of the loss, periods of weights.
 * (test_linear.c tests that the fast layer equals ref/ under them.) */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/linear.h"
#include "../ref/outliers.h"
#include "../ref/ramp.h"
#include "lib/run.h"
#include "mxgold/ablate.h"
#include "train/optim/optim.h"
#include "train/run/rehearse.h"

static mx_linear_recipe recipe_of(const char *train) {
  const char *const keys[] = {train};
  const mx_linear_text text = {.train = keys, .n_train = 1};
  mx_linear_recipe r;
  mx_error err;
  if (mx_linear_resolve(&r, NULL, &text, &err)) ck_abort_msg("%s: %s", train, err.text);
  return r;
}

/* Y and the counts of a layer with O = 1, by the fast layer and by ref/, which must agree. */
static mx_linear_counts forward(float *y, const mx_linear_recipe *r, const float *x, const float *w, size_t T, size_t I) {
  mx_linear_counts counts = {0}, slow = {0};
  mx_linear l = {.recipe = r, .T = T, .I = I, .O = 1, .counts = &counts};
  const mx_linear_in xi = {x, I, MX_F32}, wi = {w, I, MX_F32};
  size_t saved, work;
  mx_error err;
  if (mx_linear_sizes(&saved, &work, &l, NULL, &err)) ck_abort_msg("%s", err.text);
  void *room = malloc(work);
  float *again = malloc(T * sizeof *again);
  if (mx_linear_forward(&l, (mx_linear_out){y, 1, MX_F32, 0}, xi, wi, NULL, NULL, room, NULL, &err)) ck_abort_msg("%s", err.text);
  l.counts = &slow;
  if (ref_linear_forward(&l, (mx_linear_out){again, 1, MX_F32, 0}, xi, wi, NULL, &err)) ck_abort_msg("%s", err.text);
  ck_assert_int_eq(memcmp(y, again, T * sizeof *y), 0);
  ck_assert_int_eq(memcmp(&counts, &slow, sizeof counts), 0);
  free(room);
  free(again);
  return counts;
}

/* How many numbers are clamped in a row of n different ones. */
static uint64_t clamped_of(size_t n, const char *train) {
  float *x = malloc(n * sizeof *x), *w = calloc(n, sizeof *w), y;
  for (size_t i = 0; i < n; i++) x[i] = (float)(i * 7919 % n) - (float)(n / 2); /* 7919 is prime, and divides none of the n below */
  const mx_linear_recipe r = recipe_of(train);
  const uint64_t clamped = forward(&y, &r, x, w, 1, n).clamped;
  free(x);
  free(w);
  return clamped;
}

START_TEST(outliers_by_rank) {
  /* TECHNIQUES 0.1 no. 1: at .99 rows of 64 have nothing to clamp, rows of 128 two numbers, of 256 four, of 4096 eighty. */
  static const struct {
    size_t n;
    uint64_t clamped;
  } rows[] = {{64, 0}, {128, 2}, {256, 4}, {4096, 80}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_uint_eq(clamped_of(rows[i].n, "occ.alpha=.99"), rows[i].clamped);
    ck_assert_uint_eq(clamped_of(rows[i].n, "occ.alpha=.99,occ.index=msamp"), rows[i].clamped);
  }
  /* The trap of n = 1000 at .999: rank 999 is the maximum, so msamp clamps only the smallest number. n = 100 at .99 has ranks 1 and 99. */
  ck_assert_uint_eq(clamped_of(1000, "occ.alpha=.999,occ.index=msamp"), 1);
  ck_assert_uint_eq(clamped_of(1000, "occ.alpha=.999"), 0);
  ck_assert_uint_eq(clamped_of(100, "occ.alpha=.99,occ.index=msamp"), 1);
  ck_assert_uint_eq(clamped_of(1001, "occ.alpha=.999"), 2);
  ck_assert_uint_eq(clamped_of(100, "occ.alpha=.97"), 4);
}
END_TEST

/* One row [-8, 1, 2, 100], thresholds by rank 1 and 2 at .6: X_c = [1, 1, 2, 2], R = [-9, 0, 0, 98]. */
START_TEST(outliers_by_hand) {
  const float x[4] = {-8, 1, 2, 100}, w[4] = {1, 1, 1, .5f};
  float y;
  mx_linear_recipe r = recipe_of("occ.alpha=.6,occ.residual=off");
  ck_assert_uint_eq(forward(&y, &r, x, w, 1, 4).clamped, 2);
  ck_assert_float_eq(y, 1 + 1 + 2 + 1); /* every number is a value of the format */
  r = recipe_of("occ.alpha=.6");
  forward(&y, &r, x, w, 1, 4);
  ck_assert_float_eq(y, 5 - 9 + 49);
  /* w's last number is .55, which under scale 1/4 is .5 in the format: hp multiplies the residual by .55, q by .5. */
  const float off[4] = {1, 1, 1, .55f};
  r = recipe_of("occ.alpha=.6,occ.residual_weight=q");
  forward(&y, &r, x, off, 1, 4);
  ck_assert_float_eq(y, 5 - 9 + 49);
  r = recipe_of("occ.alpha=.6,occ.residual_weight=hp");
  forward(&y, &r, x, off, 1, 4);
  ck_assert_float_eq(y, 5.f + (float)(-9. + 98. * (double).55f));
  /* Quantiles of a whole tensor: two rows, one of which has all outliers. */
  const float two[8] = {-8, 1, 2, 100, 1, 1, 2, 2};
  float both[2];
  r = recipe_of("occ.alpha=.85,occ.axis=tensor");
  ck_assert_uint_eq(forward(both, &r, two, w, 2, 4).clamped, 2);
  r = recipe_of("occ.alpha=.85"); /* rank 0 of a row of 4 */
  ck_assert_uint_eq(forward(both, &r, two, w, 2, 4).clamped, 0);
}
END_TEST

/* X_c + R is x for numbers of every size, even if no residual in binary32 would give x back. */
START_TEST(outliers_come_back) {
  enum { ROWS = 40, I = 256 };
  static float x[ROWS * I], c[ROWS * I];
  static double residual[ROWS * I];
  mx_data_fill(x, ROWS, I, &(mx_data){.kind = MX_DATA_STUDENT, .param = {1.5}}, 5);
  x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY, x[3] = 0x1p-149f, x[4] = 16777215;
  const mx_linear_recipe r = recipe_of("occ.alpha=.97");
  ck_assert_int_eq(ref_outliers(c, residual, x, ROWS, I, &r), MX_OK);
  size_t moved = 0, short_of = 0;
  for (size_t i = 0; i < ROWS * I; i++) {
    const float back = (float)((double)c[i] + residual[i]);
    ck_assert_msg(isnan(x[i]) ? isnan(back) && residual[i] == 0 : memcmp(&back, x + i, sizeof back) == 0, "%zu: %g came back as %g", i,
                  (double)x[i], (double)back);
    moved += residual[i] != 0;
    short_of += !isnan(x[i]) && c[i] + (x[i] - c[i]) != x[i];
  }
  ck_assert_uint_eq(moved, ROWS * 14 - 1); /* floor(.03 * 255) = 7 at both ends; the NaN is the last of its row, and stays */
  ck_assert_uint_gt(short_of, 0);          /* which is why R is not a binary32 */
}
END_TEST

/* Two clamped numbers of other signs against an infinite weight: Inf - Inf, which is the one NaN of the project. */
START_TEST(outliers_by_infinite_weights) {
  enum { I = 128 };
  float x[I], w[I] = {[3] = INFINITY, [4] = INFINITY}, y;
  for (int i = 0; i < I; i++) x[i] = (float)(i % 7);
  x[3] = -100, x[4] = 100;
  const mx_linear_recipe r = recipe_of("occ.alpha=.99");
  ck_assert_uint_eq(forward(&y, &r, x, w, 1, I).clamped, 2);
  uint32_t bits;
  memcpy(&bits, &y, sizeof bits);
  ck_assert_msg(bits == 0x7FC00000, "%08x", bits);
}
END_TEST

START_TEST(outliers_refused) {
  mx_error err;
  mx_linear_recipe r = recipe_of("occ.alpha=.99");
  r.occ_alpha = 1;
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  ck_assert_str_eq(err.text, "occ.alpha=1: expected a quantile from .5 to below 1, or off");
  r = recipe_of("occ.alpha=.99,occ.residual_weight=q");
  r.q[MX_Q1].had_size = r.q[MX_Q2].had_size = 16;
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  r = recipe_of("occ.alpha=off");
  ck_assert(r.occ_alpha == 0);
}
END_TEST

/* Keeps the decoded Q2 of a layer with one row of weights. */
static void keep_q2(void *self, int q, const mx_tensor *t, const mx_spec *s) {
  if (q == MX_Q2) mx_dequantize(self, t->cols, t, s, NULL);
}

static uint64_t q2_of(float *out, const float *w, const float *average, size_t I, const char *train) {
  const mx_linear_recipe r = recipe_of(train);
  mx_linear_counts counts = {0};
  const mx_linear l = {.recipe = &r, .T = 1, .I = I, .O = 1, .operand = keep_q2, .self = out, .counts = &counts, .ema = {average, I, MX_F32}};
  size_t saved, work;
  float y;
  mx_error err;
  ck_assert_int_eq(mx_linear_sizes(&saved, &work, &l, NULL, &err), MX_OK);
  void *room = malloc(work);
  ck_assert_int_eq(mx_linear_forward(&l, (mx_linear_out){&y, 1, MX_F32, 0}, (mx_linear_in){w, I, MX_F32}, (mx_linear_in){w, I, MX_F32}, NULL,
                                     NULL, room, NULL, &err),
                   MX_OK);
  free(room);
  return counts.steered;
}

/* TECHNIQUES 4.8b: weights and averages under scale 1, which the 6 causes, and what rounding alone gives. */
START_TEST(ema_by_hand) {
  static const struct {
    float w, average, q, nearest;
  } of[] = {{.24f, .25f, .5f, 0},   {.26f, .24f, 0, .5f},  {1, 1.3f, 1.5f, 1}, {-2.4f, -2.6f, -3, -2},
            {-2.4f, 2.6f, -2, -2},  {5.2f, 4.9f, 4, 6},    {3.9f, 4.6f, 4, 4}, {.24f, .26f, .5f, 0},
            {6, 9, 6, 6},           {0, 5, 0, 0},          {1, 1.2f, 1, 1},    {-1.7f, INFINITY, -1.5f, -1.5f},
            {1.8f, -1.8f, 1.5f, 2}, {-.1f, -.3f, -.5f, 0}, {5.2f, 5, 6, 6}};
  enum { I = sizeof of / sizeof *of };
  float w[I], average[I], q[I];
  uint64_t moved = 0;
  for (int i = 0; i < I; i++) w[i] = of[i].w, average[i] = of[i].average, moved += of[i].q != of[i].nearest;
  ck_assert_uint_eq(q2_of(q, w, average, I, "q2.ema=.9983"), moved);
  for (int i = 0; i < I; i++)
    ck_assert_msg(q[i] == of[i].q, "%g by %g: %g, expected %g", (double)w[i], (double)average[i], (double)q[i], (double)of[i].q);
  ck_assert_uint_eq(q2_of(q, w, average, I, ""), 0);
  for (int i = 0; i < I; i++) ck_assert(q[i] == of[i].nearest);
  /* A scale of 2^-4 changes nothing but the size. */
  for (int i = 0; i < I; i++) w[i] /= 16, average[i] /= 16;
  ck_assert_uint_eq(q2_of(q, w, average, I, "q2.ema=.9983"), moved);
  for (int i = 0; i < I; i++) ck_assert(q[i] * 16 == of[i].q);
}
END_TEST

/* Keeps Q4 of a random W, made from W itself or from what Fprop made of it. */
static void keep_q4(void *self, int q, const mx_tensor *t, const mx_spec *s) {
  if (q == MX_Q4) mx_dequantize(self, t->cols, t, s, NULL);
}

static void q4_of(float *out, const float *w, size_t n, const char *train) {
  const mx_linear_recipe r = recipe_of(train);
  const mx_linear l = {.recipe = &r, .T = n, .I = n, .O = n, .operand = keep_q4, .self = out};
  const mx_linear_in in = {w, n, MX_F32};
  size_t saved, work;
  mx_error err;
  ck_assert_int_eq(mx_linear_sizes(&saved, &work, &l, NULL, &err), MX_OK);
  char *room = malloc(saved + work);
  float *y = malloc(n * n * sizeof *y);
  const mx_linear_out to = {y, n, MX_F32, 0};
  ck_assert_int_eq(mx_linear_forward(&l, to, in, in, NULL, room, room + saved, NULL, &err), MX_OK);
  ck_assert_int_eq(mx_linear_backward(&l, to, (mx_linear_out){0}, NULL, in, in, in, room, room + saved, NULL, &err), MX_OK);
  free(room);
  free(y);
}

START_TEST(double_quantisation_differs) {
  enum { N = 64 };
  static float w[N * N], once[N * N], twice[N * N];
  mx_data_fill(w, N, N, &(mx_data){0}, 6);
  q4_of(once, w, N, "requant.source=hp");
  q4_of(twice, w, N, "requant.source=fwd_dequant");
  ck_assert(memcmp(once, twice, sizeof once) != 0);
  double apart[2] = {0};
  for (int i = 0; i < N * N; i++) {
    apart[0] += pow((double)once[i] - (double)w[i % N * N + i / N], 2); /* Q4 is of W^T */
    apart[1] += pow((double)twice[i] - (double)w[i % N * N + i / N], 2);
  }
  ck_assert(apart[0] > 0 && apart[1] > apart[0]); /* the second rounding adds to the error of the first */
  /* If every magnitude is a power of two, it is a value of the format under any scale, so the second quantisation has nothing to round. */
  for (int i = 0; i < N * N; i++) w[i] = i * 7 % 5 < 2 ? 1 : -2;
  q4_of(once, w, N, "requant.source=hp");
  q4_of(twice, w, N, "requant.source=fwd_dequant");
  ck_assert(memcmp(once, twice, sizeof once) == 0);
}
END_TEST

/* The factor of the loss: an overflow at step 1 halves it, and 2000 good steps later, at step 2001, it has its old value again. */
START_TEST(loss_scale_by_hand) {
  mxi_loss_scale s = {1024, .5, 2000, 0};
  mxi_loss_scale_after(&s, 1);
  ck_assert_double_eq(s.scale, 512);
  for (int step = 2; step <= 2000; step++) {
    mxi_loss_scale_after(&s, 0);
    ck_assert_double_eq(s.scale, 512);
  }
  mxi_loss_scale_after(&s, 0);
  ck_assert_double_eq(s.scale, 1024);
}
END_TEST

/* ---- Q-Ramping, TECHNIQUES 4.8b ---- */

static const mxi_ramp_config paper = {16, 5, 1251, 30};

/* One element under lr .1 and no decay, gradients 1, 2, 3. */
static void three_steps(double p[3], mxi_optim *o, float *period) {
  float w = 1, g, m1 = 0, v = 0, sum = 0, count = 0;
  unsigned char of = 1;
  mxi_param param = {.name = "p", .rows = 1, .cols = 1, .n_dims = 2};
  mxi_model m = {.params = &param, .n_params = 1, .n_values = 1, .w = &w, .g = &g};
  *o = (mxi_optim){.config = {.kind = MXI_ADAMW, .beta1 = .9, .beta2 = .999, .eps = 1e-8},
                   .m = &m1,
                   .v = &v,
                   .ramp = {paper, period ? &of : NULL, &sum, &count, period, 0}};
  for (int s = 0; s < 3; s++) {
    g = (float)(s + 1);
    mxi_optim_step(o, &m, .1);
    p[s] = (double)w;
  }
  if (!period || *period == 1) return;
  ck_assert_double_eq_tol((double)m1, .2, 1e-8);
  ck_assert_double_eq_tol((double)v, .004, 1e-9);
  ck_assert(sum == 0 && count == 0);
}

START_TEST(ramp_by_hand) {
  ck_assert_float_eq(mxi_ramp_period(.05f, 3, &paper), 16);
  ck_assert_float_eq(mxi_ramp_period(.05f, .5f, &paper), 1);
  ck_assert_float_eq(mxi_ramp_period(0, 0, &paper), 1);
  ck_assert_float_eq(mxi_ramp_period(0, 1, &paper), 1251); /* 5 floor(1e8 / 16) + 1 */
  ck_assert_float_eq(mxi_ramp_period(1, NAN, &paper), 1);
  ck_assert_float_eq(mxi_ramp_period(0, INFINITY, &paper), 1251);
  double p[3], plain[3];
  mxi_optim o;
  three_steps(p, &o, &(float){3});
  ck_assert_double_eq(p[0], 1);
  ck_assert_double_eq(p[1], 1);
  ck_assert_double_eq_tol(p[2], .808355922, 1e-7);
  three_steps(p, &o, &(float){1}); /* a period of 1 is AdamW to the bit */
  ck_assert_double_eq_tol(p[2], .707681677, 1e-7);
  three_steps(plain, &o, NULL);
  for (int s = 0; s < 3; s++) ck_assert_double_eq(p[s], plain[s]);
}
END_TEST

/* Runs elements of every period through steps with zeros, subnormal and large gradients, one of which is not finite, and computes periods
 * from all kinds of sums. */
START_TEST(ramp_is_the_reference) {
  enum { ROWS = 40, I = 64, STEPS = 12 };
  static float w[ROWS * I], g[ROWS * I], m[ROWS * I], v[ROWS * I], sum[ROWS * I], count[ROWS * I], period[ROWS * I];
  static ref_ramped slow[ROWS * I];
  mxi_ramp r = {paper, NULL, sum, count, period, 0};
  mx_data_fill(w, ROWS, I, &(mx_data){0}, 1);
  for (int i = 0; i < ROWS * I; i++) {
    period[i] = (float)(i % 7 + 1);
    slow[i] = (ref_ramped){w[i], 0, 0, 0, 0, (uint32_t)i % 7 + 1};
  }
  uint64_t updates = 0;
  for (int s = 0; s < STEPS; s++) {
    const mxi_adam a = {.9f, .1f, .999f, .001f, .5f + .01f * (float)s, 1e-8f, .3f / (float)(s + 1), .999f};
    const ref_adam b = {a.keep1, a.take1, a.keep2, a.take2, a.root2, a.eps, a.rate, a.decay};
    mx_data_fill(g, ROWS, I, &(mx_data){.kind = MX_DATA_STUDENT, .param = {1.5}}, 20 + (uint64_t)s);
    g[0] = 0, g[1] = -0.f, g[2] = 0x1p-149f, g[3] = 0x1p-70f, g[4] = 0x1p70f, g[5] = 0x1.fffffep127f;
    if (s == 5) g[9] = INFINITY;
    mxi_ramp_step(&r, 0, (size_t)ROWS * I, w, g, m, v, a, NULL);
    for (int i = 0; i < ROWS * I; i++) {
      ref_ramp_step(&slow[i], g[i], s != 5, &b);
      const float fast[] = {w[i], m[i], v[i], sum[i]}, want[] = {slow[i].w, slow[i].m, slow[i].v, slow[i].sum};
      for (int k = 0; k < 4; k++)
        ck_assert_msg(!memcmp(&fast[k], &want[k], sizeof want[k]) || (isnan(fast[k]) && isnan(want[k])),
                      "step %d, element %d, %d: %a, expected %a", s, i, k, (double)fast[k], (double)want[k]);
      ck_assert_uint_eq((unsigned)count[i], slow[i].count);
      updates += slow[i].count == 0;
    }
  }
  uint64_t want = 0;
  for (int i = 0; i < ROWS * I; i++) want += (uint64_t)(STEPS / (i % 7 + 1));
  ck_assert_uint_eq(updates, want);
  static float moved[ROWS * I], jumped[ROWS * I];
  mx_data_fill(moved, ROWS, I, &(mx_data){.kind = MX_DATA_STUDENT, .param = {1}}, 3);
  mx_data_fill(jumped, ROWS, I, &(mx_data){.kind = MX_DATA_STUDENT, .param = {1}}, 4);
  moved[0] = 0, moved[1] = INFINITY, moved[2] = NAN, moved[3] = 0x1p-149f, jumped[3] = 0x1p100f, jumped[4] = 0, moved[4] = 0;
  const mxi_ramp_config others[] = {paper, {.001, 3, 1 << 23, 9}, {16, 0, 50, 1}, {1e6, 1 << 23, 7, 1}};
  uint64_t longer = 0;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < ROWS * I; i++) {
      const float n = mxi_ramp_period(fabsf(moved[i]), fabsf(jumped[i]), &others[k]);
      ck_assert_uint_eq((unsigned)n, ref_ramp_period(fabsf(moved[i]), fabsf(jumped[i]), others[k].k1, others[k].k2, others[k].every));
      longer += n > 1 && n < (float)others[k].every;
    }
  ck_assert_uint_gt(longer, 100);
}
END_TEST

/* A row of weights of which the first moves back and forth over .25, under the scale that the 6 in the row causes: in 30 steps of .02 its
 * code moves by .5 thirty times. The second moves from 1 to 2, and its code as far. What a rehearsal changes is restored. */
static mx_status wander(void *self, uint64_t step, int *finite, mx_error *err) {
  mxi_rehearsal *t = self;
  (void)err;
  *finite = step < 100;
  t->model->w[0] = step % 2 ? .26f : .24f;
  t->model->w[1] += .03f;
  t->optim->m[0] = t->optim->v[1] = 7;
  t->optim->t += 3;
  return step == 200 ? MX_ERR_DATA : MX_OK;
}

START_TEST(periods_of_a_rehearsal) {
  enum { I = 64 };
  mxi_config c = {.quantised = 1, .recipe = recipe_of("ramp=on")};
  const mxi_model_config one = {.kind = MXI_GAUSSIAN, .inputs = I, .context = 1};
  mxi_model *m;
  mx_error err;
  ck_assert_int_eq(mxi_model_new(&m, &one, 4, &c.recipe, NULL, &err), MX_OK);
  mxi_optim o = {.m = mxi_model_floats(m, m->n_values), .v = mxi_model_floats(m, m->n_values), .t = 5};
  mxi_rehearsal t;
  ck_assert_int_eq(mxi_rehearsal_open(&t, m, &o, &c, &err), MX_OK);
  m->w[0] = .24f, m->w[1] = 1, m->w[2] = 6;
  ck_assert(mxi_rehearsal_due(&t, 0) && !mxi_rehearsal_due(&t, 1) && mxi_rehearsal_due(&t, 1000));
  ck_assert_int_eq(mxi_rehearsal_run(&t, 0, wander, &t, &err), MX_OK);
  ck_assert_float_eq(m->w[0], .24f);
  ck_assert_float_eq(m->w[1], 1);
  ck_assert(o.m[0] == 0 && o.v[1] == 0 && o.t == 5);
  ck_assert_float_eq(o.ramp.period[0], 5 * 1 + 1); /* 15 / 16 / .6 is 1.56 */
  ck_assert_float_eq(o.ramp.period[1], 1);
  ck_assert_float_eq(o.ramp.period[2], 1);
  ck_assert_uint_eq(mxi_ramp_slowed(&o.ramp, m), 1);
  ck_assert(mxi_ramp_is_sound(&o.ramp, m));
  /* The first loss that is not finite ends it: five steps give four differences, with the same quotient. */
  ck_assert_int_eq(mxi_rehearsal_run(&t, 95, wander, &t, &err), MX_OK);
  ck_assert_float_eq(o.ramp.period[0], 6);
  ck_assert_int_eq(mxi_rehearsal_run(&t, 99, wander, &t, &err), MX_OK); /* there is nothing to compare with */
  ck_assert_float_eq(o.ramp.period[0], 1);
  ck_assert_int_eq(mxi_rehearsal_run(&t, 200, wander, &t, &err), MX_ERR_DATA);
  ck_assert_float_eq(m->w[1], 1);
  o.ramp.period[1] = .5f; /* as in a file that no run wrote */
  ck_assert(!mxi_ramp_is_sound(&o.ramp, m));
  mxi_model_free(m);
}
END_TEST

START_TEST(ramp_refused) {
  static const char *const no[][2] = {{"ramp=on,ramp.every=2.5", "ramp.every=2.5: expected a whole number of steps, from 1 to 8388608"},
                                      {"ramp=on,ramp.steps=0", "ramp.steps=0: expected a whole number of steps, from 1 to 8388608"},
                                      {"ramp=on,ramp.k1=0", "ramp.k1=0: expected a number above 0, at most 8388608"},
                                      {"ramp=on,ramp.k2=.5", "ramp.k2=0.5: expected a whole number of steps, at most 8388608"}};
  mx_error err;
  for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
    const mx_linear_text text = {.train = &no[i][0], .n_train = 1};
    mx_linear_recipe r;
    ck_assert_int_eq(mx_linear_resolve(&r, NULL, &text, &err), MX_ERR_CONFLICT);
    ck_assert_str_eq(err.text, no[i][1]);
  }
  mx_linear_recipe r = recipe_of("ramp=on");
  r.q[MX_Q2].elem_round = MX_ROUND_SR;
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  r = recipe_of("ramp=on");
  r.q[MX_Q1].had_size = r.q[MX_Q2].had_size = 16;
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  r = recipe_of("ramp=on");
  r.off[MX_FPROP] = 1;
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
}
END_TEST

/* TECHNIQUES 1.8, typed: which operands each policy rounds stochastically. */
START_TEST(policies_by_hand) {
  static const struct {
    const char *key;
    int sr[MX_OPERANDS];
  } rows[] = {{"sr.policy=given", {0, 0, 1, 0, 1, 0}},
              {"sr.policy=none", {0}},
              {"sr.policy=all", {1, 1, 1, 1, 1, 1}},
              {"sr.policy=forward", {1, 1, 0, 0, 0, 0}},
              {"sr.policy=backward", {0, 0, 1, 1, 1, 1}},
              {"sr.policy=forward_act", {1, 0, 1, 0, 1, 1}},
              {"sr.policy=chmiel", {0, 0, 1, 0, 1, 1}},
              {"sr.policy=nvfp4", {0, 0, 1, 0, 1, 0}},
              {"sr.policy=grad_only_wgrad", {0, 0, 0, 0, 1, 0}}};
  mx_linear_recipe r;
  mx_error err;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const mx_linear_text text = {.recipe = "recipe-nvfp4", .train = &rows[i].key, .n_train = 1};
    ck_assert_int_eq(mx_linear_resolve(&r, NULL, &text, &err), MX_OK);
    for (int q = 0; q < MX_OPERANDS; q++)
      ck_assert_msg((r.q[q].elem_round == MX_ROUND_SR) == rows[i].sr[q], "%s: Q%d has elem.round %d", rows[i].key, q + 1, r.q[q].elem_round);
  }
  /* A key of one operand comes after it; other roundings than sr stay, and operands that are no format have none. */
  const char *const train = "sr.policy=backward", *const operands[] = {"Q4:elem.round=rtz", "Q1:elem.round=rna", "Q2:elem=none"};
  const mx_linear_text text = {.train = &train, .n_train = 1, .operands = operands, .n_operands = 3};
  ck_assert_int_eq(mx_linear_resolve(&r, NULL, &text, &err), MX_OK);
  ck_assert_int_eq(r.q[MX_Q4].elem_round, MX_ROUND_RTZ);
  ck_assert_int_eq(r.q[MX_Q1].elem_round, MX_ROUND_RNA);
  ck_assert_int_eq(r.q[MX_Q3].elem_round, MX_ROUND_SR);
  const char *const all = "sr.policy=all";
  const mx_linear_text tseng = {.recipe = "recipe-tseng", .train = &all, .n_train = 1};
  ck_assert_int_eq(mx_linear_resolve(&r, NULL, &tseng, &err), MX_OK);
  ck_assert_int_eq(r.q[MX_Q1].elem_round, MX_ROUND_RNE);
}
END_TEST

int main(void) {
  Suite *s = suite_create("techniques");
  TCase *t = tcase_create("outliers");
  tcase_add_test(t, outliers_by_rank);
  tcase_add_test(t, outliers_by_hand);
  tcase_add_test(t, outliers_come_back);
  tcase_add_test(t, outliers_by_infinite_weights);
  tcase_add_test(t, outliers_refused);
  tcase_add_test(t, ema_by_hand);
  tcase_add_test(t, double_quantisation_differs);
  tcase_add_test(t, loss_scale_by_hand);
  tcase_add_test(t, ramp_by_hand);
  tcase_add_test(t, ramp_is_the_reference);
  tcase_add_test(t, periods_of_a_rehearsal);
  tcase_add_test(t, ramp_refused);
  tcase_add_test(t, policies_by_hand);
  suite_add_tcase(s, t);
  return run_suite(s);
}
