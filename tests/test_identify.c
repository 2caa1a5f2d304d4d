/* Tests that identify names what a kernel does: every preset, mixtures of keys that are not a preset, and both with chance or a rotation.
 *
 * `make check` takes every eighteenth preset, 8 mixtures and every third of those that were once missed. IDENTIFY_ALL=1 (make identify-all)
 * or make check-all takes every preset and 1,000 mixtures. MIXTURES=N sets how many, IDENTIFY_TABLE=1 prints a line for each case, FIRST=N
 * starts at a case, and IDENTIFY_SECONDS=S limits each. IDENTIFY_TIME=1 (make identify-time) times every preset on one tensor of 64 Ki and
 * one of 1 Mi elements. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/kernels.h"
#include "lib/run.h"
#include "mxgold/isa.h"

static int all(void) { return run_whole() || getenv("IDENTIFY_ALL"); }

static double clock_of(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of wall-clock time, and of processor time, which other jobs on the machine do not lengthen. */
static struct { double slowest, sum, slowest_cpu, sum_cpu; } spent;

/* Returns 1 if the spec that is found gives every byte. */
static int found_in(outputs *o_, const mx_spec *spec, const char *what) {
  outputs o = *o_;
  mx_identity id;
  mx_error err = {0};
  const mx_identify_options how = {.seconds = getenv("IDENTIFY_SECONDS")
                                                  ? atof(getenv("IDENTIFY_SECONDS"))
                                                  : 2000}; /* so long that a busy machine does not change what is found */
  const double t = clock_of(CLOCK_MONOTONIC), c = clock_of(CLOCK_PROCESS_CPUTIME_ID);
  const mx_status s = mx_identify(&id, o.samples, o.n, &how, &err);
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
  outputs_free(o_);
  return ok;
}

static int found(const mx_spec *spec, const char *what) {
  outputs o = {0};
  outputs_of_suites(&o, spec, 1);
  return found_in(&o, spec, what);
}

static void report(size_t good, size_t n, const char *what) {
  printf("identify: %zu of %zu %s; seconds: slowest %.2f, mean %.2f; of processor time: slowest %.2f, mean %.2f\n", good, n, what,
         spent.slowest, n ? spent.sum / (double)n : 0, spent.slowest_cpu, n ? spent.sum_cpu / (double)n : 0);
  memset(&spent, 0, sizeof spent);
}

START_TEST(every_preset) {
  size_t n = 0, bad = 0;
  for (size_t i = getenv("FIRST") ? (size_t)atoi(getenv("FIRST")) : 0; i < mx_preset_count(); i += all() ? 1 : 18) {
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

static size_t how_many(size_t few, size_t most) { return getenv("MIXTURES") ? (size_t)atoi(getenv("MIXTURES")) : all() ? most : few; }

START_TEST(mixtures) {
  const size_t n = how_many(8, 1000), first = getenv("FIRST") ? (size_t)atoi(getenv("FIRST")) : 0;
  size_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    mx_spec spec;
    char what[32];
    wide_mixture(&spec, first + i);
    snprintf(what, sizeof what, "mixture %zu", first + i);
    bad += !found(&spec, what);
  }
  static const size_t seldom[] = {518}; /* scales of which many are the largest, which a format of fewer codes has for no number */
  for (size_t i = 0; i < sizeof seldom / sizeof *seldom && n < seldom[i] && !first; i++) {
    mx_spec spec;
    wide_mixture(&spec, seldom[i]);
    bad += !found(&spec, "mixture 518");
  }
  report(n - bad, n, "mixtures");
  ck_assert_uint_eq(bad, 0);
}
END_TEST

/* Mixtures that identify once failed on: types between which stochastic rounding does not decide; flush before a rotation; prescale under
 * tensor.norm=unit; a given tensor scale, also in the encode form; random scales under foursix, in several rules and only below the smallest
 * code; limits of the scale's byte that only show together; samples whose rows differ in width; prescale above 1; a zero scale of huge
 * blocks in the encode form; a rotation among short tensors; elements that a block of very different rows makes tiny; a target that only the
 * elements show; keys that hide each other in blocks of zeros; a chain that excludes what was found first; foursix that shows in one block;
 * scales that are all at a limit; a wrong select.error that spoke against the right arithmetic; two keys that only show beside each other;
 * a prescale so near 1 that every code is next to the one without it; and scales of HiFloat4 that are rounded at random. */
START_TEST(once_missed) {
  static const uint64_t wide[] = {59, 62,  145, 404, 494, 562, 784, 893, 330,   435, 517, 920,
                                  26, 794, 815, 715, 203, 357, 557, 471, 20093, 725, 934};
  mx_spec spec;
  size_t bad = 0;
  for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i += all() ? 1 : 3) {
    wide_mixture(&spec, wide[i]);
    bad += !found(&spec, "once missed");
  }
  wide_mixture(&spec, 283);
  bad += !found(&spec, "once missed, 283");
  random_mixture(&spec, 238);
  bad += !found(&spec, "once missed, 238");
  ck_assert_uint_eq(bad, 0);
}
END_TEST

