/* Parses, prints and compares specs as text. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/choices.h"
#include "mxgold/nearest.h"

static int *int_at(mx_spec *s, size_t at) { return (int *)((char *)s + at); }
static float *float_at(mx_spec *s, size_t at) { return (float *)((char *)s + at); }
static uint8_t *bits_at(mx_spec *s, size_t at) { return (uint8_t *)s + at; }
static uint32_t *count_at(mx_spec *s, size_t at) { return (uint32_t *)((char *)s + at); }

static int parse_real(float *out, const char *text) {
  char *end;
  if (!*text || isspace((unsigned char)*text)) return 0;
  errno = 0;
  *out = strtof(text, &end);
  return !*end && !(errno == ERANGE && (isinf(*out) || *out == 0));
}

/* Numbers that binary32 would turn into 0 or infinity are refused: the writer meant something else. */
#define REAL_EXPECTED "0 or 1.4e-45 to 3.4e38"

static int parse_unsigned(uint64_t *out, const char *text, uint64_t max) {
  char *end;
  if (!isdigit((unsigned char)*text)) return 0;
  errno = 0;
  *out = strtoull(text, &end, 0);
  return !*end && !errno && *out <= max;
}

/* Reads "even", "byte=92", or a bare number if the list has a row without a name. */
static int parse_choice(int *row, float *number, const mx_choice_row *rows, const char *text) {
  for (int i = 0; rows[i].name; i++) {
    const size_t n = strlen(rows[i].name);
    if (!rows[i].takes_number) {
      if (strcmp(rows[i].name, text)) continue;
      *number = 0;
    } else {
      const char *digits = text;
      if (n) {
        if (strncmp(rows[i].name, text, n) || text[n] != '=') continue;
        digits = text + n + 1;
      }
      if (!parse_real(number, digits) || !isfinite(*number) || *number < 0) continue;
    }
    *row = i;
    return 1;
  }
  return 0;
}

static int parse_block(int *rows, int *cols, const char *text) {
  static const struct {
    const char *name;
    int rows, cols;
  } named[] = {{"row", 1, MX_BLOCK_WHOLE}, {"col", MX_BLOCK_WHOLE, 1}, {"tensor", MX_BLOCK_WHOLE, MX_BLOCK_WHOLE}};
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
    if (!strcmp(named[i].name, text)) {
      *rows = named[i].rows;
      *cols = named[i].cols;
      return 1;
    }
  char *end;
  if (!isdigit((unsigned char)*text)) return 0;
  const long r = strtol(text, &end, 10);
  if (*end != 'x' || !isdigit((unsigned char)end[1])) return 0;
  const long c = strtol(end + 1, &end, 10);
  if (*end || r < 1 || c < 1 || r > 65536 || c > 65536) return 0;
  *rows = r == 1 ? 0 : (int)r;
  *cols = c == 32 ? 0 : (int)c;
  return 1;
}

enum { MAX_SIGNS = 128 };

/* "0110": bit i of byte i/8. */
static int parse_signs(uint8_t signs[MAX_SIGNS / 8], const char *text) {
  const size_t n = strlen(text);
  if (!n || n > MAX_SIGNS || strspn(text, "01") != n) return 0;
  memset(signs, 0, MAX_SIGNS / 8);
  for (size_t i = 0; i < n; i++)
    if (text[i] == '1') signs[i / 8] |= (uint8_t)(1 << i % 8);
  return 1;
}

/* Signs may have as many digits as the rotation has elements, or as many as the pattern repeats over. */
static size_t print_signs(char *out, size_t size, const uint8_t signs[MAX_SIGNS / 8], size_t n) {
  char digits[MAX_SIGNS + 1];
  if (!n || n > MAX_SIGNS)
    for (n = MAX_SIGNS; n > 1 && !(signs[(n - 1) / 8] >> (n - 1) % 8 & 1); n--) {
    }
  for (size_t i = 0; i < n; i++) digits[i] = (char)('0' + (signs[i / 8] >> i % 8 & 1));
  digits[n] = 0;
  return (size_t)snprintf(out, size, "%s", digits);
}

static mx_status unknown_value(mx_error *err, const mx_key_row *key, const char *value) {
  if (!key->rows) return mx_fail(err, MX_ERR_KEY, "%s=%s: expected %s", key->name, value, key->doc);
  char names[256] = "";
  size_t n = 0;
  for (const mx_choice_row *r = key->rows; r->name && n < sizeof names; r++)
    n += (size_t)snprintf(names + n, sizeof names - n, "%s%s%s", n ? ", " : "", r->name, r->takes_number ? (*r->name ? "=N" : "a number") : "");
  return mx_fail(err, MX_ERR_KEY, "%s=%s: expected one of %s", key->name, value, names);
}

static const char *key_name(const void *set, size_t index) {
  (void)set;
  return mx_key_name(index);
}

