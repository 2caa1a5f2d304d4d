/* Bugs behind the rule: codes or scales that are right but written as something else, to another place, or not at all. What is found is read off the
 * data, and must hold for all of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/base.h"
#include "verify/diff/orders.h"
#include "verify/trial/trial.h"

/* ---- how much is needed to say so: less, and chance or a rule of the preset passes for a bug; more, and small tensors get no name for theirs */

/* Rows or columns of a comb (every m-th) are said up to this m. */
enum { MOST_COMB = 128 };
/* All elements zero: fewer that should not be could be what a rule flushes. */
enum { ENOUGH_ZEROS = 64 };
/* More renamed codes than this, without a name for what was done to them, are the weakest finding: nearly any data can be described by so many. */
enum { MANY_WORDS = 16 };
/* Cells to each renamed code: of elements, of elements under a weak name, of scales. A code that stands in one cell says nothing by itself. */
enum { CELLS_EACH = 1, CELLS_EACH_WEAK = 4, CELLS_EACH_SCALE = 3 };
/* Codes that must occur before they are another format's, and other groups of elements before lanes are told from each other. */
enum { MORE_CODES_THAN = 2, ENOUGH_GROUPS = 16 };
/* Lanes of a group that are listed. */
enum { LISTED_LANES = 8 };
/* Wrong blocks that are needed to look for them in another place, and to say a limit although the scale of some right block lies beyond it. */
enum { FEWEST_BLOCKS = 3, ENOUGH_BEYOND = 8 };
/* Steps down and to the side together that a block may lie off in both directions: each pair of steps is one look at all wrong blocks. */
enum { MOST_DIAGONAL = 4 };
/* Wrong scales are what they are found to be by chance less often than this. */
static const double BY_CHANCE = 1e-6;
/* Columns of scales in another order: fewer rows than this have equal columns by chance; more columns than this take as long as a twist to match. */
enum { LEAST_SCALE_ROWS = 16, MOST_SCALE_COLUMNS = 4096 };
/* Wrong codes, or scales, before another order is looked for. */
enum { ENOUGH = 8 };

/* ---- where */

static int one_run(const uint8_t *set, size_t n, size_t *first, size_t *last) {
  size_t in = 0;
  *first = n;
  for (size_t i = 0; i < n; i++) {
    if (!set[i]) continue;
    if (*first == n) *first = i;
    *last = i;
    in++;
  }
  return in && *last - *first + 1 == in;
}

/* All i with i mod m = k, and no others. */
static int is_comb(const uint8_t *set, size_t n, size_t *m, size_t *k) {
  for (*m = 2; *m <= MOST_COMB && 2 * *m <= n; *m *= 2)
    for (*k = 0; *k < *m; ++*k) {
      size_t same = 0;
      while (same < n && set[same] == (same % *m == *k)) same++;
      if (same == n) return 1;
    }
  return 0;
}

static void say_axis(char *out, size_t size, const uint8_t *set, size_t n, const char *what) {
  size_t first = 0, last = 0, m = 0, k = 0;
  *out = 0;
  if (one_run(set, n, &first, &last)) {
    if (last + 1 - first == n) return;
    if (first == last)
      snprintf(out, size, "%s %zu", what, first);
    else
      snprintf(out, size, "%ss %zu to %zu", what, first, last);
  } else if (is_comb(set, n, &m, &k))
    snprintf(out, size, "%ss %zu, %zu, %zu, ...", what, k, k + m, k + 2 * m);
}

void mxi_where_of(char *out, size_t size, const base *b, uint8_t *const *flags) {
  const part *p = &b->parts[0];
  char rows[96] = "", cols[96] = "";
  uint64_t n = 0, all = 0;
  for (size_t i = 0; i < b->n; i++) {
    const size_t blocks = b->parts[i].down * b->parts[i].across;
    for (size_t k = 0; k < blocks; k++) n += flags[i][k];
    all += blocks;
  }
  *out = 0;
  if (n == all) return;
  uint8_t *down = noted(calloc(p->down + 1, 1), b->lack), *across = noted(calloc(p->across + 1, 1), b->lack);
  if (b->n == 1 && down && across) {
    for (size_t k = 0; k < p->down * p->across; k++)
      if (flags[0][k]) down[k / p->across] = across[k % p->across] = 1;
    say_axis(rows, sizeof rows, down, p->down, p->block_rows == 1 ? "row" : "row of blocks");
    say_axis(cols, sizeof cols, across, p->across, "block column");
  }
  free(down);
  free(across);
  if (*rows || *cols)
    snprintf(out, size, " in %s%s%s (%" PRIu64 " of %" PRIu64 " blocks)", rows, *rows && *cols ? ", " : "", cols, n, all);
  else
    snprintf(out, size, " in %" PRIu64 " of %" PRIu64 " blocks", n, all);
}

/* ---- renamed codes */

enum { CODES = 256, PAIRS = 4 }; /* pairs: that are listed */

typedef struct renaming {
  uint32_t count[CODES][CODES]; /* of what should be there, of what is */
  uint64_t n[CODES];
  int to[CODES]; /* -1: does not occur */
  uint64_t left, differ, changed, distinct;
} renaming;

