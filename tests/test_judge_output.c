/* Tests mx_judge() on what follows the sum, on the order of the sum itself, and on roundings, all computed here. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/judging.h"
#include "lib/run.h"

/* ---- what follows the sum */

static const char *const endings[] = {"alpha is forgotten",
                                      "beta is forgotten",
                                      "C is forgotten",
                                      "C is subtracted",
                                      "C is read transposed",
                                      "the bias is forgotten",
                                      "the bias is added twice",
                                      "the bias goes along rows",
                                      "the bias is multiplied by alpha",
                                      "alpha is applied to C too",
                                      "the sign of the product is wrong"};

START_TEST(each_bug_of_the_epilogue_is_named) {
  fixture f;
  begin(&f, "elem=e2m1", M, M, K);
  float c[M * M], ct[M * M], bias[M], bias2[M], alpha = 0.75f, beta = -1.5f, ab = -1.125f, minus = 1.5f, neg = -0.75f;
  for (size_t i = 0; i < M; i++) {
    bias[i] = (float)(i + 1) * 3.25f;
    bias2[i] = _i == 8 ? bias[i] * alpha : 2 * bias[i];
    for (size_t k = 0; k < M; k++) c[i * M + k] = ct[k * M + i] = (float)((i * 37 + k * 11) % 64) - 20.5f;
  }
  const mx_gemm_options right = {.alpha = &alpha, .beta = &beta, .c = c, .c_type = MX_F32, .bias = bias};
  mx_gemm_options wrong = right;
  if (_i == 0) wrong.alpha = NULL;
  if (_i == 1) wrong.beta = NULL;
  if (_i == 2) wrong.c = NULL;
  if (_i == 3) wrong.beta = &minus;
  if (_i == 4) wrong.c = ct;
  if (_i == 5) wrong.bias = NULL;
  if (_i == 6 || _i == 8) wrong.bias = bias2;
  if (_i == 7) wrong.bias_of_rows = 1;
  if (_i == 9) wrong.beta = &ab;
  if (_i == 10) wrong.alpha = &neg;
  float *d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), endings[_i], "f32_block");
  free(d);
  end(&f);
}
END_TEST

START_TEST(numbers_that_all_outputs_share) {
  fixture f;
  begin(&f, "elem=e2m1", M, M, K);
  const size_t n = M * M;
  float c[M * M], bias[M], alpha = 0.75f, beta = -1.5f;
  for (size_t i = 0; i < n; i++) c[i] = (float)(i * 37 % 64) * 1e6f - 20.5e6f;
  for (size_t i = 0; i < M; i++) bias[i] = (float)i * 3.25e5f;
  float *d = product(&f, &f.a, &f.b, NULL), *e = malloc(n * sizeof *e);
  for (size_t i = 0; i < n; i++) e[i] = d[i] * 1.5f;
  named(judge(&f, e, NULL, NULL), "every output is 1.5 times what it should be: alpha is 1.5, not 1", "f32_block");
  for (size_t i = 0; i < n; i++) e[i] = d[i] * 0.1f;
  named(judge(&f, e, NULL, NULL), "alpha is 0.1, not 1", "f32_block");
  for (size_t i = 0; i < n; i++) e[i] = d[i] + 1;
  named(judge(&f, e, NULL, NULL), "1 is added to every output", "f32_block");
  for (size_t i = 0; i < n; i++) e[i] = d[i] - 12345.5f;
  named(judge(&f, e, NULL, NULL), "-12345.5 is added to every output", "f32_block");
  free(d);
  const mx_gemm_options right = {.alpha = &alpha, .beta = &beta, .c = c, .c_type = MX_F32, .bias = bias};
  mx_gemm_options wrong = right;
  wrong.beta = &(float){-3};
  d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), "C is added twice", "f32_block");
  free(d);
  wrong.beta = &(float){-0.7f};
  d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), "beta is -0.7, not -1.5", "f32_block");
  free(d);
  wrong = right;
  wrong.alpha = &(float){2};
  d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), "alpha is 2, not 0.75", "f32_block");
  free(d);
  /* bfloat16: multiplied after the rounding. */
  const mx_gemm_options half = {.out = MX_BF16};
  uint16_t *h = malloc(n * sizeof *h);
  ck_assert_int_eq(mx_gemm(h, M, &f.a, &f.spec, &f.b, &f.spec, &half, NULL), MX_OK);
  for (size_t i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)h[i] << 16;
    float x;
    memcpy(&x, &bits, 4);
    x *= 1.1f;
    memcpy(&bits, &x, 4);
    h[i] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  named(judge(&f, h, &half, NULL), "every output is multiplied by 1.1, after it was rounded", "f32_block");
  free(h);
  free(e);
  end(&f);
}
END_TEST

/* ---- orders and roundings: computed here, in plain C */

static float deq(const mx_tensor *t, const mx_spec *s, size_t r, size_t k) {
  if (mx_spec_is_plain(s)) return ((const float *)(const void *)t->codes)[r * t->cols + k];
  return (float)(mx_decode(mx_elem_format(s->elem), mx_code_at(t, s, r, k)) *
                 mx_decode(mx_scale_format(s->scale), t->scales[r * t->scale_cols + k / 32]));
}

