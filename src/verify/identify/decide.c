/* Chooses the suite that decides a key which the data leave open: on its vectors another value of the key gives other bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shortage.h"
#include "mxgold/isa.h"
#include "mxgold/verify.h"
#include "verify/trial/keys.h"

enum { SUITES = 4 };
/* How many other values of a key are tried. Each further one costs a run of each suite; fewer leave a value untried that a suite could have told. */
enum { MOST_VALUES = 24 };
/* The tensor of each suite. Larger ones decide more keys, but a user has to run the kernel on what is proposed here. */
enum { TOLD_ROWS = 32, TOLD_COLS = 256 };
/* The suites, the cheapest to run first: of two that tell equally many values apart the first is proposed. */
static const int suites[SUITES] = {MX_SUITE_SPECIAL, MX_SUITE_TIES, MX_SUITE_BOUNDARY, MX_SUITE_RANDOM};

/* What a spec gives on a suite, tensor by tensor. */
typedef struct answers {
  size_t n, size; /* tensors, and bytes of one */
  uint8_t *at;    /* a byte that says whether it was refused, codes, scales, tensor scale */
} answers;

static size_t scale_bytes(const mx_tensor *t) { return t->scale_rows * t->scale_cols * t->scale_bytes; }

/* The bytes of one answer. */
static size_t answer_size(const mx_tensor *t) { return 1 + t->rows * t->code_stride + scale_bytes(t) + sizeof t->tensor_scale; }

static void answer(uint8_t *out, mx_tensor *t, const mx_cases *c, size_t i, const mx_spec *spec, shortage *lack) {
  const size_t codes = t->rows * t->code_stride, scales = scale_bytes(t);
  const float *x = c->x + i * c->rows * c->ld;
  *out = noted_status(mx_quantize(t, x, c->rows, c->cols, c->ld, spec, &(mx_exec){.n_threads = 1}, NULL), lack) != MX_OK;
  if (*out) return; /* a value that is refused is an answer as well */
  memcpy(out + 1, t->codes, codes);
  memcpy(out + 1 + codes, t->scales, scales);
  memcpy(out + 1 + codes + scales, &t->tensor_scale, sizeof t->tensor_scale);
}

static int same_answer(const uint8_t *a, const uint8_t *b, size_t size) { return *a == *b && (*a || !memcmp(a, b, size)); }

static int run(answers *out, const mx_cases *c, const mx_spec *spec, shortage *lack) {
  mx_tensor t;
  *out = (answers){0};
  if (noted_status(mx_tensor_alloc(&t, c->rows, c->cols, spec), lack)) return 0;
  out->n = c->n;
  out->size = answer_size(&t);
  out->at = noted(malloc(out->n * out->size + 1), lack);
  for (size_t i = 0; out->at && i < c->n; i++) answer(out->at + i * out->size, &t, c, i, spec, lack);
  mx_tensor_free(&t);
  return out->at != NULL;
}

/* Compares up to the first tensor that tells the two apart. */
static int differ(const answers *base, const mx_cases *c, const mx_spec *other, shortage *lack) {
  mx_tensor t;
  int differs = 0;
  if (noted_status(mx_tensor_alloc(&t, c->rows, c->cols, other), lack)) return 0;
  const size_t size = answer_size(&t);
  uint8_t *mine = noted(malloc(size), lack);
  if (mine && size != base->size) differs = 1;
  for (size_t i = 0; mine && i < base->n && !differs; i++) {
    answer(mine, &t, c, i, other, lack);
    differs = !same_answer(mine, base->at + i * size, size);
  }
  free(mine);
  mx_tensor_free(&t);
  return differs;
}

/* The number in a choice that takes one. */
enum { NUMBER_IN_CHOICE = 5 };

/* The specs with another value of a key. Of a key that is a number alone, these are tried: small counts and powers of two, and the factors and
 * maxima of the presets. "given" is left out because it needs an input of random bits, "eden" because identify does not try it. */
