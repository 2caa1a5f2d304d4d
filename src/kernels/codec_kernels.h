/* Declares the kernels that encode single values, one for each vector instruction set. */
#ifndef MX_KERNELS_CODEC_KERNELS_H
#define MX_KERNELS_CODEC_KERNELS_H

#include <stddef.h>

#include "kernels/lanes.h"

/** Encodes whole vectors of x, and returns how many values that was. wide: codes have two bytes. */
typedef size_t mx_encode_kernel(void *out, const float *x, size_t n, const mx_lanes *lanes, int wide);
mx_encode_kernel mxi_encode_avx2, mxi_encode_avx512, mxi_encode_neon;

#endif
