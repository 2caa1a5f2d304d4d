/** Quantises, dequantises and rotates matrices. SPEC sections 3 and 5. */
#ifndef MXGOLD_QUANTIZE_H
#define MXGOLD_QUANTIZE_H

#include "spec.h"
#include "workspace.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** A quantised matrix. Sizes follow from (spec, rows, cols); see mx_tensor_alloc().
 *   codes   4-bit elements two per byte as spec.nibble says, [rows][code_stride] with code_stride = cols_padded / 2; wider ones one per byte,
 *           [rows][cols_padded]; elem=none, bf16: binary32 values, [rows][4 * cols]. cols_padded is cols rounded up to a whole block, and to an
 *           even number for 4-bit elements; a short block is quantised and stored as if filled with +0.
 *   scales  scale_bytes each, [rows][scale_cols] for 1xC and RxC blocks (each row of a tile repeats the tile's scale), [scale_rows][cols] for
 *           Rx1 blocks (block=col).
 *   micro   scale.rule=hif4 only: 3 bytes per block, [rows][scale_cols][3]: byte 0 has the level-2 bits (bit i: elements 8i..8i+7 doubled),
 *           bytes 1 and 2 the level-3 bits (bit i: elements 4i..4i+3 doubled), little-endian. */
typedef struct mx_tensor {
  size_t rows, cols, cols_padded, code_stride;
  size_t scale_rows, scale_cols, scale_bytes; /* scale_bytes 1, 2 (e8m3, bf16) or 4 (fp32) */
  uint8_t *codes, *scales, *micro;
  float tensor_scale; /* as spec.tensor_store or the chain stores it; 1 if there is none */
  int has_tensor_scale;
} mx_tensor;

/** Fill in the sizes for a [rows][cols] matrix under spec and allocate zeroed memory. Either extent may be 0. The caller frees it with
 *  mx_tensor_free(). MX_ERR_NOMEM (also when sizes overflow), MX_ERR_CONFLICT. */
mx_status mx_tensor_alloc(mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec);
/** Fill in the same sizes without memory: codes, scales and micro are NULL. */
mx_status mx_tensor_layout(mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec);
/** Free what mx_tensor_alloc() allocated; NULL and a zero struct are allowed. The extents stay. */
void mx_tensor_free(mx_tensor *tensor);
/** Rows [first, first + n) of a tensor, in its own memory; first is a multiple of block_rows (mx_spec_block). Do not free the result. */
mx_tensor mx_tensor_rows(const mx_tensor *tensor, size_t first, size_t n, size_t block_rows);

/** Code of one element of a matrix, 4-bit codes unpacked; elem=none, bf16 give the float's bits. */
uint32_t mx_code_at(const mx_tensor *tensor, const mx_spec *spec, size_t row, size_t col);
/** Codes of one matrix, one per number: 4-bit codes are unpacked, elem=none, bf16 give the float's bits. out [rows][cols]. */
void mx_unpack_codes(uint32_t *out, const mx_tensor *tensor, const mx_spec *spec);
/** The index-th scale code of a matrix, whatever its width. */
uint32_t mx_scale_code_at(const mx_tensor *tensor, size_t index);

/** How to run; none of it changes the bits. The zero struct: all processors, best ISA. */
typedef struct mx_exec {
  int n_threads;     /* 0: OpenMP's default; any number is allowed, see mx_thread_count() in isa.h, also for what happens after fork() */
  uint32_t isa_mask; /* ISAs switched off, MX_ISA_* bits (isa.h) */
  /* For a tensor that arrives in pieces of whole block rows: */
  size_t first_row; /* where src's first row lies in the tensor; a multiple of the block's rows. Random bits depend on it. */
  int amax_known;   /* 1: amax is mx_tensor_amax() of the whole tensor, so no pass is needed to find it */
  float amax;
  mx_workspace *workspace; /* memory kept between calls; NULL: a call takes its own from the heap */
} mx_exec;

/** Quantise a row-major matrix into blocks along its last axis.
 *  out    from mx_tensor_alloc(rows, cols, spec). Caller owns it.
 *  src    float32 [rows][cols], row stride ld >= cols. NaN, Inf and subnormals are data, handled as spec says.
 *  spec   all keys of the quantisation; {0} is OCP MXFP4.
 *  exec   may be NULL.
 *  Returns MX_OK; MX_ERR_ARG (NULL); MX_ERR_CONFLICT (spec keys that exclude each other); MX_ERR_SHAPE (ld < cols, or out has another shape);
 *  MX_ERR_DATA (a value that spec refuses: scale.nan=error, elem.nan=error; err says where). On error out's contents are unspecified.
 *  Threads: reentrant; the same bits for any number of threads and any ISA.
 *  Source: OCP MX v1.0 sec. 6.3 for the default; formats/ for the others.   Oracle: ref_quantize, tests/test_quantize.c, tests/peers. */
mx_status mx_quantize(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec,
                      mx_error *err);

/** Quantise the transpose of src: out is [cols][rows] for a src [rows][cols], with blocks along src's first axis. Bit for bit the same as
 *  mx_quantize() of the transposed matrix, but without a copy of it. */
mx_status mx_quantize_transposed(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                                 const mx_exec *exec, mx_error *err);

/** Do both in one pass over src, as a training step needs for each weight, activation and gradient: out [rows][cols] gets the bits of
 *  mx_quantize() under spec, transposed [cols][rows] those of mx_quantize_transposed() under spec_transposed. The two specs may differ in every
 *  key. Operands that round stochastically must have different seeds, otherwise they share random words.
 *  spec_transposed  NULL: spec.
 *  Errors are those of the two, and MX_ERR_ARG if exec->first_row is not 0: src is whole. exec->amax, if known, is used for both.
 *  Threads: reentrant; the same bits for any number of threads and any ISA.
 *  Oracle: ref_quantize and ref_quantize_transposed, tests/test_kernels.c, tests/test_linear.c. */
mx_status mx_quantize_both(mx_tensor *out, mx_tensor *transposed, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                           const mx_spec *spec_transposed, const mx_exec *exec, mx_error *err);

/** Values of a quantised matrix, float32 [rows][ld], ld >= cols: rnd_f32(code * scale * tensor scale), or as spec.deq_arith says. NaN scales
 *  give NaN (canonical 0x7FC00000). A rotation is not undone (mx_hadamard_back() undoes it).
 *  tensor  as mx_quantize fills it, under the same spec; codes of the padding are not read
 *  exec    may be NULL
 *  Returns MX_OK; MX_ERR_ARG (NULL); MX_ERR_CONFLICT (spec keys that exclude each other); MX_ERR_SHAPE (ld < cols, a tensor of another spec).
 *  Threads: reentrant; the same bits for any number of threads and any ISA.
 *  Source: SPEC 3.4; OCP MX v1.0 sec. 5.   Oracle: ref_dequantize, tests/test_quantize.c, tests/test_kernels.c. */
mx_status mx_dequantize(float *out, size_t ld, const mx_tensor *tensor, const mx_spec *spec, const mx_exec *exec);

/** mx_quantize() for bfloat16 or binary16 numbers, [rows][cols], row stride ld: the same as for their binary32 values, which are made a few
 *  thousand at a time, so that they are never in memory together.
 *  type   MX_INPUT_DTYPE_BFLOAT16 or MX_INPUT_DTYPE_FLOAT16: what src holds (spec.input_dtype is what the rule computes in).
 *  Oracle: mx_quantize of the values, tests/test_kernels.c. */
mx_status mx_quantize_16(mx_tensor *out, const uint16_t *src, int type, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                         const mx_exec *exec, mx_error *err);
/** mx_tensor_amax() for such numbers. */
mx_status mx_tensor_amax_16(float *out, const uint16_t *src, int type, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                            const mx_exec *exec);

/** mx_dequantize() to bfloat16 bits, [rows][ld]: each binary32 value rounded to nearest even; NaN is 0x7FC0.
 *  Oracle: ref_dequantize, then ref_encode to bf16; tests/test_kernels.c. */
mx_status mx_dequantize_bf16(uint16_t *out, size_t ld, const mx_tensor *tensor, const mx_spec *spec, const mx_exec *exec);

/** Largest magnitude of src [rows][cols], after flush and rotation by spec: NaN if there is a NaN (spec.scale_nan=finite skips NaN).
 *  This is the A that mx_quantize() uses unless spec.tensor_given is set. It is 0 for an empty matrix.
 *  Returns MX_OK; MX_ERR_ARG (NULL); MX_ERR_CONFLICT; MX_ERR_SHAPE (ld < cols).
 *  Threads: reentrant; the same bits for any number of threads and any ISA.   Oracle: ref_tensor_amax, tests/test_kernels.c. */
mx_status mx_tensor_amax(float *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec);

/** The tensor scale that mx_quantize stores for a tensor whose largest magnitude is amax, in the convention of spec.tensor_store or the chain;
 *  1 for a spec without one. Returns MX_OK; MX_ERR_ARG (NULL); MX_ERR_CONFLICT.  Source: SPEC 3.3, formats/chains.def.  Oracle:
 *  ref_tensor_scale. */
mx_status mx_tensor_scale(float *out, float amax, const mx_spec *spec);
/** Name of that convention: "scale" (multiply to dequantise), "divisor", "amax", or "none". */
const char *mx_tensor_store_name(const mx_spec *spec);

/** Hadamard rotation of each row in tiles of size (a power of two, 2..1024) along cols; a short last tile is filled with +0 and only its first
 *  elements are stored. Butterflies of stride 1, 2, 4 .. size/2, each rounded, then one multiplication by rnd_f32(1/sqrt(size)). Signs come
 *  first: sign MX_HAD_SIGN_*, signs as mx_spec.had_signs, seed for MX_HAD_SIGN_FRESH. In place when out == src and the strides agree.
 *  out, src  float32 [rows][cols], row strides ld_out and ld
 *  Returns MX_OK; MX_ERR_ARG (NULL, another size); MX_ERR_SHAPE (a stride below cols).
 *  Threads: reentrant; the same bits for any number of threads and any ISA.
 *  Source: SPEC 5.  Oracle: ref_hadamard. */
mx_status mx_hadamard(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                      const uint8_t *signs, uint64_t seed);
/** The rotation the other way: the same butterflies and factor, and the signs last; a NaN stays 0x7FC00000. Arguments as above. It gives back what
 *  mx_hadamard() was given, except for its roundings. MX_ERR_SHAPE also where cols
 is not a multiple of size: a tile that was cut cannot be turned back.
 *  Oracle: ref_hadamard_back, tests/test_codec.c. */
mx_status mx_hadamard_back(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                           const uint8_t *signs, uint64_t seed);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
