/* Tests whether B is A moved: rows, columns, codes of a byte, of a word or of a block in another place; A transposed; blocks along the other axis;
 * one code everywhere. Rows whose bytes differ are examined one by one; mxi_diff_moves_end() then checks that the other rows agree too. */
#include <stdlib.h>
#include <string.h>

#include "verify/diff/diff.h"
#include "verify/diff/orders.h"

/* The largest matrix that is quantised again, transposed or with blocks along the other axis. A smaller limit loses those two patterns in large
 * tensors; a larger one takes seconds and the memory for them. */
enum { COPY = 1 << 26 };

static int row_is(const diff_job *j, size_t row_b, size_t row_a) {
  return !memcmp(diff_row(j, j->b, row_b), diff_row(j, j->a, row_a), j->a->code_stride);
}
/* Is each byte of B either A's own or A's with its two codes exchanged? Returns how many are A's own and would change if they were exchanged; -1
 * if some byte is neither. */
static int64_t row_swapped(const diff_job *j, size_t r) {
  int64_t same = 0;
  for (size_t c = 0; c + 1 < j->a->cols; c += 2) {
    const uint32_t a0 = diff_code(j, j->a, r, c), a1 = diff_code(j, j->a, r, c + 1), b0 = diff_code(j, j->b, r, c),
                   b1 = diff_code(j, j->b, r, c + 1);
    if (a0 == b1 && a1 == b0) continue;
    if (a0 != b0 || a1 != b1) return -1;
    same++;
  }
  return same;
}
static int row_moved(const diff_job *j, size_t r, size_t by, int right) {
  for (size_t c = 0; c + by < j->a->cols; c++)
    if (diff_code(j, j->b, r, c + (right ? by : 0)) != diff_code(j, j->a, r, c + (right ? 0 : by))) return 0;
  return 1;
}
static int row_from(const diff_job *j, size_t r, size_t by, int up) {
  if (up ? r + by >= j->a->rows : r < by) return 1;
  return row_is(j, r, up ? r + by : r - by);
}
/* Keeps, of the shifts that are not refuted, those that this row agrees with. */
static void narrow(const diff_job *j, uint64_t *by, size_t r, int (*is)(const diff_job *, size_t, size_t, int), int way) {
  for (uint64_t left = *by; left; left &= left - 1) {
    const int k = __builtin_ctzll(left);
    if (!is(j, r, (size_t)k + 1, way)) *by &= ~(UINT64_C(1) << k);
  }
}
/* Shifts by less than half of n lines. */
static uint64_t shifts(size_t n) { return n < 2 ? 0 : n / 2 >= 64 ? UINT64_MAX : (UINT64_C(1) << (n < 4 ? 1 : n / 2)) - 1; }

/* ---- another order inside groups of a few elements */

void mxi_diff_moves_start(diff_job *j) {
  static const size_t sizes[] = {64, 32, 16, 8, 4};
  j->swapped = j->elem->bits == 4;
  j->up = j->down = shifts(j->a->rows);
  j->right = j->left = shifts(j->a->cols);
  memset(j->order.may, 0xFF, sizeof j->order.may);
  j->order.size = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !j->order.size && j->elem->bits <= 8; i++)
    if (j->a->cols % sizes[i] == 0) j->order.size = sizes[i];
}

static void order_row(diff_job *j, size_t r) {
  diff_order *o = &j->order;
  for (size_t c = 0; c < j->a->cols && o->size; c += o->size) {
    uint64_t where[256] = {0};
    for (size_t i = 0; i < o->size; i++) where[diff_code(j, j->a, r, c + i) & 255] |= UINT64_C(1) << i;
    for (size_t i = 0; i < o->size; i++)
      if (!(o->may[i] &= where[diff_code(j, j->b, r, c + i) & 255])) o->size = 0;
  }
}

