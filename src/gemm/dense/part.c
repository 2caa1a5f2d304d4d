/* Computes a part of D by blocks of columns and of K, and the tiles of each. Between blocks of K the chains are kept in D itself. */
#include <stdint.h>
#include <string.h>

#include "core/sizes.h"
#include "gemm/dense/tile.h"

/* The columns [n0, n0 + cols) and terms [k0, k0 + terms) of the part. */
typedef struct block {
  const mxg_dense_part *of;
  const mx_dense *p;
  const mxg_dense_kernels *kernels;
  float *d;
  size_t tiles; /* that cover all rows of the part */
  size_t n0, cols, k0, terms;
} block;

static int triangular(const mx_dense *p) { return p->part == MX_DENSE_A_LOWER || p->part == MX_DENSE_A_UPPER; }

/* The first row of a tile; all tiles have nearly the same height. */
static size_t row_of(const block *x, size_t tile) {
  const size_t rows = x->of->m1 - x->of->m0;
  return x->of->m0 + tile * (rows / x->tiles) + size_least(tile, rows % x->tiles);
}

/* Adds the terms [k0, k1) to rows [r0, r1) of a tile. */
static void part_of_tile(const block *x, mxg_dense_tile t, size_t r0, size_t r1, size_t k0, size_t k1) {
  if (k0 >= k1) return;
  t.rows = r1 - r0;
  t.K = k1 - k0;
  t.a += (k0 - x->k0) * t.a_col + r0 * t.a_row;
  t.b += (k0 - x->k0) * x->kernels->b_width;
  t.d += r0 * t.ldd;
  x->kernels->tile(&t);
}

/* Does the triangle within a tile of A row by row, and the rest at once; D holds the sums so far. */
static void triangle_tile(const block *x, mxg_dense_tile t, size_t m0) {
  const size_t k0 = x->k0, k1 = k0 + x->terms, rows = t.rows, m1 = m0 + rows;
  t.load = 1;
  if (x->p->part == MX_DENSE_A_LOWER) {
    part_of_tile(x, t, 0, rows, k0, size_least(k1, m0 + 1));
    for (size_t r = 1; r < rows; r++) part_of_tile(x, t, r, r + 1, size_most(k0, m0 + 1), size_least(k1, m0 + r + 1));
  } else {
    for (size_t r = 0; r < rows; r++) part_of_tile(x, t, r, r + 1, size_most(k0, m0 + r), size_least(k1, m1));
    part_of_tile(x, t, 0, rows, size_most(k0, m1), k1);
  }
}

/* Writes only the outputs n <= m of a tile that the diagonal crosses. */
static void lower_tile(const block *x, mxg_dense_tile t, size_t m0, size_t n0) {
  float d[1024]; /* no tile is larger */
  float *to = t.d;
  const size_t ldd = t.ldd;
  if (n0 >= m0 + t.rows) return;
  if (n0 + t.cols <= m0 + 1) {
    x->kernels->tile(&t);
    return;
  }
  for (size_t r = 0; r < t.rows && t.load; r++)
    for (size_t c = 0; c < t.cols; c++) d[r * t.cols + c] = n0 + c <= m0 + r ? to[r * ldd + c] : 0;
  t.d = d;
  t.ldd = t.cols;
  x->kernels->tile(&t);
  for (size_t r = 0; r < t.rows; r++)
    for (size_t c = 0; c < t.cols && n0 + c <= m0 + r; c++) to[r * ldd + c] = d[r * t.cols + c];
}

static size_t columns_of(const mxg_dense_part *x, size_t m) { return x->p->part == MX_DENSE_OUT_LOWER ? size_least(x->n1, m + 1) : x->n1; }

/* Sets D to +0 where no tile does that ... */
static void zero(const mxg_dense_part *x) {
  for (size_t m = x->m0; m < x->m1; m++) {
    const size_t end = columns_of(x, m);
    if (end > x->n0) memset(x->d + m * x->p->ldd + x->n0, 0, (end - x->n0) * sizeof *x->d);
  }
}

/* ... and adds the bias and makes NaNs canonical at the end. */
static void finish(const mxg_dense_part *x) {
  static const uint32_t nan_bits = 0x7FC00000;
  float nan;
  memcpy(&nan, &nan_bits, sizeof nan);
  for (size_t m = x->m0; m < x->m1; m++) {
    float *restrict d = x->d + m * x->p->ldd;
    const size_t end = columns_of(x, m);
    for (size_t n = x->n0; n < end && x->p->bias; n++) d[n] += x->p->bias[n];
#pragma omp simd
    for (size_t n = x->n0; n < end; n++) d[n] = d[n] == d[n] ? d[n] : nan;
  }
}

