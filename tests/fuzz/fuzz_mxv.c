/* Feeds any bytes to the reader of .mxv: what it accepts must be printed as the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/vector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  mx_vectors v;
  if (mx_vectors_parse(&v, "fuzz", data, n, NULL)) return 0;
  char *text;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  if (!to) abort();
  if (mx_vectors_print(&v, to)) abort();
  fclose(to);
  if (length != n || memcmp(text, data, n)) abort();
  free(text);
  mx_vectors_free(&v);
  return 0;
}
