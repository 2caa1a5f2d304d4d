/* Counts what differs, in one pass. */
#include "verify/diff/diff.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"

/* About how many bytes of codes are compared together: those of A and B fit a second-level cache. More are fetched twice; fewer make more pieces. */
enum { PIECE = 1 << 18 };
/* Up to FEW_THREADS each thread gets its pieces in about SHARES * SHARES parts, the last ones small, so that none waits long for another; with more
 * threads one part each, since each part has counts of its own that must be added up. */
enum { MOST_THREADS = 64, FEW_THREADS = 8, SHARES = 4 };

static mx_diff_example example(const diff_job *j, const diff_element *e) {
  return (mx_diff_example){.row = e->row,
                           .col = e->col,
                           .code_a = e->a,
                           .code_b = e->b,
                           .scale_a = e->scale_a,
                           .scale_b = e->scale_b,
                           .value_a = e->value_a * j->factor[0],
                           .value_b = e->value_b * j->factor[1],
                           .x = e->x,
                           .amax = j->piece ? mxi_diff_amax(j, e->row, e->col) : 0,
                           .quotient = e->quotient,
                           .tie = e->tie};
}

void mxi_diff_examples(mx_difference *d, uint64_t n) {
  d->n_examples = n < (uint64_t)(INT_MAX - d->n_examples) ? d->n_examples + (int)n : INT_MAX;
}

/* Is it the first, the worst, the smallest? */
static void compare_examples(diff_job *j, const diff_element *e) {
  mx_difference *d = j->out;
  const double distance = fabs(e->value_a * j->factor[0] - e->value_b * j->factor[1]), most = fabs(d->worst.value_a - d->worst.value_b),
               least = fabs(d->smallest.value_a - d->smallest.value_b);
  if (!d->n_examples)
    d->first = d->worst = d->smallest = example(j, e);
  else if (distance > most || (isnan(distance) && !isnan(most)))
    d->worst = example(j, e);
  if (distance < least || (isnan(least) && !isnan(distance))) d->smallest = example(j, e);
  mxi_diff_examples(d, 1);
}

void mxi_diff_look_at(diff_job *j, size_t row, size_t col, const uint32_t code[2], const uint32_t scale[2]) {
  const diff_element e = mxi_diff_pair(j, row, col, code, scale);
  compare_examples(j, &e);
  mxi_diff_patterns_kind(j, &e);
}

static void tally(diff_job *j, size_t row, size_t col, const uint32_t code[2], const uint32_t scale[2]) {
  mx_difference *d = j->out;
  const size_t block = diff_block(j, col), in_row = col - block * j->block_cols,
               position = j->block_rows == 1 ? in_row : row % j->block_rows * j->block_cols + in_row;
  const unsigned shift = j->elem->bits > 4 ? j->elem->bits - 4u : 0;
  const diff_element e = mxi_diff_pair(j, row, col, code, scale);
  d->codes++;
  d->by_position[position < 255 ? position : 255]++;
  d->by_scale[e.scale_a < 255 ? e.scale_a : 255]++;
  d->pairs[e.a >> shift & 15][e.b >> shift & 15]++;
  d->map[j->map_row][j->map_col[col]]++;
  d->blocks += !j->block_seen[block];
  j->block_seen[block] = 1;
  if (isfinite(e.tie)) {
    const int i = e.tie == 0 ? 15 : (-ilogb(e.tie) - 1) / 2; /* of 2^-(2i+2) <= tie */
    d->ties[i < 0 ? 0 : i > 15 ? 15 : i]++;
  }
  compare_examples(j, &e);
  if (d->n_listed < j->how.n_list && j->how.list) j->how.list[d->n_listed++] = example(j, &e);
  mxi_diff_patterns_element(j, &e);
}

/* Are an element's two values the same although its codes differ? The answer is known only if both have the same scale. */
static int values_known(const diff_job *j, const uint32_t scale[2]) { return j->values[0] && !j->out->tensor_scales && scale[0] == scale[1]; }

