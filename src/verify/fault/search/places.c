/* Reads off the data in which order the bits of a place stand. Place 2^k of a tile has its contents from a place with one bit as well, so the order is
 * found a bit at a time: whatever the first m bits say of 2^m places must hold in every tile. */
#include "verify/fault/search/places.h"

#include <math.h>

#include "verify/fault/bits.h"

/* What a matrix of codes or scales has and should have. linear: tiles lie one after the other in memory, not in their place. */
typedef struct matrix {
  const void *made, *seen;
  int bytes; /* a code each, or a number each */
  size_t rows, cols;
  int linear;
} matrix;

static uint32_t at(const matrix *m, const void *of, size_t i) { return m->bytes ? ((const uint8_t *)of)[i] : ((const uint32_t *)of)[i]; }

typedef struct trial {
  const matrix *m;
  place_bits b, found;
  size_t high, wide;
  int solutions;
  uint64_t left; /* comparisons that may still be made */
} trial;

/* Does place p of every tile hold what belongs to its source? */
static int place_holds(trial *t, size_t p) {
  const matrix *m = t->m;
  const place from = mxi_bits_source(&t->b, p);
  const size_t beside = m->cols / t->wide, tiles = m->rows / t->high * beside;
  for (size_t k = 0; k < tiles; k++) {
    const size_t top = k / beside * t->high, left = k % beside * t->wide;
    const size_t to = m->linear ? k * t->high * t->wide + p : (top + p / t->wide) * m->cols + left + p % t->wide;
    if (!t->left) return 0;
    t->left--;
    if (at(m, m->seen, to) != at(m, m->made, (top + from.row) * m->cols + left + from.col)) return 0;
  }
  return 1;
}

/* Gives bit n of a place each bit of the source that is left. */
static void next_bit(trial *t, unsigned rows, unsigned cols) {
  if (t->b.n == rows + cols) {
    t->found = t->b;
    t->solutions++;
    return;
  }
  for (unsigned i = 0; i < rows + cols && t->solutions < 2 && t->left; i++) {
    const uint8_t bit = (uint8_t)(i < cols ? MXI_BIT_OF_COLUMN + i : i - cols);
    const unsigned k = t->b.n;
    int fits = 1;
    for (unsigned j = 0; j < k; j++) fits &= t->b.of[j] != bit;
    if (!fits) continue;
    t->b.of[t->b.n++] = bit;
    for (size_t p = (size_t)1 << k; p < (size_t)2 << k && fits; p++) fits = place_holds(t, p);
    if (fits) next_bit(t, rows, cols);
    t->b.n = k;
  }
}

/* Takes away what stays where it is: the highest bits of the row, and of the column. */
static void strip(place_bits *b) {
  while (b->cols && b->of[b->cols - 1] == MXI_BIT_OF_COLUMN + b->cols - 1) {
    for (unsigned k = b->cols; k < b->n; k++) b->of[k - 1] = b->of[k];
    b->cols--, b->n--;
  }
  while (b->rows && b->of[b->n - 1] == b->rows - 1) b->rows--, b->n--;
}

/* The one order of bits in tiles of 2^rows x 2^cols. */
static int order_in(place_bits *out, const matrix *m, unsigned rows, unsigned cols, effort *e) {
  enum { LOOKS = 64 }; /* at each place, on average */
  trial t = {.m = m, .high = (size_t)1 << rows, .wide = (size_t)1 << cols, .left = LOOKS * m->rows * m->cols};
  if (!place_holds(&t, 0)) return 0;
  next_bit(&t, rows, cols);
  effort_spend(e, LOOKS * m->rows * m->cols - t.left);
  if (t.solutions != 1) return 0;
  *out = t.found;
  out->n = rows + cols, out->rows = rows, out->cols = cols;
  if (!m->linear) strip(out);
  return out->n != 0;
}

/* How often two goes into n, at most so often. */
static unsigned twos_in(size_t n, unsigned most) {
  unsigned k = 0;
  while (k < most && n && n % ((size_t)2 << k) == 0) k++;
  return k;
}

/* A transposed tile has a plainer word. */
static int is_transposed(const place_bits *b) {
  int so = b->rows == b->cols;
  for (unsigned k = 0; so && k < b->n; k++) so = b->of[k] == (k < b->cols ? k : MXI_BIT_OF_COLUMN + k - b->cols);
  return so;
}

/* What a word costs, in bits. */
enum { WORD = 13 };

static void answer(moved_bits *out, int op, const place_bits *b) {
  out->fault = (mx_fault){.region = {.of = MX_REGION_ALL}, .op = op, .number = mxi_bits_pack(b)};
  out->cost = WORD + 4 + lgamma(b->n + 1.0) / log(2);
}

int mxi_find_codes_bits(moved_bits *out, const view *v, const uint8_t *codes) {
  enum { MOST_ROWS = 4, MOST_COLS = 7 };
  const fault_run *r = &v->r;
  const matrix m = {.made = codes, .seen = v->s->codes, .bytes = 1, .rows = r->rows, .cols = r->cols};
  place_bits b;
  if (!order_in(&b, &m, twos_in(r->rows, MOST_ROWS), twos_in(r->cols, MOST_COLS), v->e)) return 0;
  answer(out, MX_FAULT_LAYOUT_CODES_BITS, &b);
  if (is_transposed(&b)) out->fault.op = MX_FAULT_LAYOUT_CODES_TRANSPOSED, out->fault.number = ldexp(1, (int)b.rows), out->cost = WORD;
  out->held = 0;
  for (size_t i = 0; i < r->rows * r->cols; i++)
    out->held += codes[i] != v->s->codes[i] && !mxi_is_for_fit(i / r->cols / r->block_rows, i % r->cols / r->block_cols);
  return 1;
}

int mxi_find_scales_bits(moved_bits *out, const view *v) {
  const fault_run *r = &v->r;
  matrix m = {.made = v->scales, .seen = v->seen, .rows = r->down, .cols = r->across};
  const unsigned rows = twos_in(r->down, 8), cols = twos_in(r->across, rows > 5 ? MXI_MOST_BITS - rows : 8);
  place_bits b, best = {.n = 0};
  int op = MX_FAULT_LAYOUT_SCALES_BITS;
  order_in(&best, &m, rows, cols, v->e);
  m.linear = 1;
  for (unsigned i = 1; i <= rows; i++)
    for (unsigned k = 0; k <= cols && i + k <= MXI_MOST_BITS; k++)
      if ((!best.n || i + k < best.n) && order_in(&b, &m, i, k, v->e)) best = b, op = MX_FAULT_LAYOUT_SCALES_TILED;
  if (!best.n) return 0;
  answer(out, op, &best);
  out->held = 0;
  for (size_t k = 0; k < r->down * r->across; k++) out->held += v->scales[k] != v->seen[k] && !mxi_is_for_fit(k / r->across, k % r->across);
  return 1;
}
