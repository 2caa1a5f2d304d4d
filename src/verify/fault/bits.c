/* Moves codes and scales within tiles whose places have their bits in another order, or exclusive ors of them for bits, as swizzles that are wrong, or undone in
 * part, leave them. */
#include "verify/fault/bits.h"

#include <stdio.h>
#include <string.h>

int mxi_bits_inverse(uint16_t *out, const uint16_t *in, unsigned n) {
  uint16_t left[MXI_MOST_BITS], right[MXI_MOST_BITS]; /* rows of a matrix, and of what the steps make of the identity */
  for (unsigned k = 0; k < n; k++) left[k] = in[k], right[k] = (uint16_t)(1u << k);
  for (unsigned c = 0; c < n; c++) {
    unsigned pivot = c;
    while (pivot < n && !(left[pivot] >> c & 1)) pivot++;
    if (pivot == n) return 0;
    const uint16_t l = left[pivot], r = right[pivot];
    left[pivot] = left[c], right[pivot] = right[c];
    left[c] = l, right[c] = r;
    for (unsigned k = 0; k < n; k++)
      if (k != c && left[k] >> c & 1) left[k] ^= l, right[k] ^= r;
  }
  for (unsigned j = 0; j < n; j++) {
    out[j] = 0;
    for (unsigned k = 0; k < n; k++) out[j] |= (uint16_t)((right[k] >> j & 1) << k);
  }
  return 1;
}

/* ---- the list of a fault: of each bit of a place those of the row in the lower byte, those of the column in the upper one */

static uint16_t listed(const place_bits *b, unsigned bits) { return (uint16_t)(bits >> b->cols | (bits & ((1u << b->cols) - 1)) << 8); }

void mxi_bits_put(mx_fault *f, const place_bits *b) {
  memset(f->list, 0, sizeof f->list);
  for (unsigned k = 0; k < b->rows + b->cols; k++) f->list[k] = listed(b, b->of[k]);
}

/* How many numbers there are of n that are all there from 0 on; -1: one is missing. */
static int count(unsigned set) {
  int n = 0;
  while (set >> n & 1) n++;
  return set >> n ? -1 : n;
}

int mxi_bits_get(place_bits *out, const mx_fault *f) {
  unsigned all = 0, n = 0;
  while (n < MXI_MOST_BITS && f->list[n]) all |= f->list[n++];
  const int rows = count(all & 255), cols = count(all >> 8);
  if (rows < 0 || cols < 0 || !n || (unsigned)(rows + cols) != n) return 0;
  *out = (place_bits){.rows = (unsigned)rows, .cols = (unsigned)cols};
  for (unsigned k = 0; k < n; k++) out->of[k] = (uint16_t)(f->list[k] >> 8 | (f->list[k] & 255) << cols);
  return mxi_bits_inverse(out->source, out->of, n);
}

static const char expected[] = "expected the bits of columns and rows in an order, or exclusive ors of them, as c0,c2,c1^r0,r0";

const char *mxi_bits_read(mx_fault *f, const char *text) {
  unsigned all = 0, n = 0;
  memset(f->list, 0, sizeof f->list);
  for (int more = 1; more; more = text[-1] == ',') {
    if (n == MXI_MOST_BITS) return expected;
    do { /* a bit, behind it ^, a comma or the end */
      if ((*text != 'r' && *text != 'c') || text[1] < '0' || text[1] > '7') return expected;
      const unsigned bit = 1u << (text[1] - '0' + (*text == 'c' ? 8 : 0));
      if (f->list[n] & bit || (text[2] && !strchr(",^", text[2])) || (text[2] && !text[3])) return expected;
      f->list[n] |= (uint16_t)bit;
      all |= bit;
      text += text[2] ? 3 : 2;
    } while (text[-1] == '^');
    n++;
  }
  const int rows = count(all & 255), cols = count(all >> 8);
  if (rows < 0 || cols < 0 || (unsigned)(rows + cols) > MXI_MOST_BITS) return expected;
  const place_bits b = {.rows = (unsigned)rows, .cols = (unsigned)cols};
  for (; n < b.rows + b.cols; n++) f->list[n] = listed(&b, 1u << n); /* those that are left out stay */
  place_bits unused;
  return mxi_bits_get(&unused, f) ? NULL : "its entries say the same twice, so that places would have one source and others none";
}

void mxi_bits_print(char *out, size_t size, const mx_fault *f) {
  place_bits b;
  size_t at = 0;
  *out = 0;
  if (!mxi_bits_get(&b, f)) return;
  unsigned n = b.rows + b.cols, stays = 1;
  while (stays && n > 1) { /* a last one that stays, and stands in another entry as well */
    stays = b.of[n - 1] == 1u << (n - 1);
    unsigned other = 0;
    for (unsigned k = 0; k < n - 1; k++) other |= b.of[k] >> (n - 1) & 1;
    stays &= other;
    n -= stays;
  }
  for (unsigned k = 0; k < n; k++)
    for (unsigned i = 0, first = 1; i < b.rows + b.cols; i++) {
      if (!(b.of[k] >> i & 1) || at >= size) continue;
      at += (size_t)snprintf(out + at, size - at, "%s%c%u", !first ? "^" : k ? "," : "", i < b.cols ? 'c' : 'r', i < b.cols ? i : i - b.cols);
      first = 0;
    }
}

size_t mxi_bits_source(const place_bits *b, size_t at) {
  size_t from = 0;
  for (unsigned k = 0; at; k++, at >>= 1)
    if (at & 1) from ^= b->source[k];
  return from;
}

/* Where a place of a matrix has its contents from; beyond the ends it keeps them. */
static size_t source_of(const place_bits *b, size_t row, size_t col, size_t rows, size_t cols) {
  const size_t high = (size_t)1 << b->rows, wide = (size_t)1 << b->cols;
  const size_t from = mxi_bits_source(b, row % high * wide + col % wide), from_row = row - row % high + from / wide,
               from_col = col - col % wide + from % wide;
  return from_row < rows && from_col < cols ? from_row * cols + from_col : row * cols + col;
}

int mxi_fault_by_bits(const fault_run *r, const mx_fault *f, uint8_t *codes, uint32_t *scales) {
  place_bits b;
  if (!mxi_bits_get(&b, f)) return 0;
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
      const size_t tile = k / (high * wide), beside = r->across / wide, p = mxi_bits_source(&b, k % (high * wide));
      from = (tile / beside * high + p / wide) * r->across + tile % beside * wide + p % wide;
    }
    scales[k] = r->room.blocks[from];
  }
  return 1;
}
