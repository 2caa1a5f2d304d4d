/* Counts how many codes and scales differ between two files of cases. */
#include <string.h>

#include "mxgold/verify.h"

static int is_nan(const mx_format *f, uint64_t code) {
  const uint64_t sign = f->sign_bits ? UINT64_C(1) << (f->bits - 1) : 0;
  return mx_format_is_nan(f, code & ~sign);
}

/* Every scale of this case NaN in both? Then its codes mean nothing. With several blocks a case, block by block. */
static int under_nan(const mx_vectors *e, const mx_spec *spec, size_t k, size_t index) {
  const int at = mx_vectors_find(e, "scales"), codes = mx_vectors_find(e, "codes");
  if (at < 0 || codes < 0) return 0; /* a file of someone's own columns */
  const size_t n = e->columns[at].count, per = e->columns[codes].count;
  size_t br, bc;
  mx_spec_block(spec, 1, per, &br, &bc);
  const size_t block = bc && n * bc >= per && br == 1 ? index / bc : 0;
  return (br == 1 || n == 1) && block < n && is_nan(mx_scale_format(spec->scale), mx_vectors_get(e, (size_t)at, k, block));
}

static int is_nan_float(uint64_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static void compare_column(mx_vectors_count *t, const mx_vectors *e, const mx_vectors *a, const mx_spec *spec, size_t column, int nan_bits) {
  const mx_column *c = &e->columns[column];
  const int codes = !strcmp(c->name, "codes"), scales = !strcmp(c->name, "scales"),
            is_float = c->bits == 32 && (!strcmp(c->name, "x") || !strcmp(c->name, "dequantized"));
  for (size_t k = 0; k < e->n_cases; k++)
    for (size_t i = 0; i < c->count; i++) {
      const uint64_t want = mx_vectors_get(e, column, k, i), got = mx_vectors_get(a, column, k, i);
      t->compared++;
      if (want == got) continue;
      if (!nan_bits && scales && is_nan(mx_scale_format(spec->scale), want) && is_nan(mx_scale_format(spec->scale), got)) continue;
      if (!nan_bits && is_float && is_nan_float(want) && is_nan_float(got)) continue;
      if (!nan_bits && codes &&
          ((is_nan(mx_elem_format(spec->elem), want) && is_nan(mx_elem_format(spec->elem), got)) || under_nan(e, spec, k, i)))
        continue;
      if (!t->differ++) t->first_case = k, t->first_index = i, t->want = want, t->got = got;
    }
}

static int same_form(const mx_vectors *e, const mx_vectors *a) {
  if (e->n_cases != a->n_cases || e->n_columns != a->n_columns) return 0;
  for (size_t i = 0; i < e->n_columns; i++)
    if (strcmp(e->columns[i].name, a->columns[i].name) || e->columns[i].bits != a->columns[i].bits ||
        e->columns[i].count != a->columns[i].count)
      return 0;
  return 1;
}

mx_status mx_vectors_compare(mx_vectors_count out[MX_VECTOR_COLUMNS], const mx_vectors *expected, const mx_vectors *actual, int nan_bits,
                             mx_error *err) {
  mx_spec spec;
  if (!out || !expected || !actual) return mx_fail(err, MX_ERR_ARG, "mx_vectors_compare: NULL argument");
  memset(out, 0, MX_VECTOR_COLUMNS * sizeof *out);
  const mx_status status = mx_vectors_spec(&spec, expected, err);
  if (status) return status;
  if (expected->n_filled < expected->n_columns || actual->n_filled < actual->n_columns || !same_form(expected, actual))
    return mx_fail(err, MX_ERR_SHAPE, "expected the same columns and as many cases");
  for (size_t i = 0; i < expected->n_columns; i++) compare_column(&out[i], expected, actual, &spec, i, nan_bits);
  return MX_OK;
}
