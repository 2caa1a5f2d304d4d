/* Reads off the data which bits of its source each bit of a place is the exclusive or of: one bit alone where the order of the bits is another. The
 * map is found a bit of the place at a time: whatever the first m bits say of 2^m places must hold in every tile. */
#include "verify/fault/search/places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/bits.h"

/* What a matrix of codes or scales has and should have. linear: tiles lie one after the other in memory, not in their place. */
typedef struct matrix {
  const void *made, *seen;
  int bytes; /* a code each, or a number each */
  size_t rows, cols;
  int linear;
} matrix;

static uint32_t at(const matrix *m, const void *of, size_t i) { return m->bytes ? ((const uint8_t *)of)[i] : ((const uint32_t *)of)[i]; }

enum { MOST_PLACES = 1 << MXI_MOST_BITS };

typedef struct trial {
  const matrix *m;
  place_bits b;
  unsigned n;                    /* bits of a place */
  int any;                       /* the source of a bit may be any place; else a place of one bit */
  uint16_t found[MXI_MOST_BITS]; /* the sources of the bits */
  size_t high, wide;
  int solutions;
  uint64_t left;                /* comparisons that may still be made */
  uint16_t from[MOST_PLACES];   /* the sources of the places so far */
  uint8_t reached[MOST_PLACES]; /* which of all are such sources */
} trial;

/* Does place p of every tile hold what belongs to its source? Beyond the ends of the matrix places hold what they had. */
static int place_holds(trial *t, size_t p) {
  const matrix *m = t->m;
  const size_t row = p >> t->b.cols, col = p & (t->wide - 1), from_row = (size_t)t->from[p] >> t->b.cols, from_col = t->from[p] & (t->wide - 1);
  size_t k = 0;
  for (size_t top = 0; top < m->rows; top += t->high)
    for (size_t left = 0; left < m->cols; left += t->wide, k++) {
      if (!m->linear && (top + row >= m->rows || left + col >= m->cols)) continue;
      const int kept = top + from_row >= m->rows || left + from_col >= m->cols;
      const size_t to = m->linear ? k * t->high * t->wide + p : (top + row) * m->cols + left + col;
      if (!t->left) return 0;
      t->left--;
      if (at(m, m->seen, to) != at(m, m->made, kept ? to : (top + from_row) * m->cols + left + from_col)) return 0;
    }
  return 1;
}

/* Gives bit k of a place each source that is left. */
static void next_bit(trial *t, unsigned k) {
  const size_t first = (size_t)1 << k, all = (size_t)1 << t->n;
  if (k == t->n) {
    memcpy(t->found, t->b.source, sizeof t->found);
    t->solutions++;
    return;
  }
  for (size_t s = 1; s < all && t->solutions < 2 && t->left; s = t->any ? s + 1 : s * 2) {
    int fits = !t->reached[s] && s >> t->b.cols < t->m->rows && (s & (t->wide - 1)) < t->m->cols;
    for (size_t q = 0; q < first && fits; q++) {
      t->from[first + q] = (uint16_t)(s ^ t->from[q]);
      fits = place_holds(t, first + q);
    }
    if (!fits) continue;
    t->b.source[k] = (uint16_t)s;
    for (size_t q = first; q < 2 * first; q++) t->reached[t->from[q]] = 1;
    next_bit(t, k + 1);
    for (size_t q = first; q < 2 * first; q++) t->reached[t->from[q]] = 0;
  }
}

/* Does bit k of a place stay where it is, and says nothing of another? */
static int stays(const place_bits *b, unsigned k) {
  int apart = b->of[k] == 1u << k;
  for (unsigned i = 0; i < b->rows + b->cols; i++) apart &= i == k || !(b->of[i] >> k & 1);
  return apart;
}

/* Takes away what stays where it is: the highest bits of the row, and of the column. */
static void strip(place_bits *b) {
  while (b->rows && stays(b, b->rows + b->cols - 1)) b->rows--;
  while (b->cols && stays(b, b->cols - 1)) {
    b->cols--;
    memmove(b->of + b->cols, b->of + b->cols + 1, b->rows * sizeof *b->of);
    for (unsigned k = 0; k < b->rows + b->cols; k++) { /* bits behind it are one lower */
      const unsigned low = b->of[k] & ((1u << b->cols) - 1);
      b->of[k] = (uint16_t)(low | b->of[k] >> (b->cols + 1) << b->cols);
    }
  }
}

/* The one map in tiles of 2^rows x 2^cols, found with at most *left comparisons. */
static int map_in(place_bits *out, const matrix *m, unsigned rows, unsigned cols, int any, uint64_t *left, effort *e) {
  trial *t = noted(calloc(1, sizeof *t), e->until.lack);
  if (!t) return 0;
  *t = (trial){.m = m,
               .b.rows = rows,
               .b.cols = cols,
               .n = rows + cols,
               .any = any,
               .high = (size_t)1 << rows,
               .wide = (size_t)1 << cols,
               .left = *left};
  t->reached[0] = 1;
  if (place_holds(t, 0)) next_bit(t, 0);
  *left = t->left;
  *out = t->b;
  const int one = t->solutions == 1 && t->left && mxi_bits_inverse(out->of, t->found, t->n);
  free(t);
  if (one && !m->linear) strip(out);
  return one && out->rows + out->cols != 0;
}

