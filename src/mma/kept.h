/* Declares operands that are decomposed once for many models of the same types, which a search over models (src/verify/probe) runs on. */
#ifndef MX_MMA_KEPT_H
#define MX_MMA_KEPT_H

#include "mxgold/mma.h"

typedef struct mma_kept mma_kept;

/* Operands of models with these types, scale and block; the parameters may be any. What args points to stays the caller's and must not change. NULL:
 * no memory, or too many operands to be worth it; then mx_mma() does the same. */
mma_kept *mxi_mma_kept_new(const mx_mma_model *types, const mx_mma_args *args);
void mxi_mma_kept_free(mma_kept *kept);

/* D of tiles first .. first+n-1, in the bits of mx_mma(), by one thread. Any number of threads at a time. */
mx_status mxi_mma_kept_run(void *d, mma_kept *kept, const mx_mma_model *model, size_t first, size_t n);

#endif