static size_t others(mx_spec out[MOST_VALUES], const mx_spec *spec, size_t key) {
  static const char *const numbers[] = {"0", "1", "2", "3", "8", "16", "64", "100", "0.75", "6", "7", "1536", "0.0078125"};
  char text[64];
  const char *doc, *name;
  int number;
  size_t n = 0, rows = 0;
  for (; (name = mx_key_choice(key, rows, &doc, &number)) && n < MOST_VALUES; rows++) {
    if (number)
      snprintf(text, sizeof text, "%s%s%d", name, *name ? "=" : "", NUMBER_IN_CHOICE);
    else
      snprintf(text, sizeof text, "%s", name);
    out[n] = *spec;
    if (strcmp(name, "given") && strcmp(name, "eden") && !mx_spec_set(&out[n], mx_key_name(key), text, NULL))
      n += !mxi_key_same(&out[n], spec, key);
  }
  for (size_t i = 0; !rows && i < sizeof numbers / sizeof numbers[0] && n < MOST_VALUES; i++) {
    out[n] = *spec;
    if (!mx_spec_set(&out[n], mx_key_name(key), numbers[i], NULL)) n += !mxi_key_same(&out[n], spec, key);
  }
  return n;
}

/* Another value of a key. */
typedef struct question {
  size_t key;
  mx_spec other;
} question;

static size_t questions(question *out, const mx_spec *spec, uint64_t keys) {
  mx_spec other[MOST_VALUES];
  size_t count = 0;
  for (size_t k = 0; k < MX_MAX_KEYS && mx_key_name(k); k++) {
    const size_t n = keys >> k & 1 ? others(other, spec, k) : 0;
    for (size_t i = 0; i < n; i++)
      if (!mx_spec_check(&other[i], NULL) && other[i].had_size == spec->had_size) out[count++] = (question){k, other[i]};
  }
  return count;
}

/* The same suite decides a key whatever the size of a tile, but the vectors of large tiles take longer. So the suites are tried with small ones. */
static mx_spec of_small_tiles(const mx_spec *spec) {
  enum { SIDE = 16 };
  mx_spec t = *spec;
  if (t.block_rows <= SIDE || t.block_cols <= SIDE) return t;
  t.block_rows = t.block_cols = SIDE;
  return mx_spec_check(&t, NULL) ? *spec : t;
}

mx_status mx_deciding_suites(int suite_of[MX_MAX_KEYS], const mx_spec *asked, uint64_t keys) {
  const mx_spec small = of_small_tiles(asked), *spec = &small;
  shortage lack = {0};
  question *q = malloc(MX_MAX_KEYS * MOST_VALUES * sizeof *q);
  uint8_t *told = malloc(MX_MAX_KEYS * MOST_VALUES), decides[MX_MAX_KEYS] = {0}; /* most values that one suite tells apart */
  for (size_t k = 0; k < MX_MAX_KEYS; k++) suite_of[k] = -1;
  const size_t n = q && told ? questions(q, spec, keys) : 0;
  for (size_t s = 0; s < SUITES && n; s++) {
    mx_cases c;
    answers base;
    uint8_t here[MX_MAX_KEYS] = {0};
    const int fixed = suites[s] == MX_SUITE_SPECIAL;
    if (noted_status(mx_generate(&c, suites[s], spec, fixed ? 0 : TOLD_ROWS, fixed ? 0 : TOLD_COLS, 1, NULL), &lack)) continue;
    const int ran = run(&base, &c, spec, &lack);
#pragma omp parallel for schedule(dynamic, 1) num_threads(mx_thread_count(0))
    for (size_t i = 0; i < n; i++) told[i] = (uint8_t)(ran && differ(&base, &c, &q[i].other, &lack));
    for (size_t i = 0; i < n; i++) here[q[i].key] = (uint8_t)(here[q[i].key] + told[i]);
    for (size_t k = 0; k < MX_MAX_KEYS; k++)
      if (here[k] > decides[k]) decides[k] = here[k], suite_of[k] = suites[s];
    free(base.at);
    mx_cases_free(&c);
  }
  const mx_status status = q && told && !short_of_memory(&lack) ? MX_OK : MX_ERR_NOMEM;
  free(q);
  free(told);
  return status;
}
