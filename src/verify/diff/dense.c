/* Counts differences where there are many: runs of blocks at a time, by vectors and one table. Elements with the same scale of A, scale of B, code
 * of A and code of B are all alike: only the first of them can be an example or refute a pattern. So the first is examined by itself, in its turn,
 * and all others are only counted. A set of bits says which pairs of codes are still fresh (not seen) under two scales, and the kernels
 * (kernels/differ.h) stop before a fresh one. What has been counted waits in a queue. Pairs of 4-bit codes that were seen are counted by their bits,
 * if the processor does that well. Otherwise pairs of bytes are counted in a table of 65,536 counters, two 4-bit pairs at a time: that is one
 * increment for two elements, and the counters are split into pairs when they are emptied. */
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "verify/diff/diff.h"

enum { RUN = MX_DIFFER_TALLY, BYTES = 256 * 256, ALONE = 0 };
/* Limits of memory. With fewer sets of fresh pairs (one for each pair of scales) blocks of rare scales are examined one by one; with more, the
 * sets leave the cache. The tables are used in turn: with a single one, equal neighbours wait for each other; with more, the sums at the end take
 * longer. */
enum { SETS_4 = 8192, SETS_8 = 128, TABLES = 2, SCALE_TABLES = 4 };

struct diff_dense {
  const mx_differ_kernels *k;
  uint32_t *
      pairs; /* [TABLES][x ^ y][x], x a byte of A, y of B: what differs alike lies together; a table each in turn, so that equal pairs in a row do not wait for each other. 4 bits: made when it is needed */
  uint64_t n_pairs;    /* counted: below 2^32 */
  uint64_t (*sums)[8]; /* 4 bits: [code of A][code of B], as tally() counts them */
  uint16_t seen[16];   /* 4 bits: pairs that may be counted, bit b of seen[a] */
  unsigned n_seen;
  uint8_t queue[2][RUN]; /* bytes of A and B that are to be counted by pair */
  size_t n_queue;
  uint64_t by_scale[SCALE_TABLES][256]; /* elements by A's scale; a table each in turn, as neighbours often have one scale */
  uint16_t *set_of;                     /* [scale of A][scale of B]; ALONE: not yet known, or too many */
  uint8_t *fresh;      /* sets of pairs that were not looked at: 4 bits as the kernels want them, 8 bits [set / 8][x ^ y][x], bit set % 8 */
  size_t n_sets, most; /* the set ALONE has every pair */
  uint8_t *cols;       /* 8 bits: [cols]; 4 bits: [2][plane], of lower and of upper halves */
  size_t plane;
  uint64_t looked; /* of the run at hand: they are examples already */
  unsigned rows;   /* that cols has seen, at most 255 */
};

int mxi_diff_dense_may(const diff_job *j) {
  return j->elem->bits <= 8 && j->elem->kind != MX_KIND_NONE && (j->elem->bits > 4 || j->spec->nibble != MX_NIBBLE_HALF_BLOCK) &&
         j->elem->bits >= 4 && j->block_shift >= 3 && j->a->scale_bytes == 1 && !j->x && !j->how.input && !j->how.n_list;
}

static void close_dense(diff_job *j) {
  diff_dense *d = j->dense;
  if (!d) return;
  free(d->pairs);
  free(d->sums);
  free(d->set_of);
  free(d->fresh);
  free(d->cols);
  free(d);
  j->dense = NULL;
}

static diff_dense *open_dense(diff_job *j) {
  diff_dense *d = j->dense = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->k = mxi_kernels_for(0)->differ;
  d->most = j->pair_bits == 4 ? SETS_4 : SETS_8;
  d->plane = (j->a->cols + 1) / 2;
  d->sums = calloc(16 * 16, sizeof *d->sums);
  d->set_of = calloc(BYTES, sizeof *d->set_of);
  d->fresh =
      malloc(j->pair_bits == 4 ? (size_t)SETS_4 * MX_DIFFER_SET : (size_t)SETS_8 / 8 * BYTES); /* memory that is not used is not touched */
  d->cols = calloc(2 * d->plane + MX_DIFFER_STEP, 1);
  if (j->pair_bits == 8) d->pairs = calloc((size_t)TABLES * BYTES, sizeof *d->pairs);
  if (!d->sums || (j->pair_bits == 8 && !d->pairs) || !d->set_of || !d->fresh || !d->cols) {
    close_dense(j);
    j->dense_may = 0;
    return NULL;
  }
  memset(d->fresh, 0xFF, j->pair_bits == 4 ? MX_DIFFER_SET : BYTES);
  d->n_sets = 1;
  return d;
}

