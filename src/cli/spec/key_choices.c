/* Lists the words that a key of a spec takes. */
#include "cli/spec/key_choices.h"

#include <string.h>

#include "mxgold/spec.h"

const char *key_choice(const char *key, size_t index) {
  for (size_t k = 0; mx_key_name(k); k++)
    if (!strcmp(mx_key_name(k), key)) return mx_key_choice(k, index, NULL, NULL);
  return NULL;
}

int key_choice_find(const char *key, const char *choice) {
  const char *name;
  for (size_t i = 0; (name = key_choice(key, i)); i++)
    if (!strcmp(name, choice)) return (int)i;
  return -1;
}
