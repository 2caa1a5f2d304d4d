/* Reads and writes codes and scales of a quantised matrix one at a time, however they are packed. */
#include <string.h>

#include "mxgold/quantize.h"

int mx_spec_is_plain(const mx_spec *spec) { return mx_elem_format(spec->elem)->kind == MX_KIND_NONE; }

uint32_t mx_code_at(const mx_tensor *t, const mx_spec *s, size_t row, size_t c) {
  const uint8_t *codes = t->codes + row * t->code_stride;
  const mx_format *f = mx_elem_format(s->elem);
  size_t br, bc;
  if (f->bits > 8) {
    uint32_t v;
    memcpy(&v, codes + 4 * c, 4);
    return v;
  }
  if (f->bits > 4) return codes[c];
  mx_spec_block(s, t->rows, t->cols, &br, &bc);
  switch (s->nibble) {
  case MX_NIBBLE_HIGH_FIRST:
    return c % 2 ? codes[c / 2] & 15u : codes[c / 2] >> 4;
  case MX_NIBBLE_HALF_BLOCK:
    return codes[c / bc * (bc / 2) + c % bc % (bc / 2)] >> (c % bc >= bc / 2 ? 4 : 0) & 15u;
  default:
    return codes[c / 2] >> (c % 2 * 4) & 15u;
  }
}

void mx_unpack_codes(uint32_t *out, const mx_tensor *t, const mx_spec *s) {
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) out[r * t->cols + c] = mx_code_at(t, s, r, c);
}

uint32_t mx_scale_code_at(const mx_tensor *t, size_t index) {
  uint32_t code = 0;
  memcpy(&code, t->scales + index * t->scale_bytes, t->scale_bytes);
  return code;
}
