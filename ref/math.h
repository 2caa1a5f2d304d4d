/** Declares the reference of math.h: what each function and sum computes, one binary64 operation at a time, on the C library's fma(), sqrt(),
 *  ldexp() and frexp(), which are exact or correctly rounded. Twins of the calls of the same name for arguments that those accept. */
#ifndef MXGOLD_REF_MATH_H
#define MXGOLD_REF_MATH_H

#include "mxgold/math.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One value before it is rounded to float32, and that of the derivative. */
double ref_math(int function, float x);
double ref_math_slope(int function, float x);

void ref_math_array(float *y, const float *x, size_t n, int function);
void ref_math_gradient(float *dx, const float *x, const float *dy, size_t n, int function);
void ref_math_row_sums(double *out, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols);
void ref_math_column_sums(float *out, int accumulate, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols);
void ref_math_row_max(float *out, const float *x, size_t ldx, size_t rows, size_t cols);
void ref_math_softmax(float *y, size_t ldy, double *log_sum, const float *x, size_t ldx, size_t rows, size_t cols, float scale, size_t causal);
void ref_math_softmax_backward(float *dx, size_t lddx, const float *y, size_t ldy, const float *dy, size_t lddy, size_t rows, size_t cols,
                               float scale, size_t causal);

#ifdef __cplusplus
}
#endif
#endif
