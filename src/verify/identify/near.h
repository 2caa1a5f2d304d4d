/* Declares the choice, among specs that give every byte, of the one with the fewest keys to change in a preset. */
#ifndef MX_VERIFY_IDENTIFY_NEAR_H
#define MX_VERIFY_IDENTIFY_NEAR_H

#include "verify/identify/inquiry.h"

/** q->best gives every byte and is not a preset: look for a preset with one key of it, or two, that gives every byte too; then q->best is that spec.
 *  as_good: does a spec give every byte? Returns the preset's name, NULL if there is none. */
const char *mxi_near_preset(inquiry *q, int (*as_good)(inquiry *q, const mx_spec *t));

#endif
