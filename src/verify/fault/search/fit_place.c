/* Reads the argument of a fault that takes from another place, or puts one code for all, off the cells that are wrong. */
#include <stdlib.h>
#include <string.h>

#include "verify/fault/elements.h"
#include "verify/fault/search/fit.h"

/* How far away places are looked for, and how many wrong cells are looked at. */
enum { FARTHEST = 128, LOOKED_AT = 256 };

/* Of the wrong cells all but one in so many must agree: as the first of two faults leaves some. */
enum { OTHERS_ONE_IN = 8 };

/* A vote of fewer cells says nothing. */
enum { LEAST_VOTES = 4 };

/* What a place costs, in bits. */
static const double BITS_OF_A_PLACE = 8;

static int is_enough(size_t votes, size_t n) { return votes >= LEAST_VOTES && (n - votes) * OTHERS_ONE_IN <= n; }

static int is_odd_block(const view *v, size_t k) { return v->scales[k] == v->seen[k] || v->r.stats[k].has_nan || v->r.stats[k].has_inf; }

/* Which of the wrong scales is looked at: one in so many. */
static size_t step_of(const view *v) { return (size_t)(v->scales_wrong / LOOKED_AT) + 1; }

/* The number of the place that most votes are for. */
static int best_place(mx_fault *f, const size_t votes[2 * FARTHEST + 1], const size_t asked[2 * FARTHEST + 1]) {
  size_t best = FARTHEST;
  for (size_t i = 0; i <= 2 * FARTHEST; i++)
    if (is_enough(votes[i], asked[i]) && (best == FARTHEST || votes[i] > votes[best])) best = i;
  f->number = (double)best - FARTHEST;
  return best != FARTHEST;
}

static int fit_place(mx_fault *f, const view *v, int of_rows) {
  const fault_run *r = &v->r;
  size_t votes[2 * FARTHEST + 1] = {0}, asked[2 * FARTHEST + 1] = {0}, wrong = 0;
  const size_t step = step_of(v);
  for (size_t k = 0; k < r->down * r->across; k++) {
    if (is_odd_block(v, k) || wrong++ % step) continue;
    const size_t at = of_rows ? k / r->across : k % r->across, n = of_rows ? r->down : r->across, by = of_rows ? r->across : 1;
    for (size_t i = 0; i <= 2 * FARTHEST; i++) {
      const size_t to = at + i - FARTHEST; /* before the first it wraps to one beyond the last */
      if (to >= n || to == at) continue;
      asked[i]++;
      votes[i] += v->scales[k + (to - at) * by] == v->seen[k];
    }
  }
  return best_place(f, votes, asked);
}

/* Does every element of block k have the code that it has under that scale? */
static int is_under(const view *v, size_t k, uint32_t scale) {
  const fault_run *r = &v->r;
  const size_t d = k / r->across, a = k % r->across;
  fault_block b;
  mxi_fault_block(&b, r, d, a, scale);
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t c = a * r->block_cols; c < r->cols && c < (a + 1) * r->block_cols; c++)
      if (mxi_fault_element(r, &b, row, c) != v->s->codes[row * r->cols + c]) return 0;
  return 1;
}

/* Are the elements of block k right under the scale that they should have? */
static int is_right(const view *v, size_t k) {
  const fault_run *r = &v->r;
  const size_t d = k / r->across, a = k % r->across;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++) {
    const size_t at = row * r->cols + a * r->block_cols,
                 n = r->cols - a * r->block_cols < r->block_cols ? r->cols - a * r->block_cols : r->block_cols;
    if (memcmp(v->codes + at, v->s->codes + at, n) != 0) return 0;
  }
  return 1;
}

/* From how far away in memory, block after block, the wrong blocks have the scale that they are divided by. Blocks near each other share few scales, so
 * each of these is tried once for a block. */