static int order_in(place_bits *out, const matrix *m, unsigned rows, unsigned cols, effort *e) {
  enum { LOOKS = 64 }; /* at each place, on average */
  uint64_t left = LOOKS * m->rows * m->cols;
  const int found = map_in(out, m, rows, cols, 0, &left, e);
  effort_spend(e, LOOKS * m->rows * m->cols - left);
  return found;
}

/* Any map, in the smallest tiles in which there is one: there are the more of them to tell it. */
static int any_map(place_bits *out, const matrix *m, unsigned rows, unsigned cols, effort *e) {
  enum { LOOKS = 1 << 22, IN_AN_ELEMENT = 32 }; /* comparisons in all; as many as take the time of an element */
  uint64_t left = LOOKS;
  int found = 0;
  for (unsigned n = 2; n <= rows + cols && !found; n++)
    for (unsigned i = 0; i <= rows && i <= n && !found; i++) found = n - i <= cols && map_in(out, m, i, n - i, 1, &left, e);
  effort_spend(e, (LOOKS - left) / IN_AN_ELEMENT);
  return found;
}

/* How often two goes into n, at most so often. */
static unsigned twos_in(size_t n, unsigned most) {
  unsigned k = 0;
  while (k < most && n && n % ((size_t)2 << k) == 0) k++;
  return k;
}

/* The bits that numbers below n have, at most so many. */
static unsigned bits_below(size_t n, unsigned most) {
  unsigned k = 0;
  while (k < most && n > (size_t)1 << k) k++;
  return k;
}

/* A transposed tile has a plainer word. */
static int is_transposed(const place_bits *b) {
  int so = b->rows == b->cols;
  for (unsigned k = 0; so && k < b->rows + b->cols; k++) so = b->of[k] == 1u << (k < b->cols ? b->cols + k : k - b->cols);
  return so;
}

/* What a word costs, in bits. */
enum { WORD = 13 };

static void answer(moved_bits *out, int op, const place_bits *b) {
  const unsigned n = b->rows + b->cols;
  unsigned more = 0; /* bits in exclusive ors */
  for (unsigned k = 0; k < n; k++)
    for (unsigned of = b->of[k]; of & (of - 1); of &= of - 1) more++;
  out->fault = (mx_fault){.region = {.of = MX_REGION_ALL}, .op = op};
  mxi_bits_put(&out->fault, b);
  out->cost = WORD + 4 + lgamma(n + 1.0) / log(2) + 2 * more * log2(n + 1.0);
}

int mxi_find_codes_bits(moved_bits *out, const view *v, const uint8_t *codes) {
  enum { MOST_ROWS = 5, MOST_COLS = 8 };
  const fault_run *r = &v->r;
  const matrix m = {.made = codes, .seen = v->s->codes, .bytes = 1, .rows = r->rows, .cols = r->cols};
  place_bits b;
  const unsigned rows = bits_below(r->rows, MOST_ROWS), cols = bits_below(r->cols, MOST_COLS);
  if (!order_in(&b, &m, rows, cols, v->e) && !any_map(&b, &m, rows, cols, v->e)) return 0;
  answer(out, MX_FAULT_LAYOUT_CODES_BITS, &b);
  if (is_transposed(&b) && r->rows >> b.rows << b.rows == r->rows && r->cols >> b.cols << b.cols == r->cols)
    *out = (moved_bits){.fault = {.op = MX_FAULT_LAYOUT_CODES_TRANSPOSED, .number = ldexp(1, (int)b.rows)}, .cost = WORD};
  out->held = 0;
  for (size_t i = 0; i < r->rows * r->cols; i++)
    out->held += codes[i] != v->s->codes[i] && !mxi_is_for_fit(i / r->cols / r->block_rows, i % r->cols / r->block_cols);
  return 1;
}

int mxi_find_scales_bits(moved_bits *out, const view *v) {
  const fault_run *r = &v->r;
  matrix m = {.made = v->scales, .seen = v->seen, .rows = r->down, .cols = r->across};
  const unsigned rows = twos_in(r->down, 8), cols = twos_in(r->across, rows > 5 ? MXI_MOST_BITS - rows : 8);
  const unsigned high = bits_below(r->down, 8), wide = bits_below(r->across, high > 5 ? MXI_MOST_BITS - high : 8);
  place_bits b, best = {.rows = 0};
  int op = MX_FAULT_LAYOUT_SCALES_BITS;
  if (!order_in(&best, &m, rows, cols, v->e) && !order_in(&best, &m, high, wide, v->e)) best = (place_bits){.rows = 0};
  m.linear = 1;
  for (unsigned i = 1; i <= rows; i++)
    for (unsigned k = 0; k <= cols && i + k <= MXI_MOST_BITS; k++) {
      const unsigned n = best.rows + best.cols;
      if ((!n || i + k < n) && order_in(&b, &m, i, k, v->e)) best = b, op = MX_FAULT_LAYOUT_SCALES_TILED;
    }
  m.linear = 0;
  if (!(best.rows + best.cols) && !any_map(&best, &m, high, wide, v->e)) return 0;
  answer(out, op, &best);
  out->held = 0;
  for (size_t k = 0; k < r->down * r->across; k++) out->held += v->scales[k] != v->seen[k] && !mxi_is_for_fit(k / r->across, k % r->across);
  return 1;
}
