/* What do all the differences have in common? Each test looks at every element that differs; one counter-example ends it. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/layout.h"
#include "verify/diff.h"

static void say(diff_job *j, const char *words) {
  if (j->out->n_patterns < MX_DIFF_PATTERNS) j->out->patterns[j->out->n_patterns++] = words;
}

static uint32_t sign_of(const diff_job *j) { return j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u; }

/* What is asked of each element that differs. */
typedef int test(const diff_job *j, size_t row, size_t col, uint32_t a, uint32_t b);

static int all_of(const diff_job *j, test *is) {
  for (size_t r = 0; r < j->a->rows; r++) {
    if (!memcmp(j->a->codes + r * j->a->code_stride, j->b->codes + r * j->b->code_stride, j->a->code_stride)) continue;
    for (size_t c = 0; c < j->a->cols; c++) {
      const uint32_t a = mx_code_at(j->a, j->spec, r, c), b = mx_code_at(j->b, j->spec, r, c);
      if (!diff_same(j, a, b) && !is(j, r, c, a, b)) return 0;
    }
  }
  return 1;
}

static int in_last_block(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)a, (void)b;
  return c / j->block_cols == (j->a->cols - 1) / j->block_cols;
}
static int in_last_row(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)c, (void)a, (void)b;
  return r == j->a->rows - 1;
}
static int last_of_block(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)a, (void)b;
  return c % j->block_cols == j->block_cols - 1;
}
static int first_of_block(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)a, (void)b;
  return c % j->block_cols == 0;
}
static int odd_column(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)j, (void)r, (void)a, (void)b;
  return c % 2;
}
static int even_column(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) { return !odd_column(j, r, c, a, b); }
static int negative(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)b;
  return j->x ? signbit(j->x[r * j->ld + c]) : (a & sign_of(j)) != 0;
}
static int positive(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) { return !negative(j, r, c, a, b); }
static int sign_alone(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)c;
  return (a ^ b) == sign_of(j);
}
static int zero_sign(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)c;
  return !((a | b) & ~sign_of(j));
}
static int b_is_zero(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)c, (void)a;
  return !(b & ~sign_of(j));
}
static int step_up(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)r, (void)c;
  return (b & ~sign_of(j)) == (a & ~sign_of(j)) + 1;
}
static int step_down(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) { return step_up(j, r, c, b, a); }
static int scale_differs(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)a, (void)b;
  return diff_scale(j, j->a, r, c) != diff_scale(j, j->b, r, c);
}
static int scale_same(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) { return !scale_differs(j, r, c, a, b); }
static int input_subnormal(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)a, (void)b;
  return j->x && fabsf(j->x[r * j->ld + c]) < FLT_MIN;
}
static int input_special(const diff_job *j, size_t r, size_t c, uint32_t a, uint32_t b) {
  (void)a, (void)b;
  return j->x && !isfinite(j->x[r * j->ld + c]);
}

static const struct {
  test *is;
  const char *words;
} tests[] = {
    {in_last_block, "all in the last block of a row"},
    {in_last_row, "all in the last row"},
    {last_of_block, "all at the last element of a block"},
    {first_of_block, "all at the first element of a block"},
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
    {scale_differs, "all in blocks whose scale differs too"},
    {scale_same, "all in blocks whose scale is the same"},
};

/* B's code at (r, c) against A's somewhere else: is that all there is? */
static int moved(const diff_job *j, size_t row_step, int nibble_swap) {
  const mx_tensor *a = j->a, *b = j->b;
  size_t moves = 0;
  for (size_t r = 0; r + row_step < a->rows; r++)
    for (size_t c = 0; c < a->cols; c++) {
      const size_t from = nibble_swap ? c ^ 1 : c;
      if (from >= a->cols) continue;
      if (mx_code_at(b, j->spec, r + row_step, c) != mx_code_at(a, j->spec, r, from)) return 0;
      moves++;
    }
  return moves > 0;
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
  if (a->scale_bytes != 1) return;
  uint8_t *other = malloc(n + 1);
  if (!other) return;
  if (a->scale_rows == a->scale_cols) {
    for (size_t r = 0; r < a->scale_rows; r++)
      for (size_t c = 0; c < a->scale_cols; c++) other[c * a->scale_rows + r] = a->scales[r * a->scale_cols + c];
    if (!memcmp(other, b->scales, n)) say(j, "the scales are transposed");
  }
  for (int l = 1; l < MX_LAYOUT_COUNT; l++)
    if (mx_layout_size((mx_layout)l, a->scale_rows, a->scale_cols) == n) {
      mx_layout_pack(other, (mx_layout)l, a->scales, a->scale_rows, a->scale_cols, 0);
      if (!memcmp(other, b->scales, n)) say(j, "B's scales are in another layout (nv128x4 or amd_shuffle), not converted");
    }
  size_t histogram[2][256] = {{0}};
  for (size_t i = 0; i < n; i++) histogram[0][a->scales[i]]++, histogram[1][b->scales[i]]++;
  if (!memcmp(histogram[0], histogram[1], sizeof histogram[0])) say(j, "B's scales are A's in another order");
  free(other);
}

void diff_patterns(diff_job *j) {
  const mx_difference *d = j->out;
  if (d->codes) {
    if (moved(j, 0, 1)) say(j, "the two codes of each byte are swapped");
    if (moved(j, 1, 0)) say(j, "rows are shifted by one");
    int nothing = 1;
    for (size_t r = 0; r < j->b->rows && nothing; r++)
      for (size_t k = 0; k < j->b->code_stride && nothing; k++) nothing = j->b->codes[r * j->b->code_stride + k] == 0;
    if (nothing) say(j, "every code of B is zero");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
      if (all_of(j, tests[i].is)) say(j, tests[i].words);
    if (d->ties[15] + d->ties[14] + d->ties[13] + d->ties[12] == d->codes && j->x)
      say(j, "all where the quotient is a tie, or within 2^-24 of one");
  }
  if (d->scales) scale_patterns(j);
}
