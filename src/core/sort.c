/* Sorts numbers. */
#include "core/sort.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void mxi_sort_numbers(double *x, size_t n) { qsort(x, n, sizeof *x, by_size); }
