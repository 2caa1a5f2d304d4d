/* Tests that mx_judge() distinguishes models, names places in D, and respects the options of comparison. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/judging.h"
#include "lib/run.h"

START_TEST(each_model_is_named) {
  fixture f;
  begin(&f, "elem=e4m3", M, 40, K);
  const mx_gemm_options o = {.model = _i};
  float *d = product(&f, &f.a, &f.b, &o);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  ck_assert(j->equal);

  ck_assert_uint_eq(j->models[_i].differ, 0);
  ck_assert_uint_eq(j->models[_i].compared, M * 40);
  if (_i != MX_GEMM_F64 && _i != MX_GEMM_EXACT) { /* the others round more than once */
    j = judge(&f, d, NULL, &(mx_judge_options){.model = "f64"});
    named(j, "D is the product under another model", mx_gemm_model_name(_i));
  }
  free(d);
  end(&f);
}
END_TEST

/* A product under another model with an output that is wrong beside it: no cause that changes nothing there is named for what the model does. */
START_TEST(another_model_and_a_wrong_output) {
  static const char *const models[] = {"hopper_fp8_wgmma", "f32_pairwise"};
  fixture f;
  mx_mma_model fused;
  begin(&f, "elem=e4m3", M, 40, K);
  ck_assert_int_eq(mx_mma_model_find(&fused, models[0], NULL), MX_OK);
  const mx_gemm_options o = _i ? (mx_gemm_options){.model = MX_GEMM_F32_PAIRWISE} : (mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &fused};
  float *d = product(&f, &f.a, &f.b, &o);
  char words[160];
  snprintf(words, sizeof words, "D is the product under another model, %s, but for one output alone: row 5, column 7 has the wrong sign",
           models[_i]);
  d[5 * 40 + 7] *= -1;
  for (int bound = 0; bound <= !_i; bound++) {
    const mx_judgement *said = judge(&f, d, NULL, bound ? &(mx_judge_options){.bound = 1} : &(mx_judge_options){.model = "f32_seq"});
    ck_assert_int_eq(said->n_findings, 1);
    ck_assert_str_eq(said->findings[0].what, words);
    ck_assert_str_eq(said->findings[0].model, models[_i]);
    ck_assert_uint_le(said->findings[0].unexplained, 1);
  }
  for (size_t k = 0; k < 40; k++) d[3 * 40 + k] = d[5 * 40 + k] * 1.01f;
  snprintf(words, sizeof words, "D is the product under another model, %s, but for 41 outputs", models[_i]);
  const mx_judgement *j = judge(&f, d, NULL, &(mx_judge_options){.model = "f32_seq"});
  ck_assert_int_ge(j->n_findings, !_i);
  if (!_i) ck_assert_str_eq(j->findings[0].what, words);
  for (int i = 0; i < j->n_findings; i++) ck_assert_msg(!strstr(j->findings[i].what, "saturate"), "%s", j->findings[i].what);
  free(d);
  end(&f);
}
END_TEST

/* ---- places in D */

START_TEST(d_transposed_shifted_and_permuted) {
  fixture f;
  begin(&f, "elem=e2m1", M, 40, K);
  const size_t n = 40;
  float *d = product(&f, &f.a, &f.b, NULL), *e = calloc(M * n, sizeof *e);
  for (size_t i = 0; i < M; i++)
    for (size_t k = 0; k < n; k++) e[k * M + i] = d[i * n + k];
  named(judge(&f, e, NULL, NULL), "D is transposed (column-major)", "f32_block");
  memcpy(e, d + n, (M - 1) * n * sizeof *e);
  memset(e + (M - 1) * n, 0, n * sizeof *e);
  const mx_judgement *j = judge(&f, e, NULL, NULL);
  ck_assert_msg(strstr(j->findings[0].what, "each row of D holds the next row"), "%s", j->findings[0].what);
  ck_assert_uint_eq(j->findings[0].unexplained, n); /* the last row */
  for (size_t i = 0; i < M; i++) memcpy(e + i * n, d + (i * 5 + 3) % M * n, n * sizeof *e);
  where(judge(&f, e, NULL, NULL), "rows are in another order: row 0 holds what belongs to row 3");
  free(d);
  free(e);
  end(&f);
}
END_TEST

