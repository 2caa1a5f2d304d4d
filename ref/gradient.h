/* The gradient rules of the reference's linear layer (SPEC "Gradient rules"). */
#ifndef REF_GRADIENT_H
#define REF_GRADIENT_H

#include "mxgold/linear.h"

/* Do the rules change the gradient of x (q MX_Q1) or W (MX_Q2)? */
int ref_gradient_acts(const mx_linear_recipe *r, int q);
/* g [rows][cols], the gradient of the quantised operand t, to that of x [rows][cols], what t was made of; both rotated as t was. */
mx_status ref_gradient(float *g, const float *x, const mx_tensor *t, const mx_spec *spec, const mx_linear_recipe *r);

/* Q' at v, elements of a format. */
double ref_qprime(const mx_linear_recipe *r, int elem, double v);

#endif
