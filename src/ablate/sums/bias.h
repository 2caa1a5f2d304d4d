/* Declares the bias of a product with the interval that repeats leave it. */
#ifndef ABLATE_SUMS_BIAS_H
#define ABLATE_SUMS_BIAS_H

#include "mxgold/ablate.h"

/* Errors of groups of repeats, each the mean of its group: of the n values themselves, or where these are many of signed sums of them. */
typedef struct mxi_bias {
  size_t n, width; /* of a group */
  int repeats, groups;
  double *error; /* [groups][width] */
} mxi_bias;

/** Returns 0 if there is no memory. Free also then. */
int mxi_bias_make(mxi_bias *b, size_t n, int repeats);
void mxi_bias_free(mxi_bias *b);
/** Repeat r gave `other` instead of exact. */
void mxi_bias_add(mxi_bias *b, int r, const double *exact, const double *other);
/** Set out->bias_low and out->bias_high about out->bias; xx: the sum of squares of exact. */
void mxi_bias_end(mx_product_error *out, const mxi_bias *b, double xx);

#endif