static void rename_settle(renaming *m) {
  m->left = m->differ = m->changed = m->distinct = 0;
  for (int i = 0; i < CODES; i++) {
    int most = 0;
    m->to[i] = -1;
    if (!m->n[i]) continue;
    for (int k = 1; k < CODES; k++)
      if (m->count[i][k] > m->count[i][most]) most = k;
    m->to[i] = most;
    m->left += m->n[i] - m->count[i][most];
    m->differ += m->n[i] - m->count[i][i];
    m->changed += most != i;
    m->distinct++;
  }
}

static void pairs_of(char *out, size_t size, const renaming *m) {
  size_t n = 0;
  int said = 0;
  for (int i = 0; i < CODES && said < PAIRS; i++)
    if (m->to[i] >= 0 && m->to[i] != i && n < size)
      n += (size_t)snprintf(out + n, size - n, "%s0x%X for 0x%X", said++ ? ", " : "", m->to[i], i);
  if ((uint64_t)said < m->changed && n < size) snprintf(out + n, size - n, " and so on, %" PRIu64 " in all", m->changed);
}

static int is_subnormal(const mx_format *f, uint32_t code) {
  const uint32_t magnitude = f->sign_bits ? code & ((1u << (f->bits - 1)) - 1) : code;
  return f->man_bits && magnitude && magnitude < 1u << f->man_bits;
}

/* As another 8-bit format. */
static const mx_format *other_format(const renaming *m, const mx_format *own) {
  static const char *const names[] = {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "ue5m3", "e8m0", "e3m4", "int8"};
  static const mx_encoding nearest = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const mx_format *f = mx_format_find(names[i]);
    if (!f || f == own || f->bits != 8) continue;
    int same = m->distinct > MORE_CODES_THAN;
    for (int k = 0; k < CODES && same; k++)
      if (m->to[k] >= 0 && !mx_format_is_nan(own, (uint64_t)k) && !is_subnormal(own, (uint32_t)k)) /* steps there may be finer */
        same = (uint64_t)m->to[k] == mx_encode(f, mx_decode(own, (uint64_t)k), &nearest, 0);
    if (same) return f;
  }
  return NULL;
}

typedef struct named {
  const char *name;
  int weak;
  char text[480];
} named;

static int holds(const renaming *m, uint32_t (*f)(uint32_t, uint32_t, uint32_t), uint32_t sign, uint32_t k) {
  for (uint32_t i = 0; i < CODES; i++)
    if (m->to[i] >= 0 && (uint32_t)m->to[i] != f(i, sign, k)) return 0;
  return 1;
}
static uint32_t constant(uint32_t c, uint32_t sign, uint32_t k) { return (void)c, (void)sign, k; }
static uint32_t signless(uint32_t c, uint32_t sign, uint32_t k) { return (void)k, c & ~sign; }
static uint32_t negated(uint32_t c, uint32_t sign, uint32_t k) { return (void)k, c ^ sign; }
static uint32_t complement(uint32_t c, uint32_t sign, uint32_t k) { return (void)k, c & sign ? (0u - (c & (sign - 1))) & (2 * sign - 1) : c; }
static uint32_t saturated(uint32_t c, uint32_t sign, uint32_t k) { return (c & ~sign) > k ? (c & sign) | k : c; }
static uint32_t flushed(uint32_t c, uint32_t sign, uint32_t k) { return (c & ~sign) <= k ? c & sign : c; }
static uint32_t flushed_to_plus(uint32_t c, uint32_t sign, uint32_t k) { return (c & ~sign) <= k ? 0 : c; }
static uint32_t shifted(uint32_t c, uint32_t sign, uint32_t k) { return (void)sign, (c + k) & 255; }
/* A magnitude k codes larger, up to the last one. */
static uint32_t rebiased(uint32_t c, uint32_t sign, uint32_t k) {
  const uint32_t m = (c & ~sign) + k;
  return (c & sign) | (m < sign ? m : sign - 1);
}

static int first_used(const renaming *m) {
  int i = 0;
  while (i < CODES && m->to[i] < 0) i++;
  return i;
}

/* Of the magnitudes that are changed, the least or the largest. */
static uint32_t end_of_changed(const renaming *m, uint32_t sign, int largest) {
  uint32_t end = largest ? 0 : 255;
  for (uint32_t i = 0; i < CODES; i++) {
    const uint32_t magnitude = i & ~sign;
    if (m->to[i] >= 0 && (uint32_t)m->to[i] != i && (largest ? magnitude > end : magnitude < end)) end = magnitude;
  }
  return end;
}

