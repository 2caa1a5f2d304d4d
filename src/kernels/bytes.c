/* Packs and unpacks codes and converts layouts, by vector kernels for whole units and portable code for the rest. */
#include <string.h>

#include "core/layout.h"
#include "kernels/dispatch.h"

enum { FEW = 256 }; /* up to this many bytes, looking for kernels costs more than they save */

static const mx_byte_kernels *kernels_for(size_t n) { return n < FEW ? NULL : mxi_kernels_for(0)->bytes; }

void mx_pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block) {
  const mx_byte_kernels *k = kernels_for(n);
  const size_t done = k ? k->pack4(out, codes, n, nibble, block) : 0;
  mxi_pack4_plain(out + done / 2, codes + done, n - done, nibble, block);
}

void mx_unpack4(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block) {
  const mx_byte_kernels *k = kernels_for(n);
  const size_t done = k ? k->unpack4(codes, in, n, nibble, block) : 0;
  mxi_unpack4_plain(codes + done, in + done / 2, n - done, nibble, block);
}

void mx_pack6(uint8_t *out, const uint8_t *codes, size_t n) {
  const mx_byte_kernels *k = kernels_for(n);
  const size_t done = k ? k->pack6(out, codes, n) : 0;
  mxi_pack6_plain(out + done / 4 * 3, codes + done, n - done);
}

void mx_unpack6(uint8_t *codes, const uint8_t *in, size_t n) {
  const mx_byte_kernels *k = kernels_for(n);
  const size_t done = k ? k->unpack6(codes, in, n) : 0;
  mxi_unpack6_plain(codes + done, in + done / 4 * 3, n - done);
}

static void move(uint8_t *moved, uint8_t *straight, mx_layout layout, size_t rows, size_t kb, int back) {
  if (layout == MX_LAYOUT_ROW) {
    if (rows && kb) memcpy(back ? straight : moved, back ? moved : straight, rows * kb);
    return;
  }
  const mx_layout_row *l = mx_layout_row_at((int)layout);
  const mx_byte_kernels *k = kernels_for(rows * kb);
  const size_t whole = k && layout != MX_LAYOUT_COLUMN_MAJOR ? rows / l->row_pad * l->row_pad : 0,
               across = (kb + l->k_pad - 1) / l->k_pad * l->k_pad;
  const size_t done = whole ? k->move(moved, straight, layout, whole, kb, across, back) : 0;
  mxi_layout_move_plain(moved, straight, layout, rows, kb, 0, whole, done, back);
  mxi_layout_move_plain(moved, straight, layout, rows, kb, whole, rows, 0, back);
}

void mx_layout_pack(uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad) {
  const size_t size = mx_layout_size(layout, rows, kb);
  const mx_layout_row *l = mx_layout_row_at((int)layout);
  if (size && (rows % l->row_pad || kb % l->k_pad)) memset(out, pad, size);
  move(out, (uint8_t *)(uintptr_t)scales, layout, rows, kb, 0);
}

void mx_layout_unpack(uint8_t *scales, mx_layout layout, const uint8_t *in, size_t rows, size_t kb) {
  move((uint8_t *)(uintptr_t)in, scales, layout, rows, kb, 1);
}
