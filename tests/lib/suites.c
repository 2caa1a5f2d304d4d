/* Makes deterministic inputs that show what a quantiser does. */
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SplitMix64, written here so that neither implementation under test makes its own input. */
static uint64_t next(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)((next(state) >> 32) * n >> 32); }
static float from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static uint32_t to_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* Returns the sum of four 15-bit integers, which is nearly normal, exact, and the same on every machine. */
static float bell(uint64_t *state) {
  const uint64_t r = next(state);
  const int sum = (int)(r & 0x7FFF) + (int)(r >> 16 & 0x7FFF) + (int)(r >> 32 & 0x7FFF) + (int)(r >> 48 & 0x7FFF) - 2 * 0x7FFF;
  return (float)sum * 0x1p-14f;
}

static float *matrix(size_t rows, size_t cols) {
  float *x = calloc(rows * cols + 1, sizeof *x);
  if (!x) abort();
  return x;
}

static void fill_random(float *x, size_t rows, size_t cols, uint64_t *state) {
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c += 8) {
      /* most numbers of a row are of one size, some are far from it */
      const int e = (int)below(state, 8) ? (int)(r % 7) - 3 : (int)below(state, 120) - 60;
      for (size_t i = c; i < c + 8 && i < cols; i++) x[r * cols + i] = ldexpf(bell(state), e);
    }
}

static float signed_value(uint64_t *state, float v) { return below(state, 2) ? -v : v; }

/* Makes block maxima m * 2^e and their neighbours, with m where some rule of some format changes its answer. */
static float boundary_value(uint64_t *state, size_t i) {
  static const float steps[] = {1,       1.25f,   1.5f,    1.75f,   1.875f,  1.9375f,  1.8125f,    1.4375f,
                                1.0625f, 1.1875f, 1.3125f, 1.5625f, 1.6875f, 1.96875f, 1.9999999f, 1.999999f};
  const int e = (int)(i % 278) - 150;
  const double v = ldexp((double)steps[i % 16], e);
  const uint32_t bits = to_bits((float)(v > 3.4e38 ? 3.4028234e38 : v));
  const uint32_t moved = bits + below(state, 5) - 2;
  return from_bits(bits == 0 || moved >= 0x7F800000 ? bits : moved);
}

/* Makes blocks whose maximum comes from `largest`, with smaller numbers beside it. */
static void fill_blocks(float *x, size_t rows, size_t cols, size_t bc, uint64_t *state, float (*largest)(uint64_t *, size_t)) {
  size_t n = 0;
  for (size_t r = 0; r < rows; r++)
    for (size_t c0 = 0; c0 < cols; c0 += bc) {
      const size_t c1 = c0 + bc < cols ? c0 + bc : cols;
      const float a = largest(state, n++);
      for (size_t c = c0; c < c1; c++) x[r * cols + c] = signed_value(state, a * ((float)below(state, 4096) * 0x1p-12f));
      /* Each draw is a statement of its own, since compilers differ in the order of the calls of an expression. */
      const size_t at = c0 + below(state, (uint32_t)(c1 - c0));
      x[r * cols + at] = signed_value(state, a);
    }
}

static float any_size(uint64_t *state, size_t i) {
  const int e = i % 5 ? (int)below(state, 24) - 12 : (int)below(state, 250) - 126;
  return ldexpf(1 + (float)below(state, 1 << 22) * 0x1p-22f, e);
}

/* Returns the code of the first element of the block at (r, c), in the default nibble order. */
static uint32_t code_at(const mx_tensor *t, const mx_format *f, size_t r, size_t c) {
  const uint8_t *row = t->codes + r * t->code_stride;
  return f->bits == 4 ? row[c / 2] >> (c % 2 * 4) & 15u : row[c];
}

