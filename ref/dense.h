/** Declares the reference of dense.h: one output at a time, fmaf() of the C library, no memory beyond d. */
#ifndef MXGOLD_REF_DENSE_H
#define MXGOLD_REF_DENSE_H

#include "mxgold/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The twin of mx_dense_gemm() for arguments that it accepts. */
void ref_dense_gemm(const mx_dense *p);

#ifdef __cplusplus
}
#endif
#endif
