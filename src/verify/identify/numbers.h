/* Declares the test whether numbers that were read off the data hold on others. */
#ifndef MX_VERIFY_IDENTIFY_NUMBERS_H
#define MX_VERIFY_IDENTIFY_NUMBERS_H

#include "verify/identify/inquiry.h"

/** Would other data lead to the same numbers in the exact spec of q? A number is believed if it is so plain that chance would hardly put it into
 *  the interval of numbers with the same bytes, or if a preset has it. as_good_as says whether a spec gives the same bytes. */
int mxi_numbers_hold(inquiry *q, int (*as_good_as)(inquiry *, const mx_spec *));

/** Is tensor.target a power of two times the largest element, the largest scale or both, or the largest element times the largest number of another format? */
int mxi_target_is_of_formats(const mx_spec *s);

/** Has each number among a bug's faults at most four digits, as people write them? */
int mxi_faults_are_plain(const mx_bug *bug);

#endif
