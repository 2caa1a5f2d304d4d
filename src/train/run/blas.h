/* Declares OpenBLAS as it is installed, found when a run asks for it. */
#ifndef TRAIN_BLAS_H
#define TRAIN_BLAS_H

#include <stddef.h>

#include "mxgold/dense.h"

/** Find OpenBLAS's cblas_sgemm and set its number of threads (0: all). name: its version and core type.
 *  MX_ERR_IO if the library can't be loaded or is another BLAS. The library stays loaded. */
mx_status mxi_openblas(mx_sgemm **sgemm, char *name, size_t size, int n_threads, mx_error *err);

#endif