/* Stochastic rounding with its seed, and rotations with their signs, beside plain keys. */
START_TEST(chance_and_rotation) {
  static const char *const keys[] = {"elem.round=sr seed=3",
                                     "had.size=16 had.sign=te",
                                     "elem=e4m3 elem.round=sr sr.source=amd_lfsr seed=20240",
                                     "scale=e4m3 scale.rule=value block=1x16 scale.round=sr seed=77",
                                     "had.size=32 had.sign=fixed",
                                     "elem.round=sr sr.mode=src sr.bits=8 seed=123457",
                                     "scale=e4m3 scale.rule=value block=1x16 tensor.norm=nv elem.round=sr seed=99999",
                                     "had.size=64 had.sign=fresh seed=4321 elem.round=sr",
                                     "had.size=128 had.sign=fixed elem=e4m3",
                                     "scale.rule=value scale.round=sr elem.round=sr seed=99"};
  const size_t most = sizeof keys / sizeof keys[0], n = how_many(3, most) < most ? how_many(3, most) : most;
  size_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    mx_spec spec = {0};
    ck_assert_int_eq(mx_spec_parse(&spec, keys[i], NULL), MX_OK);
    for (size_t k = 0; k < spec.had_size / 8 && spec.had_sign == MX_HAD_SIGN_FIXED; k++) spec.had_signs[k] = (uint8_t)(0x9D + 0x35 * k);
    bad += !found(&spec, keys[i]);
  }
  report(n - bad, n, "with chance or rotation");
  ck_assert_uint_eq(bad, 0);
}
END_TEST

/* If no seed can be found, identify says how many random bits there are, and that nothing else is wrong. */
START_TEST(chance_without_seed) {
  mx_spec spec = {.elem_round = MX_ROUND_SR, .sr_bits = 4, .seed = 77777777777u};
  outputs o = {0};
  mx_identity id;
  outputs_of_suites(&o, &spec, 1);
  ck_assert_int_eq(mx_identify(&id, o.samples, o.n, &(mx_identify_options){.seconds = 2000}, NULL), MX_OK);
  ck_assert(!id.exact && id.stochastic);
  ck_assert_int_eq(id.random_bits_least, 4);
  ck_assert_int_eq(id.random_bits_most, 4);
  ck_assert_uint_eq(id.random_beyond, 0);
  outputs_free(&o);
}
END_TEST

/* A deterministic rule is never called stochastic, however many of its elements lie on ties. */
START_TEST(ties_are_not_chance) {
  const mx_spec spec = {.elem_round = MX_ROUND_RNA};
  mx_cases c;
  outputs o = {0};
  mx_identity id;
  ck_assert_int_eq(mx_generate(&c, MX_SUITE_TIES, &spec, 32, 256, 1, NULL), MX_OK);
  outputs_add(&o, &c, &spec, 1);
  mx_cases_free(&c);
  ck_assert_int_eq(mx_identify(&id, o.samples, o.n, &(mx_identify_options){.seconds = 2000}, NULL), MX_OK);
  ck_assert(id.exact && !id.stochastic);
  ck_assert_int_eq(id.spec.elem_round, MX_ROUND_RNA);
  /* The suite that is named decides what these data leave open: another value of the key gives other bytes there. */
  int suites[64];
  ck_assert_int_eq(mx_deciding_suites(suites, &id.spec, ~UINT64_C(0)), MX_OK);
  for (size_t i = 0; mx_key_name(i); i++) {
    if (!strcmp(mx_key_name(i), "scale.nan")) ck_assert_int_eq(suites[i], MX_SUITE_SPECIAL);
    if (!strcmp(mx_key_name(i), "elem.round")) ck_assert_int_ge(suites[i], 0);
    if (!strcmp(mx_key_name(i), "select.error")) ck_assert_int_eq(suites[i], -1);
  }
  outputs_free(&o);
}
END_TEST

/* The search runs scalar code and the final count runs vectors, so a mixture on which they differ could not be named. (139: scan_y under a
 * tensor scale.) */