mx_status mx_spec_set(mx_spec *spec, const char *name, const char *value, mx_error *err) {
  const mx_key_row *key = NULL;
  for (size_t i = 0; i < mxi_key_rows_count; i++)
    if (!strcmp(mxi_key_rows[i].name, name)) key = &mxi_key_rows[i];
  if (!key) {
    char near[160];
    if (!strcmp(name,
                "recip")) /* the approximate reciprocal is part of a chain, since a key alone could not say where in other chains it belongs */
      return mx_fail(err, MX_ERR_KEY,
                     "unknown key 'recip'; NVIDIA's rcp.approx as of sm_90 is in chain=flashinfer_fast_sm90 (preset flashinfer-fast-sm90)");
    mx_nearest(near, sizeof near, name, key_name, NULL);
    return mx_fail(err, MX_ERR_KEY, "unknown key '%s'; nearest: %s", name, near);
  }
  float number = 0;
  uint64_t count = 0;
  int row = 0, cols = 0;
  switch (key->kind) {
  case MX_KEY_CHOICE:
  case MX_KEY_CHOICE_N:
    if (!parse_choice(&row, &number, key->rows, value)) return unknown_value(err, key, value);
    *int_at(spec, key->at) = row;
    if (key->kind == MX_KEY_CHOICE_N) *float_at(spec, key->at2) = number;
    break;
  case MX_KEY_BLOCK:
    if (!parse_block(&row, &cols, value)) return unknown_value(err, key, value);
    *int_at(spec, key->at) = row;
    *int_at(spec, key->at2) = cols;
    break;
  case MX_KEY_COUNT:
    if (!parse_unsigned(&count, value, key->max))
      return mx_fail(err, MX_ERR_KEY, "%s=%s: expected an integer 0..%" PRIu32, name, value, key->max);
    *count_at(spec, key->at) = (uint32_t)count;
    break;
  case MX_KEY_REAL:
    if (!parse_real(&number, value) || !isfinite(number) || number < 0)
      return mx_fail(err, MX_ERR_KEY, "%s=%s: expected a number, " REAL_EXPECTED, name, value);
    *float_at(spec, key->at) = number;
    break;
  case MX_KEY_SIGNS:
    if (!parse_signs(bits_at(spec, key->at), value))
      return mx_fail(err, MX_ERR_KEY, "%s=%s: expected up to %d digits 0 or 1", name, value, MAX_SIGNS);
    break;
  case MX_KEY_SEED:
    if (!parse_unsigned(&count, value, UINT64_MAX)) return mx_fail(err, MX_ERR_KEY, "%s=%s: expected an integer 0..2^64-1", name, value);
    spec->seed = count;
    break;
  case MX_KEY_GIVEN:
    if (!strcmp(value, "none")) {
      spec->tensor_given = 0;
      spec->tensor_given_value = 0;
      break;
    }
    if (!parse_real(&number, value)) return mx_fail(err, MX_ERR_KEY, "%s=%s: expected none, a number, nan or inf", name, value);
    spec->tensor_given = 1;
    spec->tensor_given_value = number;
    break;
  }
  return MX_OK;
}

/* tensor.norm=nv implies TransformerEngine's chain unless the text names a chain, before it or after it. */
static void imply_chain(mx_spec *spec, int chain_named) {
  if (spec->tensor_norm == MX_TENSOR_NORM_NV && !chain_named && spec->chain == MX_CHAIN_EXACT) spec->chain = MX_CHAIN_TE;
}

mx_status mx_spec_parse(mx_spec *spec, const char *text, mx_error *err) {
  mx_spec work = *spec;
  int chain_named = 0, norm_named = 0;
  while (*text) {
    while (*text == ' ' || *text == ',' || *text == '\n' || *text == '\t') text++;
    if (!*text) break;
    char item[160];
    size_t n = strcspn(text, " ,\n\t");
    if (n >= sizeof item) return mx_fail(err, MX_ERR_KEY, "'%.40s...': expected key=value of less than %zu characters", text, sizeof item);
    memcpy(item, text, n);
    item[n] = 0;
    text += n;
    char *equals = strchr(item, '=');
    if (!equals) return mx_fail(err, MX_ERR_KEY, "'%s': expected key=value", item);
    *equals = 0;
    chain_named |= !strcmp(item, "chain");
    norm_named |= !strcmp(item, "tensor.norm");
    const mx_status status = mx_spec_set(&work, item, equals + 1, err);
    if (status) return status;
  }
  if (norm_named) imply_chain(&work, chain_named);
  *spec = work;
  return MX_OK;
}

static int key_is_default(const mx_spec *s, const mx_key_row *key) {
  const mx_spec zero = {0};
  const char *a = (const char *)s, *z = (const char *)&zero;
  if (key->kind == MX_KEY_SEED) return s->seed == 0;
  if (key->kind == MX_KEY_GIVEN) return !s->tensor_given;
  if (key->kind == MX_KEY_SIGNS) return !memcmp(a + key->at, z + key->at, MAX_SIGNS / 8);
  if (memcmp(a + key->at, z + key->at, 4)) return 0;
  return !key->at2 || !memcmp(a + key->at2, z + key->at2, 4);
}

