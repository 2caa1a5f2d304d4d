/* Makes a kernel under test from a spec: suites in, samples for identify out. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int quantize_one(mx_sample *s, const float *x, const mx_cases *c, const mx_spec *spec, int keep) {
  mx_tensor t;
  if (mx_tensor_alloc(&t, c->rows, c->cols, spec)) return 0;
  if (mx_quantize(&t, x, c->rows, c->cols, c->ld, spec, &(mx_exec){.n_threads = 1}, NULL)) {
    mx_tensor_free(&t);
    return 0;
  }
  uint32_t *wide = malloc((c->rows * c->cols + 1) * sizeof *wide);
  uint8_t *codes = malloc(c->rows * c->cols + 1);
  float *own = malloc((c->rows * c->ld + 1) * sizeof *own);
  mx_unpack_codes(wide, &t, spec);
  for (size_t i = 0; i < c->rows * c->cols; i++) codes[i] = (uint8_t)wide[i];
  memcpy(own, x, c->rows * c->ld * sizeof *own);
  free(wide);
  free(t.codes);
  free(t.micro);
  *s = (mx_sample){.rows = c->rows,
                   .cols = c->cols,
                   .ld = c->ld,
                   .x = own,
                   .codes = codes,
                   .scales = t.scales,
                   .scale_rows = t.scale_rows,
                   .scale_cols = t.scale_cols,
                   .scale_bytes = t.scale_bytes,
                   .has_tensor_scale = keep && t.has_tensor_scale,
                   .tensor_scale = t.tensor_scale};
  return 1;
}

void outputs_add(outputs *o, const mx_cases *c, const mx_spec *spec, int keep) {
  enum { MOST = 1 << 18 }; /* the most elements of a suite's tensors: large blocks make large cases */
  const size_t step = c->n > 1 ? c->n * c->rows * c->cols / MOST + 1 : 1;
  for (size_t i = 0; i < c->n; i += step) {
    if (o->n == o->room) o->samples = realloc(o->samples, (o->room = o->room ? 2 * o->room : 64) * sizeof *o->samples);
    if (!quantize_one(&o->samples[o->n], c->x + i * c->rows * c->ld, c, spec, keep)) continue;
    o->elements += c->rows * c->cols;
    o->n++;
  }
}

void outputs_of_suites(outputs *o, const mx_spec *spec, uint64_t seed) {
  static const struct {
    int suite;
    size_t rows, cols;
  } suites[] = {{MX_SUITE_RANDOM, 64, 256}, {MX_SUITE_TIES, 32, 256}, {MX_SUITE_BOUNDARY, 96, 256}, {MX_SUITE_SPECIAL, 0, 0}};
  for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
    mx_cases c;
    if (mx_generate(&c, suites[i].suite, spec, suites[i].rows, suites[i].cols, seed + i, NULL)) continue;
    outputs_add(o, &c, spec, 1);
    mx_cases_free(&c);
  }
}

void outputs_free(outputs *o) {
  for (size_t i = 0; i < o->n; i++) {
    free((void *)(uintptr_t)o->samples[i].x);
    free((void *)(uintptr_t)o->samples[i].codes);
    free((void *)(uintptr_t)o->samples[i].scales);
  }
  free(o->samples);
  *o = (outputs){0};
}

static uint32_t pick(uint64_t stream, uint64_t *at, uint32_t n) { return (uint32_t)((uint64_t)mx_random(stream, 77, (*at)++) * n >> 32); }

/* Draws a value of a choice key, of those that a spec in text can say in full. */
static void set_random(mx_spec *s, size_t index, uint64_t stream, uint64_t *at) {
  const char *key = mx_key_name(index), *name = NULL, *doc;
  int number = 0;
  size_t rows = 0;
  while (mx_key_choice(index, rows, &doc, &number)) rows++;
  char text[64];
  if (!strcmp(key, "elem")) rows = MX_ELEM_NONE + 1; /* rows that were added later would change every mixture */
  if (rows) {
    name = mx_key_choice(index, pick(stream, at, (uint32_t)rows), &doc, &number);
    if (!strcmp(name, "error") || !strcmp(name, "given") || !strcmp(name, "fixed") || !strcmp(name, "sr") || !strcmp(name, "hif4") ||
        !strcmp(name, "none"))
      return;
    const uint32_t byte = !strncmp(key, "elem.", 5) ? pick(stream, at, 8) : pick(stream, at, 128);
    if (!strcmp(key, "scale.max"))
      snprintf(text, sizeof text, "%g", number ? (double)(3 + pick(stream, at, 20) / 4.0) : 0.0);
    else
      snprintf(text, sizeof text, number ? "%s=%u" : "%s", name, byte);
    if (!strcmp(key, "scale.max") && !number) snprintf(text, sizeof text, "%s", name);
  } else if (!strcmp(key, "scale.even_bits"))
    snprintf(text, sizeof text, "%u", 1 + pick(stream, at, 4));
  else if (!strcmp(key, "elem.prescale"))
    snprintf(text, sizeof text, "0.75");
  else if (!strcmp(key, "scale.min_byte"))
    snprintf(text, sizeof text, "%u", 1 + pick(stream, at, 12));
  else if (!strcmp(key, "scale.max_byte"))
    snprintf(text, sizeof text, "%u", (unsigned)mx_scale_format(s->scale)->max_code - 1 - pick(stream, at, 12));
  else if (!strcmp(key, "scale.min"))
    snprintf(text, sizeof text, "%g", ldexp(1, -(int)pick(stream, at, 12)));
  else if (!strcmp(key, "tensor.target"))
    snprintf(text, sizeof text, "1536");
  else
    return;
  mx_spec t = *s;
  if (!mx_spec_set(&t, key, text, NULL) && !mx_spec_check(&t, NULL)) *s = t;
}

