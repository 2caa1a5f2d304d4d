/* Reads, checks and writes configurations by one table of keys. */
#include "train/run/config.h"

#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/file.h"
#include "mxgold/nearest.h"
#include "train/run/assign.h"
#include "train/run/resolved.h"

typedef enum key_kind { CHOICE, COUNT, REAL, SWITCH, TEXT } key_kind;

typedef struct key_row {
  mx_config_key key;
  key_kind kind;
  size_t offset;
  double real;
  long long count, least;
  unsigned long long most;
} key_row;

#define AT(field) offsetof(mxi_config, field)
#define MX_CONFIG_QUANT(name, doc, source)
static const key_row keys[] = {
#define MX_CONFIG_CHOICE(field, name, choices, doc, source) {{name, choices, NULL, doc, source}, CHOICE, AT(field), 0, 0, 0, 0},
#define MX_CONFIG_COUNT(field, name, fallback, least, most, doc, source)                                                                       \
  {{name, NULL, #fallback, doc, source}, COUNT, AT(field), 0, fallback, least, most},
#define MX_CONFIG_REAL(field, name, fallback, doc, source) {{name, NULL, #fallback, doc, source}, REAL, AT(field), fallback, 0, 0, 0},
#define MX_CONFIG_SWITCH(field, name, fallback, doc, source) {{name, "false|true", NULL, doc, source}, SWITCH, AT(field), 0, fallback, 0, 0},
#define MX_CONFIG_TEXT(field, name, doc, source) {{name, NULL, NULL, doc, source}, TEXT, AT(field), 0, 0, 0, 0},
#include "formats/config_keys.def"
#undef MX_CONFIG_CHOICE
#undef MX_CONFIG_COUNT
#undef MX_CONFIG_REAL
#undef MX_CONFIG_SWITCH
#undef MX_CONFIG_TEXT
#undef MX_CONFIG_QUANT
};
enum { N_KEYS = sizeof keys / sizeof *keys };

/* Keys of "quant", which have a parser of their own. */
#define MX_CONFIG_CHOICE(...)
#define MX_CONFIG_COUNT(...)
#define MX_CONFIG_REAL(...)
#define MX_CONFIG_SWITCH(...)
#define MX_CONFIG_TEXT(...)
#define MX_CONFIG_QUANT(name, doc, source) {name, NULL, NULL, doc, source},
static const mx_config_key quant_keys[] = {
#include "formats/config_keys.def"
};
enum { N_QUANT_KEYS = sizeof quant_keys / sizeof *quant_keys };

const mx_config_key *mx_config_key_at(size_t index) {
  return index < N_KEYS ? &keys[index].key : index < N_KEYS + N_QUANT_KEYS ? &quant_keys[index - N_KEYS] : NULL;
}

static const char *any_key(const void *set, size_t index) {
  (void)set;
  const mx_config_key *key = mx_config_key_at(index);
  return key ? key->name : NULL;
}

static mx_status unknown(const char *path, const char *name, mx_error *err) {
  char near[160];
  mx_nearest(near, sizeof near, name, any_key, NULL);
  return mx_fail(err, MX_ERR_KEY, "%s: unknown key '%s'; nearest: %s", path, name, near);
}

/* ---- one key ---- */

static mx_status wrong(const char *path, const key_row *k, const char *expected, mx_error *err) {
  return mx_fail(err, MX_ERR_ARG, "%s: %s: expected %s", path, k->key.name, expected);
}

static mx_status read_key(mxi_config *c, const key_row *k, const json_t *v, const char *path, mx_error *err) {
  char *at = (char *)c + k->offset, expected[320], near[160];
  switch (k->kind) {
  case CHOICE: {
    const int choice = json_is_string(v) ? mx_choice_find(k->key.choices, json_string_value(v)) : -1;
    if (choice < 0 && json_is_string(v)) mx_choice_nearest(near, sizeof near, k->key.choices, json_string_value(v));
    snprintf(expected, sizeof expected, "one of %s%s%s", k->key.choices, json_is_string(v) ? "; nearest: " : "", json_is_string(v) ? near : "");
    if (choice < 0) return wrong(path, k, expected, err);
    memcpy(at, &choice, sizeof choice);
    return MX_OK;
  }
  case SWITCH: {
    const int on = json_is_true(v);
    if (!json_is_boolean(v)) return wrong(path, k, "true or false", err);
    memcpy(at, &on, sizeof on);
    return MX_OK;
  }
  case TEXT: {
    if (!json_is_string(v)) return wrong(path, k, "a string", err);
    char *copy = strdup(json_string_value(v));
    if (!copy) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
    free(*(char **)at);
    memcpy(at, &copy, sizeof copy);
    return MX_OK;
  }
  case REAL: {
    const double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= 0) || !isfinite(x)) return wrong(path, k, "a number that is not negative", err);
    memcpy(at, &x, sizeof x);
    return MX_OK;
  }
  default: {
    const double whole = json_number_value(v); /* 1e4 is as good as 10000 */
    const int is_whole = json_is_real(v) && whole == floor(whole) && fabs(whole) < 0x1p53;
    const long long n = is_whole ? (long long)whole : json_integer_value(v);
    snprintf(expected, sizeof expected, "a whole number from %lld to %llu", k->least,
             k->most > LLONG_MAX ? (unsigned long long)LLONG_MAX : k->most);
    if (!(json_is_integer(v) || is_whole) || n < k->least || (unsigned long long)n > k->most) return wrong(path, k, expected, err);
    const size_t size = (size_t)n;
    memcpy(at, &size, sizeof size);
    return MX_OK;
  }
  }
}

