/* Computes products in binary64, each dot with k ascending. Both operands are laid out as binary64 once, then tiles are divided among the threads. */
#include "ablate/product.h"

#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/isa.h"

/* K_BLOCK: terms of a chain between two stores, so that a tile's operands stay in the cache. GROUPS: of rows in a task. */
enum { K_BLOCK = 256, GROUPS = 8 };

static const mxi_product_tile *best_tile(void) {
#if defined(__x86_64__)
  const uint32_t isa = mx_isa_usable(0);
  if (isa & MX_ISA_AVX512) return &mxi_product_avx512;
  if (isa & MX_ISA_AVX2) return &mxi_product_avx2;
#endif
  return &mxi_product_scalar;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* `width` lines side by side, for each k one value of each; lines beyond `lines` are zeros. */
static void pack(double *out, const float *in, size_t lines, size_t width, size_t k) {
  for (size_t r = 0; r < width; r++)
    for (size_t i = 0; i < k; i++) out[i * width + r] = r < lines ? (double)in[r * k + i] : 0;
}

typedef struct job {
  const mxi_product_tile *tile;
  double *y;
  const double *a, *b; /* packed */
  size_t m, n, k;
} job;

/* One group of rows and one of columns, over a block of k. */
static void part(const job *j, size_t row, size_t col, size_t from, size_t to) {
  const size_t R = j->tile->rows, C = j->tile->cols, rows = smaller(R, j->m - row), cols = smaller(C, j->n - col);
  double sum[MXI_PRODUCT_ROWS * MXI_PRODUCT_COLS] = {0};
  for (size_t r = 0; r < rows && from; r++)
    for (size_t c = 0; c < cols; c++) sum[r * C + c] = j->y[(row + r) * j->n + col + c];
  j->tile->add(sum, j->a + row * j->k + from * R, j->b + col * j->k + from * C, to - from);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) j->y[(row + r) * j->n + col + c] = sum[r * C + c];
}

/* Without memory for packed operands the same sums are computed one by one. */
static void plain(double *y, const float *x, const float *w, size_t m, size_t n, size_t k) {
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double acc = 0;
      for (size_t d = 0; d < k; d++) acc += (double)x[i * k + d] * (double)w[j * k + d];
      y[i * n + j] = acc;
    }
}

void mx_product(double *y, const float *x, const float *w, size_t m, size_t n, size_t k, int n_threads) {
  const mxi_product_tile *tile = best_tile();
  const size_t R = tile->rows, C = tile->cols, rows = (m + R - 1) / R, cols = (n + C - 1) / C, chunks = (rows + GROUPS - 1) / GROUPS;
  double *a = malloc((rows * R * k + 1) * sizeof *a), *b = malloc((cols * C * k + 1) * sizeof *b);
  const job own = {tile, y, a, b, m, n, k};
  if (!a || !b)
    plain(y, x, w, m, n, k);
  else
#pragma omp parallel num_threads(mx_thread_count(n_threads))
  {
#pragma omp for schedule(static) nowait
    for (size_t g = 0; g < rows; g++) pack(a + g * R * k, x + g * R * k, smaller(R, m - g * R), R, k);
#pragma omp for schedule(static)
    for (size_t g = 0; g < cols; g++) pack(b + g * C * k, w + g * C * k, smaller(C, n - g * C), C, k);
#pragma omp for collapse(2) schedule(dynamic)
    for (size_t chunk = 0; chunk < chunks; chunk++)
      for (size_t c = 0; c < cols; c++) {
        size_t from = 0;
        do { /* once at least: without terms y is zeros */
          const size_t to = smaller(k, from + K_BLOCK);
          for (size_t g = chunk * GROUPS; g < smaller(rows, (chunk + 1) * GROUPS); g++) part(&own, g * R, c * C, from, to);
          from = to;
        } while (from < k);
      }
  }
  free(a);
  free(b);
}
