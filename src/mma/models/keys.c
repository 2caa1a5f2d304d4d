/* Applies KEY=VALUE,... to a model, and prints its parameters as such text. */
#include "mma/models/table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct key_row {
  const char *name;
  size_t offset; /* in mx_accum */
  int is_enum, min, max, none;
  const char *none_text;
} key_row;

static const key_row keys[] = {
#define MX_ACCUM_INT(field, min, max, none, none_text, doc) {#field, offsetof(mx_accum, field), 0, min, max, none, none_text},
#define MX_ACCUM_ENUM(field, doc) {#field, offsetof(mx_accum, field), 1, 0, 0, 0, ""},
#include "formats/accumulation_keys.def"
};

typedef struct value_row {
  const char *key, *text;
  int number;
} value_row;

static const value_row values[] = {
#define MX_ACCUM_VALUE(field, id, number, text, doc) {#field, text, number},
#include "formats/accumulation_keys.def"
};

enum { N_KEYS = sizeof keys / sizeof *keys, N_VALUES = sizeof values / sizeof *values };

static const value_row *find_value(const char *key, const char *text) {
  for (int i = 0; i < N_VALUES; i++)
    if (!strcmp(values[i].key, key) && !strcmp(values[i].text, text)) return &values[i];
  return NULL;
}

static const value_row *value_of(const char *key, int number) {
  for (int i = 0; i < N_VALUES; i++)
    if (!strcmp(values[i].key, key) && values[i].number == number) return &values[i];
  return NULL;
}

static int *field_of(const mx_accum *accum, const key_row *key) { return (int *)((char *)(uintptr_t)accum + key->offset); }

static int parse_number(int *out, const char *text) {
  char *end;
  long value = strtol(text, &end, 10);
  if (end == text || *end || value < INT_MIN / 2 || value > INT_MAX / 2) return 0;
  *out = (int)value;
  return 1;
}

/* Whether a key can have the number 0 although 0 stands for none, so that MX_ACC_NUMBER_0 must stand for the number. */
static int has_number_0(const key_row *key) { return !key->is_enum && key->none == 0 && key->min <= 0 && key->max >= 0; }

static int in_range(const key_row *key, int value) {
  if (key->is_enum) return value_of(key->name, value) != NULL;
  return value == key->none || (value >= key->min && value <= key->max) || (value == MX_ACC_NUMBER_0 && has_number_0(key));
}

static int number_of(const key_row *key, int value) { return value == MX_ACC_NUMBER_0 && has_number_0(key) ? 0 : value; }

static mx_status bad_value(const char *key, const char *text, const char *expected, mx_error *err) {
  return mx_fail(err, MX_ERR_KEY, "model key '%s': '%s' is not %s", key, text, expected);
}

static mx_status set_accum(mx_accum *accum, const key_row *key, const char *text, mx_error *err) {
  int value;
  char expected[64] = "one of its values (mxgold models --keys)";
  if (key->is_enum) {
    const value_row *row = find_value(key->name, text);
    if (!row) return bad_value(key->name, text, expected, err);
    value = row->number;
  } else if (*key->none_text && !strcmp(text, key->none_text))
    value = key->none;
  else if (parse_number(&value, text) && value == 0 && has_number_0(key))
    value = MX_ACC_NUMBER_0;
  else if (!parse_number(&value, text) || value == MX_ACC_NUMBER_0 || !in_range(key, value) || (value == key->none && value < 0)) {
    snprintf(expected, sizeof expected, "a number from %d to %d%s%s", key->min, key->max, *key->none_text ? " or " : "", key->none_text);
    return bad_value(key->name, text, expected, err);
  }
  *field_of(accum, key) = value;
  return MX_OK;
}

static mx_status set_type(const mx_format **type, const char *key, const char *text, mx_error *err) {
  int found = mxi_mma_type_find(text);
  if (found < 0) return bad_value(key, text, "a row of elements.def or operands.def", err);
  *type = mxi_mma_type(found);
  return MX_OK;
}

/* Reads text such as "e8m13rz": the type and bits of D, followed by the rounding. e8mB is binary32 with B fraction bits. */
static mx_status set_out(mx_mma_model *m, const char *text, mx_error *err) {
  const char *expected = "f32, f16, bf16 or e8mB, followed by rz, rne or rd";
  for (int i = 0; i < N_VALUES; i++) {
    size_t length = strlen(text), tail = strlen(values[i].text);
    if (strcmp(values[i].key, "out_round") || length <= tail || length - tail >= 16 || strcmp(text + length - tail, values[i].text)) continue;
    char type[16];
    int bits = 0, cut = 0;
    snprintf(type, sizeof type, "%.*s", (int)(length - tail), text);
    if (!strncmp(type, "e8m", 3) && parse_number(&bits, type + 3) && bits >= 0 && bits <= 23) {
      snprintf(type, sizeof type, "f32");
      cut = 1;
    }
    int found = mxi_mma_type_find(type);
    if (found < 0) return bad_value("out", text, expected, err);
    if (m->c == m->d) m->c = mxi_mma_type(found);
    m->d = mxi_mma_type(found);
    m->accum.out_bits = cut && !bits ? MX_ACC_NUMBER_0 : bits;
    m->accum.out_round = values[i].number;
    return MX_OK;
  }
  return bad_value("out", text, expected, err);
}

