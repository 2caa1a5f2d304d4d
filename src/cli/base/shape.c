/* Shapes as a user types them. */
#include "shape.h"

#include <errno.h>
#include <stdlib.h>

int shape_parse(uint64_t *shape, int max, const char *text) {
  for (int n = 0; n < max; text++) {
    char *end;
    if (*text < '1' || *text > '9') return 0; /* strtoull would take blanks and signs */
    errno = 0;
    shape[n++] = strtoull(text, &end, 10);
    if (errno) return 0;
    if (!*end) return n;
    if (*end != 'x') return 0;
    text = end;
  }
  return 0;
}
