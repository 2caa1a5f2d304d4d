/* Tests the gradient rules of the quantised linear layer, and their parts, against numbers worked by hand from the papers' formulas. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gradient.h"
#include "../ref/linear.h"
#include "lib/run.h"
#include "mxgold/ablate.h"
#include "train/linear/gradient/block.h"

static mx_linear_recipe recipe_of(const char *keys, const char *train) {
  mx_linear_recipe r = {0};
  mx_error err;
  for (int q = 0; q < MX_OPERANDS; q++)
    if (mx_spec_parse(&r.q[q], keys, &err)) ck_abort_msg("%s: %s", keys, err.text);
  if (mx_linear_parse(&r, train, &err)) ck_abort_msg("%s: %s", train, err.text);
  return r;
}

static void near(const char *what, double got, double want, double most) {
  ck_assert_msg(fabs(got - want) <= most || got == want, "%s: %.9g, expected %.9g", what, got, want);
}

/* The slope in src/ and in ref/. */
static double slope(const mx_linear_recipe *r, int elem, double v) {
  mx_error err;
  double fast = v;
  if (mx_linear_slopes(&fast, &fast, 1, r, elem, &err)) ck_abort_msg("%s", err.text);
  const double slow = ref_qprime(r, elem, v);
  ck_assert_msg(memcmp(&fast, &slow, sizeof fast) == 0, "at %.17g: %.17g, expected %.17g", v, fast, slow);
  return fast;
}

START_TEST(dge) {
  const mx_linear_recipe r = recipe_of("", "grad.qprime=dge,grad.qprime_lo=0,grad.qprime_hi=3");
  static const double want[][2] = {
      {0, .2},        {.25, 3},       {.5, .2},      {.6, .300960}, {1.75, 3}, {2.5, 3}, {3.5, 3},      {5, 3},
      {5.5, .348220}, {6, .2},        {7, .2},       {1, .2},       {2, .2},   {4, .2},  {.8, .724780}, {10.0 / 3, .481645},
      {1.2, .724780}, {3.6, .724780}, {.48, .213796}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++)
    for (int sign = -1; sign <= 1; sign += 2) near("dge", slope(&r, MX_ELEM_E2M1, sign * want[i][0]), want[i][1], 6e-7);
  /* The published vector: 20 points of [-6, 6] in bfloat16, and what the library computed from them in bfloat16. */
  static const double published[] = {.2002, .4375, .6055, .2168, 1.8359, .2695, .3027, .2695, .2402, .5781};
  for (int i = 0; i < 20; i++) {
    const float x = (float)(-6 + 12.0 * i / 19);
    uint16_t half;
    mx_narrow(&half, &x, 1, MX_BF16, 1);
    const uint32_t bits = (uint32_t)half << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    const double expected = published[i < 10 ? i : 19 - i];
    near("published dge", slope(&r, MX_ELEM_E2M1, (double)v), expected, 5e-3 * expected);
  }
  /* The bound of 3 acts where |r| < 15^(-5/4), and shrinks the mean over an interval from 1 to .593494. */
  double sum = 0;
  for (int i = 0; i < 200000; i++) sum += slope(&r, MX_ELEM_E2M1, 4 + 2 * (i + .5) / 200000);
  near("mean of dge", sum / 200000, .593494, 2e-6);
  near("inside the bound", slope(&r, MX_ELEM_E2M1, 5.03387), 3, 0);
  ck_assert_double_lt(slope(&r, MX_ELEM_E2M1, 5.03388), 3);
}
END_TEST

START_TEST(baseline_compat) {
  /* Bounds do not apply to it, intervals are (lo, hi], and a midpoint gives 0. */
  const mx_linear_recipe r = recipe_of("", "grad.qprime=baseline_compat");
  static const double want[][2] = {{.35, .315479}, {2, .151572}, {-2, .174110}, {4, .174110}, {6, .2},
                                   {7, .2},        {-6, .2},     {-9, .2},      {.25, 0},     {5, 0}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) near("baseline", slope(&r, MX_ELEM_E2M1, want[i][0]), want[i][1], 6e-7);
}
END_TEST

