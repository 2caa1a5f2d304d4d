/* Failures are no answers: identify, diff, judge and probe run again and again, and each time another of their allocations fails. The result must be
 * MX_ERR_NOMEM, or the answer that there is with all memory (a cache, say, may do without), never another one.
 *
 * The linker hands every allocation of the program to the functions below (tests/check.mk); what libraries beside it allocate is left alone. A call makes up
 * to some thousands of allocations: STRIDE says how many of them are skipped between two that fail; each call also runs with all of its allocations
 * failing from the n-th on. make check-all fails every single one. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
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

/* A question, and what it is asked with. The answer is held in two places, one for the run with all memory; same() compares the two. */
typedef struct question {
  mx_status (*ask)(int which, mx_error *err);
  int (*same)(void);
} question;

/* Every stride-th allocation fails alone, and a few times all from one on. least: as many must be refused, or nothing was tested. */
static void fail_each(const question *q, const char *name, size_t stride, size_t least) {
  mx_error err = {0};
  heap.n = heap.fail = 0;
  ck_assert_msg(q->ask(0, &err) == MX_OK, "%s: %s", name, err.text);
  const size_t total = heap.n;
  size_t refused = 0, steps = 0;
  if (run_whole()) stride = 1;
  for (size_t at = 1; at <= total; at += stride)
    for (int rest = 0; rest <= (steps % 8 == 0); rest++) {
      heap.n = 0;
      heap.last = rest ? SIZE_MAX : at;
      heap.fail = at;
      const mx_status status = q->ask(1, &err);
      heap.fail = 0;
      steps += rest == 0;
      refused += status == MX_ERR_NOMEM;
      ck_assert_msg(status == MX_OK || status == MX_ERR_NOMEM, "%s: allocation %zu of %zu fails: %s", name, at, total, err.text);
      ck_assert_msg(status || q->same(), "%s: allocation %zu of %zu%s fails, and the answer is another one", name, at, total,
                    rest ? " and all after it" : "");
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

/* A tensor of the preset as a sample. */
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
  for (size_t i = 0; i + 1 < MOST; i += 2) { /* the lanes of each pair swapped */
    const uint8_t first = codes[i];
    codes[i] = codes[i + 1];
    codes[i + 1] = first;
  }
  fail_each(&identify, "identify a bug", 9001, 2);
  ck_assert_ptr_nonnull(identity[0].bug.name);
  mx_tensor_free(&t);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("nomem");
  tcase_set_timeout(c, 600);
  tcase_add_test(c, an_identity_is_not_another_without_memory);
  tcase_add_test(c, values_alone_are_not_another_spec_without_memory);
  tcase_add_test(c, a_bug_does_not_vanish_without_memory);
  Suite *s = suite_create("nomem");
  suite_add_tcase(s, c);
  return run_suite(s);
}