/* The bit of a pair in its set. */
static uint8_t *place_of(const diff_job *j, size_t set, uint32_t a, uint32_t b, uint8_t *mask) {
  if (j->pair_bits == 4) {
    *mask = (uint8_t)(1u << (b & 7));
    return j->dense->fresh + set * MX_DIFFER_SET + 16 * (b >> 3 & 1) + (a & 15);
  }
  *mask = (uint8_t)(1u << set % 8);
  return j->dense->fresh + set / 8 * BYTES + (((a ^ b) & 255) << 8 | (a & 255));
}

/* The set of two scales; a pair of scales that is new gets a new set. Pairs of equal codes are never examined. */
static uint16_t new_set(diff_job *j, size_t scales) {
  diff_dense *d = j->dense;
  uint16_t *known = &d->set_of[scales];
  uint8_t mask;
  if (d->n_sets == d->most) return ALONE;
  *known = (uint16_t)d->n_sets++;
  if (j->pair_bits == 4) memset(d->fresh + *known * MX_DIFFER_SET, 0xFF, MX_DIFFER_SET);
  if (j->pair_bits == 8 && *known % 8 == 0) memset(d->fresh + *known / 8 * BYTES, 0xFF, BYTES);
  for (uint32_t c = 0; c < 1u << j->pair_bits; c++) {
    uint8_t *at = place_of(j, *known, c, c, &mask);
    *at &= (uint8_t)~mask;
  }
  return *known;
}

static void see(diff_dense *d, const uint32_t code[2]) {
  d->n_seen += !(d->seen[code[0]] >> code[1] & 1);
  d->seen[code[0]] |= (uint16_t)(1u << code[1]);
}

/* Examines every pair in some bytes of one block that has not been seen yet, if all of them can be counted from then on. */
static int settle(diff_job *j, size_t row, size_t byte, size_t n_bytes, size_t set, const uint32_t scale[2]) {
  const size_t wide = j->pair_bits == 4 ? 2 : 1;
  const uint8_t *x = diff_row(j, j->a, row), *y = diff_row(j, j->b, row);
  const int high_first = j->spec->nibble == MX_NIBBLE_HIGH_FIRST;
  if (set == ALONE) return 0;
  for (int look = 0; look < 2; look++)
    for (size_t i = byte * wide; i < (byte + n_bytes) * wide; i++) {
      const unsigned shift = j->pair_bits == 4 && (i & 1) == (size_t)!high_first ? 4 : 0, all = j->pair_bits == 4 ? 15 : 255;
      const uint32_t code[2] = {x[i / wide] >> shift & all, y[i / wide] >> shift & all};
      uint8_t mask, *at = place_of(j, set, code[0], code[1], &mask);
      if (!(*at & mask)) continue;
      if (!look) {
        if (!mxi_diff_countable(j, code, scale)) return 0;
        continue;
      }
      mxi_diff_look_at(j, row, i, code, scale);
      j->dense->looked++;
      *at &= (uint8_t)~mask;
      if (j->pair_bits == 4) see(j->dense, code);
    }
  return 1;
}

/* 8-bit codes: is one of the pairs of bytes fresh? */
static int any_fresh(const diff_job *j, const uint8_t *x, const uint8_t *y, size_t n, const uint16_t *set, size_t unit) {
  unsigned any = 0;
  for (size_t i = 0; i < n; i += unit, set++) {
    const uint8_t *s = j->dense->fresh + *set / 8 * (size_t)BYTES;
    unsigned here = 0;
    for (size_t k = i; k < i + unit; k++) here |= s[(size_t)(x[k] ^ y[k]) << 8 | x[k]];
    any |= here >> *set % 8;
  }
  return (int)(any & 1);
}