static void put_default(mxi_config *c, const key_row *k) {
  char *at = (char *)c + k->offset;
  const int zero = k->kind == SWITCH ? (int)k->count : 0;
  const size_t count = (size_t)k->count;
  if (k->kind == REAL)
    memcpy(at, &k->real, sizeof k->real);
  else if (k->kind == COUNT)
    memcpy(at, &count, sizeof count);
  else if (k->kind != TEXT)
    memcpy(at, &zero, sizeof zero);
}

static json_t *json_of(const mxi_config *c, const key_row *k) {
  const char *at = (const char *)c + k->offset;
  int i;
  size_t n;
  double x;
  char *text;
  switch (k->kind) {
  case CHOICE: {
    memcpy(&i, at, sizeof i);
    const char *name = k->key.choices;
    for (; i > 0; i--) name = strchr(name, '|') + 1;
    return json_stringn(name, strcspn(name, "|"));
  }
  case SWITCH:
    memcpy(&i, at, sizeof i);
    return json_boolean(i > 0);
  case REAL:
    memcpy(&x, at, sizeof x);
    return json_real(x);
  case COUNT:
    memcpy(&n, at, sizeof n);
    return json_integer((json_int_t)n);
  default:
    memcpy(&text, at, sizeof text);
    return text ? json_string(text) : json_null();
  }
}

/* ---- quant ---- */

enum { MOST_ITEMS = 64 };

typedef struct items {
  const char *at[MOST_ITEMS];
  char *own[MOST_ITEMS];
  size_t n;
} items;

static mx_status strings(items *out, const json_t *list, const char *path, const char *name, mx_error *err) {
  size_t i;
  json_t *v;
  if (!list || json_is_null(list)) return MX_OK;
  if (json_is_string(list)) { /* one alone */
    out->at[out->n++] = json_string_value(list);
    return MX_OK;
  }
  if (!json_is_array(list) || json_array_size(list) > MOST_ITEMS)
    return mx_fail(err, MX_ERR_ARG, "%s: %s: expected a list of at most %d strings", path, name, MOST_ITEMS);
  json_array_foreach(list, i, v) {
    if (!json_is_string(v)) return mx_fail(err, MX_ERR_ARG, "%s: %s: expected strings", path, name);
    out->at[out->n++] = json_string_value(v);
  }
  return MX_OK;
}

