/* Declares how constants of faults are read off the data: the numbers under which every cell of the fitting half has the code that was seen, and the
 * plainest of them. */
#ifndef MX_VERIFY_FAULT_SEARCH_FIT_H
#define MX_VERIFY_FAULT_SEARCH_FIT_H

#include "verify/fault/search/view.h"

/** The number of fault f over v, from the scales of wrong blocks (only_wrong) or of all. bits gets what it costs. 0: none fits, or none of those that fit
 *  is so plain that it would hardly be among them by chance: another input would tell it from what the kernel has. */
int mxi_fit_scales(mx_fault *f, double *bits, view *v, int only_wrong);
/** The same from the codes of the elements, under the scales that were seen, in the rows of v->sample. */
int mxi_fit_codes(mx_fault *f, double *bits, view *v, int only_wrong);

/** A number that stands for max|X|, from the tensor scale that is stored: the plainest that gives it. */
int mxi_fit_tensor(mx_fault *f, double *bits, const view *v);

#endif
