/* Makes suites boundary and codes: block maxima where scales step, and every scale code with every element code. */
#include <float.h>
#include <math.h>

#include "verify/suites/gen.h"

/* Significands at which some rule steps, for any element: powers of two, halves of mantissa steps, largest value / power of two, 7.25. */
static const float steps[] = {1, 1.0625f, 1.125f, 1.25f, 1.375f, 1.5f, 1.625f, 1.75f, 1.8125f, 1.875f, 1.9375f, 1.96875f, 1.984375f};
enum { STEPS = sizeof steps / sizeof steps[0], NEAR = 3, EXPONENTS = 128 + 149 };

static size_t exponent_cases(void) { return (size_t)EXPONENTS * STEPS * NEAR; }

/* Midpoints of neighbouring scale codes, times the divisor, for scale formats with a mantissa. */
static size_t scale_cases(const mx_spec *s) {
  const mx_format *f = mx_scale_format(s->scale);
  return f->man_bits && f->bits <= 8 ? (size_t)f->max_code * 5 : 0;
}

static float elem_max(const mx_spec *s) {
  const mx_format *f = mx_elem_format(s->elem);
  return f->kind == MX_KIND_NONE ? 1 : (float)mx_format_max(f);
}

static float boundary_amax(const mx_spec *s, size_t i) {
  if (i < exponent_cases()) {
    const int e = (int)(i / (STEPS * NEAR)) - 149;
    return mxi_gen_nudge(ldexpf(steps[i / NEAR % STEPS], e), (int)(i % NEAR) - 1);
  }
  i -= exponent_cases();
  const mx_format *f = mx_scale_format(s->scale);
  const double mid = (mx_decode(f, i / 5) + mx_decode(f, i / 5 + 1)) / 2;
  return mxi_gen_nudge((float)(mid * (double)elem_max(s)), (int)(i % 5) - 2);
}

size_t mxi_gen_boundary_rows(const mx_spec *spec, size_t cols) {
  size_t br, bc;
  mx_spec_block(spec, 64, cols, &br, &bc);
  const size_t across = (cols + bc - 1) / bc, n = exponent_cases() + scale_cases(spec);
  return (n + across - 1) / across * br;
}

mx_status mxi_gen_boundary(gen *g) {
  const size_t br = g->block_rows, bc = g->block_cols, n = exponent_cases() + scale_cases(g->spec);
  const size_t blocks = ((g->rows + br - 1) / br) * ((g->cols + bc - 1) / bc);
  size_t b = 0;
  /* With a tensor scale the exponents stay where the scale format still resolves them: the tensor amax is 2688, what NVFP4 calls 1. */
  const int normed = g->spec->tensor_norm != MX_TENSOR_NORM_NONE;
  for (size_t r0 = 0; r0 < g->rows; r0 += br)
    for (size_t c0 = 0; c0 < g->cols; c0 += bc, b++) {
      const size_t i = blocks >= n ? b % n : (size_t)((double)b * (double)n / (double)blocks) + mxi_gen_below(g, 1 + (uint32_t)(n / blocks));
      float amax = boundary_amax(g->spec, i < n ? i : n - 1);
      if (normed && amax > 2688) amax = b ? ldexpf(frexpf(amax, &(int){0}), (int)(b % 10)) : 2688;
      if (normed && b == 0) amax = 2688;
      const size_t h = g->rows - r0 < br ? g->rows - r0 : br, w = g->cols - c0 < bc ? g->cols - c0 : bc;
      const uint32_t top = mxi_gen_below(g, (uint32_t)(h * w));
      for (size_t k = 0; k < h * w; k++) {
        const uint32_t bits = mxi_gen_bits(g);
        float v = amax * ((float)(bits & 0xFFFF) * 0x1p-16f);
        if (bits >> 16 & 1) v *= 0x1p-4f;
        if (k == top) v = amax;
        g->x[(r0 + k / w) * g->ld + c0 + k % w] = bits >> 31 ? -v : v;
      }
    }
  return MX_OK;
}

/* How many blocks are needed to show every element code beside the largest one. */
static size_t blocks_a_scale(const mx_spec *s, size_t block) {
  const mx_format *f = mx_elem_format(s->elem);
  const size_t codes = f->bits <= 8 ? (size_t)1 << f->bits : 16, room = block > 1 ? block - 1 : 1;
  return (codes + room - 1) / room;
}

static size_t scale_codes(const mx_spec *s) {
  const mx_format *f = mx_scale_format(s->scale);
  return f->bits <= 8 ? (size_t)1 << (f->bits - f->sign_bits) : 512;
}

size_t mxi_gen_codes_rows(const mx_spec *spec, size_t cols) {
  size_t br, bc;
  mx_spec_block(spec, 64, cols, &br, &bc);
  const size_t across = (cols + bc - 1) / bc, n = scale_codes(spec) * blocks_a_scale(spec, br * bc);
  return (n + across - 1) / across * br;
}

mx_status mxi_gen_codes(gen *g) {
  const mx_format *f = mx_elem_format(g->spec->elem), *sf = mx_scale_format(g->spec->scale);
  const size_t br = g->block_rows, bc = g->block_cols, each = blocks_a_scale(g->spec, br * bc), n_scales = scale_codes(g->spec);
  const unsigned n_codes = f->bits <= 8 ? 1u << f->bits : 16;
  size_t b = 0;
  for (size_t r0 = 0; r0 < g->rows; r0 += br)
    for (size_t c0 = 0; c0 < g->cols; c0 += bc, b++) {
      const uint64_t code = b / each % n_scales << (sf->bits > 9 ? sf->bits - sf->sign_bits - 9 : 0);
      const double scale = mx_decode(sf, code), largest = f->kind == MX_KIND_NONE ? 1 : mx_format_max(f);
      const size_t h = g->rows - r0 < br ? g->rows - r0 : br, w = g->cols - c0 < bc ? g->cols - c0 : bc;
      for (size_t k = 0; k < h * w; k++) {
        const uint64_t element = (b % each * (h * w - 1) + k - 1) % n_codes;
        const double v = k == 0 ? largest : f->kind == MX_KIND_NONE ? (double)element : mx_decode(f, element);
        const float x = (float)(isnan(v) ? v : v * scale); /* of two NaNs one: which, hosts and compilers do not agree */
        g->x[(r0 + k / w) * g->ld + c0 + k % w] = isinf(x) && isfinite(v) ? copysignf(FLT_MAX, x) : x;
      }
    }
  return MX_OK;
}
