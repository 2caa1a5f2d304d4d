/* Makes suites of plain numbers: random, tails, padding, layout, order, cancel. */
#include <math.h>

#include "mxgold/gemm.h"
#include "mxgold/mxgold.h"
#include "verify/suites/gen.h"

/* Rows lie within 2^ROW_BINADES of 1 on either side, so that scales differ and no format comes near its ends. One number in OUTLIER_ONE_IN is
 * OUTLIER_BINADES larger than the rest. That is one in every other block of 32, so that there are blocks with an outlier, which leaves few codes to
 * the others, and blocks without one. */
enum { ROW_BINADES = 20, OUTLIER_ONE_IN = 64, OUTLIER_BINADES = 4 };

mx_status mxi_gen_random(gen *g) {
  for (size_t r = 0; r < g->rows; r++) {
    const int e = r ? (int)mxi_gen_below(g, 2 * ROW_BINADES + 1) - ROW_BINADES : 0;
    for (size_t c = 0; c < g->cols; c++) {
      const int outlier = mxi_gen_below(g, OUTLIER_ONE_IN) == 0 ? OUTLIER_BINADES : 0;
      g->x[r * g->ld + c] = ldexpf(mxi_gen_normal(g), e + outlier);
    }
  }
  return MX_OK;
}

/* In every other row the largest number is in the last, short block: a kernel that drops the tail gets another scale. */
mx_status mxi_gen_tails(gen *g) {
  const mx_status s = mxi_gen_random(g);
  if (s || !g->cols) return s;
  for (size_t r = 0; r < g->rows; r += 2) g->x[r * g->ld + g->cols - 1] *= 256;
  return MX_OK;
}

mx_status mxi_gen_padding(gen *g) {
  static const uint32_t poison[] = {0x00000000, 0x7F7F7F7F, 0xFFFFFFFF, 0x7FC00000};
  const mx_status s = mxi_gen_tails(g);
  for (size_t r = 0; r < g->rows && !s; r++)
    for (size_t c = g->cols; c < g->ld; c++) g->x[r * g->ld + c] = mxi_gen_from_bits(poison[r % 4]);
  return s;
}

/* Element magnitudes count positions in base 7 within a block; block maxima walk over the exponents, so that no two near blocks share a scale. */
mx_status mxi_gen_layout(gen *g) {
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

/* Makes rows of elements from {0, +-1, +-2, +-4} times one power of two a row, the largest in each block; for long rows from {0, +-4}; then only
 * the first element of each block. All are multiplied by `factor`. */
static void order_numbers(gen *g, int fewer, float factor) {
  static const float values[][8] = {{0, 1, -1, 2, -2, 4, -4, 1}, {0, 4, -4, 4, -4, 4, -4, 0}, {0}};
  g->drawn = 0;
  for (size_t r = 0; r < g->rows; r++)
    for (size_t c = 0; c < g->cols; c++) {
      float v = values[fewer][mxi_gen_below(g, 8)];
      if (c % g->block_cols == 0) v = r & 1 ? 4 : -4;
      g->x[r * g->ld + c] = factor * ldexpf(v, (int)(r % 5) - 2);
    }
}

/* The largest value that a row reaches in mx_gemm_order_squares(); the proof needs at most 2^24. */
static mx_status order_squares(double *squares, const gen *g) {
  mx_tensor t;
  mx_status s = mx_tensor_alloc(&t, g->rows, g->cols, g->spec);
  if (s) return s;
  s = mx_quantize(&t, g->x, g->rows, g->cols, g->ld, g->spec, NULL, NULL);
  if (!s) s = mx_gemm_order_squares(squares, &t, g->spec);
  mx_tensor_free(&t);
  return s;
}

/* Takes the first set of numbers whose sums are proved to be exact in any order, with any other tensor of this suite. The factor 4 / 4 keeps amax
 * a power of two; the other factor makes amax the largest element times one, so that the scale is a power of two. */
mx_status mxi_gen_order(gen *g) {
  static const struct { int fewer, of_largest; } tries[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}};
  const mx_format *elem = mx_elem_format(g->spec->elem);
  const double largest = elem->kind == MX_KIND_NONE ? 1 : mx_format_max(elem), limit = 0x1p24;
  const size_t blocks = g->cols / g->block_cols + (g->cols % g->block_cols != 0);
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    double squares;
    order_numbers(g, tries[i].fewer, tries[i].of_largest ? (float)ldexp(largest, -ilogb(largest)) : 1);
    const mx_status s = order_squares(&squares, g);
    if (s == MX_ERR_NOMEM) return s;
    if (s || squares <= limit) return MX_OK; /* a spec that needs more than numbers (given random bits) or refuses them: nothing to prove */
    if (tries[i].fewer < 2) continue;
    const double most = limit / (squares / (double)blocks); /* blocks of one number each */
    if ((double)g->longest < most * (double)g->block_cols) g->longest = (size_t)most * g->block_cols;
  }
  if (!g->own_cols) return MX_ERR_UNSUPPORTED;
  order_numbers(g, 0, 1); /* in its own shape the suite is there for every spec */
  return MX_OK;
}

/* +big, small, -big: the small one is lost wherever the sum is cut. Signs in the second half of a row undo those of the first. */
mx_status mxi_gen_cancel(gen *g) {
  for (size_t r = 0; r < g->rows; r++)
    for (size_t c = 0; c < g->cols; c++) {
      const size_t half = g->cols / 2, k = half ? c % half : c;
      const float big = ldexpf(1 + (float)(k % 4) / 2, (int)((k * 7 + r) % 24));
      g->x[r * g->ld + c] = c % 3 == 2 ? mxi_gen_normal(g) : c < half ? big : -big;
    }
  return MX_OK;
}
