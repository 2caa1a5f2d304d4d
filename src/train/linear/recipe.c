/* Reads and prints training keys by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/nearest.h"
#include "train/linear/internal.h"

typedef struct key_row {
  mx_train_key key;
  size_t offset;
} key_row;

static const key_row rows[] = {
#define MX_TRAIN_CHOICE(field, name, choices, doc, source) {{name, choices, doc, source, 0}, offsetof(mx_linear_recipe, field)},
#define MX_TRAIN_REAL(field, name, fallback, doc, source) {{name, NULL, doc, source, fallback}, offsetof(mx_linear_recipe, field)},
#include "formats/train_keys.def"
#undef MX_TRAIN_CHOICE
#undef MX_TRAIN_REAL
};
enum { N_ROWS = sizeof rows / sizeof *rows };

const mx_train_key *mx_train_key_at(size_t index) { return index < N_ROWS ? &rows[index].key : NULL; }

static const char *key_name(const void *set, size_t index) {
  (void)set;
  return index < N_ROWS ? rows[index].key.name : NULL;
}

mx_status mx_linear_set(mx_linear_recipe *recipe, const char *key, const char *value, mx_error *err) {
  if (!recipe || !key || !value) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  const key_row *row = NULL;
  for (size_t i = 0; i < N_ROWS && !row; i++)
    if (!strcmp(rows[i].key.name, key)) row = &rows[i];
  if (!row) {
    char near[160];
    mx_nearest(near, sizeof near, key, key_name, NULL);
    return mx_fail(err, MX_ERR_KEY, "unknown training key '%s'; nearest: %s", key, near);
  }
  char *at = (char *)recipe + row->offset;
  if (row->key.choices) {
    const int choice = mx_choice_find(row->key.choices, value);
    char near[160];
    if (choice < 0) mx_choice_nearest(near, sizeof near, row->key.choices, value);
    if (choice < 0) return mx_fail(err, MX_ERR_KEY, "%s=%s: expected one of %s; nearest: %s", key, value, row->key.choices, near);
    memcpy(at, &choice, sizeof choice);
    return MX_OK;
  }
  char *end;
  errno = 0;
  if (row->key.fallback == 0 && !strcmp(value, "off")) value = "0";
  const double number = strtod(value, &end);
  if (end == value || *end || errno || !(number >= 0))
    return mx_fail(err, MX_ERR_KEY, "%s=%s: expected a number that is not negative", key, value);
  const double kept = number == 0 ? -0.0 : number; /* +0 stands for the default */
  memcpy(at, &kept, sizeof kept);
  return MX_OK;
}

mx_status mx_linear_parse(mx_linear_recipe *recipe, const char *text, mx_error *err) {
  if (!recipe || !text) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  mx_linear_recipe work = *recipe;
  for (const char *at = text + strspn(text, ", "); *at; at += strspn(at, ", ")) {
    char item[200];
    const size_t n = strcspn(at, ", ");
    if (n >= sizeof item) return mx_fail(err, MX_ERR_KEY, "'%.40s...' is too long for a training key", at);
    memcpy(item, at, n);
    item[n] = 0;
    char *equals = strchr(item, '=');
    if (!equals) return mx_fail(err, MX_ERR_KEY, "'%s': expected KEY=VALUE", item);
    *equals = 0;
    const mx_status status = mx_linear_set(&work, item, equals + 1, err);
    if (status) return status;
    at += n;
  }
  *recipe = work;
  return MX_OK;
}

size_t mx_train_key_text(char *out, size_t size, const mx_linear_recipe *recipe, size_t index) {
  if (index >= N_ROWS) return 0;
  const key_row *row = &rows[index];
  const char *at = (const char *)recipe + row->offset;
  if (!row->key.choices) {
    double number;
    memcpy(&number, at, sizeof number);
    number = mxi_linear_real(number, row->key.fallback) + 0.0;
    if (number == 0 && row->key.fallback == 0) return (size_t)snprintf(out, size, "off");
    char brief[32];
    snprintf(brief, sizeof brief, "%.15g", number);
    return (size_t)snprintf(out, size, strtod(brief, NULL) == number ? "%.15g" : "%.17g", number);
  }
  int choice;
  memcpy(&choice, at, sizeof choice);
  const char *name = row->key.choices;
  for (; choice > 0 && strchr(name, '|'); choice--) name = strchr(name, '|') + 1;
  return (size_t)snprintf(out, size, "%.*s", (int)strcspn(name, "|"), name);
}

const char *mx_linear_product_name(int product) {
  static const char *const names[MX_PRODUCTS] = {"fprop", "dgrad", "wgrad"};
  return product >= 0 && product < MX_PRODUCTS ? names[product] : NULL;
}

/* Does the operand consist of the values themselves, neither quantised nor rounded to a narrower type? */
static int is_none(const mx_spec *s) { return s->elem == MX_ELEM_NONE && s->input_dtype == MX_INPUT_DTYPE_FLOAT32; }

int mxi_linear_is_plain(const mx_linear_recipe *r, int p) { return r->off[p] || (is_none(&r->q[2 * p]) && is_none(&r->q[2 * p + 1])); }