static void draw_mixture(mx_spec *s, uint64_t stream) {
  static const char *const always[] = {"elem",       "scale",       "scale.rule",  "tensor.norm", "chain",
                                       "scale.form", "scale.round", "scale.arith", "elem.round",  "elem.arith"};
  static const char *const never[] = {"block",   "nibble",    "deq.arith", "had.size",     "had.sign",       "sr.bits",
                                      "sr.mode", "sr.source", "seed",      "tensor.given", "scale.negative", "scale.sign"};
  static const int widths[] = {16, 32, 0, 64, 8, 128};
  uint64_t at = 0;
  *s = (mx_spec){0};
  s->block_cols = widths[pick(stream, &at, 6)];
  for (size_t k = 0; k < sizeof always / sizeof always[0]; k++)
    for (size_t i = 0; mx_key_name(i); i++)
      if (!strcmp(mx_key_name(i), always[k])) set_random(s, i, stream, &at);
  for (size_t i = 0; mx_key_name(i); i++) {
    int skip = 0;
    for (size_t k = 0; k < sizeof never / sizeof never[0]; k++) skip |= !strcmp(mx_key_name(i), never[k]);
    for (size_t k = 0; k < sizeof always / sizeof always[0]; k++) skip |= !strcmp(mx_key_name(i), always[k]);
    if (!skip && pick(stream, &at, 3) == 0) set_random(s, i, stream, &at);
  }
}

/* Are most numbers kept to within a third? A mixture that saturates or loses nearly all of them is no quantiser. */
static int is_quantiser(const mx_spec *s) {
  enum { ROWS = 8, COLS = 256 };
  static float x[ROWS * COLS], y[ROWS * COLS];
  mx_cases c;
  mx_tensor t;
  if (mx_generate(&c, MX_SUITE_RANDOM, s, ROWS, COLS, 5, NULL)) return 0;
  memcpy(x, c.x, sizeof x);
  mx_cases_free(&c);
  if (mx_tensor_alloc(&t, ROWS, COLS, s)) return 0;
  int good = 0;
  if (!mx_quantize(&t, x, ROWS, COLS, COLS, s, NULL, NULL) && !mx_dequantize(y, COLS, &t, s, NULL)) {
    for (size_t i = 0; i < ROWS * COLS; i++) good += fabsf(y[i] - x[i]) <= 0.34f * fabsf(x[i]);
  }
  mx_tensor_free(&t);
  return good > ROWS * COLS / 2;
}

void random_mixture(mx_spec *s, uint64_t stream) {
  for (uint64_t k = 0; k < 1000; k++) {
    draw_mixture(s, stream * 1000 + k);
    if (is_quantiser(s)) return;
  }
}

static int set_if_allowed(mx_spec *s, const char *key, const char *value) {
  mx_spec t = *s;
  if (mx_spec_set(&t, key, value, NULL) || mx_spec_check(&t, NULL)) return 0;
  *s = t;
  return 1;
}

/* Sets a key to one of a list, if the other keys allow it. */
static void set_one_of(mx_spec *s, const char *key, const char *const *list, size_t n, uint64_t stream, uint64_t *at) {
  set_if_allowed(s, key, list[pick(stream, at, (uint32_t)n)]);
}
#define ONE_OF(key, ...)                                                                                                                       \
  set_one_of(s, key, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), stream, &at)

