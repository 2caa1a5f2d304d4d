/* Declares what the drivers of functions and ordered sums (array.c, rows.c) ask of an ISA. */
#ifndef MX_KERNELS_MATH_KERNELS_H
#define MX_KERNELS_MATH_KERNELS_H

#include "mxgold/math.h"

enum { MXI_MATH_LANES = 16, MXI_MATH_COLUMNS = 64 };

typedef struct mx_math_kernels {
  void (*array[MX_MATH_COUNT])(float *y, const float *x, size_t n);
  void (*gradient[MX_MATH_COUNT])(float *dx, const float *x, const float *dy, size_t n); /* NULL: none */
  /** The sum of one piece; y NULL: of x alone. */
  double (*sum)(const float *x, const float *y, size_t n);
  /** Chains of at most MXI_MATH_COLUMNS columns go on over all rows. */
  void (*columns)(double *chain, const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t cols);
  float (*max)(const float *x, size_t n);
  /** y = rnd_f32(exp(scale * (x - m))). */
  void (*exp_below)(float *y, const float *x, size_t n, double scale, double m);
  void (*times)(float *y, size_t n, double factor); /* in place */
  void (*softmax_backward)(float *dx, const float *y, const float *dy, size_t n, double scale, double s);
  double (*log)(double x); /* of a positive normal number */
} mx_math_kernels;

extern const mx_math_kernels mxi_math_scalar, mxi_math_avx2, mxi_math_avx512, mxi_math_neon;
/** Those of a call. */
const mx_math_kernels *mxi_math_kernels_for(const mx_exec *exec);
/** Threads for so many values: the caller's number at most. */
int mxi_math_threads(const mx_exec *exec, size_t values);
/** sin and cos of |x| >= 2^28: x = (4 i + quadrant) pi / 2 + *rest, |*rest| <= pi / 4. x is finite. */
int mxi_math_reduce(double *rest, double x);

#endif