/* Orders that words and lanes of vectors come in: the place in A of B's element i of a group of w. n is a parameter of the kind of order. */
typedef size_t from_fn(size_t i, size_t w, size_t n);
static size_t xored(size_t i, size_t w, size_t n) { return (void)w, i ^ n; }
static size_t turned_to(size_t i, size_t w, size_t n) { return i % n * (w / n) + i / n; }
static size_t rotated(size_t i, size_t w, size_t n) { return (i + n) % w; }

/* 2: rows that agree do not follow it, but all that differ do. */
static int is_order(const diff_job *j, from_fn *from, size_t w, size_t n) {
  const diff_order *o = &j->order;
  for (size_t i = 0; i < o->size; i++)
    if (!(o->may[i] >> (i / w * w + from(i % w, w, n)) & 1)) return 0;
  int all = 1;
  for (size_t r = 0; r < j->a->rows; r++)
    for (size_t c = 0; c < j->a->cols; c++)
      if (diff_code(j, j->b, r, c) != diff_code(j, j->a, r, c / w * w + from(c % w, w, n))) {
        if (!row_is(j, r, r)) return 0;
        all = 0;
        break;
      }
  return all ? 1 : 2;
}

/* Names the first known order that everything follows, small groups first; if none is known, lists the places if each element has a place of its
 * own. */
static void say_order(diff_job *j) {
  const diff_order *o = &j->order;
  const size_t wide = j->elem->bits == 4 ? 2 : 1, bits = j->elem->bits == 4 ? 4 : 8;
  static const char *const of[] = {"", "", ", in the rows that differ"};
  for (size_t w = 2; w <= o->size; w *= 2) {
    int is = w > wide ? is_order(j, xored, w, w - wide) : 0;
    if (is) {
      mxi_diff_say(j, "the bytes of each %zu-bit word are reversed (big-endian)%s", w * bits, of[is]);
      return;
    }
    if ((is = is_order(j, xored, w, w - 1))) {
      if (w == 2)
        mxi_diff_say(j, "neighbouring codes are swapped%s", of[is]);
      else
        mxi_diff_say(j, "the codes of each %zu-bit word are in reverse order%s", w * bits, of[is]);
      return;
    }
    if (w > 2 && (is = is_order(j, xored, w, w / 2))) {
      mxi_diff_say(j, "the halves of each %zu codes are swapped%s", w, of[is]);
      return;
    }
    for (size_t n = 2; n < w; n *= 2)
      if ((is = is_order(j, turned_to, w, n))) {
        if (n == w / 2)
          mxi_diff_say(j, "of each %zu codes those at even places come first, then the odd ones (deinterleaved)%s", w, of[is]);
        else if (n == 2)
          mxi_diff_say(j, "the halves of each %zu codes are interleaved%s", w, of[is]);
        else
          mxi_diff_say(j, "each %zu codes are transposed, as a matrix of %zu x %zu%s", w, w / n, n, of[is]);
        return;
      }
    for (size_t n = 1; n < w; n++)
      if ((is = is_order(j, rotated, w, n))) {
        mxi_diff_say(j, "the codes of each group of %zu are rotated by %zu%s", w, n, of[is]);
        return;
      }
  }
  uint64_t all = 0;
  size_t place[64];
  int some = 1;
  for (size_t i = 0; i < o->size; i++) {
    if (o->may[i] & (o->may[i] - 1)) return; /* more than one place is left: too little to tell */
    place[i] = (size_t)__builtin_ctzll(o->may[i]);
    all |= o->may[i];
  }
  if (all != (o->size == 64 ? UINT64_MAX : (UINT64_C(1) << o->size) - 1)) return;
  for (size_t r = 0; r < j->a->rows; r++)
    for (size_t c = 0; c < j->a->cols; c++)
      if (diff_code(j, j->b, r, c) != diff_code(j, j->a, r, c / o->size * o->size + place[c % o->size])) {
        if (!row_is(j, r, r)) return;
        some = 2;
        break;
      }
  mxi_diff_say(j, "the codes of each group of %zu are in another order: %s has %s's of the places %zu, %zu, %zu, %zu, ...%s", o->size,
               j->name[1], j->name[0], place[0], place[1], place[2], place[3], of[some]);
}

