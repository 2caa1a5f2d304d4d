/* Counting where much differs: a block at a time, by tables.
 *
 * Of elements of one (scale of A, scale of B, code of A, code of B) the first alone can be an example, or speak against a pattern. So the first is
 * looked at by itself, in its turn; a block in which nothing is the first of its kind is only counted: pairs of codes in a table, columns in counters
 * of a byte, eight at a time, that are emptied now and then. */
#include <stdlib.h>
#include <string.h>

#include "verify/diff.h"

enum { COPIES = 2, SLOTS_4 = 512, SLOTS_8 = 128, NONE = 0xFFFF };
#define SEEN 0x80000000u
#define EACH_BYTE UINT64_C(0x0101010101010101)

/* 4-bit codes: a slot is a table of counts for each (scale, scale), in copies, so that equal pairs in a row do not wait for each other; the top bit of
 * a count is set once its pair was looked at. 8-bit codes: one table of counts, and a slot is a bit for each pair, clear once it was looked at. */
struct diff_dense {
  uint32_t *pairs;   /* 4 bits: [slot][COPIES][256]; 8 bits: [65536] */
  uint16_t *slot_of; /* [scale of A][scale of B] */
  uint8_t *fresh;    /* 8 bits: [slot][65536 / 8] */
  size_t n_slots;
  uint8_t *cols; /* 8 bits: [cols]; 4 bits: [2][cols / 2], of lower and of upper halves */
  unsigned rows; /* that cols has seen, at most 255 */
  int counted;   /* pairs */
};

int diff_dense_may(const diff_job *j) {
  return j->elem->bits <= 8 && j->elem->kind != MX_KIND_NONE && (j->elem->bits > 4 || j->spec->nibble != MX_NIBBLE_HALF_BLOCK) &&
         j->elem->bits >= 4 && j->block_shift >= 3 && j->a->scale_bytes == 1 && !j->x && !j->how.input && !j->how.n_list;
}

void diff_dense_free(diff_job *j) {
  diff_dense *d = j->dense;
  if (!d) return;
  free(d->pairs);
  free(d->slot_of);
  free(d->fresh);
  free(d->cols);
  free(d);
  j->dense = NULL;
}

static diff_dense *open_dense(diff_job *j) {
  diff_dense *d = j->dense = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->pairs = calloc(j->pair_bits == 4 ? SLOTS_4 * COPIES * 256 : 65536, sizeof *d->pairs);
  d->slot_of = malloc(65536 * sizeof *d->slot_of);
  d->fresh = malloc(j->pair_bits == 4 ? 1 : SLOTS_8 * 65536 / 8);
  d->cols = calloc(j->a->cols + 2, 1);
  if (!d->pairs || !d->slot_of || !d->fresh || !d->cols) {
    diff_dense_free(j);
    j->dense_may = 0;
    return NULL;
  }
  memset(d->slot_of, 0xFF, 65536 * sizeof *d->slot_of);
  return d;
}

static void mark(uint32_t *counts, uint32_t pair) {
  for (int k = 0; k < COPIES; k++) counts[256 * k + (int)pair] |= SEEN;
}

/* The slot of two scales, a new one for a new pair; NONE once there are too many. Pairs of equal codes are never looked at. */
static size_t slot_at(diff_dense *d, unsigned pair_bits, uint32_t scale_a, uint32_t scale_b) {
  uint16_t *slot = &d->slot_of[(scale_a & 255) << 8 | (scale_b & 255)];
  if (*slot != NONE || d->n_slots == (pair_bits == 4 ? SLOTS_4 : SLOTS_8)) return *slot;
  *slot = (uint16_t)d->n_slots++;
  if (pair_bits == 4) {
    for (uint32_t c = 0; c < 16; c++) mark(d->pairs + *slot * COPIES * 256, c << 4 | c);
    return *slot;
  }
  uint8_t *fresh = d->fresh + *slot * (65536 / 8);
  memset(fresh, 0xFF, 65536 / 8);
  for (uint32_t c = 0; c < 256; c++) fresh[(c << 8 | c) >> 3] &= (uint8_t) ~(1u << (c & 7));
  return *slot;
}

