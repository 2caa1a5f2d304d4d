/* Declares the test whether numbers that were read off the data hold on others. */
#ifndef MX_VERIFY_IDENTIFY_NUMBERS_H
#define MX_VERIFY_IDENTIFY_NUMBERS_H

#include "verify/identify/inquiry.h"

/** Would each number of the exact spec of q be found again on other data? It is certain if it is so plain that chance would not put it into the interval
 *  of those with the same bytes, or if it is a preset's. as_good_as: does a spec give the same bytes? */
int mxi_numbers_hold(inquiry *q, int (*as_good_as)(inquiry *, const mx_spec *));

#endif
