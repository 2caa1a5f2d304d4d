/* Tests each figure of the ablation of products against a case worked by hand, and against a loop over every term. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/ablate.h"
#include "mxgold/random.h"
#include "mxgold/verify.h"

static mx_spec spec_of(const char *keys) {
  mx_spec s = {0};
  mx_error err;
  ck_assert_msg(mx_spec_parse(&s, keys, &err) == MX_OK, "%s", err.text);
  return s;
}

/* X = [1 2; 3 4], W = [1 0; 1 1; 2 -1]: X W^T by hand. */
START_TEST(product_by_hand) {
  const float x[4] = {1, 2, 3, 4}, w[6] = {1, 0, 1, 1, 2, -1};
  const double want[6] = {1, 3, 0, 3, 7, 2};
  double y[6];
  mx_product(y, x, w, 2, 3, 2, 1);
  ck_assert_mem_eq(y, want, sizeof y);
  const double other[6] = {1, 3, 0, 3, 7, 4}; /* ee 4, aa 72, ab 72 + 4, bb 84 */
  mx_product_error e;
  mx_product_compare(&e, want, other, 6);
  ck_assert_double_eq_tol(e.relative, sqrt(4.0 / 72), 1e-15);
  ck_assert(e.gain == 76.0 / 72);
  ck_assert_double_eq_tol(e.cosine, 76 / sqrt(72.0 * 84), 1e-15);
}
END_TEST

/* Each dot is one chain with k ascending, whatever the ISA, the threads, and the ends of tiles and blocks of k. Magnitudes reach from 2^-149
 * to 2^127, so that any other order would round differently. */
START_TEST(product_one_by_one) {
  static const size_t shapes[][3] = {{1, 1, 1}, {8, 24, 256}, {9, 25, 257}, {70, 49, 513}, {7, 3, 1000}, {65, 1, 0}, {3, 130, 31}};
  static const char *const off[] = {NULL, "avx512", "all"};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
    float *x = malloc((m * k + 1) * sizeof *x), *w = malloc((n * k + 1) * sizeof *w);
    double *y = malloc(m * n * sizeof *y);
    const mx_data d = {.kind = MX_DATA_GAUSSIAN};
    mx_data_fill(x, m, k, &d, s);
    mx_data_fill(w, n, k, &d, s + 99);
    for (size_t i = 0; i < m * k; i++) x[i] = ldexpf(x[i], (int)(i * 7 % 23) * (i % 5 ? 1 : 4));
    if (k > 2) x[0] = 0x1p-149f, w[0] = 0x1p-149f, x[1] = 0x1p127f, w[1] = 0x1p127f, x[2] = -x[1];
    for (int i = 0; i < 6; i++) {
      if (off[i / 2])
        setenv("MXGOLD_ISA_OFF", off[i / 2], 1);
      else
        unsetenv("MXGOLD_ISA_OFF");
      for (size_t c = 0; c < m * n; c++) y[c] = NAN;
      mx_product(y, x, w, m, n, k, 1 + i % 2 * 2);
      for (size_t r = 0; r < m; r++)
        for (size_t c = 0; c < n; c++) {
          double want = 0;
          for (size_t e = 0; e < k; e++) want += (double)x[r * k + e] * (double)w[c * k + e];
          ck_assert_msg(!memcmp(&want, &y[r * n + c], sizeof want), "%zu x %zu x %zu, (%zu, %zu): %a, expected %a", m, n, k, r, c, y[r * n + c],
                        want);
        }
    }
    unsetenv("MXGOLD_ISA_OFF");
    free(x);
    free(w);
    free(y);
  }
}
END_TEST

