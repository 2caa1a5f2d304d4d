/* Tests functions and ordered sums of float32 arrays: every ISA and number of threads against the reference, bit for bit; the reference
 * against MPFR; and all against digests typed here, so that every compiler and machine gives the same bits. make exhaustive-math runs all
 * 2^32 inputs. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/math.h"
#include "lib/math_inputs.h"
#include "lib/math_oracle.h"
#include "lib/run.h"
#include "mxgold/isa.h"
#include "mxgold/math.h"

static uint32_t masks[4];
static size_t n_masks(void) {
  static const uint32_t isa[] = {0, MX_ISA_AVX2, MX_ISA_AVX512, MX_ISA_NEON};
  size_t n = 0;
  for (size_t i = 0; i < 4; i++)
    if (!isa[i] || mx_isa_usable(0) & isa[i]) masks[n++] = mx_isa_only(isa[i]);
  return n;
}

static int has_slope(int f) { return mx_math_gradient_ulps(f) > 0; }

static float *room(size_t n) {
  float *x = malloc((n + 1) * sizeof *x);
  ck_assert_ptr_nonnull(x);
  return x;
}

static void same(const float *got, const float *want, const float *x, size_t n, const char *name, uint32_t mask, int threads) {
  for (size_t i = 0; i < n; i++)
    if (memcmp(got + i, want + i, sizeof *got))
      ck_abort_msg("%s, ISA mask %u, %d threads: of x[%zu] = %a came %a, expected %a", name, mask, threads, i, (double)x[i], (double)got[i],
                   (double)want[i]);
}

/* Every 8191st float, and the special ones. */
START_TEST(functions_are_the_reference) {
  enum { N = (1u << 19) + 64 };
  float *x = room(N), *dy = room(N), *want = room(N), *got = room(N);
  const size_t n = math_inputs(x, N, 8191);
  math_inputs_random(dy, n, 7);
  for (int f = 0; f < MX_MATH_COUNT; f++)
    for (int slope = 0; slope <= has_slope(f); slope++) {
      if (slope)
        ref_math_gradient(want, x, dy, n, f);
      else
        ref_math_array(want, x, n, f);
      for (size_t m = 0; m < n_masks(); m++) {
        const int threads = 1 + (int)m;
        const mx_exec exec = {.n_threads = threads, .isa_mask = masks[m]};
        ck_assert(!(slope ? mx_math_gradient(got, x, dy, n, f, &exec) : mx_math_array(got, x, n, f, &exec)));
        same(got, want, x, n, mx_math_name(f), masks[m], threads);
      }
    }
  free(x), free(dy), free(want), free(got);
}
END_TEST

/* Every length and start, also in place; what lies beyond must stay unchanged. */
START_TEST(tails) {
  enum { N = 70 };
  float x[N], dy[N], want[N], got[N];
  math_inputs_random(x, N, 1);
  math_inputs_random(dy, N, 2);
  for (int f = 0; f < MX_MATH_COUNT; f++)
    for (size_t n = 0; n < 40; n++)
      for (size_t m = 0; m < n_masks(); m++) {
        const mx_exec exec = {.isa_mask = masks[m]};
        const size_t from = n % 5;
        memcpy(want, x, sizeof x);
        memcpy(got, x, sizeof x);
        ref_math_array(want + from, x + from, n, f);
        ck_assert(!mx_math_array(got + from, got + from, n, f, &exec));
        same(got, want, x, N, mx_math_name(f), masks[m], 0);
        if (!has_slope(f)) continue;
        memcpy(want, x, sizeof x);
        memcpy(got, x, sizeof x);
        ref_math_gradient(want + from, x + from, dy + from, n, f);
        ck_assert(!mx_math_gradient(got + from, got + from, dy + from, n, f, &exec));
        same(got, want, x, N, mx_math_name(f), masks[m], 0);
      }
}
END_TEST

