/* Models by name: lookup, KEY=VALUE overrides, and the check that a model's fields fit together. */
#include "mma_table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rows to models --- */

static void from_accum(mx_mma_model *out, const mma_accum_row *row) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%s", row->name);
  out->accum_name = row->name;
  out->held = row->held;
  out->source = row->source;
  out->accum = row->accum;
  out->a = mma_type(row->a);
  out->b = mma_type(row->b);
  out->c = mma_type(row->c);
  out->d = mma_type(row->d);
  /* Without an instruction a group is one, except where an order of k needs two groups. */
  out->k = row->accum.order == MX_ACC_ORDER_PAIRS ? 2 * row->accum.L : row->accum.L;
}

static void from_instruction(mx_mma_model *out, size_t arch, const mma_instruction_row *row, const mma_choice *choice) {
  const mma_accum_row *accum = &mma_accum_rows[row->accum];
  char name[96] = "";
  mma_name_write(name, sizeof name, row, choice);
  from_accum(out, accum);
  snprintf(out->name, sizeof out->name, "%s/%.80s", mma_arch_names[arch], name);
  if (*row->held) out->held = row->held;
  out->accum.L = row->L;
  out->a = mma_type(choice->a);
  out->b = mma_type(choice->b);
  out->c = mma_type(row->c);
  out->d = mma_type(row->d);
  out->scale = row->scale < 0 ? NULL : mx_scale_format(row->scale);
  out->block = row->block;
  out->m = choice->m;
  out->n = choice->n;
  out->k = row->k;
  out->whole_k = 1;
}

/* --- the listing --- */

/* Walk all instruction names; stop at the index-th. Returns how many there are up to there. */
static size_t walk(mx_mma_model *out, size_t index) {
  size_t n = 0;
  for (size_t arch = 0; arch < mma_arch_count; arch++)
    for (size_t r = 0; r < mma_instruction_count; r++) {
      const mma_instruction_row *row = &mma_instruction_rows[r];
      mma_choice choice;
      if (!(row->archs >> arch & 1)) continue;
      for (size_t i = 0; mma_name_choice(&choice, row, i); i++)
        if (n++ == index) {
          from_instruction(out, arch, row, &choice);
          return n;
        }
    }
  return n;
}

size_t mx_mma_model_count(void) { return mma_accum_count + walk(NULL, SIZE_MAX); }

mx_status mx_mma_model_at(mx_mma_model *out, size_t index) {
  if (!out || index >= mx_mma_model_count()) return MX_ERR_ARG;
  if (index < mma_accum_count)
    from_accum(out, &mma_accum_rows[index]);
  else
    walk(out, index - mma_accum_count);
  return MX_OK;
}

/* --- names --- */

static const mma_accum_row *find_accum(const char *name) {
  for (size_t i = 0; i < mma_accum_count; i++)
    if (!strcmp(mma_accum_rows[i].name, name)) return &mma_accum_rows[i];
  return NULL;
}

static int find_instruction(mx_mma_model *out, const char *name) {
  const char *slash = strchr(name, '/');
  for (size_t arch = 0; arch < mma_arch_count; arch++) {
    size_t length = strlen(mma_arch_names[arch]);
    if (length != (size_t)(slash - name) || memcmp(name, mma_arch_names[arch], length)) continue;
    for (size_t r = 0; r < mma_instruction_count; r++) {
      const mma_instruction_row *row = &mma_instruction_rows[r];
      mma_choice choice;
      if (!(row->archs >> arch & 1) || !mma_name_match(&choice, row, slash + 1)) continue;
      from_instruction(out, arch, row, &choice);
      return 1;
    }
  }
  return 0;
}

/* Length of the common beginning: enough to point at a near miss. */
static size_t alike(const char *x, const char *y) {
  size_t n = 0;
  while (x[n] && x[n] == y[n]) n++;
  return n;
}

