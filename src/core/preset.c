/* Looks up presets by name. */
#include <string.h>

#include "mxgold/nearest.h"
#include "mxgold/spec.h"

#define MX_PRESET(name, keys, status, source) {name, keys, NULL, MX_PRESET_##status, source},
#define MX_ALIAS(name, of, status, source) {name, NULL, of, MX_PRESET_##status, source},
static const mx_preset presets[] = {
#include "formats/presets.def"
};

size_t mx_preset_count(void) { return sizeof presets / sizeof presets[0]; }
const mx_preset *mx_preset_at(size_t index) { return index < mx_preset_count() ? &presets[index] : NULL; }
static const char *preset_name(const void *set, size_t index) {
  (void)set;
  return index < mx_preset_count() ? presets[index].name : NULL;
}

mx_status mx_preset_find(mx_spec *out, const char *name, mx_error *err) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    if (strcmp(presets[i].name, name)) continue;
    if (presets[i].alias_of) return mx_preset_find(out, presets[i].alias_of, err);
    mx_spec spec = {0};
    const mx_status status = mx_spec_parse(&spec, presets[i].keys, err);
    if (!status) *out = spec;
    return status;
  }
  char near[160];
  mx_nearest(near, sizeof near, name, preset_name, NULL);
  return mx_fail(err, MX_ERR_KEY, "preset '%s' is unknown, nearest: %s", name, near);
}
