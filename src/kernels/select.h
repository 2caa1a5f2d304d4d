/* Error of one candidate scale. */
#ifndef MX_KERNELS_SELECT_H
#define MX_KERNELS_SELECT_H

#include "kernels/plan.h"

/** Error of codes[n] under a scale against x[n], added to `before` (of the tile's earlier rows), in binary32, as select.error and select.sum say. */
float mx_candidate_error(const mx_plan *p, const mx_block_scale *b, float before, const float *x, const uint32_t *codes, size_t n);

#endif
