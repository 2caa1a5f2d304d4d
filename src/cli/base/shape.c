/* Reads shapes that a user types, and says how a shape fits the blocks of a spec. */
#include "shape.h"

#include <errno.h>
#include <stdio.h>
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

const char *shape_note(char *room, size_t size, size_t rows, size_t cols, const mx_spec *spec) {
  size_t block_rows, block_cols;
  mx_spec_block(spec, rows, cols, &block_rows, &block_cols);
  const size_t wide = cols % block_cols, high = rows % block_rows;
  *room = 0;
  if (cols < block_cols)
    snprintf(room, size, "rows of %zu in blocks of %zu", cols, block_cols);
  else if (wide)
    snprintf(room, size, "rows of %zu: the last block of %zu holds %zu", cols, block_cols, wide);
  else if (high)
    snprintf(room, size, "%zu rows: the last blocks of %zu hold %zu", rows, block_rows, high);
  return room;
}