/* Counts the bytes, of n from x and y on, that can be counted, and returns how many these are. */
static size_t count_bytes(const diff_job *j, const mx_differ_kernels *k, uint8_t *sums, const uint8_t *x, const uint8_t *y, size_t byte,
                          size_t n, const uint16_t *set, unsigned unit) {
  diff_dense *d = j->dense;
  if (j->pair_bits == 4) return k->fours(sums, d->cols + byte, d->cols + d->plane + byte, x + byte, y + byte, n, d->fresh, set, unit);
  size_t done = 0;
  while (done < n) {
    const size_t m = n - done < MX_DIFFER_STEP ? n - done : MX_DIFFER_STEP;
    if (any_fresh(j, x + byte + done, y + byte + done, m, set + done / unit, unit)) break;
    done += m;
  }
  k->eights(sums, d->cols + byte, x + byte, y + byte, done, unit);
  return done;
}

/* ---- pairs */

/* Splits counters into pairs of codes: the lower halves of the index's two bytes are one pair, the upper halves another. */
static void empty_4(uint64_t times[16][16], const uint32_t *t) {
  for (size_t d = 1; d < 256; d++)
    for (size_t x = 0; x < 256; x++) {
      const size_t y = x ^ d;
      const uint32_t n = t[d * 256 + x];
      if (!n) continue;
      times[x & 15][y & 15] += n;
      times[x >> 4][y >> 4] += n;
    }
}

/* Adds the counters of whole bytes to the pairs of four bits that begin at bit `shift`. */
static void empty_8(uint64_t times[16][16], const uint32_t *t, unsigned shift) {
  for (size_t d = 1; d < 256; d++)
    for (size_t x = 0; x < 256; x++) times[x >> shift & 15][(x ^ d) >> shift & 15] += t[d * 256 + x];
}

static void empty_pairs(diff_job *j) {
  diff_dense *d = j->dense;
  mx_difference *o = j->out;
  const uint32_t sign = 1u << (j->elem->bits - 1);
  const unsigned shift = j->elem->bits > 4 ? j->elem->bits - 4u : 0;
  uint64_t times[16][16] = {{0}};
  for (size_t a = 0; a < 16; a++)
    for (size_t b = 0; b < 16; b++)
      for (size_t i = 0; i < 8; i++) times[a][b] += d->sums[16 * a + b][i];
  memset(d->sums, 0, 16 * 16 * sizeof *d->sums);
  for (size_t k = 0; k < TABLES && d->n_pairs; k++) {
    uint32_t *t = d->pairs + k * BYTES;
    if (j->pair_bits == 4)
      empty_4(times, t);
    else {
      empty_8(times, t, shift);
      if (j->elem->kind == MX_KIND_FLOAT) o->zero_signs += (uint64_t)t[sign << 8] + t[sign << 8 | sign];
    }
    memset(t, 0, BYTES * sizeof *t);
  }
  if (j->pair_bits == 4) {
    for (size_t c = 0; c < 16; c++) times[c][c] = 0;
    if (j->elem->kind == MX_KIND_FLOAT) o->zero_signs += times[0][sign] + times[sign][0];
  }
  for (size_t a = 0; a < 16; a++)
    for (size_t b = 0; b < 16; b++) o->pairs[a][b] += times[a][b];
  for (size_t k = 0; k < SCALE_TABLES; k++)
    for (size_t s = 0; s < 256; s++) o->by_scale[s] += d->by_scale[k][s];
  memset(d->by_scale, 0, sizeof d->by_scale);
  d->n_pairs = 0;
}

/* Counts n pairs of bytes, a multiple of four, in a table if there is memory for one. Returns 1. */
static int count_in_table(diff_job *j, const uint8_t *x, const uint8_t *y, size_t n) {
  diff_dense *d = j->dense;
  uint8_t pairs[2 * RUN];
  if (!d->pairs) d->pairs = calloc((size_t)TABLES * BYTES, sizeof *d->pairs);
  if (!d->pairs) return 0;
  uint32_t *even = d->pairs, *odd = even + BYTES;
  (n % 64 ? &mxi_differ_scalar : d->k)->zip(pairs, x, y, n);
  if (d->n_pairs + n > UINT32_MAX) empty_pairs(j);
  d->n_pairs += n;
  for (size_t i = 0; i < n; i += 4) {
    uint64_t v;
    memcpy(&v, pairs + 2 * i, sizeof v);
    even[v & 0xFFFF]++;
    odd[v >> 16 & 0xFFFF]++;
    even[v >> 32 & 0xFFFF]++;
    odd[v >> 48]++;
  }
  return 1;
}

