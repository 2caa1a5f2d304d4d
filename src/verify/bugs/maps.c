/* Tries bugs after the rule: blocks of codes or scales that are right but written to another place, in another order, or not at all. It keeps the
 * best of these and of what renames.c and lanes.c find. What is found is read off the data, and must hold for all of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/maps.h"
#include "verify/diff/orders.h"
#include "verify/trial/trial.h"

/* ---- how much is needed to say so: less, and chance or a rule of the preset passes for a bug; more, and small tensors get no name for theirs */

/* How many wrong blocks are needed before they are looked for in another place, or before a limit is named although the scale of some right block
 * lies beyond it. */
enum { FEWEST_BLOCKS = 3, ENOUGH_BEYOND = 8 };
/* How far down and to the side together a block may have moved. Each pair of steps costs one pass over all wrong blocks. */
enum { MOST_DIAGONAL = 4 };
/* A cause of wrong scales is accepted only if chance would produce it less often than this. */
static const double BY_CHANCE = 1e-6;
/* Limits of the search for columns of scales in another order: with fewer rows, columns are equal by chance; with more columns, matching takes as
 * long as running a twist. */
enum { LEAST_SCALE_ROWS = 16, MOST_SCALE_COLUMNS = 4096 };
/* Wrong codes, or scales, before another order is looked for. */
enum { ENOUGH = 8 };

/* ---- blocks that hold what belongs to another place, or nothing */

enum { CODES_OF = 1, SCALE_OF = 2 };

/* Does block (d, a) hold the contents that belong to block (d2, a2)? */
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

/* How many wrong blocks do not hold what lies at an offset of (dr, da); ends wrap round. */
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

/* Finds blocks whose scale should lie beyond the largest or smallest one that any block has. That is a limit, and not a place that was left out,
 * if other blocks have scales on its other side and few or none go beyond it. Then text says so. */
static int is_limit(named *is, const base *b, uint8_t *const *wrong, uint64_t n, uint32_t scale, const char *where) {
  uint64_t beyond[2][2] = {{0}}; /* of wrong blocks, of right ones: [below, above] */
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++)
      if (p->scales[k] != scale) beyond[!wrong[i][k]][p->scales[k] > scale]++;
  }
  const int above = beyond[0][1] == n;
  if ((!above && beyond[0][0] != n) || !beyond[1][!above] || (beyond[1][above] && n < ENOUGH_BEYOND)) return 0;
  is->name = BUG(SCALES_AT_A_LIMIT);
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

/* Counts what is still wrong under an explanation: codes, or scales, of the blocks that it does not explain. */
static uint64_t units_left(const base *b, int what, uint64_t blocks_left) {
  uint64_t area = 1;
  if (what & CODES_OF) area = b->parts[0].block_rows * b->parts[0].block_cols;
  return blocks_left * (what == SCALE_OF ? 1 : area);
}

/* Could n wrong scales fit this cause by chance, after so many other guesses? Scales take only a few different values, so chance is likely. */
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
        half_better(best, &is, units_left(b, what, left));
        return;
      }
      is.name = BUG(BLOCKS_NOT_WRITTEN);
      char with[64] = "0";
      if (code || (what & SCALE_OF && q->seen[k]))
        snprintf(with, sizeof with,
                 what == SCALE_OF   ? "scale 0x%X"
                 : what == CODES_OF ? "code 0x%X"
                                    : "code 0x%X, scale 0x%X",
                 what == SCALE_OF ? q->seen[k] : code, q->seen[k]);
      snprintf(is.text, sizeof is.text, "leaves %s%s unwritten (%s)", things[what], where, with);
      half_better(best, &is, units_left(b, what, left));
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
  half_better(best, &is, units_left(b, what, least));
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
    want[a] = mxi_hash_with(want[a], 1u + p->scales[k]);
    is[a] = mxi_hash_with(is[a], 1u + p->seen[k]);
  }
  for (size_t a = 0; want && from && a < p->across; a++) {
    from[a] = is[a] == want[a] ? (int)a : -1;
    for (size_t k = 0; k < p->across && from[a] < 0; k++)
      if (is[a] == want[k]) from[a] = (int)k;
    all &= from[a] >= 0;
    if (from[a] != (int)a) moved++, one = a;
  }
  if (want && from && all && moved) {
    named n = {.name = BUG(SCALES_IN_ANOTHER_PLACE)};
    if (moved == 1)
      snprintf(n.text, sizeof n.text, "stores in column %zu of the scales those of column %d", one, from[one]);
    else
      snprintf(n.text, sizeof n.text,
               "stores the columns of the scales in another order: column %zu has those of column %d, and so on, %zu columns", one, from[one],
               moved);
    half_better(best, &n, 0);
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

/* Room for the words of an order, so that a sentence with two of them fits mx_bug.text. */
enum { ORDER_TEXT = 218 };

/* Do the codes of each part, or its scales, stand in another order than they should, and can that order be named? `words` gets the name. */
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

/* Finds whether everything is right except that it stands in another order. */
static void find_orders(half *codes, half *scales, half *both, const base *b) {
  char of_codes[ORDER_TEXT] = "", of_scales[ORDER_TEXT] = "";
  const int c = b->plain.codes >= ENOUGH && order_of(of_codes, b, 0), s = b->plain.scales >= ENOUGH && order_of(of_scales, b, 1);
  named is = {.name = BUG(ANOTHER_ORDER)};
  if (c && s && !strcmp(of_codes, of_scales)) {
    snprintf(is.text, sizeof is.text, "writes its output, codes and scales, with %s", of_codes);
    half_better(both, &is, 0);
  } else if (c && s) {
    snprintf(is.text, sizeof is.text, "writes the codes with %s, and the scales with %s", of_codes, of_scales);
    half_better(both, &is, 0);
  }
  if (c) snprintf(is.text, sizeof is.text, "writes the codes with %s", of_codes);
  if (c) half_better(codes, &is, 0);
  if (s) snprintf(is.text, sizeof is.text, "writes the scales with %s", of_scales);
  if (s) half_better(scales, &is, 0);
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
  uint8_t **wrong = noted(calloc(b->n + 1, sizeof *wrong), b->lack);
  int ok = wrong != NULL;
  for (size_t i = 0; i < b->n && ok; i++) ok = (wrong[i] = noted(calloc(b->parts[i].down * b->parts[i].across + 1, 1), b->lack)) != NULL;
  half codes = {{0}, 0}, scales = {{0}, 0}, both = {{0}, 0};
  if (ok && b->plain.codes) {
    mxi_find_lanes(&codes, b);
    mxi_rename_codes(&codes, b);
    find_blocks(&codes, b, wrong, CODES_OF);
  }
  if (ok && b->plain.scales) {
    mxi_rename_scales(&scales, b);
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
}
