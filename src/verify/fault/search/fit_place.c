/* Reads the argument of a fault that takes from another place, leaves elements out, or puts one code for all, off the cells that are wrong. */
#include <math.h>
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

/* What the scales say about the elements of a block: some made none that are larger, some made one alone. */
enum { LANE_UNKNOWN, LANE_OUT, LANE_IN };

/* The largest element of a block that is not left out, but for element `but`; the number of elements: there is none above 0. */
static size_t largest_lane(const view *v, const uint8_t *lanes, size_t k, size_t but, float *m) {
  const fault_run *r = &v->r;
  const size_t area = r->block_rows * r->block_cols, top = k / r->across * r->block_rows, left = k % r->across * r->block_cols;
  size_t at = area;
  *m = 0;
  for (size_t i = 0; i < area; i++) {
    const size_t row = top + i / r->block_cols, col = left + i % r->block_cols;
    if (i == but || lanes[i] == LANE_OUT || row >= r->rows || col >= r->cols || fabsf(r->x[row * r->cols + col]) <= *m) continue;
    *m = fabsf(r->x[row * r->cols + col]);
    at = i;
  }
  return at;
}

/* The code of the scale of block k with the maximum m. */
static int64_t code_of(const view *v, size_t k, float m) {
  mx_block_stats st = v->r.stats[k];
  uint32_t code;
  st.amax = st.amax_finite = m;
  return mxi_block_scale_code(&code, mxi_fault_plan(&v->r, k / v->r.across, k % v->r.across), &st, 0, k) ? -1 : (int64_t)code;
}

/* Which lanes of a block are in its maximum, as far as the stored scales say it. Returns how many are out; 0 too where a scale is larger than it can be. */
static size_t read_lanes(uint8_t *lanes, const view *v, size_t area) {
  enum { MOST_BLOCKS = 4096 };
  const fault_run *r = &v->r;
  const size_t blocks = r->down * r->across, step = blocks / MOST_BLOCKS + 1;
  size_t out = 0;
  for (size_t k = 0; k < blocks; k++) {
    const int wrong = v->scales[k] != v->seen[k];
    float m, second;
    if ((!wrong && k % step) || r->stats[k].has_nan || r->stats[k].has_inf) continue;
    if (v->seen[k] > v->scales[k]) return 0;
    size_t at = largest_lane(v, lanes, k, area, &m);
    while (at < area && code_of(v, k, m) > (int64_t)v->seen[k]) {
      lanes[at] = LANE_OUT;
      if (++out == area) return 0;
      at = largest_lane(v, lanes, k, area, &m);
    }
    if (at < area && largest_lane(v, lanes, k, at, &second) < area && code_of(v, k, second) < (int64_t)v->seen[k]) lanes[at] = LANE_IN;
  }
  return out;
}

/* The plainest region of a block that has all lanes which are in and none of those that are out: an interval, or each so many. */
static int region_of(mx_region *g, double *bits, const uint8_t *lanes, size_t area) {
  size_t first_in = area, last_in = 0, n_in = 0, before = 0, behind = area;
  for (size_t i = 0; i < area; i++)
    if (lanes[i] == LANE_IN) first_in = n_in ? first_in : i, last_in = i, n_in++;
  if (!n_in) return 0;
  int between = 0;
  for (size_t i = 0; i < area; i++)
    if (lanes[i] == LANE_OUT) {
      between |= i > first_in && i < last_in;
      if (i < first_in) before = i + 1;
      if (i > last_in && i < behind) behind = i;
    }
  *g = (mx_region){.of = MX_REGION_ELEMENTS, .first = before, .last = behind == area ? UINT64_MAX : behind - 1};
  *bits = log2((double)area) * ((before > 0) + (behind < area));
  if (!between) return 1;
  for (size_t period = 2; period <= area && period <= MX_REGION_MOST; period++) {
    uint8_t in[MX_REGION_MOST] = {0}, out[MX_REGION_MOST] = {0};
    int both = area % period != 0;
    for (size_t i = 0; i < area; i++) {
      in[i % period] |= lanes[i] == LANE_IN;
      out[i % period] |= lanes[i] == LANE_OUT;
      both |= in[i % period] & out[i % period];
    }
    if (both) continue;
    *g = (mx_region){.of = MX_REGION_ELEMENTS, .modulus = (uint32_t)period};
    for (size_t i = 0; i < period; i++) g->set[i] = !out[i];
    *bits = 2 + (double)period;
    return 1;
  }
  return 0;
}

/* The elements that a maximum leaves out: those that would have made a larger scale than the stored one. */
static int fit_lanes(mx_fault *f, double *bits, const view *v) {
  const size_t area = v->r.block_rows * v->r.block_cols;
  uint8_t lanes[MX_REGION_MOST] = {0};
  return area <= MX_REGION_MOST && read_lanes(lanes, v, area) && region_of(&f->region, bits, lanes, area);
}

