/** Declares the reference linear layer, the twins of mx_linear_forward() and mx_linear_backward(). They do step by step what include/mxgold/linear.h
 *  says: every operand is written out as a whole binary32 matrix, transposed where its axis asks for it, and quantised by ref_quantize(); every product
 *  is computed by ref_gemm(), an unquantised one under f32_seq from operands with elem=none. They allocate their own memory, and therefore take no
 *  saved and no work. Errors as the twins', and MX_ERR_NOMEM.  Threads: reentrant, on the calling thread alone. */
#ifndef MXGOLD_REF_LINEAR_H
#define MXGOLD_REF_LINEAR_H

#include "mxgold/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

mx_status ref_linear_forward(const mx_linear *layer, mx_linear_out y, mx_linear_in x, mx_linear_in w, const float *bias, mx_error *err);
mx_status ref_linear_backward(const mx_linear *layer, mx_linear_out dx, mx_linear_out dw, float *db, mx_linear_in dy, mx_linear_in x,
                              mx_linear_in w, mx_error *err);

#ifdef __cplusplus
}
#endif
#endif
