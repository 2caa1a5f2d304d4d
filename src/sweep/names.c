/* Refuses unknown keys of an object of the sweep's file, and names the nearest. */
#include <string.h>

#include <jansson.h>

#include "mxgold/nearest.h"
#include "sweep/internal.h"

mx_status mxi_only(json_t *object, const char *const *names, const char *path, const char *where, mx_error *err) {
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    int known = 0;
    for (size_t i = 0; names[i]; i++) known |= !strcmp(names[i], key);
    if (known) continue;
    char near[160];
    mx_nearest(near, sizeof near, key, mx_name_in_array, names);
    return mx_fail(err, MX_ERR_KEY, "%s: unknown key '%s%s%s'; nearest: %s", path, where, *where ? "." : "", key, near);
  }
  return MX_OK;
}
