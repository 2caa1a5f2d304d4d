/* What do all the differences have in common? A test that one element speaks against is out; what is left at the end is said. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/layout.h"
#include "verify/diff.h"

enum { COPY = 1 << 26 }; /* elements of a matrix that may be made anew */

static void say(diff_job *j, const char *words) {
  for (int i = 0; i < j->out->n_patterns; i++)
    if (j->out->patterns[i] == words) return;
  if (j->out->n_patterns < MX_DIFF_PATTERNS) j->out->patterns[j->out->n_patterns++] = words;
}

static uint32_t sign_of(const diff_job *j) { return j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u; }

/* ---- what is asked of each element that differs */

typedef int test(const diff_job *j, const diff_element *e);

static int in_last_block(const diff_job *j, const diff_element *e) { return e->col / j->block_cols == (j->a->cols - 1) / j->block_cols; }
static int in_short_block(const diff_job *j, const diff_element *e) { return j->a->cols % j->block_cols && in_last_block(j, e); }
static int in_last_row(const diff_job *j, const diff_element *e) { return e->row == j->a->rows - 1; }
static int in_one_row(const diff_job *j, const diff_element *e) { return e->row == j->first_row; }
static int in_one_column(const diff_job *j, const diff_element *e) { return e->col == j->first_col; }
static int last_of_block(const diff_job *j, const diff_element *e) { return e->col % j->block_cols == j->block_cols - 1; }
static int first_of_block(const diff_job *j, const diff_element *e) { return e->col % j->block_cols == 0; }
static int one_of_block(const diff_job *j, const diff_element *e) {
  return e->col % j->block_cols == j->first_col % j->block_cols && !last_of_block(j, e) && !first_of_block(j, e);
}
static int odd_column(const diff_job *j, const diff_element *e) { return (void)j, e->col % 2 == 1; }
static int even_column(const diff_job *j, const diff_element *e) { return (void)j, e->col % 2 == 0; }
static int negative(const diff_job *j, const diff_element *e) { return j->piece ? signbit(e->x) != 0 : (e->a & sign_of(j)) != 0; }
static int positive(const diff_job *j, const diff_element *e) { return !negative(j, e); }
static int sign_alone(const diff_job *j, const diff_element *e) { return (e->a ^ e->b) == sign_of(j); }
static int zero_sign(const diff_job *j, const diff_element *e) { return !((e->a | e->b) & ~sign_of(j)); }
static int b_is_zero(const diff_job *j, const diff_element *e) { return !(e->b & ~sign_of(j)); }
static int step_up(const diff_job *j, const diff_element *e) { return (e->b & ~sign_of(j)) == (e->a & ~sign_of(j)) + 1; }
static int step_down(const diff_job *j, const diff_element *e) { return (e->a & ~sign_of(j)) == (e->b & ~sign_of(j)) + 1; }
static int scale_differs(const diff_job *j, const diff_element *e) { return (void)j, e->scale_a != e->scale_b; }
static int scale_same(const diff_job *j, const diff_element *e) { return !scale_differs(j, e); }
static int input_subnormal(const diff_job *j, const diff_element *e) { return j->piece && fabsf(e->x) < FLT_MIN; }
static int input_special(const diff_job *j, const diff_element *e) { return j->piece && !isfinite(e->x); }
/* The smallest magnitudes, below the least normal one: what a kernel without subnormals loses. */
static int code_subnormal(const diff_job *j, const diff_element *e) {
  return j->elem->kind == MX_KIND_FLOAT && j->elem->man_bits && j->elem->bits <= 8 && (e->a & ~sign_of(j)) < 1u << j->elem->man_bits;
}
static int is_tie(const diff_job *j, const diff_element *e) { return j->piece && e->tie == 0; }
static int near_tie(const diff_job *j, const diff_element *e) { return j->piece && e->tie < 0x1p-24; }

