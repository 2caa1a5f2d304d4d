/* Declares the register tiles of the product in binary64.
 *
 * A product of two binary32 is exact in binary64, so that a fused multiply-add rounds as a product and a sum do: an ISA that has it may use it, and the
 * bits are the same. Each output is one chain with k ascending; between blocks of k it waits in y. */
#ifndef MX_ABLATE_PRODUCT_H
#define MX_ABLATE_PRODUCT_H

#include <stddef.h>

typedef struct mxi_product_tile {
  size_t rows, cols; /* of a tile */
  /** sum[rows][cols] += a [n][rows] times b [n][cols], n terms of each chain. */
  void (*add)(double *sum, const double *a, const double *b, size_t n);
} mxi_product_tile;

extern const mxi_product_tile mxi_product_scalar, mxi_product_avx2, mxi_product_avx512;

enum { MXI_PRODUCT_ROWS = 8, MXI_PRODUCT_COLS = 24 }; /* at most */

#endif