static int fit_order(mx_fault *f, double *bits, const view *v) {
  enum { MOST_BLOCKS = 24 };
  const fault_run *r = &v->r;
  const size_t blocks = r->down * r->across;
  size_t votes[2 * FARTHEST + 1] = {0}, asked[2 * FARTHEST + 1] = {0}, wrong = 0;
  *bits = BITS_OF_A_PLACE;
  if (r->plan.scale->bits > 8) return 0;
  for (size_t i = 0; i < v->n_sample && wrong < MOST_BLOCKS; i++)
    for (size_t k = v->sample[i] * r->across; k < (v->sample[i] + 1) * r->across && wrong < MOST_BLOCKS; k++) {
      int8_t under[256] = {0}; /* by code: 1 or -1 once it is known */
      if (r->stats[k].has_nan || r->stats[k].has_inf || is_right(v, k)) continue;
      wrong++;
      for (size_t n = 0; n <= 2 * FARTHEST; n++) {
        const size_t to = k + n - FARTHEST; /* before the first it wraps to one beyond the last */
        if (to >= blocks || to == k) continue;
        int8_t *here = &under[r->used[to]];
        if (!*here) {
          *here = is_under(v, k, r->used[to]) ? 1 : -1;
          effort_spend(v->e, r->block_rows * r->block_cols);
        }
        asked[n]++;
        votes[n] += *here > 0;
      }
    }
  return best_place(f, votes, asked);
}

/* The number that most wrong cells give, of cells that it was counted over. */
static int most_common(double *out, const size_t count[256], size_t n) {
  size_t best = 0;
  for (size_t i = 0; i < 256; i++)
    if (count[i] > count[best]) best = i;
  *out = (double)best;
  return is_enough(count[best], n);
}

/* A difference of codes as the smallest step in either direction. */
static double as_step(double n, unsigned bits) { return n >= (double)(1u << (bits - 1)) ? n - (double)(1u << bits) : n; }

int mxi_fit_place(mx_fault *f, double *bits, const view *v) {
  size_t count[256] = {0}, n = 0, wrong = 0;
  const size_t step = step_of(v);
  *bits = BITS_OF_A_PLACE;
  if (!v->scales_wrong || v->r.plan.scale->bits > 8) return 0;
  if (f->op == MX_FAULT_AMAX_ROW || f->op == MX_FAULT_STORE_ROW) return fit_place(f, v, 1);
  if (f->op == MX_FAULT_AMAX_BLOCK || f->op == MX_FAULT_STORE_BLOCK) return fit_place(f, v, 0);
  const int plus = f->op == MX_FAULT_SCALE_PLUS || f->op == MX_FAULT_STORE_PLUS;
  for (size_t k = 0; k < v->r.down * v->r.across; k++) {
    if (is_odd_block(v, k) || wrong++ % step) continue;
    count[(plus ? v->seen[k] - v->scales[k] : v->seen[k]) & 255]++;
    n++;
  }
  if (!most_common(&f->number, count, n)) return 0;
  if (plus) f->number = as_step(f->number, 8);
  return 1;
}

int mxi_fit_code(mx_fault *f, double *bits, const view *v) {
  size_t count[256] = {0}, n = 0;
  const unsigned width = v->r.plan.elem->bits, all = (1u << width) - 1;
  const int plus = f->op == MX_FAULT_CODE_PLUS;
  if (f->op == MX_FAULT_DIVISOR_ORDER) return fit_order(f, bits, v);
  *bits = width;
  for (size_t i = 0; i < v->r.rows * v->r.cols && n < (size_t)LOOKED_AT * LOOKED_AT; i++) {
    const uint32_t own = v->codes[i], seen = v->s->codes[i];
    if (own == seen) continue;
    count[(plus ? seen - own : seen) & all]++;
    n++;
  }
  if (!most_common(&f->number, count, n)) return 0;
  if (plus) f->number = as_step(f->number, width);
  return 1;
}
