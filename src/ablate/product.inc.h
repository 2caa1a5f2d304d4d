/* Computes the sums of one tile in registers: W lanes of vd, with vd_load vd_store vd_set vd_fma; ROWS x VECTORS accumulators; TABLE, the name. */
#include "ablate/product.h"

static void add(double *sum, const double *a, const double *b, size_t n) {
  vd s[ROWS][VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) s[r][v] = vd_load(sum + (r * VECTORS + v) * W);
  for (size_t k = 0; k < n; k++, a += ROWS, b += VECTORS * W) {
    vd bk[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) bk[v] = vd_load(b + v * W);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
      const vd ak = vd_set(a[r]);
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; v++) s[r][v] = vd_fma(ak, bk[v], s[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) vd_store(sum + (r * VECTORS + v) * W, s[r][v]);
}

const mxi_product_tile TABLE = {ROWS, VECTORS *W, add};
