/* Tests that failures are not answers: identify, diff, judge, probe and two suites of gen run again and again, and each time another allocation fails. The result
 * must be MX_ERR_NOMEM, or the answer that there is with enough memory (a cache, for instance, is not necessary), but never another one.
 *
 * The linker redirects every allocation of the program to the functions below (tests/check.mk), but not those of other libraries. A call
 * makes up to some ten thousand allocations: each stride-th one fails by itself, and now and then all from one on. make check-all makes
 * sixteen times as many fail. It also tests that steps of a training after the first make no allocation at all. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "lib/scratch.h"
#include "mxgold/mxgold.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);

static struct { size_t n, fail, last; /* allocations so far; those from `fail` to `last` fail, 0: none does */ } heap;

static int fails(void) {
  const size_t at = __atomic_add_fetch(&heap.n, 1, __ATOMIC_RELAXED);
  return heap.fail && at >= heap.fail && at <= heap.last;
}

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
void *__wrap_aligned_alloc(size_t align, size_t n) { return fails() ? NULL : __real_aligned_alloc(align, n); }

/* A question, and what it is asked with. There are two answers, one of them from the run with enough memory; same() compares them. */
typedef struct question {
  mx_status (*ask)(int which, mx_error *err);
  int (*same)(void);
} question;

/* Returns the number of allocations that the run with enough memory makes. */
static size_t ask_with_memory(const question *q, const char *name) {
  mx_error err = {0};
  heap.n = heap.fail = 0;
  ck_assert_msg(q->ask(0, &err) == MX_OK, "%s: %s", name, err.text);
  return heap.n;
}

/* Lets the allocations from `at` to `last` fail. Returns 1 if the run was refused. */
static int fail_once(const question *q, const char *name, size_t at, size_t last, size_t total) {
  mx_error err = {0};
  heap.n = 0;
  heap.last = last;
  heap.fail = at;
  const mx_status status = q->ask(1, &err);
  heap.fail = 0;
  ck_assert_msg(status == MX_OK || status == MX_ERR_NOMEM, "%s: allocation %zu of %zu fails: %s", name, at, total, err.text);
  ck_assert_msg(status || q->same(), "%s: allocation %zu of %zu%s fails, and the answer is another one", name, at, total,
                last > at ? " and all after it" : "");
  return status == MX_ERR_NOMEM;
}

/* Lets each stride-th allocation fail by itself, and a few times all from one on. least: how many runs must be refused, or else nothing was
 * tested. */
static void fail_each(const question *q, const char *name, size_t stride, size_t least) {
  const size_t total = ask_with_memory(q, name);
  size_t refused = 0, steps = 0;
  if (run_whole()) stride = stride / 16 + 1;
  for (size_t at = 1; at <= total; at += stride)
    for (int rest = 0; rest <= (steps % 8 == 0); rest++) {
      refused += (size_t)fail_once(q, name, at, rest ? SIZE_MAX : at, total);
      steps += rest == 0;
    }
  ck_assert_msg(refused >= least, "%s: of %zu allocations that failed only %zu were told", name, steps, refused);
}

static float number(size_t i) { return (float)(sin((double)i * 1.7) * exp(sin((double)i * 0.37) * 2)); }

/* ---- identify */

enum { ROWS = 16, COLS = 128, MOST = ROWS * COLS };
static float x[MOST], values[MOST];
static uint8_t codes[MOST];
static mx_sample sample;
static mx_identity identity[2];

static mx_status ask_identify(int which, mx_error *err) {
  const mx_identify_options options = {.seconds = 1000, .n_threads = 1};
  return mx_identify(&identity[which], &sample, 1, &options, err);
}

static int same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static int same_identity(void) {
  const mx_identity *a = &identity[0], *b = &identity[1];
  return mx_spec_equal(&a->spec, &b->spec) && a->exact == b->exact && same_text(a->preset, b->preset) && same_text(a->nearest, b->nearest) &&
         a->codes_differ == b->codes_differ && a->scales_differ == b->scales_differ && a->values_differ == b->values_differ &&
         a->tensor_scales_differ == b->tensor_scales_differ && a->undecided == b->undecided && a->stochastic == b->stochastic &&
         a->complete == b->complete && same_text(a->bug.name, b->bug.name) && same_text(a->bug.preset, b->bug.preset) &&
         (!a->bug.name || !strcmp(a->bug.text, b->bug.text)) && a->bug.codes == b->bug.codes && a->bug.scales == b->bug.scales;
}

