/* Declares operands that are decomposed once for many models of the same types, for a search over models. */
#ifndef MX_MMA_KEPT_H
#define MX_MMA_KEPT_H

#include "mxgold/mma.h"

typedef struct mma_kept mma_kept;

/* Decomposes operands for models with these types, scale and block, and any parameters. What args points to belongs to the caller and must
 * not change. NULL: there is no memory, or there are too many operands for this to pay; mx_mma() can then be used instead. */
mma_kept *mxi_mma_kept_new(const mx_mma_model *types, const mx_mma_args *args);
void mxi_mma_kept_free(mma_kept *kept);

/* Computes D of tiles first .. first+n-1, with the bits of mx_mma(), on the calling thread. Any number of threads may call it at a time. */
mx_status mxi_mma_kept_run(void *d, mma_kept *kept, const mx_mma_model *model, size_t first, size_t n);

#endif
