/** Declares the reference linear layer: twins of mx_linear_forward() and mx_linear_backward(), step by step as include/mxgold/linear.h says it.
 *  Every operand is written out as a whole matrix, widened, transposed and quantised by ref_quantize(); every product is ref_gemm()'s, the
 *  unquantised ones under f32_seq of operands with elem=none. Memory is its own: saved and work of the twins are not taken. */
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
