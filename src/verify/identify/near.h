/* Declares the choice, among specs that give every byte, of the one with the fewest keys to change in a preset. */
#ifndef MX_VERIFY_IDENTIFY_NEAR_H
#define MX_VERIFY_IDENTIFY_NEAR_H

#include "verify/identify/inquiry.h"

/** If q->best gives every byte and is no preset, looks for a preset that also gives every byte once one, two or three of its keys are changed;
 *  q->best then becomes that spec. as_good says whether a spec gives every byte. Returns the preset's name, NULL if there is none. */
const char *mxi_near_preset(inquiry *q, int (*as_good)(inquiry *q, const mx_spec *t));

#endif
