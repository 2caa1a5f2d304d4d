/* Moves codes and scales within tiles whose places have their bits in another order, as swizzles that are wrong, or undone in part, leave them. */
#include "verify/fault/bits.h"

#include <stdio.h>
#include <string.h>

double mxi_bits_pack(const place_bits *b) {
  uint64_t all = 1;
  for (unsigned k = b->n; k--;) all = all << 4 | b->of[k];
  return (double)all;
}

void mxi_bits_unpack(place_bits *out, double number) {
  *out = (place_bits){.n = 0};
  for (uint64_t all = (uint64_t)number; all > 1 && out->n < MXI_MOST_BITS; all >>= 4) {
    const uint8_t bit = (uint8_t)(all & 15);
    out->of[out->n++] = bit;
    *(bit < MXI_BIT_OF_COLUMN ? &out->rows : &out->cols) += 1;
  }
}

int mxi_bits_read(double *out, const char *text) {
  place_bits b = {.n = 0};
  unsigned seen = 0;
  for (int more = 1; more; more = *text == ',' && ++text) {
    if (b.n == MXI_MOST_BITS || (*text != 'r' && *text != 'c') || text[1] < '0' || text[1] > '7') return 0;
    const unsigned bit = (unsigned)(text[1] - '0') + (*text == 'c' ? MXI_BIT_OF_COLUMN : 0);
    if (seen >> bit & 1) return 0;
    seen |= 1u << bit;
    b.of[b.n++] = (uint8_t)bit;
    text += 2;
  }
  const unsigned rows = seen & 255, cols = seen >> MXI_BIT_OF_COLUMN; /* from bit 0 on, without a gap */
  *out = mxi_bits_pack(&b);
  return !*text && !(rows & (rows + 1)) && !(cols & (cols + 1));
}

void mxi_bits_print(char *out, size_t size, double number) {
  place_bits b;
  size_t n = 0;
  mxi_bits_unpack(&b, number);
  *out = 0;
  for (unsigned k = 0; k < b.n && n < size; k++)
    n += (size_t)snprintf(out + n, size - n, "%s%c%u", k ? "," : "", b.of[k] < MXI_BIT_OF_COLUMN ? 'r' : 'c', b.of[k] % MXI_BIT_OF_COLUMN);
}

place mxi_bits_source(const place_bits *b, size_t at) {
  place p = {0, 0};
  for (unsigned k = 0; k < b->n; k++) *(b->of[k] < MXI_BIT_OF_COLUMN ? &p.row : &p.col) |= (at >> k & 1) << b->of[k] % MXI_BIT_OF_COLUMN;
  return p;
}

/* Where a place of a matrix has its contents from, if its tile is whole; else it keeps them. */
static size_t source_of(const place_bits *b, size_t row, size_t col, size_t rows, size_t cols) {
  const size_t high = (size_t)1 << b->rows, wide = (size_t)1 << b->cols, top = row - row % high, left = col - col % wide;
  if (top + high > rows || left + wide > cols) return row * cols + col;
  const place from = mxi_bits_source(b, row % high * wide + col % wide);
  return (top + from.row) * cols + left + from.col;
}

int mxi_fault_by_bits(const fault_run *r, const mx_fault *f, uint8_t *codes, uint32_t *scales) {
  place_bits b;
  mxi_bits_unpack(&b, f->number);
  if (f->op == MX_FAULT_LAYOUT_CODES_BITS) {
    memcpy(r->room.elements, codes, r->rows * r->cols);
    for (size_t i = 0; i < r->rows * r->cols; i++)
      if (mxi_fault_element_in(r, f, i / r->cols, i % r->cols))
        codes[i] = r->room.elements[source_of(&b, i / r->cols, i % r->cols, r->rows, r->cols)];
    return 1;
  }
  const size_t n = r->down * r->across, high = (size_t)1 << b.rows, wide = (size_t)1 << b.cols;
  const int tiled = f->op == MX_FAULT_LAYOUT_SCALES_TILED;
  if (tiled && (r->down % high || r->across % wide)) return 0;
  memcpy(r->room.blocks, scales, n * sizeof *scales);
  for (size_t k = 0; k < n; k++) {
    if (!mxi_fault_block_in(r, f, k / r->across, k % r->across)) continue;
    size_t from = source_of(&b, k / r->across, k % r->across, r->down, r->across);
    if (tiled) { /* tile after tile, from the left and then down */
      const size_t tile = k / (high * wide), beside = r->across / wide;
      const place p = mxi_bits_source(&b, k % (high * wide));
      from = (tile / beside * high + p.row) * r->across + tile % beside * wide + p.col;
    }
    scales[k] = r->room.blocks[from];
  }
  return 1;
}
