/** Products of plain float32 matrices, the same bits everywhere: what a training step uses where nothing is quantised.
 *
 *  Each output is one chain of fused multiply-adds, k ascending, rounded to nearest even at every step:
 *      c = start;  for k = 0 .. K-1: c = fmaf(a(m, k), b(n, k), c);  d[m][n] = c, or rnd(c + bias[n])
 *  start is +0, or with `accumulate` what d[m][n] held. That is the order of the model f32_seq (gemm.h), so that the two agree to the bit. Kernels are
 *  vectorised over outputs and never over k: ISA, tile sizes, blocks of k and the number of threads are not seen in the result.
 *
 *  NaN, Inf and subnormals are data, and signs of zeros are what IEEE 754 says. Every NaN that is stored is 0x7FC00000.
 *
 *  Any strides, so no operand needs a transposed copy. For a linear layer y = x W^T with x [T][I], W [O][I], dy [T][O]:
 *      y   M=T N=O K=I   a=x, a_row=I, a_col=1    b=W, b_row=I, b_col=1    d=y, ldd=O
 *      dx  M=T N=I K=O   a=dy, a_row=O, a_col=1   b=W, b_row=1, b_col=I    d=dx, ldd=I
 *      dw  M=O N=I K=T   a=dy, a_row=1, a_col=O   b=x, b_row=1, b_col=I    d=dw, ldd=I, accumulate=1
 *  A transposed output is the product with a and b exchanged: the chain is the same. */
#ifndef MXGOLD_DENSE_H
#define MXGOLD_DENSE_H

#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* What a causal mask leaves of a product; m, n and k as in mx_dense. Elements of a that are left out take no part,
 * whatever they hold; outputs that are left out are not written. */
enum {
  MX_DENSE_WHOLE = 0,
  MX_DENSE_OUT_LOWER = 1, /* outputs n <= m alone: scores q k^T, and dp = dy v^T */
  MX_DENSE_A_LOWER = 2,   /* the chain runs over k <= m: p v, and dq = ds k */
  MX_DENSE_A_UPPER = 3    /* the chain runs over k >= m: dv = p^T dy, and dk = ds^T q */
};

/** A product, or a batch of products of one shape. Strides count elements. */
typedef struct mx_dense {
  size_t M, N, K;
  const float *a; /* a(m, k) = a[m * a_row + k * a_col] */
  size_t a_row, a_col;
  const float *b; /* b(n, k) = b[n * b_row + k * b_col] */
  size_t b_row, b_col;
  float *d; /* d[m * ldd + n]; must not overlap a, b or bias */
  size_t ldd;
  int accumulate;    /* 1: the chains begin with what d holds */
  int part;          /* MX_DENSE_* above */
  const float *bias; /* [N], added to the end of the chain with one rounding; NULL: none */
  /* Products (i, j), i < batch[0], j < batch[1], 0 standing for 1: operand x begins at x + i * x_batch[0] + j * x_batch[1]. Attention over q, k, v
   * [sequences][T][heads][width]: batch = {sequences, heads}, a_batch = {T * heads * width, width}. bias is the same for all. */
  size_t batch[2], a_batch[2], b_batch[2], d_batch[2];
} mx_dense;

/** Bytes of scratch memory that mx_dense_gemm() needs for this product on exec: of M, N, K and batch and the number of threads alone; pointers and
 *  strides are not looked at. The need of several products is the largest of theirs. Bounded: some MiB a thread, whatever the shape.
 *  exec  may be NULL: the default, all processors.   Returns 0 for an empty product. */
size_t mx_dense_workspace(const mx_dense *p, const mx_exec *exec);

/** Compute it. Nothing is allocated.
 *  workspace  mx_dense_workspace(p, exec) bytes, of any alignment (64 is best); may be NULL if that is 0. Contents before and after do not matter.
 *  exec       n_threads is the most that are used (0: all processors; small products take fewer), isa_mask counts; may be NULL.
 *  Returns MX_OK; MX_ERR_ARG (NULL where there is something to read or write, `part` outside its list); MX_ERR_SHAPE (ldd < N, or a size that
 *  overflows). On error d is untouched. K = 0 gives the start, plus bias.
 *  Threads: reentrant with workspaces of their own; the same bits for any number of threads and any ISA.
 *  Source: IEEE 754-2019 fusedMultiplyAdd.   Oracle: ref_dense_gemm; mx_gemm's f32_seq of operands with elem=none; tests/test_dense.c. */
mx_status mx_dense_gemm(const mx_dense *p, void *workspace, const mx_exec *exec, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
