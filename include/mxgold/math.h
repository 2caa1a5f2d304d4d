/** Computes functions and ordered sums of float32 arrays with the same bits everywhere: in scalar code and on every ISA, by gcc and clang, on any
 *  number of threads.
 *
 *  Everything is computed in binary64 by +, -, *, /, sqrt and fma of IEEE 754, integer operations and the polynomials of formats/math.def, in
 *  the order that ref/math.c spells out, and is rounded to float32 once. Results are correctly rounded except for at most one in 10^6
 *  (of all 2^32 inputs, two for exp and five for log).
 *  NaN, Inf and subnormals are data; every NaN that is stored is 0x7FC00000 (binary64: 0x7FF8000000000000). Arrays may be written in place (out == x)
 *  but not overlap otherwise.
 *  Calls return MX_OK, MX_ERR_ARG (NULL where there is something to read or write, a function outside its list) or MX_ERR_SHAPE (ld < cols); on error
 *  nothing is written. exec may be NULL; its n_threads and isa_mask are used, and small arrays use fewer threads. Nothing is allocated.
 *  Reentrant. */
#ifndef MXGOLD_MATH_H
#define MXGOLD_MATH_H

#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** Functions of arrays: rows of formats/math.def. */
typedef enum mx_math_function {
#define MX_MATH(id, ...) MX_MATH_##id,
#include "../../formats/math.def"
  MX_MATH_COUNT
} mx_math_function;

/** Name ("gelu_tanh") and definition of a function, NULL outside the enum; and the function of a name, -1 if the name is unknown. */
const char *mx_math_name(int function);
const char *mx_math_doc(int function);
int mx_math_find(const char *name);
/** Largest error of a function in units in the last place, and of its gradient (0: it has no gradient); -1 outside the enum. */
double mx_math_ulps(int function);
double mx_math_gradient_ulps(int function);

/** y[i] = f(x[i]), i < n.   Oracle: ref_math_array; MPFR and all 2^32 inputs (make exhaustive-math); tests/test_math.c */
mx_status mx_math_array(float *y, const float *x, size_t n, int function, const mx_exec *exec);
/** dx[i] = rnd_f32(dy[i] * f'(x[i])), with the product in binary64: the backward pass of an activation. dx may be x or dy.
 *  MX_ERR_ARG also if mx_math_gradient_ulps() is 0.   Oracle: ref_math_gradient, as above */
mx_status mx_math_gradient(float *dx, const float *x, const float *dy, size_t n, int function, const mx_exec *exec);

/** Sum of a row, or of the products of two rows, in binary64:
 *      out[r] = sum over c < cols of x[r * ldx + c], or with y of x[r * ldx + c] * y[r * ldy + c] (exact, so y = x gives the squares)
 *  The order: the row is cut into pieces of MX_MATH_PIECE. A piece has sixteen sums; lane l sums c mod 16 = l, ascending from +0. Lanes are
 *  added as l and l + 8, then l and l + 4, + 2, + 1; pieces are added ascending from +0. rows = 1 gives the sum of an array.
 *  out  binary64 [rows].   Oracle: ref_math_row_sums */
enum { MX_MATH_PIECE = 8192 };
mx_status mx_math_row_sums(double *out, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols, const mx_exec *exec);
/** out[c] = rnd_f32(start + sum over r of x[r * ldx + c] (* y[r * ldy + c])), one chain per column in binary64 with r ascending; start is +0,
 *  or with accumulate what out holds. For gradients of biases and gains.   Oracle: ref_math_column_sums */
mx_status mx_math_column_sums(float *out, int accumulate, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols,
                              const mx_exec *exec);
/** out[r] = the largest value of row r; NaN if the row has one, +0 for a zero of either sign, -Inf for an empty row.   Oracle:
 *  ref_math_row_max */
mx_status mx_math_row_max(float *out, const float *x, size_t ldx, size_t rows, size_t cols, const mx_exec *exec);

/** Softmax of rows: y[r][c] = e / S, e = rnd_f32(exp(scale * (x[r][c] - m))), m the largest of the row, S the sum of e in the order of
 *  mx_math_row_sums(); rounded once more. The error is at most 1.01 ulp of the real value, plus what S inherits from the errors of e.
 *  scale   > 0, finite: 1, or 1 / sqrt(head width); the product is exact
 *  causal  0: rows are whole; T: row r has (r mod T) + 1 columns, and those after them get +0 (scores of a batch of sequences of T)
 *  log_sum binary64 [rows]: scale * m + log(S), so that -log(y) is log_sum - scale * x without y's rounding; NULL: not computed
 *  A row that has a NaN or Inf, or only -Inf, gives NaN in all its columns.   MX_ERR_ARG also if scale is not finite and > 0.
 *  Oracle: ref_math_softmax, tests/test_math.c */
mx_status mx_math_softmax(float *y, size_t ldy, double *log_sum, const float *x, size_t ldx, size_t rows, size_t cols, float scale,
                          size_t causal, const mx_exec *exec);
/** dx[r][c] = rnd_f32(scale * (y[r][c] * (dy[r][c] - s))), s the sum of y * dy over the row in the order of mx_math_row_sums(), all in binary64;
 *  y is what mx_math_softmax() gave. dx may be dy or y.   Oracle: ref_math_softmax_backward */
mx_status mx_math_softmax_backward(float *dx, size_t lddx, const float *y, size_t ldy, const float *dy, size_t lddy, size_t rows, size_t cols,
                                   float scale, size_t causal, const mx_exec *exec);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
