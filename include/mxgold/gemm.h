/** Computes the block-scaled product D = alpha * A x B^T + beta * C + bias, bit for bit under a named accumulation model. SPEC section 4.
 *
 *  mx_gemm() takes what mx_quantize() made; mx_gemm_raw() takes what a BLAS tester has: bare pointers, transposes, leading dimensions, batches,
 *  swizzled scales, and a list of those (i, j) that are to be computed. Both run the same code.
 *
 *  NaN and Inf are data. Every formula of the models is read in IEEE's extended arithmetic. A term of f32_block is the exact (dot * up) /
 *  under, where dot is the sum of the products of the elements, up the product of the scales that multiply (decode form) and under the product
 *  of the scales that divide (encode form): dot * (sa * sb), dot / (sa * sb) or, with one operand in each form, dot * sa / sb. So a NaN
 *  anywhere in a block, Inf * 0, Inf - Inf and 0 / 0 give NaN, with one exception: a zero dot over a zero `under` is 0 if up is finite, since
 *  an all-zero block is stored as a zero scale with zero codes. The other models see each element's own value, code * scale or code / scale,
 *  again with 0 / 0 = 0. A NaN result is 0x7FC00000, 0x7FC0 (bf16) or 0x7E00 (f16). A sum that is exactly zero is +0 in f32_block and exact; a
 *  result that underflows keeps its sign. Elements beyond K in a padded block take no part, whatever their codes are. */
#ifndef MXGOLD_GEMM_H
#define MXGOLD_GEMM_H

#include "dtype.h"
#include "layout.h"
#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** Accumulation models of a product: rows of formats/gemm_models.def. */
typedef enum mx_gemm_model {
#define MX_GEMM_MODEL(id, ...) MX_GEMM_##id,
#include "../../formats/gemm_models.def"
#undef MX_GEMM_MODEL
  MX_GEMM_MODEL_COUNT
} mx_gemm_model;

/** Name ("f32_block") and definition of a model, NULL outside the enum; and the model of a name, -1 if the name is unknown. */
const char *mx_gemm_model_name(int model);
const char *mx_gemm_model_doc(int model);
int mx_gemm_model_find(const char *name);

struct mx_mma_model;

/** How the product is summed and what follows it. {0} is f32_block, alpha 1, no C, no bias, binary32 out.
 *  After the sum acc (binary32; f64's is rounded first): t = rnd(alpha * rnd(ga * gb)), ga and gb the tensor scales as multipliers;
 *  d = rnd(acc * t); with C: d = fmaf(beta, c, d); with bias: d = rnd(d + bias[n]); then one RNE to the output type. `exact` rounds only once,
 *  at the end. As in every BLAS, alpha = 0 means that A and B are not read (acc * t is +0), and beta = 0 that C is not read. */
typedef struct mx_gemm_options {
  int model;                        /* MX_GEMM_* */
  const struct mx_mma_model *fused; /* MX_GEMM_FUSED: parameters, k and d (mma.h); types, scales and block are the operands' */
  const float *alpha, *beta;        /* NULL: 1 */
  mx_dtype out;                     /* type of D: MX_F32, MX_F16, MX_BF16 */
  mx_dtype c_type;                  /* type of C: the same three */
  const void *c;                    /* [M][N] with row stride ldc; NULL: none. May be D itself if the types and strides agree */
  size_t ldc;                       /* in elements; 0: N */
  const float *bias;                /* [N], or [M] with bias_of_rows; NULL: none */
  int bias_of_rows;
  size_t batch; /* 0: 1 */
  mx_exec exec; /* n_threads, isa_mask */
} mx_gemm_options;

/** Block-scaled product of quantised matrices.
 *  d       [batch][M][ldd] of type options->out, row stride ldd >= N in elements. Elements beyond column N are left alone.
 *  a, b    [batch * M][K] and [batch * N][K], quantised along K with the same block along K (mx_spec's elements and scales may differ; an operand
 *          with elem=none or bf16 has no scales and takes the other's block). Tensor scales are the stored ones. A rotation is not undone: rotate both.
 *  a_spec, b_spec  what a and b were quantised with.
 *  options NULL: {0}.
 *  Returns MX_OK; MX_ERR_ARG (NULL, model or type outside its list); MX_ERR_SHAPE (K differs, rows not a multiple of batch, ldd < N);
 *  MX_ERR_CONFLICT (blocks along K differ; operands that options->fused cannot take: block scales in an integer sum, a block that is not a multiple
 *  of P, elements too wide for P or via); MX_ERR_UNSUPPORTED (`exact` with scale.form=encode and scales of
 *  more than four significant bits); MX_ERR_NOMEM. On error d is untouched, except MX_ERR_NOMEM.
 *  Threads: reentrant; the same bits for any number of threads and any ISA. Memory beyond d: under 64 MiB on two threads.
 *  Source: SPEC section 4.   Oracle: ref_gemm, tests/test_gemm.c. */
