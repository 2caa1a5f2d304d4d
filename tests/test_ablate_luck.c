/* Tests generated data, the bootstrap that says what is more than luck, and the logarithm that both use. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/ablate.h"
#include "mxgold/random.h"
#include "mxgold/verify.h"

START_TEST(generators) {
  enum { N = 1 << 16 };
  float *x = malloc(N * sizeof *x);
  const struct {
    const char *text;
    double variance, fourth; /* moments of the distribution; fourth 0: not tested */
  } kinds[] = {{"gaussian", 1, 3},           {"uniform", 1.0 / 3, 0.2}, {"laplace", 2, 24},
               {"student:64", 64.0 / 62, 0}, {"outliers:0:5", 1, 3},    {"rows:0", 1, 3}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    mx_data d;
    mx_error err;
    ck_assert_msg(mx_data_parse(&d, kinds[k].text, &err) == MX_OK, "%s", err.text);
    mx_data_fill(x, 256, N / 256, &d, 7);
    double s1 = 0, s2 = 0, s4 = 0;
    for (int i = 0; i < N; i++) {
      const double v = (double)x[i];
      s1 += v / N;
      s2 += v * v / N;
      s4 += v * v * v * v / N;
    }
    ck_assert_double_eq_tol(s1, 0, 0.02);
    ck_assert_double_eq_tol(s2, kinds[k].variance, 0.03 * kinds[k].variance);
    if (kinds[k].fourth > 0) ck_assert_double_eq_tol(s4, kinds[k].fourth, 0.08 * kinds[k].fourth);
  }
  free(x);
}
END_TEST

/* The first numbers of a seed never change: each is AS 241 of Philox words 0 to 3 of stream 3, rounded to binary32. */
START_TEST(generator_bits) {
  float x[4], again[2];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, 1, 4, &d, 0);
  mx_data_fill(again, 1, 2, &d, 0);
  ck_assert_mem_eq(x, again, sizeof again);
  const float want[4] = {0x1.8e3156p+0f, -0x1.7e2184p+0f, 0x1.524432p-1f, 0x1.2b18aap-1f};
  ck_assert_mem_eq(x, want, sizeof want);
}
END_TEST

START_TEST(bad_generators) {
  const char *bad[] = {"",        "gauss",        "student:0",  "student:2.5", "student:65",  "rows:-1",
                       "rows:11", "outliers:2:3", "gaussian:1", "student:",    "student:3:4", "laplace "};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    mx_data d;
    mx_error err;
    ck_assert_msg(mx_data_parse(&d, bad[i], &err) != MX_OK, "%s is accepted", bad[i]);
    ck_assert_uint_gt(strlen(err.text), 10);
  }
}
END_TEST

START_TEST(logarithm) {
  ck_assert(mx_log2(1) == 0 && mx_log2(8) == 3 && mx_log2(0x1p-140) == -140);
  for (double x = 1e-300; x < 1e300; x *= 1.37) ck_assert_double_eq_tol(mx_log2(x), log2(x), 4e-16 * (1 + fabs(log2(x))));
}
END_TEST

