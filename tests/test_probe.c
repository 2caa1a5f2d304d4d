/* probe names what a device computes, from bits alone. Here mx_mma plays the device: rows of the tables, random parameter sets that are in no table,
 * and trees of additions that this file computes by itself.
 *
 * A sample, so that `make check` stays short; PROBE_ALL=1 (make probe-all) takes every row and 50 random sets, and prints a line for each;
 * PROBE_RANDOM=N another number of sets, PROBE_FIRST=I starts at set I, PROBE_ONLY=MODEL one model,
 * PROBE_PART=I PROBE_PARTS=N every N-th row from the I-th. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/tiles.h"
#include "mxgold/probe.h"

enum { BATCHES = 5 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int all(void) { return getenv("PROBE_ALL") != NULL; }

/* A device: tiles to results. */
typedef struct device {
  const char *name;
  mx_mma_model model;
  void (*play)(void *d, const struct device *self, const mx_mma_args *args);
} device;

static void play_model(void *d, const device *self, const mx_mma_args *args) {
  mx_error err = {0};
  ck_assert_msg(mx_mma(d, &self->model, args, NULL, &err) == MX_OK, "%s: %s", self->name, err.text);
}

/* --- is what was found the device? Asked of tiles that probe knows nothing of --- */

static size_t judged;

static size_t differs_elsewhere(const device *dev, const mx_probe_fit *fit, const mx_probe_spec *s, size_t T) {
  mx_mma_model found = fit->model, types = dev->model;
  uint64_t state = 0x9E3779B97F4A7C15u;
  size_t wrong = 0;
  mx_error err = {0};
  for (int kind = 0; kind < TILES_COUNT; kind++) {
    tiles t;
    tiles_make(&t, &types, kind, T, 8, 8, s->K, 1, &state);
    ck_assert_int_eq(mx_mma(t.d, &dev->model, &t.args, NULL, NULL), MX_OK);
    ck_assert_msg(mx_mma(t.d_ref, &found, &t.args, NULL, &err) == MX_OK, "%s", err.text);
    const size_t bytes = mx_mma_bytes(s->d, 1);
    for (size_t i = 0; i < t.d_bytes; i += bytes) wrong += memcmp((char *)t.d + i, (char *)t.d_ref + i, bytes) != 0;
    judged += t.d_bytes / bytes;
    tiles_free(&t);
  }
  return wrong;
}

/* --- one device through emit, play, fit, and a next batch while one is wanted --- */

typedef struct answer {
  mx_probe_fit *fit;
  size_t n_batches, open;
  double seconds;
} answer;

static void ask(answer *out, const device *dev, const mx_probe_spec *spec) {
  mx_probe p[BATCHES];
  void *d[BATCHES];
  mx_error err = {0};
  const double t = now();
  out->fit = calloc(1, sizeof *out->fit);
  ck_assert_msg(mx_probe_make(&p[0], spec, &err) == MX_OK, "%s: %s", dev->name, err.text);
  for (size_t n = 1;; n++) {
    const mx_mma_args args = mx_probe_args(&p[n - 1]);
    d[n - 1] = malloc(args.T * args.M * args.N * mx_mma_bytes(spec->d, 1) + 1);
    dev->play(d[n - 1], dev, &args);
    ck_assert_msg(mx_probe_fit_run(out->fit, p, (const void *const *)d, n, NULL, &err) == MX_OK, "%s: %s", dev->name, err.text);
    out->n_batches = n;
    if (!out->fit->fits || !out->fit->next.T || n == BATCHES) break;
    p[n] = out->fit->next;
    memset(&out->fit->next, 0, sizeof out->fit->next);
    mx_probe_fit_free(out->fit);
  }
  out->open = 0;
  for (size_t i = 0; i < out->fit->n_alternatives; i++) out->open += (size_t)out->fit->alternatives[i].open;
  for (size_t i = 0; i < out->n_batches; i++) {
    mx_probe_free(&p[i]);
    free(d[i]);
  }
  out->seconds = now() - t;
}

static void answer_free(answer *a) {
  mx_probe_fit_free(a->fit);
  free(a->fit);
}

static int has_name(const mx_probe_fit *fit, const char *name) {
  const size_t n = strlen(name);
  for (size_t i = 0; i < fit->n_names; i++)
    if (!strncmp(fit->names[i], name, n) && (!fit->names[i][n] || fit->names[i][n] == ':' || fit->names[i][n] == ' ')) return 1;
  return 0;
}

