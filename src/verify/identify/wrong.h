/* Declares what is said of blocks that are wrong under the best spec. wrong: an entry a block of the inquiry. */
#ifndef MX_VERIFY_IDENTIFY_WRONG_H
#define MX_VERIFY_IDENTIFY_WRONG_H

#include "verify/identify/inquiry.h"

/** If a few are, and neither their rows, columns nor numbers have anything in common, the bug says how many, and which lanes of them, and that no rule
 *  is known. */
void mxi_note_scattered(mx_bug *bug, const inquiry *q, const uint8_t *wrong);
/** The one of fewest elements that are not zero. */
void mxi_smallest_wrong(mx_identity *out, const inquiry *q, const uint8_t *wrong);

#endif
