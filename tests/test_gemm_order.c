/* Tests what holds for a product in every order of its sums: products for which no order changes a bit, and bounds that hold for any order. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "lib/operands.h"
#include "lib/run.h"

/* For sums that are exact in any order, every model and a random order give what the reference gives. */
START_TEST(order_free) {
  static const char *const specs[] = {"",          "block=1x16 scale=e4m3", "elem=e4m3", "elem=e5m2", "elem=e2m3 scale=ue5m3", "elem=e3m2",
                                      "elem=int8", "nibble=half_block",     "scale=fp32"};
  for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
    for (unsigned bits = 14; bits <= 24; bits += 10) {
      const mx_spec spec = operands_spec(specs[s]);
      enum { M = 5, N = 18 };
      const size_t K = bits == 24 ? 300 : 70;
      mx_tensor a, b;
      ck_assert_int_eq(mx_tensor_alloc(&a, M, K, &spec) | mx_tensor_alloc(&b, N, K, &spec), MX_OK);
      ck_assert_int_eq(mx_gemm_make_order_free(&a, &spec, &b, &spec, bits, s + bits), MX_OK);
      float want[M * N], got[M * N];
      ref_gemm(want, N, &a, &spec, &b, &spec, &(mx_gemm_options){.model = MX_GEMM_EXACT}, NULL);
      int zeros = 0;
      for (int i = 0; i < M * N; i++) zeros += want[i] == 0;
      ck_assert_int_lt(zeros, M * N / 4);
      for (int model = 0; model < MX_GEMM_FUSED; model++) {
        ck_assert_int_eq(mx_gemm(got, N, &a, &spec, &b, &spec, &(mx_gemm_options){.model = model}, NULL), MX_OK);
        operands_compare(got, want, M * N, MX_F32, specs[s]);
      }
      /* a random order, in binary32 without fused operations */
      float *x = malloc(M * K * sizeof *x), *y = malloc(N * K * sizeof *y);
      mx_dequantize(x, K, &a, &spec, NULL);
      mx_dequantize(y, K, &b, &spec, NULL);
      size_t order[300];
      for (size_t k = 0; k < K; k++) order[k] = k;
      for (size_t k = K - 1; k; k--) {
        const size_t other = operands_draw(s, k) % (k + 1), keep = order[k];
        order[k] = order[other];
        order[other] = keep;
      }
      for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
          float sum = 0;
          for (size_t k = 0; k < K; k++) sum += x[i * K + order[k]] * y[j * K + order[k]];
          got[i * N + j] = sum;
        }
      operands_compare(got, want, M * N, MX_F32, specs[s]);
      free(x);
      free(y);
      a.codes[3] ^= 0x55;
      a.scales[0] = spec.scale == MX_SCALE_E8M0 ? 250 : a.scales[0];
      int ok = 1;
      ck_assert_int_eq(mx_gemm_order_free(&ok, &a, &spec, &b, &spec, 4), MX_OK);
      ck_assert_int_eq(ok, 0);
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
}
END_TEST

