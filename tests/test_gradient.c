/* Gradient rules of the quantised linear layer: every worked number that the papers' formulas give by hand, in the layer and in its parts. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gradient.h"
#include "../ref/linear.h"
#include "lib/run.h"
#include "mxgold/ablate.h"
#include "train/linear/gradient.h"

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
  static mxi_estimator e;
  mxi_estimator_of_elements(&e, r, elem);
  const double fast = mxi_slope(&e, v), slow = ref_qprime(r, elem, v);
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
  /* The published vector: 20 points of [-6, 6] in bfloat16, and what the library's bfloat16 arithmetic made of them. */
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
  /* Bounds do not touch it, the interval is (lo, hi], and a midpoint is 0. */
  const mx_linear_recipe r = recipe_of("", "grad.qprime=baseline_compat");
  static const double want[][2] = {{.35, .315479}, {2, .151572}, {-2, .174110}, {4, .174110}, {6, .2},
                                   {7, .2},        {-6, .2},     {-9, .2},      {.25, 0},     {5, 0}};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) near("baseline", slope(&r, MX_ELEM_E2M1, want[i][0]), want[i][1], 6e-7);
}
END_TEST

START_TEST(spline) {
  const mx_linear_recipe r = recipe_of("", "grad.qprime=spline,grad.qprime_lo=0"), bounded = recipe_of("", "grad.qprime=spline");
  /* Where the slope is not 0, for positive numbers; their ends to four digits. */
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

/* The root's power against the C library's, for every k and over many binades: e5m2's last interval is 8192 wide about 53248. */
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
      const double most = elem == MX_ELEM_NONE ? 6 : mx_format_max(mx_elem_format(elem));
      for (int j = -300; j <= 300; j++) slope(&r, elem, most * 1.1 * j / 300);
      for (uint64_t code = 0; elem != MX_ELEM_NONE && code < 256; code++) slope(&r, elem, mx_decode(mx_elem_format(elem), code));
    }
}
END_TEST

/* A layer of one output feature (or of one token) whose result before the rules is `up`: dw of dy = 1 and x = up in plain products. */
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

/* The published example has a rotation of 4, smaller than the layer's smallest: its numbers through the same calls, one by one. */
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

START_TEST(keys) {
  mx_error err;
  mx_linear_recipe r = {0};
  char text[40];
  size_t at = 0;
  while (strcmp(mx_train_key_at(at)->name, "grad.qprime_lo")) at++;
  mx_train_key_text(text, sizeof text, &r, at);
  ck_assert_str_eq(text, "0.5");
  ck_assert_int_eq(mx_linear_set(&r, "grad.qprime_lo", "0", &err), MX_OK); /* a zero that is said is not the default */
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
  tcase_add_test(t, trust_mask_of_four);
  tcase_add_test(t, keys);
  suite_add_tcase(s, t);
  return run_suite(s);
}
