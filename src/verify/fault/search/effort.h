/* Declares how far the search for faults goes: it runs so many elements, which is the same number on every machine, and slow machines stop by the
 * clock. */
#ifndef MX_VERIFY_FAULT_SEARCH_EFFORT_H
#define MX_VERIFY_FAULT_SEARCH_EFFORT_H

#include <stdint.h>

#include "verify/trial/deadline.h"

/* A scale takes as long as so many elements. */
enum { SCALE_WORTH = 4 };

typedef struct effort {
  uint64_t left; /* elements that may still be run */
  deadline until;
  int random_looks; /* how often the numbers of a rounding at random may still be looked for */
} effort;

/** Notes that so many elements were run. */
static inline void effort_spend(effort *e, uint64_t elements) { e->left -= elements < e->left ? elements : e->left; }
/** Must the search end here with what it has? The clock and lack of memory are noted in the record of the call. */
static inline int effort_over(effort *e) {
  if (!e->left) return 1;
  if (!deadline_over(e->until)) return 0;
  e->left = 0;
  return 1;
}

#endif
