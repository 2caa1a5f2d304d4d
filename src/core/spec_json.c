/* Reads a spec from JSON. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mxgold/spec.h"

/* A JSON scalar as the text that mx_spec_set reads. */
static int as_text(char *out, size_t size, const json_t *v) {
  if (json_is_string(v)) return snprintf(out, size, "%s", json_string_value(v)) < (int)size;
  if (json_is_integer(v)) return snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v)) < (int)size;
  if (json_is_real(v)) return snprintf(out, size, "%.17g", json_real_value(v)) < (int)size;
  if (json_is_boolean(v)) return snprintf(out, size, "%s", json_is_true(v) ? "on" : "off") < (int)size;
  return 0;
}

/* Turns the list of `presets NAME --json`, whose rows are {"key": ..., "value": ...}, into an object; NULL if it is something else. */
static json_t *from_rows(const json_t *rows) {
  json_t *keys = json_object();
  size_t i;
  json_t *row;
  json_array_foreach(rows, i, row) {
    const char *key = json_string_value(json_object_get(row, "key"));
    if (!key || json_object_set(keys, key, json_object_get(row, "value"))) {
      json_decref(keys);
      return NULL;
    }
  }
  return keys;
}

mx_status mx_spec_parse_json(mx_spec *spec, const char *text, size_t n_bytes, mx_error *err) {
  json_error_t where;
  json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &where);
  if (!root) return mx_fail(err, MX_ERR_KEY, "line %d: %s", where.line, where.text);
  mx_status status = MX_OK;
  mx_spec work = *spec;
  /* The output of `identify` and `presets` has the keys inside "spec". */
  json_t *inner = json_object_get(root, "spec"), *rows = json_is_array(inner) ? from_rows(inner) : NULL;
  json_t *keys = rows ? rows : json_is_object(inner) ? inner : root;
  const json_t *preset = json_object_get(keys, "preset");
  if (!json_is_object(root))
    status = mx_fail(err, MX_ERR_KEY, "expected an object {\"key\": value, ...}");
  else if (json_is_string(preset))
    status = mx_preset_find(&work, json_string_value(preset), err);
  char all[4096] = "";
  size_t n = 0;
  const char *key;
  json_t *value;
  if (!status) json_object_foreach(keys, key, value) {
      char item[96];
      if (!strcmp(key, "preset")) continue;
      if (!as_text(item, sizeof item, value) || strpbrk(item, " ,\n\t") || strpbrk(key, " ,=\n\t"))
        status = mx_fail(err, MX_ERR_KEY, "\"%.60s\": expected a string or number without blanks", key);
      else
        n += (size_t)snprintf(all + n, n < sizeof all ? sizeof all - n : 0, "%s=%s ", key, item);
      if (n >= sizeof all) status = mx_fail(err, MX_ERR_KEY, "expected fewer keys");
      if (status) break;
    }
  if (!status) status = mx_spec_parse(&work, all, err);
  json_decref(rows);
  json_decref(root);
  if (!status) *spec = work;
  return status;
}