static void say(const device *dev, const answer *a, size_t elsewhere, int named, const char *remark) {
  const mx_probe_fit *f = a->fit;
  char truth[512];
  mx_accum_text(truth, sizeof truth, &dev->model.accum);
  printf("%-56s %s %zu batch%s, %zu of %zu outputs wrong, predicted %zu of %zu, elsewhere %zu; open %zu, rows %zu%s; %zu models in %.1f s%s\n",
         dev->name, f->fits ? "fits" : "NOT ", a->n_batches, a->n_batches > 1 ? "es" : "", f->wrong_outputs, f->n_outputs, f->wrong_kept,
         f->n_kept, elsewhere, a->open, f->n_names_all, named ? ", the device among them" : "", f->n_tried, a->seconds, remark);
  if (!f->fits || elsewhere) {
    printf("   truth %s,k=%d\n   found %s\n", truth, dev->model.k, f->text);
    if (!f->fits)
      printf("   %s: expected 0x%llx got 0x%llx\n", f->counter.text, (unsigned long long)f->counter.expected,
             (unsigned long long)f->counter.got);
  }
  fflush(stdout);
}

static mx_probe_spec spec_of(const mx_mma_model *m, size_t K) {
  return (mx_probe_spec){m->a, m->b, m->c, m->d, m->scale, m->block, 4, 4, K, 1};
}

/* --- rows of the tables --- */

/* Twice the instruction's k, so that chaining shows. */
static size_t depth_of(const mx_mma_model *m) {
  size_t K = m->k ? 2 * (size_t)m->k : 32;
  if (K < 8) K = 8;
  return K;
}

static int row(const char *name) {
  device dev = {.name = name, .play = play_model};
  answer a;
  mx_error err = {0};
  ck_assert_msg(mx_mma_model_find(&dev.model, name, &err) == MX_OK, "%s", err.text);
  const mx_probe_spec s = spec_of(&dev.model, depth_of(&dev.model));
  ask(&a, &dev, &s);
  const size_t elsewhere = a.fit->fits ? differs_elsewhere(&dev, a.fit, &s, all() ? 40 : 8) : 0;
  const int named = has_name(a.fit, name), ok = a.fit->fits && !elsewhere && !a.open && (named || !strcmp(name, "fused"));
  if (all() || !ok || getenv("PROBE_ONLY")) say(&dev, &a, elsewhere, named, ok ? "" : " FAILED");
  answer_free(&a);
  return ok;
}

/* Names of other shapes and architectures, but the same arithmetic. */
static int same_device(const mx_mma_model *x, const mx_mma_model *y) {
  return !memcmp(&x->accum, &y->accum, sizeof x->accum) && x->a == y->a && x->b == y->b && x->c == y->c && x->d == y->d && x->scale == y->scale &&
         x->block == y->block && x->k == y->k;
}