START_TEST(spline) {
  const mx_linear_recipe r = recipe_of("", "grad.qprime=spline,grad.qprime_lo=0"), bounded = recipe_of("", "grad.qprime=spline");
  /* The intervals of positive numbers in which the slope is not 0, with their ends to four digits. */
  static const struct {
    double from, to, slope;
  } want[] = {{.1538, .4615, 1.625},  {.4615, .7692, 1.625},  {1.0769, 1.3846, 1.625}, {1.6923, 2, 1.625},
              {2.3077, 2.6154, 3.25}, {3.2308, 3.5385, 3.25}, {4.7692, 5.0769, 6.5}};
  double sum = 0;
  for (int i = -60000; i < 60000; i++) {
    const double v = (i + .5) / 10000, a = fabs(v), got = slope(&r, MX_ELEM_E2M1, v);
    double expected = 0;
    int close = 0;
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
      if (a > want[k].from && a < want[k].to) expected = want[k].slope;
      close |= fabs(a - want[k].from) < 1e-4 || fabs(a - want[k].to) < 1e-4;
    }
    if (!close) ck_assert_msg(got == expected, "at %g: %g, expected %g", v, got, expected);
    ck_assert(slope(&bounded, MX_ELEM_E2M1, v) == (got < .5 ? .5 : got));
    sum += got;
  }
  near("mean slope", sum / 120000, 1, 1e-4);
  near("at 6", slope(&bounded, MX_ELEM_E2M1, 6), .5, 0);
}
END_TEST

START_TEST(masks) {
  const mx_linear_recipe dge_ = recipe_of("", "grad.qprime=dge,grad.mask=graphcore,grad.qprime_lo=0"),
                         base = recipe_of("", "grad.qprime=baseline_compat,grad.mask=graphcore"),
                         line = recipe_of("", "grad.qprime=spline,grad.mask=graphcore");
  for (double v = -10; v < 6; v += .01) {
    ck_assert(slope(&dge_, MX_ELEM_E2M1, v) == 1 && slope(&base, MX_ELEM_E2M1, v) == 1 && slope(&line, MX_ELEM_E2M1, v) == 1);
  }
  for (double v = 6; v < 9; v += 1.5) {
    near("dge at 6", slope(&dge_, MX_ELEM_E2M1, v), .2, 1e-15);
    near("baseline at 6", slope(&base, MX_ELEM_E2M1, v), .2, 1e-15);
    near("spline at 6", slope(&line, MX_ELEM_E2M1, v), .5, 0);
  }
}
END_TEST

/* The power of the root against that of the C library, for every k and over many binades: e5m2's last interval is 8192 wide, around 53248. */
START_TEST(powers) {
  for (int k = 1; k <= MXI_MOST_K; k++) {
    const mx_linear_recipe r = {.grad_qprime = MX_QPRIME_BASELINE_COMPAT, .grad_k = k};
    for (double a = 1e-9; a < 4096; a *= 1.37) {
      const double v = 53248 + a, want = 4096.0 / k * pow(v - 53248, 1.0 / k - 1);
      if (v > 53248) near("power", slope(&r, MX_ELEM_E5M2, v) / want, 1, 1e-14);
    }
  }
}
END_TEST

START_TEST(every_format) {
  static const char *const kinds[] = {"grad.qprime=dge", "grad.qprime=baseline_compat", "grad.qprime=spline,grad.qprime_lo=0,spline.knots=97"};
  for (size_t i = 0; i < 3; i++)
    for (int elem = 0; elem < MX_ELEM_COUNT; elem++) {
      const mx_linear_recipe r = recipe_of("", kinds[i]);
      const int codes = mx_elem_format(elem)->kind != MX_KIND_NONE;
      const double most = codes ? mx_format_max(mx_elem_format(elem)) : 6;
      for (int j = -300; j <= 300; j++) slope(&r, elem, most * 1.1 * j / 300);
      for (uint64_t code = 0; codes && code < 256; code++) slope(&r, elem, mx_decode(mx_elem_format(elem), code));
    }
}
END_TEST

/* Computes dw in a layer with one output feature (or one token) in which dw before the rules is `up`, from dy = 1 and x = up in plain
 * products. */
static void layer_dw(float *dw, const mx_linear_recipe *recipe, const float *w, const float *up, size_t n) {
  mx_linear_recipe r = *recipe;
  r.off[MX_DGRAD] = r.off[MX_WGRAD] = 1;
  const mx_linear l = {.recipe = &r, .T = 1, .I = n, .O = 1};
  const float one = 1;
  float y;
  static char saved[1 << 16], work[1 << 20];
  size_t n_saved, n_work;
  mx_error err;
  if (mx_linear_sizes(&n_saved, &n_work, &l, NULL, &err)) ck_abort_msg("%s", err.text);
  ck_assert(n_saved <= sizeof saved && n_work <= sizeof work);
  const mx_linear_in wi = {w, n, MX_F32}, xi = {up, n, MX_F32}, di = {&one, 1, MX_F32};
  const mx_linear_out out = {dw, n, MX_F32, 0};
  if (mx_linear_forward(&l, (mx_linear_out){&y, 1, MX_F32, 0}, xi, wi, NULL, saved, work, NULL, &err) ||
      mx_linear_backward(&l, (mx_linear_out){0}, out, NULL, di, xi, wi, saved, work, NULL, &err))
    ck_abort_msg("%s", err.text);
  float again[256];
  if (ref_linear_backward(&l, (mx_linear_out){0}, (mx_linear_out){again, n, MX_F32, 0}, NULL, di, xi, wi, &err)) ck_abort_msg("%s", err.text);
  ck_assert_msg(!memcmp(dw, again, n * sizeof *dw), "ref has other bits");
}

