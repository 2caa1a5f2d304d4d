/* Computes where a block scale stands, and how codes share bytes: SPEC 7. */
#include "core/layout.h"

#include <string.h>

#define MX_LAYOUT(id, name, row_pad, k_pad, index, source) {name, row_pad, k_pad, source},
static const mx_layout_row rows_of[] = {
#include "formats/layouts.def"
};
#undef MX_LAYOUT

const mx_layout_row *mx_layout_row_at(int layout) { return layout >= 0 && layout < MX_LAYOUT_COUNT ? &rows_of[layout] : NULL; }
const char *mx_layout_name(mx_layout layout) { return (int)layout >= 0 && layout < MX_LAYOUT_COUNT ? rows_of[layout].name : NULL; }

int mx_layout_find(const char *name) {
  for (int i = 0; i < MX_LAYOUT_COUNT; i++)
    if (!strcmp(rows_of[i].name, name)) return i;
  return -1;
}

/* n rounded up to a multiple. 0 means overflow, unless n is 0. */
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
  const size_t all = padded(kb, rows_of[layout].k_pad);
  switch ((int)layout) {
#define MX_LAYOUT(id, name, row_pad, k_pad, index, source)                                                                                     \
  case MX_LAYOUT_##id:                                                                                                                         \
    return index;
#include "formats/layouts.def"
#undef MX_LAYOUT
  default:
    return SIZE_MAX;
  }
}

/* Where the scales of a row stand: start + k / 8 * eight + place[k % 8]. Looking this up is cheaper than the divisions of mx_layout_index. */
typedef struct row_places {
  size_t start, eight, place[8];
} row_places;

static row_places places_of(mx_layout layout, size_t rows, size_t kb, size_t r) {
  row_places p;
  p.start = mx_layout_index(layout, rows, kb, r, 0);
  for (size_t k = 0; k < 8; k++) p.place[k] = mx_layout_index(layout, rows, kb, r, k) - p.start;
  p.eight = mx_layout_index(layout, rows, kb, r, 8) - p.start; /* the same step everywhere, since the tiles along a row follow each other */
  return p;
}

void mxi_layout_move_plain(uint8_t *moved, uint8_t *straight, mx_layout layout, size_t rows, size_t kb, size_t r0, size_t r1, size_t k0,
                           int back) {
  for (size_t r = r0; r < r1 && k0 < kb; r++) {
    const row_places p = places_of(layout, rows, kb, r);
    uint8_t *row = straight + r * kb, *at = moved + p.start + k0 / 8 * p.eight;
    for (size_t k = k0; k < kb; k += 8, at += p.eight)
      for (size_t i = 0; i < 8 && k + i < kb; i++)
        if (back)
          row[k + i] = at[p.place[i]];
        else
          at[p.place[i]] = row[k + i];
  }
}

/* The byte that holds code i of n; *high says which half of it (0 low, 1 high). */
static size_t nibble_at(int *high, size_t i, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK) {
    *high = nibble == MX_NIBBLE_HIGH_FIRST ? i % 2 == 0 : i % 2 == 1;
    return i / 2;
  }
  const size_t first = i / block * block, left = n - first, half = ((left < block ? left : block) + 1) / 2;
  *high = i - first >= half;
  return first / 2 + (i - first) % half;
}

/* Packs whole blocks of nibble=half_block. */
static void pack_halves(uint8_t *out, const uint8_t *codes, size_t n, size_t block) {
  const size_t half = block / 2;
  for (size_t b = 0; b < n; b += block, out += half)
    for (size_t k = 0; k < half; k++) out[k] = (uint8_t)((codes[b + k] & 15) | codes[b + half + k] << 4);
}

static void unpack_halves(uint8_t *codes, const uint8_t *in, size_t n, size_t block) {
  const size_t half = block / 2;
  for (size_t b = 0; b < n; b += block, in += half)
    for (size_t k = 0; k < half; k++) codes[b + k] = in[k] & 15, codes[b + half + k] = in[k] >> 4;
}

void mxi_pack4_plain(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK && n % 2 == 0) {
    const int first = nibble == MX_NIBBLE_HIGH_FIRST ? 4 : 0;
    for (size_t i = 0; i < n; i += 2) out[i / 2] = (uint8_t)((codes[i] & 15) << first | (codes[i + 1] & 15) << (4 - first));
    return;
  }
  if (nibble == MX_NIBBLE_HALF_BLOCK && block % 2 == 0) {
    const size_t whole = n / block * block;
    pack_halves(out, codes, whole, block);
    out += whole / 2, codes += whole, n -= whole;
  }
  if (n) memset(out, 0, n / 2 + n % 2);
  for (size_t i = 0; i < n; i++) {
    int high;
    const size_t at = nibble_at(&high, i, n, nibble, block);
    out[at] = (uint8_t)(out[at] | (codes[i] & 15) << (high ? 4 : 0));
  }
}

void mxi_unpack4_plain(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK && n % 2 == 0) {
    const int first = nibble == MX_NIBBLE_HIGH_FIRST ? 4 : 0;
    for (size_t i = 0; i < n; i += 2) {
      codes[i] = in[i / 2] >> first & 15;
      codes[i + 1] = in[i / 2] >> (4 - first) & 15;
    }
    return;
  }
  if (nibble == MX_NIBBLE_HALF_BLOCK && block % 2 == 0) {
    const size_t whole = n / block * block;
    unpack_halves(codes, in, whole, block);
    codes += whole, in += whole / 2, n -= whole;
  }
  for (size_t i = 0; i < n; i++) {
    int high;
    const size_t at = nibble_at(&high, i, n, nibble, block);
    codes[i] = in[at] >> (high ? 4 : 0) & 15;
  }
}

void mxi_pack6_plain(uint8_t *out, const uint8_t *codes, size_t n) {
  uint32_t bits = 0;
  unsigned held = 0;
  size_t i = 0;
  for (; i + 4 <= n; i += 4, out += 3) { /* four codes are three bytes */
    const uint32_t four = (codes[i] & 63u) | (codes[i + 1] & 63u) << 6 | (codes[i + 2] & 63u) << 12 | (codes[i + 3] & 63u) << 18;
    out[0] = (uint8_t)four, out[1] = (uint8_t)(four >> 8), out[2] = (uint8_t)(four >> 16);
  }
  for (; i < n; i++) {
    bits |= (uint32_t)(codes[i] & 63) << held;
    for (held += 6; held >= 8; held -= 8, bits >>= 8) *out++ = (uint8_t)bits;
  }
  if (held) *out = (uint8_t)bits;
}

void mxi_unpack6_plain(uint8_t *codes, const uint8_t *in, size_t n) {
  uint32_t bits = 0;
  unsigned held = 0;
  size_t i = 0;
  for (; i + 4 <= n; i += 4, in += 3) {
    const uint32_t three = in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16;
    for (unsigned k = 0; k < 4; k++) codes[i + k] = three >> 6 * k & 63;
  }
  for (; i < n; i++, held -= 6, bits >>= 6) {
    if (held < 6) {
      bits |= (uint32_t)*in++ << held;
      held += 8;
    }
    codes[i] = bits & 63;
  }
}
