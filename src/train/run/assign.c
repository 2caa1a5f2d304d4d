/* Reads KEY=VALUE of a command line into a configuration. */
#include "train/run/assign.h"

#include <stdlib.h>
#include <string.h>

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The text with a 0 in front of each number that begins with its point, which JSON does not allow. What is quoted stays. */
static char *with_zeros(const char *text) {
  char *out = malloc(2 * strlen(text) + 1), *to = out, before = 0;
  int quoted = 0;
  for (; out && *text; before = *text++) {
    if (*text == '"' && before != '\\') quoted = !quoted;
    if (*text == '.' && !quoted && is_digit(text[1]) && strchr("-:,[ \t", before)) *to++ = '0'; /* a 0 ends strchr's list: the first of all */
    *to++ = *text;
  }
  if (out) *to = 0;
  return out;
}

static mx_status value_of(json_t **out, const char *name, const char *text, mx_error *err) {
  json_error_t why;
  char *zeros = with_zeros(text);
  if (!zeros) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  *out = json_loads(zeros, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
  free(zeros);
  if (!*out && *text && strchr("{[\"", *text))
    return mx_fail(err, MX_ERR_FORMAT, "--set %s: '%.60s' begins as JSON and is none: %s", name, text, why.text);
  if (!*out) *out = json_string(text);
  return *out ? MX_OK : mx_fail(err, MX_ERR_KEY, "--set %s: expected text in UTF-8", name);
}

/* The object of that name in another, made if there is none. */
static json_t *inside(json_t *object, const char *name) {
  json_t *inner = json_object_get(object, name);
  if (json_is_object(inner)) return inner;
  return json_object_set_new(object, name, json_object()) ? NULL : json_object_get(object, name);
}

mx_status mxi_assign(json_t *root, const char *text, mx_error *err) {
  static const char *const nested = "train.";
  const char *equals = strchr(text, '=');
  char name[128];
  const size_t n = equals ? (size_t)(equals - text) : 0;
  if (!n) return mx_fail(err, MX_ERR_KEY, "--set '%.80s': expected KEY=VALUE", text);
  if (n >= sizeof name) return mx_fail(err, MX_ERR_KEY, "--set '%.80s...': the key is too long", text);
  memcpy(name, text, n);
  name[n] = 0;
  json_t *value;
  const mx_status status = value_of(&value, name, equals + 1, err);
  if (status) return status;
  char *key = strchr(name, '.');
  json_t *at = root;
  if (key) {
    *key++ = 0;
    at = inside(root, name);
    if (at && !strcmp(name, "quant") && !strncmp(key, nested, strlen(nested))) at = inside(at, "train"), key += strlen(nested);
  }
  if (at && !json_object_set_new(at, key ? key : name, value)) return MX_OK;
  if (!at) json_decref(value);
  return mx_fail(err, MX_ERR_KEY, "--set '%.80s': cannot be set", text);
}