static void name_codes(named *out, const renaming *m, const mx_format *f) {
  const uint32_t sign = f->sign_bits ? 1u << (f->bits - 1) : 0, first = (uint32_t)m->to[first_used(m)];
  const uint32_t top = end_of_changed(m, sign, 1), under = end_of_changed(m, sign, 0);
  const mx_format *other = f->bits == 8 ? other_format(m, f) : NULL;
  *out = (named){.name = "codes renamed"};
  const int all_zero = holds(m, constant, sign, 0) || (sign && holds(m, flushed, sign, sign - 1));
  if (all_zero) {
    out->name = "every element zero";
    out->weak = m->differ < ENOUGH_ZEROS; /* a few could be a rule's as well */
    snprintf(out->text, sizeof out->text, "gives zero for every element");
  } else if (m->distinct > 1 && holds(m, constant, sign, first)) {
    out->name = "every code the same";
    snprintf(out->text, sizeof out->text, "stores the code 0x%X for every element", first);
  } else if (sign && holds(m, negated, sign, 0)) {
    out->name = "sign inverted";
    snprintf(out->text, sizeof out->text, "inverts the sign of every element");
  } else if (sign && holds(m, signless, sign, 0)) {
    out->name = "sign lost";
    snprintf(out->text, sizeof out->text, "drops the sign of every element");
  } else if (sign && holds(m, complement, sign, 0)) {
    out->name = "two's complement";
    snprintf(out->text, sizeof out->text, "stores negative elements in two's complement instead of sign and magnitude");
  } else if (sign && first > (uint32_t)first_used(m) && m->distinct > MORE_CODES_THAN &&
             holds(m, rebiased, sign, first - (uint32_t)first_used(m))) {
    out->name = "elements with another bias";
    snprintf(out->text, sizeof out->text, "stores the magnitude of every element %u codes too large (another bias of the exponent)",
             first - (uint32_t)first_used(m));
  } else if (other) {
    out->name = "codes of another format";
    snprintf(out->text, sizeof out->text, "stores elements as %s, not as %s", other->name, f->name);
  } else if (under && holds(m, saturated, sign, under - 1)) {
    out->name = "saturates too low";
    snprintf(out->text, sizeof out->text, "saturates elements at %g, not at %g", mx_decode(f, under - 1), mx_format_max(f));
  } else if (holds(m, flushed, sign, top) || holds(m, flushed_to_plus, sign, top)) {
    out->name = "small elements flushed";
    snprintf(out->text, sizeof out->text, "flushes elements of magnitude %g and less to zero%s", mx_decode(f, top),
             top && f->man_bits && top < 1u << f->man_bits ? " (those that are subnormal in the element format)" : "");
  } else {
    char pairs[200] = "";
    pairs_of(pairs, sizeof pairs, m);
    out->weak = m->changed > MANY_WORDS ? 2 : 1;
    snprintf(out->text, sizeof out->text, "writes other codes than it should: %s", pairs);
  }
}

static void name_scales(named *out, const renaming *m, const mx_format *f) {
  const uint32_t first = (uint32_t)m->to[first_used(m)], shift = (first - (uint32_t)first_used(m)) & 255;
  const mx_format *other = f->bits == 8 || f->kind == MX_KIND_EXP ? other_format(m, f) : NULL;
  const uint32_t under = end_of_changed(m, 0, 0), top = end_of_changed(m, 0, 1);
  *out = (named){.name = "scales renamed"};
  if (other) {
    out->name = "scales of another format";
    snprintf(out->text, sizeof out->text, "stores scales as %s, not as %s", other->name, f->name);
  } else if (m->distinct > 1 && holds(m, shifted, 0, shift)) {
    const int by = shift > 127 && !(f->kind == MX_KIND_EXP && shift == 129) ? (int)shift - 256 : (int)shift;
    out->name = "scales with another bias";
    if (f->kind == MX_KIND_EXP && shift == 129)
      snprintf(out->text, sizeof out->text, "stores the exponent of a scale without its bias of 127 (in two's complement)");
    else
      snprintf(out->text, sizeof out->text, "stores every scale %d codes too %s%s; elements are divided by the right one", abs(by),
               by > 0 ? "large" : "small", f->kind == MX_KIND_EXP ? " (another bias)" : "");
  } else if (under && holds(m, saturated, 0, under - 1)) {
    out->name = "scales saturate too low";
    snprintf(out->text, sizeof out->text, "stores no scale above %g (code 0x%X); elements are divided by the right one",
             mx_decode(f, under - 1), under - 1);
  } else if (holds(m, flushed, 0, top)) {
    out->name = "small scales flushed";
    snprintf(out->text, sizeof out->text, "stores scales up to %g as 0; elements are divided by the right one", mx_decode(f, top));
  } else {
    char pairs[200] = "";
    pairs_of(pairs, sizeof pairs, m);
    out->weak = m->changed > MANY_WORDS ? 2 : 1;
    snprintf(out->text, sizeof out->text, "stores other scales than it divides by: %s", pairs);
  }
}

/* What is left of the codes (or of the scales) with this explanation; name NULL: none. */
typedef struct half {
  named is;
  uint64_t left;
} half;

static void better(half *best, const named *is, uint64_t left) {
  if (!best->is.name || left < best->left || (left == best->left && is->weak < best->is.weak)) *best = (half){*is, left};
}

static void rename_codes(half *best, const base *b, renaming *m) {
  const mx_format *f = mxi_base_elem(b), *sf = mx_scale_format(b->spec.scale);
  named is;
  memset(m, 0, sizeof *m);
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->rows * p->cols; k++) {
      const size_t r = k / p->cols, c = k % p->cols;
      const float x = p->s->x[r * p->s->ld + c];
      if (x != x || mxi_nan_scale(sf, p->seen[r / p->block_rows * p->across + c / p->block_cols])) continue;
      m->count[p->codes[k]][p->s->codes[k]]++;
      m->n[p->codes[k]]++;
    }
  }
  rename_settle(m);
  if (!m->changed) return;
  name_codes(&is, m, f);
  /* Elements without the tensor scale are all tiny as well: a cause that is looked at later. */
  if (b->spec.tensor_norm != MX_TENSOR_NORM_NONE && !strcmp(is.name, "every element zero")) is.weak = 1;
  if (m->differ < (is.weak ? CELLS_EACH_WEAK : CELLS_EACH) * m->changed) return;
  better(best, &is, m->left);
}

