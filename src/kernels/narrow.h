/* From binary32 back to a checkpoint's own dtype. */
#ifndef CLI_NARROW_H
#define CLI_NARROW_H

#include <stddef.h>

#include "mxgold/dtype.h"

/** out = n values of x as MX_F32, MX_F16 or MX_BF16: RNE; finite values beyond the largest become the largest; NaN and Inf stay. */
void mxi_narrow(void *out, const float *x, size_t n, mx_dtype dtype, int n_threads);

#endif
