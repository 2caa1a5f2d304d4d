/* Declares the search for kernels that round at random, among inquiries that no deterministic rule explains. */
#ifndef MX_VERIFY_IDENTIFY_CHANCE_H
#define MX_VERIFY_IDENTIFY_CHANCE_H

#include "verify/identify/inquiry.h"

/* The inquiries whose ordinary blocks are rounded at random, and whose rule is known except for its seed. */
typedef struct chance {
  int asked, none;
  uint8_t random[MAX_INQUIRIES + 1];
  double least;
  size_t ruled[MAX_INQUIRIES + 1], n_ruled;
} chance;

/** Do the scales or the elements of an inquiry look at first sight as if they were drawn? Chance that a factor of the elements hides is not seen. */
int mxi_chance_is_in_sight(const inquiry *all, size_t n);
/** Finds the inquiry under which ordinary blocks are rounded at random, with a seed below 2^20 or a usual one that gives every byte; NULL if
 *  there is none. Every inquiry must have its specs. It works once: later calls with the same c return NULL. */
inquiry *mxi_chance_with_usual_seed(chance *c, inquiry *all, size_t n, deadline until);
/** The same with every seed that is ever tried. Without a seed it returns the inquiry if its draws look random, with what can be said of them. */
inquiry *mxi_chance_inquiry(chance *c, inquiry *all, size_t n, deadline until);

#endif
