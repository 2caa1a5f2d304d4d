/* Works out what one element is: its values, quotient and distance to a tie, and its block's largest magnitude. */
#include <math.h>
#include <string.h>

#include "verify/diff/diff.h"

/* The number that values are multiplied by besides their block's scale. */
static double tensor_factor(const diff_job *j, const mx_tensor *t) {
  if (!t->has_tensor_scale || t->tensor_scale == 0) return 1;
  const char *store = mx_tensor_store_name(j->spec);
  const double stored = (double)t->tensor_scale,
               target = j->spec->tensor_target != 0 ? (double)j->spec->tensor_target : mx_format_max(j->elem) * mx_format_max(j->scale);
  return !strcmp(store, "divisor") ? 1 / stored : !strcmp(store, "amax") ? stored / target : stored;
}

/* Midpoints between neighbouring magnitudes, and values of codes. */
void mxi_diff_tables(diff_job *j) {
  const mx_format *f = j->elem, *s = j->scale;
  const uint32_t scale_sign = s->sign_bits ? 1u << (s->bits - 1) : 0;
  j->factor[0] = tensor_factor(j, j->a);
  j->factor[1] = tensor_factor(j, j->b);
  for (uint32_t c = 0; c < 256 && s->bits <= 8; c++) {
    j->scale_value[c] = mx_decode(s, c);
    j->scale_nan[c] = mx_format_is_nan(s, c & ~scale_sign) != 0;
  }
  if (f->bits > 8) return;
  const uint32_t magnitudes = 1u << (f->bits - f->sign_bits), sign = f->sign_bits && f->kind == MX_KIND_FLOAT ? 1u << (f->bits - 1) : 0;
  for (uint32_t c = 0; c < 256; c++) {
    j->value[c] = mx_decode(f, c);
    j->nan[c] = mx_format_is_nan(f, c & ~sign) != 0;
  }
  double below = 0;
  for (uint32_t c = 1; c < magnitudes && isfinite(j->value[c]); c++) {
    j->middle[j->n_middle++] = (below + j->value[c]) / 2;
    below = j->value[c];
  }
}

/* Distance of |q| to the nearest midpoint. */
static double to_tie(const diff_job *j, double q) {
  const double x = fabs(q);
  size_t lo = 0, hi = j->n_middle;
  while (lo < hi) {
    const size_t m = (lo + hi) / 2;
    if (j->middle[m] < x)
      lo = m + 1;
    else
      hi = m;
  }
  const double above = lo < j->n_middle ? fabs(j->middle[lo] - x) : INFINITY, under = lo ? fabs(x - j->middle[lo - 1]) : INFINITY;
  return fmin(above, under);
}

static float input_at(const diff_job *j, size_t row, size_t col) { return j->piece[(row - j->piece_row) * j->ld + col]; }

/* Pieces are whole block rows. */
float mxi_diff_amax(const diff_job *j, size_t row, size_t col) {
  const size_t r0 = row / j->block_rows * j->block_rows, c0 = col / j->block_cols * j->block_cols;
  float amax = 0;
  for (size_t r = r0; r < r0 + j->block_rows && r < j->piece_row + j->piece_rows; r++)
    for (size_t c = c0; c < c0 + j->block_cols && c < j->a->cols; c++)
      if (fabsf(input_at(j, r, c)) > amax) amax = fabsf(input_at(j, r, c));
  return amax;
}

diff_element mxi_diff_pair(const diff_job *j, size_t row, size_t col, const uint32_t code[2], const uint32_t scale[2]) {
  diff_element e = {.row = row, .col = col, .a = code[0], .b = code[1], .scale_a = scale[0], .scale_b = scale[1], .quotient = NAN, .tie = NAN};
  const double sa = diff_scale_value(j, e.scale_a), sb = diff_scale_value(j, e.scale_b);
  const int encode = j->spec->scale_form == MX_SCALE_FORM_ENCODE;
  e.value_a = encode ? diff_decode(j, e.a) / sa : diff_decode(j, e.a) * sa;
  e.value_b = encode ? diff_decode(j, e.b) / sb : diff_decode(j, e.b) * sb;
  if (!j->piece) return e;
  e.x = input_at(j, row, col);
  e.quotient = encode ? (double)e.x * sa / j->factor[0] : (double)e.x / (sa * j->factor[0]);
  e.tie = to_tie(j, e.quotient);
  return e;
}

int mxi_diff_amax_negative(const diff_job *j, size_t row, size_t col) {
  const size_t r0 = row / j->block_rows * j->block_rows, c0 = col / j->block_cols * j->block_cols;
  float most = 0;
  for (size_t r = r0; r < r0 + j->block_rows && r < j->piece_row + j->piece_rows; r++)
    for (size_t c = c0; c < c0 + j->block_cols && c < j->a->cols; c++)
      if (fabsf(input_at(j, r, c)) > fabsf(most)) most = input_at(j, r, c);
  return most < 0;
}

diff_element mxi_diff_look(const diff_job *j, size_t row, size_t col) {
  const uint32_t s = diff_scale(j, j->a, row, col), c = diff_code(j, j->a, row, col), code[2] = {c, c}, scale[2] = {s, s};
  return mxi_diff_pair(j, row, col, code, scale);
}