static void rename_scales(half *best, const base *b, renaming *m) {
  const mx_format *f = mx_scale_format(b->spec.scale);
  named is;
  memset(m, 0, sizeof *m);
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++) {
      if (p->scales[k] > 255 || p->seen[k] > 255) return;
      if (mxi_nan_scale(f, p->scales[k]) && mxi_nan_scale(f, p->seen[k])) continue;
      m->count[p->scales[k]][p->seen[k]]++;
      m->n[p->scales[k]]++;
    }
  }
  rename_settle(m);
  if (!m->changed || m->distinct < 2 || m->differ < CELLS_EACH_SCALE * m->changed) return;
  name_scales(&is, m, f);
  better(best, &is, m->left);
}

/* ---- lanes: column c holds what another column of its group should */

/* Groups of up to so many elements: each power of two is one more look at all wrong rows. */
enum { LANES = 128 };

static uint64_t mixed(uint64_t h, uint32_t code) {
  h = (h ^ (code + 1)) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

static void say_lanes(named *out, const int *from, size_t n, const mx_format *f) {
  size_t moved = 0, one = 0, zeros = 0;
  int same_xor = 1, deal = 1, undeal = 1, roll = 1;
  for (size_t l = 0; l < n; l++) {
    if (from[l] < 0) {
      zeros++, one = l;
      continue;
    }
    const size_t s = (size_t)from[l];
    if (s != l) moved++, one = l;
    same_xor &= (s ^ l) == (size_t)from[0];
    deal &= s == (l < n / 2 ? 2 * l : 2 * (l - n / 2) + 1);
    undeal &= l == (s < n / 2 ? 2 * s : 2 * (s - n / 2) + 1);
    roll &= s == (l + (size_t)from[0]) % n;
  }
  const size_t x = from[0] > 0 ? (size_t)from[0] : 0;
  *out = (named){.name = "elements in another order"};
  if (moved + zeros == 1 && zeros) {
    out->name = "a lane not written";
    snprintf(out->text, sizeof out->text, "writes 0 for element %zu of every %zu", one, n);
  } else if (moved == 1 && !zeros) {
    out->name = "a lane takes another's element";
    snprintf(out->text, sizeof out->text, "writes for element %zu of every %zu what belongs to element %d", one, n, from[one]);
  } else if (zeros)
    snprintf(out->text, sizeof out->text, "writes 0 for %zu of every %zu elements and has %zu in another order", zeros, n, moved);
  else if (same_xor && x && (x & (x + 1)) == 0) {
    out->name = x == 1 ? "pairs of elements swapped" : "elements reversed in groups";
    snprintf(out->text, sizeof out->text, "writes each group of %zu elements in reverse order%s", x + 1,
             f->bits * (x + 1) == 32   ? " (32-bit words with the first element in the highest bits)"
             : f->bits * (x + 1) == 64 ? " (64-bit words with the first element in the highest bits)"
             : f->bits * (x + 1) == 16 ? " (16-bit words with the first element in the highest bits)"
             : f->bits * (x + 1) == 8  ? " (the two codes of a byte are swapped)"
                                       : "");
  } else if (same_xor && f->bits == 4 && (x == 2 || x == 6 || x == 14)) {
    out->name = "bytes of a word reversed";
    snprintf(out->text, sizeof out->text, "writes the bytes of each %zu-bit word in reverse order (the other endianness)", (x + 2) * 4);
  } else if (deal) {
    out->name = "elements deinterleaved";
    snprintf(out->text, sizeof out->text, "writes of every %zu elements those at even places first, then those at odd places", n);
  } else if (undeal) {
    out->name = "elements interleaved";
    snprintf(out->text, sizeof out->text, "interleaves the two halves of every %zu elements", n);
  } else if (roll)
    snprintf(out->text, sizeof out->text, "has every %zu elements turned by %d places", n, from[0]);
  else {
    char list[160] = "";
    size_t at = 0;
    for (size_t l = 0; l < n && l < LISTED_LANES; l++) at += (size_t)snprintf(list + at, sizeof list - at, "%s%d", l ? ", " : "", from[l]);
    snprintf(out->text, sizeof out->text, "writes every %zu elements in another order: %s%s", n, list, n > LISTED_LANES ? ", ..." : "");
  }
}

/* Where lanes are looked at: rows and columns of part i that hold a wrong code. */
typedef struct marked {
  uint8_t *row, *col;
  size_t rows, cols; /* of them */
} marked;

static void close_marked(marked *m, size_t n) {
  for (size_t i = 0; m && i < n; i++) free(m[i].row);
  free(m);
}

static marked *mark_lines(const base *b) {
  marked *m = noted(calloc(b->n + 1, sizeof *m), b->lack);
  for (size_t i = 0; m && i < b->n; i++) {
    const part *p = &b->parts[i];
    if (!(m[i].row = noted(calloc(p->rows + p->cols + 1, 1), b->lack))) {
      close_marked(m, i);
      return NULL;
    }
    m[i].col = m[i].row + p->rows;
    for (size_t r = 0; r < p->rows; r++) {
      const uint8_t *w = p->codes + r * p->cols, *s = p->s->codes + r * p->cols;
      if (!memcmp(w, s, p->cols)) continue;
      m[i].row[r] = 1;
      for (size_t c = 0; c < p->cols; c++) m[i].col[c] |= w[c] != s[c];
    }
    for (size_t r = 0; r < p->rows; r++) m[i].rows += m[i].row[r];
    for (size_t c = 0; c < p->cols; c++) m[i].cols += m[i].col[c];
  }
  return m;
}

static int group_marked(const marked *m, size_t r, size_t c, size_t n) { return m->row[r] && memchr(m->col + c, 1, n); }

/* " in rows 1, 3, 5, ..., columns 192 to 383": where groups of n are, unless that is everywhere; 0 if it can't be said so. */
static int where_marked(char *out, size_t size, const base *b, const marked *m, size_t n) {
  const part *p = &b->parts[0];
  char rows[96] = "", cols[96] = "";
  size_t down = 0, all_down = 0, across = 0, all_across = 0;
  uint8_t *wide = noted(calloc(p->cols + 1, 1), b->lack);
  *out = 0;
  for (size_t i = 0; i < b->n && wide; i++) {
    down += m[i].rows, all_down += b->parts[i].rows;
    for (size_t c = 0; c + n <= b->parts[i].cols; c += n) {
      const int in = memchr(m[i].col + c, 1, n) != NULL;
      if (!i) memset(wide + c, in, n);
      across += (size_t)in, all_across++;
    }
  }
  if (wide && b->n == 1) {
    say_axis(rows, sizeof rows, m->row, p->rows, "row");
    say_axis(cols, sizeof cols, wide, p->cols / n * n, "column");
  }
  free(wide);
  if (down < all_down && !*rows) snprintf(rows, sizeof rows, "%zu of %zu rows", down, all_down);
  if (across < all_across && !*cols) snprintf(cols, sizeof cols, "some columns");
  if (*rows || *cols) snprintf(out, size, " in %s%s%s alone", rows, *rows && *cols ? ", " : "", cols);
  return wide != NULL;
}

/* What is wrong if each column takes its lane from elsewhere. */
static uint64_t lanes_left(const base *b, const marked *marks, const int *from, size_t n) {
  const mx_format *sf = mx_scale_format(b->spec.scale);
  uint64_t left = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t r = 0; r < p->rows; r++)
      for (size_t c = 0; c < p->cols; c++) {
        if (mxi_nan_scale(sf, p->seen[r / p->block_rows * p->across + c / p->block_cols])) continue;
        const size_t group = c / n * n;
        const int lane = from[c - group];
        const uint8_t *row = p->codes + r * p->cols;
        const uint8_t want = group + n > p->cols || !group_marked(&marks[i], r, group, n) ? row[c] : lane < 0 ? 0 : row[group + (size_t)lane];
        left += p->s->codes[r * p->cols + c] != want;
      }
  }
  return left;
}

