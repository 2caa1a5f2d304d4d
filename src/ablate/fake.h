/* Quantise and come back, or stay in the rotated domain. */
#ifndef ABLATE_FAKE_H
#define ABLATE_FAKE_H

#include "mxgold/ablate.h"

/** As mx_fake_quantize; with rotated true the rotation stays: what the operand of a product holds. */
mx_status mx_fake(float *out, const float *src, size_t rows, size_t cols, const mx_spec *spec, const mx_exec *exec, mx_code_counts *counts,
                  int rotated, mx_error *err);

#endif
