/* Holds "resolved" of a configuration that a run wrote to what its "quant" comes to. */
#include "train/run/resolved.h"

#include <stdlib.h>
#include <string.h>

static mx_status differs(const char *path, const char *part, const char *name, mx_error *err) {
  return mx_fail(err, MX_ERR_CONFLICT, "%s: resolved.%s%s%s is not what quant comes to; expected the same, or a file without \"resolved\"",
                 path, part, *name ? "." : "", name);
}

static int same_spec(const mx_spec *spec, const char *text) {
  mx_spec s = {0};
  return text && !mx_spec_parse(&s, text, NULL) && mx_spec_equal(&s, spec);
}

/* Does the recipe have that value of a training key? It may be spelled in another way. */
static int same_key(const mx_linear_recipe *r, const char *name, const char *value) {
  mx_linear_recipe other = *r;
  mx_error ignored;
  char a[64], b[64];
  if (!value || mx_linear_set(&other, name, value, &ignored)) return 0;
  for (size_t i = 0; mx_train_key_at(i); i++) {
    mx_train_key_text(a, sizeof a, r, i);
    mx_train_key_text(b, sizeof b, &other, i);
    if (strcmp(a, b) != 0) return 0;
  }
  return 1;
}

mx_status mxi_resolved_check(const mxi_config *c, const json_t *stated, const char *path, mx_error *err) {
  const json_t *made = json_object_get(c->json, "resolved");
  if (!json_is_object(stated) || !made) return mx_fail(err, MX_ERR_CONFLICT, "%s: resolved: there is no quant that comes to it", path);
  const char *name;
  json_t *v;
  json_object_foreach(json_object_get(stated, "specs"), name, v) {
    const int q = name[0] == 'Q' && name[1] >= '1' && name[1] <= '6' && !name[2] ? name[1] - '1' : -1;
    if (q < 0 || !same_spec(&c->recipe.q[q], json_string_value(v))) return differs(path, "specs", name, err);
  }
  json_object_foreach(json_object_get(stated, "train"), name, v) {
    if (!same_key(&c->recipe, name, json_string_value(v))) return differs(path, "train", name, err);
  }
  static const char *const whole[] = {"gemms", "high", "accum"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
    const json_t *is = json_object_get(stated, whole[i]);
    if (is && !json_equal((json_t *)is, json_object_get(made, whole[i]))) return differs(path, whole[i], "", err);
  }
  return MX_OK;
}