static const struct {
  test *is;
  const char *words;
} tests[] = {
    {in_short_block, "all in the last, short block of a row: what lies behind its end was read (stale padding)"},
    {in_last_block, "all in the last block of a row"},
    {in_last_row, "all in the last row"},
    {in_one_row, "all in one row"},
    {in_one_column, "all in one column"},
    {last_of_block, "all at the last element of a block"},
    {first_of_block, "all at the first element of a block"},
    {one_of_block, "all at one position in the block"},
    {odd_column, "all at odd columns"},
    {even_column, "all at even columns"},
    {zero_sign, "all are the sign of a zero"},
    {sign_alone, "all differ in the sign alone"},
    {negative, "all negative"},
    {positive, "all positive"},
    {b_is_zero, "all are zero in B"},
    {step_up, "all one step larger in B"},
    {step_down, "all one step smaller in B"},
    {input_special, "all at NaN or Inf inputs"},
    {input_subnormal, "all at subnormal inputs"},
    {code_subnormal, "all at subnormal codes"},
    {is_tie, "all where the quotient is exactly a tie"},
    {near_tie, "all where the quotient is a tie, or within 2^-24 of one"},
    {scale_differs, "all in blocks whose scale differs too"},
    {scale_same, "all in blocks whose scale is the same"},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

/* Of these the first makes the second go without saying. */
static const struct {
  test *strong, *weak;
} implied[] = {{in_short_block, in_last_block}, {is_tie, near_tie},           {zero_sign, sign_alone},       {first_of_block, even_column},
               {in_last_row, in_one_row},       {last_of_block, odd_column},  {one_of_block, odd_column},    {one_of_block, even_column},
               {in_one_column, odd_column},     {in_one_column, even_column}, {in_one_column, one_of_block}, {input_subnormal, near_tie}};

static const size_t steps[] = {64, 32, 16, 8, 4}; /* powers of two */
static const char *const every_column[] = {"all at every 64th column", "all at every 32nd column", "all at every 16th column",
                                           "all at every 8th column", "all at every 4th column"},
                         *const every_row[] = {"all at every 64th row", "all at every 32nd row", "all at every 16th row",
                                               "all at every 8th row", "all at every 4th row"};
enum { STEPS = sizeof steps / sizeof steps[0], ROWS_AT = 8 };

void diff_patterns_start(diff_job *j) {
  j->alive[0] = ((uint64_t)1 << TESTS) - 1;
  j->alive[1] = ((uint64_t)1 << STEPS) - 1;
  j->alive[1] |= j->alive[1] << ROWS_AT;
  j->values_ratio = j->scales_ratio = 0;
  j->swapped = j->elem->bits == 4;
  j->shift_up = j->shift_down = j->a->rows > 1;
  j->right = j->left = j->a->cols > 1;
}

/* One ratio for all: 0 before the first, NaN once two differ. */
static void ratio(double *r, double a, double b) {
  if (isnan(*r)) return;
  const double now = b / a;
  if (*r == 0 && isfinite(now) && now != 0)
    *r = now;
  else if (!(now == *r))
    *r = NAN;
}

void diff_patterns_element(diff_job *j, const diff_element *e) {
  if (j->out->codes == 1) j->first_row = e->row, j->first_col = e->col;
  for (uint64_t left = j->alive[0]; left; left &= left - 1) {
    const int t = __builtin_ctzll(left);
    if (!tests[t].is(j, e)) j->alive[0] &= ~((uint64_t)1 << t);
  }
  for (uint64_t left = j->alive[1]; left; left &= left - 1) {
    const int t = __builtin_ctzll(left);
    const size_t step = steps[t % ROWS_AT], at = t < ROWS_AT ? e->col : e->row, first = t < ROWS_AT ? j->first_col : j->first_row;
    if ((at ^ first) & (step - 1)) j->alive[1] &= ~((uint64_t)1 << t);
  }
  ratio(&j->values_ratio, e->value_a, e->value_b);
}

void diff_patterns_scale(diff_job *j, uint32_t a, uint32_t b) { ratio(&j->scales_ratio, diff_scale_value(j, a), diff_scale_value(j, b)); }

void diff_patterns_merge(diff_job *j, const diff_job *later) {
  const int first = !j->out->codes;
  j->alive[0] &= later->alive[0];
  j->alive[1] &= later->alive[1];
  j->swapped &= later->swapped;
  j->shift_up &= later->shift_up;
  j->shift_down &= later->shift_down;
  j->right &= later->right;
  j->left &= later->left;
  if (later->scales_ratio != 0) {
    if (j->scales_ratio == 0)
      j->scales_ratio = later->scales_ratio;
    else if (!(j->scales_ratio == later->scales_ratio))
      j->scales_ratio = NAN;
  }
  if (!later->out->codes) return;
  if (first) {
    j->first_row = later->first_row, j->first_col = later->first_col, j->values_ratio = later->values_ratio;
    return;
  }
  if (!(j->values_ratio == later->values_ratio)) j->values_ratio = NAN;
  const diff_element e = {.row = later->first_row, .col = later->first_col}; /* tests that ask for the place of the first */
  for (size_t t = 0; t < TESTS; t++)
    if ((tests[t].is == in_one_row || tests[t].is == in_one_column || tests[t].is == one_of_block) && !tests[t].is(j, &e))
      j->alive[0] &= ~((uint64_t)1 << t);
  for (size_t t = 0; t < STEPS; t++) {
    if (e.col % steps[t] != j->first_col % steps[t]) j->alive[1] &= ~((uint64_t)1 << t);
    if (e.row % steps[t] != j->first_row % steps[t]) j->alive[1] &= ~((uint64_t)1 << (t + ROWS_AT));
  }
}

/* ---- B as A, moved. Looked at in rows whose bytes differ; the rest must agree too, which diff_patterns_end() sees to. */

static int row_is(const diff_job *j, size_t row_b, size_t row_a) {
  return !memcmp(j->b->codes + row_b * j->b->code_stride, j->a->codes + row_a * j->a->code_stride, j->a->code_stride);
}
static int row_swapped(const diff_job *j, size_t r) {
  for (size_t c = 0; c < j->a->cols; c++)
    if ((c ^ 1) < j->a->cols && mx_code_at(j->b, j->spec, r, c) != mx_code_at(j->a, j->spec, r, c ^ 1)) return 0;
  return 1;
}
static int row_moved(const diff_job *j, size_t r, int right) {
  for (size_t c = 0; c + 1 < j->a->cols; c++)
    if (mx_code_at(j->b, j->spec, r, c + (right ? 1 : 0)) != mx_code_at(j->a, j->spec, r, c + (right ? 0 : 1))) return 0;
  return 1;
}

void diff_patterns_row(diff_job *j, size_t r) {
  if (j->swapped) j->swapped = row_swapped(j, r);
  if (j->shift_down && r) j->shift_down = row_is(j, r, r - 1);
  if (j->shift_up && r + 1 < j->a->rows) j->shift_up = row_is(j, r, r + 1);
  if (j->right) j->right = row_moved(j, r, 1);
  if (j->left) j->left = row_moved(j, r, 0);
}

static int all_rows(const diff_job *j, int (*is)(const diff_job *, size_t)) {
  for (size_t r = 0; r < j->a->rows; r++)
    if (!is(j, r)) return 0;
  return 1;
}
static int is_swapped(const diff_job *j, size_t r) { return row_swapped(j, r); }
static int is_down(const diff_job *j, size_t r) { return !r || row_is(j, r, r - 1); }
static int is_up(const diff_job *j, size_t r) { return r + 1 == j->a->rows || row_is(j, r, r + 1); }
static int is_right(const diff_job *j, size_t r) { return row_moved(j, r, 1); }
static int is_left(const diff_job *j, size_t r) { return row_moved(j, r, 0); }

/* ---- what is looked at a second time */

static int all_zero(const diff_job *j) {
  for (size_t i = 0; i < j->b->rows * j->b->code_stride; i++)
    if (j->b->codes[i]) return 0;
  return 1;
}

/* B is [rows][cols] like A, but holds A column by column. */
static int transposed(const diff_job *j) {
  const size_t rows = j->a->rows, cols = j->a->cols;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const size_t flat = r * cols + c;
      if (mx_code_at(j->b, j->spec, r, c) != mx_code_at(j->a, j->spec, flat % rows, flat / rows)) return 0;
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
  if (mx_spec_check(&s, NULL) || mx_tensor_alloc(&t, b->rows, b->cols, &s)) return 0;
  int same = !mx_quantize(&t, j->x, b->rows, b->cols, j->ld, &s, NULL, NULL);
  for (size_t r = 0; r < b->rows && same; r++)
    for (size_t c = 0; c < b->cols && same; c++) same = mx_code_at(b, j->spec, r, c) == mx_code_at(&t, &s, r, c);
  mx_tensor_free(&t);
  return same;
}

/* The input transposed, then quantised. */
static int turned(const diff_job *j) {
  const mx_tensor *b = j->b;
  if (!j->x || b->rows != b->cols || b->rows * b->cols > COPY || j->elem->kind == MX_KIND_NONE) return 0;
  mx_tensor t;
  if (mx_tensor_alloc(&t, b->rows, b->cols, j->spec)) return 0;
  const int same = !mx_quantize_transposed(&t, j->x, b->rows, b->cols, j->ld, j->spec, NULL, NULL) &&
                   !memcmp(t.codes, b->codes, b->rows * b->code_stride) &&
                   !memcmp(t.scales, b->scales, b->scale_rows * b->scale_cols * b->scale_bytes);
  mx_tensor_free(&t);
  return same;
}

static int power_of_two(double r) {
  int e;
  return r > 0 && isfinite(r) && frexp(r, &e) == 0.5;
}

static int scales_turned(const diff_job *j) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t n = a->scale_rows * a->scale_cols;
  for (size_t i = 0; i < n; i++)
    if (mx_scale_code_at(b, i) != mx_scale_code_at(a, i % a->scale_rows * a->scale_cols + i / a->scale_rows)) return 0;
  return a->scale_rows > 1 && a->scale_cols > 1;
}