static void look_at_lanes(half *best, const base *b, const marked *marks) {
  for (size_t n = 2; n <= LANES; n *= 2) {
    uint64_t want[LANES] = {0}, is[LANES] = {0}, nothing = 0;
    int from[LANES], any = 0, all = 1, some = 0; /* some: a lane that is written */
    size_t groups = 0;
    for (size_t i = 0; i < b->n; i++) {
      const part *p = &b->parts[i];
      for (size_t r = 0; r < p->rows; r++)
        for (size_t c = 0; c + n <= p->cols && marks[i].row[r]; c += n) {
          if (!group_marked(&marks[i], r, c, n)) continue;
          groups++;
          const uint8_t *w = p->codes + r * p->cols + c, *s = p->s->codes + r * p->cols + c;
          for (size_t l = 0; l < n; l++) want[l] = mixed(want[l], w[l]), is[l] = mixed(is[l], s[l]);
          nothing = mixed(nothing, 0);
        }
    }
    if (groups < ENOUGH_GROUPS) return;
    for (size_t l = 0; l < n; l++) {
      from[l] = -2;
      if (is[l] == want[l])
        from[l] = (int)l;
      else
        for (size_t k = 0; k < n && from[l] == -2; k++)
          if (is[l] == want[k]) from[l] = (int)k;
      if (from[l] == -2 && is[l] == nothing) from[l] = -1;
      all &= from[l] != -2;
      some |= from[l] >= 0;
      any |= from[l] != (int)l;
    }
    if (!all || !any || !some) continue;
    named is_;
    char where[256];
    if (!where_marked(where, sizeof where, b, marks, n)) return;
    say_lanes(&is_, from, n, mxi_base_elem(b));
    snprintf(is_.text + strlen(is_.text), sizeof is_.text - strlen(is_.text), "%s", where);
    better(best, &is_, lanes_left(b, marks, from, n));
    return;
  }
}

static void find_lanes(half *best, const base *b) {
  marked *marks = mark_lines(b);
  if (marks) look_at_lanes(best, b, marks);
  close_marked(marks, b->n);
}

/* ---- blocks that hold what belongs to another place, or nothing */

enum { CODES_OF = 1, SCALE_OF = 2 };