static float own_sum(const fixture *f, size_t i, size_t j, int kind) {
  float acc = 0, lane[8] = {0};
  volatile float p;
  switch (kind) {
  case 0:
    for (size_t k = f->k; k-- > 0;) acc = fmaf(deq(&f->a, &f->spec, i, k), deq(&f->b, &f->spec, j, k), acc);
    return acc;
  case 1:
    for (size_t k = 0; k < f->k; k++) {
      p = deq(&f->a, &f->spec, i, k) * deq(&f->b, &f->spec, j, k);
      acc += p;
    }
    return acc;
  case 2:
    for (size_t k = 0; k < f->k; k++) lane[k % 8] = fmaf(deq(&f->a, &f->spec, i, k), deq(&f->b, &f->spec, j, k), lane[k % 8]);
    for (size_t w = 4; w; w /= 2)
      for (size_t l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
  case 3: /* a block's exact dot, added from the last block to the first */
    for (size_t b = f->k / 32; b-- > 0;) {
      double dot = 0;
      for (size_t k = b * 32; k < b * 32 + 32; k++) dot += (double)deq(&f->a, &f->spec, i, k) * (double)deq(&f->b, &f->spec, j, k);
      acc = (float)((double)acc + dot);
    }
    return acc;
  case 4: /* every sum cut to binary32 */
    for (size_t k = 0; k < f->k; k++) {
      const double x = (double)acc + (double)deq(&f->a, &f->spec, i, k) * (double)deq(&f->b, &f->spec, j, k);
      float y = (float)x;
      if (fabs((double)y) > fabs(x)) y = nextafterf(y, 0);
      acc = y;
    }
    return acc;
  default: /* chunks of 64 */
    for (size_t c = 0; c < f->k; c += 64) {
      float part = 0;
      for (size_t k = c; k < c + 64 && k < f->k; k++) part = fmaf(deq(&f->a, &f->spec, i, k), deq(&f->b, &f->spec, j, k), part);
      acc += part;
    }
    return acc;
  }
}

START_TEST(orders_of_summation_are_named) {
  static const char *const words[] = {"products fused into the accumulator, k descending",
                                      "products rounded, then added, k ascending",
                                      "8 interleaved lanes",
                                      "exact block dots added, k descending",
                                      "binary32, cut towards zero",
                                      "chunks of 64"};
  fixture f;
  begin(&f, _i == 1 ? "elem=none" : "elem=e4m3", M, 40, 192); /* products of narrow elements are exact in binary32 */
  float *d = malloc(M * 40 * sizeof *d);
  for (size_t i = 0; i < M; i++)
    for (size_t j = 0; j < 40; j++) d[i * 40 + j] = own_sum(&f, i, j, _i);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  named(j, words[_i], "its own");
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.bound = 1, .family = {.bits = _i == 4 ? 23 : 0}})->equal);
  free(d);
  end(&f);
}
END_TEST

static uint16_t cut_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

START_TEST(roundings_of_the_output_are_named) {
  fixture f;
  begin(&f, "elem=e2m1", M, N, K);
  float *d = product(&f, &f.a, &f.b, NULL);
  uint16_t *h = malloc(M * N * sizeof *h);
  for (size_t i = 0; i < M * N; i++) h[i] = cut_bf16(d[i]);
  const mx_gemm_options bf16 = {.out = MX_BF16}, f16 = {.out = MX_F16};
  named(judge(&f, h, &bf16, NULL), "outputs are cut to bfloat16", "f32_block");
  /* bf16 values in a binary32 matrix */
  float *e = malloc(M * N * sizeof *e);
  for (size_t i = 0; i < M * N; i++) {
    const uint32_t bits = (uint32_t)h[i] << 16;
    memcpy(&e[i], &bits, sizeof bits);
  }
  named(judge(&f, e, NULL, NULL), "outputs went through bfloat16, cut towards zero", "f32_block");
  /* binary16: beyond the range, saturated */
  float alpha = 4000;
  const mx_gemm_options big = {.out = MX_F16, .alpha = &alpha};
  ck_assert_int_eq(mx_gemm(h, N, &f.a, &f.spec, &f.b, &f.spec, &big, NULL), MX_OK);
  size_t changed = 0;
  for (size_t i = 0; i < M * N; i++)
    if ((h[i] & 0x7FFF) == 0x7C00) h[i]--, changed++;
  ck_assert_uint_gt(changed, 8);
  const mx_judgement *j = judge(&f, h, &big, NULL);
  named(j, "beyond the range of binary16 saturate", NULL);
  ck_assert_uint_eq(j->inf_wrong, changed);
  ck_assert_int_eq(mx_gemm(h, N, &f.a, &f.spec, &f.b, &f.spec, &f16, NULL), MX_OK);
  ck_assert(judge(&f, h, &f16, NULL)->equal);
  free(d);
  free(e);
  free(h);
  end(&f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("judge_output");
  TCase *t = tcase_create("judge_output");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_bug_of_the_epilogue_is_named, 0, (int)(sizeof endings / sizeof endings[0]));
  tcase_add_test(t, numbers_that_all_outputs_share);
  tcase_add_loop_test(t, orders_of_summation_are_named, 0, 6);
  tcase_add_test(t, roundings_of_the_output_are_named);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
