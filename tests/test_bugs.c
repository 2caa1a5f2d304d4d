/* Tests kernels that follow no spec: each bug of tests/lib/broken.h over each of its presets is named and gives every byte, and kernels
 * without a bug are not blamed. make check runs every ninth bug, over one of its presets, and one preset in forty; CHECK_ALL runs all of
 * them. BUGS_TABLE=1 prints the table of docs/notes/VERIFY.md (make mutants). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/broken.h"
#include "lib/kernels.h"
#include "lib/run.h"

enum { SHARE = 9 };     /* make check runs one bug in this many */
enum { ENOUGH = 2000 }; /* seconds for each, so that a busy machine does not change what is found */

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The hand-written kernel without a bug does what the preset does. */
START_TEST(no_bug) {
  for (const char *base = broken_rows[BROKEN_NONE].bases; *base; base++) {
    mx_sample s;
    mx_identity id;
    broken_run(&s, BROKEN_NONE, *base);
    ck_assert_int_eq(mx_identify(&id, &s, 1, &(mx_identify_options){.seconds = ENOUGH}, NULL), MX_OK);
    ck_assert_msg(id.exact && id.preset && !id.bug.name, "%s is found as %s", broken_preset(*base), id.preset ? id.preset : "none");
    broken_free(&s);
  }
}
END_TEST

static int is_listed(const char *name) {
  for (size_t i = 0; mx_bug_name_at(i); i++)
    if (!strcmp(mx_bug_name_at(i), name)) return 1;
  return 0;
}

/* Names of each table: of codes and scales, of twists of a block and of the tensor, of the input, of faults, of readings. */
START_TEST(names_are_listed) {
  static const char *const names[] = {"sign lost",       "two's complement",      "amax without abs", "another tensor maximum",
                                      "no saturation",   "input cut to bfloat16", "stale scale",      "input negated",
                                      MX_BUG_TRANSPOSED, MX_BUG_ROW_TENSORS,      MX_BUG_RACE};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) ck_assert_msg(is_listed(names[i]), "%s", names[i]);
  ck_assert(!is_listed("sign lots") && !is_listed(""));
  size_t n = 0;
  while (mx_bug_name_at(n)) n++;
  ck_assert(n > MX_FAULT_COUNT && !mx_bug_name_at(n + 1000));
}
END_TEST

START_TEST(every_bug) {
  int n = 0, good = 0;
  double slowest = 0;
  const int table = getenv("BUGS_TABLE") != NULL;
  const char *one = getenv("BUG");
  if (table) printf("| bug of a kernel that follows no spec | over | named |\n|---|---|---|\n");
  for (int bug = 1; bug < BROKEN_COUNT; bug++) {
    char over[200] = "", as[400] = "";
    if (one && !strstr(broken_rows[bug].bug, one)) continue;
    const char *bases = broken_rows[bug].bases;
    if (!table && !one && !run_whole() && bug % SHARE) continue;
    for (const char *base = bases; *base; base++) {
      mx_sample s;
      if (!table && !one && !run_whole() && (size_t)(base - bases) != (size_t)bug / SHARE % strlen(bases)) continue;
      n++;
      mx_identity id;
      broken_run(&s, bug, *base);
      const double t = seconds();
      ck_assert_int_eq(mx_identify(&id, &s, 1, &(mx_identify_options){.seconds = ENOUGH}, NULL), MX_OK);
      const double took = seconds() - t;
      slowest = took > slowest ? took : slowest;
      const int ok = broken_is_named(&id, bug);
      good += ok;
      ck_assert_msg(!id.bug.name || is_listed(id.bug.name), "%s is no name of mx_bug_name_at()", id.bug.name);
      snprintf(over + strlen(over), sizeof over - strlen(over), "%s%s", *over ? ", " : "", broken_preset(*base));
      if (!ok || !*as) snprintf(as, sizeof as, "%s%s", ok ? "" : "NOT NAMED: ", id.bug.name ? id.bug.name : id.exact ? "a spec" : "none");
      if (!ok || one)
        printf("%s over %s: %s, %s (exact %d, codes %llu, scales %llu; left %llu, %llu) %.2f s\n", broken_rows[bug].bug, broken_preset(*base),
               id.bug.name ? id.bug.name
               : id.preset ? id.preset
                           : "none",
               id.bug.name ? id.bug.text : "", id.exact, (unsigned long long)id.codes_differ, (unsigned long long)id.scales_differ,
               (unsigned long long)id.bug.codes, (unsigned long long)id.bug.scales, took);
      broken_free(&s);
      fflush(stdout);
    }
    if (table) printf("| %s | %s | %s |\n", broken_rows[bug].bug, over, as);
  }
  printf("\n%d of %d wrong kernels are named with every byte given; the slowest took %.1f s\n", good, n, slowest);
  ck_assert_int_eq(good, n);
}
END_TEST

/* Neither presets nor stochastic rounding are blamed for anything. */
START_TEST(no_alarm) {
  size_t runs = 0;
  for (size_t i = 0; i < mx_preset_count(); i += run_whole() ? 1 : 40) {
    mx_spec spec;
    mx_cases c;
    outputs o = {0};
    mx_identity id;
    const mx_preset *p = mx_preset_at(i);
    if (p->alias_of || mx_preset_find(&spec, p->name, NULL) || mx_generate(&c, MX_SUITE_RANDOM, &spec, 32, 256, i, NULL)) continue;
    outputs_add(&o, &c, &spec, 1);
    mx_cases_free(&c);
    if (o.n && !mx_identify(&id, o.samples, o.n, &(mx_identify_options){.no_undecided = 1, .seconds = ENOUGH}, NULL)) {
      ck_assert_msg(id.exact && !id.bug.name, "%s: %s", p->name, id.bug.name ? id.bug.name : "not exact");
      runs++;
    }
    outputs_free(&o);
  }
  const mx_spec random = {.elem_round = MX_ROUND_SR, .sr_bits = 8, .seed = 77777777777u};
  mx_cases c;
  outputs o = {0};
  mx_identity id;
  ck_assert_int_eq(mx_generate(&c, MX_SUITE_RANDOM, &random, 64, 256, 1, NULL), MX_OK);
  outputs_add(&o, &c, &random, 1);
  mx_cases_free(&c);
  ck_assert_int_eq(mx_identify(&id, o.samples, o.n, &(mx_identify_options){.seconds = 100}, NULL), MX_OK);
  ck_assert(id.stochastic && !id.random_biased && !id.bug.name);
  outputs_free(&o);
  printf("no alarm in %zu correct runs\n", runs + 1);
}
END_TEST

int main(void) {
  Suite *s = suite_create("bugs");
  TCase *t = tcase_create("bugs");
  tcase_set_timeout(t, 3600);
  tcase_add_test(t, no_bug);
  tcase_add_test(t, names_are_listed);
  tcase_add_test(t, every_bug);
  if (!getenv("BUGS_TABLE") && !getenv("BUG")) tcase_add_test(t, no_alarm);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