/* The stated bounds, checked by MPFR for one float in 2^19, with another stride than above, and for special values. */
START_TEST(errors_are_bounded) {
  enum { N = 9000 };
  float x[N], y[N], one[N];
  const size_t n = math_inputs(x, N, 524287);
  for (size_t i = 0; i < n; i++) one[i] = 1;
  for (int f = 0; f < MX_MATH_COUNT; f++)
    for (int slope = 0; slope <= has_slope(f); slope++) {
      const double bound = slope ? mx_math_gradient_ulps(f) : mx_math_ulps(f);
      ck_assert(!(slope ? mx_math_gradient(y, x, one, n, f, NULL) : mx_math_array(y, x, n, f, NULL)));
      for (size_t i = 0; i < n; i++) {
        const double ulps = math_oracle_ulps(f, slope, x[i], y[i]);
        ck_assert_msg(ulps <= bound, "%s%s(%a) is %a, off by %g ulp, stated %g", mx_math_name(f), slope ? "'" : "", (double)x[i], (double)y[i],
                      ulps, bound);
      }
    }
}
END_TEST

/* Typed by hand. */
START_TEST(known_values) {
  static const struct {
    int f;
    float x, y;
  } rows[] = {{MX_MATH_EXP, 0, 1},
              {MX_MATH_EXP, 1, 0x1.5bf0a8p+1f},
              {MX_MATH_EXP, 89, INFINITY},
              {MX_MATH_EXP, -INFINITY, 0},
              {MX_MATH_EXP, -103.97f, 0x1p-149f},
              {MX_MATH_EXP, -104, 0},
              {MX_MATH_LOG, 1, 0},
              {MX_MATH_LOG, -0.0f, -INFINITY},
              {MX_MATH_LOG, INFINITY, INFINITY},
              {MX_MATH_LOG, 0x1p-149f, -0x1.9d1dap+6f},
              {MX_MATH_TANH, -0.0f, -0.0f},
              {MX_MATH_TANH, 0x1p-149f, 0x1p-149f},
              {MX_MATH_TANH, -INFINITY, -1},
              {MX_MATH_ERF, INFINITY, 1},
              {MX_MATH_ERF, -0.0f, -0.0f},
              {MX_MATH_SIN, -0.0f, -0.0f},
              {MX_MATH_SIN, 0x1p127f, 0x1.3f2c62p-1f},
              {MX_MATH_COS, 0, 1},
              {MX_MATH_RSQRT, 4, 0.5f},
              {MX_MATH_RSQRT, -0.0f, -INFINITY},
              {MX_MATH_RSQRT, INFINITY, 0},
              {MX_MATH_SIGMOID, 0, 0.5f},
              {MX_MATH_SIGMOID, -INFINITY, 0},
              {MX_MATH_SILU, -INFINITY, -0.0f},
              {MX_MATH_SILU, INFINITY, INFINITY},
              {MX_MATH_SILU, -0.0f, -0.0f},
              {MX_MATH_GELU_TANH, -INFINITY, -0.0f},
              {MX_MATH_GELU_TANH, -0x1.fffffep127f, -0.0f},
              {MX_MATH_GELU_ERF, INFINITY, INFINITY},
              {MX_MATH_GELU_ERF, -40, -0.0f}};
  static const uint32_t nan_bits = 0x7FC00000;
  static const struct {
    int f;
    float x;
  } nans[] = {{MX_MATH_LOG, -1}, {MX_MATH_LOG, -INFINITY}, {MX_MATH_SIN, INFINITY}, {MX_MATH_COS, -INFINITY}, {MX_MATH_RSQRT, -0x1p-149f}};
  float y;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert(!mx_math_array(&y, &rows[i].x, 1, rows[i].f, NULL));
    ck_assert_msg(!memcmp(&y, &rows[i].y, sizeof y), "%s(%a) is %a, expected %a", mx_math_name(rows[i].f), (double)rows[i].x, (double)y,
                  (double)rows[i].y);
  }
  for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
    ck_assert(!mx_math_array(&y, &nans[i].x, 1, nans[i].f, NULL));
    ck_assert_msg(!memcmp(&y, &nan_bits, sizeof y), "%s(%a)", mx_math_name(nans[i].f), (double)nans[i].x);
  }
}
END_TEST