/* Does block (d, a) hold what belongs to block (d2, a2)? */
static int block_is(const part *p, size_t d, size_t a, size_t d2, size_t a2, int what) {
  if (what & SCALE_OF && p->seen[d * p->across + a] != p->scales[d2 * p->across + a2]) return 0;
  if (!(what & CODES_OF)) return 1;
  const size_t col = a * p->block_cols, col2 = a2 * p->block_cols;
  size_t width = p->cols - col < p->block_cols ? p->cols - col : p->block_cols;
  if (p->cols - col2 < width) width = p->cols - col2;
  for (size_t r = 0; r < p->block_rows && d * p->block_rows + r < p->rows && d2 * p->block_rows + r < p->rows; r++)
    if (memcmp(p->s->codes + (d * p->block_rows + r) * p->cols + col, p->codes + (d2 * p->block_rows + r) * p->cols + col2, width)) return 0;
  return 1;
}

static int block_filled(const part *p, size_t d, size_t a, int what, uint8_t code, uint32_t scale) {
  if (what & SCALE_OF && p->seen[d * p->across + a] != scale) return 0;
  for (size_t r = d * p->block_rows; what & CODES_OF && r < p->rows && r < (d + 1) * p->block_rows; r++)
    for (size_t c = a * p->block_cols; c < p->cols && c < (a + 1) * p->block_cols; c++)
      if (p->s->codes[r * p->cols + c] != code) return 0;
  return 1;
}

typedef struct displaced {
  uint8_t **wrong;
  uint64_t n_wrong, *per;
} displaced;

static uint64_t mark_wrong(const base *b, uint8_t **wrong, int what) {
  uint64_t n = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++)
      n += wrong[i][k] = !block_is(p, k / p->across, k % p->across, k / p->across, k % p->across, what);
  }
  return n;
}

/* How many wrong blocks are not what lies at an offset of (dr, da), with ends that wrap round. */
static uint64_t offset_left(const base *b, uint8_t *const *wrong, long dr, long da, int what, uint64_t limit) {
  uint64_t left = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++) {
      if (!wrong[i][k]) continue;
      const long down = (long)p->down, across = (long)p->across;
      const size_t d = (size_t)((((long)(k / p->across) + dr) % down + down) % down),
                   a = (size_t)((((long)(k % p->across) + da) % across + across) % across);
      left += !block_is(p, k / p->across, k % p->across, d, a, what);
      if (left > limit) return left;
    }
  }
  return left;
}

static uint64_t filled_left(const base *b, uint8_t *const *wrong, int what, uint8_t code, uint32_t scale) {
  uint64_t left = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++) left += wrong[i][k] && !block_filled(p, k / p->across, k % p->across, what, code, scale);
  }
  return left;
}

/* Blocks whose scale should be beyond what all of them have: a limit and not a place that was left out, if others have scales on its other side and
 * none, or few, go beyond it. Then text says it. */
static int is_limit(named *is, const base *b, uint8_t *const *wrong, uint64_t n, uint32_t scale, const char *where) {
  uint64_t beyond[2][2] = {{0}}; /* of wrong blocks, of right ones: [below, above] */
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++)
      if (p->scales[k] != scale) beyond[!wrong[i][k]][p->scales[k] > scale]++;
  }
  const int above = beyond[0][1] == n;
  if ((!above && beyond[0][0] != n) || !beyond[1][!above] || (beyond[1][above] && n < ENOUGH_BEYOND)) return 0;
  is->name = "scales at a limit";
  is->weak = 1;
  snprintf(is->text, sizeof is->text, "stores scale 0x%X for all that should be %s%s", scale, above ? "larger" : "smaller",
           beyond[1][above] ? where : "");
  return 1;
}

static void say_offset(char *out, size_t size, const part *p, long dr, long da) {
  char rows[64] = "", cols[64] = "";
  const long unit = (long)p->block_rows;
  if (dr) snprintf(rows, sizeof rows, "%ld row%s %s", labs(dr) * unit, labs(dr) * unit == 1 ? "" : "s", dr < 0 ? "above" : "below");
  if (da) snprintf(cols, sizeof cols, "%ld block%s %s", labs(da), labs(da) == 1 ? "" : "s", da < 0 ? "before" : "after");
  snprintf(out, size, "%s%s%s", rows, *rows && *cols ? ", " : "", cols);
}

/* Units that are wrong once the explanation is in: codes, or scales, of the blocks that it does not explain. */
static uint64_t units_left(const base *b, int what, uint64_t blocks_left) {
  uint64_t area = 1;
  if (what & CODES_OF) area = b->parts[0].block_rows * b->parts[0].block_cols;
  return blocks_left * (what == SCALE_OF ? 1 : area);
}

/* May it be chance that n wrong scales are what they are found to be, after so many other guesses? Few numbers are scales. */
static int by_chance(const base *b, uint8_t *const *wrong, uint64_t n, double guesses) {
  uint64_t all = 0, times[CODES] = {0};
  double same = 0;
  for (size_t i = 0; i < b->n; i++)
    for (size_t k = 0; k < b->parts[i].down * b->parts[i].across; k++) all++, times[b->parts[i].scales[k] % CODES]++;
  for (size_t i = 0; i < b->n; i++)
    for (size_t k = 0; k < b->parts[i].down * b->parts[i].across; k++)
      if (wrong[i][k]) same += (double)times[b->parts[i].seen[k] % CODES] / (double)all / (double)n;
  return (double)n * log(same) + log(guesses) > log(BY_CHANCE);
}

