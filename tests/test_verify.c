/* Tests the suites of inputs, the suite minimal, and what diff says. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/ref.h"
#include "lib/kernels.h"
#include "lib/run.h"

START_TEST(suites_are_reproducible_and_differ_by_seed) {
  mx_spec spec;
  ck_assert_int_eq(mx_preset_find(&spec, "te-nvfp4", NULL), MX_OK);
  mx_cases a, b;
  const size_t rows = _i == MX_SUITE_BOUNDARY ? 32 : 0;
  ck_assert_int_eq(mx_generate(&a, _i, &spec, rows, 0, 5, NULL), MX_OK);
  ck_assert_int_eq(mx_generate(&b, _i, &spec, rows, 0, 5, NULL), MX_OK);
  ck_assert_uint_eq(a.n, b.n);
  ck_assert_uint_eq(a.rows, b.rows);
  ck_assert_uint_gt(a.n * a.rows * a.ld, 0);
  ck_assert_int_eq(memcmp(a.x, b.x, a.n * a.rows * a.ld * sizeof(float)), 0);
  mx_cases_free(&b);
  ck_assert_int_eq(mx_generate(&b, _i, &spec, rows, 0, 6, NULL), MX_OK);
  if (_i == MX_SUITE_RANDOM || _i == MX_SUITE_TIES) ck_assert_int_ne(memcmp(a.x, b.x, a.n * a.rows * a.ld * sizeof(float)), 0);
  mx_cases_free(&a);
  mx_cases_free(&b);
}
END_TEST

START_TEST(ties_lie_on_ties) {
  mx_spec spec = {0};
  mx_cases c;
  mx_difference *d = malloc(sizeof *d);
  mx_tensor rne, rna;
  ck_assert_int_eq(mx_generate(&c, MX_SUITE_TIES, &spec, 0, 0, 1, NULL), MX_OK);
  mx_tensor_alloc(&rne, c.rows, c.cols, &spec);
  mx_tensor_alloc(&rna, c.rows, c.cols, &spec);
  mx_quantize(&rne, c.x, c.rows, c.cols, c.ld, &spec, NULL, NULL);
  spec.elem_round = MX_ROUND_RNA;
  mx_quantize(&rna, c.x, c.rows, c.cols, c.ld, &spec, NULL, NULL);
  ck_assert_int_eq(mx_diff(d, &rne, &rna, &spec, c.x, c.ld, NULL, NULL, NULL, NULL), MX_OK);
  ck_assert_uint_gt(d->codes, d->n_codes / 10);
  ck_assert_uint_eq(d->ties[15], d->codes);
  mx_tensor_free(&rne);
  mx_tensor_free(&rna);
  mx_cases_free(&c);
  free(d);
}
END_TEST

START_TEST(minimal_tells_all_presets_apart) {
  mx_spec spec = {0};
  mx_cases c;
  const char *pairs[4][2];
  ck_assert_int_eq(mx_generate(&c, MX_SUITE_MINIMAL, &spec, 0, 0, 0, NULL), MX_OK);
  ck_assert_uint_eq(mx_minimal_unseparated(pairs, 4, &c), 0);
  ck_assert_uint_lt(c.n * c.rows * c.cols * sizeof(float), 65536);
  mx_cases_free(&c);
}
END_TEST

START_TEST(vectors_give_back_what_they_expect) {
  mx_spec spec;
  mx_cases c;
  mx_vectors v, e;
  mx_preset_find(&spec, _i ? "te-nvfp4" : "ocp-mxfp6-e3m2", NULL);
  ck_assert_int_eq(mx_generate(&c, _i ? MX_SUITE_SPECIAL : MX_SUITE_TAILS, &spec, 0, 0, 3, NULL), MX_OK);
  ck_assert_int_eq(mx_cases_to_vectors(&v, &c, &spec, "suite", NULL, 3, 0, NULL), MX_OK);
  ck_assert_int_eq(mx_vectors_expected(&e, &v, NULL), MX_OK);
  for (size_t i = 0; i < v.n_columns; i++)
    ck_assert_int_eq(memcmp(v.columns[i].data, e.columns[i].data, v.n_cases * v.columns[i].count * v.columns[i].width), 0);
  mx_vectors_free(&v);
  mx_vectors_free(&e);
  mx_cases_free(&c);
}
END_TEST

START_TEST(nan_and_zero_are_explicit_choices) {
  mx_spec spec = {.elem = MX_ELEM_E4M3};
  const float x[4] = {-0.0f, 1, 2, 3};
  mx_tensor a, b;
  mx_difference *d = malloc(sizeof *d);
  mx_tensor_alloc(&a, 1, 4, &spec);
  mx_tensor_alloc(&b, 1, 4, &spec);
  mx_quantize(&a, x, 1, 4, 4, &spec, NULL, NULL);
  mx_quantize(&b, x, 1, 4, 4, &spec, NULL, NULL);
  b.codes[0] = 0;
  mx_diff(d, &a, &b, &spec, NULL, 0, NULL, NULL, NULL, NULL);
  ck_assert_uint_eq(d->codes, 1);
  ck_assert_uint_eq(d->zero_signs, 1);
  mx_diff(d, &a, &b, &spec, NULL, 0, NULL, NULL, &(mx_diff_options){.equal_zeros = 1}, NULL);
  ck_assert(d->equal);
  a.codes[0] = 0x7F;
  b.codes[0] = 0xFF;
  mx_diff(d, &a, &b, &spec, NULL, 0, NULL, NULL, NULL, NULL);
  ck_assert(d->equal);
  mx_diff(d, &a, &b, &spec, NULL, 0, NULL, NULL, &(mx_diff_options){.nan_bits = 1}, NULL);
  ck_assert(!d->equal);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  free(d);
}
END_TEST

/* --- suite order: sums that no order can change --- */