static const question identify = {ask_identify, same_identity};

/* Makes a sample from a tensor under the preset. */
static void sample_of(mx_tensor *t, const char *preset, int by_values) {
  mx_spec spec;
  ck_assert_int_eq(mx_preset_find(&spec, preset, NULL), MX_OK);
  for (size_t i = 0; i < MOST; i++) x[i] = number(i);
  ck_assert_int_eq(mx_tensor_alloc(t, ROWS, COLS, &spec), MX_OK);
  ck_assert_int_eq(mx_quantize(t, x, ROWS, COLS, COLS, &spec, &(mx_exec){.n_threads = 1}, NULL), MX_OK);
  for (size_t i = 0; i < MOST; i++) codes[i] = (uint8_t)mx_code_at(t, &spec, i / COLS, i % COLS);
  sample = (mx_sample){.x = x, .rows = ROWS, .cols = COLS, .ld = COLS};
  if (by_values) {
    ck_assert_int_eq(mx_dequantize(values, COLS, t, &spec, &(mx_exec){.n_threads = 1}), MX_OK);
    sample.values = values;
    return;
  }
  sample.codes = codes;
  sample.scales = t->scales;
  sample.scale_rows = t->scale_rows;
  sample.scale_cols = t->scale_cols;
  sample.scale_bytes = t->scale_bytes;
  sample.has_tensor_scale = t->has_tensor_scale;
  sample.tensor_scale = t->tensor_scale;
}

START_TEST(an_identity_is_not_another_without_memory) {
  mx_tensor t;
  sample_of(&t, "ocp-mxfp4", 0);
  fail_each(&identify, "identify ocp-mxfp4", 7, 4);
  ck_assert(identity[0].exact && identity[0].complete && same_text(identity[0].preset, "ocp-mxfp4"));
  mx_tensor_free(&t);
}
END_TEST

START_TEST(values_alone_are_not_another_spec_without_memory) {
  mx_tensor t;
  sample_of(&t, "ocp-mxfp4", 1);
  fail_each(&identify, "identify values", 31, 4);
  mx_tensor_free(&t);
}
END_TEST

START_TEST(a_bug_does_not_vanish_without_memory) {
  mx_tensor t;
  sample_of(&t, "ocp-mxfp4", 0);
  for (size_t i = 0; i + 1 < MOST; i += 2) { /* swaps the lanes of each pair */
    const uint8_t first = codes[i];
    codes[i] = codes[i + 1];
    codes[i + 1] = first;
  }
  fail_each(&identify, "identify a bug", 2003, 3);
  ck_assert_ptr_nonnull(identity[0].bug.name);
  mx_tensor_free(&t);
}
END_TEST

/* ---- diff */

static mx_tensor left, right;
static mx_spec spec_of_both;
static mx_difference difference[2];

static mx_status ask_diff(int which, mx_error *err) {
  const mx_diff_options options = {.values = 1, .n_threads = 1};
  return mx_diff(&difference[which], &left, &right, &spec_of_both, x, COLS, NULL, NULL, &options, err);
}

static int same_difference(void) {
  const mx_difference *a = &difference[0], *b = &difference[1];
  return a->equal == b->equal && a->codes == b->codes && a->scales == b->scales && a->values == b->values && a->rows == b->rows &&
         a->blocks == b->blocks && a->padding == b->padding && !memcmp(a->by_position, b->by_position, sizeof a->by_position) &&
         !memcmp(a->by_scale, b->by_scale, sizeof a->by_scale) && !memcmp(a->pairs, b->pairs, sizeof a->pairs) &&
         !memcmp(a->map, b->map, sizeof a->map) && !memcmp(a->scale_pairs, b->scale_pairs, sizeof a->scale_pairs) &&
         a->n_patterns == b->n_patterns && !memcmp(a->patterns, b->patterns, sizeof a->patterns);
}

