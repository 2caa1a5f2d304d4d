/* Tries bugs of lanes: column c of each group of elements holds what another column of its group should, or nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/maps.h"
#include "verify/trial/trial.h"

/* How many groups of elements must differ before lanes are told apart; with fewer, any order of lanes fits. */
enum { ENOUGH_GROUPS = 16 };
/* How many lanes of a group a sentence lists. */
enum { LISTED_LANES = 8 };

/* The largest group that is tried. Each power of two up to it costs one more pass over all wrong rows. */
enum { LANES = 128 };

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
  *out = (named){.name = BUG(ELEMENTS_IN_ANOTHER_ORDER)};
  if (moved + zeros == 1 && zeros) {
    out->name = BUG(A_LANE_NOT_WRITTEN);
    snprintf(out->text, sizeof out->text, "writes 0 for element %zu of every %zu", one, n);
  } else if (moved == 1 && !zeros) {
    out->name = BUG(A_LANE_TAKES_ANOTHERS_ELEMENT);
    snprintf(out->text, sizeof out->text, "writes for element %zu of every %zu what belongs to element %d", one, n, from[one]);
  } else if (zeros)
    snprintf(out->text, sizeof out->text, "writes 0 for %zu of every %zu elements and has %zu in another order", zeros, n, moved);
  else if (same_xor && x && (x & (x + 1)) == 0) {
    out->name = x == 1 ? BUG(PAIRS_OF_ELEMENTS_SWAPPED) : BUG(ELEMENTS_REVERSED_IN_GROUPS);
    snprintf(out->text, sizeof out->text, "writes each group of %zu elements in reverse order%s", x + 1,
             f->bits * (x + 1) == 32   ? " (32-bit words with the first element in the highest bits)"
             : f->bits * (x + 1) == 64 ? " (64-bit words with the first element in the highest bits)"
             : f->bits * (x + 1) == 16 ? " (16-bit words with the first element in the highest bits)"
             : f->bits * (x + 1) == 8  ? " (the two codes of a byte are swapped)"
                                       : "");
  } else if (same_xor && f->bits == 4 && (x == 2 || x == 6 || x == 14)) {
    out->name = BUG(BYTES_OF_A_WORD_REVERSED);
    snprintf(out->text, sizeof out->text, "writes the bytes of each %zu-bit word in reverse order (the other endianness)", (x + 2) * 4);
  } else if (deal) {
    out->name = BUG(ELEMENTS_DEINTERLEAVED);
    snprintf(out->text, sizeof out->text, "writes of every %zu elements those at even places first, then those at odd places", n);
  } else if (undeal) {
    out->name = BUG(ELEMENTS_INTERLEAVED);
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

/* Rows and columns of part i that hold a wrong code; lanes are examined there. */
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
    mxi_say_axis(rows, sizeof rows, m->row, p->rows, "row");
    mxi_say_axis(cols, sizeof cols, wide, p->cols / n * n, "column");
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
          for (size_t l = 0; l < n; l++) want[l] = mxi_hash_with(want[l], 1u + w[l]), is[l] = mxi_hash_with(is[l], 1u + s[l]);
          nothing = mxi_hash_with(nothing, 1);
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
    half_better(best, &is_, lanes_left(b, marks, from, n));
    return;
  }
}

void mxi_find_lanes(half *best, const base *b) {
  marked *marks = mark_lines(b);
  if (marks) look_at_lanes(best, b, marks);
  close_marked(marks, b->n);
}