/* With tensor scales only `exact` may give another result, and it does not if their product with alpha is a binary32 number. */
START_TEST(order_free_with_tensor_scales) {
  const mx_spec spec = operands_spec("tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value");
  const mx_mma_model unit = operands_unit("hopper_f16");
  static const struct {
    float a, b, alpha; /* wanted multipliers */
    int same;
  } cases[] = {{1, 1, 1, 1}, {0.5f, 4, 2, 1}, {0.75f, 1.5f, 3, 1}, {1.7f, 0.3f, 1, 0}, {1, 1.1f, 0.1f, 0}};
  enum { M = 16, N = 16, K = 256 };
  float want[M * N], got[M * N];
  mx_tensor a, b;
  ck_assert_int_eq(mx_tensor_alloc(&a, M, K, &spec) | mx_tensor_alloc(&b, N, K, &spec), MX_OK);
  ck_assert_int_eq(mx_gemm_make_order_free(&a, &spec, &b, &spec, 24, 1), MX_OK);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    float ga, gb;
    a.has_tensor_scale = b.has_tensor_scale = 1;
    a.tensor_scale = 2688 * cases[i].a; /* 2688 = 6 * 448, since amax is stored */
    b.tensor_scale = 2688 * cases[i].b;
    ck_assert_int_eq(mx_tensor_multiplier(&ga, &a, &spec) | mx_tensor_multiplier(&gb, &b, &spec), MX_OK);
    const double both = (double)ga * (double)gb, all = (double)(float)both * (double)cases[i].alpha;
    ck_assert_msg(((double)(float)both == both && (double)(float)all == all) == cases[i].same, "case %zu: multipliers %g and %g", i, (double)ga,
                  (double)gb);
    mx_gemm_options o = {.model = MX_GEMM_F32_BLOCK, .fused = &unit, .alpha = &cases[i].alpha};
    ck_assert_int_eq(mx_gemm(want, N, &a, &spec, &b, &spec, &o, NULL), MX_OK);
    for (int model = 0; model <= MX_GEMM_FUSED; model++) {
      o.model = model;
      ck_assert_int_eq(mx_gemm(got, N, &a, &spec, &b, &spec, &o, NULL), MX_OK);
      if (model != MX_GEMM_EXACT || cases[i].same)
        operands_compare(got, want, M * N, MX_F32, mx_gemm_model_name(model));
      else
        ck_assert_msg(memcmp(got, want, sizeof want), "case %zu: exact rounds as the others do, the header says it may not", i);
    }
  }
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}
END_TEST

/* Sums in any order lie between the bounds, which are tight where operands are narrow. */
START_TEST(bounds) {
  static const char *const specs[] = {"", "elem=e4m3", "elem=e5m2", "tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value",
                                      "scale=e4m3 scale.form=encode block=1x16"};
  enum { M = 4, N = 7, K = 90 };
  for (size_t s = 0; s < 5; s++)
    for (operands_kind kind = 0; kind < OPERANDS_QUANTISED; kind++) {
      const mx_spec spec = operands_spec(specs[s]);
      mx_tensor a, b;
      operands_fill(&a, &spec, M, K, kind, 31);
      operands_fill(&b, &spec, N, K, kind, 32);
      const float alpha = -1.5f, beta = 0.25f, bias[N] = {1, 2, 3};
      float c[M * N], lo[M * N], hi[M * N], d[M * N];
      for (int i = 0; i < M * N; i++) c[i] = (float)i;
      mx_gemm_options o = {.alpha = &alpha, .beta = &beta, .c = c, .bias = bias};
      mx_error err;
      if (mx_gemm_bound(lo, hi, N, &a, &spec, &b, &spec, &o, NULL, &err)) ck_abort_msg("%s", err.text);
      for (o.model = 0; o.model < MX_GEMM_FUSED; o.model++) {
        if (o.model == MX_GEMM_EXACT) continue; /* another epilogue */
        if (kind != OPERANDS_NARROW && kind != OPERANDS_CANCEL && (o.model == MX_GEMM_F32_SEQ || o.model == MX_GEMM_F32_PAIRWISE))
          continue; /* code * scale alone may overflow */
        mx_gemm(d, N, &a, &spec, &b, &spec, &o, NULL);
        for (int i = 0; i < M * N; i++)
          if (!(lo[i] <= d[i] && d[i] <= hi[i]) && !isnan(lo[i]) && !(isinf(lo[i]) && isinf(hi[i])))
            ck_abort_msg("%s, %s: %a outside [%a, %a]", specs[s], mx_gemm_model_name(o.model), (double)d[i], (double)lo[i], (double)hi[i]);
      }
      if (kind == OPERANDS_NARROW) /* the bounds must also be tight: within a few units of the magnitudes */
        for (int i = 0; i < M * N; i++) ck_assert(hi[i] - lo[i] < 0.01f * (fabsf(hi[i]) + 10 * (s == 3 ? 1 : 1e3f)) || s == 4 || s == 2);
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gemm order");
  TCase *t = tcase_create("order");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, order_free);
  tcase_add_test(t, order_free_with_tensor_scales);
  tcase_add_test(t, bounds);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