/* Draws the numbers and shapes that draw_mixture() leaves alone. */
static void draw_numbers(mx_spec *s, uint64_t stream) {
  uint64_t at = 1000;
  if (pick(stream, &at, 40) == 0) {
    const uint32_t nan = s->elem_nan, inf = s->elem_inf, zero = s->elem_zero_sign, flush = s->flush;
    mx_spec t = {.elem = MX_ELEM_E1M2, .scale = MX_SCALE_E6M2, .block_cols = 64, .scale_rule = MX_SCALE_RULE_HIF4, .flush = (int)flush};
    t.elem_nan = (int)nan;
    t.elem_inf = (int)inf;
    t.elem_zero_sign = (int)zero;
    if (!mx_spec_check(&t, NULL)) *s = t;
    return;
  }
  if (pick(stream, &at, 10) == 0) { /* foursix needs certain values of the other keys */
    mx_spec t = {.elem = MX_ELEM_E2M1,
                 .scale = s->scale,
                 .scale_rule = MX_SCALE_RULE_VALUE,
                 .scale_round = s->scale_round,
                 .tensor_norm = s->tensor_norm,
                 .chain = s->chain,
                 .elem_round = s->elem_round,
                 .select = MX_SELECT_FOURSIX};
    t.block_cols = 16;
    t.select_error = (int)pick(stream, &at, 3);
    t.select_sum = (int)pick(stream, &at, 2);
    if (!mx_spec_check(&t, NULL)) *s = t;
  }
  if (pick(stream, &at, 3) == 0)
    ONE_OF("block", "16x16", "32x32", "2x32", "8x64", "4x16", "64x64", "32x1", "16x1", "128x1", "row", "col", "tensor", "1x48", "1x24",
           "1x256");
  if (pick(stream, &at, 4) == 0) ONE_OF("tensor.target", "448", "2688", "1024", "57344", "384", "1536", "100");
  if (pick(stream, &at, 4) == 0) ONE_OF("tensor.store", "scale", "divisor", "amax");
  if (pick(stream, &at, 8) == 0) ONE_OF("tensor.given", "1", "0.5", "2", "0.03125", "512", "0.1", "77.5");
  if (pick(stream, &at, 8) == 0) ONE_OF("elem.prescale", "0.75", "0.5", "0.875", "1.25", "0.9", "0.96");
  if (pick(stream, &at, 8) == 0) ONE_OF("scale.even_bits", "1", "2", "3", "4", "5", "6", "7");
  if (pick(stream, &at, 8) == 0) ONE_OF("scale.sign", "masked", "signed");
  if (pick(stream, &at, 8) == 0) ONE_OF("scale.negative", "abs", "nan");
  if (pick(stream, &at, 8) == 0) ONE_OF("deq.arith", "exact", "two_step");
}

/* Draws stochastic rounding and a rotation, with seeds such as people choose. */
static void draw_chance(mx_spec *s, uint64_t stream) {
  uint64_t at = 2000;
  char seed[24];
  if (pick(stream, &at, 6) == 0) {
    set_if_allowed(s, "elem.round", "sr");
    if (pick(stream, &at, 2)) ONE_OF("sr.mode", "fast", "fastest", "src", "odd");
    if (pick(stream, &at, 2)) ONE_OF("sr.bits", "4", "7", "8", "10", "12", "13", "16", "20", "23", "24");
    if (pick(stream, &at, 6) == 0) ONE_OF("sr.source", "amd_lfsr");
  }
  if (pick(stream, &at, 24) == 0) set_if_allowed(s, "scale.round", "sr");
  if (pick(stream, &at, 8) == 0) {
    ONE_OF("had.size", "16", "32", "64", "128");
    if (s->had_size) ONE_OF("had.sign", "none", "te", "fresh", "fixed");
    for (size_t k = 0; k < s->had_size / 8 && s->had_sign == MX_HAD_SIGN_FIXED; k++) s->had_signs[k] = (uint8_t)pick(stream, &at, 256);
  }
  snprintf(seed, sizeof seed, "%u", pick(stream, &at, 1) + (pick(stream, &at, 3) ? pick(stream, &at, 10000) : pick(stream, &at, 1u << 20)));
  const int fresh = s->had_size && s->had_sign == MX_HAD_SIGN_FRESH;
  if (s->elem_round == MX_ROUND_SR || s->scale_round == MX_SCALE_ROUND_SR || fresh) set_if_allowed(s, "seed", seed);
}

void wide_mixture(mx_spec *s, uint64_t stream) {
  for (uint64_t k = 0; k < 1000; k++) {
    draw_mixture(s, stream * 1000 + k);
    draw_numbers(s, stream * 1000 + k);
    if (!is_quantiser(s)) continue;
    draw_chance(s, stream * 1000 + k); /* only after the check above, which does not undo a rotation */
    return;
  }
}