/* One block each: X = [7 0...] saturates to 6 under the floor rule and W = [1 0...] is exact, so the product loses 1/7 through X alone. */
START_TEST(split_by_hand) {
  const float x[32] = {7}, w[32] = {1};
  const mx_spec s = {0};
  mx_product_split p;
  ck_assert_int_eq(mx_product_split_measure(&p, x, w, 1, 1, 32, &s, &s, MX_GEMM_F32_SEQ, NULL, NULL), MX_OK);
  ck_assert(p.w.relative == 0 && p.w.gain == 1);
  ck_assert(p.x.relative == 1.0 / 7 && p.both.relative == 1.0 / 7 && p.total.relative == 1.0 / 7);
  ck_assert_double_eq_tol(p.total.gain, 6.0 / 7, 1e-15);
  ck_assert(p.accumulate.relative == 0 && p.accumulate.gain == 1);
  ck_assert_int_eq(mx_product_split_measure(&p, x, w, 1, 1, 32, &s, &s, MX_GEMM_FUSED, NULL, NULL), MX_ERR_ARG);
  const mx_spec h = spec_of("had.size=32");
  mx_error err;
  ck_assert_int_eq(mx_product_split_measure(&p, x, w, 1, 1, 32, &s, &h, MX_PRODUCT_DEQUANTIZED, NULL, &err), MX_ERR_CONFLICT);
}
END_TEST

/* Rotations cancel in the product, and a prescale is divided out of it; models agree with the product of dequantised values up to binary32's
 * precision. */
START_TEST(split_under_models) {
  enum { M = 8, N = 6, K = 128 };
  float x[M * K], w[N * K];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, M, K, &d, 1);
  mx_data_fill(w, N, K, &d, 2);
  const char *keys[] = {"", "had.size=32 had.sign=fresh seed=5", "elem.prescale=0.75", "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv"};
  for (size_t i = 0; i < 4; i++)
    for (int model = 0; model < MX_GEMM_FUSED; model++) {
      const mx_spec s = spec_of(keys[i]);
      mx_product_split p;
      mx_error err;
      ck_assert_msg(mx_product_split_measure(&p, x, w, M, N, K, &s, &s, model, NULL, &err) == MX_OK, "%s", err.text);
      ck_assert_double_lt(p.accumulate.relative, 1e-6);
      ck_assert_double_eq_tol(p.both.relative, p.total.relative, 1e-6);
      ck_assert_double_eq_tol(p.both.relative, 0.16, 0.06);
      ck_assert_double_lt(p.x.relative, p.both.relative);
    }
}
END_TEST

/* Block axes (T12), with one huge row of W: Q2, along I, keeps the other rows exact; Q4, along O, rounds them all to zero. */
START_TEST(six_block_axes) {
  enum { T = 32, I = 32, O = 32 };
  static float x[T * I], w[O * I], dy[T * O];
  for (int i = 0; i < T * I; i++) x[i] = 1;
  for (int i = 0; i < T * O; i++) dy[i] = 1;
  for (int i = 0; i < O * I; i++) w[i] = i < I ? 1024 : 1;
  const mx_spec s[6] = {{0}};
  static mx_six six;
  ck_assert_int_eq(mx_six_measure(&six, x, w, dy, T, I, O, s, MX_PRODUCT_DEQUANTIZED, NULL, NULL), MX_OK);
  ck_assert(six.q[1].sums.ee == 0 && six.q[1].sums.n_underflow == 0);
  ck_assert_uint_eq(six.q[3].sums.n_underflow, (O - 1) * I);
  ck_assert(six.product[MX_SIX_FPROP].total.relative == 0 && six.product[MX_SIX_WGRAD].total.relative == 0);
  ck_assert_double_eq_tol(six.product[MX_SIX_DGRAD].total.relative, 31.0 / 1055, 1e-12);
}
END_TEST

typedef struct heard {
  double last;
  int n, back;
} heard;
static void hear(void *self, double share) {
  heard *h = self;
  h->back += share <= h->last;
  h->last = share;
  h->n++;
}

/* Progress is reported after every product: three exact ones, and for each repeat three in binary64 and one under the model; it is 1 at the
 * end. */
START_TEST(progress_of_products) {
  float x[32 * 32], w[32 * 32], dy[32 * 32];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, 32, 32, &d, 1);
  mx_data_fill(w, 32, 32, &d, 2);
  mx_data_fill(dy, 32, 32, &d, 3);
  mx_spec specs[6];
  for (int i = 0; i < 6; i++) specs[i] = spec_of("elem.round=sr");
  static mx_six six;
  for (int model = MX_PRODUCT_DEQUANTIZED; model <= MX_GEMM_F32_BLOCK; model++) {
    heard h = {0};
    const mx_measure_options o = {.repeats = 2, .progress = hear, .progress_self = &h};
    ck_assert_int_eq(mx_six_measure(&six, x, w, dy, 32, 32, 32, specs, model, &o, NULL), MX_OK);
    ck_assert_int_eq(h.n, 3 * (1 + 2 * (model == MX_PRODUCT_DEQUANTIZED ? 3 : 4)));
    ck_assert(!h.back && h.last == 1);
  }
}
END_TEST