/* arXiv 2501.17116: a row of W, its scale as a float32 and as a power of two. */
START_TEST(estimator_in_the_weight_gradient) {
  const float w[] = {.3f, -.9f, .12f, .5f}, up[] = {1, 1, 1, 1};
  float dw[4];
  mx_linear_recipe r = recipe_of("scale=fp32 block=row scale.rule=value", "grad.operands=w,grad.qprime=dge,grad.qprime_lo=0,grad.qprime_hi=3");
  layer_dw(dw, &r, w, up, 4);
  static const double want[] = {.2, .2, .724780, .481645}, pow2[] = {.724780, .724780, .213796, .2};
  for (int i = 0; i < 4; i++) near("fp32 scale", (double)dw[i], want[i], 1e-6);
  for (int q = 0; q < MX_OPERANDS; q++) mx_spec_parse(&r.q[q], "scale=e8m0 scale.rule=value scale.round=up", NULL);
  layer_dw(dw, &r, w, up, 4);
  for (int i = 0; i < 4; i++) near("scale of a power of two", (double)dw[i], pow2[i], 1e-6);
  r.grad_operands = MX_GRAD_OF_X;
  layer_dw(dw, &r, w, up, 4);
  for (int i = 0; i < 4; i++) ck_assert_float_eq(dw[i], 1);
}
END_TEST

