/* Declares sorting of numbers. */
#ifndef MX_CORE_SORT_H
#define MX_CORE_SORT_H

#include <stddef.h>

/** Sorts n numbers, none of them NaN, into ascending order. Threads: reentrant. */
void mxi_sort_numbers(double *x, size_t n);

#endif
