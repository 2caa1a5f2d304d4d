/* Suites of plain numbers: random, tails, padding, layout, order, cancel. */
#include <math.h>

#include "verify/gen.h"

mx_status gen_random(gen *g) {
  for (size_t r = 0; r < g->rows; r++) {
    const int e = r ? (int)gen_below(g, 41) - 20 : 0;
    for (size_t c = 0; c < g->cols; c++) {
      const int outlier = gen_below(g, 64) == 0 ? 4 : 0;
      g->x[r * g->ld + c] = ldexpf(gen_normal(g), e + outlier);
    }
  }
  return MX_OK;
}

/* The largest number of a row is in its last, short block in every other row: whoever drops the tail gets another scale. */
mx_status gen_tails(gen *g) {
  const mx_status s = gen_random(g);
  if (s || !g->cols) return s;
  for (size_t r = 0; r < g->rows; r += 2) g->x[r * g->ld + g->cols - 1] *= 256;
  return MX_OK;
}

mx_status gen_padding(gen *g) {
  static const uint32_t poison[] = {0x00000000, 0x7F7F7F7F, 0xFFFFFFFF, 0x7FC00000};
  const mx_status s = gen_tails(g);
  for (size_t r = 0; r < g->rows && !s; r++)
    for (size_t c = g->cols; c < g->ld; c++) g->x[r * g->ld + c] = gen_from_bits(poison[r % 4]);
  return s;
}

/* Element magnitudes count positions in base 7 within a block; block maxima walk over the exponents, so that no two near blocks share a scale. */
mx_status gen_layout(gen *g) {
  const double largest = mx_elem_format(g->spec->elem)->kind == MX_KIND_NONE ? 6 : mx_format_max(mx_elem_format(g->spec->elem));
  for (size_t r = 0; r < g->rows; r++)
    for (size_t c = 0; c < g->cols; c++) {
      const size_t block = r / g->block_rows * 5 + c / g->block_cols, i = r % g->block_rows * 3 + c % g->block_cols;
      const int e = (int)(block % 61) - 30, step = (int)((i + i / 7 + i / 16 * 3 + r) % 7);
      const double sign = (i ^ i / 3 ^ r) & 1 ? -1 : 1;
      const int top = r % g->block_rows == 0 && c % g->block_cols == block % (g->block_cols < 8 ? g->block_cols : 8);
      g->x[r * g->ld + c] = (float)ldexp(sign * (top ? largest : largest * step / 8), e);
    }
  return MX_OK;
}

/* Elements of {0, +-1, +-2, +-4} in steps of one power of two a row, the largest in each block: any order of any K < 2^18 is exact. */
mx_status gen_order(gen *g) {
  static const float values[] = {0, 1, -1, 2, -2, 4, -4, 1};
  for (size_t r = 0; r < g->rows; r++)
    for (size_t c = 0; c < g->cols; c++) {
      float v = values[gen_below(g, 8)];
      if (c % g->block_cols == 0) v = r & 1 ? 4 : -4;
      g->x[r * g->ld + c] = ldexpf(v, (int)(r % 5) - 2);
    }
  return MX_OK;
}

/* +big, small, -big: the small one is lost wherever the sum is cut. Signs in the second half of a row undo those of the first. */
mx_status gen_cancel(gen *g) {
  for (size_t r = 0; r < g->rows; r++)
    for (size_t c = 0; c < g->cols; c++) {
      const size_t half = g->cols / 2, k = half ? c % half : c;
      const float big = ldexpf(1 + (float)(k % 4) / 2, (int)((k * 7 + r) % 24));
      g->x[r * g->ld + c] = c % 3 == 2 ? gen_normal(g) : c < half ? big : -big;
    }
  return MX_OK;
}
