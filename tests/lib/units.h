/* Declares golden lines of single operations: values to codes and back under every format and rounding, rotations, layouts. */
#ifndef TESTS_UNITS_H
#define TESTS_UNITS_H

#include "mxgold/mxgold.h"
#include "products.h"

/* An implementation of them. */
typedef struct unit_ops {
  uint64_t (*encode)(const mx_format *format, double x, const mx_encoding *how, uint32_t random);
  double (*decode)(const mx_format *format, uint64_t code);
  mx_status (*hadamard)(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                        const uint8_t *signs, uint64_t seed);
  size_t (*layout_size)(mx_layout layout, size_t rows, size_t kb);
  void (*layout_pack)(uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad);
} unit_ops;

/* Calls fn(to, "encode:ROUNDING:OVERFLOW" | "decode" | "hadamard:SIZE" | "layout", what, inputs, bytes, n) for each, in a fixed order. */
void units_each(product_fn *fn, void *to, const unit_ops *ops);

#endif