/* {"occ.alpha": 0.99} as "occ.alpha=0.99". */
static mx_status pairs(items *out, json_t *object, const char *path, mx_error *err) {
  const char *name;
  json_t *v;
  if (!object || json_is_null(object)) return MX_OK;
  if (!json_is_object(object)) return mx_fail(err, MX_ERR_ARG, "%s: quant.train: expected an object of training keys", path);
  json_object_foreach(object, name, v) {
    char text[256];
    if (json_is_null(v)) continue; /* its default, as everywhere */
    if (json_is_string(v))
      snprintf(text, sizeof text, "%s=%s", name, json_string_value(v));
    else if (json_is_boolean(v))
      snprintf(text, sizeof text, "%s=%s", name, json_is_true(v) ? "on" : "off");
    else if (json_is_number(v))
      snprintf(text, sizeof text, "%s=%.17g", name, json_number_value(v));
    else
      return mx_fail(err, MX_ERR_ARG, "%s: quant.train.%s: expected a string or a number", path, name);
    if (out->n == MOST_ITEMS || !(out->own[out->n] = strdup(text))) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
    out->at[out->n] = out->own[out->n];
    out->n++;
  }
  return MX_OK;
}

static int is_given(const json_t *quant, const char *name) {
  const json_t *v = json_object_get(quant, name);
  return v && !json_is_null(v);
}

static mx_status text_of(const char **out, const json_t *quant, const char *name, const char *path, mx_error *err) {
  const json_t *v = json_object_get(quant, name);
  *out = json_string_value(v);
  return *out || !is_given(quant, name) ? MX_OK : mx_fail(err, MX_ERR_ARG, "%s: quant.%s: expected a string", path, name);
}

/* The key of "quant" that makes a text no recipe: the first that gives this error when those before it have been read. */
static const char *key_at_fault(const mx_linear_text *text, const char *said) {
  mx_linear_text part = {0};
  for (int i = 0;; i++) {
    static const char *const names[] = {"", ".set", ".operands", ".train", ".gemms", ".accum"};
    if (i == 0) part.preset = text->preset, part.recipe = text->recipe;
    if (i == 1) part.set = text->set, part.n_set = text->n_set;
    if (i == 2) part.operands = text->operands, part.n_operands = text->n_operands;
    if (i == 3) part.train = text->train, part.n_train = text->n_train;
    if (i == 4) part.gemms = text->gemms;
    if (i == 5) return names[i];
    mx_linear_recipe ignored;
    mx_error why;
    if (mx_linear_resolve(&ignored, NULL, &part, &why) && !strcmp(why.text, said))
      return i ? names[i] : text->preset && text->recipe ? "" : text->preset ? ".preset" : ".recipe";
  }
}

static mx_status read_high(mxi_config *c, const json_t *list, const char *path, mx_error *err) {
  items names = {0};
  const mx_status status = strings(&names, list, path, "quant.high", err);
  if (status || !names.n) return status;
  if (!(c->high = calloc(names.n, sizeof *c->high))) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  for (; c->n_high < names.n; c->n_high++)
    if (!(c->high[c->n_high] = strdup(names.at[c->n_high]))) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  return MX_OK;
}

/* All keys of a recipe's specs, which tell two recipes of one text apart. */
static int same_specs(const mx_linear_recipe *a, const mx_linear_recipe *b) {
  char x[4096], y[4096];
  for (int q = 0; q < MX_OPERANDS; q++) {
    mx_spec_print(x, sizeof x, &a->q[q], 1);
    mx_spec_print(y, sizeof y, &b->q[q], 1);
    if (strcmp(x, y) != 0) return 0;
  }
  return 1;
}

/* Does KEY=VALUE say what a spec is without it? */
static int is_default(const char *token) {
  const mx_linear_recipe none = {0};
  mx_linear_recipe r = {0};
  return !mx_spec_parse(&r.q[0], token, NULL) && same_specs(&r, &none);
}

static mx_status keep_variant(mxi_config *c, const mxi_variant *v, mx_error *err) {
  mxi_variant *more = realloc(c->variants, (c->n_variants + 1) * sizeof *more);
  if (!more) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  c->variants = more;
  more[c->n_variants++] = *v;
  return MX_OK;
}

/* Adds the recipe with products summed as without quant.accum. */
static mx_status add_other_sums(mxi_config *c, mx_error *err) {
  mxi_variant v = {.name = "quant.accum", .recipe = c->recipe};
  v.recipe.model = MX_GEMM_F32_BLOCK;
  return c->recipe.model == MX_GEMM_F32_BLOCK ? MX_OK : keep_variant(c, &v, err);
}