int mxi_diff_countable(const diff_job *j, const uint32_t code[2], const uint32_t scale[2]) {
  return !diff_nan_scale(j, scale[0]) && !diff_nan_scale(j, scale[1]) && !diff_same(j, code[0], code[1]) &&
         !(values_known(j, scale) && mxi_diff_same_value(j, code, scale));
}

static void one(diff_job *j, size_t row, size_t c, uint32_t ca, uint32_t cb) {
  const mx_tensor *a = j->a, *b = j->b;
  mx_difference *d = j->out;
  if (ca == cb) return;
  const uint32_t code[2] = {ca, cb}, scale[2] = {diff_scale(j, a, row, c), diff_scale(j, b, row, c)};
  if (values_known(j, scale))
    d->values += !mxi_diff_same_value(j, code, scale);
  else
    j->block_moved[diff_block(j, c)] = 1; /* its other values are others too, or must be computed */
  const uint32_t sign = j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u;
  if (!(ca & ~sign) && !(cb & ~sign) && j->elem->kind == MX_KIND_FLOAT) d->zero_signs++;
  if (!j->how.nan_bits && diff_nan_scale(j, scale[0]) && diff_nan_scale(j, scale[1]))
    d->nan_codes++;
  else if (diff_same(j, ca, cb))
    d->nan_codes += diff_nan_code(j, ca) != 0;
  else
    tally(j, row, c, code, scale);
}

static int same_64(const uint8_t *x, const uint8_t *y) {
  uint64_t other = 0;
  for (int i = 0; i < 64; i += 8) {
    uint64_t u, v;
    memcpy(&u, x + i, 8);
    memcpy(&v, y + i, 8);
    other |= u ^ v;
  }
  return !other;
}

/* Byte i of a row differs: one code, or two. */
void mxi_diff_byte(diff_job *j, size_t row, size_t i) {
  const mx_tensor *a = j->a, *b = j->b;
  const uint32_t p = diff_row(j, a, row)[i], q = diff_row(j, b, row)[i];
  const size_t wide = j->elem->bits == 4 ? 2 : 1, c = i * wide;
  const int first = j->spec->nibble == MX_NIBBLE_HIGH_FIRST ? 4 : 0;
  if (c + wide > a->cols) j->out->padding += c >= a->cols || diff_code(j, a, row, c) == diff_code(j, b, row, c);
  if (c >= a->cols) return;
  if (wide == 1) {
    one(j, row, c, diff_code(j, a, row, c), diff_code(j, b, row, c));
    return;
  }
  one(j, row, c, p >> first & 15, q >> first & 15);
  if (c + 1 < a->cols) one(j, row, c + 1, p >> (4 - first) & 15, q >> (4 - first) & 15);
}

/* Which of 8 bytes differ. */
static void each_of_8(diff_job *j, size_t row, size_t i, uint64_t x) {
  while (x) {
    const size_t at = (size_t)__builtin_ctzll(x) / 8;
    x &= ~(UINT64_C(0xFF) << 8 * at);
    mxi_diff_byte(j, row, i + at);
  }
}

static uint64_t other_8(const uint8_t *x, const uint8_t *y) { return diff_8(x) ^ diff_8(y); }

