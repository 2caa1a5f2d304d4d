/** Declares the operations, each as one call that copies memory to the device, runs kernels and copies the result back. They give the bits
 *  of the mx_ calls of the same names, and return 0, or nonzero with an error in mxh_error(). Oracle: make hip-check. */
#ifndef MXH_OPS_H
#define MXH_OPS_H

#include "hip_backend/run/device_api.h"
#include "mxgold/gemm.h"
#include "mxgold/layout.h"
#include "mxgold/quantize.h"

/** out comes from mx_tensor_alloc (with the transposed shape, if transposed). *refused: the spec refuses a value, and out must not be read. */
int mxh_quantize(mxh_device *dev, mx_tensor *out, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec, bool transposed,
                 bool *refused);
/** out [rows][cols]. */
int mxh_dequantize(mxh_device *dev, float *out, const mx_tensor *tensor, const mx_spec *spec);
/** A of SPEC 3.2 step 4 as bits; NaN is 0x7FC00000. */
int mxh_amax(mxh_device *dev, uint32_t *bits, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec);
int mxh_hadamard(mxh_device *dev, float *out, const float *x, size_t rows, size_t cols, unsigned size, int sign, const uint8_t *signs,
                 uint64_t seed);
int mxh_encode(mxh_device *dev, void *codes, const float *x, size_t n, const mx_format *format, const mx_encoding *how, uint64_t seed);
int mxh_decode(mxh_device *dev, float *out, const void *codes, size_t n, const mx_format *format);
/** out [n]: x[2 i] / x[2 i + 1] rounded to odd; and sm_90's approximate reciprocal of the n binary32 numbers with the bits first + i * step. */
int mxh_quotients(mxh_device *dev, double *out, const double *x, size_t n);
int mxh_reciprocals(mxh_device *dev, uint32_t *out, size_t n, uint32_t first, uint32_t step);
int mxh_layout_pack(mxh_device *dev, uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad);
int mxh_layout_unpack(mxh_device *dev, uint8_t *scales, mx_layout layout, const uint8_t *in, size_t rows, size_t kb);
int mxh_pack(mxh_device *dev, const char *kernel, uint8_t *out, size_t n_out, const uint8_t *in, size_t n_in, size_t n, int nibble,
             size_t block);
/** d is [M][N] of options->out. Models f32_block and f32_seq, elements of up to 8 bits or elem=none, any scale along K; alpha, beta, bias
 *  and c (binary32, dense) of the options apply. */
int mxh_gemm(mxh_device *dev, void *d, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
             const mx_gemm_options *options);

/** Whether the fast kernels take this spec. A plain matrix ([rows][cols] without gaps, cols a multiple of the block) may then use them. */
bool mxh_fast(const mx_spec *spec);
int mxh_quantize_fast(mxh_device *dev, mx_tensor *out, const float *x, size_t rows, size_t cols, const mx_spec *spec);
int mxh_dequantize_fast(mxh_device *dev, float *out, const mx_tensor *tensor, const mx_spec *spec);
/** Quantises x along its rows and, transposed, along its columns in a single read; scale.rule floor and even, rows and cols multiples of 32. */
int mxh_quantize_both(mxh_device *dev, mx_tensor *along, mx_tensor *across, const float *x, size_t rows, size_t cols, const mx_spec *spec);
/** Quantises and dequantises random elements made on the device n times, and gives the bytes of memory that the fast kernels move per
 *  second. */
int mxh_bench(mxh_device *dev, size_t rows, size_t cols, const mx_spec *spec, int n, double *quantize_rate, double *dequantize_rate,
              double *copy_rate);

/** A grid that covers n lanes in blocks of 256, but is no larger than a device can use. */
unsigned mxh_grid(const mxh_device *dev, size_t n);

#endif
