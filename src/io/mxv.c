/* Holds the vectors of an .mxv file in memory and prints them as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mxgold/file.h"
#include "mxgold/vector.h"

#include "mxv.h"

void mx_vectors_free(mx_vectors *v) {
  if (!v) return;
  for (size_t i = 0; i < v->n_meta; i++) {
    free(v->keys[i]);
    free(v->values[i]);
  }
  free(v->keys);
  free(v->values);
  for (size_t i = 0; i < v->n_columns; i++) free(v->columns[i].data);
  *v = (mx_vectors){0};
}

static int printable(const char *s, int blanks) {
  for (; *s; s++)
    if (*s < 0x20 || *s > 0x7e || (*s == ' ' && !blanks)) return 0;
  return 1;
}

int mxi_mxv_key_allowed(const char *key) {
  if (!*key || !printable(key, 0) || strchr(key, '=')) return 0;
  return strcmp(key, "columns") && strcmp(key, "end") && strcmp(key, "mxv");
}

mx_status mx_vectors_set_meta(mx_vectors *v, const char *key, const char *value) {
  if (!v || !key || !value || !mxi_mxv_key_allowed(key) || !printable(value, 1)) return MX_ERR_ARG;
  size_t at = 0;
  while (at < v->n_meta && strcmp(v->keys[at], key) < 0) at++;
  char *own = strdup(value);
  if (!own) return MX_ERR_NOMEM;
  if (at < v->n_meta && !strcmp(v->keys[at], key)) {
    free(v->values[at]);
    v->values[at] = own;
    return MX_OK;
  }
  char *own_key = strdup(key), **keys = realloc(v->keys, (v->n_meta + 1) * sizeof *keys);
  if (keys) v->keys = keys;
  char **values = realloc(v->values, (v->n_meta + 1) * sizeof *values);
  if (values) v->values = values;
  if (!own_key || !keys || !values) {
    free(own);
    free(own_key);
    return MX_ERR_NOMEM;
  }
  memmove(keys + at + 1, keys + at, (v->n_meta - at) * sizeof *keys);
  memmove(values + at + 1, values + at, (v->n_meta - at) * sizeof *values);
  keys[at] = own_key;
  values[at] = own;
  v->n_meta++;
  return MX_OK;
}

const char *mx_vectors_meta(const mx_vectors *v, const char *key) {
  for (size_t i = 0; i < v->n_meta; i++)
    if (!strcmp(v->keys[i], key)) return v->values[i];
  return NULL;
}

static int name_allowed(const char *name) {
  const size_t n = strlen(name);
  if (!n || n >= MX_VECTOR_NAME) return 0;
  return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == n;
}

mx_status mx_vectors_add_column(mx_vectors *v, const char *name, unsigned bits, size_t count) {
  if (!v || !name || !name_allowed(name) || bits < 1 || bits > 64 || !count || count > UINT32_MAX) return MX_ERR_ARG;
  if (v->n_columns == MX_VECTOR_COLUMNS || v->n_cases || mx_vectors_find(v, name) >= 0) return MX_ERR_ARG;
  mx_column *c = &v->columns[v->n_columns++];
  *c = (mx_column){.bits = bits, .count = count, .width = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8};
  strcpy(c->name, name);
  v->n_filled = v->n_columns;
  return MX_OK;
}

int mx_vectors_find(const mx_vectors *v, const char *name) {
  for (size_t i = 0; i < v->n_columns; i++)
    if (!strcmp(v->columns[i].name, name)) return (int)i;
  return -1;
}

mx_status mx_vectors_alloc(mx_vectors *v, size_t n_cases) {
  if (!v || v->n_cases) return MX_ERR_ARG;
  for (size_t i = 0; i < v->n_filled; i++) {
    mx_column *c = &v->columns[i];
    size_t n;
    if (__builtin_mul_overflow(n_cases, c->count, &n)) return MX_ERR_NOMEM;
    free(c->data);
    c->data = calloc(n ? n : 1, c->width);
    if (!c->data) return MX_ERR_NOMEM;
  }
  v->n_cases = n_cases;
  return MX_OK;
}

uint64_t mx_vectors_get(const mx_vectors *v, size_t column, size_t at_case, size_t index) {
  const mx_column *c = &v->columns[column];
  const uint8_t *p = c->data + (at_case * c->count + index) * c->width;
  if (c->width == 1) return *p;
  if (c->width == 2) return *(const uint16_t *)(const void *)p;
  if (c->width == 4) return *(const uint32_t *)(const void *)p;
  return *(const uint64_t *)(const void *)p;
}

void mx_vectors_set(mx_vectors *v, size_t column, size_t at_case, size_t index, uint64_t value) {
  mx_column *c = &v->columns[column];
  uint8_t *p = c->data + (at_case * c->count + index) * c->width;
  if (c->bits < 64) value &= (UINT64_C(1) << c->bits) - 1;
  if (c->width == 1)
    *p = (uint8_t)value;
  else if (c->width == 2)
    *(uint16_t *)(void *)p = (uint16_t)value;
  else if (c->width == 4)
    *(uint32_t *)(void *)p = (uint32_t)value;
  else
    *(uint64_t *)(void *)p = value;
}

static void put_hex(FILE *to, uint64_t value, unsigned digits) {
  char text[16];
  for (unsigned i = 0; i < digits; i++) text[i] = "0123456789abcdef"[value >> (4 * (digits - 1 - i)) & 15];
  fwrite(text, 1, digits, to);
}

mx_status mx_vectors_print(const mx_vectors *v, FILE *to) {
  fputs("# mxv 1\n", to);
  for (size_t i = 0; i < v->n_meta; i++) fprintf(to, "# %s=%s\n", v->keys[i], v->values[i]);
  fputs("# columns", to);
  for (size_t i = 0; i < v->n_columns; i++) fprintf(to, " %s:%u:%zu", v->columns[i].name, v->columns[i].bits, v->columns[i].count);
  putc('\n', to);
  for (size_t k = 0; k < v->n_cases && !ferror(to); k++) {
    for (size_t i = 0; i < v->n_filled; i++) {
      const unsigned digits = mxv_digits(&v->columns[i]);
      if (i) fputs(" | ", to);
      for (size_t j = 0; j < v->columns[i].count; j++) {
        if (j) putc(' ', to);
        put_hex(to, mx_vectors_get(v, i, k, j), digits);
      }
    }
    putc('\n', to);
  }
  fprintf(to, "# end %zu\n", v->n_cases);
  return fflush(to) || ferror(to) ? MX_ERR_IO : MX_OK;
}

mx_status mx_vectors_print_readmemh(const mx_vectors *v, size_t column, FILE *to) {
  const mx_column *c = &v->columns[column];
  fprintf(to, "// %s: %zu cases of %zu, %u bits each\n", c->name, v->n_cases, c->count, c->bits);
  for (size_t i = 0; i < v->n_meta; i++) fprintf(to, "// %s=%s\n", v->keys[i], v->values[i]);
  for (size_t k = 0; k < v->n_cases && !ferror(to); k++)
    for (size_t j = 0; j < c->count; j++) {
      put_hex(to, mx_vectors_get(v, column, k, j), mxv_digits(c));
      putc('\n', to);
    }
  return fflush(to) || ferror(to) ? MX_ERR_IO : MX_OK;
}

mx_status mx_vectors_save(const mx_vectors *v, const char *path, mx_error *err) {
  if (!strcmp(path, "-")) {
    if (mx_vectors_print(v, stdout)) return mx_fail(err, MX_ERR_IO, "standard output: cannot write: %s", strerror(errno));
    return MX_OK;
  }
  mx_text t;
  mx_status s = mx_text_begin(&t, path, err);
  if (!s) mx_vectors_print(v, t.to);
  if (!s) s = mx_text_end(&t, err);
  return s;
}