/* Finds where the bytes of a row differ. The codes of a byte are neighbours, except under nibble=half_block. */
static void codes_of_row(diff_job *j, size_t row) {
  const mx_tensor *a = j->a, *b = j->b;
  const uint8_t *x = diff_row(j, a, row), *y = diff_row(j, b, row);
  const size_t n = a->code_stride, whole = j->elem->bits == 4 ? a->cols / 2 : a->cols;
  if (j->elem->bits == 4 && j->spec->nibble == MX_NIBBLE_HALF_BLOCK) {
    for (size_t c = 0; c < a->cols; c++) one(j, row, c, diff_code(j, a, row, c), diff_code(j, b, row, c));
    return;
  }
  const size_t bytes = j->elem->kind == MX_KIND_NONE ? 4 : 1;
  int counted = 0;
  for (size_t i = 0; i < n;) {
    if (n - i >= 64 && same_64(x + i, y + i)) {
      i += 64;
      continue;
    }
    const size_t m = n - i < 64 ? n - i : 64;
    if (bytes == 4)
      for (size_t k = 0; k < m; k += 4) {
        if (memcmp(x + i + k, y + i + k, 4)) one(j, row, (i + k) / 4, diff_code(j, a, row, (i + k) / 4), diff_code(j, b, row, (i + k) / 4));
      }
    else if (m == 64) {
      uint64_t other[8];
      size_t many = 0;
      for (size_t k = 0; k < 8; k++) {
        other[k] = other_8(x + i + 8 * k, y + i + 8 * k);
        many += diff_some_8(other[k]);
      }
      many = many * DIFF_ONES >> 56; /* bytes that differ: at most 64 */
      const size_t run = many >= DIFF_CROWD && j->dense_may && i + 64 <= whole ? mxi_diff_dense_run(j, row, i, whole) : 0;
      if (run) {
        counted = 1;
        i += run;
        continue;
      } else
        for (size_t k = 0; k < 8; k++) each_of_8(j, row, i + 8 * k, other[k]);
    } else
      for (size_t k = 0; k < m; k++)
        if (x[i + k] != y[i + k]) mxi_diff_byte(j, row, i + k);
    i += m;
  }
  if (counted) mxi_diff_dense_row(j, row);
}

static int both_nan(const diff_job *j, uint32_t sa, uint32_t sb) { return !j->how.nan_bits && diff_nan_scale(j, sa) && diff_nan_scale(j, sb); }

static void one_scale(diff_job *j, size_t row, size_t col) {
  mx_difference *d = j->out;
  const size_t i = row * j->a->scale_cols + col;
  const int byte = j->a->scale_bytes == 1;
  const uint32_t sa = byte ? *diff_scales(j, j->a, i) : mx_scale_code_at(j->a, i),
                 sb = byte ? *diff_scales(j, j->b, i) : mx_scale_code_at(j->b, i);
  const int small = j->a->micro && j->b->micro && memcmp(j->a->micro + i * 3, j->b->micro + i * 3, 3);
  if (sa == sb && !small) return;
  if (both_nan(j, sa, sb)) {
    d->nan_codes++;
    return;
  }
  d->scales++;
  if (sa == sb) return;
  const int64_t step = (int64_t)sb - (int64_t)sa;
  d->scale_steps[step < -8 ? 0 : step > 8 ? 16 : step + 8]++;
  d->scale_pairs[sa < 255 ? sa : 255][sb < 255 ? sb : 255]++;
  mxi_diff_patterns_scale(j, row, col, sa, sb);
}

/* The same for a row of one-byte scales. Questions about a pair of scales are asked of its first occurrence; out->scale_steps is computed from the
 * pairs at the end. */
static void row_of_scales(diff_job *j, size_t row) {
  mx_difference *d = j->out;
  const size_t n = j->a->scale_cols, first = row * n;
  const uint8_t *x = diff_scales(j, j->a, first), *y = diff_scales(j, j->b, first);
  diff_place *p = &j->scales_place;
  const uint8_t *is_nan = j->scale_nan;
  uint32_t *col = p->col;
  const size_t mask = p->n_col == p->cols ? SIZE_MAX : p->n_col - 1;
  const unsigned nan_bits = j->how.nan_bits != 0;
  size_t first_col = n, last_col = 0;
  uint64_t differ = 0, nan = 0;
  for (size_t c = 0; c < n; c++) {
    const uint32_t sa = x[c], sb = y[c];
    if (sa == sb) continue;
    if (is_nan[sa] & is_nan[sb] & !nan_bits) {
      nan++;
      continue;
    }
    if (!differ++) first_col = c;
    last_col = c;
    if (!d->scale_pairs[sa][sb]++) mxi_diff_patterns_scale_kind(j, sa, sb);
    col[c & mask]++;
  }
  if (differ) {
    mxi_diff_place_row(p, row);
    if (!p->n || first_col < p->span[0]) p->span[0] = first_col;
    if (!p->n || last_col > p->span[1]) p->span[1] = last_col;
    p->n += differ;
  }
  d->scales += differ;
  d->nan_codes += nan;
  j->scales_nan += nan;
}

