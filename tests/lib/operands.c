/* Makes quantised operands of the block-scaled product, and compares what two implementations make of them. */
#include "operands.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/random.h"

const char *const operands_names[] = {"narrow", "wide", "any", "cancel", "quantised", "", "zeros"};

uint32_t operands_draw(uint64_t seed, uint64_t i) { return mx_random(seed, MX_STREAM_DATA, i); }

void operands_fill(mx_tensor *t, const mx_spec *spec, size_t rows, size_t cols, operands_kind kind, uint64_t seed) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  ck_assert_int_eq(mx_tensor_alloc(t, rows, cols, spec), MX_OK);
  float *x = malloc((rows * cols + 1) * sizeof *x);
  for (size_t i = 0; i < rows * cols; i++) x[i] = (float)(int32_t)operands_draw(seed, i) * 0x1p-31f * (i % 7 == 0 ? 16.0f : 1.0f);
  if (elem->kind == MX_KIND_NONE) {
    memcpy(t->codes, x, rows * cols * sizeof *x);
    if (kind == OPERANDS_ANY && rows && cols > 2) ((float *)(void *)t->codes)[1] = INFINITY, ((float *)(void *)t->codes)[2] = NAN;
    if (kind == OPERANDS_WIDE)
      for (size_t i = 0; i < rows * cols; i++) ((float *)(void *)t->codes)[i] = ldexpf(x[i], (int)(operands_draw(seed + 5, i) % 200) - 100);
    free(x);
    return;
  }
  t->tensor_scale = t->has_tensor_scale ? 0.0123f : 1;
  if (kind == OPERANDS_QUANTISED || kind == OPERANDS_ZEROS) {
    mx_error err;
    for (size_t i = 0; kind == OPERANDS_ZEROS && i < rows * cols; i++)
      if (operands_draw(seed + 7, i / 64) % 3 == 0) x[i] = i % 2 ? -0.0f : 0;
    if (mx_quantize(t, x, rows, cols, cols, spec, NULL, &err)) ck_abort_msg("%s", err.text);
    size_t block_rows, block;
    mx_spec_block(spec, rows, cols, &block_rows, &block);
    for (size_t i = 0; kind == OPERANDS_ZEROS && block_rows == 1 && i < rows * t->scale_cols;
         i++) { /* the smallest scale where no element needs one; for E8M0 the largest too */
      const size_t r = i / t->scale_cols, first = i % t->scale_cols * block;
      int any = 0;
      for (size_t k = first; k < cols && k < first + block; k++) any |= x[r * cols + k] != 0;
      if (!any) t->scales[i] = spec->scale == MX_SCALE_E8M0 && operands_draw(seed + 9, i) % 2 ? 254 : 0;
    }
    free(x);
    return;
  }
  free(x);
  for (size_t i = 0; i < rows * t->code_stride; i++) t->codes[i] = (uint8_t)operands_draw(seed + 1, i);
  if (elem->bits > 4)
    for (size_t i = 0; i < rows * t->code_stride; i++) {
      t->codes[i] &= (uint8_t)((1u << elem->bits) - 1);
      const double v = mx_decode(elem, t->codes[i]);
      if (kind != OPERANDS_ANY && !isfinite(v)) t->codes[i] = 1;
    }
  const size_t half = cols / 2;
  if (kind == OPERANDS_CANCEL && elem->bits > 4 && elem->kind != MX_KIND_INT)
    for (size_t r = 0; r < rows; r++)
      for (size_t k = 0; k < half && r % 2; k++)
        t->codes[r * t->code_stride + k + half] = t->codes[r * t->code_stride + k] ^ (uint8_t)(1u << (elem->bits - 1));
  if (kind == OPERANDS_CANCEL && elem->bits == 4)
    for (size_t r = 0; r < rows; r++)
      for (size_t k = 0; k < half / 2 && r % 2; k++) t->codes[r * t->code_stride + k + half / 2] = t->codes[r * t->code_stride + k] ^ 0x88;
  const uint32_t one = (uint32_t)mx_encode(scale, 1, &(mx_encoding){0}, 0), step = 1u << scale->man_bits;
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++) {
    uint32_t code = operands_draw(seed + 2, i) & (uint32_t)((UINT64_C(1) << scale->bits) - 1);
    if (kind == OPERANDS_NARROW) code = one + operands_draw(seed + 2, i) % (4 * step);
    if (kind == OPERANDS_CANCEL) code = one + (i % 3 == 0 ? 0 : operands_draw(seed + 3, i) % 8 * step);
    if (kind != OPERANDS_ANY && !isfinite(mx_decode(scale, code))) code = one;
    memcpy(t->scales + i * t->scale_bytes, &code, t->scale_bytes);
  }
  if (t->micro)
    for (size_t i = 0; i < t->scale_rows * t->scale_cols * 3; i++) t->micro[i] = (uint8_t)operands_draw(seed + 4, i);
}

mx_spec operands_spec(const char *text) {
  mx_spec s;
  memset(&s, 0, sizeof s);
  mx_error err;
  if (mx_spec_parse(&s, text, &err)) ck_abort_msg("%s: %s", text, err.text);
  return s;
}

void operands_compare(const void *got, const void *want, size_t n, mx_dtype type, const char *what) {
  for (size_t i = 0; i < n; i++) {
    uint32_t g = 0, w = 0;
    const size_t bytes = mx_dtype_bytes(type);
    memcpy(&g, (const uint8_t *)got + i * bytes, bytes);
    memcpy(&w, (const uint8_t *)want + i * bytes, bytes);
    if (g != w) ck_abort_msg("%s: output %zu is %08x, expected %08x", what, i, g, w);
  }
}

const uint32_t operands_masks[OPERANDS_MASKS] = {0, MX_ISA_AVX512, MX_ISA_ALL, MX_ISA_AMX};

mx_mma_model operands_unit(const char *text) {
  mx_mma_model m;
  mx_error err;
  if (mx_mma_model_find(&m, text, &err)) ck_abort_msg("%s: %s", text, err.text);
  return m;
}