static void scale_patterns(diff_job *j) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t n = a->scale_rows * a->scale_cols;
  const mx_difference *d = j->out;
  for (int step = -8; step <= 8; step++)
    if (d->scale_steps[step + 8] == d->scales && step && (step > -8 && step < 8))
      say(j, step > 0     ? step == 1 ? "every scale that differs is one code larger in B"
                                      : "every scale that differs is the same number of codes larger in B"
             : step == -1 ? "every scale that differs is one code smaller in B"
                          : "every scale that differs is the same number of codes smaller in B");
  if (power_of_two(j->scales_ratio)) say(j, "every scale that differs is off by the same power of two");
  if (scales_turned(j)) say(j, "the scales are transposed");
  if (a->scale_bytes != 1) return;
  uint8_t *other = NULL;
  for (int l = 1; l < MX_LAYOUT_COUNT; l++)
    if (mx_layout_size((mx_layout)l, a->scale_rows, a->scale_cols) == n && (other || (other = malloc(n + 1)))) {
      mx_layout_pack(other, (mx_layout)l, a->scales, a->scale_rows, a->scale_cols, 0);
      if (!memcmp(other, b->scales, n)) say(j, "B's scales are in another layout (nv128x4 or amd_shuffle), not converted");
    }
  free(other);
  size_t histogram[2][256] = {{0}};
  for (size_t i = 0; i < n; i++) histogram[0][a->scales[i]]++, histogram[1][b->scales[i]]++;
  if (!memcmp(histogram[0], histogram[1], sizeof histogram[0])) say(j, "B's scales are A's in another order");
}

