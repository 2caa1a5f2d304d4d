/* Declares tables that follow from a row of formats/ alone. The first call that needs one makes it, and it never changes after that. Threads:
 * reentrant. */
#ifndef MX_KERNELS_BLOCK_TABLES_H
#define MX_KERNELS_BLOCK_TABLES_H

#include "kernels/block/chain.h"

/** The values of the codes 0 to 255, as mx_decode() gives them; NULL for formats of more than 8 bits. */
const double *mxi_scale_values(int scale);
/** The same for an element format, in binary32. */
const float *mxi_elem_values(int elem);

/** A parsed row of formats/chains.def; NULL if it does not parse. The exact chain has no operations. */
const mx_chain_program *mxi_chain_parsed(int chain);

#endif
