/* Declares what follows from a row of formats/ alone, made once a process by the first call that asks. Constant from then on; threads: reentrant. */
#ifndef MX_KERNELS_BLOCK_TABLES_H
#define MX_KERNELS_BLOCK_TABLES_H

#include "kernels/block/chain.h"

/** Values of the codes 0 to 255, as mx_decode() has them; NULL for formats of more than 8 bits. */
const double *mxi_scale_values(int scale);
/** The same of an element's format, in binary32. */
const float *mxi_elem_values(int elem);

/** A row of formats/chains.def parsed; NULL if it does not parse. The exact chain's has no operation. */
const mx_chain_program *mxi_chain_parsed(int chain);

#endif