static size_t print_value(char *out, size_t size, const mx_spec *spec, const mx_key_row *key) {
  mx_spec *s = (mx_spec *)(uintptr_t)spec; /* it is only read; the accessors are shared with parsing, which writes */
  switch (key->kind) {
  case MX_KEY_CHOICE:
    return (size_t)snprintf(out, size, "%s", key->rows[*int_at(s, key->at)].name);
  case MX_KEY_CHOICE_N: {
    const mx_choice_row *row = &key->rows[*int_at(s, key->at)];
    if (!row->takes_number) return (size_t)snprintf(out, size, "%s", row->name);
    return (size_t)snprintf(out, size, "%s%s%.9g", row->name, *row->name ? "=" : "", (double)*float_at(s, key->at2));
  }
  case MX_KEY_BLOCK: {
    const int r = s->block_rows ? s->block_rows : 1, c = s->block_cols ? s->block_cols : 32;
    if (r == MX_BLOCK_WHOLE && c == MX_BLOCK_WHOLE) return (size_t)snprintf(out, size, "tensor");
    if (c == MX_BLOCK_WHOLE) return (size_t)snprintf(out, size, "row");
    if (r == MX_BLOCK_WHOLE) return (size_t)snprintf(out, size, "col");
    return (size_t)snprintf(out, size, "%dx%d", r, c);
  }
  case MX_KEY_COUNT:
    return (size_t)snprintf(out, size, "%" PRIu32, *count_at(s, key->at));
  case MX_KEY_REAL:
    return (size_t)snprintf(out, size, "%.9g", (double)*float_at(s, key->at));
  case MX_KEY_SIGNS:
    return print_signs(out, size, bits_at(s, key->at), s->had_size);
  case MX_KEY_SEED:
    return (size_t)snprintf(out, size, "%" PRIu64, s->seed);
  case MX_KEY_GIVEN:
    return s->tensor_given ? (size_t)snprintf(out, size, "%.9g", (double)s->tensor_given_value) : (size_t)snprintf(out, size, "none");
  }
  return 0;
}

size_t mx_spec_print(char *out, size_t size, const mx_spec *spec, int all) {
  size_t n = 0;
  if (size) *out = 0;
  for (size_t i = 0; i < mxi_key_rows_count; i++) {
    const mx_key_row *key = &mxi_key_rows[i];
    const int implied =
        !strcmp(key->name, "chain") && spec->tensor_norm == MX_TENSOR_NORM_NV; /* print it, since nv alone would be read as te */
    if (!all && key_is_default(spec, key) && !implied) continue;
    n += (size_t)snprintf(n < size ? out + n : NULL, n < size ? size - n : 0, "%s%s=", n ? " " : "", key->name);
    n += print_value(n < size ? out + n : NULL, n < size ? size - n : 0, spec, key);
  }
  return n;
}

/* Would the key be printed alike? Its bytes are asked first, which most specs share. */
static int same_value(const mx_spec *a, const mx_spec *b, const mx_key_row *key) {
  enum { LONGEST = 256 };
  char x[LONGEST], y[LONGEST];
  const char *p = (const char *)a, *q = (const char *)b;
  if (key->kind == MX_KEY_SEED) return a->seed == b->seed;
  if (key->kind == MX_KEY_SIGNS && a->had_size == b->had_size && !memcmp(p + key->at, q + key->at, MAX_SIGNS / 8)) return 1;
  const int of_words = key->kind != MX_KEY_SIGNS && key->kind != MX_KEY_GIVEN;
  if (of_words && !memcmp(p + key->at, q + key->at, 4) && (!key->at2 || !memcmp(p + key->at2, q + key->at2, 4))) return 1;
  print_value(x, sizeof x, a, key);
  print_value(y, sizeof y, b, key);
  return !strcmp(x, y);
}

int mx_spec_equal(const mx_spec *a, const mx_spec *b) {
  for (size_t i = 0; i < mxi_key_rows_count; i++)
    if (!same_value(a, b, &mxi_key_rows[i])) return 0;
  return 1;
}

double mx_spec_scale_max(const mx_spec *s) {
  const mx_format *elem = mx_elem_format(s->elem);
  const double most = s->scale_max == MX_SCALE_MAX_ELEM   ? mx_format_max(elem)
                      : s->scale_max == MX_SCALE_MAX_POW2 ? ldexp(1, mx_format_emax(elem))
                                                          : (double)s->scale_max_n;
  return s->scale_margin == 0
             ? most
             : (double)(float)(most * (double)s->scale_margin); /* the product of two 24-bit significands is exact, so this rounds once */
}

void mx_spec_block(const mx_spec *spec, size_t rows, size_t cols, size_t *block_rows, size_t *block_cols) {
  const int r = spec->block_rows ? spec->block_rows : 1, c = spec->block_cols ? spec->block_cols : 32;
  *block_rows = r == MX_BLOCK_WHOLE ? (rows ? rows : 1) : (size_t)r;
  *block_cols = c == MX_BLOCK_WHOLE ? (cols ? cols : 1) : (size_t)c;
}
