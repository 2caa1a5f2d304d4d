/* The product in binary64: each dot with k ascending. */
#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/isa.h"

enum { TILE = 16 };

/* Columns of a tile side by side, so that a vector holds several dots and each dot keeps its order. */
static void pack(double *tile, const float *w, size_t n, size_t k) {
  for (size_t j = 0; j < TILE; j++)
    for (size_t i = 0; i < k; i++) tile[i * TILE + j] = j < n ? (double)w[j * k + i] : 0;
}

static void row_by_tile(double *y, const float *x, const double *tile, size_t n, size_t k) {
  double acc[TILE] = {0};
  for (size_t i = 0; i < k; i++) {
    const double a = (double)x[i];
    for (int j = 0; j < TILE; j++) acc[j] += a * tile[i * TILE + (size_t)j];
  }
  for (size_t j = 0; j < n; j++) y[j] = acc[j];
}

void mx_product(double *y, const float *x, const float *w, size_t m, size_t n, size_t k, int n_threads) {
  const size_t tiles = n / TILE + (n % TILE != 0);
#pragma omp parallel num_threads(mx_thread_count(n_threads))
  {
    double *tile = malloc((k * TILE + 1) * sizeof *tile);
#pragma omp for schedule(static)
    for (size_t t = 0; t < tiles; t++) {
      const size_t j = t * TILE, wide = n - j < TILE ? n - j : TILE;
      if (tile) pack(tile, w + j * k, wide, k);
      for (size_t i = 0; i < m; i++) {
        double *out = y + i * n + j;
        if (tile)
          row_by_tile(out, x + i * k, tile, wide, k);
        else /* the same sums, one by one */
          for (size_t c = 0; c < wide; c++) {
            double acc = 0;
            for (size_t d = 0; d < k; d++) acc += (double)x[i * k + d] * (double)w[(j + c) * k + d];
            out[c] = acc;
          }
      }
    }
    free(tile);
  }
}
