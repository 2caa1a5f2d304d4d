/* Writes golden lines of single operations: values to codes and back under every format and rounding, rotations, layouts. */
#include "units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/encoder.h"

enum { FLOATS = 512 * 24, ROWS = 6, COLS = 300, SCALE_ROWS = 300, SCALE_COLS = 13 };

/* Makes floats around every tie of formats of up to seven mantissa bits: each sign and exponent with fractions of few bits, and the floats beside them. */
static float edge(uint32_t i) {
  static const uint32_t fractions[8] = {0x000000, 0x080000, 0x100000, 0x180000, 0x200000, 0x400000, 0x600000, 0x7F8000};
  const uint32_t bits = (i / 24) << 23 | fractions[i % 24 / 3];
  const int step = (int)(i % 3) - 1;
  float x;
  const uint32_t moved = (bits & 0x7FFFFFFF) == 0 && step < 0 ? bits : bits + (uint32_t)step;
  memcpy(&x, &moved, sizeof x);
  return x;
}

static void encodings(product_fn *fn, void *to, const unit_ops *ops, const mx_format *f) {
  static const struct {
    int round;
    const char *name;
  } rounds[] = {{MX_ROUND_RNE, "rne"}, {MX_ROUND_RNA, "rna"}, {MX_ROUND_RTZ_TIE, "rtz_tie"}, {MX_ROUND_RTZ, "rtz"},
                {MX_ROUND_RTP, "rtp"}, {MX_ROUND_RTN, "rtn"}, {MX_ROUND_RNA_F32, "rna_f32"}, {MX_ROUND_RNE_F32, "rne_f32"}};
  static uint8_t codes[FLOATS];
  char operation[48];
  for (size_t r = 0; r < sizeof rounds / sizeof rounds[0]; r++)
    for (int ieee = 0; ieee < 2; ieee++) {
      const mx_encoding how = {.round = rounds[r].round, .overflow = ieee ? MX_OVERFLOW_IEEE : MX_OVERFLOW_SATURATE};
      for (uint32_t i = 0; i < FLOATS; i++) codes[i] = (uint8_t)ops->encode(f, (double)edge(i), &how, 0);
      snprintf(operation, sizeof operation, "encode:%s:%s", rounds[r].name, ieee ? "ieee" : "saturate");
      fn(to, operation, f->name, "edges", codes, sizeof codes);
    }
}

static void decodings(product_fn *fn, void *to, const unit_ops *ops, const mx_format *f) {
  float values[256];
  const uint32_t n = 1u << f->bits;
  for (uint32_t code = 0; code < n; code++) {
    const double v = ops->decode(f, code);
    values[code] = v == v ? (float)v : __builtin_nanf(""); /* the sign of a NaN is not compared */
  }
  fn(to, "decode", f->name, "codes", values, n * sizeof *values);
}

static void rotations(product_fn *fn, void *to, const unit_ops *ops) {
  static const struct {
    int sign;
    const char *name;
  } signs[] = {{MX_HAD_SIGN_NONE, "none"}, {MX_HAD_SIGN_TE, "te"}, {MX_HAD_SIGN_FRESH, "fresh"}};
  static float x[ROWS * COLS], y[ROWS * COLS];
  char operation[48];
  for (uint32_t i = 0; i < ROWS * COLS; i++) x[i] = (float)((int32_t)(i * 2654435761u) >> 8) * 0x1p-20f;
  for (unsigned size = 2; size <= 256; size *= 2)
    for (size_t s = 0; s < sizeof signs / sizeof signs[0]; s++) {
      if (ops->hadamard(y, COLS, x, ROWS, COLS, COLS, size, signs[s].sign, NULL, 7)) abort();
      snprintf(operation, sizeof operation, "hadamard:%u", size);
      fn(to, operation, signs[s].name, "random", y, sizeof y);
    }
}

static void layouts(product_fn *fn, void *to, const unit_ops *ops) {
  uint8_t scales[SCALE_ROWS * SCALE_COLS];
  for (size_t i = 0; i < sizeof scales; i++) scales[i] = (uint8_t)(i * 31 + i / 251);
  for (int l = 0; l < MX_LAYOUT_COUNT; l++) {
    const size_t n = ops->layout_size((mx_layout)l, SCALE_ROWS, SCALE_COLS);
    uint8_t *out = malloc(n);
    if (!out) abort();
    ops->layout_pack(out, (mx_layout)l, scales, SCALE_ROWS, SCALE_COLS, 0x7F);
    fn(to, "layout", mx_layout_name((mx_layout)l), "300x13", out, n);
    free(out);
  }
}

void units_each(product_fn *fn, void *to, const unit_ops *ops) {
  const char *name;
  for (size_t i = 0; (name = mx_encoder_format_name(i)); i++) {
    const mx_format *f;
    if (mx_encoder_format(&f, name, NULL)) abort();
    encodings(fn, to, ops, f);
    decodings(fn, to, ops, f);
  }
  rotations(fn, to, ops);
  layouts(fn, to, ops);
}
