/* Prints one key of a spec. */
#include "cli/spec/value.h"

#include <stdio.h>
#include <string.h>

const char *spec_value(char out[SPEC_VALUE], const mx_spec *spec, const char *key) {
  char text[4096];
  const size_t n = strlen(key);
  *out = 0;
  mx_spec_print(text, sizeof text, spec, 1);
  for (char *save = NULL, *item = strtok_r(text, " ", &save); item; item = strtok_r(NULL, " ", &save))
    if (!strncmp(item, key, n) && item[n] == '=') snprintf(out, SPEC_VALUE, "%s", item + n + 1);
  return out;
}

int spec_needs_amax(const mx_spec *s) {
  const int tensor_wide = s->scale_nan == MX_SCALE_NAN_TENSOR || s->scale_inf == MX_SCALE_INF_TENSOR;
  return tensor_wide || (s->tensor_norm != MX_TENSOR_NORM_NONE && !s->tensor_given);
}
