/* identify names what a kernel does: every preset, and mixtures of keys that are no preset.
 *
 * Every ninth preset, so that `make check` stays short; IDENTIFY_ALL=1 (make identify-all) takes every preset and 1,000 mixtures,
 * MIXTURES=N sets how many, IDENTIFY_TABLE=1 prints a line for each case, FIRST=N starts there. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/kernels.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double slowest;

/* 1 if the spec that is found gives every byte. */
static int found(const mx_spec *spec, const char *what) {
  outputs o = {0};
  mx_identity id;
  mx_error err = {0};
  outputs_of_suites(&o, spec, 1);
  const double t = now();
  const mx_status s = mx_identify(&id, o.samples, o.n, NULL, &err);
  const double took = now() - t;
  if (took > slowest) slowest = took;
  const int ok = !s && id.exact; /* codes under a NaN scale mean nothing */
  if (getenv("IDENTIFY_TABLE") || !ok) {
    char truth[2048], got[2048];
    mx_spec_print(truth, sizeof truth, spec, 0);
    mx_spec_print(got, sizeof got, &id.spec, 0);
    printf("%-24s %s %.2f s, %zu elements, %llu tried, preset %s; %llu codes %llu scales %llu nan %llu tensor scales differ %s\n", what,
           ok ? "ok  " : "FAIL", took, o.elements, (unsigned long long)id.specs_tried, id.preset ? id.preset : "-",
           (unsigned long long)id.codes_differ, (unsigned long long)id.scales_differ, (unsigned long long)id.nan_codes_differ,
           (unsigned long long)id.tensor_scales_differ, err.text);
    if (!ok) printf("   truth %s\n   found %s\n", truth, got);
    fflush(stdout);
  }
  outputs_free(&o);
  return ok;
}

START_TEST(every_preset) {
  size_t n = 0, bad = 0;
  for (size_t i = getenv("FIRST") ? (size_t)atoi(getenv("FIRST")) : 0; i < mx_preset_count(); i += getenv("IDENTIFY_ALL") ? 1 : 9) {
    mx_spec spec;
    const mx_preset *p = mx_preset_at(i);
    if (p->alias_of) continue;
    ck_assert_int_eq(mx_preset_find(&spec, p->name, NULL), MX_OK);
    bad += !found(&spec, p->name);
    n++;
  }
  printf("identify: %zu of %zu presets, slowest %.2f s\n", n - bad, n, slowest);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

START_TEST(mixtures) {
  const size_t n = getenv("MIXTURES")       ? (size_t)atoi(getenv("MIXTURES"))
                   : getenv("IDENTIFY_ALL") ? 1000
                                            : 8,
               first = getenv("FIRST") ? (size_t)atoi(getenv("FIRST")) : 0;
  size_t bad = 0;
  slowest = 0;
  for (size_t i = 0; i < n; i++) {
    mx_spec spec;
    char what[32];
    random_mixture(&spec, first + i);
    snprintf(what, sizeof what, "mixture %zu", first + i);
    bad += !found(&spec, what);
  }
  printf("identify: %zu of %zu mixtures, slowest %.2f s\n", n - bad, n, slowest);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("identify");
  TCase *t = tcase_create("names");
  tcase_set_timeout(t, 7200);
  tcase_add_test(t, every_preset);
  if (getenv("IDENTIFY_ALL") || getenv("MIXTURES")) tcase_add_test(t, mixtures); /* not every mixture is named yet */
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  srunner_run_all(r, CK_NORMAL);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
