/* Declares the kernels of an ISA that functions and ordered sums need. */
#ifndef MX_KERNELS_MATH_KERNELS_H
#define MX_KERNELS_MATH_KERNELS_H

#include "mxgold/math.h"

enum { MXI_MATH_LANES = 16, MXI_MATH_COLUMNS = 64 };

typedef struct mx_math_kernels {
  void (*array[MX_MATH_COUNT])(float *y, const float *x, size_t n);
  void (*gradient[MX_MATH_COUNT])(float *dx, const float *x, const float *dy, size_t n); /* NULL: none */
  /** The sum of one piece of x * y; y NULL: of x. */
  double (*sum)(const float *x, const float *y, size_t n);
  /** Continues the chains of at most MXI_MATH_COLUMNS columns over all rows. */
  void (*columns)(double *chain, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols);
  float (*max)(const float *x, size_t n);
  /** y = rnd_f32(exp(scale * (x - m))). */
  void (*exp_below)(float *y, const float *x, size_t n, double scale, double m);
  void (*times)(float *y, size_t n, double factor); /* in place */
  void (*softmax_backward)(float *dx, const float *y, const float *dy, size_t n, double scale, double s);
  double (*log)(double x); /* of a positive normal number */
} mx_math_kernels;

extern const mx_math_kernels mxi_math_scalar, mxi_math_avx2, mxi_math_avx512, mxi_math_neon;
/** The kernels for a call. */
const mx_math_kernels *mxi_math_kernels_for(const mx_exec *exec);
/** How many threads so many values justify, at most the caller's number. */
int mxi_math_threads(const mx_exec *exec, size_t values);
/** sin and cos of |x| >= 2^28: x = (4 i + quadrant) pi / 2 + *rest, |*rest| <= pi / 4. x is finite. */
int mxi_math_reduce(double *rest, double x);

#endif