/* Stochastic rounding between two values has the mean x, and what lies beyond the largest value of its block becomes that value. So E[y] is
 * x clamped at six times the scale 2^(floor(log2 max) - 2) of its block, and the bias of the tensor and of its product with exact weights is
 * known. 95 % of intervals contain it: fewer than 33 of 40 do so only once in 3000 times, and this should also hold for a product, whose
 * values are not independent. */
START_TEST(intervals_of_bias_hold_it) {
  enum { M = 24, N = 32, K = 64, SEEDS = 40, BLOCK = 32 };
  float x[M * K], w[N * K], mean[M * K];
  double exact[M * N], y[M * N];
  mx_spec sr = spec_of("elem.round=sr"), as_is = spec_of("elem=none");
  int held = 0, product_held = 0, told = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    mx_data_fill(x, M, K, &(mx_data){.kind = MX_DATA_GAUSSIAN}, seed);
    mx_data_fill(w, N, K, &(mx_data){.kind = MX_DATA_GAUSSIAN}, seed + 1000);
    double xx = 0, ff = 0, pp = 0, qq = 0;
    for (size_t b = 0; b < M * K; b += BLOCK) {
      float largest = 0;
      for (size_t i = b; i < b + BLOCK; i++) largest = fmaxf(largest, fabsf(x[i]));
      const float most = 6 * ldexpf(1, ilogbf(largest) - 2);
      for (size_t i = b; i < b + BLOCK; i++) {
        mean[i] = fmaxf(-most, fminf(most, x[i]));
        xx += (double)x[i] * (double)x[i];
        ff += ((double)x[i] - (double)mean[i]) * ((double)x[i] - (double)mean[i]);
      }
    }
    mx_product(exact, x, w, M, N, K, 1);
    mx_product(y, mean, w, M, N, K, 1);
    for (size_t i = 0; i < M * N; i++) pp += exact[i] * exact[i], qq += (exact[i] - y[i]) * (exact[i] - y[i]);
    sr.seed = seed;
    mx_measure m;
    mx_product_split p;
    const mx_measure_options how = {.repeats = 8, .n_threads = 1};
    ck_assert_int_eq(mx_measure_tensor(&m, x, M, K, &sr, &how, NULL), MX_OK);
    ck_assert_int_eq(mx_product_split_measure(&p, x, w, M, N, K, &sr, &as_is, MX_PRODUCT_DEQUANTIZED, &how, NULL), MX_OK);
    const double bias = sqrt(ff / xx), of_product = sqrt(qq / pp);
    ck_assert(m.bias_low <= m.bias && m.bias <= m.bias_high && p.x.bias_low <= p.x.bias && p.x.bias <= p.x.bias_high);
    held += m.bias_low <= bias && bias <= m.bias_high;
    product_held += p.x.bias_low <= of_product && of_product <= p.x.bias_high;
    told += p.x.bias_low > 0;
  }
  ck_assert_msg(held >= 33 && product_held >= 33, "of 40 intervals %d hold the tensor's bias, %d the product's", held, product_held);
  ck_assert_msg(told >= 10, "%d of 40 intervals tell the product's bias from none: those that hold everything say nothing", told);
  mx_product_split one;
  ck_assert_int_eq(
      mx_product_split_measure(&one, x, w, M, N, K, &sr, &as_is, MX_PRODUCT_DEQUANTIZED, &(mx_measure_options){.repeats = 1}, NULL), MX_OK);
  ck_assert(one.x.bias_low == 0 && one.x.bias_high == one.x.relative);
}
END_TEST

int main(void) {
  Suite *s = suite_create("ablate_products");
  TCase *t = tcase_create("ablate_products");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, product_by_hand);
  tcase_add_test(t, product_one_by_one);
  tcase_add_test(t, split_by_hand);
  tcase_add_test(t, split_under_models);
  tcase_add_test(t, six_block_axes);
  tcase_add_test(t, progress_of_products);
  tcase_add_test(t, intervals_of_bias_hold_it);
  suite_add_tcase(s, t);
  return run_suite(s);
}