void mxi_diff_moves_merge(diff_job *j, const diff_job *later) {
  j->swapped &= later->swapped;
  j->up &= later->up;
  j->down &= later->down;
  j->right &= later->right;
  j->left &= later->left;
  if (!later->order.size) j->order.size = 0;
  for (size_t i = 0; i < j->order.size; i++)
    if (!(j->order.may[i] &= later->order.may[i])) j->order.size = 0;
}

void mxi_diff_moves_row(diff_job *j, size_t r) {
  if (j->order.size) order_row(j, r);
  if (j->swapped) j->swapped = row_swapped(j, r) >= 0;
  narrow(j, &j->down, r, row_from, 0);
  narrow(j, &j->up, r, row_from, 1);
  narrow(j, &j->right, r, row_moved, 1);
  narrow(j, &j->left, r, row_moved, 0);
}

/* Are the codes of bytes exchanged? 0: no; 1: in all bytes; 2: in all bytes that differ. Rows that agree are examined here for the first time. */
static int is_swapped(const diff_job *j) {
  int64_t same = 0;
  for (size_t r = 0; r < j->a->rows; r++) {
    const int64_t n = row_swapped(j, r);
    if (n < 0) return 0;
    same += n;
  }
  return same ? 2 : 1;
}

/* The smallest shift that all rows agree with. */
static void say_shift(diff_job *j, uint64_t by, int (*is)(const diff_job *, size_t, size_t, int), int way, const char *lines,
                      const char *whither) {
  for (size_t r = 0; r < j->a->rows && by; r++) narrow(j, &by, r, is, way);
  if (!by) return;
  if (by & 1)
    mxi_diff_say(j, "%s are shifted by one%s", lines, whither);
  else
    mxi_diff_say(j, "%s are shifted by %d%s", lines, __builtin_ctzll(by) + 1, whither);
}

/* ---- what is looked at a second time */

/* One code everywhere in B. */
static void one_code(diff_job *j) {
  const uint32_t code = diff_code(j, j->b, 0, 0);
  for (size_t r = 0; r < j->b->rows; r++)
    for (size_t c = 0; c < j->b->cols; c++)
      if (diff_code(j, j->b, r, c) != code) return;
  if (code == 0)
    mxi_diff_say(j, "every code of %s is zero", j->name[1]);
  else
    mxi_diff_say(j, "every code of %s is 0x%X (%g)", j->name[1], (unsigned)code, mx_decode(j->elem, code));
}

/* B is [rows][cols] like A, but holds A column by column. */
static int transposed(const diff_job *j) {
  const size_t rows = j->a->rows, cols = j->a->cols;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const size_t flat = r * cols + c;
      if (diff_code(j, j->b, r, c) != diff_code(j, j->a, flat % rows, flat / rows)) return 0;
    }
  return rows > 1 && cols > 1;
}

/* Codes and scales of the same input under blocks along the other axis, as they would lie in B's bytes. */
static int other_axis(const diff_job *j) {
  const mx_tensor *b = j->b;
  if (!j->x || j->a->rows * j->a->cols > COPY || j->block_rows == j->block_cols || j->elem->kind == MX_KIND_NONE) return 0;
  mx_spec s = *j->spec;
  mx_tensor t;
  s.block_rows = (int)j->block_cols;
  s.block_cols = (int)j->block_rows;
  if (mx_spec_check(&s, NULL) || noted_status(mx_tensor_alloc(&t, b->rows, b->cols, &s), j->lack)) return 0;
  int same = !noted_status(mx_quantize(&t, j->x, b->rows, b->cols, j->ld, &s, NULL, NULL), j->lack);
  for (size_t r = 0; r < b->rows && same; r++)
    for (size_t c = 0; c < b->cols && same; c++) same = diff_code(j, b, r, c) == mx_code_at(&t, &s, r, c);
  mx_tensor_free(&t);
  return same;
}

