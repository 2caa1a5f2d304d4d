/* Declares the gradient rules of the reference's linear layer (SPEC "Gradient rules"). */
#ifndef REF_GRADIENT_H
#define REF_GRADIENT_H

#include "mxgold/linear.h"

/* Do the rules change the gradient of x (q MX_Q1) or W (MX_Q2)? */
int ref_gradient_acts(const mx_linear_recipe *r, int q);
/* g [rows][cols], the gradient of the quantised operand t, to that of x [rows][cols], what t was made of; both rotated as t was. */
mx_status ref_gradient(float *g, const float *x, const mx_tensor *t, const mx_spec *spec, const mx_linear_recipe *r);

/* ref_quantize() of x [rows][cols] of t, rotated already, with the log-sum-exp of a block in place of its largest magnitude. */
mx_status ref_soft_quantize(mx_tensor *t, const float *x, const mx_spec *spec, const mx_linear_recipe *r, mx_error *err);

/* Q' at v, elements of a format. */
double ref_qprime(const mx_linear_recipe *r, int elem, double v);
/* q' at s, the number that was rounded to a scale of a format. */
double ref_scale_qprime(const mx_linear_recipe *r, int scale, double s);
/* Z of n values and dz, its derivative: the largest magnitude or the log-sum-exp (lse); its derivative, or the softmax's. unit: what magnitudes
 * are counted in, unless the recipe says that it is the largest. */
double ref_normalise(double *dz, const mx_linear_recipe *r, int softmax, int lse, double unit, const float *x, size_t n);

#endif