static void find_blocks(half *best, const base *b, uint8_t **wrong, int what) {
  static const char *const things[] = {"", "codes", "the scale", "codes and the scale"};
  static const long steps[] = {1, 2, 3, 4, 8, 16, 32, 64, 128};
  enum { STEPS = sizeof steps / sizeof *steps };
  const uint64_t n = mark_wrong(b, wrong, what);
  const part *p = &b->parts[0];
  named is = {.name = NULL};
  if (n < FEWEST_BLOCKS) return;
  char where[256];
  mxi_where_of(where, sizeof where, b, wrong);
  /* what the first wrong block is filled with */
  for (size_t i = 0; i < b->n; i++) {
    const part *q = &b->parts[i];
    size_t k = 0, blocks = q->down * q->across;
    while (k < blocks && !wrong[i][k]) k++;
    if (k == blocks) continue;
    if (what == CODES_OF && !*where) break; /* every code the same */
    const uint8_t code = q->s->codes[k / q->across * q->block_rows * q->cols + k % q->across * q->block_cols];
    const uint64_t left = filled_left(b, wrong, what, code, q->seen[k]);
    if (left * BUG_LEAVES_ONE_IN < n && (what != SCALE_OF || !by_chance(b, wrong, n - 1, 1))) {
      if (what == SCALE_OF && is_limit(&is, b, wrong, n, q->seen[k], where)) {
        better(best, &is, units_left(b, what, left));
        return;
      }
      is.name = "blocks not written";
      char with[64] = "0";
      if (code || (what & SCALE_OF && q->seen[k]))
        snprintf(with, sizeof with,
                 what == SCALE_OF   ? "scale 0x%X"
                 : what == CODES_OF ? "code 0x%X"
                                    : "code 0x%X, scale 0x%X",
                 what == SCALE_OF ? q->seen[k] : code, q->seen[k]);
      snprintf(is.text, sizeof is.text, "leaves %s%s unwritten (%s)", things[what], where, with);
      better(best, &is, units_left(b, what, left));
    }
    break;
  }
  long found_r = 0, found_a = 0;
  uint64_t least = n / BUG_LEAVES_ONE_IN + 1;
  for (int i = -STEPS; i <= STEPS; i++)
    for (int k = -STEPS; k <= STEPS; k++) {
      const long dr = i ? (i < 0 ? -steps[-i - 1] : steps[i - 1]) : 0, da = k ? (k < 0 ? -steps[-k - 1] : steps[k - 1]) : 0;
      if ((!dr && !da) || (size_t)labs(dr) >= p->down + !dr || (size_t)labs(da) >= p->across + !da ||
          (dr && da && labs(dr) + labs(da) > MOST_DIAGONAL))
        continue;
      const uint64_t left = offset_left(b, wrong, dr, da, what, least);
      if (left >= least) continue;
      least = left, found_r = dr, found_a = da;
    }
  if ((!found_r && !found_a) || (what == SCALE_OF && by_chance(b, wrong, n, STEPS * STEPS))) return;
  char offset[140];
  say_offset(offset, sizeof offset, p, found_r, found_a);
  is.name = what == SCALE_OF ? "scales in another place" : "blocks in another place";
  snprintf(is.text, sizeof is.text, "has%s %s of the block %s", where, things[what], offset);
  better(best, &is, units_left(b, what, least));
}

/* ---- scales of tiles in another order: columns of the grid */

static void find_scale_columns(half *best, const base *b) {
  const part *p = &b->parts[0];
  if (b->n != 1 || p->across < 2 || p->across > MOST_SCALE_COLUMNS || p->down < LEAST_SCALE_ROWS) return;
  uint64_t *want = noted(calloc(2 * p->across, sizeof *want), b->lack), *is = want ? want + p->across : NULL;
  int *from = noted(malloc(p->across * sizeof *from), b->lack), all = 1;
  size_t moved = 0, one = 0;
  for (size_t k = 0; want && from && k < p->down * p->across; k++) {
    const size_t a = k % p->across;
    want[a] = mixed(want[a], p->scales[k]);
    is[a] = mixed(is[a], p->seen[k]);
  }
  for (size_t a = 0; want && from && a < p->across; a++) {
    from[a] = is[a] == want[a] ? (int)a : -1;
    for (size_t k = 0; k < p->across && from[a] < 0; k++)
      if (is[a] == want[k]) from[a] = (int)k;
    all &= from[a] >= 0;
    if (from[a] != (int)a) moved++, one = a;
  }
  if (want && from && all && moved) {
    named n = {.name = "scales in another place"};
    if (moved == 1)
      snprintf(n.text, sizeof n.text, "stores in column %zu of the scales those of column %d", one, from[one]);
    else
      snprintf(n.text, sizeof n.text,
               "stores the columns of the scales in another order: column %zu has those of column %d, and so on, %zu columns", one, from[one],
               moved);
    better(best, &n, 0);
  }
  free(want);
  free(from);
}

/* ---- rows, columns, tiles in another order */

typedef struct matrix {
  const uint8_t *a, *b;
  size_t cols;
} matrix;

static const uint8_t *row_of(void *self, int seen, size_t row, uint8_t *room) {
  (void)room;
  const matrix *m = self;
  return (seen ? m->b : m->a) + row * m->cols;
}