START_TEST(scalar_is_vector) {
  for (uint64_t i = 0; i < 160; i += i < 8 ? 1 : 131) {
    mx_spec spec;
    outputs o = {0};
    random_mixture(&spec, i);
    outputs_of_suites(&o, &spec, 1);
    for (size_t k = 0; k < o.n; k++) {
      const mx_sample *s = &o.samples[k];
      mx_tensor t;
      ck_assert_int_eq(mx_tensor_alloc(&t, s->rows, s->cols, &spec), MX_OK);
      ck_assert_int_eq(mx_quantize(&t, s->x, s->rows, s->cols, s->ld, &spec, &(mx_exec){.n_threads = 1, .isa_mask = ~0u}, NULL), MX_OK);
      ck_assert_mem_eq(t.scales, s->scales, t.scale_rows * t.scale_cols * t.scale_bytes);
      for (size_t e = 0; e < s->rows * s->cols; e++)
        ck_assert_msg(mx_code_at(&t, &spec, e / s->cols, e % s->cols) == s->codes[e], "mixture %d, sample %zu, element %zu", (int)i, k, e);
      mx_tensor_free(&t);
    }
    outputs_free(&o);
  }
}
END_TEST

/* What is kept from one trial must not change another one, so that the order of trials, and with it the number of threads, does not matter.
 * (245: a move led the search to another format, whose elements were taken for those of the right one.) */
START_TEST(threads_change_nothing) {
  static const uint64_t streams[] = {245, 578};
  for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
    mx_spec spec;
    outputs o = {0};
    mx_identity id[2];
    wide_mixture(&spec, streams[i]);
    outputs_of_suites(&o, &spec, 1);
    for (int k = 0; k < 2; k++)
      ck_assert_int_eq(mx_identify(&id[k], o.samples, o.n, &(mx_identify_options){.seconds = 2000, .n_threads = 1 + k}, NULL), MX_OK);
    ck_assert_uint_eq(id[0].specs_tried, id[1].specs_tried);
    ck_assert(mx_spec_equal(&id[0].spec, &id[1].spec));
    ck_assert_uint_eq(id[0].undecided, id[1].undecided);
    outputs_free(&o);
  }
}
END_TEST

/* A time limit that is reached at once has its own status, and is not the answer that no spec fits. The spec is not that of a preset, since
 * presets are always tried. */
START_TEST(time_runs_out) {
  mx_spec spec;
  mx_identity id;
  mx_error err = {0};
  outputs o = {0};
  memset(&spec, 0, sizeof spec);
  ck_assert_int_eq(mx_spec_parse(&spec, "elem=e3m2 scale=fp32 scale.rule=value block=1x8", NULL), MX_OK);
  outputs_of_suites(&o, &spec, 1);
  ck_assert_int_eq(mx_identify(&id, o.samples, o.n, &(mx_identify_options){.seconds = 1e-9}, &err), MX_ERR_TIME);
  ck_assert_str_eq(err.text, "identify: the time ran out before any spec was run over these data");
  ck_assert_int_eq(mx_identify(&id, o.samples, o.n, &(mx_identify_options){.seconds = 2000}, &err), MX_OK);
  ck_assert(id.exact && id.complete);
  outputs_free(&o);
}
END_TEST

/* Times one tensor of ordinary numbers under every preset. */
START_TEST(times) {
  static const size_t sizes[] = {256, 1024};
  for (size_t k = 0; k < 2; k++) {
    size_t n = 0, bad = 0;
    char what[64];
    for (size_t i = 0; i < mx_preset_count(); i++) {
      mx_spec spec;
      mx_cases c;
      outputs o = {0};
      const mx_preset *p = mx_preset_at(i);
      if (p->alias_of || mx_preset_find(&spec, p->name, NULL)) continue;
      if (mx_generate(&c, MX_SUITE_RANDOM, &spec, sizes[k], sizes[k], 7, NULL)) continue;
      outputs_add(&o, &c, &spec, 1);
      mx_cases_free(&c);
      bad += !found_in(&o, &spec, p->name);
      n++;
    }
    snprintf(what, sizeof what, "presets on one tensor of %zu elements", sizes[k] * sizes[k]);
    report(n - bad, n, what);
    ck_assert_uint_eq(bad, 0);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("identify");
  TCase *t = tcase_create("names");
  tcase_set_timeout(t, 7200);
  if (getenv("IDENTIFY_TIME"))
    tcase_add_test(t, times);
  else {
    if (!getenv("MIXTURES")) tcase_add_test(t, every_preset);
    tcase_add_test(t, mixtures);
    if (!getenv("MIXTURES")) {
      tcase_add_test(t, once_missed);
      tcase_add_test(t, chance_and_rotation);
      tcase_add_test(t, chance_without_seed);
      tcase_add_test(t, ties_are_not_chance);
      tcase_add_test(t, scalar_is_vector);
      tcase_add_test(t, threads_change_nothing);
      tcase_add_test(t, time_runs_out);
    }
  }
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
