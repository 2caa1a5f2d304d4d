/* Makes products that are wrong on purpose, and checks what mx_judge() says of them. */
#include "judging.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fill(mx_tensor *t, const mx_spec *s, size_t rows, size_t cols, uint64_t seed) {
  float *x = malloc(rows * cols * sizeof *x);
  for (size_t i = 0; i < rows * cols; i++) {
    const uint32_t bits = mx_random(seed, MX_STREAM_DATA, i), spread = mx_random(seed + 9, MX_STREAM_DATA, i / 32);
    x[i] = ldexpf((float)(int32_t)bits * 0x1p-31f, (int)(spread % 24));
  }
  ck_assert_int_eq(mx_tensor_alloc(t, rows, cols, s), MX_OK);
  ck_assert_int_eq(mx_quantize(t, x, rows, cols, cols, s, NULL, NULL), MX_OK);
  free(x);
}

void begin(fixture *f, const char *keys, size_t m, size_t n, size_t k) {
  f->spec = (mx_spec){0};
  f->m = m, f->n = n, f->k = k;
  if (*keys == '@')
    ck_assert_int_eq(mx_preset_find(&f->spec, keys + 1, NULL), MX_OK);
  else
    ck_assert_int_eq(mx_spec_parse(&f->spec, keys, NULL), MX_OK);
  fill(&f->a, &f->spec, m, k, 1);
  fill(&f->b, &f->spec, n, k, 2);
}

void end(fixture *f) {
  mx_tensor_free(&f->a);
  mx_tensor_free(&f->b);
}

mx_tensor copy(const mx_tensor *t, const mx_spec *s) {
  mx_tensor c;
  mx_tensor_alloc(&c, t->rows, t->cols, s);
  memcpy(c.codes, t->codes, t->rows * t->code_stride);
  memcpy(c.scales, t->scales, t->scale_rows * t->scale_cols * t->scale_bytes);
  c.tensor_scale = t->tensor_scale;
  return c;
}

float *product(const fixture *f, const mx_tensor *a, const mx_tensor *b, const mx_gemm_options *o) {
  float *d = malloc(f->m * f->n * sizeof *d);
  mx_error err;
  if (mx_gemm(d, f->n, a, &f->spec, b, &f->spec, o, &err)) ck_abort_msg("%s", err.text);
  return d;
}

static mx_judgement judged;

const mx_judgement *judge(const fixture *f, const void *d, const mx_gemm_options *o, const mx_judge_options *how) {
  mx_error err;
  if (mx_judge(&judged, d, &f->a, &f->spec, &f->b, &f->spec, o, how, &err)) ck_abort_msg("%s", err.text);
  return &judged;
}

void named(const mx_judgement *j, const char *words, const char *model) {
  ck_assert(!j->equal);
  ck_assert_uint_gt(j->differ, 0);
  if (!j->n_findings) ck_abort_msg("nothing found, expected \"%s\"", words);
  if (!strstr(j->findings[0].what, words)) ck_abort_msg("found \"%s\", expected \"%s\"", j->findings[0].what, words);
  ck_assert_msg(j->findings[0].unexplained == 0, "%s: leaves %llu", words, (unsigned long long)j->findings[0].unexplained);
  ck_assert(*j->findings[0].model);
  if (model) ck_assert_str_eq(j->findings[0].model, model);
}

void where(const mx_judgement *j, const char *words) {
  for (int i = 0; i < j->n_regions; i++)
    if (strstr(j->regions[i], words)) return;
  ck_abort_msg("no region says \"%s\"; the first says \"%s\"", words, j->n_regions ? j->regions[0] : "nothing");
}

void twice(mx_tensor *t) { /* e8m0: 2^(c - 127) squared */
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++) t->scales[i] = (uint8_t)(2 * t->scales[i] - 127);
}
