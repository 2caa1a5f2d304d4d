/* Declares the search for thresholds of the rounding that lie elsewhere than in the middle of two neighbours. */
#ifndef MX_VERIFY_FAULT_SEARCH_THRESHOLDS_H
#define MX_VERIFY_FAULT_SEARCH_THRESHOLDS_H

#include "verify/fault/search/view.h"

typedef struct thresholds {
  mx_fault fault[MX_FAULTS];
  size_t n;      /* 0: no thresholds give the codes */
  double cost;   /* in bits, of all of them */
  uint64_t held; /* bits for the one that has least, of cells that were not fitted to */
} thresholds;

/** Finds the thresholds, as many as there may be faults beside those of the view, under which the codes follow from the stored scales. All codes of
 *  the view must have been made. */
void mxi_find_thresholds(thresholds *out, view *v);

#endif