mx_status mx_gemm(void *d, size_t ldd, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                  const mx_gemm_options *options, mx_error *err);

/** The multiplier that a tensor's stored scale stands for: what an element 1 with a scale 1 dequantises to; 1 if there is no tensor scale. */
mx_status mx_tensor_multiplier(float *out, const mx_tensor *tensor, const mx_spec *spec);

enum { MX_ROW_MAJOR = 0, MX_COL_MAJOR = 1 };
/** How codes lie in memory. DENSE: 4-bit codes two per byte, 6-bit codes as a little-endian bit stream, with each line of ld elements starting
 *  on a byte; wider codes as they are. BYTES: one code per byte. */
enum { MX_PACK_DENSE = 0, MX_PACK_BYTES = 1 };

/** One operand of mx_gemm_raw(). {elem, data} is enough for a dense matrix without scales. */
typedef struct mx_gemm_operand {
  const mx_format *elem;   /* any row of format.h up to 32 bits */
  int transposed;          /* as in BLAS: D = op(A) op(B), op(A) is M x K and op(B) is K x N. Blocks run along K either way */
  int packing;             /* MX_PACK_* */
  int nibble;              /* MX_NIBBLE_LOW_FIRST or _HIGH_FIRST, order in memory of 4-bit codes */
  size_t ld;               /* leading dimension in elements; 0: dense */
  const void *data;        /* first matrix of a strided batch */
  size_t stride;           /* elements from one matrix to the next, an even number for 4-bit codes; 0: the same matrix */
  const void *const *list; /* pointer batch: one pointer per matrix, instead of data and stride */

  const mx_format *scale; /* any row of format.h; NULL: no scales */
  const void *scales;     /* scale (r, kb): r is the row of op(A) or the column of op(B), kb the block; 1, 2 or 4 bytes each */
  int scale_layout;       /* MX_LAYOUT_*; layouts other than ROW need one-byte scales */
  int scale_transposed;   /* MX_LAYOUT_ROW: [kb][rows] instead of [rows][kb] */
  size_t scale_ld;        /* MX_LAYOUT_ROW: leading dimension; 0: dense */
  size_t scale_stride;    /* scales from one matrix to the next; 0: the same ones */
  const void *const *scale_list;
  int scale_form;          /* MX_SCALE_FORM_*: DECODE multiplies, ENCODE divides */
  int scale_sign;          /* MX_SCALE_SIGN_* */
  const float *multiplier; /* tensor scale; NULL: 1 */
} mx_gemm_operand;

/** The problem that mx_gemm_raw() computes. */
typedef struct mx_gemm_problem {
  size_t M, N, K;
  size_t block; /* elements along K that share a scale; 0: 32 */
  int order;    /* of A, B, C and D: MX_ROW_MAJOR, MX_COL_MAJOR */
  mx_gemm_operand a, b;
  void *d;              /* of type options.out */
  size_t ldd, stride_d; /* elements; ldd 0: dense */
  void *const *list_d;
  size_t stride_c; /* options.c, ldc, c_type, bias: as in mx_gemm(), in `order` */
  const void *const *list_c;
  const size_t (*pairs)[2]; /* the only (i, j) to compute; NULL: all. With pairs D is [batch][n_pairs], stride_d apart (0: n_pairs) */
  size_t n_pairs;
  mx_gemm_options options;
} mx_gemm_problem;

/** Product of operands given by bare pointers, for checking another library's GEMM.
 *  Returns as mx_gemm(), and MX_ERR_ARG for a packing, nibble, scale_form or scale_sign outside its list, MX_ERR_SHAPE for leading dimensions too
 *  short, batch * M * N that overflows, pairs outside the matrix, or a swizzled layout with wide scales.
 *  Threads, source, oracle: as mx_gemm().   Example: examples/validate_gemm.c. */
mx_status mx_gemm_raw(const mx_gemm_problem *problem, mx_error *err);

/** Is every partial sum of every output, in any order and grouping, exact in `bits` bits (24: binary32; fewer for a device that cuts products to a
 *  shorter fraction)? Proof for each (i, j): all products are multiples of 2^low, where low is the sum of the lowest bits of row i and column
 *  j. So is every partial sum, and none exceeds the sum of the magnitudes; if that is at most 2^(low + bits), each has at most `bits` bits.
 *  Exponents stay in the normal range. The tensor scales come after the sum and take no part. MX_ERR_ARG (NULL, bits outside 1..24),
 *  MX_ERR_SHAPE, MX_ERR_NOMEM.
 *  Oracle: tests/test_gemm_order.c sums such products in random orders. */