/* The rows of B are in reverse order, codes and scales, so that patterns need hashes of rows, columns and tiles. */
START_TEST(a_difference_is_not_another_without_memory) {
  const question diff = {ask_diff, same_difference};
  sample_of(&left, "ocp-mxfp4", 0);
  mx_tensor_free(&left);
  ck_assert_int_eq(mx_preset_find(&spec_of_both, _i ? "ocp-mxfp8-e4m3" : "ocp-mxfp4", NULL), MX_OK);
  for (int side = 0; side < 2; side++) {
    mx_tensor *t = side ? &right : &left;
    ck_assert_int_eq(mx_tensor_alloc(t, ROWS, COLS, &spec_of_both), MX_OK);
    ck_assert_int_eq(mx_quantize(t, x, ROWS, COLS, COLS, &spec_of_both, &(mx_exec){.n_threads = 1}, NULL), MX_OK);
  }
  for (size_t r = 0; r < ROWS; r++) {
    const size_t from = ROWS - 1 - r, scales = left.scale_cols * left.scale_bytes;
    memcpy(right.codes + r * right.code_stride, left.codes + from * left.code_stride, left.code_stride);
    memcpy((uint8_t *)right.scales + r * scales, (const uint8_t *)left.scales + from * scales, scales);
  }
  fail_each(&diff, "diff", 1, 8);
  ck_assert(!difference[0].equal);
  ck_assert_int_gt(difference[0].n_patterns, 0);
  mx_tensor_free(&left);
  mx_tensor_free(&right);
}
END_TEST

/* ---- judge */

static float product[ROWS * ROWS];
static mx_judgement judgement[2];

static mx_status ask_judge(int which, mx_error *err) {
  const mx_gemm_options gemm = {.exec = {.n_threads = 1}};
  return mx_judge(&judgement[which], product, &left, &spec_of_both, &right, &spec_of_both, &gemm, NULL, err);
}

static int same_judgement(void) {
  const mx_judgement *a = &judgement[0], *b = &judgement[1];
  int same = a->equal == b->equal && a->differ == b->differ && !strcmp(a->base, b->base) && a->inside == b->inside &&
             a->n_models == b->n_models && a->n_findings == b->n_findings && a->n_regions == b->n_regions &&
             !memcmp(a->map, b->map, sizeof a->map) && !memcmp(a->ulps, b->ulps, sizeof a->ulps);
  for (int i = 0; same && i < a->n_models; i++)
    same = !strcmp(a->models[i].name, b->models[i].name) && a->models[i].differ == b->models[i].differ;
  for (int i = 0; same && i < a->n_findings; i++)
    same = !strcmp(a->findings[i].what, b->findings[i].what) && a->findings[i].explained == b->findings[i].explained;
  for (int i = 0; same && i < a->n_regions; i++) same = !strcmp(a->regions[i], b->regions[i]);
  return same;
}

/* D is right, or lacks a row, or comes from other scales, for which variants, factors and orders are tried. */
START_TEST(a_judgement_is_not_another_without_memory) {
  static const size_t strides[] = {97, 97, 3001};
  const question judge = {ask_judge, same_judgement};
  const mx_gemm_options gemm = {.exec = {.n_threads = 1}};
  sample_of(&left, "ocp-mxfp4", 0);
  ck_assert_int_eq(mx_preset_find(&spec_of_both, "ocp-mxfp4", NULL), MX_OK);
  for (size_t i = 0; i < MOST; i++) x[i] = number(i + 5000);
  ck_assert_int_eq(mx_tensor_alloc(&right, ROWS, COLS, &spec_of_both), MX_OK);
  ck_assert_int_eq(mx_quantize(&right, x, ROWS, COLS, COLS, &spec_of_both, &(mx_exec){.n_threads = 1}, NULL), MX_OK);
  const size_t across = left.scale_cols, bytes = left.scale_rows * across;
  uint8_t *scales = left.scales, kept[ROWS * COLS];
  memcpy(kept, scales, bytes);
  for (size_t k = 0; k < bytes && _i == 2; k++) scales[k] = (uint8_t)(kept[k] + k % across % 2); /* doubles every other block */
  ck_assert_int_eq(mx_gemm(product, ROWS, &left, &spec_of_both, &right, &spec_of_both, &gemm, NULL), MX_OK);
  memcpy(scales, kept, bytes);
  if (_i == 1) memset(product + 3 * ROWS, 0, ROWS * sizeof *product);
  fail_each(&judge, "judge", strides[_i], 3);
  ck_assert_int_eq(judgement[0].equal, _i == 0);
  ck_assert(_i != 1 || judgement[0].n_findings > 0);
  mx_tensor_free(&left);
  mx_tensor_free(&right);
}
END_TEST

