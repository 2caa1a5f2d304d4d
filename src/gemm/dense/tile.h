/* Declares what the files of the float32 product share.
 *
 * run.c         the call: checks, threads, parts of D
 * part.c        a part of D: its blocks of columns and of K, and the tiles of each
 * tile.inc.h    packing and register tiles, written once over the lanes of an ISA; each tile_*.c includes it */
#ifndef MX_GEMM_DENSE_TILE_H
#define MX_GEMM_DENSE_TILE_H

#include "mxgold/dense.h"

/* A register tile of D: rows x cols outputs, whose chains are continued over K terms. */
typedef struct mxg_dense_tile {
  size_t rows, cols, K;
  const float *a; /* a(r, k) = a[r * a_row + k * a_col]; packed: 1 and a_width */
  size_t a_row, a_col;
  const float *b; /* packed: b(c, k) = b[k * b_width + c], in whole vectors, of which only cols are used */
  float *d;
  size_t ldd;
  int load;          /* 1: chains begin with d; 0: with +0 */
  const float *bias; /* added at the end; NULL: none */
} mxg_dense_tile;

typedef struct mxg_dense_kernels {
  size_t rows, cols;       /* of the largest tile */
  size_t a_width, b_width; /* of packed operands: rows and cols rounded up to whole vectors */
  void (*tile)(const mxg_dense_tile *t);
  /** out[k * width + r] = in[r * row + k * col] for r < rows and n values of k; what follows up to the width does not matter.
   *  there  rows that the matrix has from the first of these on, all of which may be read: at least rows */
  void (*pack)(float *out, size_t width, const float *in, size_t row, size_t col, size_t rows, size_t there, size_t n);
} mxg_dense_kernels;

enum {
  MXG_DENSE_A_SLOTS = 128, /* most rows in a packed block of A, padding included; a multiple of every a_width */
  MXG_DENSE_K_BLOCK = 384, /* terms of a chain between two stores of D */
  MXG_DENSE_N_BLOCK = 1536 /* most columns of packed B */
};

/* Rows [m0, m1) and columns [n0, n1) of a product of the batch, whose matrices begin at a, b, d. */
typedef struct mxg_dense_part {
  const mx_dense *p;
  const mxg_dense_kernels *kernels;
  const float *a, *b;
  float *d;
  size_t m0, m1, n0, n1;
} mxg_dense_part;

/** Computes the part. a, b: memory for packed blocks. */
void mxi_dense_part(const mxg_dense_part *part, float *a, float *b);

extern const mxg_dense_kernels mxi_dense_scalar, mxi_dense_avx2, mxi_dense_avx512, mxi_dense_neon;

#endif
