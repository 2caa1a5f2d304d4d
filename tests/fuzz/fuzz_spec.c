/* Feeds any text to the spec parsers, which refuse with a line and leave the spec as it was, or give a spec that prints and parses to itself. */
#include <stdlib.h>
#include <string.h>

#include "mxgold/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define MUST(what)                                                                                                                             \
  do {                                                                                                                                         \
    if (!(what)) abort();                                                                                                                      \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
  char *text = malloc(n_bytes + 1);
  if (!text) return 0;
  memcpy(text, data, n_bytes);
  text[n_bytes] = 0;
  mx_spec spec = {0}, before = {0};
  mx_error err = {MX_OK, ""};
  mx_status s = n_bytes && *text == '{' ? mx_spec_parse_json(&spec, text, n_bytes, &err) : mx_spec_parse(&spec, text, &err);
  if (s) {
    MUST(err.status == s && *err.text && !strchr(err.text, '\n') && mx_spec_equal(&spec, &before));
  } else {
    size_t n = mx_spec_print(NULL, 0, &spec, 1);
    char *printed = malloc(n + 1);
    MUST(printed && mx_spec_print(printed, n + 1, &spec, 1) == n);
    mx_spec again = {0};
    MUST(mx_spec_parse(&again, printed, &err) == MX_OK && mx_spec_equal(&spec, &again));
    free(printed);
  }
  (void)mx_spec_check(&spec, &err);
  free(text);
  return 0;
}
