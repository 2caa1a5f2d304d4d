/* Declares the error of one candidate scale. */
#ifndef MX_KERNELS_BLOCK_SELECT_H
#define MX_KERNELS_BLOCK_SELECT_H

#include "kernels/block/plan.h"

/** The error of codes[n] under a scale against x[n], added to `before` (that of the tile's earlier rows), in binary32, as select.error and
 *  select.sum say. */
float mxi_candidate_error(const mx_plan *p, const mx_block_scale *b, float before, const float *x, const uint32_t *codes, size_t n);

/* The same from one-byte codes under an ordinary scale, with a table of the value of each code, followed by those of 8 and -8, which
 * wrap_negzero meant. */
enum { MX_SIX_VALUES = 18 };
void mxi_six_values(float values[MX_SIX_VALUES], const mx_plan *p, const mx_block_scale *b);
/** n elements, of which x has `here`; the others are +0. factor: about what x is multiplied by, to tell which codes wrapped. */
float mxi_six_error(const mx_plan *p, const float values[MX_SIX_VALUES], float factor, float before, const float *x, const uint8_t *codes,
                    size_t here, size_t n);

#endif