mx_status mx_gemm_order_free(int *free_of_order, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                             unsigned bits);

/** A bound that proves the same for one tensor, whatever the other is: the largest sum of squares of a row's values, in units of the row's
 *  lowest bit. By Cauchy-Schwarz, if it is at most 2^bits for both tensors, then so is the sum of the magnitudes of every product of their
 *  rows, in units of 2^low. Infinity if values are not finite or beyond 2^63. MX_ERR_ARG (NULL), MX_ERR_NOMEM.   Oracle: tests/test_verify.c */
mx_status mx_gemm_order_squares(double *squares, const mx_tensor *tensor, const mx_spec *spec);

/** Put random codes and scales with that property into tensors from mx_tensor_alloc(), so that a device whose order of summation is unknown can
 *  still be checked bit for bit. What this guarantees: before the tensor scales, the sum is one number of at most `bits` bits under every model
 *  that rounds or cuts no bit of such sums. These models are exact, f32_block, f32_seq, f32_pairwise, f64, and each matrix unit whose widths
 *  reach down to 2^low from the exponents that it aligns by (those of the encodings, where a subnormal element stands up to its man_bits
 *  higher). D is the same if what follows the sum is the same: f32_block, f32_seq, f32_pairwise, f64 and such units agree whatever the tensor
 *  scales, alpha, C and bias are. `exact` rounds these together with the sum instead of one by one: without C and bias its D equals theirs if t
 *  (mx_gemm_options) is the unrounded ga * gb * alpha and D is binary32, or if that product is a power of two (1 if there are none) and nothing
 *  overflows or underflows; otherwise it may differ in the last place. MX_ERR_UNSUPPORTED if K leaves fewer than two bits for an operand, or
 *  for elements wider than a byte. */
mx_status mx_gemm_make_order_free(mx_tensor *a, const mx_spec *a_spec, mx_tensor *b, const mx_spec *b_spec, unsigned bits, uint64_t seed);

/** A family of devices: all those that sum with at least this precision. {0} is every order of plain binary32 additions or FMAs. For a row of
 *  the accumulation table use the bits of its result (out_bits + 1; 11 for f16), F as the fraction (exact: 0), and f16 sums if it accumulates
 *  in f16. */
typedef struct mx_gemm_family {
  int bits;     /* significant bits that every partial sum keeps, rounded or cut in any direction; 0: 24 */
  int fraction; /* fractional bits that each term keeps when aligned, below the largest exponent of what is added together; 0: nothing is cut */
  mx_dtype sums; /* MX_F32, or MX_F16: partial sums have binary16's exponents, subnormals and largest number */
} mx_gemm_family;

/** The interval that each output of D lies in for every member of a family: any order and grouping of the products (each times its scales), any
 *  rounding of partial sums, binary32 subnormals kept or flushed. With S the exact sum, T the sum of the magnitudes, u = 2^(1 - bits) and
 *  f = 2^-fraction, a sum is within E = (T + W) ((1 + u)^(K+1) (1 + f)^(2 K) - 1) + 3 K 2^-126 (f16 sums: 2 (K + 1) 2^-24 + 2 K f 2^-21) of S,
 *  plus the products of binary32 subnormals. Then alpha, tensor scales, C and bias are applied to both ends as mx_gemm() does; each step is
 *  monotone. Units align by the exponents of the encodings, where a subnormal number or a zero has that of the smallest normal one and an
 *  integer element has 0. W is the largest 2^exponent of a product that stands above the product's own value, and 0 if there is no such product
 *  or no fraction.
 *  Not covered: a different epilogue (`exact` has one; group64 has a lattice), values code * scale that overflow or lose bits in binary32 before they are multiplied,
 *  and units that align sums of P products by the exponents of the scales alone if elements other than e2m1 fall below 1. Both ends are NaN if
 *  the sum has a NaN, and [-Inf, Inf] if a partial sum may overflow; a device may then give NaN as well.
 *  lo, hi  binary32 [batch][M][ld]. options->model is ignored and options->out must be MX_F32. Errors as mx_gemm().
 *  Threads: reentrant. Source: Higham, Accuracy and Stability, sec. 4.2, with one cut by a factor 1 + f for each term.
 *  Oracle: tests/test_gemm_order.c, tests/test_gemm_fused.c:
 *  every other model lies inside. */
mx_status mx_gemm_bound(float *lo, float *hi, size_t ld, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                        const mx_gemm_options *options, const mx_gemm_family *family, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