static void scale_steps(mx_difference *d) {
  for (int x = 0; x < 256; x++)
    for (int y = 0; y < 256; y++) d->scale_steps[y - x < -8 ? 0 : y - x > 8 ? 16 : y - x + 8] += d->scale_pairs[x][y];
}

static int scales_differ(const diff_job *j, size_t first, size_t n) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t bytes = a->scale_bytes;
  return memcmp(diff_scales(j, a, first), diff_scales(j, b, first), n * bytes) ||
         (a->micro && b->micro && memcmp(a->micro + first * 3, b->micro + first * 3, n * 3));
}

/* Copies the scales of the piece if that is possible: mapped memory must be given back later, which stops the other threads. */
static void copy_scales(diff_job *j, size_t first, size_t n) {
  for (int side = 0; side < 2; side++) {
    const mx_tensor *t = side ? j->b : j->a;
    const int copied = j->scale_room[side] && n <= j->scale_room_bytes && !j->how.read(j->how.self, j->scale_room[side], t->scales + first, n);
    j->near_scales[side] = copied ? j->scale_room[side] : NULL;
  }
  j->near_first = first;
  j->n_near = n;
}

/* Rows [row, row + n) are finished. Rows that were copied in full wait to be reported together. */
static void pass(diff_job *j, size_t row, size_t n) {
  enum { WAIT = 64 }; /* pieces: more are told late, fewer call back too often */
  if (!j->how.passed) return;
  if (!j->n_passed) j->passed_row = row;
  j->n_passed += n;
  const int copied = j->near[0] && j->near[1] && j->near_scales[0] && j->near_scales[1] && !j->x && !j->how.input;
  if (n && copied && j->n_passed < WAIT * n) return;
  if (j->n_passed) j->how.passed(j->how.self, j->passed_row, j->n_passed);
  j->n_passed = 0;
}

/* scales_too says that some scale of the piece differs. */
static mx_status one_row(diff_job *j, size_t row, int scales_too) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t scale_row = a->scale_rows == a->rows ? row : row / j->block_rows, first = scale_row * a->scale_cols;
  const int codes = memcmp(diff_row(j, a, row), diff_row(j, b, row), a->code_stride) != 0,
            other = scales_too && scales_differ(j, first, a->scale_cols);
  if (row % j->block_rows == 0) j->fresh = 1;
  if (!codes && !other && !j->out->tensor_scales) return MX_OK;
  if (j->map_row != row * MX_DIFF_ROWS / a->rows) mxi_diff_dense_empty(j);
  j->map_row = row * MX_DIFF_ROWS / a->rows;
  if (j->fresh) memset(j->block_seen, 0, a->scale_cols + 1);
  j->fresh = 0;
  memset(j->block_moved, j->out->tensor_scales != 0, a->scale_cols + 1);
  if (codes) {
    const uint64_t before = j->out->codes;
    if (j->piece) mxi_diff_patterns_row(j, row);
    codes_of_row(j, row);
    if (!j->piece) mxi_diff_patterns_row(j, row); /* what it looks at is in the caches by now */
    j->out->rows += j->out->codes > before;
  }
  if (other && a->scale_bytes == 1 && !a->micro) {
    const uint8_t *x = diff_scales(j, a, first), *y = diff_scales(j, b, first);
    size_t i = 0;
    for (; i + 8 <= a->scale_cols; i += 8) diff_put_8(j->block_moved + i, diff_8(j->block_moved + i) | diff_some_8(other_8(x + i, y + i)));
    for (; i < a->scale_cols; i++) j->block_moved[i] |= x[i] != y[i];
  } else
    for (size_t i = 0; i < a->scale_cols && other; i++) j->block_moved[i] |= scales_differ(j, first + i, 1) != 0;
  return j->gather ? mxi_diff_values_row(j, row) : MX_OK;
}

