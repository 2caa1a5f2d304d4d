/* Declares the search for the order of bits under which codes or scales stand in another place of their tiles. */
#ifndef MX_VERIFY_FAULT_SEARCH_PLACES_H
#define MX_VERIFY_FAULT_SEARCH_PLACES_H

#include "verify/fault/search/view.h"

typedef struct moved_bits {
  mx_fault fault;
  double cost;   /* in bits */
  uint64_t held; /* wrong cells in blocks that are not fitted to */
} moved_bits;

/** Reads the order of bits off the codes that the preset gives, and off the scales. Returns 0 if there is none, or the data do not tell which. */
int mxi_find_codes_bits(moved_bits *out, const view *v, const uint8_t *codes);
int mxi_find_scales_bits(moved_bits *out, const view *v);

#endif