static mx_status no_such_model(const char *name, mx_error *err) {
  mx_mma_model row;
  char best[sizeof row.name] = "fused";
  size_t most = 0;
  for (size_t i = 0, n = mx_mma_model_count(); i < n; i++) {
    mx_mma_model_at(&row, i);
    size_t same = alike(row.name, name);
    if (same > most) {
      most = same;
      memcpy(best, row.name, sizeof best);
    }
  }
  return mx_fail(err, MX_ERR_KEY, "model '%s': no such row of formats/instructions.def or accumulation.def; the nearest is '%s' (mxgold models lists all)", name, best);
}

/* --- overrides --- */

typedef struct key_row {
  const char *name;
  size_t offset; /* in mx_accum */
  int is_enum, min, max, none;
  const char *none_text;
} key_row;

static const key_row keys[] = {
#define MX_ACCUM_INT(field, min, max, none, none_text, doc) {#field, offsetof(mx_accum, field), 0, min, max, none, none_text},
#define MX_ACCUM_ENUM(field, doc) {#field, offsetof(mx_accum, field), 1, 0, 0, 0, ""},
#include "../../formats/accumulation_keys.def"
};

typedef struct value_row {
  const char *key, *text;
  int number;
} value_row;

static const value_row values[] = {
#define MX_ACCUM_VALUE(field, id, number, text, doc) {#field, text, number},
#include "../../formats/accumulation_keys.def"
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

static int in_range(const key_row *key, int value) {
  return key->is_enum ? value_of(key->name, value) != NULL : value == key->none || (value >= key->min && value <= key->max);
}

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
  else if (!parse_number(&value, text) || !in_range(key, value)) {
    snprintf(expected, sizeof expected, "a number from %d to %d%s%s", key->min, key->max, *key->none_text ? " or " : "", key->none_text);
    return bad_value(key->name, text, expected, err);
  }
  *field_of(accum, key) = value;
  return MX_OK;
}

static mx_status set_type(const mx_format **type, const char *key, const char *text, mx_error *err) {
  int found = mma_type_find(text);
  if (found < 0) return bad_value(key, text, "a row of elements.def or operands.def", err);
  *type = mma_type(found);
  return MX_OK;
}

