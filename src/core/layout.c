/* Where a block scale stands, and how codes share bytes: SPEC 7. */
#include "mxgold/layout.h"

#include <string.h>

#define MX_LAYOUT(id, name, row_pad, k_pad, source) {name, row_pad, k_pad, source},
static const mx_layout_row rows_of[] = {
#include "../../formats/layouts.def"
};
#undef MX_LAYOUT

const mx_layout_row *mx_layout_row_at(int layout) { return layout >= 0 && layout < MX_LAYOUT_COUNT ? &rows_of[layout] : NULL; }
const char *mx_layout_name(mx_layout layout) { return (int)layout >= 0 && layout < MX_LAYOUT_COUNT ? rows_of[layout].name : NULL; }

int mx_layout_find(const char *name) {
  for (int i = 0; i < MX_LAYOUT_COUNT; i++)
    if (!strcmp(rows_of[i].name, name)) return i;
  return -1;
}

/* n rounded up to a multiple; 0 on overflow (only for n = 0 otherwise). */
static size_t padded(size_t n, size_t multiple) {
  size_t sum;
  return __builtin_add_overflow(n, multiple - 1, &sum) ? 0 : sum / multiple * multiple;
}

size_t mx_layout_size(mx_layout layout, size_t rows, size_t kb) {
  const mx_layout_row *l = &rows_of[layout];
  const size_t r = padded(rows, l->row_pad), k = padded(kb, l->k_pad);
  size_t n;
  if (r < rows || k < kb || __builtin_mul_overflow(r, k, &n)) return SIZE_MAX;
  return n;
}

size_t mx_layout_index(mx_layout layout, size_t rows, size_t kb, size_t r, size_t k) {
  (void)rows; /* every layout is a sequence of row tiles: their number does not matter */
  const size_t all = padded(kb, rows_of[layout].k_pad);
  switch (layout) {
  case MX_LAYOUT_NV128X4:
    return (r / 128 * (all / 4) + k / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + k % 4;
  case MX_LAYOUT_NV8X4:
    return (r / 8 * (all / 4) + k / 4) * 32 + r % 8 * 4 + k % 4;
  case MX_LAYOUT_AMD_SHUFFLE:
  case MX_LAYOUT_AMD_SHUFFLE_256:
    return r / 32 * 32 * all + k / 8 * 256 + k % 4 * 64 + r % 16 * 4 + k % 8 / 4 * 2 + r % 32 / 16;
  default:
    return r * all + k;
  }
}

void mx_layout_pack(uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad) {
  const size_t size = mx_layout_size(layout, rows, kb);
  if (size) memset(out, pad, size);
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < kb; k++) out[mx_layout_index(layout, rows, kb, r, k)] = scales[r * kb + k];
}

void mx_layout_unpack(uint8_t *scales, mx_layout layout, const uint8_t *in, size_t rows, size_t kb) {
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < kb; k++) scales[r * kb + k] = in[mx_layout_index(layout, rows, kb, r, k)];
}

/* Byte and half (0 low, 1 high) of code i of n. */
static size_t nibble_at(int *high, size_t i, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK) {
    *high = nibble == MX_NIBBLE_HIGH_FIRST ? i % 2 == 0 : i % 2 == 1;
    return i / 2;
  }
  const size_t first = i / block * block, left = n - first, half = ((left < block ? left : block) + 1) / 2;
  *high = i - first >= half;
  return first / 2 + (i - first) % half;
}

void mx_pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block) {
  if (n) memset(out, 0, n / 2 + n % 2);
  for (size_t i = 0; i < n; i++) {
    int high;
    const size_t at = nibble_at(&high, i, n, nibble, block);
    out[at] = (uint8_t)(out[at] | (codes[i] & 15) << (high ? 4 : 0));
  }
}

void mx_unpack4(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block) {
  for (size_t i = 0; i < n; i++) {
    int high;
    const size_t at = nibble_at(&high, i, n, nibble, block);
    codes[i] = in[at] >> (high ? 4 : 0) & 15;
  }
}

void mx_pack6(uint8_t *out, const uint8_t *codes, size_t n) {
  uint32_t bits = 0;
  unsigned held = 0;
  for (size_t i = 0; i < n; i++) {
    bits |= (uint32_t)(codes[i] & 63) << held;
    for (held += 6; held >= 8; held -= 8, bits >>= 8) *out++ = (uint8_t)bits;
  }
  if (held) *out = (uint8_t)bits;
}

void mx_unpack6(uint8_t *codes, const uint8_t *in, size_t n) {
  uint32_t bits = 0;
  unsigned held = 0;
  for (size_t i = 0; i < n; i++, held -= 6, bits >>= 6) {
    if (held < 6) {
      bits |= (uint32_t)*in++ << held;
      held += 8;
    }
    codes[i] = bits & 63;
  }
}