START_TEST(bootstrap) {
  double a[100], b[100], c[100];
  for (int i = 0; i < 100; i++) {
    a[i] = 1 + i % 7;
    b[i] = 2 * a[i];                        /* every block is twice as bad: 3.01 dB without any doubt */
    c[i] = i % 2 ? a[i] * 1.5 : a[i] / 1.5; /* better as often as worse */
  }
  mx_interval same, twice, luck;
  ck_assert_int_eq(mx_bootstrap_db(&same, a, a, 100, 0, 1), MX_OK);
  ck_assert(same.at == 0 && same.low == 0 && same.high == 0);
  ck_assert_int_eq(mx_bootstrap_db(&twice, a, b, 100, 0, 1), MX_OK);
  ck_assert_double_eq_tol(twice.low, 3.0102999566398120, 1e-12);
  ck_assert_double_eq_tol(twice.high, 3.0102999566398120, 1e-12);
  ck_assert_int_eq(mx_bootstrap_db(&luck, a, c, 100, 0, 1), MX_OK);
  const double exact[100] = {0};
  mx_interval none;
  ck_assert_int_eq(mx_bootstrap_db(&none, exact, a, 100, 0, 1), MX_OK);
  ck_assert(isinf(none.at) && none.at > 0);
  ck_assert(luck.low < luck.at && luck.at < luck.high && luck.high - luck.low > 0.3);
  ck_assert_double_eq_tol(luck.high - luck.at, luck.at - luck.low, 1e-12);
  /* Nearly all of the error is in one unit. A resample without it (one in e) shows a very different result with a smaller standard error, so
   * nothing is known. */
  for (int i = 0; i < 100; i++) b[i] = a[i] = 1 + 0.01 * (i % 7);
  a[0] = 10000;
  b[0] = 20000;
  mx_interval lone;
  ck_assert_int_eq(mx_bootstrap_db(&lone, a, b, 100, 0, 1), MX_OK);
  ck_assert(lone.at > 2.9 && lone.low < 0 && lone.high > 6);
  /* Two units, by hand: ln(b/a) of the sample is ln(3/2), its standard error sqrt(2 * ((1/3 - 1/2)^2 + (2/3 - 1/2)^2)) = 1/3. A resample
   * that takes one unit twice has a standard error of 0 and another result, so the interval is unbounded. */
  const double two_a[2] = {1, 1}, two_b[2] = {1, 2};
  mx_interval two;
  ck_assert_int_eq(mx_bootstrap_db(&two, two_a, two_b, 2, 0, 1), MX_OK);
  ck_assert(isinf(two.low) && isinf(two.high) && two.low < 0 && two.high > 0);
  ck_assert_double_eq_tol(two.at, 1.7609125905568124, 1e-12);
}
END_TEST

/* A NaN spoils one unit of 64 in both, which then has nearly all of the error of a; b is twice as bad in every other unit. Every resample
 * says that b is worse by at most 3.01 dB; c lost everything. A studentised interval would contain 0, since a resample without that unit has
 * a far smaller standard error. */
START_TEST(bootstrap_of_spoiled_units) {
  enum { N = 64 };
  double a[N], b[N], c[N];
  for (int i = 0; i < N; i++) {
    a[i] = 1 + i % 5;
    b[i] = 2 * a[i];
    c[i] = 5000 + i;
  }
  a[9] = b[9] = c[9] = 5000;
  const double *const all[3] = {a, b, c};
  const unsigned char ranked[3] = {1, 1, 1};
  mx_interval plain[3], by_rank[3];
  ck_assert_int_eq(mx_bootstrap_db_all(plain, a, all, 3, NULL, N, 0, 1), MX_OK);
  ck_assert_int_eq(mx_bootstrap_db_all(by_rank, a, all, 3, ranked, N, 0, 1), MX_OK);
  ck_assert(plain[1].low < 0 && plain[2].low < 0);
  ck_assert(by_rank[0].low == 0 && by_rank[0].at == 0 && by_rank[0].high == 0);
  ck_assert(by_rank[1].at == plain[1].at && by_rank[1].low > 0.03 && by_rank[1].low < by_rank[1].at);
  ck_assert_double_eq_tol(by_rank[1].high, 3.0102999566398120, 1e-12); /* a third of the resamples do not have unit 9 */
  ck_assert(by_rank[2].low > 10 && by_rank[2].low < by_rank[2].at && by_rank[2].high > by_rank[2].at);
}
END_TEST

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The 95 % interval is the 381st of 400 distances, each in the standard error of its own resample of ten units, times the standard error of
 * the sample; the resamples are drawn and sorted here. */
