/* Writes cases as .mxv, and reads them back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"
#include "mxgold/version.h"
#include "verify/vectors/internal.h"

/* How cases lie in vectors: `rows` of one tensor, or tensors. */
typedef struct plan {
  mx_spec spec;
  int by_row, values;    /* values: with the column dequantized */
  size_t rows, cols, ld; /* of one tensor */
  size_t scales, micro;  /* numbers a tensor */
  size_t cases, tensors;
  mx_tensor layout;
} plan;

static mx_status plan_init(plan *p, const mx_spec *spec, int by_row, size_t tensors, size_t rows, size_t cols, size_t ld, mx_error *err) {
  *p = (plan){.spec = *spec, .by_row = by_row, .rows = rows, .cols = cols, .ld = ld, .tensors = tensors, .cases = by_row ? rows : tensors};
  const mx_status s = mx_tensor_layout(&p->layout, rows, cols, spec);
  if (s) return mx_fail(err, s, "a matrix of %zu x %zu: %s", rows, cols, mx_status_text(s));
  p->scales = p->layout.scale_rows * p->layout.scale_cols;
  p->micro = spec->scale_rule == MX_SCALE_RULE_HIF4 ? 3 * p->scales : 0;
  return MX_OK;
}

static mx_status add_columns(mx_vectors *v, const plan *p) {
  const size_t n = p->by_row && p->rows ? p->rows : 1;
  const size_t x = (p->by_row ? 1 : p->rows) * p->ld, codes = (p->by_row ? 1 : p->rows) * p->cols;
  mx_status s = mx_vectors_add_column(v, "x", 32, x);
  if (!s) s = mx_vectors_add_column(v, "codes", mx_elem_format(p->spec.elem)->bits, codes);
  if (!s) s = mx_vectors_add_column(v, "scales", mx_scale_format(p->spec.scale)->bits, p->scales / n);
  if (!s && p->micro) s = mx_vectors_add_column(v, "micro", 8, p->micro / n);
  if (!s && !p->by_row && p->layout.has_tensor_scale) s = mx_vectors_add_column(v, "tensor_scale", 32, 1);
  if (!s && p->values) s = mx_vectors_add_column(v, "dequantized", 32, codes);
  return s;
}

/* What the codes of a tensor mean, as binary32, from case `first` on. */
static mx_status fill_values(mx_vectors *v, const plan *p, const mx_tensor *t, size_t first, mx_error *err) {
  const int column = mx_vectors_find(v, "dequantized");
  if (column < 0) return MX_OK;
  float *values = malloc((p->rows * p->cols + 1) * sizeof *values);
  if (!values) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  const mx_status s = mx_dequantize(values, p->cols, t, &p->spec, NULL);
  for (size_t k = 0; k < p->rows * p->cols && !s; k++) {
    uint32_t bits;
    memcpy(&bits, &values[k], sizeof bits);
    const size_t per = v->columns[column].count;
    mx_vectors_set(v, (size_t)column, first + k / per, k % per, bits);
  }
  free(values);
  return s ? mx_fail(err, s, "%s", mx_status_text(s)) : MX_OK;
}

/* Quantise the i-th tensor and write its numbers into the columns. */
static mx_status fill_tensor(mx_vectors *v, const plan *p, const float *x, size_t i, mx_error *err) {
  mx_tensor t;
  mx_status s = mx_tensor_alloc(&t, p->rows, p->cols, &p->spec);
  if (s) return mx_fail(err, s, "%s", mx_status_text(s));
  s = mx_quantize(&t, x, p->rows, p->cols, p->ld, &p->spec, NULL, err);
  const size_t first = p->by_row ? 0 : i, cases = p->by_row ? p->rows : 1;
  const int micro = mx_vectors_find(v, "micro"), scale = mx_vectors_find(v, "tensor_scale");
  uint32_t *codes = s ? NULL : malloc((p->rows * p->cols + 1) * sizeof *codes);
  if (!s && !codes) s = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!s) mx_unpack_codes(codes, &t, &p->spec);
  for (size_t k = 0; k < cases && !s; k++) {
    const size_t n = v->columns[1].count, m = v->columns[2].count;
    for (size_t j = 0; j < n; j++) mx_vectors_set(v, 1, first + k, j, codes[k * n + j]);
    for (size_t j = 0; j < m; j++) mx_vectors_set(v, 2, first + k, j, mx_scale_code_at(&t, k * m + j));
    for (size_t j = 0; micro >= 0 && j < 3 * m; j++) mx_vectors_set(v, (size_t)micro, first + k, j, t.micro[k * 3 * m + j]);
  }
  uint32_t bits;
  memcpy(&bits, &t.tensor_scale, sizeof bits);
  if (!s && scale >= 0) mx_vectors_set(v, (size_t)scale, first, 0, bits);
  if (!s) s = fill_values(v, p, &t, first, err);
  if (!s && p->by_row && t.has_tensor_scale) {
    char text[16];
    snprintf(text, sizeof text, "%08" PRIx32, bits);
    s = mx_vectors_set_meta(v, "tensor_scale", text);
  }
  free(codes);
  mx_tensor_free(&t);
  return s;
}