/* Makes the recipe without the token of n characters at `at` of list[item]. Nothing is added if the result is no recipe, or if the token sets no
 * key that is on. */
static mx_status add_variant(mxi_config *c, const mx_linear_text *text, const char **list, size_t item, size_t at, size_t n, mx_error *err) {
  const char *whole = list[item];
  const size_t of_operand = whole[0] == 'Q' && whole[1] && whole[2] == ':' ? 3 : 0, key = strcspn(whole + at, "=");
  char *token = strndup(whole + at, n), *rest = NULL;
  if (!token || asprintf(&rest, "%.*s%s", (int)at, whole, whole + at + n) < 0) {
    free(token);
    return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  }
  mxi_variant v = {.same = 0};
  mx_error ignored;
  snprintf(v.name, sizeof v.name, "%.*s%.*s", (int)of_operand, whole, (int)key, whole + at);
  list[item] = rest;
  const int on = strncmp(token, "preset=", 7) != 0 && !is_default(token) && !mx_linear_resolve(&v.recipe, &c->unit, text, &ignored);
  list[item] = whole;
  free(token);
  free(rest);
  if (!on) return MX_OK;
  v.same = same_specs(&v.recipe, &c->recipe);
  return keep_variant(c, &v, err);
}

/* Makes one such recipe for each KEY=VALUE of a list. */
static mx_status add_variants(mxi_config *c, const mx_linear_text *text, const char **list, size_t n, mx_error *err) {
  for (size_t i = 0; i < n; i++) {
    size_t at = list[i][0] == 'Q' && list[i][1] && list[i][2] == ':' ? 3 : 0;
    while (list[i][at += strspn(list[i] + at, ", ")]) {
      const size_t of_token = strcspn(list[i] + at, ", ");
      const mx_status status = add_variant(c, text, list, i, at, of_token, err);
      if (status) return status;
      at += of_token;
    }
  }
  return MX_OK;
}

static mx_status read_quant(mxi_config *c, const json_t *quant, const char *path, mx_error *err) {
  const char *name;
  json_t *v;
  if (!quant || json_is_null(quant)) return MX_OK;
  if (!json_is_object(quant)) return mx_fail(err, MX_ERR_ARG, "%s: quant: expected an object, or null for FP32", path);
  json_object_foreach((json_t *)quant, name, v) {
    char whole[128];
    snprintf(whole, sizeof whole, "quant.%s", name);
    int known = 0;
    for (size_t i = 0; i < N_QUANT_KEYS; i++) known |= !strcmp(quant_keys[i].name, whole);
    if (!known) return unknown(path, whole, err);
  }
  items set = {0}, operands = {0}, train = {0}, gemms = {0};
  char products[128] = "";
  const char *preset = NULL, *recipe = NULL, *accum = NULL;
  mx_status status = text_of(&preset, quant, "preset", path, err);
  if (!status) status = text_of(&recipe, quant, "recipe", path, err);
  if (!status) status = text_of(&accum, quant, "accum", path, err);
  if (!status) status = strings(&set, json_object_get(quant, "set"), path, "quant.set", err);
  if (!status) status = strings(&operands, json_object_get(quant, "operands"), path, "quant.operands", err);
  if (!status) status = pairs(&train, json_object_get(quant, "train"), path, err);
  if (!status) status = strings(&gemms, json_object_get(quant, "gemms"), path, "quant.gemms", err);
  if (!status) status = read_high(c, json_object_get(quant, "high"), path, err);
  for (size_t i = 0; i < gemms.n; i++)
    snprintf(products + strlen(products), sizeof products - strlen(products), "%s%s", i ? "," : "", gemms.at[i]);
  const mx_linear_text text = {.preset = preset,
                               .recipe = recipe,
                               .set = set.at,
                               .operands = operands.at,
                               .train = train.at,
                               .n_set = set.n,
                               .n_operands = operands.n,
                               .n_train = train.n,
                               .gemms = is_given(quant, "gemms") ? products : NULL,
                               .accum = accum};
  mx_error why;
  if (!status && (status = mx_linear_resolve(&c->recipe, &c->unit, &text, &why)))
    mx_fail(err, status, "%s: quant%s: %s", path, key_at_fault(&text, why.text), why.text);
  if (!status) status = add_variants(c, &text, set.at, set.n, err);
  if (!status) status = add_variants(c, &text, operands.at, operands.n, err);
  for (size_t i = 0; i < train.n && !status; i++)
    if (!strncmp(train.at[i], "sr.policy=", 10)) status = add_variant(c, &text, train.at, i, 0, strlen(train.at[i]), err);
  if (!status) status = add_other_sums(c, err);
  if (!status) c->quantised = 1;
  for (size_t i = 0; i < train.n; i++) free(train.own[i]);
  return status;
}

