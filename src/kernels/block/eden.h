/* Declares the correction of select=eden. */
#ifndef MX_KERNELS_BLOCK_EDEN_H
#define MX_KERNELS_BLOCK_EDEN_H

#include "kernels/block/plan.h"

enum { MX_EDEN_GROUP = 1024 }; /* most elements in a group */

/** How many elements are corrected together under select=eden: eden.group, or a block. 1 under other selects. */
size_t mxi_eden_group(const mx_plan *plan);

/** Corrects the stored scales of a group, so that on average the inner product of the quantised values with x is that of x with itself.
 *  scales   codes of its n_blocks scales, changed in place
 *  x        its n elements as the rule sees them; the last block may be short
 *  codes    codes of the elements, one to a byte
 *  index    index of its first block in the tensor; the i-th block uses the random word of stream MX_STREAM_SCALE at index + i
 *  Source: SPEC 3.6; arXiv 2601.22813.   Oracle: ref/eden.c, tests/test_eden.c */
void mxi_eden_correct(uint32_t *scales, const mx_plan *plan, const float *x, const uint8_t *codes, size_t n, size_t n_blocks, uint64_t index);

#endif