START_TEST(rows) {
  static const char *const sample[] = {"hopper_fp8_wgmma",
                                       "cdna3_f16",
                                       "hopper/mma_m16n8k16_f32_e4m3_e5m2_f32",
                                       "cdna2/mfma_f32_16x16x16f16",
                                       "rtx_blackwell/mmabs_m16n8k64_block16_f32_e2m1_e2m1_f32_ue4m3",
                                       "hopper/mma_m8n8k4_f64_f64_f64_f64",
                                       "hopper/mma_m16n8k32_s32_s8_s8_s32_satfinite"};
  size_t n = 0, bad = 0;
  const char *only = getenv("PROBE_ONLY");
  if (only) {
    ck_assert(row(only));
    return;
  }
  if (!all())
    for (; n < sizeof sample / sizeof *sample; n++) bad += !row(sample[n]);
  mx_mma_model m;
  size_t n_names = 0;
  const size_t part = getenv("PROBE_PART") ? (size_t)atoi(getenv("PROBE_PART")) : 0, parts = getenv("PROBE_PARTS") ? (size_t)atoi(getenv("PROBE_PARTS")) : 1;
  for (size_t i = 0; all() && mx_mma_model_at(&m, i) == MX_OK; i++, n_names++) {
    int seen = 0;
    mx_mma_model before;
    for (size_t q = 0; q < i && !seen; q++) {
      mx_mma_model_at(&before, q);
      seen = same_device(&before, &m);
    }
    if (seen || i % parts != part) continue;
    bad += !row(m.name);
    n++;
  }
  printf("probe: %zu of %zu devices recovered (%zu names); %zu outputs beside the probes compared\n", n - bad, n, n_names, judged);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

/* --- parameter sets that are in no table --- */

static int pick(uint64_t *s, int n) { return (int)((tiles_random(s) >> 33) % (uint64_t)n); }

/* Set number i: any key anywhere, as long as the model is one. */
static mx_mma_model random_model(size_t i) {
  static const char *const elements[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "e4m3fnuz", "e3m2", "e2m3", "e2m1"};
  static const char *const outs[] = {"f32", "f32", "f32", "f16", "bf16"};
  uint64_t s = 0x2545F4914F6CDD1Du + i * 0x9E3779B97F4A7C15u;
  mx_mma_model m;
  for (int warm = 0; warm < 8; warm++) tiles_random(&s);
  for (;;) {
    char text[128];
    const char *out = outs[pick(&s, 5)];
    const char *a = elements[pick(&s, 9)], *b = pick(&s, 3) ? a : elements[pick(&s, 9)];
    snprintf(text, sizeof text, "fused:a=%s,b=%s,c=%s,d=%s", a, b, out, out);
    if (mx_mma_model_find(&m, text, NULL)) continue;
    mx_accum x = {0};
    x.L = 1 << pick(&s, 6);
    x.F = pick(&s, 12) ? 5 + pick(&s, 34) : -1;
    x.align = pick(&s, 3);
    x.join = pick(&s, 3);
    if (x.join == MX_ACC_JOIN_AFTER) {
      x.sum_bits = 8 + pick(&s, 33);
      x.c_bits = 8 + pick(&s, 33);
      x.join_cut = pick(&s, 3);
      x.c_drop = pick(&s, 2) ? 0 : 8 + pick(&s, 40);
      x.split = pick(&s, 2);
    }
    x.out_bits = pick(&s, 3) ? 0 : 5 + pick(&s, 18);
    x.out_round = pick(&s, 3);
    x.zero = pick(&s, 2);
    x.floor = pick(&s, 3) ? 0 : -150 + pick(&s, 170);
    x.P = pick(&s, 5) ? 0 : 1 << pick(&s, 5);
    x.order = pick(&s, 4) == 0;
    x.huge = pick(&s, 2);
    x.under = pick(&s, 2);
    x.nan = pick(&s, 2);
    x.via = pick(&s, 3) == 0;
    m.accum = x;
    m.k = x.order || x.join == MX_ACC_JOIN_ADD ? x.L * (1 + pick(&s, 2)) : x.L;
    if (pick(&s, 4) == 0) { /* block scales */
      m.scale = mx_scale_format(pick(&s, 2) ? MX_SCALE_E8M0 : MX_SCALE_E4M3);
      m.block = pick(&s, 2) ? 16 : 32;
    }
    if (!mx_mma_model_check(&m, NULL)) return m;
  }
}

static int random_set(size_t i) {
  char name[96], keys[512];
  device dev = {.name = name, .play = play_model, .model = random_model(i)};
  answer a;
  mx_mma_model *m = &dev.model;
  mx_accum_text(keys, sizeof keys, &m->accum);
  snprintf(name, sizeof name, "set %zu %s x %s -> %s%s%s", i, m->a->name, m->b->name, m->d->name, m->scale ? ", " : "",
           m->scale ? m->scale->name : "");
  snprintf(m->name, sizeof m->name, "set %zu", i);
  const mx_probe_spec s = spec_of(m, m->k < 16 ? 32 : 2 * (size_t)m->k);
  ask(&a, &dev, &s);
  const size_t elsewhere = a.fit->fits ? differs_elsewhere(&dev, a.fit, &s, all() ? 60 : 8) : 0;
  const int ok = a.fit->fits && !elsewhere && !a.open;
  if (all() || !ok) {
    say(&dev, &a, elsewhere, 0, ok ? "" : " FAILED");
    if (all() && ok) printf("   truth %s,k=%d\n   found %s\n", keys, m->k, a.fit->text);
  }
  answer_free(&a);
  return ok;
}

START_TEST(random_sets) {
  const size_t n = getenv("PROBE_RANDOM") ? (size_t)atoi(getenv("PROBE_RANDOM"))
                   : all()                ? 50
                                          : 3,
               first = getenv("PROBE_FIRST") ? (size_t)atoi(getenv("PROBE_FIRST")) : 0;
  size_t bad = 0;
  if (getenv("PROBE_ONLY")) return;
  judged = 0;
  for (size_t i = 0; i < n; i++) bad += !random_set(first + i);
  printf("probe: %zu of %zu random parameter sets recovered; %zu outputs beside the probes compared\n", n - bad, n, judged);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("probe");
  TCase *t = tcase_create("recovers");
  tcase_set_timeout(t, 20000);
  if (!getenv("PROBE_RANDOM")) tcase_add_test(t, rows);
  tcase_add_test(t, random_sets);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  srunner_run_all(r, CK_NORMAL);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