START_TEST(bootstrap_covers_95_percent) {
  enum { N = 10, DRAWS = 400 };
  double a[N], b[N], t[DRAWS], ratio[DRAWS], error = 0, at = 0;
  for (int i = 0; i < N; i++) {
    a[i] = 1 + 0.1 * i;
    b[i] = 2 + 0.3 * (i * 7 % N);
  }
  for (int r = -1; r < DRAWS; r++) { /* -1 is the sample itself */
    double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < N; i++) {
      const size_t j = r < 0 ? (size_t)i : (size_t)((uint64_t)mx_random(1, MX_STREAM_DATA, (uint64_t)(r * N + i)) * N >> 32);
      sa += a[j], sb += b[j], aa += a[j] * a[j], bb += b[j] * b[j], ab += a[j] * b[j];
    }
    const double db = 10 * log10(sb / sa), own = 10 / log(10) * sqrt((aa / (sa * sa) + bb / (sb * sb) - 2 * ab / (sa * sb)) * N / (N - 1));
    if (r < 0)
      at = db, error = own;
    else
      ratio[r] = db, t[r] = fabs(db - at) / own;
  }
  qsort(t, DRAWS, sizeof *t, ascending);
  qsort(ratio, DRAWS, sizeof *ratio, ascending);
  mx_interval plain, by_rank;
  const double *const columns[1] = {b};
  const unsigned char ranked[1] = {1};
  ck_assert_int_eq(mx_bootstrap_db(&plain, a, b, N, 0, 1), MX_OK);
  ck_assert_int_eq(mx_bootstrap_db_all(&by_rank, a, columns, 1, ranked, N, 0, 1), MX_OK);
  ck_assert_double_eq_tol(plain.high - plain.at, t[380] * error, 1e-9);
  ck_assert_double_eq_tol(by_rank.low, ratio[10], 1e-9);
  ck_assert_double_eq_tol(by_rank.high, ratio[389], 1e-9);
}
END_TEST

/* The interval of a pair depends only on its two columns, whatever else is compared: it has the bits that the two give by themselves. 300
 * pairs are more than are drawn for at once. */
START_TEST(bootstrap_of_pairs) {
  enum { N = 67, COLUMNS = 5, PAIRS = 300 };
  double room[COLUMNS][N];
  const double *columns[COLUMNS];
  mx_column_pair pairs[PAIRS];
  unsigned char ranked[PAIRS];
  mx_interval all[PAIRS], alone;
  for (int k = 0; k < COLUMNS; k++) {
    for (int i = 0; i < N; i++) room[k][i] = (double)(mx_random(7, MX_STREAM_DATA, (uint64_t)(k * N + i)) % 1000) * (1 + 0.1 * k);
    columns[k] = room[k];
  }
  for (int p = 0; p < PAIRS; p++) {
    pairs[p] = (mx_column_pair){(size_t)p % COLUMNS, (size_t)(p / COLUMNS) % COLUMNS};
    ranked[p] = p % 3 == 0;
  }
  ck_assert_int_eq(mx_bootstrap_db_pairs(all, columns, COLUMNS, pairs, PAIRS, ranked, N, 0, 1), MX_OK);
  for (int p = 0; p < PAIRS; p++) {
    ck_assert_int_eq(mx_bootstrap_db_all(&alone, columns[pairs[p].a], &columns[pairs[p].b], 1, &ranked[p], N, 0, 1), MX_OK);
    ck_assert_msg(!memcmp(&alone, &all[p], sizeof alone), "pair %d", p);
  }
  pairs[PAIRS - 1].b = COLUMNS;
  ck_assert_int_eq(mx_bootstrap_db_pairs(all, columns, COLUMNS, pairs, PAIRS, ranked, N, 0, 1), MX_ERR_ARG);
}
END_TEST

int main(void) {
  Suite *s = suite_create("ablate_luck");
  TCase *t = tcase_create("ablate_luck");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, generators);
  tcase_add_test(t, generator_bits);
  tcase_add_test(t, bad_generators);
  tcase_add_test(t, logarithm);
  tcase_add_test(t, bootstrap);
  tcase_add_test(t, bootstrap_of_spoiled_units);
  tcase_add_test(t, bootstrap_covers_95_percent);
  tcase_add_test(t, bootstrap_of_pairs);
  suite_add_tcase(s, t);
  return run_suite(s);
}