START_TEST(digests) {
  for (size_t m = 0; m < n_masks(); m++) ck_assert_uint_eq(math_digests(masks[m]), 0);
}
END_TEST

/* --- rows --- */

/* Tests rows with gaps between them, with numbers as in most trainings, or now and then with some that sums could get wrong. */
static void hold_rows(size_t rows, size_t cols, int special, int most_threads) {
  const size_t ld = cols + 3, n = (rows + 1) * ld; /* column sums write one row even if there are none to read */
  float *x = room(n), *y = room(n), *got = room(n), *want = room(n), *start = room(n);
  double *sums = malloc((rows + 1) * sizeof *sums), *expected = malloc((rows + 1) * sizeof *sums);
  math_inputs_random(start, n, 3);
  for (size_t i = 0; i < n; i++)
    x[i] = (float)((int)(i * 7919 % 4001) - 2000) * 0x1.234p-9f, y[i] = (float)((int)(i * 104729 % 5003) - 2500) * 0.01f;
  if (special) {
    math_inputs_random(y, n, 5);
    for (size_t i = 0; i < n; i += 1 + i % 97) x[i] = y[(i * 31) % n];
  }
  for (size_t m = 0; m < n_masks(); m++)
    for (int threads = 1; threads <= most_threads; threads++) {
      const mx_exec exec = {.n_threads = threads, .isa_mask = masks[m]};
      char what[120];
      snprintf(what, sizeof what, "%zu x %zu, special %d", rows, cols, special);
      for (int two = 0; two < 2; two++) {
        ref_math_row_sums(expected, x, ld, two ? y : NULL, ld, rows, cols);
        ck_assert(!mx_math_row_sums(sums, x, ld, two ? y : NULL, ld, rows, cols, &exec));
        ck_assert_msg(!memcmp(sums, expected, rows * sizeof *sums), "row sums %s, ISA mask %u, %d threads", what, masks[m], threads);
        memcpy(got, start, n * sizeof *x);
        memcpy(want, start, n * sizeof *x);
        ref_math_column_sums(want, two, x, ld, two ? y : NULL, ld, rows, cols);
        ck_assert(!mx_math_column_sums(got, two, x, ld, two ? y : NULL, ld, rows, cols, &exec));
        same(got, want, x, n, "column sums", masks[m], threads);
      }
      memcpy(got, start, n * sizeof *x);
      memcpy(want, start, n * sizeof *x);
      ref_math_row_max(want, x, ld, rows, cols);
      ck_assert(!mx_math_row_max(got, x, ld, rows, cols, &exec));
      same(got, want, x, n, "row max", masks[m], threads);
      for (size_t causal = 0; causal <= 7; causal += 7) {
        memcpy(got, start, n * sizeof *x);
        memcpy(want, start, n * sizeof *x);
        ref_math_softmax(want, ld, expected, x, ld, rows, cols, 0.125f, causal);
        ck_assert(!mx_math_softmax(got, ld, sums, x, ld, rows, cols, 0.125f, causal, &exec));
        same(got, want, x, n, "softmax", masks[m], threads);
        ck_assert_msg(!memcmp(sums, expected, rows * sizeof *sums), "log sums %s, ISA mask %u, %d threads", what, masks[m], threads);
        ref_math_softmax_backward(want, ld, want, ld, y, ld, rows, cols, 0.125f, causal);
        ck_assert(!mx_math_softmax_backward(got, ld, got, ld, y, ld, rows, cols, 0.125f, causal, &exec));
        same(got, want, x, n, "softmax backward", masks[m], threads);
      }
    }
  free(x), free(y), free(got), free(want), free(start), free(sums), free(expected);
}

START_TEST(rows_are_the_reference) {
  for (size_t cols = 0; cols < 50; cols++) hold_rows(9, cols, cols % 2, 1);
  hold_rows(9, 129, 0, 1);
  hold_rows(0, 5, 0, 1);
  hold_rows(300, 65, 1, 1);
}
END_TEST

START_TEST(rows_by_threads) {
  hold_rows(1, 3 * MX_MATH_PIECE + 5, 0, 5); /* several pieces */
  hold_rows(2, MX_MATH_PIECE * 5, 1, 4);
  hold_rows(900, 110, 0, 5);
}
END_TEST

