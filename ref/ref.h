/** Declares the reference: slow, obvious, scalar and exact, laid out in the order of docs/reference/SPEC.md. It alone writes golden bits.
 *
 *  Each call is the twin of the mx_ call of the same name and takes and gives the same; differences are said here. Nothing of src/ is used: the
 *  two share formats/ (the tables) and the structs of include/mxgold. No host floating point decides a bit: numbers are sign, exponent and
 *  significand (num.h), long products and quotients are GMP's.
 *  Threads: every call is reentrant and runs on the calling thread alone.
 *  Oracle: tests/spec (hand-typed tables), tests/test_ref.c, tests/test_mpfr.c, tests/peers (bytes of real libraries). */
#ifndef MXGOLD_REF_H
#define MXGOLD_REF_H

#include "mxgold/format.h"
#include "mxgold/layout.h"
#include "mxgold/quantize.h"
#include "mxgold/random.h"
#include "mxgold/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SPEC 1 and 2, one value at a time. format is a row of any table, the library's or ref's own. */
double ref_decode(const mx_format *format, uint64_t code);
double ref_format_max(const mx_format *format);
double ref_format_min(const mx_format *format);
int ref_format_emax(const mx_format *format);
int ref_format_is_nan(const mx_format *format, uint64_t code);
/** how->nan = MX_ELEM_NAN_ERROR is the caller's to catch: here it is SIGNMAX. SCAN_X needs a scale and is not for this call: it is RNE here. */
uint64_t ref_encode(const mx_format *format, double x, const mx_encoding *how, uint32_t random);
/** The same with the two keys that only scale formats have: MX_SCALE_SUBNORMAL_ENCODING and MX_NEGATIVE_*. */
uint64_t ref_encode_scale(const mx_format *format, double x, const mx_encoding *how, int subnormal, int negative, uint32_t random);
/** Rows of ref's own reading of the tables; NULL outside the enum. */
const mx_format *ref_elem_format(int elem);
const mx_format *ref_scale_format(int scale);

/* SPEC 3, whole tensors. */
/** Floor (up = 0) or ceil (up = 1) of the exact log2 of a positive finite binary32 that was rounded once to binary32: scale.log2=log2f. */
int ref_log2f_int(float x, int up);
mx_status ref_tensor_layout(mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec);
mx_status ref_tensor_alloc(mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec);
void ref_tensor_free(mx_tensor *tensor);
mx_status ref_quantize(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec,
                       mx_error *err);
/** Transposes, then quantises. */
mx_status ref_quantize_transposed(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                                  const mx_exec *exec, mx_error *err);
mx_status ref_dequantize(float *out, size_t ld, const mx_tensor *tensor, const mx_spec *spec, const mx_exec *exec);
mx_status ref_tensor_amax(float *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec);
mx_status ref_tensor_scale(float *out, float amax, const mx_spec *spec);
/** Do the keys exclude each other? As mx_spec_check, for what ref_quantize refuses. */
mx_status ref_spec_check(const mx_spec *spec, mx_error *err);

/** The twin of mx_rcp_approx_sm90(): the interpolation written as the sum that it stands for. */
uint32_t ref_rcp_sm90(uint32_t bits);

/* SPEC 5, rotations. */
mx_status ref_hadamard(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                       const uint8_t *signs, uint64_t seed);
mx_status ref_hadamard_back(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                            const uint8_t *signs, uint64_t seed);

/* SPEC 6, random words. */
uint32_t ref_random(uint64_t seed, uint32_t stream, uint64_t index);
uint32_t ref_random_lfsr(uint32_t state);

/* SPEC 7, layouts of scales and codes. */
size_t ref_layout_size(mx_layout layout, size_t rows, size_t kb);
size_t ref_layout_index(mx_layout layout, size_t rows, size_t kb, size_t row, size_t k);
void ref_layout_pack(uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad);
void ref_layout_unpack(uint8_t *scales, mx_layout layout, const uint8_t *in, size_t rows, size_t kb);
void ref_pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
/** The code of element (row, col) of a tensor of codes of at most 8 bits. */
uint64_t ref_code_at(const mx_tensor *t, const mx_spec *spec, size_t row, size_t col);
/** Rows and columns of a block of a [rows][cols] tensor. */
void ref_block_extent(const mx_spec *spec, size_t rows, size_t cols, size_t *block_rows, size_t *block_cols);
void ref_unpack4(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block);
void ref_pack6(uint8_t *out, const uint8_t *codes, size_t n);
void ref_unpack6(uint8_t *codes, const uint8_t *in, size_t n);

#ifdef __cplusplus
}
#endif
#endif
