/* Kernels without a plan: largest magnitude, values by table. */
#ifndef MX_KERNELS_PLAIN_KERNELS_H
#define MX_KERNELS_PLAIN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/** Largest magnitude of n values as an integer: NaN above Inf above numbers. */
typedef uint32_t mx_amax_kernel(const float *x, size_t n);
mx_amax_kernel mx_amax_avx512, mx_amax_avx2;

/** Values of n 4-bit codes, n a multiple of block, block one of 16: value = table[16 * scale + code]. high_first: element 2i in bits 7:4. */
typedef void mx_values4_kernel(float *out, const uint8_t *codes, const uint8_t *scales, const float *table, size_t n, size_t block,
                               int high_first);
mx_values4_kernel mx_values4_avx512, mx_values4_avx2;

#endif