/* Quartet with a rotation of 16: the mask acts on the rotated gradient, before it is rotated back, so that dw itself is dense. */
START_TEST(trust_mask) {
  float rotated[16], w[16], up[16], back[16], dw[16];
  for (int i = 0; i < 16; i++) rotated[i] = (float)((i * 5 % 7) - 3) / 4, up[i] = (float)(i + 1);
  rotated[3] = 9;
  mx_linear_recipe r = recipe_of("scale.rule=quest elem.round=rtz_tie", "grad.trust_mask=on");
  mxi_blocks b;
  mx_tensor t;
  double stored;
  ck_assert_int_eq(mx_tensor_alloc(&t, 1, 16, &r.q[0]), MX_OK);
  ck_assert_int_eq(mx_quantize(&t, rotated, 1, 16, 16, &r.q[0], NULL, NULL), MX_OK);
  mxi_blocks_of(&b, &t, &r.q[0]);
  const double s = mxi_block_multiplier(&b, 0, 0, &stored);
  ck_assert_double_eq(s, .5);
  mx_tensor_free(&t);
  layer_dw(dw, &r, rotated, up, 16);
  for (int i = 0; i < 16; i++) ck_assert_float_eq(dw[i], i == 3 ? 0 : up[i]);
  /* Now W is what the rotation turns into those values; the gradient that comes out is up, rotated, masked, rotated back. */
  ck_assert_int_eq(mx_hadamard(w, 16, rotated, 1, 16, 16, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  ck_assert_int_eq(mx_hadamard(back, 16, up, 1, 16, 16, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  r = recipe_of("scale.rule=quest elem.round=rtz_tie had.size=16", "grad.trust_mask=on");
  layer_dw(dw, &r, w, back, 16);
  int dense = 1;
  double dot = 0;
  for (int i = 0; i < 16; i++) dense &= dw[i] != 0;
  ck_assert(dense);
  ck_assert_int_eq(mx_hadamard(dw, 16, dw, 1, 16, 16, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  for (int i = 0; i < 16; i++) dot += fabs((double)dw[i] - (i == 3 ? 0 : (double)up[i]));
  near("rotated gradient", dot, 0, 1e-4);
}
END_TEST

/* The mask is 0 at the largest value itself. Blocks are +-d, whose standard deviation, from which QuEST takes the scale, is d. */
START_TEST(trust_ends_at_the_largest_value) {
  const float w[] = {6, -6, 5.99f, -3}, up[] = {1, 2, 3, 4}, want[] = {0, 0, 3, 4};
  float dw[4], x[32];
  const mx_linear_recipe r = recipe_of("", "grad.trust_mask=on"), quest = recipe_of("scale.rule=quest", "");
  layer_dw(dw, &r, w, up, 4);
  for (int i = 0; i < 4; i++) ck_assert_float_eq(dw[i], want[i]);
  static const float deviations[][2] = {{1, .25f}, {1.03f, .5f}, {2.06f, 1}};
  for (size_t k = 0; k < 3; k++) {
    mx_tensor t;
    mxi_blocks b;
    double stored;
    for (int i = 0; i < 32; i++) x[i] = i % 2 ? deviations[k][0] : -deviations[k][0];
    ck_assert_int_eq(mx_tensor_alloc(&t, 1, 32, &quest.q[0]), MX_OK);
    ck_assert_int_eq(mx_quantize(&t, x, 1, 32, 32, &quest.q[0], NULL, NULL), MX_OK);
    mxi_blocks_of(&b, &t, &quest.q[0]);
    ck_assert_double_eq(mxi_block_multiplier(&b, 0, 0, &stored), (double)deviations[k][1]);
    mx_tensor_free(&t);
  }
}
END_TEST

/* The published example has a rotation of 4, which is smaller than the layer allows, so its numbers go through the same calls one by one. */
START_TEST(trust_mask_of_four) {
  const float xh[] = {.5f, -1, .25f, 9}, up[] = {1, 2, 3, 4};
  float dx[4];
  mx_linear_recipe r = recipe_of("scale.rule=quest elem.round=rtz_tie block=1x4", "grad.trust_mask=on");
  layer_dw(dx, &r, xh, up, 4);
  static const float masked[] = {1, 2, 3, 0}, want[] = {3, 1, 0, -2};
  for (int i = 0; i < 4; i++) ck_assert_float_eq(dx[i], masked[i]);
  ck_assert_int_eq(mx_hadamard(dx, 4, dx, 1, 4, 4, 4, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  for (int i = 0; i < 4; i++) ck_assert_float_eq(dx[i], want[i]);
}
END_TEST

/* Derivatives of the scale: a block of four, e4m3 in the encode form, s = 2.4, s_q = 2.5, codes 2 -4 1 6. .7 is a tie there, which
 * the next number above takes to 2 as the real .7 does. */
#define ENCODE "scale=e4m3 block=1x16 scale.rule=value scale.form=encode"
static const float block[] = {.70000005f, -1.9f, .3f, 2.5f};
static void factors(const char *keys, const char *train, const double want[4], double most) {
  static const float up[] = {1, 1, 1, 1};
  float dw[4];
  const mx_linear_recipe r = recipe_of(keys, train);
  layer_dw(dw, &r, block, up, 4);
  for (int i = 0; i < 4; i++) near(train, (double)dw[i], want[i], most);
}

START_TEST(table_of_configurations) {
  factors(ENCODE, "grad.config=ste", (double[]){1, 1, 1, 1}, 0);
  factors(ENCODE, "grad.config=absmax", (double[]){1, 1, 1, .9616}, 6e-8);
  factors(ENCODE, "grad.config=hybrid,grad.beta=1", (double[]){1.003478, .965356, 1.002332, .978958}, 6e-7);
  factors(ENCODE, "grad.config=hybrid", (double[]){1, 1, 1, .9616}, 1e-6); /* beta 80 is absmax */
  /* Z = 3.101533, s = 1.934527, s_q = 1.875, codes 1.5 -4 .5 4. */
  factors(ENCODE, "grad.config=softmax,grad.beta=1", (double[]){1.003013, 1.023343, .999327, .933162}, 6e-7);
  factors(ENCODE, "grad.config=softmax", (double[]){1, 1, 1, .9616}, 1e-6);
  /* The same block in the decode form: s = 2.5/6, s_q = .40625, codes 1.5 -4 .75 -> .5 or 1, 6: (q - v)/F at the largest. */
  factors("scale=e4m3 block=1x16 scale.rule=value", "grad.config=absmax", (double[]){1, 1, 1, 1 + (6 - 2.5 / .40625) / 6}, 6e-8);
  /* A margin of 3/4 maps to 4.5: s_q = .5625, v = 4.44 -> 4 at the largest. */
  factors("scale=e4m3 block=1x16 scale.rule=value scale.margin=0.75", "grad.config=absmax", (double[]){1, 1, 1, .90123457}, 6e-8);
  /* The full Jacobian: G = 1 sums (q - v) over the block, [.25 .75 .25 -.25], and the largest element gets that times 6 (.4 / 2.5)^2. */
  factors(ENCODE, "grad.config=absmax,grad.jacobian=full", (double[]){1, 1, 1, 1 + 6 * .16 * .16}, 6e-8);
  const double weight[] = {.090579, -.300733, .060717, .547971};
  double want[4];
  for (int i = 0; i < 4; i++) want[i] = 1 + 6 * .16 * .16 * weight[i];
  factors(ENCODE, "grad.config=hybrid,grad.beta=1,grad.jacobian=full", want, 2e-7);
}
END_TEST

START_TEST(ties) {
  static const float x[] = {1, -3, 3, .3f}, up[] = {1, 1, 1, 1};
  /* Encode, e4m3: s = 2, codes 2 -6 6 .5: nothing moves at the largest. s = 6/2.9 does: 2.0689 -> 2, v 5.8 -> 6. */
  float y[4], dw[4];
  for (int i = 0; i < 4; i++) y[i] = fabsf(x[i]) == 3 ? copysignf(2.9f, x[i]) : x[i];
  const double step = 6 * (.5 / 2.9) * (.5 / 2.9) * (6 - 5.8);
  mx_linear_recipe r = recipe_of(ENCODE, "grad.config=absmax");
  layer_dw(dw, &r, y, up, 4);
  near("first of two", (double)dw[1], 1 + step, 1e-6);
  near("second of two", (double)dw[2], 1, 0);
  r.grad_ties = MX_GRAD_TIES_ALL;
  layer_dw(dw, &r, y, up, 4);
  near("first of all", (double)dw[1], 1 + step, 1e-6);
  near("second of all", (double)dw[2], 1 + step, 1e-6);
}
END_TEST

/* U = X / 10, s_q = 24, h = [.625 -1.666667 .208333 2.5]. */
START_TEST(gradient_of_the_tensor_scale) {
  double v[4], q[] = {1.5, -4, .5, 6}, slopes[] = {1, 1, 1, 1}, dz[4] = {0}, dg[] = {1, 1, 1, 1}, out[4];
  for (int i = 0; i < 4; i++) v[i] = (double)block[i] * 2.4;
  const mxi_block b = {4, v, q, slopes, dz, 10.0 / 24, 0};
  static const double want[] = {-.0075, .023333, -.009167, 0};
  mxi_jacobian_diag(out, &b, (mxi_tensor_slope){10, dg});
  for (int i = 0; i < 4; i++) near("dh/dg", out[i] - 1, want[i], 6e-7);
  /* In the layer, 10 lies in another block and under absmax has the whole derivative; its own code is exact, so that 1 remains. */
  float x[32] = {0}, up[32], dw[32];
  memcpy(x, block, sizeof block);
  x[20] = 10;
  for (int i = 0; i < 32; i++) up[i] = (float)(i % 5) - 2;
  mx_linear_recipe r = recipe_of(ENCODE " tensor.norm=unit", "grad.tensor=absmax");
  layer_dw(dw, &r, x, up, 32);
  for (int i = 0; i < 32; i++) ck_assert_float_eq(dw[i], up[i]);
  /* The full derivative: the sum over the tensor of G_i (f_i(U) - U_i). */
  r.grad_jacobian = MX_JACOBIAN_FULL;
  layer_dw(dw, &r, x, up, 32);
  near("dL/dg", (double)dw[20] - (double)up[20], -2 * -.0075 - .023333 + 0 * -.009167, 2e-6);
  for (int i = 0; i < 32; i++) ck_assert(i == 20 || dw[i] == up[i]);
}
END_TEST

/* Slopes of scales in e4m3: the twenty smallest values are 0 to .04296875. */
static double scale_slope(const mx_linear_recipe *r, int scale, double s) {
  mx_error err;
  double fast = s;
  if (mx_linear_scale_slopes(&fast, &fast, 1, r, scale, &err)) ck_abort_msg("%s", err.text);
  const double slow = ref_scale_qprime(r, scale, s);
  ck_assert_msg(memcmp(&fast, &slow, sizeof fast) == 0, "at %.17g: %.17g, expected %.17g", s, fast, slow);
  return fast;
}

START_TEST(slope_of_scales) {
  mx_linear_recipe theirs = recipe_of("", "grad.scale_qprime=baseline_compat,grad.scale_mask=graphcore"),
                   ours = recipe_of("", "grad.scale_qprime=baseline_compat"), line = recipe_of("", "grad.scale_qprime=spline"),
                   their_line = recipe_of("", "grad.scale_qprime=spline,grad.scale_mask=graphcore");
  near("theirs at .1", scale_slope(&theirs, MX_SCALE_E4M3, .1), .00376, 5e-6);
  near("theirs at 1", scale_slope(&theirs, MX_SCALE_E4M3, 1), .000404, 5e-7);
  near("theirs at 2.5", scale_slope(&theirs, MX_SCALE_E4M3, 2.5), 1.9e-4, 5e-6);
  near("theirs below", scale_slope(&theirs, MX_SCALE_E4M3, .0429), 1, 0);
  ck_assert_double_ne(scale_slope(&theirs, MX_SCALE_E4M3, .04296875), 1);
  for (double s = .0469; s < 500; s *= 1.3) {
    near("ours above", scale_slope(&ours, MX_SCALE_E4M3, s), 1, 0);
    near("line above", scale_slope(&line, MX_SCALE_E4M3, s), 1, 0);
    near("their line above", scale_slope(&their_line, MX_SCALE_E4M3, s), .5, 0);
  }
  /* In (.04296875, .046875], the twentieth interval: d/2 = 2^-9, c = .044921875. */
  near("ours at .0468", scale_slope(&ours, MX_SCALE_E4M3, .0468), .001953125 / 5 * pow(.0468 - .044921875, -.8), 1e-12);
  double sum = 0;
  line = recipe_of("", "grad.scale_qprime=spline,grad.qprime_lo=0");
  for (int i = 0; i < 4690; i++) sum += scale_slope(&line, MX_SCALE_E4M3, (i + .5) / 100000);
  near("mean of the line", sum / 4690, 1, 1e-2);
  static const char *const kinds[] = {"dge", "baseline_compat", "spline"};
  for (int scale = 0; scale < MX_SCALE_COUNT; scale++)
    for (int i = 0; i < 6; i++) {
      char keys[100];
      snprintf(keys, sizeof keys, "grad.scale_qprime=%s,grad.scale_region=%d,grad.scale_mask=%s", kinds[i / 2], i < 3 ? 20 : 7,
               i % 2 ? "first" : "graphcore");
      const mx_linear_recipe r = recipe_of("", keys);
      for (double s = 1e-45; s < 1e38; s *= 3.7) scale_slope(&r, scale, s);
      for (int k = 0; k < 100; k++) scale_slope(&r, scale, k * .0005);
    }
}
END_TEST

/* ---- The Jacobians against central differences, with smooth roundings ---- */

enum { N_BLOCKS = 2, N_IN = 6, N_ALL = N_BLOCKS * N_IN };
static const double tau = 6.283185307179586;
static double round_smooth(double v) { return v + .1 * sin(tau * v); }
static double slope_smooth(double v) { return 1 + .1 * tau * cos(tau * v); }
static double scale_smooth(double s) { return s + .06 * sin(3 * s); }
static double scale_slope_smooth(double s) { return 1 + .18 * cos(3 * s); }

typedef struct smooth {
  int encode, tensor, lse; /* lse: Z and g are log-sum-exp values */
  double beta;
} smooth;

/* The normaliser of n magnitudes and its derivative. */
static double smooth_max(double *dz, const smooth *how, const double *x, int n) {
  double most = 0, sum = 0;
  int at = 0;
  for (int i = 0; i < n; i++)
    if (fabs(x[i]) > most) most = fabs(x[i]), at = i;
  for (int i = 0; i < n; i++) sum += exp(how->beta * (fabs(x[i]) - most));
  for (int i = 0; i < n; i++) {
    const double weight = how->lse ? exp(how->beta * (fabs(x[i]) - most)) / sum : i == at;
    dz[i] = copysign(weight, x[i]);
  }
  return how->lse ? most + log(sum) / how->beta : most;
}

/* h(X) of two blocks as arXiv 2509.17791 writes it (eq. 2), and in the decode form; and what mxgold's formulas are given. */
typedef struct seen {
  double h[N_ALL], v[N_ALL], q[N_ALL], slope[N_ALL], dz[N_ALL], dg[N_ALL], g;
  mxi_block block[N_BLOCKS];
} seen;
static void forward(seen *s, const smooth *how, const double *x) {
  double u[N_ALL];
  s->g = how->tensor ? smooth_max(s->dg, how, x, N_ALL) : 1;
  for (int i = 0; i < N_ALL; i++) u[i] = x[i] / s->g;
  for (int b = 0; b < N_BLOCKS; b++) {
    const int from = b * N_IN;
    const double z = smooth_max(s->dz + from, how, u + from, N_IN), before = how->encode ? 6 / z : z / 6, stored = scale_smooth(before);
    const double multiplier = how->encode ? s->g / stored : s->g * stored;
    near("s", mxi_scale_before(how->encode, 6, multiplier, z * s->g, stored), before, 1e-12 * before);
    for (int i = from; i < from + N_IN; i++) {
      s->v[i] = x[i] / multiplier;
      s->q[i] = round_smooth(s->v[i]);
      s->slope[i] = slope_smooth(s->v[i]);
      s->h[i] = s->q[i] * multiplier;
    }
    s->block[b] = (mxi_block){N_IN,
                              s->v + from,
                              s->q + from,
                              s->slope + from,
                              s->dz + from,
                              multiplier,
                              mxi_lever(how->encode, 6, 1, multiplier, z * s->g, scale_slope_smooth(before))};
  }
}

/* dh_i/dx_j by differences of the fourth order. */
static double difference(const smooth *how, const double *x, int i, int j) {
  static const double weight[] = {1, -8, 0, 8, -1};
  const double step = 2e-4;
  double sum = 0;
  for (int k = 0; k < 5; k++) {
    double y[N_ALL];
    seen s;
    memcpy(y, x, sizeof y);
    y[j] += (k - 2) * step;
    forward(&s, how, y);
    sum += weight[k] * s.h[i];
  }
  return sum / (12 * step);
}

START_TEST(jacobians) {
  const double x[N_ALL] = {.7, -1.9, .3, 2.5, -.05, 1.1, 3.1, -.6, 1.7, -2.2, .9, .02};
  for (int c = 0; c < 8; c++) {
    const smooth how = {c & 1, c >> 1 & 1, c >> 2 & 1, 1.5};
    seen s;
    forward(&s, &how, x);
    for (int i = 0; i < N_ALL; i++) {
      double up[N_ALL] = {0}, out[N_IN], of_tensor = 0, sums[N_BLOCKS];
      up[i] = 1;
      for (int b = 0; b < N_BLOCKS; b++) {
        sums[b] = mxi_jacobian_sum(&s.block[b], up + b * N_IN);
        if (how.tensor) of_tensor += mxi_jacobian_of_tensor(&s.block[b], sums[b], s.g);
      }
      for (int b = 0; b < N_BLOCKS; b++) {
        mxi_jacobian_full(out, &s.block[b], up + b * N_IN, sums[b], how.tensor ? s.dg + b * N_IN : NULL, of_tensor);
        for (int j = 0; j < N_IN; j++) near("vector-Jacobian product", out[j], difference(&how, x, i, b * N_IN + j), 1e-8);
      }
      /* Without a tensor scale this is the diagonal of the full Jacobian; with one, eq. 3 leaves out how f_i(U) depends on the other U. */
      mxi_jacobian_diag(out, &s.block[i / N_IN], (mxi_tensor_slope){s.g, NULL});
      if (!how.tensor) near("diagonal", out[i % N_IN], difference(&how, x, i, i), 1e-8);
    }
  }
}
END_TEST

/* With X / 10, Q(y) = y + .1 sin 2 pi y and q the identity, g cancels, which the printed equation misses. */
START_TEST(tensor_scale_cancels) {
  double v[4], q[4], slopes[4], dz[] = {0, 0, 0, 1}, dg[] = {1, 1, 1, 1}, d[4], out[4];
  for (int i = 0; i < 4; i++) {
    v[i] = (double)block[i] * 2.4;
    q[i] = round_smooth(v[i]);
    slopes[i] = slope_smooth(v[i]);
  }
  const mxi_block b = {4, v, q, slopes, dz, 10.0 / 24, mxi_lever(1, 6, 1, 10.0 / 24, 2.5, 1)};
  static const double want[] = {.01496, -.10946, -.00056, 0};
  mxi_jacobian_diag(d, &b, (mxi_tensor_slope){10, NULL});
  mxi_jacobian_diag(out, &b, (mxi_tensor_slope){10, dg});
  for (int i = 0; i < 4; i++) near("printed term", out[i] - d[i], want[i], 6e-6);
  const double up[] = {.3, -1.2, 2, .7};
  near("exact term", mxi_jacobian_of_tensor(&b, mxi_jacobian_sum(&b, up), 10), 0, 1e-15);
}
END_TEST

/* dZ/dx of the layer's own normalisers against differences, relative and not. */
START_TEST(normalisers) {
  float x[6] = {.7f, -1.9f, .3f, 2.5f, -.05f, 1.1f}, room[12];
  for (int relative = 0; relative < 2; relative++) {
    const mxi_normaliser how = {.derivative = MX_GRAD_SOFTMAX, .lse = 1, .relative = relative, .beta = 3, .unit = 1};
    double dz[6];
    mxi_normalise(dz, &how, x, 6, room, room + 6);
    for (int j = 0; j < 6; j++) {
      float y[6];
      memcpy(y, x, sizeof y);
      y[j] = x[j] + 0x1p-8f;
      const double after = mxi_normalise(NULL, &how, y, 6, room, room + 6), there = (double)y[j];
      y[j] = x[j] - 0x1p-8f;
      const double before = mxi_normalise(NULL, &how, y, 6, room, room + 6);
      near("dZ/dx", dz[j], (after - before) / (there - (double)y[j]), 6e-5);
    }
  }
  const mxi_normaliser lse = {.derivative = MX_GRAD_SOFTMAX, .lse = 1, .beta = 1, .unit = 1};
  near("log-sum-exp", mxi_normalise(NULL, &lse, block, 4, room, room + 4), 3.101533, 6e-7);
  /* Relative: twice the block is twice Z. Not relative: it is not. */
  mxi_normaliser how = {.derivative = MX_GRAD_SOFTMAX, .lse = 1, .relative = 1, .beta = 7, .unit = 1};
  float twice[6];
  for (int i = 0; i < 6; i++) twice[i] = 2 * x[i];
  ck_assert_double_eq(mxi_normalise(NULL, &how, twice, 6, room, room + 6), 2 * mxi_normalise(NULL, &how, x, 6, room, room + 6));
  how.relative = 0;
  ck_assert_double_ne(mxi_normalise(NULL, &how, twice, 6, room, room + 6), 2 * mxi_normalise(NULL, &how, x, 6, room, room + 6));
}
END_TEST

START_TEST(keys) {
  mx_error err;
  mx_linear_recipe r = {0};
  char text[40];
  size_t at = 0;
  while (strcmp(mx_train_key_at(at)->name, "grad.qprime_lo")) at++;
  mx_train_key_text(text, sizeof text, &r, at);
  ck_assert_str_eq(text, "0.5");
  ck_assert_int_eq(mx_linear_set(&r, "grad.qprime_lo", "0", &err), MX_OK); /* an explicit zero is not the default */
  mx_train_key_text(text, sizeof text, &r, at);
  ck_assert_str_eq(text, "0");
  static const char *const refused[][2] = {
      {"grad.k=17", "grad.k=17: expected a whole number from 1 to 16"},
      {"grad.k=2.5", "grad.k=2.5: expected a whole number from 1 to 16"},
      {"grad.k=0", "grad.k=0: expected a whole number from 1 to 16"},
      {"spline.knots=1", "spline.knots=1: expected a whole number from 2 to 1024"},
      {"grad.qprime_lo=4,grad.qprime_hi=3", "grad.qprime_lo=4 is above grad.qprime_hi=3"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    r = recipe_of("", refused[i][0]);
    ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
    ck_assert_str_eq(err.text, refused[i][1]);
  }
  double at_ = 1;
  ck_assert_int_eq(mx_linear_slopes(&at_, &at_, 1, &r, MX_ELEM_E2M1, &err), MX_ERR_CONFLICT);
  r = (mx_linear_recipe){0};
  ck_assert_int_eq(mx_linear_slopes(&at_, &at_, 1, &r, MX_ELEM_COUNT, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_linear_scale_slopes(NULL, &at_, 1, &r, MX_SCALE_E4M3, &err), MX_ERR_ARG);
  r = recipe_of("", "grad.trust_mask=on");
  ck_assert_int_eq(mx_preset_find(&r.q[MX_Q2], "hif4", &err), MX_OK);
  ck_assert_int_eq(mx_preset_find(&r.q[MX_Q1], "hif4", &err), MX_OK);
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  ck_assert_ptr_nonnull(strstr(err.text, "hif4"));
}
END_TEST

int main(void) {
  Suite *s = suite_create("gradient");
  TCase *t = tcase_create("gradient");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, dge);
  tcase_add_test(t, baseline_compat);
  tcase_add_test(t, spline);
  tcase_add_test(t, masks);
  tcase_add_test(t, powers);
  tcase_add_test(t, every_format);
  tcase_add_test(t, estimator_in_the_weight_gradient);
  tcase_add_test(t, trust_mask);
  tcase_add_test(t, trust_ends_at_the_largest_value);
  tcase_add_test(t, trust_mask_of_four);
  tcase_add_test(t, table_of_configurations);
  tcase_add_test(t, ties);
  tcase_add_test(t, gradient_of_the_tensor_scale);
  tcase_add_test(t, slope_of_scales);
  tcase_add_test(t, jacobians);
  tcase_add_test(t, tensor_scale_cancels);
  tcase_add_test(t, normalisers);
  tcase_add_test(t, keys);
  suite_add_tcase(s, t);
  return run_suite(s);
}