int mxi_fit_place(mx_fault *f, double *bits, const view *v) {
  size_t count[256] = {0}, n = 0, wrong = 0;
  const size_t step = step_of(v);
  *bits = BITS_OF_A_PLACE;
  if (!v->scales_wrong || v->r.plan.scale->bits > 8) return 0;
  if (f->op == MX_FAULT_AMAX_ONLY) return fit_lanes(f, bits, v);
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

/* The column that a wrong code may come from, for the n-th number that is tried. */
static size_t column_from(const mx_fault *f, size_t col, size_t n) {
  if (f->op == MX_FAULT_CODE_COLUMN_XOR || f->op == MX_FAULT_CODE_SIGN_XOR) return col ^ n;
  if (f->op == MX_FAULT_CODE_REVERSE) return col - col % (n + 1) + n - col % (n + 1);
  return col + n - FARTHEST; /* before the first it wraps to one beyond the last */
}

/* The number of the column that the wrong codes, or their signs, come from. */
static int fit_column(mx_fault *f, double *bits, const view *v) {
  const fault_run *r = &v->r;
  size_t votes[2 * FARTHEST + 1] = {0}, asked[2 * FARTHEST + 1] = {0}, n = 0;
  const uint32_t of_code = f->op == MX_FAULT_CODE_SIGN_XOR ? mxi_fault_sign_bit(r->plan.elem) : UINT32_MAX;
  const size_t first = f->op == MX_FAULT_CODE_COLUMN ? 0 : 1, last = f->op == MX_FAULT_CODE_COLUMN ? 2 * FARTHEST : FARTHEST - 1;
  *bits = BITS_OF_A_PLACE;
  for (size_t i = 0; i < r->rows * r->cols && n < (size_t)LOOKED_AT * 4; i++) {
    const size_t col = i % r->cols, row = i - col;
    if (v->codes[i] == v->s->codes[i]) continue;
    n++;
    for (size_t k = first; k <= last; k++) {
      const size_t from = column_from(f, col, k);
      if (from >= r->cols || from == col) continue;
      asked[k]++;
      votes[k] += !((v->codes[row + from] ^ v->s->codes[i]) & of_code);
    }
  }
  size_t best = 0;
  for (size_t k = first; k <= last; k++) /* a number of few wrong codes says less */
    if (asked[k] * 2 >= n && is_enough(votes[k], asked[k]) && votes[k] > votes[best]) best = k;
  f->number = f->op == MX_FAULT_CODE_COLUMN ? (double)best - FARTHEST : f->op == MX_FAULT_CODE_REVERSE ? (double)best + 1 : (double)best;
  return votes[best] > 0;
}

/* ---- codes that are written as others */

enum { CODES = 16, WIDEST = 8 }; /* codes of 4 bits; bits of the widest */

/* Do the wrong codes say of each bit which one of the right code it is? Where they leave several, no bit is taken twice. */
static int choose_bits(mx_fault *f, const uint32_t may[WIDEST], unsigned width, unsigned k, uint32_t taken, uint16_t chosen[WIDEST]) {
  int n = 0;
  if (k == width) {
    for (unsigned j = 0; j < width; j++) f->list[j] = chosen[j];
    return 1;
  }
  for (unsigned j = 0; j < width && n < 2; j++) {
    if (!(may[k] >> j & 1) || (taken >> j & 1 && may[k] & (may[k] - 1))) continue;
    chosen[k] = (uint16_t)j;
    n += choose_bits(f, may, width, k + 1, taken | 1u << j, chosen);
  }
  return n;
}

static int fit_bits(mx_fault *f, double *bits, const view *v) {
  enum { LEAST_WRONG = 16 };
  const unsigned width = v->r.plan.elem->bits;
  uint32_t may[WIDEST];
  uint16_t chosen[WIDEST];
  size_t wrong = 0;
  if (width > WIDEST) return 0;
  for (unsigned k = 0; k < width; k++) may[k] = (1u << width) - 1;
  for (size_t i = 0; i < v->r.rows * v->r.cols; i++) {
    const uint32_t own = v->codes[i], seen = v->s->codes[i];
    uint32_t all = 1;
    if (own == seen || isnan(v->r.x[i])) continue;
    wrong++;
    for (unsigned k = 0; k < width; k++) all = all && (may[k] &= seen >> k & 1 ? own : ~own);
    if (!all) return 0;
  }
  f->number = width;
  *bits = width * log2(width);
  return wrong >= LEAST_WRONG && choose_bits(f, may, width, 0, 0, chosen) == 1;
}

/* What each code is written as. Codes that do not occur are written as those of the other sign are, if that holds of all others; else that is a guess. */
static int fit_table(mx_fault *f, double *bits, int *guess, const view *v) {
  /* A wrong code must have been made of so many numbers, so that no rounding makes it; so many codes must have been seen with both signs. */
  enum { LEAST_UNLIKE = 16, LEAST_PAIRS = 4, BITS_OF_A_CODE = 4 };
  const mx_format *e = v->r.plan.elem;
  const uint32_t sign = mxi_fault_sign_bit(e);
  size_t n[CODES] = {0}, unlike[CODES] = {0};
  float last[CODES];
  if (e->bits != BITS_OF_A_CODE) return 0;
  for (size_t i = 0; i < v->r.rows * v->r.cols; i++) {
    const uint32_t own = v->codes[i], seen = v->s->codes[i];
    if (isnan(v->r.x[i])) continue;
    if (!n[own]++) f->list[own] = (uint16_t)seen;
    if (f->list[own] != seen) return 0;
    unlike[own] += n[own] == 1 || v->r.x[i] != last[own];
    last[own] = v->r.x[i];
  }
  int wrong = 0, pairs = 0, symmetric = sign != 0 && e->kind != MX_KIND_INT;
  for (uint32_t c = 0; c < CODES; c++) {
    if (n[c] && f->list[c] != c && unlike[c] < LEAST_UNLIKE) return 0;
    wrong += n[c] && f->list[c] != c;
    if (!n[c] || !n[c ^ sign]) continue;
    pairs += sign && c < (c ^ sign);
    symmetric = symmetric && (f->list[c] ^ f->list[c ^ sign]) == sign;
  }
  symmetric = symmetric && pairs >= LEAST_PAIRS;
  for (uint32_t c = 0; c < CODES; c++) {
    if (n[c]) continue;
    const int known = symmetric && n[c ^ sign], none = e->kind == MX_KIND_INT && c == sign; /* the lowest code, which no rule writes */
    f->list[c] = (uint16_t)(known ? f->list[c ^ sign] ^ sign : c);
    *guess |= !known && !none;
  }
  f->number = CODES;
  *bits = CODES * BITS_OF_A_CODE;
  return wrong > 0;
}

int mxi_fit_code(mx_fault *f, double *bits, int *guess, const view *v) {
  size_t count[256] = {0}, n = 0;
  const unsigned width = v->r.plan.elem->bits, all = (1u << width) - 1;
  const int plus = f->op == MX_FAULT_CODE_PLUS;
  if (f->op == MX_FAULT_DIVISOR_ORDER) return fit_order(f, bits, v);
  if (f->op == MX_FAULT_CODE_BITS) return fit_bits(f, bits, v);
  if (f->op == MX_FAULT_CODE_TABLE) return fit_table(f, bits, guess, v);
  if (f->op == MX_FAULT_CODE_COLUMN || f->op == MX_FAULT_CODE_COLUMN_XOR || f->op == MX_FAULT_CODE_SIGN_XOR || f->op == MX_FAULT_CODE_REVERSE)
    return fit_column(f, bits, v);
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

/* Is the code of each element whose column, or place in memory, has the number i a zero, of either sign, and is another one due somewhere? */
static int is_zeroed(const view *v, size_t i, size_t modulus) {
  const uint32_t magnitude = ~mxi_fault_sign_bit(v->r.plan.elem);
  size_t due = 0;
  for (size_t at = i; at < v->rows * v->r.cols; at += modulus) {
    if (v->s->codes[at] & magnitude) return 0;
    due += v->codes[at] != v->s->codes[at];
  }
  return due > 0;
}

/* The numbers mod n that are zeros; how many. */
static size_t zeroed(mx_region *g, const view *v, uint32_t n) {
  size_t zeros = 0;
  *g = (mx_region){.of = v->r.cols % n ? MX_REGION_MEMORY : MX_REGION_COLUMNS, .modulus = n};
  for (uint32_t i = 0; i < n; i++) zeros += g->set[i] = (uint8_t)is_zeroed(v, i, n);
  return zeros;
}

int mxi_fit_zero(mx_fault *f, double *bits, const view *v) {
  const size_t cols = v->r.cols;
  *bits = 8;
  for (uint32_t n = 2; n <= MX_REGION_MOST && n <= v->rows * cols / 2; n *= 2) {
    const size_t zeros = zeroed(&f->region, v, n);
    if (zeros && zeros < n) return 1;
  }
  size_t first = 0, last = cols;
  while (first < cols && !is_zeroed(v, first, cols)) first++;
  while (last > first && !is_zeroed(v, last - 1, cols)) last--;
  f->region = (mx_region){.of = MX_REGION_COLUMNS, .first = first, .last = last == cols ? UINT64_MAX : last - 1};
  for (size_t col = first; col < last; col++)
    if (!is_zeroed(v, col, cols)) return 0;
  return first < last && last - first < cols;
}
