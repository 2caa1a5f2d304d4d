/* Collects what the charts of an ablation are drawn from, on one thread, since the sums of an octave take values in the order in which they stand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/rotate.h"
#include "mxgold/ablate.h"

static int octave(double ratio) {
  int e;
  frexp(ratio, &e);
  e += 31; /* floor(log2) is e - 1 */
  return e < 0 ? 0 : e > 63 ? 63 : e;
}

static double rms(const float *x, size_t n) {
  double sum = 0;
  size_t m = 0;
  for (size_t i = 0; i < n; i++)
    if (isfinite(x[i])) {
      sum += (double)x[i] * (double)x[i];
      m++;
    }
  return m ? sqrt(sum / (double)m) : 0;
}

static void cells(mx_detail *out, const float *x, const float *y, size_t rows, size_t cols, double scale) {
  out->cell_rows = rows < MX_DETAIL_CELLS ? rows : MX_DETAIL_CELLS;
  out->cell_cols = cols < MX_DETAIL_CELLS ? cols : MX_DETAIL_CELLS;
  for (size_t i = 0; i < out->cell_rows; i++)
    for (size_t j = 0; j < out->cell_cols; j++) {
      const size_t r0 = i * rows / out->cell_rows, r1 = (i + 1) * rows / out->cell_rows;
      const size_t c0 = j * cols / out->cell_cols, c1 = (j + 1) * cols / out->cell_cols;
      double sum = 0;
      size_t n = 0;
      for (size_t r = r0; r < r1; r++)
        for (size_t c = c0; c < c1; c++) {
          const double e = (double)x[r * cols + c] - (double)y[r * cols + c];
          if (!isfinite(e)) continue;
          sum += e * e;
          n++;
        }
      out->cell[i * out->cell_cols + j] = n && scale > 0 ? sqrt(sum / (double)n) / scale : 0;
    }
}

mx_status mx_detail_measure(mx_detail *out, const float *x, const float *y, size_t rows, size_t cols, unsigned had_size) {
  if (!out || !x || !y) return MX_ERR_ARG;
  memset(out, 0, sizeof *out);
  const size_t n = rows * cols;
  const double scale = rms(x, n);
  for (size_t i = 0; i < n; i++) {
    const double a = fabs((double)x[i]), e = (double)x[i] - (double)y[i];
    if (!(a > 0) || !isfinite(e)) continue;
    const int k = octave(a / scale);
    out->octave_x[k] += a * a;
    out->octave_e[k] += e * e;
    out->octave_n[k]++;
  }
  cells(out, x, y, rows, cols, scale);
  if (!had_size) return MX_OK;
  float *h = malloc(n * sizeof *h + 1);
  if (!h) return MX_ERR_NOMEM;
  const mx_spec spec = {.had_size = had_size};
  const mx_status status = mxi_rotate(h, x, rows, cols, &spec, 0);
  for (size_t i = 0; i < n && !status; i++)
    if (fabsf(h[i]) > 0 && isfinite(h[i])) out->rotated_n[octave(fabs((double)h[i]) / scale)]++;
  free(h);
  return status;
}