static mx_status piece(diff_job *j, size_t row, size_t n) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t stride = a->code_stride;
  const size_t scale_row = a->scale_rows == a->rows ? row : row / j->block_rows,
               scale_rows = a->scale_rows == a->rows ? n : (n + j->block_rows - 1) / j->block_rows, first = scale_row * a->scale_cols,
               n_scales = scale_rows * a->scale_cols;
  copy_scales(j, first, n_scales);
  const int scales_too = scales_differ(j, first, n_scales);
  mx_status status = MX_OK;
  j->piece_row = row;
  j->piece_rows = n;
  j->piece = j->how.input ? NULL : j->x ? j->x + row * j->ld : NULL;
  if (j->gather) j->out->n_values += n * a->cols;
  for (int side = 0; side < 2; side++) {
    const mx_tensor *t = side ? b : a;
    j->near[side] = j->room[side] && !j->how.read(j->how.self, j->room[side], t->codes + row * stride, n * stride) ? j->room[side] : NULL;
  }
  if (j->how.input && memcmp(diff_row(j, a, row), diff_row(j, b, row), n * stride)) { /* asked for only where something differs */
    j->piece = j->how.input(j->how.self, row, n);
    j->ld = a->cols;
  }
  for (size_t r = row; r < row + n && !status; r++) status = one_row(j, r, scales_too);
  for (size_t r = scale_row; r < scale_row + scale_rows && scales_too; r++)
    if (j->scales_tally)
      row_of_scales(j, r);
    else
      for (size_t c = 0; c < a->scale_cols; c++) one_scale(j, r, c);
  pass(j, row, n);
  return status;
}

/* Allocates room for copies of a piece, once for all parts of a thread, because new memory is zeroed page by page. Without it nothing is copied. */
static void open_rooms(diff_job *j, size_t rows) {
  j->scale_room_bytes = (j->a->scale_rows == j->a->rows ? rows : (rows + j->block_rows - 1) / j->block_rows) * j->a->scale_cols;
  for (int side = 0; side < 2; side++) {
    j->room[side] = j->how.read ? malloc(rows * j->a->code_stride + 1) : NULL;
    j->scale_room[side] = j->how.read && j->a->scale_bytes == 1 && !j->a->micro ? malloc(j->scale_room_bytes + 1) : NULL;
  }
}

static void close_rooms(diff_job *j) {
  for (int side = 0; side < 2; side++) {
    free(j->room[side]);
    free(j->scale_room[side]);
    j->room[side] = j->scale_room[side] = NULL;
  }
}

/* Rows [first, end), pieces of `rows`. */
static mx_status part(diff_job *j, size_t first, size_t end, size_t rows) {
  mx_status status = j->how.values ? mxi_diff_values_start(j) : MX_OK;
  j->dense_may = mxi_diff_dense_may(j);
  j->dense = NULL;
  j->block_seen = calloc(j->a->scale_cols + 1, 1);
  j->block_moved = calloc(j->a->scale_cols + 1, 1);
  j->map_col = malloc(j->a->cols + 1);
  if (!j->block_seen || !j->block_moved || !j->map_col) status = MX_ERR_NOMEM;
  for (size_t c = 0; c < j->a->cols && !status; c++) j->map_col[c] = (uint8_t)(c * MX_DIFF_COLS / j->a->cols);
  for (size_t r = first; r < end && j->a->cols && !status; r += rows) status = piece(j, r, end - r < rows ? end - r : rows);
  if (!status && j->gather) status = mxi_diff_values_flush(j);
  mxi_diff_dense_end(j);
  pass(j, 0, 0);
  for (int side = 0; side < 2; side++) j->near[side] = j->near_scales[side] = NULL;
  free(j->block_seen);
  free(j->block_moved);
  free(j->map_col);
  mxi_diff_values_free(j);
  return status;
}

#define ADD(field)                                                                                                                             \
  for (size_t i_ = 0; i_ < sizeof to->field / sizeof(uint64_t); i_++) ((uint64_t *)&to->field)[i_] += ((const uint64_t *)&from->field)[i_]

