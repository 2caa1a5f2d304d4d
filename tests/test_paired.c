/* Tests statistics of paired runs, against figures of SciPy 1.17 and closed forms. */
#include <check.h>
#include <math.h>

#include "lib/run.h"
#include "mxgold/paired.h"

static void close_to(double got, double want, const char *what) {
  ck_assert_msg(fabs(got - want) <= 1e-11 * fabs(want), "%s: %.17g, expected %.17g", what, got, want);
}

/* This includes upper tails: a p value of 1e-28 must not become 0. */
START_TEST(student_by_scipy) {
  static const double cdf[][4] = {{0.3, 1, 0.5927735790777423, 0.4072264209222577},
                                  {2.5, 7, 0.9795038907071235, 0.020496109292876444},
                                  {-4, 2.5, 0.019506487920659125, 0.9804935120793409},
                                  {12, 3, 0.9993774920996054, 0.0006225079003946681},
                                  {40, 30, 1.0, 6.863022597203209e-28},
                                  {0.001, 100, 0.5003979461199483, 0.49960205388005174},
                                  {6, 1000000.0, 0.9999999990130751, 9.86924906177215e-10}};
  for (size_t i = 0; i < sizeof cdf / sizeof *cdf; i++) {
    close_to(mx_student_cdf(cdf[i][0], cdf[i][1]), cdf[i][2], "cdf");
    close_to(mx_student_cdf(-cdf[i][0], cdf[i][1]), cdf[i][3], "upper tail");
  }
  static const double quantiles[][3] = {{0.975, 1, 12.706204736174694},    {0.975, 7, 2.364624251592784}, {0.995, 4, 4.604094871349992},
                                        {0.025, 2.5, -3.5746548420036834}, {0.9999, 3, 22.203742273205},  {0.6, 50, 0.254699342988588},
                                        {1e-08, 9, -18.283967455910624}};
  for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
    close_to(mx_student_quantile(quantiles[i][0], quantiles[i][1]), quantiles[i][2], "quantile");
}
END_TEST

START_TEST(student_closed_forms) {
  for (double t = -30; t <= 30; t += .37) {
    close_to(mx_student_cdf(t, 1), t < -1 ? atan(-1 / t) / M_PI : .5 + atan(t) / M_PI, "one degree of freedom");
    close_to(mx_student_cdf(t, 2), t < 0 ? 1 / (2 + t * t - t * sqrt(2 + t * t)) : 1 - 1 / (2 + t * t + t * sqrt(2 + t * t)), "two");
  }
  close_to(mx_student_cdf(1.5, INFINITY), .5 * erfc(-1.5 / sqrt(2)), "normal");
  ck_assert_double_eq(mx_student_quantile(.5, 3), 0);
  ck_assert(isinf(mx_student_quantile(1, 3)) && isnan(mx_student_quantile(1.1, 3)) && isnan(mx_student_cdf(1, 0)) &&
            isnan(mx_student_cdf(NAN, 2)));
}
END_TEST

START_TEST(paired_by_scipy) {
  static const double a[] = {2.31, 2.28, 2.44, 2.39, 2.30, 2.35, 2.41, 2.29}, b[] = {2.25, 2.27, 2.40, 2.30, 2.31, 2.29, 2.36, 2.27};
  const mx_mean r = mx_mean_of_pairs(a, b, 8, .95);
  ck_assert_uint_eq(r.n, 8);
  close_to(r.mean, 0.040000000000000036, "mean");
  close_to(r.sd, 0.03207134902949109, "sd");
  close_to(r.low, 0.013187681226456749, "low");
  close_to(r.high, 0.06681231877354332, "high");
  close_to(r.p, 0.009627924725380016, "p");
}
END_TEST

START_TEST(few_or_equal_values) {
  static const double same[] = {.5, .5, .5}, zeros[] = {0, 0, 0}, gone[] = {1, NAN, 2};
  mx_mean r = mx_mean_of(same, 1, .95);
  ck_assert_double_eq(r.mean, .5);
  ck_assert(isnan(r.sd) && isnan(r.low) && isnan(r.p));
  r = mx_mean_of(same, 3, .95);
  ck_assert_double_eq(r.low, .5);
  ck_assert_double_eq(r.p, 0);
  ck_assert_double_eq(mx_mean_of(zeros, 3, .95).p, 1);
  r = mx_mean_of(gone, 3, .95);
  ck_assert(isnan(r.mean) && isnan(r.high) && r.n == 3);
  ck_assert(isnan(mx_mean_of(same, 0, .95).mean));
}
END_TEST

/* Holm's example with six hypotheses, whose sorted p values are .01 .013 .014 .19 .35 .5, in another order; a NaN is not counted. */
START_TEST(holm_by_hand) {
  const double p[] = {.19, .01, NAN, .5, .014, .013, .35};
  static const double want[] = {.57, .06, NAN, .7, .065, .065, .7};
  double got[7];
  ck_assert_int_eq(mx_holm(got, p, 7), MX_OK);
  for (int i = 0; i < 7; i++) ck_assert_msg(isnan(want[i]) ? isnan(got[i]) : fabs(got[i] - want[i]) < 1e-15, "%d: %.17g", i, got[i]);
  ck_assert_int_eq(mx_holm(got, got, 0), MX_OK);
}
END_TEST

/* TECHNIQUES 1.11. */
START_TEST(score_by_hand) {
  ck_assert_double_eq_tol(mx_score(2.5, 2.55, 3), -.005, 1e-12);
  ck_assert_double_eq_tol(mx_score(.3, .29, 2), 1 / 90., 1e-12); /* +.0111 */
  ck_assert_double_eq(mx_score(2.5, 2.5, 7), 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("paired");
  TCase *t = tcase_create("paired");
  tcase_add_test(t, student_by_scipy);
  tcase_add_test(t, student_closed_forms);
  tcase_add_test(t, paired_by_scipy);
  tcase_add_test(t, few_or_equal_values);
  tcase_add_test(t, holm_by_hand);
  tcase_add_test(t, score_by_hand);
  suite_add_tcase(s, t);
  return run_suite(s);
}
