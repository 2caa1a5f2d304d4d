/* Reads the numbers of an operand, whatever its layout in memory. */
#include <math.h>
#include <string.h>

#include "gemm/tile/tile.h"
#include "kernels/block/plan.h"

void mxi_gemm_operand_prepare(mxg_operand *o) {
  const mx_format *e = o->elem, *s = o->scale;
  for (unsigned c = 0; c < 256; c++) {
    o->elem_value[c] = e->bits <= 8 ? mx_decode(e, c) : 0;
    o->scale_value[c] = s && s->bits <= 8 ? mx_decode(s, c) : 1;
    if (!o->scale_signed) o->scale_value[c] = fabs(o->scale_value[c]);
    if (s && s->man_bits == 0 && o->encode)
      o->scale_value[c] = 1 / o->scale_value[c]; /* the inverse of a power of two is a power of two, so such scales are multiplied */
  }
  o->divides = s && s->man_bits && o->encode;
  o->hi = mx_format_emax(e) + (o->micro ? 2 : 0);
  o->lo = ilogb(mx_format_min(e));
  if (e->kind == MX_KIND_INT) o->hi++; /* the lowest value, such as -2, has no positive counterpart */
  o->scale_bits = s && s->man_bits ? s->man_bits + 1 : 0;
}

static unsigned bits_at(const uint8_t *line, size_t bit, unsigned n) {
  unsigned v = line[bit / 8] >> bit % 8;
  if (bit % 8 + n > 8) v |= (unsigned)line[bit / 8 + 1] << (8 - bit % 8);
  return v & ((1u << n) - 1);
}

/* The code at position `at` of a line. */
static uint32_t code_in_line(const mxg_operand *o, const uint8_t *line, size_t at) {
  uint32_t code = 0;
  switch (o->pack) {
  case MXG_LOW_FIRST:
    return line[at / 2] >> at % 2 * 4 & 15;
  case MXG_HIGH_FIRST:
    return line[at / 2] >> (at % 2 ? 0 : 4) & 15;
  case MXG_HALF_BLOCK: {
    const size_t half = o->block / 2, in = at % o->block;
    return line[at / o->block * half + in % half] >> (in >= half ? 4 : 0) & 15;
  }
  case MXG_SIX:
    return bits_at(line, at * 6, 6);
  case MXG_8:
    return line[at];
  case MXG_16:
    memcpy(&code, line + at * 2, 2);
    return code;
  case MXG_32:
    memcpy(&code, line + at * 4, 4);
    return code;
  }
  return 0;
}

static uint32_t code_at(const mxg_operand *o, size_t row, size_t k) {
  return o->k_strided ? code_in_line(o, o->data + k * o->line_bytes, row) : code_in_line(o, o->data + row * o->line_bytes, k);
}

void mxi_gemm_codes(uint8_t *out, const mxg_operand *o, size_t row, size_t k0, size_t n) {
  if (o->pack == MXG_8 && !o->k_strided) {
    memcpy(out, o->data + row * o->line_bytes + k0, n);
    return;
  }
  for (size_t i = 0; i < n; i++) out[i] = (uint8_t)code_at(o, row, k0 + i);
}

void mxi_gemm_codes64(uint64_t *out, const mxg_operand *o, size_t row, size_t k0, size_t n) {
  const uint64_t mask = (UINT64_C(1) << o->elem->bits) - 1;
  for (size_t i = 0; i < n; i++) out[i] = code_at(o, row, k0 + i) & mask;
}

static const uint8_t *micro_of(const mxg_operand *o, size_t row, size_t b) {
  return o->micro + ((o->scale_row0 + row) / o->rows_per_scale * o->scale_ld + b) * 3;
}

double mxi_gemm_micro(const mxg_operand *o, size_t row, size_t k) { return mxi_hif4_factor(micro_of(o, row, k / o->block), k % o->block); }

/* The number of a code of more than 8 bits. The bits of a binary32 are the number itself; its NaNs go through mx_decode(), which makes the same one
 * of them all. */
static double wide_value(const mx_format *elem, uint32_t code) {
  float x;
  memcpy(&x, &code, sizeof x);
  return elem->bits == 32 && !isnan(x) ? (double)x : mx_decode(elem, code);
}

void mxi_gemm_values(double *out, const mxg_operand *o, size_t row, size_t k0, size_t n) {
  const uint8_t *line = o->k_strided ? NULL : o->data + row * o->line_bytes;
  if (o->elem->bits > 8) {
    for (size_t i = 0; i < n; i++) out[i] = wide_value(o->elem, code_at(o, row, k0 + i));
  } else if (o->pack == MXG_8 && line) {
    for (size_t i = 0; i < n; i++) out[i] = o->elem_value[line[k0 + i]];
  } else if (o->pack == MXG_LOW_FIRST && line) {
    for (size_t i = 0; i < n; i++) out[i] = o->elem_value[line[(k0 + i) / 2] >> (k0 + i) % 2 * 4 & 15];
  } else {
    for (size_t i = 0; i < n; i++) out[i] = o->elem_value[code_at(o, row, k0 + i)];
  }
  if (!o->micro) return;
  for (size_t i = 0; i < n; i++) out[i] *= mxi_gemm_micro(o, row, k0 + i);
}

double mxi_gemm_scaled(double element, double scale, int divides) {
  if (!divides) return element * scale;
  return element == 0 && scale == 0 ? element : element / scale;
}

uint32_t mxi_gemm_scale_code(const mxg_operand *o, size_t row, size_t b) {
  const size_t r = (o->scale_row0 + row) / o->rows_per_scale;
  size_t at;
  if (o->scale_layout != MX_LAYOUT_ROW)
    at = mx_layout_index((mx_layout)o->scale_layout, o->rows, o->kb, r, b);
  else
    at = o->scale_transposed ? b * o->scale_ld + r : r * o->scale_ld + b;
  if (o->scale_bytes == 1) return o->scales[at];
  uint32_t code = 0;
  memcpy(&code, o->scales + at * o->scale_bytes, o->scale_bytes);
  return code;
}

double mxi_gemm_scale(const mxg_operand *o, size_t row, size_t b) {
  if (!o->scale) return 1;
  const uint32_t code = mxi_gemm_scale_code(o, row, b);
  if (o->scale_bytes == 1) return o->scale_value[code];
  const double v = mx_decode(o->scale, code);
  return o->scale_signed ? v : fabs(v);
}