/* "e8m13rz": type and bits of D, then the rounding. e8mB is binary32 with B fraction bits. */
static mx_status set_out(mx_mma_model *m, const char *text, mx_error *err) {
  const char *expected = "f32, f16, bf16 or e8mB, followed by rz, rne or rd";
  for (int i = 0; i < N_VALUES; i++) {
    size_t length = strlen(text), tail = strlen(values[i].text);
    if (strcmp(values[i].key, "out_round") || length <= tail || length - tail >= 16 || strcmp(text + length - tail, values[i].text)) continue;
    char type[16];
    int bits = 0;
    snprintf(type, sizeof type, "%.*s", (int)(length - tail), text);
    if (!strncmp(type, "e8m", 3) && parse_number(&bits, type + 3) && bits >= 1 && bits <= 23) snprintf(type, sizeof type, "f32");
    int found = mma_type_find(type);
    if (found < 0) return bad_value("out", text, expected, err);
    if (m->c == m->d) m->c = mma_type(found);
    m->d = mma_type(found);
    m->accum.out_bits = bits;
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

static mx_status apply(mx_mma_model *m, const char *keys_text, mx_error *err);

static mx_status set_row(mx_mma_model *m, const char *text, mx_error *err) {
  const mma_accum_row *row = find_accum(text);
  if (!row) return bad_value("accum", text, "a row of accumulation.def", err);
  m->accum = row->accum;
  m->accum_name = row->name;
  m->source = row->source;
  return MX_OK;
}

static mx_status set_rules(mx_mma_model *m, const char *text, mx_error *err) {
  for (size_t i = 0; i < mma_rules_count; i++)
    if (!strcmp(mma_rules_rows[i].name, text)) return apply(m, mma_rules_rows[i].keys, err);
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
      /* Without an instruction the group is the instruction: k follows L, unless it is given after it. */
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

static mx_status apply(mx_mma_model *m, const char *keys_text, mx_error *err) {
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

mx_status mx_mma_model_find(mx_mma_model *out, const char *text, mx_error *err) {
  if (!out || !text) return mx_fail(err, MX_ERR_ARG, "model: no name");
  mx_mma_model m;
  const char *colon = strchr(text, ':');
  size_t length = colon ? (size_t)(colon - text) : strlen(text);
  char name[sizeof m.name];
  if (length >= sizeof name) return mx_fail(err, MX_ERR_KEY, "model: a name of %zu characters; none is longer than %zu", length, sizeof name - 1);
  memcpy(name, text, length);
  name[length] = 0;

  const mma_accum_row *row = find_accum(name);
  if (row)
    from_accum(&m, row);
  else if (!strchr(name, '/') || !find_instruction(&m, name))
    return no_such_model(name, err);

  if (colon) {
    mx_status status = apply(&m, colon + 1, err);
    if (status) return status;
    m.held = "nothing: a row with keys of its own";
    snprintf(m.name, sizeof m.name, "%s", text);
  }
  mx_status status = mx_mma_model_check(&m, err);
  if (!status) *out = m;
  return status;
}

void mx_accum_text(char *text, size_t size, const mx_accum *accum) {
  size_t used = 0;
  if (size) *text = 0;
  for (int i = 0; i < N_KEYS && used < size; i++) {
    int value = *field_of(accum, &keys[i]);
    const value_row *named = keys[i].is_enum ? value_of(keys[i].name, value) : NULL;
    char number[16];
    if (value == 0 && strcmp(keys[i].name, "F")) continue; /* 0 is the default of every key; F has none */
    snprintf(number, sizeof number, "%d", value);
    const char *shown = named ? named->text : value == keys[i].none && *keys[i].none_text ? keys[i].none_text : number;
    int n = snprintf(text + used, size - used, "%s%s=%s", used ? "," : "", keys[i].name, shown);
    used += n < 0 ? 0 : (size_t)n;
  }
}

/* --- what fits together --- */

static int is_float(const mx_format *f) { return f->kind == MX_KIND_FLOAT || f->kind == MX_KIND_FNUZ; }

/* Every value of c is one of d. */
static int widens(const mx_format *c, const mx_format *d) {
  return is_float(c) && is_float(d) && c->man_bits <= d->man_bits && c->exp_bits <= d->exp_bits;
}

static int is_named(const mx_format *f, const char *name) { return !strcmp(f->name, name); }

#define NEED(condition, ...)                                                                                                                  \
  do {                                                                                                                                        \
    if (!(condition)) return mx_fail(err, MX_ERR_CONFLICT, "model '%s': " __VA_ARGS__);                                                       \
  } while (0)

static mx_status check_fused(const mx_mma_model *m, mx_error *err) {
  const mx_accum *x = &m->accum;
  NEED((is_float(m->a) || m->a->kind == MX_KIND_INT) && m->a->bits <= 32, "a=%s cannot enter a fused sum", m->name, m->a->name);
  NEED((is_float(m->b) || m->b->kind == MX_KIND_INT) && m->b->bits <= 32, "b=%s cannot enter a fused sum", m->name, m->b->name);
  NEED(is_float(m->d) && m->d->bits >= 16 && m->d->bits <= 32 && m->d->bits != 19, "d=%s is not f32, f16 or bf16", m->name, m->d->name);
  NEED(widens(m->c, m->d), "c=%s does not widen to d=%s", m->name, m->c->name, m->d->name);
  NEED(x->out_bits <= m->d->man_bits, "out_bits=%d, but %s has %d", m->name, x->out_bits, m->d->name, m->d->man_bits);
  NEED(x->nan != MX_ACC_NAN_FIRST, "nan=first needs op=fma", m->name);
  NEED((x->join == MX_ACC_JOIN_AFTER) == (x->sum_bits && x->c_bits), "join=after needs sum_bits and c_bits, other joins have none", m->name);
  NEED(!x->c_drop || x->join == MX_ACC_JOIN_AFTER, "c_drop needs join=after", m->name);
  NEED(x->F != MX_ACC_F_EXACT || (x->join != MX_ACC_JOIN_AFTER && !x->split), "F=exact leaves nothing to cut: no join=after, no split", m->name);
  NEED(!x->split || x->join == MX_ACC_JOIN_AFTER, "split=evenodd needs join=after", m->name);
  NEED(!x->P || (m->a->exp_bits <= 5 && m->b->exp_bits <= 5), "P needs operands of at most 5 exponent bits", m->name);
  NEED(!x->P || (!x->split && !x->order), "P excludes split and order", m->name);
  NEED(!x->P || !x->L || x->L % x->P == 0, "L=%d is not a multiple of P=%d", m->name, x->L, x->P);
  NEED(!x->P || !m->scale || m->block % x->P == 0, "block=%d is not a multiple of P=%d", m->name, m->block, x->P);
  NEED(!x->via || (m->a->bits <= 8 && m->b->bits <= 8 && is_float(m->a) && is_float(m->b)), "via=f16 needs elements of at most 8 bits", m->name);
  NEED(!x->via || !m->scale, "via=f16 excludes scales", m->name);
  return MX_OK;
}

static mx_status check_pairwise(const mx_mma_model *m, mx_error *err) {
  NEED(is_float(m->a) && m->a->bits <= 32 && is_float(m->b) && m->b->bits <= 32, "op=pairwise needs floating-point a and b of at most 32 bits", m->name);
  NEED(is_named(m->c, "f32") && is_named(m->d, "f32"), "op=pairwise sums in f32", m->name);
  NEED(!m->scale, "op=pairwise has no scales", m->name);
  return MX_OK;
}

static mx_status check_fma(const mx_mma_model *m, mx_error *err) {
  int f64 = is_named(m->d, "f64");
  NEED(f64 || is_named(m->d, "f32"), "op=fma needs d=f32 or d=f64", m->name);
  NEED(widens(m->c, m->d) && widens(m->a, m->d) && widens(m->b, m->d), "op=fma needs operands that widen to d=%s", m->name, m->d->name);
  NEED(!f64 || !m->scale, "op=fma in f64 has no scales", m->name);
  return MX_OK;
}

static mx_status check_integer(const mx_mma_model *m, mx_error *err) {
  NEED(m->a->kind == MX_KIND_INT && m->a->bits <= 8 && m->b->kind == MX_KIND_INT && m->b->bits <= 8, "op=integer needs integers of at most 8 bits", m->name);
  NEED(is_named(m->c, "s32") && is_named(m->d, "s32"), "op=integer sums in s32", m->name);
  NEED(!m->scale, "op=integer has no scales", m->name);
  return MX_OK;
}

mx_status mx_mma_model_check(const mx_mma_model *m, mx_error *err) {
  if (!m) return mx_fail(err, MX_ERR_CONFLICT, "model: NULL");
  const mx_accum *x = &m->accum;
  NEED(m->a && m->b && m->c && m->d, "a type is missing", m->name);
  for (int i = 0; i < N_KEYS; i++) {
    int value = *field_of(x, &keys[i]);
    NEED(in_range(&keys[i], value), "%s=%d is out of range", m->name, keys[i].name, value);
  }
  NEED(m->block >= 0 && m->k >= 0, "block=%d and k=%d must not be negative", m->name, m->block, m->k);
  NEED(!m->scale || m->block > 0, "scale=%s needs a block", m->name, m->scale->name);
  NEED(!m->scale || m->scale->bits <= 8, "scale=%s: scales are bytes", m->name, m->scale->name);
  NEED(!m->k || !x->L || m->k % x->L == 0, "k=%d is not a multiple of L=%d", m->name, m->k, x->L);
  NEED(x->flush == MX_ACC_FLUSH_NO || x->op == MX_ACC_OP_PAIRWISE, "flush needs op=pairwise", m->name);
  NEED(x->sat == MX_ACC_SAT_WRAP || x->op == MX_ACC_OP_INTEGER, "sat needs op=integer", m->name);
  switch (x->op) {
  case MX_ACC_OP_PAIRWISE: return check_pairwise(m, err);
  case MX_ACC_OP_FMA: return check_fma(m, err);
  case MX_ACC_OP_INTEGER: return check_integer(m, err);
  default: return check_fused(m, err);
  }
}
