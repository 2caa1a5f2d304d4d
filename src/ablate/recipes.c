/* Looks up recipes of six operands by name. */
#include <stdio.h>
#include <string.h>

#include "mxgold/ablate.h"

#define MX_RECIPE(name, keys, operands, train, source) {name, keys, operands, train, source},
static const mx_recipe recipes[] = {
#include "formats/recipes.def"
};

size_t mx_recipe_count(void) { return sizeof recipes / sizeof *recipes; }
const mx_recipe *mx_recipe_at(size_t index) { return index < mx_recipe_count() ? &recipes[index] : NULL; }

int mx_recipe_find(const char *name) {
  for (size_t i = 0; i < mx_recipe_count(); i++)
    if (!strcmp(recipes[i].name, name)) return (int)i;
  return -1;
}

mx_status mx_recipe_base(mx_spec *out, const mx_recipe *recipe, mx_error *err) {
  if (*recipe->keys && !strchr(recipe->keys, '=')) return mx_preset_find(out, recipe->keys, err);
  mx_spec spec = {0};
  const mx_status status = mx_spec_parse(&spec, recipe->keys, err);
  if (!status) *out = spec;
  return status;
}

mx_status mx_recipe_operands(mx_spec spec[6], const mx_recipe *recipe, mx_error *err) {
  for (const char *at = recipe->operands; *at;) {
    char keys[200];
    const size_t n = strcspn(at, ";");
    if (at[0] != 'Q' || at[1] < '1' || at[1] > '6' || at[2] != ':' || n - 3 >= sizeof keys)
      return mx_fail(err, MX_ERR_KEY, "%s: '%.40s' is not an operand", recipe->name, at);
    memcpy(keys, at + 3, n - 3);
    keys[n - 3] = 0;
    mx_status status = mx_spec_parse(&spec[at[1] - '1'], keys, err);
    if (!status) status = mx_spec_check(&spec[at[1] - '1'], err);
    if (status) return status;
    at += n + (at[n] == ';');
  }
  return MX_OK;
}
