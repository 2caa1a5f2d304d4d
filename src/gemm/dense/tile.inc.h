/* Packs operands and computes register tiles of the float32 product, for every ISA. The outputs of a row lie in the lanes, so that each is the
 * chain of its definition. The including file defines W lanes with vf_load vf_store vf_set vf_fma vf_add vf_canonical vf_transpose, and
 *
 *   ROWS, VECTORS   the largest tile: ROWS x (VECTORS * W) accumulators stay in registers
 *   A_WIDTH         ROWS rounded up to whole vectors
 *   EACH_ROW(X, V)  X(1, V) ... X(ROWS, V), with FOUR for the first four; EACH_VECTOR(X) X(1) ... X(VECTORS)
 *   TABLE           the name of the mxg_dense_kernels */
#include <string.h>

#include "gemm/dense/tile.h"

enum { COLS = VECTORS * W };

/* Callers pass constants for R and V, so that every loop over them is unrolled and sum[][] stays in registers. */
static inline __attribute__((always_inline)) void chains(const mxg_dense_tile *t, const int R, const int V, const size_t row,
                                                         const size_t col) {
  vf sum[ROWS][VECTORS];
  const float *a = t->a, *b = t->b;
  for (int r = 0; r < R; r++) /* prefetches the lines of D while the sums are computed */
    for (int v = 0; v < V * W; v += 16) __builtin_prefetch(t->d + (size_t)r * t->ldd + v, 1);
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) sum[r][v] = t->load ? vf_load(t->d + (size_t)r * t->ldd + v * W) : vf_set(0.0f);
  for (size_t k = 0; k < t->K; k++, a += col, b += COLS) {
    vf bk[VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < V; v++) bk[v] = vf_load(b + v * W);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      const vf ak = vf_set(a[(size_t)r * row]);
#pragma GCC unroll 16
      for (int v = 0; v < V; v++) sum[r][v] = vf_fma(ak, bk[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) {
      if (t->bias) sum[r][v] = vf_add(sum[r][v], vf_load(t->bias + v * W));
      vf_store(t->d + (size_t)r * t->ldd + v * W, vf_canonical(sum[r][v]));
    }
}

#define FOUR(X, V) X(1, V) X(2, V) X(3, V) X(4, V)
typedef void chains_of(const mxg_dense_tile *t);
#define CHAINS(R, V)                                                                                                                           \
  static void chains_##R##_##V(const mxg_dense_tile *t) { chains(t, R, V, 1, A_WIDTH); }                                                       \
  static void direct_##R##_##V(const mxg_dense_tile *t) { chains(t, R, V, t->a_row, t->a_col); }
#define EACH(V) EACH_ROW(CHAINS, V)
EACH_VECTOR(EACH)
#undef CHAINS
#undef EACH
#define CHAINS(R, V) chains_##R##_##V,
#define DIRECT(R, V) direct_##R##_##V,
#define EACH(V) {{EACH_ROW(DIRECT, V)}, {EACH_ROW(CHAINS, V)}},
static chains_of *const of_size[VECTORS][2][ROWS] = {EACH_VECTOR(EACH)};

/* Columns that do not fill whole vectors go through a tile on the stack. */
static void tile(const mxg_dense_tile *t) {
  const size_t vectors = (t->cols + W - 1) / W, whole = vectors * W;
  chains_of *run = of_size[vectors - 1][t->a_row == 1 && t->a_col == A_WIDTH][t->rows - 1];
  if (whole == t->cols) {
    run(t);
    return;
  }
  float d[ROWS * COLS], bias[COLS] = {0};
  mxg_dense_tile padded = *t;
  padded.d = d;
  padded.ldd = whole;
  for (size_t r = 0; r < t->rows && t->load; r++) {
    memcpy(d + r * whole, t->d + r * t->ldd, t->cols * sizeof *d);
    memset(d + r * whole + t->cols, 0, (whole - t->cols) * sizeof *d);
  }
  if (t->bias) padded.bias = memcpy(bias, t->bias, t->cols * sizeof *bias);
  run(&padded);
  for (size_t r = 0; r < t->rows; r++) memcpy(t->d + r * t->ldd, d + r * whole, t->cols * sizeof *d);
}

/* Packs rows that are contiguous along k, by transposing squares of W x W. */
static void pack_rows(float *out, size_t width, const float *in, size_t row, size_t rows, size_t n) {
  size_t k = 0;
  for (; k + W <= n; k += W) {
    vf square[W];
#pragma GCC unroll 16
    for (size_t r = 0; r < W; r++) square[r] = vf_load(in + (r < rows ? r : 0) * row + k);
    vf_transpose(square);
#pragma GCC unroll 16
    for (size_t i = 0; i < W; i++) vf_store(out + (k + i) * width, square[i]);
  }
  for (; k < n; k++)
    for (size_t r = 0; r < W; r++) out[k * width + r] = in[(r < rows ? r : 0) * row + k];
}

/* Packs rows that lie side by side. A vector may read more rows of the matrix than needed, but nothing outside the matrix. */
static void pack_columns(float *out, size_t width, const float *in, size_t col, size_t rows, size_t there, size_t n) {
  for (size_t k = 0; k < n; k++, out += width, in += col) {
    size_t r = 0;
    for (; r < rows && r + W <= there; r += W) vf_store(out + r, vf_load(in + r));
    for (; r < rows; r++) out[r] = in[r];
    for (; r < width; r++) out[r] = 0;
  }
}

static void pack(float *out, size_t width, const float *in, size_t row, size_t col, size_t rows, size_t there, size_t n) {
  if (col == 1)
    for (size_t r = 0; r < rows; r += W) pack_rows(out + r, width, in + r * row, row, rows - r, n);
  else if (row == 1)
    pack_columns(out, width, in, col, rows, there, n);
  else
    for (size_t k = 0; k < n; k++)
      for (size_t r = 0; r < width; r++) out[k * width + r] = r < rows ? in[r * row + k * col] : 0;
}

const mxg_dense_kernels TABLE = {ROWS, COLS, A_WIDTH, COLS, tile, pack};
