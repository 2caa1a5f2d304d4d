/* identify names what a kernel does: every preset, and mixtures of keys that are no preset.
 *
 * Every ninth preset, so that `make check` stays short; IDENTIFY_ALL=1 (make identify-all) takes every preset and 1,000 mixtures,
 * MIXTURES=N sets how many, IDENTIFY_TABLE=1 prints a line for each case, FIRST=N starts there. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/kernels.h"

static double clock_of(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds: by the clock on the wall, and of processor time, which other jobs on the machine do not stretch. */
static struct { double slowest, sum, slowest_cpu, sum_cpu; } spent;

/* 1 if the spec that is found gives every byte. */
static int found(const mx_spec *spec, const char *what) {
  outputs o = {0};
  mx_identity id;
  mx_error err = {0};
  outputs_of_suites(&o, spec, 1);
  const double t = clock_of(CLOCK_MONOTONIC), c = clock_of(CLOCK_PROCESS_CPUTIME_ID);
  const mx_status s = mx_identify(&id, o.samples, o.n, NULL, &err);
  const double took = clock_of(CLOCK_MONOTONIC) - t, cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - c;
  spent.slowest = fmax(spent.slowest, took);
  spent.slowest_cpu = fmax(spent.slowest_cpu, cpu);
  spent.sum += took;
  spent.sum_cpu += cpu;
  const int ok = !s && id.exact; /* codes under a NaN scale mean nothing */
  if (getenv("IDENTIFY_TABLE") || !ok) {
    char truth[2048], got[2048];
    mx_spec_print(truth, sizeof truth, spec, 0);
    mx_spec_print(got, sizeof got, &id.spec, 0);
    printf("%-24s %s %.2f s (%.2f s of processor), %zu elements, %llu tried, preset %s; %llu codes %llu scales %llu nan %llu tensor scales "
           "differ %s\n",
           what, ok ? "ok  " : "FAIL", took, cpu, o.elements, (unsigned long long)id.specs_tried, id.preset ? id.preset : "-",
           (unsigned long long)id.codes_differ, (unsigned long long)id.scales_differ, (unsigned long long)id.nan_codes_differ,
           (unsigned long long)id.tensor_scales_differ, err.text);
    if (!ok) printf("   truth %s\n   found %s\n", truth, got);
    fflush(stdout);
  }
  outputs_free(&o);
  return ok;
}

static void report(size_t good, size_t n, const char *what) {
  printf("identify: %zu of %zu %s; seconds: slowest %.2f, mean %.2f; of processor time: slowest %.2f, mean %.2f\n", good, n, what,
         spent.slowest, n ? spent.sum / (double)n : 0, spent.slowest_cpu, n ? spent.sum_cpu / (double)n : 0);
  memset(&spent, 0, sizeof spent);
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
  report(n - bad, n, "presets");
  ck_assert_uint_eq(bad, 0);
}
END_TEST

START_TEST(mixtures) {
  const size_t n = getenv("MIXTURES")       ? (size_t)atoi(getenv("MIXTURES"))
                   : getenv("IDENTIFY_ALL") ? 1000
                                            : 8,
               first = getenv("FIRST") ? (size_t)atoi(getenv("FIRST")) : 0;
  size_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    mx_spec spec;
    char what[32];
    random_mixture(&spec, first + i);
    snprintf(what, sizeof what, "mixture %zu", first + i);
    bad += !found(&spec, what);
  }
  report(n - bad, n, "mixtures");
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
