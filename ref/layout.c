/* Computes where a scale lies, and how small codes share bytes: SPEC 7. */
#include "ref.h"

#include <string.h>

static const struct {
  size_t row_pad, k_pad;
} pads[] = {
#define MX_LAYOUT(id, name, row_pad, k_pad, index, doc) {row_pad, k_pad},
#include "../formats/layouts.def"
#undef MX_LAYOUT
};

static size_t padded(size_t n, size_t to) { return n > SIZE_MAX - (to - 1) ? SIZE_MAX : (n + to - 1) / to * to; }

size_t ref_layout_size(mx_layout layout, size_t rows, size_t kb) {
  size_t r = padded(rows, pads[layout].row_pad), k = padded(kb, pads[layout].k_pad), size;
  if (r == SIZE_MAX || k == SIZE_MAX || __builtin_mul_overflow(r, k, &size)) return SIZE_MAX;
  return size;
}

size_t ref_layout_index(mx_layout layout, size_t rows, size_t kb, size_t row, size_t k) {
  size_t width = padded(kb, pads[layout].k_pad);
  switch (layout) {
  case MX_LAYOUT_NV128X4: { /* tiles of 128 x 4, row-major; in a tile 32 lines of 16 bytes: row % 32, then row / 32, then k */
    size_t tile = (row / 128) * (width / 4) + k / 4, r = row % 128;
    return tile * 512 + (r % 32) * 16 + (r / 32) * 4 + k % 4;
  }
  case MX_LAYOUT_NV8X4:
    return ((row / 8) * (width / 4) + k / 4) * 32 + (row % 8) * 4 + k % 4;
  case MX_LAYOUT_AMD_SHUFFLE:
  case MX_LAYOUT_AMD_SHUFFLE_256: /* view (R/32, 2, 16, K/8, 2, 4) permuted to (R/32, K/8, 4, 16, 2, 2) */
    return (row / 32) * 32 * width + (k / 8) * 256 + (k % 4) * 64 + (row % 16) * 4 + (k % 8 / 4) * 2 + row % 32 / 16;
  case MX_LAYOUT_ROW:
    return row * width + k;
  case MX_LAYOUT_COLUMN_MAJOR:
    return k * rows + row;
  default:
    break;
  }
  /* A row that nothing here says on its own yet: its formula. */
  const size_t r = row, all = width;
  switch ((int)layout) {
#define MX_LAYOUT(id, name, row_pad, k_pad, index, doc)                                                                                        \
  case MX_LAYOUT_##id:                                                                                                                         \
    return index;
#include "../formats/layouts.def"
#undef MX_LAYOUT
  default:
    return SIZE_MAX;
  }
}

void ref_layout_pack(uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad) {
  memset(out, pad, ref_layout_size(layout, rows, kb));
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < kb; k++) out[ref_layout_index(layout, rows, kb, r, k)] = scales[r * kb + k];
}

void ref_layout_unpack(uint8_t *scales, mx_layout layout, const uint8_t *in, size_t rows, size_t kb) {
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < kb; k++) scales[r * kb + k] = in[ref_layout_index(layout, rows, kb, r, k)];
}

/* Byte and shift of code i. In half_block each block of `block` codes has its first half in the low nibbles; a last block that is shorter or
 * odd has its first (n + 1) / 2 there. */
static void nibble_place(size_t i, size_t n, int nibble, size_t block, size_t *byte, int *shift) {
  *byte = i / 2;
  *shift = i % 2 ? 4 : 0;
  if (nibble == MX_NIBBLE_HIGH_FIRST) *shift = 4 - *shift;
  if (nibble != MX_NIBBLE_HALF_BLOCK || block == 0) return;
  size_t first = i / block * block, length = n - first < block ? n - first : block, low = (length + 1) / 2, j = i - first;
  *byte = first / 2 + (j < low ? j : j - low);
  *shift = j < low ? 0 : 4;
}

void ref_pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block) {
  memset(out, 0, (n + 1) / 2);
  for (size_t i = 0; i < n; i++) {
    size_t byte;
    int shift;
    nibble_place(i, n, nibble, block, &byte, &shift);
    out[byte] = (uint8_t)(out[byte] | (codes[i] & 15) << shift);
  }
}

void ref_unpack4(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block) {
  for (size_t i = 0; i < n; i++) {
    size_t byte;
    int shift;
    nibble_place(i, n, nibble, block, &byte, &shift);
    codes[i] = in[byte] >> shift & 15;
  }
}

void ref_pack6(uint8_t *out, const uint8_t *codes, size_t n) {
  memset(out, 0, (6 * n + 7) / 8);
  for (size_t i = 0; i < 6 * n; i++) out[i / 8] = (uint8_t)(out[i / 8] | (codes[i / 6] >> i % 6 & 1) << i % 8);
}

void ref_unpack6(uint8_t *codes, const uint8_t *in, size_t n) {
  memset(codes, 0, n);
  for (size_t i = 0; i < 6 * n; i++) codes[i / 6] = (uint8_t)(codes[i / 6] | (in[i / 8] >> i % 8 & 1) << i % 6);
}
