/* Tests that probe names what a device computes, from bits alone. Here mx_mma stands for the device: rows of the tables, random parameter sets
 * that are in no table, and trees of additions that this file computes by itself.
 *
 * `make check` takes only a sample. PROBE_ALL=1 (make probe-all) or make check-all takes every row and 50 random sets, and prints a line for
 * each. PROBE_RANDOM=N takes another number of sets, PROBE_FIRST=I starts at set I, PROBE_ONLY=MODEL takes one model, PROBE_TREES=I takes
 * only trees, from kind I on, PROBE_PART=I PROBE_PARTS=N takes every N-th row, set and tree from the I-th, and PROBE_FROM=MODEL takes rows
 * from that one on (to continue an interrupted run). */
#include <check.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mma/kept.h"
#include "lib/run.h"
#include "lib/tiles.h"
#include "mxgold/isa.h"
#include "mxgold/probe.h"

enum { BATCHES = 5 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int all(void) { return getenv("PROBE_ALL") || run_whole(); }

/* A device, which turns tiles into results. */
typedef struct device {
  const char *name;
  mx_mma_model model;
  const struct tree *tree;
  void (*play)(void *d, const struct device *self, const mx_mma_args *args);
} device;

static void play_model(void *d, const device *self, const mx_mma_args *args) {
  mx_error err = {0};
  ck_assert_msg(mx_mma(d, &self->model, args, NULL, &err) == MX_OK, "%s: %s", self->name, err.text);
}

/* --- whether what was found is the device, on tiles that probe has not seen --- */

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

/* --- one device through emit, play and fit, with more batches while the fit wants them --- */

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
    /* everything fitted is right, but a prediction is wrong: more tiles may distinguish the remaining models */
    if (out->fit->wrong_outputs || !out->fit->next.T || n == BATCHES) break;
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

/* A tree has no model that could be run on other tiles, so probes of another seed must show the same tree, and it must give all of their
 * outputs. */
static size_t tree_differs(const device *dev, const mx_probe_fit *fit, const mx_probe_spec *s) {
  mx_probe_spec fresh = *s;
  answer a;
  fresh.seed = s->seed + 4242;
  ask(&a, dev, &fresh);
  const int same = a.fit->fits && a.fit->is_tree && !strcmp(a.fit->tree, fit->tree) && !strcmp(a.fit->tree_rule, fit->tree_rule);
  judged += a.fit->n_outputs + a.fit->n_kept;
  answer_free(&a);
  return !same;
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

/* Twice the k of the instruction, so that chaining shows. */
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
  const int named = has_name(a.fit, name), ok = a.fit->fits && !elsewhere && !a.open && (named || !strncmp(name, "fused", 5));
  if (all() || !ok || getenv("PROBE_ONLY")) say(&dev, &a, elsewhere, named, ok ? "" : " FAILED");
  answer_free(&a);
  return ok;
}

/* Whether two names, of different shapes or architectures, have the same arithmetic. */
static int same_device(const mx_mma_model *x, const mx_mma_model *y) {
  return !memcmp(&x->accum, &y->accum, sizeof x->accum) && x->a == y->a && x->b == y->b && x->c == y->c && x->d == y->d &&
         x->scale == y->scale && x->block == y->block && x->k == y->k;
}

/* Whether this run does part i. */
static int my_part(size_t i) {
  const size_t part = getenv("PROBE_PART") ? (size_t)atoi(getenv("PROBE_PART")) : 0,
               parts = getenv("PROBE_PARTS") ? (size_t)atoi(getenv("PROBE_PARTS")) : 1;
  return i % parts == part;
}

START_TEST(rows) {
  static const char *const sample[] = {"hopper_fp8_wgmma", "hopper/mma_m8n8k4_f64_f64_f64_f64", "hopper/mma_m16n8k32_s32_s8_s8_s32_satfinite"};
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
  const char *from = getenv("PROBE_FROM");
  for (size_t i = 0; all() && mx_mma_model_at(&m, i) == MX_OK; i++, n_names++) {
    int seen = from && strcmp(m.name, from);
    if (!seen) from = NULL;
    mx_mma_model before;
    for (size_t q = 0; q < i && !seen; q++) {
      mx_mma_model_at(&before, q);
      seen = same_device(&before, &m);
    }
    if (seen || !my_part(i)) continue;
    bad += !row(m.name);
    n++;
  }
  printf("probe: %zu of %zu devices recovered (%zu names); %zu outputs beside the probes compared\n", n - bad, n, n_names, judged);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

/* Keys that can be the number 0: "none" must not be taken for it. */
START_TEST(numbers_of_0) {
  static const char *const models[] = {
      "fused:L=8,F=22,floor=0,a=f16,b=f16", "fused:L=8,F=20,join=after,sum_bits=24,c_bits=22,c_drop=0,a=f16,b=f16",
      "fused:L=8,F=22,out_bits=0,a=f16,b=f16", "fused:L=4,F=18,floor=0,out_bits=0,out_round=rne,a=e4m3,b=e5m2"};
  if (getenv("PROBE_ONLY")) return;
  for (size_t i = 0; i < (all() ? sizeof models / sizeof *models : 2); i++)
    if (my_part(i)) ck_assert_msg(row(models[i]), "%s", models[i]);
}
END_TEST

/* --- parameter sets that are in no table --- */

static int pick(uint64_t *s, int n) { return (int)((tiles_random(s) >> 33) % (uint64_t)n); }

/* Set number i: keys with any values that make a valid model. */
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
    x.floor =
        pick(&s, 3) ? 0 : -150 + pick(&s, 170); /* an exponent of 0 is drawn as none, so that the sets stay those of docs/notes/EVIDENCE.md */
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
  const size_t elsewhere = !a.fit->fits     ? 0
                           : a.fit->is_tree ? tree_differs(&dev, a.fit, &s)
                                            : differs_elsewhere(&dev, a.fit, &s, all() ? 60 : 8);
  const int ok = a.fit->fits && !elsewhere && !a.open;
  if (all() || !ok) {
    say(&dev, &a, elsewhere, 0, ok ? "" : " FAILED");
    if (all() && ok) printf("   truth %s,k=%d\n   found %s\n", keys, m->k, a.fit->is_tree ? a.fit->tree : a.fit->text);
  }
  answer_free(&a);
  return ok;
}

START_TEST(random_sets) {
  const size_t n = getenv("PROBE_RANDOM") ? (size_t)atoi(getenv("PROBE_RANDOM"))
                   : all()                ? 50
                                          : 1,
               first = getenv("PROBE_FIRST") ? (size_t)atoi(getenv("PROBE_FIRST")) : 0;
  size_t bad = 0, tried = 0;
  if (getenv("PROBE_ONLY")) return;
  judged = 0;
  for (size_t i = 0; i < n; i++)
    if (my_part(i)) bad += !random_set(first + i), tried++;
  printf("probe: %zu of %zu random parameter sets recovered; %zu outputs beside the probes compared\n", tried - bad, tried, judged);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

/* Operands that are decomposed once give the bits of mx_mma under any model, on which the search depends. */
START_TEST(kept_operands) {
  uint64_t state = 0x0123456789ABCDEFu;
  size_t compared = 0;
  if (getenv("PROBE_ONLY")) return;
  for (size_t i = 0; i < 120; i++) {
    const mx_mma_model m = random_model(i);
    tiles t;
    tiles_make(&t, &m, (int)(i % TILES_COUNT), 6, 3, 5, m.k < 16 ? 32 : 2 * (size_t)m.k, 1, &state);
    mma_kept *kept = mxi_mma_kept_new(&m, &t.args);
    ck_assert_ptr_nonnull(kept);
    for (size_t q = i; q < i + 400; q++) { /* other parameters with the same operands */
      mx_mma_model other = m;
      other.accum = random_model(q).accum;
      other.k = q == i ? m.k : 0;
      if (mx_mma_model_check(&other, NULL)) continue;
      /* with every ISA switched off, so that vectors and plain code are compared too */
      ck_assert_int_eq(mx_mma(t.d_ref, &other, &t.args, &(mx_exec){.isa_mask = MX_ISA_ALL}, NULL), MX_OK);
      const size_t first = q % 3, n = 6 - first, each = t.d_bytes / 6;
      memset(t.d, 0xA5, t.d_bytes);
      ck_assert_int_eq(mxi_mma_kept_run(t.d, kept, &other, first, n), MX_OK);
      ck_assert_msg(!memcmp(t.d, (char *)t.d_ref + first * each, n * each), "operands of set %zu, parameters of set %zu", i, q);
      compared++;
      if (q > i + 20 && compared % 8 == 0) break;
    }
    mxi_mma_kept_free(kept);
    tiles_free(&t);
  }
  ck_assert_uint_gt(compared, 400);
}
END_TEST

/* --- trees of additions: this file's own arithmetic --- */

enum { TREE_K = 24 };

/* Node i is the sum of left[i] and right[i]; leaves are 0 .. K-1, K is C, nodes K+1 ... */
typedef struct tree {
  int left[2 * TREE_K + 2], right[2 * TREE_K + 2], n;
  int fma; /* 1: products are added without rounding them first */
  int toward_zero;
} tree;

static double product_of(const mx_probe_spec *s, const mx_mma_args *g, size_t t, size_t i, size_t j, int k) {
  const size_t wa = mx_mma_bytes(s->a, 1), wb = mx_mma_bytes(s->b, 1);
  uint64_t a = 0, b = 0;
  memcpy(&a, (const char *)g->a + ((t * g->M + i) * g->K + (size_t)k) * wa, wa);
  memcpy(&b, (const char *)g->b + ((t * g->N + j) * g->K + (size_t)k) * wb, wb);
  return mx_decode(s->a, a) * mx_decode(s->b, b);
}

/* Uses the processor's rounding mode; volatile, so that nothing is computed before or after. Cutting to double and then to float is the same
 * as cutting once. */
static float add_toward_zero(double x, double y) {
  volatile double vx = x, vy = y;
  fesetround(FE_TOWARDZERO);
  volatile double sum = vx + vy;
  volatile float r = (float)sum;
  fesetround(FE_TONEAREST);
  return r;
}

/* x + y rounded once, where y is a product that may be wider than a float. It is exact in long double for the types used here, except for
 * sticky bits. */
static float add(const tree *t, double x, double y) {
  if (t->toward_zero) return add_toward_zero(x, y);
  return t->fma ? (float)((long double)x + (long double)y) : (float)x + (float)y;
}

static double node_value(const tree *t, const mx_probe_spec *s, const mx_mma_args *g, size_t tile, size_t i, size_t j, int node) {
  if (node == TREE_K) {
    float c;
    memcpy(&c, (const char *)g->c + ((tile * g->M + i) * g->N + j) * 4, 4);
    return (double)c;
  }
  if (node < TREE_K) {
    const double p = product_of(s, g, tile, i, j, node);
    return t->toward_zero ? (double)add_toward_zero(p, -0.0) : (double)(float)p;
  }
  int x = t->left[node], y = t->right[node];
  if (x < TREE_K && y >= TREE_K) x = y, y = t->left[node];
  const double vx = node_value(t, s, g, tile, i, j, x);
  const double vy = t->fma && y < TREE_K ? product_of(s, g, tile, i, j, y) : node_value(t, s, g, tile, i, j, y);
  return (double)add(t, vx, vy);
}

static void play_tree(void *d, const device *self, const mx_mma_args *g) {
  const mx_probe_spec s = {.a = self->model.a, .b = self->model.b};
  for (size_t q = 0; q < g->T * g->M * g->N; q++) {
    float r = (float)node_value(self->tree, &s, g, q / (g->M * g->N), q / g->N % g->M, q % g->N, TREE_K + self->tree->n);
    if (r != r) memcpy(&r, &(uint32_t){0x7FC00000}, 4);
    memcpy((char *)d + 4 * q, &r, 4);
  }
}

/* Kinds of trees; some join the nodes of a list pair by pair at random places. */
enum { SEQUENTIAL, SEQUENTIAL_C_LAST, PAIRWISE, STRIDED, ANY_ORDER, ANY_TREE, TREE_KINDS };

static int join(tree *t, int x, int y) {
  t->n++;
  t->left[TREE_K + t->n] = x;
  t->right[TREE_K + t->n] = y;
  return TREE_K + t->n;
}

static int halves(tree *t, int from, int n) {
  if (n == 1) return from;
  const int x = halves(t, from, n / 2), y = halves(t, from + n / 2, n - n / 2);
  return join(t, x, y);
}

static void make_tree(tree *t, int kind, uint64_t *seed) {
  int list[TREE_K + 1], n = TREE_K + 1, at;
  memset(t, 0, sizeof *t);
  for (int i = 0; i <= TREE_K; i++) list[i] = i;
  switch (kind) {
  case SEQUENTIAL:
    at = TREE_K;
    for (int k = 0; k < TREE_K; k++) at = join(t, at, k);
    break;
  case SEQUENTIAL_C_LAST:
    at = 0;
    for (int k = 1; k <= TREE_K; k++) at = join(t, at, k);
    break;
  case PAIRWISE:
    join(t, halves(t, 0, TREE_K), TREE_K);
    break;
  case STRIDED: /* four running sums */
    for (int lane = 0; lane < 4; lane++) {
      list[lane] = lane;
      for (int k = lane + 4; k < TREE_K; k += 4) list[lane] = join(t, list[lane], k);
    }
    at = join(t, join(t, list[0], list[1]), join(t, list[2], list[3]));
    join(t, TREE_K, at);
    break;
  case ANY_ORDER: /* a chain in a random order */
    for (int i = TREE_K; i > 0; i--) {
      const int q = pick(seed, i + 1), swap = list[i];
      list[i] = list[q], list[q] = swap;
    }
    at = list[0];
    for (int i = 1; i <= TREE_K; i++) at = join(t, at, list[i]);
    break;
  default:
    while (n > 1) {
      const int x = pick(seed, n), a = list[x];
      list[x] = list[--n];
      const int y = pick(seed, n);
      list[y] = join(t, a, list[y]);
    }
  }
}

static int tree_case(int kind, const char *type, int fma_, int toward_zero, uint64_t seed) {
  static const char *const kinds[] = {"sequential, C first", "sequential, C last", "pairwise, C last", NULL, "a chain in another order", NULL};
  tree t;
  char name[96];
  device dev = {.name = name, .play = play_tree, .tree = &t};
  answer a;
  make_tree(&t, kind, &seed);
  t.fma = fma_;
  t.toward_zero = toward_zero;
  snprintf(name, sizeof name, "tree %d of %s, %s, %s", kind, type, fma_ ? "fma" : "products rounded",
           toward_zero ? "toward zero" : "to nearest");
  dev.model.a = dev.model.b = mx_format_find(type);
  dev.model.c = dev.model.d = mx_format_find("f32");
  const mx_probe_spec s = spec_of(&dev.model, TREE_K);
  ask(&a, &dev, &s);
  /* a tree of exact sums shows no order, and a chain of fma is also a model of the tables */
  const char *got = a.fit->tree_name;
  const int named = kinds[kind] ? got && !strcmp(got, kinds[kind]) : 1,
            ruled = !toward_zero || (a.fit->is_tree && strstr(a.fit->tree_rule, "toward zero")),
            ok = a.fit->fits && a.fit->tree && named && ruled;
  if (all() || !ok)
    printf("%-56s %s predicted %zu of %zu wrong; %s%s%s in %.1f s\n", name, ok ? "fits" : "FAILED", a.fit->wrong_kept, a.fit->n_kept,
           a.fit->is_tree ? a.fit->tree_rule : a.fit->text, got ? "; " : "", got ? got : "", a.seconds);
  if (!ok) printf("   %s\n   %s\n", a.fit->tree ? a.fit->tree : "no tree", a.fit->counter.text);
  if (all() && ok) printf("   %s\n", a.fit->tree);
  fflush(stdout);
  answer_free(&a);
  return ok;
}

START_TEST(trees) {
  size_t n = 0, bad = 0;
  if (getenv("PROBE_ONLY")) return;
  for (int kind = getenv("PROBE_TREES") ? atoi(getenv("PROBE_TREES")) - 1 : 0; kind < TREE_KINDS; kind++)
    for (int way = 0; way < 6; way++) {
      if (all() && !my_part((size_t)(6 * kind + way))) continue;
      if (!all() && (way != 1 || kind != STRIDED) && (way != 3 || kind != ANY_TREE)) continue;
      static const char *const types[] = {"f16", "bf16", "f16", "bf16", "e5m2", "f16"};
      bad += !tree_case(kind, types[way], way & 1, way >> 1 == 1, 77 + (uint64_t)way);
      n++;
    }
  printf("probe: %zu of %zu trees of additions answered rightly\n", n - bad, n);
  ck_assert_uint_eq(bad, 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("probe");
  TCase *t = tcase_create("recovers");
  tcase_set_timeout(t, 20000);
  const int trees_alone = getenv("PROBE_TREES") != NULL;
  if (!getenv("PROBE_RANDOM") && !trees_alone) tcase_add_test(t, rows);
  if (!getenv("PROBE_RANDOM") && !trees_alone) tcase_add_test(t, numbers_of_0);
  if (!trees_alone) tcase_add_test(t, random_sets);
  if (!getenv("PROBE_RANDOM")) tcase_add_test(t, trees);
  if (!getenv("PROBE_RANDOM") && !trees_alone) tcase_add_test(t, kept_operands);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
