/* Products under a named order of additions. */
#ifndef ABLATE_PRODUCT_H
#define ABLATE_PRODUCT_H

#include "mxgold/ablate.h"

/** y [m][n] = x [m][k] * w [n][k]^T under MX_ACCUMULATE_*. */
mx_status mx_product_under(double *y, const float *x, const float *w, size_t m, size_t n, size_t k, int model, int n_threads);

#endif
