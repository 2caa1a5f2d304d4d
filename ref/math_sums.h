/* Declares the functions that ordered sums and softmax share with the functions of one float32. */
#ifndef MXGOLD_REF_MATH_SUMS_H
#define MXGOLD_REF_MATH_SUMS_H

#include "math.h"

double ref_math_log64(double x);
float ref_math_store(double x);
/** exp of a binary64, from -708 up to 709. */
double ref_math_exp64(double x);

#endif