/* Of up to RUN bytes those that differ, by pairs. */
static void count_pairs(diff_job *j, const uint8_t *x, const uint8_t *y, size_t n) {
  diff_dense *d = j->dense;
  if (j->pair_bits == 4 && n == RUN && d->n_seen <= d->k->tally_most)
    d->k->tally(d->sums, x, y, n, d->seen);
  else if ((j->pair_bits == 4 && n < RUN) || !count_in_table(j, x, y, n))
    mxi_differ_scalar.tally(d->sums, x, y, n, d->seen);
}

static void empty_queue(diff_job *j) {
  diff_dense *d = j->dense;
  count_pairs(j, d->queue[0], d->queue[1], d->n_queue);
  d->n_queue = 0;
}

/* Some bytes of a row, to be counted by pair. */
static void enqueue(diff_job *j, const uint8_t *x, const uint8_t *y, size_t n) {
  diff_dense *d = j->dense;
  if (!d->n_queue && n == RUN) {
    count_pairs(j, x, y, n);
    return;
  }
  while (n) {
    const size_t room = RUN - d->n_queue, m = n < room ? n : room;
    memcpy(d->queue[0] + d->n_queue, x, m);
    memcpy(d->queue[1] + d->n_queue, y, m);
    d->n_queue += m;
    if (d->n_queue == RUN) empty_queue(j);
    x += m, y += m, n -= m;
  }
}

/* ---- runs of blocks */

/* Adds the counts of one block at a time; 2^per units from unit `first` of the row on make one block. If a unit is a block, eight are added at
 * once. */
static uint64_t count_units(diff_job *j, size_t first, unsigned per, const uint8_t *sums, size_t n_units, const uint8_t *scale_a,
                            const uint8_t *scale_b) {
  diff_dense *d = j->dense;
  uint8_t *seen = j->block_seen, *moved = j->block_moved;
  const unsigned known = j->values[0] && !j->out->tensor_scales;
  uint64_t all = 0, same_scale = 0, blocks = 0;
  size_t i = 0;
  for (; !per && i + 8 <= n_units; i += 8) {
    const size_t at = first + i;
    const uint64_t n = diff_8(sums + i), s = diff_8(seen + at), some = diff_some_8(n),
                   other = diff_some_8(diff_8(scale_a + at) ^ diff_8(scale_b + at));
    all += diff_sum_8(n);
    same_scale += diff_sum_8(n & ~(other * 255));
    blocks += (some & ~s) * DIFF_ONES >> 56;
    diff_put_8(seen + at, s | some);
    diff_put_8(moved + at, diff_8(moved + at) | (known ? some & other : some));
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; k++) d->by_scale[k % SCALE_TABLES][scale_a[at + k]] += sums[i + k];
  }
  for (; i < n_units; i++) {
    const size_t at = (first + i) >> per;
    const unsigned n = sums[i], some = n != 0, same = scale_a[at] == scale_b[at];
    all += n;
    same_scale += same ? n : 0;
    blocks += some & !seen[at];
    seen[at] |= (uint8_t)some;
    moved[at] |= (uint8_t)(some & !(same & known));
    d->by_scale[0][scale_a[at]] += n;
  }
  j->out->blocks += blocks;
  j->out->values += known ? same_scale : 0;
  j->pairs_moved += all - same_scale;
  return all;
}

/* Finds the sets of fresh pairs for some units. */
static void find_sets(diff_job *j, uint16_t *set, size_t first, unsigned per, size_t n_units, const uint8_t *scale_a, const uint8_t *scale_b) {
  const uint16_t *set_of = j->dense->set_of;
  if (!per) {
    unsigned alone = 0;
#pragma GCC unroll 4
    for (size_t i = 0; i < n_units; i++) {
      const unsigned s = set_of[(size_t)scale_a[first + i] << 8 | scale_b[first + i]];
      set[i] = (uint16_t)s;
      alone |= s - 1; /* ALONE is 0 */
    }
    if (!(alone >> 16)) return;
  }
  for (size_t i = 0; i < n_units; i++) {
    const size_t block = (first + i) >> per, of = (size_t)scale_a[block] << 8 | scale_b[block];
    set[i] = set_of[of] ? set_of[of] : new_set(j, of);
  }
}

