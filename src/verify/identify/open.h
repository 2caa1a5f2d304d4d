/* Declares which keys an answer with faults leaves open. */
#ifndef MX_VERIFY_IDENTIFY_OPEN_H
#define MX_VERIFY_IDENTIFY_OPEN_H

#include "verify/identify/inquiry.h"
#include "mxgold/identify.h"

/** The keys, a bit each, that could have another value beside the faults of b with the same bytes: of those values that the search tries. q: an inquiry
 *  under b's preset. */
uint64_t mxi_keys_open_beside(inquiry *q, const mx_bug *b, deadline until);

#endif
