/** Multiplies plain float32 matrices with the same bits everywhere; a training step does so wherever nothing is quantised.
 *
 *  Each output is one chain of fused multiply-adds, k ascending, rounded to nearest even at every step:
 *      c = start;  for k = 0 .. K-1: c = fmaf(a(m, k), b(n, k), c);  d[m][n] = c, or rnd(c + bias[n])
 *  start is +0, or with `accumulate` what d[m][n] held. This is the order of the model f32_seq (gemm.h), so the two agree bit for bit. Kernels
 *  are vectorised over outputs and never over k: the result does not depend on ISA, tile sizes, blocks of k or the number of threads.
 *
 *  NaN, Inf and subnormals are data, and zeros have the signs that IEEE 754 gives them. Every NaN that is stored is 0x7FC00000.
 *
 *  Strides are arbitrary, so no operand needs a transposed copy. For a linear layer y = x W^T with x [T][I], W [O][I], dy [T][O]:
 *      y   M=T N=O K=I   a=x, a_row=I, a_col=1    b=W, b_row=I, b_col=1    d=y, ldd=O
 *      dx  M=T N=I K=O   a=dy, a_row=O, a_col=1   b=W, b_row=1, b_col=I    d=dx, ldd=I
 *      dw  M=O N=I K=T   a=dy, a_row=1, a_col=O   b=x, b_row=1, b_col=I    d=dw, ldd=I, accumulate=1
 *  For a transposed output, exchange a and b: the chain is the same. */
#ifndef MXGOLD_DENSE_H
#define MXGOLD_DENSE_H

#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The part of a product that a causal mask leaves; m, n and k as in mx_dense. Elements of a that are left out take no part,
 * whatever they hold; outputs that are left out are not written. */
enum {
  MX_DENSE_WHOLE = 0,
  MX_DENSE_OUT_LOWER = 1, /* only outputs n <= m: scores q k^T, and dp = dy v^T */
  MX_DENSE_A_LOWER = 2,   /* the chain runs over k <= m: p v, and dq = ds k */
  MX_DENSE_A_UPPER = 3    /* the chain runs over k >= m: dv = p^T dy, and dk = ds^T q */
};

/** cblas_sgemm() of a BLAS: layout 101 (row-major), trans 111 (no) or 112 (yes). */
typedef void mx_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                      float beta, float *c, int ldc);

/** A product, or a batch of products of one shape. Strides count elements. */
typedef struct mx_dense {
  size_t M, N, K;
  const float *a; /* a(m, k) = a[m * a_row + k * a_col] */
  size_t a_row, a_col;
  const float *b; /* b(n, k) = b[n * b_row + k * b_col] */
  size_t b_row, b_col;
  float *d; /* d[m * ldd + n]; must not overlap a, b or bias */
  size_t ldd;
  int accumulate;    /* 1: each chain starts from what d holds */
  int part;          /* MX_DENSE_* above */
  const float *bias; /* [N], added to the end of the chain with one rounding; NULL: none */
  /* Products (i, j), i < batch[0], j < batch[1]; a batch of 0 means 1. Operand x begins at x + i * x_batch[0] + j * x_batch[1]. For attention
   * over q, k, v [sequences][T][heads][width]: batch = {sequences, heads}, a_batch = {T * heads * width, width}. bias is the same for all. */
  size_t batch[2], a_batch[2], b_batch[2], d_batch[2];
  /* NULL: the chain. Else this function computes a single whole product of matrices with a stride of 1, in its own order of sums and on its own
   * threads: to compare speeds. The other products stay chains. */
  mx_sgemm *sgemm;
} mx_dense;

/** Bytes of scratch memory that mx_dense_gemm() needs for this product on exec. They depend only on M, N, K, batch and the number of threads,
 *  not on pointers or strides. Several products can share the largest of their workspaces. The size is at most a few MiB per thread, whatever
 *  the shape.
 *  exec  may be NULL: the default, all processors.   Returns 0 for an empty product. */
size_t mx_dense_workspace(const mx_dense *p, const mx_exec *exec);

/** Compute the product. Nothing is allocated.
 *  workspace  mx_dense_workspace(p, exec) bytes, of any alignment (64 is best); may be NULL if that is 0. Contents before and after do not matter.
 *  exec       n_threads is the most that are used (0: all processors; small products use fewer); isa_mask is honoured. May be NULL.
 *  Returns MX_OK; MX_ERR_ARG (NULL where there is something to read or write, `part` outside its list); MX_ERR_SHAPE (ldd < N, or a size that
 *  overflows). On error d is untouched. K = 0 gives the start, plus bias.
 *  Threads: reentrant if each call has its own workspace; the same bits for any number of threads and any ISA.
 *  Source: IEEE 754-2019 fusedMultiplyAdd.   Oracle: ref_dense_gemm; mx_gemm's f32_seq for operands with elem=none; tests/test_dense.c. */
mx_status mx_dense_gemm(const mx_dense *p, void *workspace, const mx_exec *exec, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