/* Softmax and sums against long double arithmetic, within a bound. */
START_TEST(softmax_is_near) {
  enum { N = 300 };
  float x[N], y[N];
  double log_sum, squares;
  for (int i = 0; i < N; i++) x[i] = (float)(i * 37 % N) * 0.11f - 20;
  ck_assert(!mx_math_softmax(y, N, &log_sum, x, N, 1, N, 0.75f, 0, NULL));
  long double sum = 0, all = 0, square = 0;
  for (int i = 0; i < N; i++) sum += expl(0.75L * (long double)x[i]), square += (long double)x[i] * (long double)x[i];
  for (int i = 0; i < N; i++) {
    const long double want = expl(0.75L * (long double)x[i]) / sum;
    all += (long double)y[i];
    ck_assert_msg(fabsl((long double)y[i] - want) <= want * 0x1.1p-23L, "y[%d] is %a, expected %La", i, (double)y[i], want);
  }
  ck_assert(fabsl(all - 1) < 1e-6L);
  ck_assert(fabsl((long double)log_sum - logl(sum)) < 1e-7L);
  ck_assert(!mx_math_row_sums(&squares, x, N, x, N, 1, N, NULL));
  ck_assert(fabsl((long double)squares - square) < 1e-12L * square);
}
END_TEST

START_TEST(errors) {
  float x[4] = {1, 2, 3, 4}, y[4] = {9, 9, 9, 9};
  double sum[2] = {9, 9};
  ck_assert_int_eq(mx_math_array(NULL, x, 4, MX_MATH_EXP, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_array(y, NULL, 4, MX_MATH_EXP, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_array(y, x, 4, MX_MATH_COUNT, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_array(y, x, 4, -1, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_array(NULL, NULL, 0, MX_MATH_EXP, NULL), MX_OK);
  ck_assert_int_eq(mx_math_gradient(y, x, x, 4, MX_MATH_EXP, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_gradient(y, x, NULL, 4, MX_MATH_SILU, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_row_sums(sum, x, 1, NULL, 0, 2, 2, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_math_row_sums(sum, NULL, 2, NULL, 0, 2, 2, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_column_sums(y, 0, x, 2, x, 1, 2, 2, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_math_row_max(NULL, x, 2, 2, 2, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_softmax(y, 1, NULL, x, 2, 2, 2, 1, 0, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_math_softmax(y, 2, NULL, x, 2, 2, 2, 0, 0, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_softmax(y, 2, NULL, x, 2, 2, 2, NAN, 0, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_softmax_backward(y, 2, x, 2, NULL, 2, 2, 2, 1, 0, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_math_softmax_backward(y, 1, x, 2, x, 2, 2, 2, 1, 0, NULL), MX_ERR_SHAPE);
  for (int i = 0; i < 4; i++) ck_assert(y[i] == 9);
  ck_assert(sum[0] == 9 && sum[1] == 9);
}
END_TEST

START_TEST(names) {
  for (int f = 0; f < MX_MATH_COUNT; f++) {
    ck_assert_int_eq(mx_math_find(mx_math_name(f)), f);
    ck_assert_ptr_nonnull(mx_math_doc(f));
  }
  ck_assert_int_eq(mx_math_find("cbrt"), -1);
  ck_assert_int_eq(mx_math_find(NULL), -1);
  ck_assert_ptr_null(mx_math_name(MX_MATH_COUNT));
  ck_assert(mx_math_ulps(-1) == -1 && mx_math_gradient_ulps(MX_MATH_COUNT) == -1);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("math");
  TCase *t = tcase_create("math");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, functions_are_the_reference);
  tcase_add_test(t, tails);
  tcase_add_test(t, errors_are_bounded);
  tcase_add_test(t, known_values);
  tcase_add_test(t, digests);
  tcase_add_test(t, rows_are_the_reference);
  tcase_add_test(t, rows_by_threads);
  tcase_add_test(t, softmax_is_near);
  tcase_add_test(t, errors);
  tcase_add_test(t, names);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