void diff_dense_seen(diff_job *j, uint32_t a, uint32_t b, uint32_t scale_a, uint32_t scale_b) {
  diff_dense *d = j->dense;
  const size_t slot = d ? slot_at(d, j->pair_bits, scale_a, scale_b) : NONE;
  if (slot == NONE) return;
  if (j->pair_bits == 4)
    mark(d->pairs + slot * COPIES * 256, (a & 15) << 4 | (b & 15));
  else
    d->fresh[slot * (65536 / 8) + (((a & 255) << 8 | (b & 255)) >> 3)] &= (uint8_t) ~(1u << (b & 7));
}

/* 4-bit codes, 16 of each side: pairs of the lower and of the upper halves, and 1 in each byte where they differ. */
static inline void halves(uint64_t u, uint64_t v, uint64_t pairs[2], uint64_t differ[2]) {
  const uint64_t low = 15 * EACH_BYTE, x = u ^ v;
  pairs[0] = (u & low) << 4 | (v & low);
  pairs[1] = (u & low << 4) | (v >> 4 & low);
  differ[0] = ((x & low) + low) >> 4 & EACH_BYTE;
  differ[1] = ((x >> 4 & low) + low) >> 4 & EACH_BYTE;
}

static uint64_t load(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static void add(uint8_t *p, uint64_t x) { /* no byte overflows */
  x += load(p);
  memcpy(p, &x, sizeof x);
}

/* Count eight pairs, by `one`; the top bit of the result is clear if one of them was not looked at. */
static inline uint32_t count_pairs(uint32_t *counts, uint64_t pairs, uint32_t one) {
  uint32_t all = SEEN;
#if defined __GNUC__ && !defined __clang__
#pragma GCC unroll 8
#endif
  for (int i = 0; i < 8; i++, pairs >>= 8) {
    uint32_t *count = counts + 256 * (i % COPIES) + (pairs & 255);
    all &= *count;
    *count += one;
  }
  return all;
}

/* n_bytes: 4 or a multiple of 8. Returns how many differ, or -1: then what was counted is taken back. */
static int count_4(diff_dense *d, uint32_t *counts, size_t plane, size_t first, const uint8_t *x, const uint8_t *y, size_t n_bytes) {
  uint64_t pairs[8][2], differ[8][2];
  unsigned n = 0;
  uint32_t all = SEEN;
  for (size_t i = 0; i < n_bytes; i += 8) { /* zeros behind the end are equal pairs */
    uint64_t u = 0, v = 0, *p = pairs[i / 8], *other = differ[i / 8];
    if (n_bytes >= 8)
      u = load(x + i), v = load(y + i);
    else
      memcpy(&u, x, n_bytes), memcpy(&v, y, n_bytes);
    halves(u, v, p, other);
    all &= count_pairs(counts, p[0], 1) & count_pairs(counts, p[1], 1);
    n += (unsigned)((other[0] + other[1]) * EACH_BYTE >> 56);
  }
  if (!(all & SEEN)) {
    for (size_t i = 0; i < n_bytes; i += 8)
      for (size_t k = 0; k < 2; k++) count_pairs(counts, pairs[i / 8][k], UINT32_MAX);
    return -1;
  }
  for (size_t i = 0; i < n_bytes; i += 8)
    for (size_t k = 0; k < 2; k++) {
      uint8_t *to = d->cols + k * plane + first + i;
      if (n_bytes >= 8) {
        add(to, differ[i / 8][k]);
        continue;
      }
      for (size_t b = 0; b < n_bytes; b++) to[b] = (uint8_t)(to[b] + (differ[0][k] >> 8 * b & 1));
    }
  return (int)n;
}

static int count_8(diff_dense *d, const uint8_t *fresh, size_t first, const uint8_t *x, const uint8_t *y, size_t n_bytes) {
  unsigned n = 0, any = 0;
  for (size_t i = 0; i < n_bytes; i++) {
    const unsigned p = (unsigned)x[i] << 8 | y[i];
    any |= (unsigned)fresh[p >> 3] >> (p & 7);
  }
  if (any & 1) return -1;
  for (size_t i = 0; i < n_bytes; i++) d->pairs[(unsigned)x[i] << 8 | y[i]]++;
  for (size_t i = 0; i < n_bytes; i += 8) {
    const uint64_t u = load(x + i) ^ load(y + i), differ = (((u & 127 * EACH_BYTE) + 127 * EACH_BYTE) | u) >> 7 & EACH_BYTE;
    n += (unsigned)(differ * EACH_BYTE >> 56);
    add(d->cols + first + i, differ);
  }
  return (int)n;
}

int diff_dense_count(diff_job *j, size_t row, size_t col, size_t byte, size_t n_bytes, uint32_t scale_a, uint32_t scale_b) {
  diff_dense *d = j->dense ? j->dense : open_dense(j);
  if (!d) return -1;
  const size_t slot = slot_at(d, j->pair_bits, scale_a, scale_b);
  const uint8_t *x = j->a->codes + row * j->a->code_stride + byte, *y = j->b->codes + row * j->a->code_stride + byte;
  if (slot == NONE) return -1;
  const int n = j->pair_bits == 4 ? count_4(d, d->pairs + slot * COPIES * 256, (j->a->cols + 1) / 2, byte, x, y, n_bytes)
                                  : count_8(d, d->fresh + slot * (65536 / 8), col, x, y, n_bytes);
  if (n >= 0) d->counted = 1;
  return n;
}

/* The columns' counters are emptied: into the column, the position in the block, the picture. */
static void empty_cols(diff_job *j, size_t row) {
  diff_dense *d = j->dense;
  const size_t plane = (j->a->cols + 1) / 2, in_block = j->block_cols - 1, above = j->block_rows == 1 ? 0 : row % j->block_rows * j->block_cols;
  const int high_first = j->spec->nibble == MX_NIBBLE_HIGH_FIRST;
  for (size_t c = 0; c < j->a->cols; c++) {
    uint8_t *n = j->pair_bits == 8 ? &d->cols[c] : &d->cols[((c & 1) != 0) == !high_first ? plane + c / 2 : c / 2];
    if (!*n) continue;
    const size_t position = above + (c & in_block);
    j->out->by_position[position < 255 ? position : 255] += *n;
    j->out->map[j->map_row][j->map_col[c]] += *n;
    diff_place_add(&j->place, c, *n);
    *n = 0;
  }
  d->rows = 0;
}

void diff_dense_row(diff_job *j, size_t row) {
  if (++j->dense->rows == 255 || j->block_rows > 1) empty_cols(j, row);
}

void diff_dense_empty(diff_job *j) {
  if (j->dense && j->dense->rows) empty_cols(j, 0);
}

void diff_dense_piece(diff_job *j) {
  diff_dense *d = j->dense;
  mx_difference *o = j->out;
  if (!d || !d->counted) return;
  const uint32_t sign = 1u << (j->elem->bits - 1), n = 1u << j->pair_bits;
  const unsigned shift = j->elem->bits > 4 ? j->elem->bits - 4u : 0;
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < n; b++) {
      uint32_t *p = &d->pairs[a << j->pair_bits | b];
      uint64_t times = 0;
      for (size_t k = 0; k < (j->pair_bits == 4 ? COPIES * d->n_slots : 1); k++) {
        times += p[256 * k] & ~SEEN;
        p[256 * k] &= SEEN;
      }
      if (!times || a == b) continue;
      j->pairs[a << j->pair_bits | b] += times;
      o->pairs[a >> shift & 15][b >> shift & 15] += times;
      if (!(a & ~sign) && !(b & ~sign) && j->elem->kind == MX_KIND_FLOAT) o->zero_signs += times;
    }
  d->counted = 0;
}