START_TEST(regions) {
  fixture f;
  begin(&f, "elem=e2m1", 72, 80, K);
  const size_t n = 80, m = 72;
  float *d = product(&f, &f.a, &f.b, NULL), *e = malloc(m * n * sizeof *e);
#define FRESH() memcpy(e, d, m *n * sizeof *e)
  FRESH();
  for (size_t i = 64; i < m; i++) memset(e + i * n, 0, n * sizeof *e);
  const mx_judgement *j = judge(&f, e, NULL, NULL);
  where(j, "all in rows 64 to 71 (the last 8, the tail of tiles of 64)");
  where(j, "D is zero there");
  ck_assert_uint_eq(j->differ, 8 * n);
  FRESH();
  for (size_t i = 16; i < 32; i++)
    for (size_t k = 32; k < 48; k++) e[i * n + k] = NAN;
  j = judge(&f, e, NULL, NULL);
  where(j, "one tile of 16 x 16");
  where(j, "all in rows 16 to 31, columns 32 to 47; everything there is wrong");
  where(j, "D is NaN there");
  ck_assert_uint_eq(j->nan_wrong, 256);
  FRESH();
  for (size_t i = 0; i < m * n; i++)
    if (d[i] < 0) e[i] = 0;
  where(judge(&f, e, NULL, NULL), "only where the product is negative");
  FRESH();
  for (size_t i = 0; i < m; i++)
    for (size_t k = 3; k < n; k += 16) e[i * n + k] = 1e9f;
  j = judge(&f, e, NULL, NULL);
  where(j, "only columns with index % 16 = 3");
  where(j, "D holds one number there: 1e+09");
  ck_assert_uint_eq(j->ulps[6], m * 5);
  FRESH();
  e[5 * n + 7] = nextafterf(e[5 * n + 7], 1e9f);
  j = judge(&f, e, NULL, NULL);
  where(j, "all in row 5, column 7");
  ck_assert_uint_eq(j->differ, 1);
  ck_assert_uint_eq(j->ulps[0], 1);
  ck_assert_uint_eq(j->worst.row, 5);
  ck_assert_uint_eq(j->worst.col, 7);
  ck_assert_double_eq(j->worst.ulps, 1);
  FRESH();
  e[3] = INFINITY;
  ck_assert_uint_eq(judge(&f, e, NULL, NULL)->inf_wrong, 1);
  for (size_t i = 0; i < m * n; i++) e[i] = 2 * d[i] * 1.7f;
  j = judge(&f, e, NULL, NULL);
  ck_assert_msg(strstr(j->findings[0].what, "3.4 times"), "%s", j->findings[0].what);
  for (size_t i = 0; i < m * n; i++) e[i] = -0.125f * d[i];
  j = judge(&f, e, NULL, NULL);
  named(j, "2^-3 times what it should be, with the other sign", "f32_block");
  free(d);
  free(e);
  end(&f);
}
END_TEST

START_TEST(tiles_that_hold_something_else) {
  fixture f;
  begin(&f, "elem=e2m1", 64, 96, K);
  const size_t n = 96;
  float *d = product(&f, &f.a, &f.b, NULL), *e = malloc(64 * n * sizeof *e);
#define TILE(r0, r1, c0, c1, value)                                                                                                            \
  memcpy(e, d, 64 * n * sizeof *e);                                                                                                            \
  for (size_t r = r0; r < r1; r++)                                                                                                             \
    for (size_t c = c0; c < c1; c++) e[r * n + c] = value
  TILE(0, 64, 64, 96, d[r * n + c - 64]);
  named(judge(&f, e, NULL, NULL), "columns 64 to 95 hold what belongs to columns 0 to 31", "f32_block");
  TILE(32, 64, 32, 64, d[(r - 32) * n + c + 32]);
  named(judge(&f, e, NULL, NULL), "rows 32 to 63, columns 32 to 63 hold what belongs to rows 0 to 31, columns 64 to 95", "f32_block");
  TILE(16, 32, 48, 64, 0);
  named(judge(&f, e, NULL, NULL), "a tile was never written, or lost: it is zero in rows 16 to 31, columns 48 to 63", "f32_block");
  TILE(16, 32, 48, 64, d[(c - 48 + 16) * n + r - 16 + 48]);
  named(judge(&f, e, NULL, NULL), "a tile is transposed in itself: rows 16 to 31, columns 48 to 63", "f32_block");
  TILE(0, 64, 0, 96, NAN);
  named(judge(&f, e, NULL, NULL), "D was never written, or lost: it is NaN in all of D", NULL);
  free(d);
  free(e);
  end(&f);
}
END_TEST

