/* Declares the search for the random number that each element was rounded by. */
#ifndef MX_VERIFY_FAULT_SEARCH_RANDOMS_H
#define MX_VERIFY_FAULT_SEARCH_RANDOMS_H

#include "verify/fault/search/view.h"

/* They are looked for over so many presets, which differ in how they divide. */
enum { RANDOM_LOOKS = 3 };

/** Finds the generator, its seed, what counts it, its bits and how elements are rounded by them, where the codes look rounded at random and all that are looked at follow.
 *  bits: what the choice costs. Returns 0 if there is none among those that kernels are likely to have, or the effort has no look of this kind left. */
int mxi_find_random(mx_fault *f, double *bits, view *v);

/** The same fault with the k-th of the numbers of bits, and of the last and the first shifts of a hash, that kernels have: what differs in low bits or in high
 *  counts alone. 0: there is none any more. */
int mxi_random_near(mx_fault *out, const mx_fault *f, int k);

#endif