static mx_status fill_all(mx_vectors *v, const plan *p, const float *x, mx_error *err) {
  mx_status s = MX_OK;
  for (size_t i = 0; i < p->tensors && !s; i++) s = fill_tensor(v, p, x + i * p->rows * p->ld, i, err);
  return s;
}

static mx_status set_size(mx_vectors *v, const char *key, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, value);
  return mx_vectors_set_meta(v, key, text);
}

/* Each key of the spec a header line. */
static mx_status set_spec(mx_vectors *v, const mx_spec *spec) {
  char text[4096];
  mx_spec_print(text, sizeof text, spec, 1);
  mx_status s = MX_OK;
  for (char *save = NULL, *item = strtok_r(text, " ", &save); item && !s; item = strtok_r(NULL, " ", &save)) {
    char *equals = strchr(item, '=');
    *equals = 0;
    s = mx_vectors_set_meta(v, item, equals + 1);
  }
  return s;
}

mx_status mx_cases_to_vectors(mx_vectors *out, const mx_cases *cases, const mx_spec *spec, const char *suite, const char *preset, uint64_t seed,
                              int what, mx_error *err) {
  const int inputs_only = what & MX_VECTORS_INPUTS;
  *out = (mx_vectors){0};
  plan p;
  mx_tensor layout;
  mx_status s = mx_tensor_layout(&layout, cases->rows, cases->cols, spec);
  if (s) return mx_fail(err, s, "%s", mx_status_text(s));
  const int by_row = cases->n == 1 && layout.scale_rows == cases->rows;
  s = plan_init(&p, spec, by_row, cases->n, cases->rows, cases->cols, cases->ld, err);
  p.values = (what & MX_VECTORS_VALUES) != 0;
  if (!s) s = set_spec(out, spec);
  if (!s) s = mx_vectors_set_meta(out, "case", by_row ? "row" : "tensor");
  if (!s) s = mx_vectors_set_meta(out, "generator", "mxgold " MX_VERSION);
  if (!s && suite) s = mx_vectors_set_meta(out, "suite", suite);
  if (!s && preset) s = mx_vectors_set_meta(out, "preset", preset);
  if (!s) s = set_size(out, "gen.seed", seed);
  if (!s) s = set_size(out, "rows", cases->rows);
  if (!s) s = set_size(out, "cols", cases->cols);
  if (!s) s = add_columns(out, &p);
  if (!s && inputs_only) out->n_filled = 1;
  if (!s) s = mx_vectors_alloc(out, p.cases);
  if (s) {
    mx_vectors_free(out);
    return mx_fail(err, s, "vectors of %zu tensors of %zu x %zu: %s", cases->n, cases->rows, cases->cols, mx_status_text(s));
  }
  memcpy(out->columns[0].data, cases->x, p.cases * out->columns[0].count * sizeof(float));
  if (!inputs_only) s = fill_all(out, &p, cases->x, err);
  if (s) mx_vectors_free(out);
  return s;
}

/* Header lines that are not keys of a spec. */
static int is_other(const char *key) {
  static const char *const other[] = {"case", "generator", "suite", "preset", "gen.seed", "rows", "cols", "tensor_scale"};
  for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
    if (!strcmp(key, other[i])) return 1;
  return 0;
}

/* Keys that a header must state: their defaults depend on the format, so that a header without them could silently mean another one. */
static const char *missing_key(const mx_vectors *v) {
  static const char *const needed[] = {"elem", "scale", "block", "scale.rule", "elem.round"};
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (!mx_vectors_meta(v, needed[i])) return needed[i];
  return NULL;
}

