/* Makes suite special: each case a tensor of two blocks a row, so that what one case does to a tensor scale does not reach the next. */
#include <float.h>
#include <math.h>

#include "verify/suites/gen.h"

/* The values that are put into a block of ordinary numbers. */
static const uint32_t values[] = {
    0x7FC00000, 0xFFC00000, 0x7F800001, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001, 0x80000001, 0x00400000,
    0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F600000, 0x7F500000, 0x7E800000, 0x00000000,
};
enum { VALUES = sizeof values / sizeof values[0], PLACES = 4, BACKGROUNDS = 5 };

size_t mxi_gen_special_count(void) { return VALUES * PLACES * BACKGROUNDS; }

static float background(gen *g, size_t kind) {
  switch (kind) {
  case 0:
    return 0;
  case 1:
    return mxi_gen_normal(g);
  case 2:
    return ldexpf(mxi_gen_normal(g), -140); /* subnormal */
  case 3:
    return ldexpf(mxi_gen_normal(g), 120);
  default:
    return mxi_gen_below(g, 2) ? -0.0f : 0.0f;
  }
}

mx_status mxi_gen_special(gen *g) {
  size_t k = 0;
  for (size_t v = 0; v < VALUES; v++)
    for (size_t b = 0; b < BACKGROUNDS; b++)
      for (size_t p = 0; p < PLACES; p++, k++) {
        float *x = g->x + k * g->rows * g->ld;
        const size_t n = g->rows * g->ld, half = g->block_cols;
        for (size_t i = 0; i < n; i++) x[i] = background(g, b);
        /* first, middle, last of a block; twice over both blocks */
        const size_t at[] = {0, half / 2, half - 1, half + mxi_gen_below(g, (uint32_t)half)};
        x[at[p]] = mxi_gen_from_bits(values[v]);
        if (p == 3) x[mxi_gen_below(g, (uint32_t)half)] = mxi_gen_from_bits(values[(v + b + 3) % VALUES]);
      }
  return MX_OK;
}