/* What a later part found is added. */
static void merge(diff_job *j, const diff_job *later) {
  mx_difference *to = j->out;
  const mx_difference *from = later->out;
  mxi_diff_patterns_merge(j, later);
  if (from->n_examples) {
    const double most = fabs(to->worst.value_a - to->worst.value_b), least = fabs(to->smallest.value_a - to->smallest.value_b),
                 worst = fabs(from->worst.value_a - from->worst.value_b), smallest = fabs(from->smallest.value_a - from->smallest.value_b);
    if (!to->n_examples) to->first = from->first;
    if (!to->n_examples || worst > most || (isnan(worst) && !isnan(most))) to->worst = from->worst;
    if (!to->n_examples || smallest < least || (isnan(least) && !isnan(smallest))) to->smallest = from->smallest;
    mxi_diff_examples(to, (uint64_t)from->n_examples);
  }
  ADD(codes);
  ADD(scales);
  ADD(n_values);
  ADD(values);
  ADD(zero_signs);
  ADD(nan_codes);
  ADD(padding);
  ADD(by_position);
  ADD(by_scale);
  ADD(pairs);
  ADD(scale_steps);
  ADD(ties);
  to->rows += from->rows;
  to->blocks += from->blocks;
  for (int r = 0; r < MX_DIFF_ROWS; r++)
    for (int c = 0; c < MX_DIFF_COLS; c++) to->map[r][c] += from->map[r][c];
  for (int x = 0; x < 256 && from->scales; x++)
    for (int y = 0; y < 256; y++) to->scale_pairs[x][y] += from->scale_pairs[x][y];
}

/* Gives each part a run of pieces; end[t] is the first piece behind part t. Each part is a share of what is left, so that the last ones are small
 * and no thread waits long for another. Returns how many parts there are. */
static int cut(size_t end[MOST_THREADS], size_t pieces, int n) {
  const size_t threads = (size_t)n, shares = n > FEW_THREADS || pieces < threads * SHARES * SHARES ? 1 : SHARES * SHARES,
               least = (pieces + threads * shares - 1) / (threads * shares);
  int parts = 0;
  for (size_t at = 0; at < pieces; parts++) {
    const size_t left = pieces - at, share = left / (2 * threads), m = shares > 1 && share > least ? share : least;
    end[parts] = at = m > left || parts == MOST_THREADS - 1 ? pieces : at + m;
  }
  return parts;
}

/* Whole block rows to each thread. */
static mx_status all_parts(diff_job *j, size_t rows) {
  const size_t total = j->a->rows, pieces = (total + rows - 1) / rows;
  int n = mx_thread_count(j->how.n_threads);
  if ((size_t)n > pieces) n = pieces ? (int)pieces : 1;
  if (j->how.input || j->how.n_list) n = 1;
  if (n > MOST_THREADS) n = MOST_THREADS;
  if (n == 1) {
    open_rooms(j, rows);
    const mx_status s = part(j, 0, total, rows);
    close_rooms(j);
    return s;
  }
  size_t ends[MOST_THREADS];
  const int parts = cut(ends, pieces, n);
  mx_difference *found = calloc((size_t)parts, sizeof *found);
  diff_job *jobs = calloc((size_t)parts, sizeof *jobs);
  mx_status status[MOST_THREADS], first = MX_OK;
  if (!found || !jobs) {
    free(found);
    free(jobs);
    return MX_ERR_NOMEM;
  }
#pragma omp parallel num_threads(n)
  {
    diff_job mine = *j; /* a thread's */
    open_rooms(&mine, rows);
#pragma omp for schedule(dynamic, 1)
    for (int t = 0; t < parts; t++) {
      jobs[t] = mine;
      jobs[t].out = &found[t];
      found[t].tensor_scales = j->out->tensor_scales;
      status[t] = mxi_diff_patterns_start(&jobs[t]);
      const size_t from = t ? ends[t - 1] * rows : 0, end = ends[t] * rows < total ? ends[t] * rows : total;
      if (!status[t]) status[t] = part(&jobs[t], from, end, rows);
    }
    close_rooms(&mine);
  }
  for (int t = 0; t < parts; t++) {
    if (!first) first = status[t];
    if (!first) merge(j, &jobs[t]);
    mxi_diff_patterns_free(&jobs[t]);
  }
  free(found);
  free(jobs);
  return first;
}