/* ---- the whole ---- */

/* The first key of a section; NULL if there is no such section. */
static const char *first_key(const char *section) {
  const size_t n = strlen(section);
  for (size_t i = 0; i < N_KEYS; i++)
    if (!strncmp(keys[i].key.name, section, n) && keys[i].key.name[n] == '.') return keys[i].key.name;
  return NULL;
}

/* Refuses what is not an object, and an object whose name is no section's, be it empty. */
static mx_status check_section(const char *path, const char *name, const json_t *inner, mx_error *err) {
  const char *first = first_key(name);
  char near[160], sections[256] = "quant";
  if (first && json_is_object(inner)) return MX_OK;
  if (first) return mx_fail(err, MX_ERR_ARG, "%s: %s: expected an object of keys, such as %s", path, name, first);
  for (size_t i = 0; i < N_KEYS; i++) {
    const size_t n = strcspn(keys[i].key.name, "."), at = strlen(sections);
    if (i && !strncmp(keys[i].key.name, keys[i - 1].key.name, n + 1)) continue; /* keys of a section stand together */
    snprintf(sections + at, sizeof sections - at, "|%.*s", (int)n, keys[i].key.name);
  }
  mx_choice_nearest(near, sizeof near, sections, name);
  return mx_fail(err, MX_ERR_KEY, "%s: unknown section '%s'; nearest: %s", path, name, near);
}

static mx_status check_names(const json_t *root, const char *path, mx_error *err) {
  const char *section, *name;
  json_t *inner, *v;
  json_object_foreach((json_t *)root, section, inner) {
    if (!strcmp(section, "quant")) continue;
    const mx_status status = check_section(path, section, inner, err);
    if (status) return status;
    json_object_foreach(inner, name, v) {
      char whole[128];
      snprintf(whole, sizeof whole, "%s.%s", section, name);
      int known = 0;
      for (size_t i = 0; i < N_KEYS; i++) known |= !strcmp(keys[i].key.name, whole);
      if (!known) return unknown(path, whole, err);
    }
  }
  return MX_OK;
}

static const json_t *value_of(const json_t *root, const char *name) {
  char section[32];
  const size_t n = strcspn(name, ".");
  memcpy(section, name, n);
  section[n] = 0;
  return json_object_get(json_object_get(root, section), name + n + 1);
}

/* Refuses numbers outside bounds that the table of keys has no column for. */
static mx_status check_bounds(const mxi_config *c, const char *path, mx_error *err) {
  const struct {
    const char *key;
    double is, above, most;
    int below; /* the largest itself is refused too */
    const char *expected;
  } bounds[] = {{"data.split", c->data.split, 0, 1, 0, "a share above 0, at most 1"},
                {"data.beta_first", c->data.beta_first, -1, 1, 1, "a share below 1"},
                {"data.beta_last", c->data.beta_last, -1, 1, 1, "a share below 1"},
                {"optimizer.beta1", c->optim.beta1, -1, 1, 1, "a decay below 1"},
                {"optimizer.beta2", c->optim.beta2, -1, 1, 1, "a decay below 1"},
                {"optimizer.theta", c->optim.theta, -1, 1, 1, "a decay below 1"},
                {"optimizer.gamma1", c->optim.gamma1, -1, 1, 1, "a decay below 1"},
                {"optimizer.gamma2", c->optim.gamma2, -1, 1, 1, "a decay below 1"},
                {"optimizer.momentum", c->optim.momentum, -1, 1, 1, "a share below 1"},
                /* The inverse must be a binary32, or gradients of 0 become NaN. */
                {"loss.scale", c->loss.scale, 0x1p-127, DBL_MAX, 0, "a factor above 2^-127"},
                {"loss.init", c->loss.init, 0x1p-127, DBL_MAX, 0, "a factor above 2^-127"},
                {"loss.backoff", c->loss.backoff, 0, 1, 1, "a factor above 0 and below 1"}};
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    if (!(bounds[i].is > bounds[i].above && bounds[i].is <= bounds[i].most && !(bounds[i].below && bounds[i].is >= bounds[i].most)))
      return mx_fail(err, MX_ERR_ARG, "%s: %s is %.9g, expected %s", path, bounds[i].key, bounds[i].is, bounds[i].expected);
  return MX_OK;
}

