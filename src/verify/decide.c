/* Which vectors decide a key that the data leave open? Those on which another value of the key gives other bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"
#include "verify/keys.h"

enum { SUITES = 4, MOST_VALUES = 24 };
static const int suites[SUITES] = {MX_SUITE_SPECIAL, MX_SUITE_TIES, MX_SUITE_BOUNDARY, MX_SUITE_RANDOM};

/* Everything that a spec gives on a suite, one after the other. */
typedef struct bytes {
  uint8_t *at;
  size_t n;
} bytes;

static void put(bytes *b, const void *data, size_t n) {
  memcpy(b->at + b->n, data, n);
  b->n += n;
}

static int run(bytes *out, const mx_cases *c, const mx_spec *spec) {
  mx_tensor t;
  *out = (bytes){0};
  if (mx_tensor_alloc(&t, c->rows, c->cols, spec)) return 0;
  const size_t codes = t.rows * t.code_stride, scales = t.scale_rows * t.scale_cols * t.scale_bytes;
  out->at = malloc(c->n * (codes + scales + sizeof(float)) + 1);
  for (size_t i = 0; out->at && i < c->n; i++) {
    /* A value that is refused is an answer as well. */
    if (mx_quantize(&t, c->x + i * c->rows * c->ld, c->rows, c->cols, c->ld, spec, &(mx_exec){.n_threads = 1}, NULL)) continue;
    put(out, t.codes, codes);
    put(out, t.scales, scales);
    put(out, &t.tensor_scale, sizeof t.tensor_scale);
  }
  mx_tensor_free(&t);
  return out->at != NULL;
}

static int differ(const bytes *base, const mx_cases *c, const mx_spec *other) {
  bytes b;
  const int differs = run(&b, c, other) && (b.n != base->n || memcmp(b.at, base->at, b.n) != 0);
  free(b.at);
  return differs;
}

/* The specs with another value of a key; numbers by a few that are likely. */
static size_t others(mx_spec out[MOST_VALUES], const mx_spec *spec, size_t key) {
  static const char *const numbers[] = {"0", "1", "2", "3", "8", "16", "64", "100", "0.75", "6", "7", "1536", "0.0078125"};
  char text[64];
  const char *doc, *name;
  int number;
  size_t n = 0, rows = 0;
  for (; (name = mx_key_choice(key, rows, &doc, &number)) && n < MOST_VALUES; rows++) {
    snprintf(text, sizeof text, number ? *name ? "%s=5" : "%s5" : "%s", name);
    out[n] = *spec;
    if (strcmp(name, "given") && !mx_spec_set(&out[n], mx_key_name(key), text, NULL)) n += !key_same(&out[n], spec, key);
  }
  for (size_t i = 0; !rows && i < sizeof numbers / sizeof numbers[0] && n < MOST_VALUES; i++) {
    out[n] = *spec;
    if (!mx_spec_set(&out[n], mx_key_name(key), numbers[i], NULL)) n += !key_same(&out[n], spec, key);
  }
  return n;
}

mx_status mx_deciding_suites(int suite_of[64], const mx_spec *spec, uint64_t keys) {
  mx_spec *other = malloc(MOST_VALUES * sizeof *other);
  uint8_t decides[64] = {0}; /* most values that one suite tells apart */
  if (!other) return MX_ERR_NOMEM;
  for (size_t k = 0; k < 64; k++) suite_of[k] = -1;
  for (size_t s = 0; s < SUITES; s++) {
    mx_cases c;
    bytes base;
    const int fixed = suites[s] == MX_SUITE_SPECIAL;
    if (mx_generate(&c, suites[s], spec, fixed ? 0 : 32, fixed ? 0 : 256, 1, NULL)) continue;
    const int ran = run(&base, &c, spec);
    for (size_t k = 0; ran && k < 64 && mx_key_name(k); k++) {
      uint8_t told = 0;
      const size_t n = keys >> k & 1 ? others(other, spec, k) : 0;
      for (size_t i = 0; i < n; i++)
        if (!mx_spec_check(&other[i], NULL) && other[i].had_size == spec->had_size) told = (uint8_t)(told + differ(&base, &c, &other[i]));
      if (told > decides[k]) decides[k] = told, suite_of[k] = suites[s];
    }
    free(base.at);
    mx_cases_free(&c);
  }
  free(other);
  return MX_OK;
}
