/* Declares how one output of the product is summed under a matrix-unit model: SPEC 4. */
#ifndef REF_GEMM_FUSED_H
#define REF_GEMM_FUSED_H

#include "ext.h"
#include "gemm_read.h"
#include "mma.h"

/* sum = row i of a times row j of b, from nothing: the accumulator's value, rounded once to binary32. MX_ERR_NOMEM. */
mx_status ref_gemm_fused(ext *sum, const mx_mma_model *model, const ref_matrix *a, const ref_matrix *b, size_t i, size_t j);

#endif