/* Derives what follows from other keys, and refuses keys that exclude each other. */
static mx_status settle(mxi_config *c, const char *path, mx_error *err) {
  if (c->model.bias < 0) c->model.bias = c->model.kind != MXI_LLAMA;
  if (c->model.tied < 0) c->model.tied = c->model.kind == MXI_GPT2;
  if (!c->model.ffn) c->model.ffn = 4 * c->model.width;
  if (!c->train.seed_data) c->train.seed_data = c->train.seed;
  if (!c->train.seed_init) c->train.seed_init = c->train.seed;
  if (!c->train.seed_quant) c->train.seed_quant = c->train.seed;
  if (c->model.kind == MXI_LLAMA && c->model.bias) return mx_fail(err, MX_ERR_CONFLICT, "%s: model.bias: llama has no biases", path);
  if (c->model.kind != MXI_LLAMA && c->model.kind != MXI_GPT2 && !c->model.bias)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: model.bias: gpt2 alone can be without biases", path);
  const int has_heads = c->model.kind == MXI_LLAMA || c->model.kind == MXI_GPT2;
  if (has_heads && c->model.width % c->model.heads)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: model.heads is %zu, expected a divisor of model.width, %zu", path, c->model.heads,
                   c->model.width);
  if (c->model.kind == MXI_LLAMA && c->model.width / c->model.heads % 2)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: model.width / model.heads is %zu, expected an even head width for the rotary embedding", path,
                   c->model.width / c->model.heads);
  if (!c->data.text && (has_heads || c->model.kind == MXI_BYTE_MLP))
    return mx_fail(err, MX_ERR_ARG, "%s: data.text: expected the path of a text", path);
  if (!c->data.file && c->model.kind == MXI_DIGITS)
    return mx_fail(err, MX_ERR_ARG, "%s: data.file: expected the path of a .safetensors file of images and labels", path);
  const mx_status bounds = check_bounds(c, path, err);
  if (bounds) return bounds;
  if (c->schedule.kind == MXI_COSINE && c->schedule.decay_steps && c->schedule.decay_steps <= c->schedule.warmup)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: schedule.decay_steps is %zu, expected more than schedule.warmup, %zu, or 0", path,
                   c->schedule.decay_steps, c->schedule.warmup);
  if (c->qaf.when != MXI_QAF_NEVER && !c->quantised)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: qaf.when: without quant there is nothing to switch", path);
  if (c->qaf.when == MXI_QAF_THRESHOLD && !c->threshold.every)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: qaf.when=threshold: threshold.every is 0, so that nothing is measured", path);
  if (c->model.smooth && c->model.kind != MXI_LLAMA)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: model.smooth_swiglu: llama alone has a SwiGLU", path);
  if (c->model.smooth && c->quantised && c->recipe.q2_ema != 0)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: model.smooth_swiglu changes the weight that q2.ema averages, expected one of the two", path);
  const int ramps = c->quantised && c->recipe.ramp == MX_RAMP_ON;
  if (ramps && c->optim.kind != MXI_ADAMW) return mx_fail(err, MX_ERR_CONFLICT, "%s: ramp is of optimizer.kind=adamw", path);
  if (ramps && c->optim.clip > 0)
    return mx_fail(err, MX_ERR_CONFLICT,
                   "%s: ramp sums gradients over steps, which optimizer.clip would scale one by one, expected one of the two", path);
  if (ramps && c->model.smooth)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: model.smooth_swiglu changes the weight that ramp measures, expected one of the two", path);
  if (c->loss.dynamic && c->loss.scale != 1)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: loss.scale is a fixed factor; with loss.scaling=dynamic the first one is loss.init", path);
  return MX_OK;
}