/* The rows of a quantised tensor as integers, each row in units of its own lowest bit, decoded by the reference. Pairs of 4-bit codes may
 * have either order, if it is the same for every row. */
static int64_t *integers_of(const mx_tensor *t, const mx_spec *spec, size_t block) {
  const mx_format *e = ref_elem_format(spec->elem), *s = ref_scale_format(spec->scale);
  int64_t *out = calloc(t->rows * t->cols, sizeof *out);
  double *v = calloc(t->cols, sizeof *v);
  for (size_t r = 0; r < t->rows; r++) {
    double unit = 0x1p60;
    for (size_t k = 0; k < t->cols; k++) {
      const uint8_t *at = t->codes + r * t->code_stride;
      uint32_t code = 0;
      memcpy(&code, t->scales + (r * t->scale_cols + k / block) * t->scale_bytes, t->scale_bytes);
      v[k] = ref_decode(e, e->bits > 4 ? at[k] : at[k / 2] >> 4 * (k % 2) & 15) * ref_decode(s, code);
      while (v[k] / unit != floor(v[k] / unit)) unit /= 2;
    }
    for (size_t k = 0; k < t->cols; k++) out[r * t->cols + k] = (int64_t)(v[k] / unit);
  }
  free(v);
  return out;
}

static void quantise_order(mx_tensor *t, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed) {
  mx_cases c;
  mx_error err;
  if (mx_generate(&c, MX_SUITE_ORDER, spec, rows, cols, seed, &err)) ck_abort_msg("%zu: %s", cols, err.text);
  ck_assert_int_eq(mx_tensor_alloc(t, rows, cols, spec), MX_OK);
  ck_assert_int_eq(mx_quantize(t, c.x, rows, cols, c.ld, spec, NULL, NULL), MX_OK);
  mx_cases_free(&c);
}

/* For every row of one tensor and every row of another, the sum of the magnitudes of the products, in units of the smallest, is at most
 * 2^24. */
START_TEST(order_is_free_at_any_length) {
  static const char *const presets[] = {"ocp-mxfp4",      "torchao-nvfp4",  "mlx-nvfp4",  "te-nvfp4",     "torchao-nvfp4-2level",
                                        "ocp-mxfp8-e4m3", "ocp-mxfp6-e2m3", "ocp-mxint8", "cutlass-host", "te-4over6"};
  static const size_t lengths[] = {256, 4096, 16384, 100000};
  enum { ROWS = 6 };
  mx_spec spec;
  mx_error err;
  for (size_t p = 0; p < sizeof presets / sizeof *presets + 1; p++)
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
      const size_t K = lengths[l];
      mx_tensor a, b;
      if (p < sizeof presets / sizeof *presets)
        ck_assert_int_eq(mx_preset_find(&spec, presets[p], NULL), MX_OK);
      else if (spec = (mx_spec){0}, 1)
        ck_assert_int_eq(mx_spec_parse(&spec, "scale=fp32 scale.rule=value", &err), MX_OK); /* 4 / 6 has 24 bits */
      size_t rows, block;
      mx_spec_block(&spec, ROWS, K, &rows, &block);
      quantise_order(&a, &spec, ROWS, K, 1);
      quantise_order(&b, &spec, ROWS, K, 2);
      int64_t *x = integers_of(&a, &spec, block), *y = integers_of(&b, &spec, block);
      for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < ROWS; j++) {
          __int128 sum = 0;
          for (size_t k = 0; k < K; k++) sum += llabs(x[i * K + k]) * (__int128)llabs(y[j * K + k]);
          ck_assert_msg(sum > 0 && sum <= 1 << 24, "preset %zu, K=%zu, (%zu, %zu): %g units", p, K, i, j, (double)sum);
        }
      free(x);
      free(y);
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
  /* A block alone may have 21 * 21 = 441 units (6 * 7 / 2 is an odd number of half steps), so 2^24 / 441 = 38043 blocks of 16 are the limit. */
  ck_assert_int_eq(mx_preset_find(&spec, "te-nvfp4", NULL), MX_OK);
  mx_cases c;
  ck_assert_int_eq(mx_generate(&c, MX_SUITE_ORDER, &spec, 4, 38043 * 16, 1, &err), MX_OK);
  mx_cases_free(&c);
  ck_assert_int_eq(mx_generate(&c, MX_SUITE_ORDER, &spec, 4, 38043 * 16 + 1, 1, &err), MX_ERR_UNSUPPORTED);
  ck_assert_str_eq(
      err.text, "suite order: sums of 608689 products would depend on their order under this spec; expected rows of at most 608688 elements");
}
END_TEST

int main(void) {
  Suite *s = suite_create("verify");
  TCase *t = tcase_create("suites");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, suites_are_reproducible_and_differ_by_seed, 0, MX_SUITE_COUNT);
  tcase_add_test(t, ties_lie_on_ties);
  tcase_add_test(t, order_is_free_at_any_length);
  tcase_add_test(t, minimal_tells_all_presets_apart);
  tcase_add_loop_test(t, vectors_give_back_what_they_expect, 0, 2);
  tcase_add_test(t, nan_and_zero_are_explicit_choices);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