static int alive(const diff_job *j, test *is) {
  for (size_t t = 0; t < TESTS; t++)
    if (tests[t].is == is) return j->alive[0] >> t & 1;
  return 0;
}

void diff_patterns_end(diff_job *j) {
  const mx_difference *d = j->out;
  if (d->codes) {
    if (j->swapped && all_rows(j, is_swapped)) say(j, "the two codes of each byte are swapped");
    if (j->shift_down && all_rows(j, is_down)) say(j, "rows are shifted by one");
    if (j->shift_up && all_rows(j, is_up)) say(j, "rows are shifted by one, upwards");
    if (j->right && all_rows(j, is_right)) say(j, "columns are shifted by one");
    if (j->left && all_rows(j, is_left)) say(j, "columns are shifted by one, to the left");
    if (transposed(j)) say(j, "the codes are transposed");
    if (alive(j, b_is_zero) && all_zero(j)) say(j, "every code of B is zero");
    if (turned(j)) say(j, "B is the transpose of the input, quantised");
  }
  if ((d->codes || d->scales) && other_axis(j)) say(j, "blocks lie along columns instead of rows, or the other way");
  if (d->codes) {
    const int in_block = alive(j, first_of_block) || alive(j, last_of_block) || alive(j, one_of_block);
    const int stepped = j->alive[1] & (((uint64_t)1 << STEPS) - 1) && !alive(j, in_one_column);
    for (size_t t = 0; t < TESTS; t++) {
      int weak = stepped && (tests[t].is == odd_column || tests[t].is == even_column);
      weak |= d->codes == 1 && (tests[t].is == in_one_row || tests[t].is == in_one_column || tests[t].is == one_of_block);
      for (size_t i = 0; i < sizeof implied / sizeof implied[0]; i++) weak |= tests[t].is == implied[i].weak && alive(j, implied[i].strong);
      if (j->alive[0] >> t & 1 && !weak) say(j, tests[t].words);
    }
    /* The coarsest step alone; a whole column or row, or one place in the block, says the same. */
    for (size_t s = 0; s < STEPS; s++)
      if (j->alive[1] >> s & 1) {
        if (!alive(j, in_one_column) && !(in_block && steps[s] <= j->block_cols) && steps[s] < j->a->cols && d->codes > 1)
          say(j, every_column[s]);
        break;
      }
    for (size_t s = 0; s < STEPS; s++)
      if (j->alive[1] >> (s + ROWS_AT) & 1) {
        if (!alive(j, in_one_row) && steps[s] < j->a->rows && d->codes > 1) say(j, every_row[s]);
        break;
      }
    if (power_of_two(j->values_ratio)) say(j, "every value that differs is off by the same power of two");
  }
  if (d->scales) scale_patterns(j);
  if (d->padding) say(j, "bytes behind the ends of rows differ (stale padding); they do not count");
}