/* A file beside the configuration, by its whole path, so that the run's config.json names it from wherever that lies. One that is not there keeps
 * the name it was given, for the message. */
static mx_status beside(char **text, const char *config, mx_error *err) {
  if (!*text || **text == '/') return MX_OK;
  const char *slash = strrchr(config, '/');
  char *joined;
  if (asprintf(&joined, "%.*s%s", slash ? (int)(slash - config + 1) : 0, config, *text) < 0) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  free(*text);
  char *whole = realpath(joined, NULL);
  if (whole) free(joined);
  *text = whole ? whole : joined;
  return MX_OK;
}

static mx_status resolve(mxi_config *c, const json_t *root, mx_error *err) {
  json_t *out = json_object();
  int failed = !out;
  for (size_t i = 0; i < N_KEYS; i++) {
    char section[32];
    const char *name = keys[i].key.name;
    const size_t n = strcspn(name, ".");
    memcpy(section, name, n);
    section[n] = 0;
    if (!json_object_get(out, section)) failed |= json_object_set_new(out, section, json_object());
    failed |= json_object_set_new(json_object_get(out, section), name + n + 1, json_of(c, &keys[i]));
  }
  json_t *quant = json_object_get(root, "quant");
  if (c->quantised) {
    json_t *own = json_deep_copy(quant), *specs = json_object();
    for (int q = 0; q < MX_OPERANDS; q++) {
      char text[4096], name[3] = {'Q', (char)('1' + q), 0};
      mx_spec_print(text, sizeof text, &c->recipe.q[q], 1);
      failed |= json_object_set_new(specs, name, json_string(text));
    }
    json_t *train = json_object();
    for (size_t i = 0; mx_train_key_at(i); i++) {
      char text[64];
      mx_train_key_text(text, sizeof text, &c->recipe, i);
      failed |= json_object_set_new(train, mx_train_key_at(i)->name, json_string(text));
    }
    failed |= json_object_set_new(out, "quant", own);
    json_t *spelled = json_object();
    failed |= json_object_set_new(spelled, "specs", specs);
    failed |= json_object_set_new(spelled, "train", train);
    json_t *gemms = json_array(), *high = json_array();
    for (int p = 0; p < MX_PRODUCTS; p++)
      if (!c->recipe.off[p]) failed |= json_array_append_new(gemms, json_string(mx_linear_product_name(p)));
    for (size_t i = 0; i < c->n_high; i++) failed |= json_array_append_new(high, json_string(c->high[i]));
    const char *accum = json_string_value(json_object_get(own, "accum"));
    failed |= json_object_set_new(spelled, "gemms", gemms);
    failed |= json_object_set_new(spelled, "high", high);
    failed |= json_object_set_new(spelled, "accum", json_string(accum ? accum : mx_gemm_model_name(c->recipe.model)));
    failed |= json_object_set_new(out, "resolved", spelled);
  }
  c->json = out; /* freed with the configuration */
  return failed ? mx_fail(err, MX_ERR_NOMEM, "out of memory") : MX_OK;
}

mx_status mxi_config_read(mxi_config *c, const char *path, const char *const *set, size_t n_set, mx_error *err) {
  *c = (mxi_config){0};
  json_error_t why;
  errno = 0;
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
  if (!root && why.line <= 0) return mx_fail(err, MX_ERR_IO, "%s: %s", path, errno ? strerror(errno) : why.text);
  if (!root) return mx_fail(err, MX_ERR_FORMAT, "%s: line %d, column %d: %s", path, why.line, why.column, why.text);
  mx_status status = json_is_object(root) ? MX_OK : mx_fail(err, MX_ERR_FORMAT, "%s: expected a JSON object", path);
  json_t *stated = json_incref(json_object_get(root, "resolved")); /* of a config.json that a run wrote */
  json_object_del(root, "resolved");
  for (size_t i = 0; i < n_set && !status; i++) {
    status = mxi_assign(root, set[i], err);
    if (strncmp(set[i], "quant", 5)) continue;
    json_decref(stated); /* it was made of another "quant" */
    stated = NULL;
  }
  if (!status) status = check_names(root, path, err);
  for (size_t i = 0; i < N_KEYS && !status; i++) {
    const json_t *v = value_of(root, keys[i].key.name);
    put_default(c, &keys[i]);
    if (v && !json_is_null(v)) status = read_key(c, &keys[i], v, path, err);
  }
  if (!status) status = read_quant(c, json_object_get(root, "quant"), path, err);
  if (!status) status = settle(c, path, err);
  if (!status) status = beside(&c->data.text, path, err);
  if (!status) status = beside(&c->data.file, path, err);
  if (!status) status = resolve(c, root, err);
  if (!status && stated) status = mxi_resolved_check(c, stated, path, err);
  json_decref(stated);
  json_decref(root);
  if (status) mxi_config_free(c);
  return status;
}

