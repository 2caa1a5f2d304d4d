/* Declares the rotation of rows that a spec asks for, and its inverse. */
#ifndef MX_ABLATE_ROTATE_H
#define MX_ABLATE_ROTATE_H

#include "mxgold/quantize.h"

/** out = in rotated as spec says, each row by tiles of had.size; out == in is allowed. */
mx_status mxi_rotate(float *out, const float *in, size_t rows, size_t cols, const mx_spec *spec, int n_threads);
/** The inverse rotation, in place, as mx_hadamard_back() computes it. cols is a multiple of had.size. */
mx_status mxi_rotate_back(float *x, size_t rows, size_t cols, const mx_spec *spec, int n_threads);

#endif
