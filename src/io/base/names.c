/* Finds names in a list by a hash table with open addressing and XXH3. */
#include "io/base/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static size_t start(const io_names *t, const char *name) { return (size_t)XXH3_64bits(name, strlen(name)) & (t->room - 1); }

size_t mxi_io_names_find(const io_names *t, const char *name, io_name_of *of, const void *set) {
  if (!t->room) return SIZE_MAX;
  for (size_t i = start(t, name); t->slots[i]; i = (i + 1) & (t->room - 1))
    if (!strcmp(of(set, t->slots[i] - 1), name)) return t->slots[i] - 1;
  return SIZE_MAX;
}

static void put(io_names *t, size_t index, const char *name) {
  size_t i = start(t, name);
  while (t->slots[i]) i = (i + 1) & (t->room - 1);
  t->slots[i] = index + 1;
}

int mxi_io_names_add(io_names *t, size_t index, io_name_of *of, const void *set) {
  if (2 * (t->n + 1) > t->room) {
    io_names more = {calloc(t->room ? 2 * t->room : 16, sizeof *t->slots), t->room ? 2 * t->room : 16, t->n};
    if (!more.slots) return 0;
    for (size_t i = 0; i < t->room; i++)
      if (t->slots[i]) put(&more, t->slots[i] - 1, of(set, t->slots[i] - 1));
    free(t->slots);
    *t = more;
  }
  put(t, index, of(set, index));
  t->n++;
  return 1;
}

void mxi_io_names_free(io_names *t) {
  free(t->slots);
  *t = (io_names){0};
}

int mxi_io_ends_with(const char *s, const char *end) {
  const size_t n = strlen(s), m = strlen(end);
  return n >= m && !strcmp(s + n - m, end);
}