/* ---- probe */

static mx_probe tiles;
static void *outputs;
static struct {
  int fits, is_tree;
  size_t n_names, n_alternatives, n_told, n_next;
  char text[512], tree[512], rule[64], names[MX_PROBE_NAMES][96];
} fitted[2];

static mx_status ask_probe(int which, mx_error *err) {
  static mx_probe_fit fit;
  const void *d[] = {outputs};
  const mx_status status = mx_probe_fit_run(&fit, &tiles, d, 1, &(mx_exec){.n_threads = 1}, err);
  memset(&fitted[which], 0, sizeof fitted[which]);
  fitted[which].fits = fit.fits;
  fitted[which].is_tree = fit.is_tree;
  fitted[which].n_names = fit.n_names;
  fitted[which].n_alternatives = fit.n_alternatives;
  fitted[which].n_told = fit.n_told;
  fitted[which].n_next = fit.next.n;
  snprintf(fitted[which].text, sizeof fitted[which].text, "%s", fit.text);
  snprintf(fitted[which].tree, sizeof fitted[which].tree, "%s", fit.tree ? fit.tree : "");
  snprintf(fitted[which].rule, sizeof fitted[which].rule, "%s", fit.tree_rule ? fit.tree_rule : "");
  memcpy(fitted[which].names, fit.names, sizeof fit.names);
  mx_probe_fit_free(&fit);
  return status;
}

static int same_fit(void) { return !memcmp(&fitted[0], &fitted[1], sizeof fitted[0]); }

static mx_probe_spec small_spec(const mx_mma_model *m) { return (mx_probe_spec){m->a, m->b, m->c, m->d, m->scale, m->block, 2, 2, 8, 1}; }

/* A unit of the table, whose parameters are read off and searched for, including what else would fit. */
START_TEST(a_model_is_not_another_without_memory) {
  const question probe = {ask_probe, same_fit};
  mx_mma_model m;
  mx_error err = {0};
  ck_assert_msg(mx_mma_model_find(&m, "hopper_f16", &err) == MX_OK, "%s", err.text);
  const mx_probe_spec spec = small_spec(&m);
  ck_assert_msg(mx_probe_make(&tiles, &spec, &err) == MX_OK, "%s", err.text);
  const mx_mma_args args = mx_probe_args(&tiles);
  outputs = malloc(tiles.T * 4 * mx_mma_bytes(spec.d, 1) + 1);
  ck_assert_msg(mx_mma(outputs, &m, &args, NULL, &err) == MX_OK, "%s", err.text);
  fail_each(&probe, "probe", 601, 1);
  ck_assert(fitted[0].fits);
  free(outputs);
  mx_probe_free(&tiles);
}
END_TEST

/* ---- suites of gen */

static struct {
  int suite;
  mx_spec spec;
  mx_cases cases[2];
} suite;

static mx_status ask_suite(int which, mx_error *err) {
  mx_cases_free(&suite.cases[which]);
  return mx_generate(&suite.cases[which], suite.suite, &suite.spec, 0, 0, 1, err);
}

static int same_cases(void) {
  const mx_cases *a = &suite.cases[0], *b = &suite.cases[1];
  return a->n == b->n && a->rows == b->rows && a->ld == b->ld && !memcmp(a->x, b->x, a->n * a->rows * a->ld * sizeof *a->x);
}

static const question of_suite = {ask_suite, same_cases};

static void suite_free(void) {
  mx_cases_free(&suite.cases[0]);
  mx_cases_free(&suite.cases[1]);
}

/* The rotation needs memory for its signs, and each block for the values that it can hold. */
START_TEST(ties_are_not_others_without_memory) {
  suite.suite = MX_SUITE_TIES;
  ck_assert_int_eq(mx_preset_find(&suite.spec, "ocp-mxfp4", NULL), MX_OK);
  ck_assert_int_eq(mx_spec_set(&suite.spec, "had.size", "32", NULL), MX_OK);
  ck_assert_int_eq(mx_spec_set(&suite.spec, "had.sign", "fresh", NULL), MX_OK);
  const size_t total = ask_with_memory(&of_suite, "ties");
  for (size_t at = 1; at <= total; at += at + 40 < total ? 61 : 1) ck_assert(fail_once(&of_suite, "ties", at, at, total));
  suite_free();
}
END_TEST