mx_status mx_diff(mx_difference *out, const mx_tensor *a, const mx_tensor *b, const mx_spec *spec, const float *x, size_t ld,
                  const float *values_a, const float *values_b, const mx_diff_options *options, mx_error *err) {
  if (!out || !a || !b || !spec) return mx_fail(err, MX_ERR_ARG, "mx_diff: NULL argument");
  if (a->rows != b->rows || a->cols != b->cols || a->code_stride != b->code_stride || a->scale_rows != b->scale_rows ||
      a->scale_cols != b->scale_cols || a->scale_bytes != b->scale_bytes)
    return mx_fail(err, MX_ERR_SHAPE, "shapes differ: %zu x %zu with %zu x %zu scales, and %zu x %zu with %zu x %zu", a->rows, a->cols,
                   a->scale_rows, a->scale_cols, b->rows, b->cols, b->scale_rows, b->scale_cols);
  memset(out, 0, sizeof *out);
  diff_job j = {
      .out = out, .a = a, .b = b, .spec = spec, .elem = mx_elem_format(spec->elem), .scale = mx_scale_format(spec->scale), .x = x, .ld = ld};
  if (options) j.how = *options;
  j.name[0] = j.how.name_a ? j.how.name_a : "A";
  j.name[1] = j.how.name_b ? j.how.name_b : "B";
  if (values_a && values_b) j.how.values = 0;
  shortage lack = {0};
  j.lack = &lack;
  mx_spec_block(spec, a->rows, a->cols, &j.block_rows, &j.block_cols);
  if (!j.block_rows) j.block_rows = 1;
  if (!j.block_cols) j.block_cols = 1;
  j.block_shift = j.block_cols & (j.block_cols - 1) ? -1 : __builtin_ctzll(j.block_cols);
  mxi_diff_tables(&j);
  if (mxi_diff_patterns_start(&j)) {
    mxi_diff_patterns_free(&j);
    return mx_fail(err, MX_ERR_NOMEM, "no memory to compare %zu x %zu", a->rows, a->cols);
  }
  out->n_codes = (uint64_t)a->rows * a->cols;
  out->n_scales = (uint64_t)a->scale_rows * a->scale_cols;
  if (a->has_tensor_scale || b->has_tensor_scale) out->tensor_scales = !mxi_diff_same_float(a->tensor_scale, b->tensor_scale, &j.how);
  size_t rows = PIECE / (a->code_stride + 1) / j.block_rows * j.block_rows;
  if (!rows) rows = j.block_rows;
  const int many = out->n_codes >= (uint64_t)256 << j.elem->bits; /* else the tables are larger than the tensors */
  float *known[2] = {many ? mxi_diff_meanings(&j, a) : NULL, many ? mxi_diff_meanings(&j, b) : NULL};
  if (known[0] && known[1]) j.values[0] = known[0], j.values[1] = known[1];
  j.scales_tally = a->scale_bytes == 1 && !a->micro && !b->micro && out->n_scales <= UINT32_MAX;
  mx_status status = all_parts(&j, rows);
  if (j.scales_tally && out->scales) scale_steps(out);
  free(known[0]);
  free(known[1]);
  j.values[0] = j.values[1] = NULL;
  if (values_a && values_b) {
    out->n_values = out->n_codes;
    for (size_t i = 0; i < out->n_values; i++) out->values += !mxi_diff_same_float(values_a[i], values_b[i], &j.how);
  }
  out->equal = !out->codes && !out->scales && !out->tensor_scales && !out->values;
  if (!status && (!out->equal || out->padding)) mxi_diff_patterns_end(&j);
  mxi_diff_patterns_free(&j);
  if (short_of_memory(&lack)) status = MX_ERR_NOMEM; /* a pattern may have been missed */
  return status ? mx_fail(err, status, "diff: %s", mx_status_text(status)) : MX_OK;
}