/* The value of a key in what mx_spec_print() wrote. Ends the item with a NUL. */
static char *value_in(char *text, const char *key) {
  const size_t n = strlen(key);
  for (char *at = text; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
    if (!strncmp(at, key, n) && at[n] == '=') {
      at[strcspn(at, " ")] = 0;
      return at + n + 1;
    }
  return NULL;
}

/* Is the spec that of the preset that the header names? Seed, order of nibbles and a given tensor scale are no part of a preset. */
static mx_status check_preset(const mx_spec *spec, const char *preset, mx_error *err) {
  mx_spec named;
  mx_error inner;
  if (mx_preset_find(&named, preset, &inner)) return mx_fail(err, MX_ERR_FORMAT, "header: %s", inner.text);
  named.seed = spec->seed;
  named.nibble = spec->nibble;
  named.tensor_given = spec->tensor_given;
  named.tensor_given_value = spec->tensor_given_value;
  if (mx_spec_equal(&named, spec)) return MX_OK;
  for (size_t i = 0; mx_key_name(i); i++) {
    char mine[4096], theirs[4096];
    mx_spec_print(mine, sizeof mine, spec, 1);
    mx_spec_print(theirs, sizeof theirs, &named, 1);
    const char *have = value_in(mine, mx_key_name(i)), *want = value_in(theirs, mx_key_name(i));
    if (have && want && strcmp(have, want))
      return mx_fail(err, MX_ERR_FORMAT, "header: preset=%s, but %s=%s where that preset has %s; expected its keys, or no preset", preset,
                     mx_key_name(i), have, want);
  }
  return mx_fail(err, MX_ERR_FORMAT, "header: preset=%s, but other keys than that preset has", preset);
}

mx_status mx_vectors_spec(mx_spec *out, const mx_vectors *v, mx_error *err) {
  *out = (mx_spec){0};
  const char *missing = missing_key(v), *preset = mx_vectors_meta(v, "preset");
  if (missing) return mx_fail(err, MX_ERR_FORMAT, "header: no %s=..., expected the keys of the spec, as mxgold gen writes them", missing);
  for (size_t i = 0; i < v->n_meta; i++) {
    mx_error inner;
    if (is_other(v->keys[i])) continue;
    if (mx_spec_set(out, v->keys[i], v->values[i], &inner)) return mx_fail(err, MX_ERR_FORMAT, "header: %s", inner.text);
  }
  mx_error inner;
  if (mx_spec_check(out, &inner)) return mx_fail(err, MX_ERR_FORMAT, "header: %s", inner.text);
  return preset ? check_preset(out, preset, err) : MX_OK;
}

int mxi_vectors_number(uint64_t *out, const mx_vectors *v, const char *key) {
  const char *text = mx_vectors_meta(v, key);
  char *end;
  if (!text || *text < '0' || *text > '9') return 0;
  *out = strtoull(text, &end, 10);
  return !*end;
}

/* Are v's columns those that this plan would have? */
static int fits(const mx_vectors *v, const mx_vectors *want) {
  if (v->n_columns != want->n_columns) return 0;
  for (size_t i = 0; i < v->n_columns; i++)
    if (strcmp(v->columns[i].name, want->columns[i].name) || v->columns[i].bits != want->columns[i].bits ||
        v->columns[i].count != want->columns[i].count)
      return 0;
  return 1;
}

mx_status mx_vectors_expected(mx_vectors *out, const mx_vectors *v, mx_error *err) {
  *out = (mx_vectors){0};
  mx_spec spec;
  uint64_t rows, cols;
  plan p;
  mx_status s = mx_vectors_spec(&spec, v, err);
  if (s) return s;
  const char *form = mx_vectors_meta(v, "case");
  if (!form || !mxi_vectors_number(&rows, v, "rows") || !mxi_vectors_number(&cols, v, "cols") || v->n_filled < 1 ||
      strcmp(v->columns[0].name, "x"))
    return mx_fail(err, MX_ERR_FORMAT, "header: expected case, rows, cols and a first column x, as mxgold gen writes");
  const int by_row = !strcmp(form, "row");
  const size_t per = v->columns[0].count, ld = by_row ? per : rows ? per / rows : 0;
  if (!cols || ld < cols || (by_row && rows != v->n_cases) || (!by_row && (rows > per || per % rows)))
    return mx_fail(err, MX_ERR_FORMAT, "header: rows and cols do not fit column x and the number of cases");
  s = plan_init(&p, &spec, by_row, by_row ? 1 : v->n_cases, rows, cols, ld, err);
  if (s) return s;
  p.values = mx_vectors_find(v, "dequantized") >= 0;
  for (size_t i = 0; i < v->n_meta && !s; i++) s = mx_vectors_set_meta(out, v->keys[i], v->values[i]);
  if (!s) s = add_columns(out, &p);
  if (!s && fits(v, out)) s = mx_vectors_alloc(out, p.cases);
  if (s)
    s = mx_fail(err, s, "header: %zu cases of %zu x %zu: %s", v->n_cases, rows, cols, mx_status_text(s));
  else if (!fits(v, out))
    s = mx_fail(err, MX_ERR_FORMAT, "header: the columns are not those of the spec");
  else {
    memcpy(out->columns[0].data, v->columns[0].data, v->n_cases * per * sizeof(float));
    s = fill_all(out, &p, (const float *)(const void *)out->columns[0].data, err);
  }
  if (s) mx_vectors_free(out);
  return s;
}