static mx_status set_scale(mx_mma_model *m, const char *text, mx_error *err) {
  if (!strcmp(text, "none")) {
    m->scale = NULL;
    return MX_OK;
  }
  for (int s = 0; s < MX_SCALE_COUNT; s++) {
    const char *name = mx_scale_format(s)->name;
    if (strcmp(name, text) && (*text != 'u' || strcmp(name, text + 1))) continue;
    m->scale = mx_scale_format(s);
    if (!m->block) m->block = 32;
    return MX_OK;
  }
  return bad_value("scale", text, "a row of scales.def or none", err);
}

static mx_status set_row(mx_mma_model *m, const char *text, mx_error *err) {
  const mma_accum_row *row = mxi_mma_accum_find(text);
  if (!row) return bad_value("accum", text, "a row of accumulation.def", err);
  m->accum = row->accum;
  m->accum_name = row->name;
  m->source = row->source;
  return MX_OK;
}

static mx_status set_rules(mx_mma_model *m, const char *text, mx_error *err) {
  for (size_t i = 0; i < mxi_mma_rules_count; i++)
    if (!strcmp(mxi_mma_rules_rows[i].name, text))
      return mxi_mma_keys_apply(m, m->d == mx_operand_format(MX_OPERAND_F16) ? mxi_mma_rules_rows[i].keys_f16 : mxi_mma_rules_rows[i].keys,
                                err);
  return bad_value("rules", text, "a set of rules of accumulation.def", err);
}

static mx_status set_count(int *field, const char *key, const char *text, mx_error *err) {
  int value;
  if (!parse_number(&value, text) || value < 0 || value > 65536) return bad_value(key, text, "a number from 0 to 65536", err);
  *field = value;
  return MX_OK;
}

static mx_status set_one(mx_mma_model *m, const char *key, const char *text, mx_error *err) {
  for (int i = 0; i < N_KEYS; i++)
    if (!strcmp(keys[i].name, key)) {
      mx_status status = set_accum(&m->accum, &keys[i], text, err);
      /* Without an instruction the group is the instruction, so k follows L unless it is given later. */
      if (!m->whole_k && !strcmp(key, "L")) m->k = m->accum.L;
      return status;
    }
  if (!strcmp(key, "out")) return set_out(m, text, err);
  if (!strcmp(key, "a")) return set_type(&m->a, key, text, err);
  if (!strcmp(key, "b")) return set_type(&m->b, key, text, err);
  if (!strcmp(key, "c")) return set_type(&m->c, key, text, err);
  if (!strcmp(key, "d")) return set_type(&m->d, key, text, err);
  if (!strcmp(key, "ab")) {
    mx_status status = set_type(&m->a, key, text, err);
    m->b = m->a;
    return status;
  }
  if (!strcmp(key, "scale")) return set_scale(m, text, err);
  if (!strcmp(key, "block")) return set_count(&m->block, key, text, err);
  if (!strcmp(key, "k")) return set_count(&m->k, key, text, err);
  if (!strcmp(key, "accum")) return set_row(m, text, err);
  if (!strcmp(key, "rules")) return set_rules(m, text, err);
  return mx_fail(err, MX_ERR_KEY, "model key '%s': no such key (mxgold models --keys lists them)", key);
}

mx_status mxi_mma_keys_apply(mx_mma_model *m, const char *keys_text, mx_error *err) {
  while (*keys_text) {
    char pair[64];
    size_t length = strcspn(keys_text, ",");
    if (length >= sizeof pair) return mx_fail(err, MX_ERR_KEY, "model: '%.40s...' is too long for KEY=VALUE", keys_text);
    memcpy(pair, keys_text, length);
    pair[length] = 0;
    char *equals = strchr(pair, '=');
    if (!equals) return mx_fail(err, MX_ERR_KEY, "model: '%s' is not KEY=VALUE", pair);
    *equals = 0;
    mx_status status = set_one(m, pair, equals + 1, err);
    if (status) return status;
    keys_text += length;
    if (*keys_text == ',' && !*++keys_text) return mx_fail(err, MX_ERR_KEY, "model: KEY=VALUE expected after the last comma");
  }
  return MX_OK;
}

void mx_accum_text(char *text, size_t size, const mx_accum *accum) {
  size_t used = 0;
  if (size) *text = 0;
  for (int i = 0; i < N_KEYS && used < size; i++) {
    int value = *field_of(accum, &keys[i]);
    const value_row *named = keys[i].is_enum ? value_of(keys[i].name, value) : NULL;
    char number[16];
    int always = !strcmp(keys[i].name, "L") || !strcmp(keys[i].name, "F"); /* 0 is the default of the other keys */
    if (value == 0 && !always) continue;
    snprintf(number, sizeof number, "%d", number_of(&keys[i], value));
    const char *shown = named ? named->text : value == keys[i].none && *keys[i].none_text ? keys[i].none_text : number;
    int n = snprintf(text + used, size - used, "%s%s=%s", used ? "," : "", keys[i].name, shown);
    used += n < 0 ? 0 : (size_t)n;
  }
}

mx_status mxi_mma_keys_check(const mx_mma_model *m, mx_error *err) {
  for (int i = 0; i < N_KEYS; i++) {
    int value = *field_of(&m->accum, &keys[i]);
    if (!in_range(&keys[i], value))
      return mx_fail(err, MX_ERR_CONFLICT, "model '%s': %s=%d is out of range", m->name, keys[i].name, number_of(&keys[i], value));
  }
  return MX_OK;
}