static void run(diff_job *j, size_t row, size_t byte, size_t n_bytes) {
  diff_dense *d = j->dense;
  uint8_t sums[RUN / 4] = {0};
  uint16_t set[RUN / 4];
  const size_t wide = j->pair_bits == 4 ? 2 : 1, block_bytes = j->block_cols / wide,
               scale_row = j->a->scale_rows == j->a->rows ? row : row / j->block_rows;
  const unsigned unit = block_bytes < 16 ? (unsigned)block_bytes : 16;
  const uint8_t *x = diff_row(j, j->a, row), *y = diff_row(j, j->b, row), *scale_a = diff_scales(j, j->a, scale_row * j->a->scale_cols),
                *scale_b = diff_scales(j, j->b, scale_row * j->a->scale_cols);
  const size_t n_units = n_bytes / unit, first = byte / unit;
  const unsigned per = (unsigned)__builtin_ctzll(block_bytes) - (unsigned)__builtin_ctz(unit);
  find_sets(j, set, first, per, n_units, scale_a, scale_b);
  size_t counted = 0; /* bytes before which all is counted by pair */
  for (size_t done = 0; done < n_bytes;) {
    done += count_bytes(j, d->k, sums + done / unit, x, y, byte + done, n_bytes - done, set + done / unit, unit);
    const size_t stop = n_bytes - done < MX_DIFFER_STEP ? n_bytes : done + MX_DIFFER_STEP;
    for (; done < stop; done += unit) {
      const size_t block = (byte + done) * wide >> j->block_shift;
      const uint32_t scale[2] = {scale_a[block], scale_b[block]};
      if (settle(j, row, byte + done, unit, set[done / unit], scale)) {
        count_bytes(j, &mxi_differ_scalar, sums + done / unit, x, y, byte + done, unit, set + done / unit, unit);
        continue;
      }
      enqueue(j, x + byte + counted, y + byte + counted, done - counted);
      counted = done + unit;
      for (size_t i = byte + done; i < byte + done + unit; i++)
        if (x[i] != y[i]) mxi_diff_byte(j, row, i);
    }
  }
  enqueue(j, x + byte + counted, y + byte + counted, n_bytes - counted);
  const uint64_t n = count_units(j, first, per, sums, n_units, scale_a, scale_b);
  if (!n) return;
  j->out->codes += n;
  mxi_diff_examples(j->out, n - d->looked);
  d->looked = 0;
  mxi_diff_place_row(&j->place, row);
}

size_t mxi_diff_dense_run(diff_job *j, size_t row, size_t byte, size_t end) {
  diff_dense *d = j->dense ? j->dense : open_dense(j);
  if (!d) return 0;
  const size_t n = d->k->crowd(diff_row(j, j->a, row) + byte, diff_row(j, j->b, row) + byte, (end - byte) / 64 * 64, DIFF_CROWD);
  for (size_t done = 0; done < n; done += RUN) run(j, row, byte + done, n - done < RUN ? n - done : RUN);
  return n;
}

/* ---- columns */

/* Empties the counters of columns into the column, the position in the block, and the picture. */
static void empty_cols(diff_job *j, size_t row) {
  diff_dense *d = j->dense;
  const size_t in_block = j->block_cols - 1, above = j->block_rows == 1 ? 0 : row % j->block_rows * j->block_cols;
  const int high_first = j->spec->nibble == MX_NIBBLE_HIGH_FIRST;
  for (size_t c = 0; c < j->a->cols; c++) {
    uint8_t *n = j->pair_bits == 8 ? &d->cols[c] : &d->cols[((c & 1) != 0) == !high_first ? d->plane + c / 2 : c / 2];
    if (!*n) continue;
    const size_t position = above + (c & in_block);
    j->out->by_position[position < 255 ? position : 255] += *n;
    j->out->map[j->map_row][j->map_col[c]] += *n;
    mxi_diff_place_add(&j->place, c, *n);
    *n = 0;
  }
  d->rows = 0;
}

void mxi_diff_dense_row(diff_job *j, size_t row) {
  if (++j->dense->rows == 255 || j->block_rows > 1) empty_cols(j, row);
}

void mxi_diff_dense_empty(diff_job *j) {
  if (j->dense && j->dense->rows) empty_cols(j, 0);
}

void mxi_diff_dense_end(diff_job *j) {
  mxi_diff_dense_empty(j);
  if (j->dense) empty_queue(j);
  if (j->dense) empty_pairs(j);
  close_dense(j);
}
