/* Declares which elements share a random number, as far as their roundings show it. */
#ifndef MX_VERIFY_IDENTIFY_SEARCH_SHARING_H
#define MX_VERIFY_IDENTIFY_SEARCH_SHARING_H

#include <stddef.h>
#include <stdint.h>

#include "verify/trial/deadline.h"

/* An element between two codes. */
typedef struct sharer {
  uint32_t row, col;
  double d;         /* its place between them, from 0 to 1, by magnitude */
  int up, negative; /* the one of larger magnitude was stored */
} sharer;

/** Writes what has one number each, as "row" or "column, alike in all rows": the largest such groups in each of which one threshold explains which elements
 *  went up. Writes "" where elements seem to have numbers of their own. Returns how many numbers there are. */
size_t mxi_random_sharing(char *out, size_t size, const sharer *all, size_t n, size_t rows, size_t cols, shortage *lack);

#endif