/* The input transposed, then quantised. */
static int turned(const diff_job *j) {
  const mx_tensor *b = j->b;
  if (!j->x || b->rows != b->cols || b->rows * b->cols > COPY || j->elem->kind == MX_KIND_NONE) return 0;
  mx_tensor t;
  if (noted_status(mx_tensor_alloc(&t, b->rows, b->cols, j->spec), j->lack)) return 0;
  const int same = !noted_status(mx_quantize_transposed(&t, j->x, b->rows, b->cols, j->ld, j->spec, NULL, NULL), j->lack) &&
                   !memcmp(t.codes, b->codes, b->rows * b->code_stride) &&
                   !memcmp(t.scales, b->scales, b->scale_rows * b->scale_cols * b->scale_bytes);
  mx_tensor_free(&t);
  return same;
}

static const uint8_t *codes_of_row(void *self, int seen, size_t row, uint8_t *room) {
  const diff_job *j = self;
  const mx_tensor *t = seen ? j->b : j->a;
  const uint8_t *from = diff_row(j, t, row);
  if (j->elem->bits > 4) return from;
  if (j->spec->nibble != MX_NIBBLE_LOW_FIRST)
    for (size_t c = 0; c < t->cols; c++) room[c] = (uint8_t)diff_code(j, t, row, c);
  else
    for (size_t c = 0; c < t->cols; c++) room[c] = from[c / 2] >> c % 2 * 4 & 15;
  return room;
}

/* Rows, columns or tiles in another order: then each code (its upper four bits) occurs equally often in A and in B. */
static void lines_or_tiles(diff_job *j) {
  const mx_difference *d = j->out;
  char words[160];
  if (j->elem->bits > 8) return;
  for (int c = 0; c < 16; c++) {
    int64_t more = 0;
    for (int other = 0; other < 16; other++) more += (int64_t)d->pairs[c][other] - (int64_t)d->pairs[other][c];
    if (more) return;
  }
  if (mxi_order_find(words, sizeof words, &(order_source){j->a->rows, j->a->cols, 1, codes_of_row, j, j->lack}))
    mxi_diff_say(j, "%s has %s's codes with %s", j->name[1], j->name[0], words);
}

void mxi_diff_moves_end(diff_job *j) {
  const mx_difference *d = j->out;
  /* Could half of the codes that differ be by accident what the other half implies? This is asked first, because a few codes may be anything. */
  if (mxi_diff_telling(DIFF_OF_MORE, (double)d->codes / 2)) {
    const int before = d->n_patterns, swapped = j->swapped ? is_swapped(j) : 0;
    if (swapped)
      mxi_diff_say(j, "the two codes of each byte are swapped%s", swapped > 1 ? ", where they differ" : "");
    else if (j->order.size)
      say_order(j);
    say_shift(j, j->down, row_from, 0, "rows", "");
    say_shift(j, j->up, row_from, 1, "rows", ", upwards");
    say_shift(j, j->right, row_moved, 1, "columns", "");
    say_shift(j, j->left, row_moved, 0, "columns", ", to the left");
    if (transposed(j)) mxi_diff_say(j, "the codes are transposed");
    one_code(j);
    if (d->n_patterns == before) lines_or_tiles(j);
    if (turned(j)) mxi_diff_say(j, "%s is the transpose of the input, quantised", j->name[1]);
  }
  if (mxi_diff_telling(DIFF_OF_MORE, (double)(d->codes + d->scales) / 2) && other_axis(j))
    mxi_diff_say(j, "blocks lie along columns instead of rows, or the other way");
}