/* Makes ties in every block: quantises its maximum alone, takes value over code as the scale in use, and writes midpoints of codes times that scale. */
static void fill_ties(float *x, size_t rows, size_t cols, const mx_spec *spec, const suite_oracle *oracle, uint64_t *state) {
  size_t br, bc;
  mx_spec_block(spec, rows, cols, &br, &bc);
  const mx_format *f = mx_elem_format(spec->elem);
  float *alone = matrix(rows, cols), *back = matrix(rows, cols);
  for (size_t r = 0, n = 0; r < rows; r += br)
    for (size_t c = 0; c < cols; c += bc) alone[r * cols + c] = any_size(state, n++);
  mx_tensor t;
  if (mx_tensor_alloc(&t, rows, cols, spec) || oracle->quantize(&t, alone, rows, cols, cols, spec, NULL, NULL) ||
      oracle->dequantize(back, cols, &t, spec, NULL))
    abort();
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const size_t r0 = r / br * br, c0 = c / bc * bc;
      const float a = alone[r0 * cols + c0], b = back[r0 * cols + c0];
      x[r * cols + c] = a;
      if (r == r0 && c == c0) continue;
      const double scale = (double)b / mx_decode(f, code_at(&t, f, r0, c0));
      const uint32_t code = below(state, (uint32_t)f->max_code);
      const float v = (float)((mx_decode(f, code) + mx_decode(f, code + 1)) / 2 * scale);
      const float w = v > 0 && isfinite(v) ? from_bits(to_bits(v) + below(state, 3) - 1) : 0;
      x[r * cols + c] = signed_value(state, w <= a ? w : a);
    }
  mx_tensor_free(&t);
  free(alone);
  free(back);
}

static void fill_special(float *x, size_t rows, size_t cols, size_t bc, uint64_t *state) {
  static const uint32_t values[] = {0,          0x80000000, 1,          0x80000001, 0x007FFFFF, 0x00800000, 0x00400000, 0x00400001,
                                    0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x00200000, 0x40C00000, 0x7F000000, 0x00000003};
  fill_blocks(x, rows, cols, bc, state, any_size);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const size_t block = c / bc + r;
      if (block % 4 == 0)
        x[r * cols + c] = from_bits(values[below(state, block % 8 ? 2 : 16)]); /* some blocks of zeros alone, others of any value of the list */
      else if (block % 4 == 1) {
        const uint32_t magnitude = below(state, 0x01000000); /* subnormal numbers, and the normal ones next to them */
        x[r * cols + c] = from_bits(magnitude | below(state, 2) << 31);
      } else if (below(state, 4) == 0)
        x[r * cols + c] = from_bits(values[below(state, 16)]);
    }
}

static void fill_nonfinite(float *x, size_t rows, size_t cols, size_t bc, uint64_t *state) {
  static const uint32_t values[] = {0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000};
  fill_blocks(x, rows, cols, bc, state, any_size);
  for (size_t r = 0; r < rows; r++)
    for (size_t c0 = 0; c0 < cols; c0 += bc) {
      const size_t n = cols - c0 < bc ? cols - c0 : bc, kind = (r + c0 / bc) % 6;
      if (kind < 4) x[r * cols + c0 + below(state, (uint32_t)n)] = from_bits(values[kind]);
      if (kind == 4)
        for (size_t i = 0; i < 3; i++) {
          const uint32_t bits = values[below(state, 4)];
          x[r * cols + c0 + below(state, (uint32_t)n)] = from_bits(bits);
        }
    }
}

const char *suite_name(suite s) {
  static const char *names[] = {"random", "ties", "boundary", "special", "nonfinite", "tails", "row", "column", "empty"};
  return names[s];
}

float *suite_make(size_t *rows, size_t *cols, suite s, const mx_spec *spec, const suite_oracle *oracle) {
  uint64_t state = 0x6D78676F6C64u + (uint64_t)s;
  size_t br, bc;
  mx_spec_block(spec, 32, 96, &br, &bc);
  *rows = s == SUITE_ROW ? 1 : s == SUITE_TAILS ? 7 : s == SUITE_COLUMN ? 37 : s == SUITE_EMPTY ? 0 : s == SUITE_BOUNDARY ? 48 : 24;
  *cols = s == SUITE_TAILS ? bc * 2 + bc / 2 + 3 : s == SUITE_ROW ? bc * 3 + 1 : s == SUITE_COLUMN ? 1 : s == SUITE_EMPTY ? 40 : bc * 6;
  float *x = matrix(*rows, *cols);
  switch (s) {
  case SUITE_TIES:
    fill_ties(x, *rows, *cols, spec, oracle, &state);
    break;
  case SUITE_BOUNDARY:
    fill_blocks(x, *rows, *cols, bc, &state, boundary_value);
    break;
  case SUITE_SPECIAL:
    fill_special(x, *rows, *cols, bc, &state);
    break;
  case SUITE_NONFINITE:
    fill_nonfinite(x, *rows, *cols, bc, &state);
    break;
  default:
    fill_random(x, *rows, *cols, &state);
  }
  return x;
}