/* The candidates come first, then the bytes that every preset gives of each, then what is added for kernels. */
START_TEST(the_minimal_suite_is_not_another_without_memory) {
  suite.suite = MX_SUITE_MINIMAL;
  const size_t total = ask_with_memory(&of_suite, "minimal");
  size_t steps = 0, refused = 0;
  ck_assert_uint_gt(total, 10000);
  const size_t early = run_whole() ? 83 : 211, late = run_whole() ? 9 : 23; /* strides; between them one in 20011 */
  for (size_t at = 1; at <= total; at += at < 2000 ? early : at + 20000 < total ? 20011 : at + 150 < total ? total - 150 - at : late, steps++)
    refused += (size_t)fail_once(&of_suite, "minimal", at, steps % 8 ? at : SIZE_MAX, total);
  ck_assert_uint_gt(refused, steps / 2);
  suite_free();
}
END_TEST

/* ---- a training step allocates nothing */

enum { STEPS = 4, SEEN = 8 };

static size_t allocations[SEEN]; /* their number up to the end of each step */

static void count(void *self, const mx_train_step *step) {
  (void)self;
  if (step->step < SEEN) allocations[step->step] = heap.n;
}

static void hold_steps(const char *model, const char *quant, int n_threads) {
  scratch s;
  char config[600], run[600], text[4000], json[600];
  scratch_begin(&s);
  for (int i = 0; i < (int)sizeof text; i++) text[i] = (char)(32 + (i * i * 7 + i / 5) % 90);
  scratch_write(&s, "t.txt", text, sizeof text);
  snprintf(json, sizeof json,
           "{\"model\": {%s}, \"data\": {\"text\": \"t.txt\"}, \"train\": {\"steps\": %d, \"batch\": 4, \"eval_batches\": 0}%s}", model, STEPS,
           quant);
  scratch_write(&s, "c.json", json, strlen(json));
  snprintf(config, sizeof config, "%s", scratch_path(&s, "c.json"));
  snprintf(run, sizeof run, "%s", scratch_path(&s, "run"));
  mx_train_result result;
  mx_error err;
  const mx_train_options how = {.config = config, .dir = run, .n_threads = n_threads, .report = count};
  heap.n = 0;
  ck_assert_msg(mx_train_run(&result, &how, &err) == MX_OK, "%s", err.text);
  scratch_end(&s);
  ck_assert_msg(allocations[0] > 0 && allocations[STEPS - 1] == allocations[0], "%s%s on %d threads: %zu allocations after the first step",
                model, quant, n_threads, allocations[STEPS - 1] - allocations[0]);
}

#define BYTE_MLP "\"kind\": \"byte_mlp\", \"width\": 48, \"context\": 4"
#define LLAMA "\"kind\": \"llama\", \"width\": 32, \"layers\": 1, \"heads\": 2, \"ffn\": 48, \"context\": 16"
#define RECIPE(name) ", \"quant\": {\"recipe\": \"recipe-" name "\"}"

START_TEST(steps_allocate_nothing) {
  static const char *const models[] = {BYTE_MLP, LLAMA}, *const quant[] = {"", RECIPE("ocp"), RECIPE("nvfp4"), RECIPE("quartet2"),
                                                                           RECIPE("wang")};
  hold_steps(models[_i % 2], quant[_i / 2 % 4], _i < 8 ? 1 : 2);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("nomem");
  tcase_set_timeout(c, 600);
  tcase_add_test(c, an_identity_is_not_another_without_memory);
  tcase_add_test(c, values_alone_are_not_another_spec_without_memory);
  tcase_add_test(c, a_bug_does_not_vanish_without_memory);
  tcase_add_loop_test(c, a_difference_is_not_another_without_memory, 0, 2);
  tcase_add_loop_test(c, a_judgement_is_not_another_without_memory, 0, 3);
  tcase_add_test(c, a_model_is_not_another_without_memory);
  tcase_add_test(c, ties_are_not_others_without_memory);
  tcase_add_test(c, the_minimal_suite_is_not_another_without_memory);
  TCase *steps = tcase_create("steps");
  tcase_set_timeout(steps, 120);
  tcase_add_loop_test(steps, steps_allocate_nothing, 0, 14);
  Suite *s = suite_create("nomem");
  suite_add_tcase(s, c);
  suite_add_tcase(s, steps);
  return run_suite(s);
}