/* Computes the rows of tiles [tile0, tile1) with all columns of the block. */
static void rows_of_tiles(const block *x, float *a, const float *b, size_t tile0, size_t tile1, int load, int last) {
  const mx_dense *p = x->p;
  const mxg_dense_kernels *k = x->kernels;
  const size_t end = row_of(x, tile1);
  if (p->part == MX_DENSE_OUT_LOWER && x->n0 >= end) return;
  if (p->part == MX_DENSE_A_LOWER && x->k0 >= end) return;
  /* Packing pays only if several panels read what is packed. */
  const int direct = x->of->n1 - x->of->n0 <= 2 * k->cols;
  for (size_t i = tile0; i < tile1 && !direct; i++) {
    const size_t m0 = row_of(x, i);
    k->pack(a + (i - tile0) * k->a_width * x->terms, k->a_width, x->of->a + m0 * p->a_row + x->k0 * p->a_col, p->a_row, p->a_col,
            row_of(x, i + 1) - m0, p->M - m0, x->terms);
  }
  for (size_t n0 = x->n0; n0 < x->n0 + x->cols; n0 += k->cols)
    for (size_t i = tile0; i < tile1; i++) {
      const size_t m0 = row_of(x, i);
      const mxg_dense_tile t = {.rows = row_of(x, i + 1) - m0,
                                .cols = size_least(k->cols, x->n0 + x->cols - n0),
                                .K = x->terms,
                                .a = direct ? x->of->a + m0 * p->a_row + x->k0 * p->a_col : a + (i - tile0) * k->a_width * x->terms,
                                .a_row = direct ? p->a_row : 1,
                                .a_col = direct ? p->a_col : k->a_width,
                                .b = b + (n0 - x->n0) / k->cols * k->b_width * x->terms,
                                .d = x->d + m0 * p->ldd + n0,
                                .ldd = p->ldd,
                                .load = load,
                                .bias = p->bias && last && !triangular(p) ? p->bias + n0 : NULL};
      if (triangular(p))
        triangle_tile(x, t, m0);
      else if (p->part == MX_DENSE_OUT_LOWER)
        lower_tile(x, t, m0, n0);
      else
        k->tile(&t);
    }
}

/* Packs the block's part of B, and then computes its rows, as many tiles at a time as fit into packed A. */
static void block_of(const block *x, float *a, float *b, int load, int last) {
  const mxg_dense_kernels *k = x->kernels;
  const size_t together = MXG_DENSE_A_SLOTS / k->a_width;
  for (size_t n = 0; n < x->cols; n += k->cols)
    k->pack(b + n / k->cols * k->b_width * x->terms, k->b_width, x->of->b + (x->n0 + n) * x->p->b_row + x->k0 * x->p->b_col, x->p->b_row,
            x->p->b_col, size_least(k->cols, x->cols - n), x->p->N - x->n0 - n, x->terms);
  for (size_t tile = 0; tile < x->tiles; tile += together) rows_of_tiles(x, a, b, tile, size_least(tile + together, x->tiles), load, last);
}

void mxi_dense_part(const mxg_dense_part *of, float *a, float *b) {
  const mx_dense *p = of->p;
  const mxg_dense_kernels *kernels = of->kernels;
  /* The part of the product that a causal mask leaves for these rows. */
  const size_t k_begin = p->part == MX_DENSE_A_UPPER ? size_least(of->m0, p->K) : 0,
               k_end = p->part == MX_DENSE_A_LOWER ? size_least(of->m1, p->K) : p->K;
  const size_t n_end = p->part == MX_DENSE_OUT_LOWER ? size_least(of->m1, of->n1) : of->n1;
  const size_t n_block = MXG_DENSE_N_BLOCK / kernels->cols * kernels->cols,
               n_blocks = (k_end - k_begin + MXG_DENSE_K_BLOCK - 1) / MXG_DENSE_K_BLOCK;
  const size_t k_block = n_blocks ? (k_end - k_begin + n_blocks - 1) / n_blocks : 0; /* blocks have nearly the same length */
  const int by_tiles = n_blocks && !triangular(p);                                   /* tiles also set the start and add the bias */
  if (!by_tiles && !p->accumulate) zero(of);
  block x = {.of = of, .p = p, .kernels = kernels, .d = of->d, .tiles = (of->m1 - of->m0 + kernels->rows - 1) / kernels->rows};
  for (x.n0 = of->n0; x.n0 < n_end; x.n0 += x.cols) {
    x.cols = size_least(n_block, n_end - x.n0);
    for (x.k0 = k_begin; x.k0 < k_end; x.k0 += x.terms) {
      x.terms = size_least(k_block, k_end - x.k0);
      block_of(&x, a, b, p->accumulate || x.k0 > k_begin, x.k0 + x.terms == k_end);
    }
  }
  if (!by_tiles) finish(of);
}
