/** Encodes and decodes arrays of single values at the speed of memory. */
#ifndef MXGOLD_CODEC_H
#define MXGOLD_CODEC_H

#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** Codes of n values under a deterministic rounding: the same bits as mx_encode() of each.
 *  out     one code a byte for formats of up to 8 bits, a native uint16_t each for wider ones
 *  format  of at most 16 bits
 *  exec    may be NULL
 *  Returns MX_OK; MX_ERR_ARG (NULL, a wider format, how->round stochastic or one that needs a block).
 *  Threads: reentrant; the same bits for any number of threads and any ISA.   Oracle: make exhaustive, tests/test_kernels. */
mx_status mx_encode_array(void *out, const float *x, size_t n, const mx_format *format, const mx_encoding *how, const mx_exec *exec);

/** Values of n codes, laid out as above: mx_decode of each as binary32, exact; NaN codes give a quiet NaN with the code's sign.
 *  Returns MX_OK; MX_ERR_ARG (NULL, a format of more than 16 bits). Threads: as above.   Oracle: ref_decode, tests/test_kernels.c. */
mx_status mx_decode_array(float *out, const void *codes, size_t n, const mx_format *format, const mx_exec *exec);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