START_TEST(options_of_comparison) {
  fixture f;
  begin(&f, "elem=e2m1", 8, 8, 32);
  memset(f.a.codes, 0, f.a.code_stride); /* a row of zeros */
  float *d = product(&f, &f.a, &f.b, NULL);
  ck_assert(judge(&f, d, NULL, NULL)->equal);
  d[1] = -0.0f;
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  ck_assert(!j->equal && j->zero_signs == 1);
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.equal_zeros = 1})->equal);
  f.a.scales[1] = 255; /* a NaN scale */
  free(d);
  d = product(&f, &f.a, &f.b, NULL);
  ck_assert(isnan(d[8]));
  d[8] = -d[8];
  ck_assert(judge(&f, d, NULL, NULL)->equal);
  ck_assert(!judge(&f, d, NULL, &(mx_judge_options){.nan_bits = 1})->equal);
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.bound = 1})->equal);
  d[9] = 1;
  ck_assert_uint_eq(judge(&f, d, NULL, &(mx_judge_options){.bound = 1})->differ, 1);
  mx_error err;
  mx_judgement judged;
  ck_assert_int_eq(mx_judge(&judged, d, &f.a, &f.spec, &f.b, &f.spec, NULL, &(mx_judge_options){.model = "f32_blok"}, &err), MX_ERR_KEY);
  ck_assert(strstr(err.text, "nearest: f32_block"));
  free(d);
  end(&f);
}
END_TEST

/* Every model's own product is right under --bound, and a wrong one is not. */
START_TEST(bound_takes_every_order_and_no_bug) {
  fixture f;
  begin(&f, "elem=e4m3", M, N, K);
  for (int m = 0; m < MX_GEMM_FUSED; m++) {
    float *d = product(&f, &f.a, &f.b, &(mx_gemm_options){.model = m});
    ck_assert(judge(&f, d, NULL, &(mx_judge_options){.bound = 1})->equal);
    mx_tensor a = copy(&f.a, &f.spec);
    for (size_t r = 0; r < M; r++) memset(a.codes + r * a.code_stride + 128, 0, 16);
    float *e = product(&f, &a, &f.b, &(mx_gemm_options){.model = m});
    const mx_judgement *j = judge(&f, e, NULL, &(mx_judge_options){.bound = 1});
    named(j, "the last K block is lost", NULL);
    free(d);
    free(e);
    mx_tensor_free(&a);
  }
  end(&f);
}
END_TEST

/* Matrix units: the row of the table is named, alone and beside a bug, and so is a row with other parameters. */
START_TEST(matrix_units_are_named) {
  static const char *const rows[] = {"hopper_fp8_wgmma", "ada_fp8", "blackwell_mxf8f6f4", "cdna3_fp8"};
  fixture f;
  begin(&f, "elem=e4m3", M, N, 160);
  mx_mma_model model;
  ck_assert_int_eq(mx_mma_model_find(&model, rows[_i], NULL), MX_OK);
  const mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = &model};
  float *d = product(&f, &f.a, &f.b, &o);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  ck_assert(j->equal);
  int same = 0;
  for (int i = 0; i < j->n_models; i++) same |= !strcmp(j->models[i].name, rows[_i]) && !j->models[i].differ && j->models[i].compared == M * N;
  ck_assert(same);
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.model = rows[_i]})->equal);
  ck_assert(!judge(&f, d, NULL, &(mx_judge_options){.model = "hopper_f16:F=9"})->equal);
  free(d);
  mx_tensor b = copy(&f.b, &f.spec);
  twice(&b);
  d = product(&f, &f.a, &b, &o);
  named(judge(&f, d, NULL, NULL), "the scales of B are applied twice", NULL);
  free(d);
  mx_tensor_free(&b);
  end(&f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("judge");
  TCase *t = tcase_create("judge");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_model_is_named, 0, MX_GEMM_FUSED);
  tcase_add_loop_test(t, matrix_units_are_named, 0, 4);
  tcase_add_loop_test(t, another_model_and_a_wrong_output, 0, 2);
  tcase_add_test(t, d_transposed_shifted_and_permuted);
  tcase_add_test(t, regions);
  tcase_add_test(t, tiles_that_hold_something_else);
  tcase_add_test(t, options_of_comparison);
  tcase_add_test(t, bound_takes_every_order_and_no_bug);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