static int same_counts(const matrix *m, size_t n) {
  int64_t count[CODES] = {0};
  for (size_t i = 0; i < n; i++) count[m->a[i]]++, count[m->b[i]]--;
  for (int i = 0; i < CODES; i++)
    if (count[i]) return 0;
  return 1;
}

/* Bytes for an order in words: a sentence with two of them fits the text of what is named. */
enum { ORDER_TEXT = 218 };

/* The codes of each part, or its scales, as they should be and as they are: in the same order, in words? `words` is where they go. */
static int order_of(char words[ORDER_TEXT], const base *b, int scales) {
  int any = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    const size_t rows = scales ? p->down : p->rows, cols = scales ? p->across : p->cols, n = rows * cols;
    uint8_t *bytes = scales ? noted(malloc(2 * n + 1), b->lack) : NULL;
    char part_words[ORDER_TEXT] = "";
    int ok = !scales || bytes;
    for (size_t k = 0; k < n && scales && ok; k++) {
      ok = p->scales[k] < CODES && p->seen[k] < CODES;
      bytes[k] = (uint8_t)p->scales[k];
      bytes[n + k] = (uint8_t)p->seen[k];
    }
    const matrix m = {scales ? bytes : p->codes, scales ? bytes + n : p->s->codes, cols};
    const int wrong = ok && memcmp(m.a, m.b, n);
    if (wrong)
      ok = same_counts(&m, n) &&
           mxi_order_find(part_words, sizeof part_words, &(order_source){rows, cols, 1, row_of, (void *)(uintptr_t)&m, b->lack}) &&
           (!any || !strcmp(words, part_words));
    free(bytes);
    if (!ok) return 0;
    if (wrong) memcpy(words, part_words, ORDER_TEXT), any = 1;
  }
  return any;
}

/* What stands in another order, and nothing else is wrong with it. */
static void find_orders(half *codes, half *scales, half *both, const base *b) {
  char of_codes[ORDER_TEXT] = "", of_scales[ORDER_TEXT] = "";
  const int c = b->plain.codes >= ENOUGH && order_of(of_codes, b, 0), s = b->plain.scales >= ENOUGH && order_of(of_scales, b, 1);
  named is = {.name = "another order"};
  if (c && s && !strcmp(of_codes, of_scales)) {
    snprintf(is.text, sizeof is.text, "writes its output, codes and scales, with %s", of_codes);
    better(both, &is, 0);
  } else if (c && s) {
    snprintf(is.text, sizeof is.text, "writes the codes with %s, and the scales with %s", of_codes, of_scales);
    better(both, &is, 0);
  }
  if (c) snprintf(is.text, sizeof is.text, "writes the codes with %s", of_codes);
  if (c) better(codes, &is, 0);
  if (s) snprintf(is.text, sizeof is.text, "writes the scales with %s", of_scales);
  if (s) better(scales, &is, 0);
}

/* ---- all of them */

static void offer_half(candidate *best, const base *b, const half *codes, const half *scales) {
  candidate c = {.l = b->plain, .weak = codes && scales ? 2 : codes ? codes->is.weak : scales->is.weak};
  c.name = codes ? codes->is.name : scales->is.name;
  if (codes) c.l.codes = codes->left;
  if (scales) c.l.scales = scales->left;
  if (codes && scales)
    snprintf(c.text, sizeof c.text, "%.250s; and it %.250s", codes->is.text, scales->is.text);
  else
    snprintf(c.text, sizeof c.text, "%s", codes ? codes->is.text : scales->is.text);
  mxi_offer(best, b, &c);
}

void mxi_map_bugs(candidate *best, const base *b) {
  renaming *m = noted(malloc(sizeof *m), b->lack);
  uint8_t **wrong = noted(calloc(b->n + 1, sizeof *wrong), b->lack);
  int ok = m && wrong;
  for (size_t i = 0; i < b->n && ok; i++) ok = (wrong[i] = noted(calloc(b->parts[i].down * b->parts[i].across + 1, 1), b->lack)) != NULL;
  half codes = {{0}, 0}, scales = {{0}, 0}, both = {{0}, 0};
  if (ok && b->plain.codes) {
    find_lanes(&codes, b);
    rename_codes(&codes, b, m);
    find_blocks(&codes, b, wrong, CODES_OF);
  }
  if (ok && b->plain.scales) {
    rename_scales(&scales, b, m);
    find_scale_columns(&scales, b);
    find_blocks(&scales, b, wrong, SCALE_OF);
  }
  if (ok) find_orders(&codes, &scales, &both, b);
  if (ok && b->plain.codes && b->plain.scales) find_blocks(&both, b, wrong, CODES_OF | SCALE_OF);
  if (both.is.name) {
    candidate c = {.name = both.is.name, .l = b->plain};
    c.l.codes = both.left;
    c.l.scales = both.left ? both.left / (b->parts[0].block_rows * b->parts[0].block_cols) : 0;
    snprintf(c.text, sizeof c.text, "%s", both.is.text);
    mxi_offer(best, b, &c);
  }
  if (codes.is.name) offer_half(best, b, &codes, NULL);
  if (scales.is.name) offer_half(best, b, NULL, &scales);
  if (codes.is.name && scales.is.name) offer_half(best, b, &codes, &scales);
  for (size_t i = 0; wrong && i < b->n; i++) free(wrong[i]);
  free(wrong);
  free(m);
}
