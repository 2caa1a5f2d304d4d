/* Makes suite ties: the grid of values that a block can hold is taken from mx_dequantize, whatever the chain is; elements lie on its midpoints. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/shortage.h"
#include "verify/suites/gen.h"

enum { MAX_CODES = 256 };

static int by_value(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Non-negative values of the grid under the scale that a block of the given amax gets beside a tensor amax; 0 if there is none. */
static size_t grid_of(float out[MAX_CODES], const mx_spec *spec, float amax, float tensor_amax, shortage *lack) {
  mx_spec s = *spec;
  s.block_rows = 0;
  s.block_cols = 2;
  s.had_size = 0;
  s.nibble = 0;
  s.select_sum = 0;
  s.scale_nan = s.scale_nan == MX_SCALE_NAN_ERROR ? MX_SCALE_NAN_PROPAGATE : s.scale_nan;
  const mx_format *f = mx_elem_format(s.elem);
  const float x[4] = {amax, 0, tensor_amax, 0};
  mx_tensor t, all;
  size_t n = 0;
  if (f->kind == MX_KIND_NONE || f->bits > 8 || noted_status(mx_tensor_alloc(&t, 2, 2, &s), lack)) return 0;
  if (!noted_status(mx_quantize(&t, x, 2, 2, 2, &s, &(mx_exec){.n_threads = 1}, NULL), lack)) {
    s.block_cols = MAX_CODES;
    if (!noted_status(mx_tensor_alloc(&all, 1, MAX_CODES, &s), lack)) {
      for (unsigned c = 0; c < 1u << f->bits; c++) {
        if (f->bits == 4)
          all.codes[c / 2] |= (uint8_t)(c << (c % 2 * 4));
        else
          all.codes[c] = (uint8_t)c;
      }
      memcpy(all.scales, t.scales, t.scale_bytes);
      all.tensor_scale = t.tensor_scale;
      float values[MAX_CODES];
      if (!noted_status(mx_dequantize(values, MAX_CODES, &all, &s, &(mx_exec){.n_threads = 1}), lack))
        for (unsigned c = 0; c < 1u << f->bits; c++)
          if (isfinite(values[c]) && !signbit(values[c])) out[n++] = values[c];
      mx_tensor_free(&all);
    }
  }
  mx_tensor_free(&t);
  qsort(out, n, sizeof *out, by_value);
  return n;
}

/* Ties in the rotated domain: rotate back (H is its own inverse up to rounding; the signs come last). */
static void unrotate(gen *g, shortage *lack) {
  const mx_spec *s = g->spec;
  if (!s->had_size) return;
  mx_hadamard(g->x, g->ld, g->x, g->rows, g->cols, g->ld, s->had_size, MX_HAD_SIGN_NONE, NULL, 0);
  float *sign = noted(malloc((g->cols + 1) * sizeof *sign), lack); /* what the rule's signs do to a row: H H S e = S e */
  if (!sign) return;
  for (size_t c = 0; c < g->cols; c++) sign[c] = 1;
  mx_hadamard(sign, g->cols, sign, 1, g->cols, g->cols, s->had_size, s->had_sign, s->had_signs, s->seed);
  mx_hadamard(sign, g->cols, sign, 1, g->cols, g->cols, s->had_size, MX_HAD_SIGN_NONE, NULL, 0);
  for (size_t r = 0; r < g->rows; r++)
    for (size_t c = 0; c < g->cols; c++)
      if (sign[c] < 0) g->x[r * g->ld + c] = -g->x[r * g->ld + c];
  free(sign);
}

mx_status mxi_gen_ties(gen *g) {
  const float tensor_amax = 448;
  const size_t br = g->block_rows, bc = g->block_cols;
  shortage lack = {0};
  for (size_t r0 = 0; r0 < g->rows; r0 += br)
    for (size_t c0 = 0; c0 < g->cols; c0 += bc) {
      const int exponent = (int)mxi_gen_below(g, 16) - 8; /* drawn first: in one call the order would be the compiler's */
      float grid[MAX_CODES], amax = ldexpf(1 + (float)mxi_gen_below(g, 1u << 20) * 0x1p-20f, exponent);
      if (r0 == 0 && c0 == 0) amax = tensor_amax;
      const size_t n = grid_of(grid, g->spec, amax, tensor_amax, &lack);
      const size_t h = g->rows - r0 < br ? g->rows - r0 : br, w = g->cols - c0 < bc ? g->cols - c0 : bc;
      const uint32_t top = mxi_gen_below(g, (uint32_t)(h * w));
      size_t usable = 1; /* midpoints below amax */
      while (usable + 1 < n && (grid[usable] + grid[usable + 1]) / 2 < amax) usable++;
      for (size_t i = 0; i < h * w; i++) {
        const uint32_t k = n > 1 ? mxi_gen_below(g, (uint32_t)usable) : 0, bits = mxi_gen_bits(g);
        const float mid = n > 1 ? (float)(((double)grid[k] + (double)grid[k + 1]) / 2) : amax * 0.5f;
        float v = mxi_gen_nudge(mid, (int)(bits % 3) - 1);
        if (!(v < amax)) v = amax * 0.25f;
        if (i == top) v = amax;
        g->x[(r0 + i / w) * g->ld + c0 + i % w] = bits >> 31 ? -v : v;
      }
    }
  unrotate(g, &lack);
  return short_of_memory(&lack) ? MX_ERR_NOMEM : MX_OK;
}