void mxi_config_free(mxi_config *c) {
  free(c->data.text);
  free(c->data.file);
  free(c->metrics.layers);
  free(c->variants);
  for (size_t i = 0; i < c->n_high; i++) free(c->high[i]);
  free(c->high);
  json_decref(c->json);
  *c = (mxi_config){0};
}

mx_status mxi_config_write(const mxi_config *c, const char *path, mx_error *err) {
  char *text = json_dumps(c->json, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  mx_text file;
  mx_status status = text ? mx_text_begin(&file, path, err) : mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status) {
    fprintf(file.to, "%s\n", text);
    status = mx_text_end(&file, err);
  }
  free(text);
  return status;
}

mx_status mxi_config_matches(const mxi_config *c, const char *path, mx_error *err) {
  static const char *const free_keys[] = {"train.steps",      "train.eval_every", "train.eval_batches", "train.checkpoint_every",
                                          "train.divergence", "data.eval_rows",   "metrics.every",      "metrics.layers"};
  json_error_t why;
  json_t *old = json_load_file(path, 0, &why);
  if (!old) return mx_fail(err, MX_ERR_FORMAT, "%s: %s", path, why.text);
  mx_status status = MX_OK;
  const json_t *steps = value_of(old, "train.steps");
  if (c->schedule.kind != MXI_CONSTANT && !c->schedule.decay_steps && (size_t)json_integer_value(steps) != c->train.steps)
    status = mx_fail(err, MX_ERR_CONFLICT,
                     "%s: train.steps is another than the %" JSON_INTEGER_FORMAT " that the run was begun with, over which its rate decays",
                     path, json_integer_value(steps));
  for (size_t i = 0; i < N_KEYS && !status; i++) {
    int may_differ = 0;
    for (size_t k = 0; k < sizeof free_keys / sizeof *free_keys; k++) may_differ |= !strcmp(free_keys[k], keys[i].key.name);
    if (!may_differ && !json_equal((json_t *)value_of(old, keys[i].key.name), (json_t *)value_of(c->json, keys[i].key.name)))
      status = mx_fail(err, MX_ERR_CONFLICT, "%s: %s is another than the run was begun with", path, keys[i].key.name);
  }
  if (!status && !json_equal(json_object_get(old, "resolved"), json_object_get(c->json, "resolved")) &&
      (json_object_get(old, "resolved") || json_object_get(c->json, "resolved")))
    status = mx_fail(err, MX_ERR_CONFLICT, "%s: quant is another than the run was begun with", path);
  json_decref(old);
  return status;
}

/* ---- keys that were given ---- */

int mxi_config_is_default(const mxi_config *c, const char *name) {
  size_t i = 0;
  while (i < N_KEYS && strcmp(keys[i].key.name, name)) i++;
  if (i == N_KEYS) return 1;
  mxi_config plain = *c;
  mx_error ignored;
  if (keys[i].kind == TEXT) return !*(char *const *)((const char *)c + keys[i].offset);
  put_default(&plain, &keys[i]);
  settle(&plain, "", &ignored); /* a default may follow from other keys */
  json_t *is = json_of(c, &keys[i]), *fallback = json_of(&plain, &keys[i]);
  const int same = json_equal(is, fallback);
  json_decref(is);
  json_decref(fallback);
  return same;
}
