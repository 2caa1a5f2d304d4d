/* Runs the faults of SPEC 9 that change a maximum or a scale: of the tensor, of a block, of its rounding, of its store. */
#include <stdlib.h>

#include "fault_run.h"

/* ---- the tensor's maximum */

/* Without what stands behind the point. */
static num whole(num x) {
  if (x.kind != NUM_FINITE || x.exp >= 63) return x;
  if (x.exp < 0) return num_zero(x.sign);
  x.sig &= ~(UINT64_C(0x7FFFFFFFFFFFFFFF) >> x.exp), x.sticky = 0;
  return x;
}

num ref_fault_tensor(const ref_run *r) {
  const size_t n = r->rows * r->cols;
  num most = ref_largest(&r->plan, r->x, n);
  for (size_t k = 0; k < r->n_faults; k++) {
    const ref_fault *f = &r->faults[k];
    if (f->stage != REF_TENSOR) continue;
    if (IS(f, "times")) most = num_mul_r(most, ref_argument(f), NUM_F32);
    if (IS(f, "bfloat16")) most = num_round(most, NUM_BF16);
    if (IS(f, "value")) most = ref_argument(f);
    if (IS(f, "integer")) most = whole(most);
    if (IS(f, "at least") && !num_is_nan(most) && num_cmp(ref_argument(f), most) > 0) most = ref_argument(f);
    if (IS(f, "as given")) most = ref_largest(&r->plan, r->given, n);
    if (IS(f, "only") || IS(f, "no abs")) {
      float *part = r->room;
      for (size_t i = 0; i < n; i++) {
        const int counts = ref_element_in(r, f, i / r->cols, i % r->cols) && (IS(f, "only") || !num_float(r->x[i]).sign);
        part[i] = counts ? r->x[i] : 0;
      }
      most = ref_largest(&r->plan, part, n);
    }
    if (most.sign) most = num_zero(0);
  }
  return most;
}

/* ---- the tensor scale */

/* The formulas of chain=ct with S = K / A. */
static void multiply_by_divisor(ref_plan *plan, num *stored) {
  if (!plan->chained || !ref_chain_read(&plan->chain, MX_CHAIN_CT)) return;
  *stored = num_is_zero(plan->amax) ? num_int(1) : num_div_r(num_round(plan->target, NUM_F32), plan->amax, NUM_F32);
  plan->env.var[plan->chain.store] = *stored;
}

static int is_of_groups(const ref_fault *f) { return IS(f, "rows") || IS(f, "last of rows") || IS(f, "running") || IS(f, "running before"); }

static int is_stored_alone(const ref_fault *f) { return IS(f, "stored reciprocal") || IS(f, "stored divisor") || IS(f, "stored amax"); }

/* What is stored where nothing is computed with it. */
static num stored_alone(const ref_fault *f, const ref_plan *plan, num stored) {
  if (IS(f, "stored amax")) return plan->amax;
  if (IS(f, "stored reciprocal")) return num_div_r(num_int(1), stored, NUM_F32);
  return num_is_zero(plan->amax) ? num_int(1) : num_div_r(num_round(plan->target, NUM_F32), plan->amax, NUM_F32);
}

void ref_fault_tensor_scale(const ref_run *r, ref_plan *plan, num *stored) {
  const mx_spec *own = plan->spec;
  const num seen = plan->seen;
  for (size_t k = 0; k < r->n_faults && own->tensor_norm != MX_TENSOR_NORM_NONE && !own->tensor_given; k++) {
    const num target = num_abs(ref_argument(&r->faults[k]));
    if (r->faults[k].stage != REF_TENSOR_SCALE || !IS(&r->faults[k], "target") || target.kind != NUM_FINITE) continue;
    plan->target = target;
    ref_plan_tensor(plan, seen, stored);
  }
  for (size_t k = 0; k < r->n_faults && own->tensor_norm != MX_TENSOR_NORM_NONE && !own->tensor_given; k++) {
    const ref_fault *f = &r->faults[k];
    if (f->stage != REF_TENSOR_SCALE || is_of_groups(f) || IS(f, "target")) continue;
    if (IS(f, "divisor")) {
      multiply_by_divisor(plan, stored);
      continue;
    }
    if (is_stored_alone(f)) {
      *stored = stored_alone(f, plan, *stored);
      continue;
    }
    mx_spec other = *own;
    num unused, given = IS(f, "value") ? ref_argument(f) : *stored;
    if (IS(f, "times")) given = num_mul_r(given, ref_argument(f), NUM_F32);
    if (IS(f, "bfloat16") || IS(f, "used bfloat16")) given = num_round(given, NUM_BF16);
    if (IS(f, "float16") || IS(f, "used float16")) given = num_round(given, NUM_F16);
    if (IS(f, "power of two") && given.kind == NUM_FINITE) given.sig = UINT64_C(1) << 63, given.sticky = 0;
    if (IS(f, "bfloat16") || IS(f, "float16") || IS(f, "power of two")) *stored = given;
    other.tensor_given = 1;
    other.tensor_given_value = num_to_float(given);
    plan->spec = &other;
    ref_plan_tensor(plan, seen, &unused);
    plan->spec = own;
  }
}

/* The plans of groups of rows, each a tensor of its own, for the last fault of that kind. They are made from r->clean, the plan before its tensor's
 * numbers. */
int ref_fault_groups(ref_run *r, num *stored) {
  const ref_fault *f = NULL;
  for (size_t k = 0; k < r->n_faults; k++)
    if (r->faults[k].stage == REF_TENSOR_SCALE && is_of_groups(&r->faults[k])) f = &r->faults[k];
  if (!f || f->number < 1 || r->plan.spec->tensor_norm == MX_TENSOR_NORM_NONE || r->plan.spec->tensor_given) return 1;
  r->group = (size_t)f->number;
  r->of_groups = f;
  const size_t n = (r->rows + r->group - 1) / r->group;
  if (!(r->groups = malloc((n + 1) * sizeof *r->groups))) return 0;
  for (size_t g = 0; g < n; g++) {
    const size_t first = IS(f, "rows") || IS(f, "last of rows") ? g * r->group : 0,
                 behind = IS(f, "running before") ? g * r->group : (g + 1) * r->group;
    const size_t end = behind < r->rows ? behind : r->rows;
    num own;
    r->groups[g] = r->clean;
    ref_plan_tensor(&r->groups[g], end ? ref_largest(&r->clean, r->x + first * r->cols, (end - first) * r->cols) : num_int(1), &own);
    ref_fault_tensor_scale(r, &r->groups[g], &own);
    if (IS(f, "last of rows")) *stored = own;
  }
  return 1;
}

/* ---- a block's maximum */

/* The largest of the blocks' own in a rectangle. */
static num largest_of(const ref_run *r, size_t first_d, size_t end_d, size_t first_a, size_t end_a) {
  num most = num_zero(0);
  for (size_t d = first_d; d < end_d && d < r->down; d++)
    for (size_t a = first_a; a < end_a && a < r->across; a++) {
      const num own = ref_finite_amax(r, d, a);
      if (num_cmp(own, most) > 0) most = own;
    }
  return most;
}

/* The k-th largest magnitude of a block, 1 the largest; 0 past the last. */
static num ranked(const ref_block *block, size_t k) {
  if (k < 1 || k > block->n) return num_zero(0);
  for (size_t i = 0; i < block->n; i++) {
    size_t larger = 0, equal = 0;
    for (size_t j = 0; j < block->n; j++) {
      const int order = num_cmp(num_abs(block->x[j]), num_abs(block->x[i]));
      larger += order > 0;
      equal += order == 0;
    }
    if (larger < k && k <= larger + equal) return num_abs(block->x[i]);
  }
  return num_zero(0);
}

/* (n - 1) (100 - P) / 100 steps below the largest, linear between two of them; every operation one of binary64. */
static num percentile(const ref_block *block, const ref_fault *f, num before) {
  const num hundred = num_int(100);
  num steps = num_mul_r(num_int(block->n - 1), num_sub_r(hundred, num_double(f->number), NUM_F64), NUM_F64);
  steps = num_div_r(steps, hundred, NUM_F64);
  if (steps.sign && !num_is_zero(steps)) return before;
  if (num_cmp(steps, num_int(block->n)) >= 0) return num_zero(0);
  const size_t k = (size_t)num_floor(steps) + 1;
  const num fraction = num_sub_r(steps, num_int(k - 1), NUM_F64), high = ranked(block, k), low = k < block->n ? ranked(block, k + 1) : high;
  if (k > block->n) return num_zero(0);
  return num_round(num_add_r(high, num_mul_r(num_sub_r(low, high, NUM_F64), fraction, NUM_F64), NUM_F64), NUM_F32);
}

/* The mean of magnitudes, or of their squares, over the whole block: sums of binary64 in order, the mean rounded to binary32. */
static num mean_of(const ref_block *block, int squares) {
  num sum = num_zero(0);
  for (size_t i = 0; i < block->n; i++) {
    const num m = num_abs(block->x[i]);
    sum = num_add_r(sum, squares ? num_mul_r(m, m, NUM_F64) : m, NUM_F64);
  }
  return num_round(num_div_r(sum, num_int(block->n), NUM_F64), NUM_F32);
}

static num factor_of(num x, const ref_fault *f) { return num_round(num_mul_r(x, num_double(f->number), NUM_F64), NUM_F32); }

/* The largest of x, or of -x, in the region and |x| outside, or of |x| in the region or outside of it alone; at least 0. By their bits, numbers of the
 * region with a sign are the largest. */
static num largest_element(const ref_run *r, const ref_fault *f, size_t d, size_t a) {
  num most = num_zero(0), negative = num_zero(0);
  int any = 0;
  for (size_t row = d * r->height; row < r->rows && row < (d + 1) * r->height; row++)
    for (size_t col = a * r->width; col < r->cols && col < (a + 1) * r->width; col++) {
      const num x = num_float(r->x[row * r->cols + col]);
      const int in = ref_element_in(r, f, row, col), is_signed = in && (IS(f, "no abs") || IS(f, "negative"));
      if ((IS(f, "only") && !in) || (IS(f, "without") && in)) continue;
      if (IS(f, "unsigned") && in && x.sign) {
        any = 1;
        if (num_cmp(num_abs(x), negative) > 0) negative = num_abs(x);
        continue;
      }
      const num counted = !is_signed ? num_abs(x) : IS(f, "negative") ? num_neg(x) : x;
      if (num_cmp(counted, most) > 0) most = counted;
    }
  return any ? negative : most;
}

/* The larger of m and the finite magnitudes of n numbers. */
static num with_finite(num m, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const num v = num_abs(num_float(x[i]));
    if ((v.kind == NUM_FINITE) && num_cmp(v, m) > 0) m = v;
  }
  return m;
}

/* The larger of m and what lies behind the block's rows in memory, or before them. */
static num beyond(const ref_run *r, const ref_fault *f, size_t d, size_t a, num m) {
  const long long n = (long long)f->number, all = (long long)(r->rows * r->cols);
  for (size_t i = 0; i < r->height && d * r->height + i < r->rows; i++) {
    const size_t row = d * r->height + i, first = a * r->width, last = first + r->width < r->cols ? first + r->width : r->cols;
    for (long long k = 0; k < (n < 0 ? -n : n); k++) {
      const long long at = (long long)(row * r->cols) + (n < 0 ? (long long)first - 1 - k : (long long)last + k);
      if (at < 0 || at >= all) break;
      m = with_finite(m, r->x + at, 1);
    }
  }
  return m;
}

/* Over the elements of the block's rows whose column leaves the remainder a, as many as a block is wide. */
static num across_blocks(const ref_run *r, size_t d, size_t a) {
  num m = num_zero(0);
  for (size_t i = 0; i < r->height * r->width; i++) {
    const size_t row = d * r->height + i / r->width, col = i % r->width * r->across + a;
    if (row < r->rows && col < r->cols) m = with_finite(m, r->x + row * r->cols + col, 1);
  }
  return m;
}

/* With the elements of the block before in the columns that a short block lacks. */
static num with_stale(const ref_run *r, size_t d, size_t a, num m) {
  for (size_t i = 0; a && i < r->height * r->width; i++) {
    const size_t row = d * r->height + i / r->width, col = a * r->width + i % r->width;
    if (row < r->rows && col >= r->cols) m = with_finite(m, r->x + row * r->cols + col - r->width, 1);
  }
  return m;
}

/* Each n blocks of a row have their elements in turn. */
static num dealt(const ref_run *r, size_t d, size_t a, size_t n, num before) {
  const size_t group = a - a % n;
  num m = num_zero(0);
  if (group + n > r->across) return before;
  for (size_t row = d * r->height; row < (d + 1) * r->height && row < r->rows; row++)
    for (size_t col = group * r->width; col < (group + n) * r->width && col < r->cols; col++)
      if ((col - group * r->width) % n == a - group) m = with_finite(m, r->x + row * r->cols + col, 1);
  return m;
}

/* Of the elements that far behind the block's own in memory. */
static num window(const ref_run *r, const ref_fault *f, size_t d, size_t a) {
  num m = num_zero(0);
  for (size_t row = d * r->height; row < (d + 1) * r->height && row < r->rows; row++)
    for (size_t col = a * r->width; col < (a + 1) * r->width && col < r->cols; col++) {
      const long long at = (long long)(row * r->cols + col) + (long long)f->number;
      if (at >= 0 && at < (long long)(r->rows * r->cols)) m = with_finite(m, r->x + at, 1);
    }
  return m;
}

static num before_rotation(const ref_run *r, size_t d, size_t a) {
  const size_t first = a * r->width, end = first + r->width < r->cols ? first + r->width : r->cols;
  num m = num_zero(0);
  for (size_t row = d * r->height; row < r->rows && row < (d + 1) * r->height; row++)
    m = with_finite(m, r->straight + row * r->cols + first, end - first);
  return m;
}

/* Of the block's elements as the rotation of whole tiles of n makes them; of a tile that is not whole, as they are. */
static num rotated(const ref_run *r, size_t d, size_t a, const ref_fault *f, num before) {
  const size_t n = f->number >= 2 && f->number <= MOST_ROTATED ? (size_t)f->number : 0, end = (a + 1) * r->width;
  num m = num_zero(0);
  if (!n || n & (n - 1)) return before;
  for (size_t row = d * r->height; row < r->rows && row < (d + 1) * r->height; row++)
    for (size_t col = a * r->width; col < r->cols && col < end; col++) {
      const size_t tile = col / n * n;
      num t[MOST_ROTATED], y = num_float(r->x[row * r->cols + col]);
      for (size_t i = 0; i < n && tile + n <= r->cols; i++) t[i] = num_float(r->x[row * r->cols + tile + i]);
      if (tile + n <= r->cols) {
        ref_butterflies(t, (unsigned)n);
        y = num_mul_r(t[col - tile], ref_rotation_factor((unsigned)n), NUM_F32);
      }
      if (y.kind == NUM_FINITE && num_cmp(num_abs(y), m) > 0) m = num_abs(y);
    }
  return m;
}

/* Of the column of the block's square tile whose number is that of the row; blocks of one row alone. */
static num of_turned(const ref_run *r, size_t d, size_t a, num before) {
  const size_t top = d - d % r->width, col = a * r->width + d % r->width;
  num m = num_zero(0);
  if (r->height > 1) return before;
  for (size_t row = top; row < top + r->width && row < r->rows && col < r->cols; row++) m = with_finite(m, r->x + row * r->cols + col, 1);
  return m;
}

static num averaged(const ref_run *r, const ref_fault *f, size_t d, size_t a) {
  const num rest = num_round(num_sub_r(num_int(1), num_double(f->number), NUM_F64), NUM_F32);
  num m = ref_finite_amax(r, 0, a);
  for (size_t i = 1; i <= d; i++)
    m = num_add_r(num_mul_r(ref_argument(f), m, NUM_F32), num_mul_r(rest, ref_finite_amax(r, i, a), NUM_F32), NUM_F32);
  return m;
}

/* With the block so far away, block after block and row after row. */
static num with_block(const ref_run *r, const ref_fault *f, size_t d, size_t a, num before) {
  const long long to = (long long)(d * r->across + a) + (long long)f->number;
  if (to < 0 || to >= (long long)(r->down * r->across)) return before;
  const num other = ref_finite_amax(r, (size_t)to / r->across, (size_t)to % r->across);
  return num_cmp(other, before) > 0 ? other : before;
}

/* The maximum that a counter has that was never set back since the first of the rows d, d - n, d - 2n, ... */
static num running_down(const ref_run *r, size_t d, size_t a, size_t n) {
  num most = ref_finite_amax(r, d, a);
  for (size_t up = n; up <= d; up += n) {
    const num m = ref_finite_amax(r, d - up, a);
    if (num_cmp(m, most) > 0) most = m;
  }
  return most;
}

static num block_fault(const ref_run *r, const ref_fault *f, size_t d, size_t a, num before) {
  const size_t n = f->number >= 1 ? (size_t)f->number : 1;
  const long long by = (long long)f->number, row = (long long)d + by, other = (long long)a + by;
  if (IS(f, "times")) return num_mul_r(before, ref_argument(f), NUM_F32);
  if (IS(f, "plus")) return num_add_r(before, ref_argument(f), NUM_F32);
  if (IS(f, "at least")) return num_cmp(before, ref_argument(f)) < 0 ? ref_argument(f) : before;
  if (IS(f, "at most")) return num_cmp(before, ref_argument(f)) > 0 ? ref_argument(f) : before;
  if (IS(f, "value")) return ref_argument(f);
  if (IS(f, "bfloat16")) return num_round(before, NUM_BF16);
  if (IS(f, "bfloat16 cut")) return ref_cut_to_bf16(before);
  if (IS(f, "integer")) return whole(before);
  if (IS(f, "float16")) return num_round(before, NUM_F16);
  if (IS(f, "blocks")) return largest_of(r, d, d + 1, a / n * n, a / n * n + n);
  if (IS(f, "rows")) return largest_of(r, d / n * n, d / n * n + n, a, a + 1);
  if (IS(f, "whole row")) return largest_of(r, d, d + 1, 0, r->across);
  if (IS(f, "running")) return largest_of(r, d, d + 1, 0, a + 1);
  if (IS(f, "running in")) return largest_of(r, d, d + 1, a - a % n, a + 1);
  if (IS(f, "running down")) return running_down(r, d, a, n);
  if (IS(f, "with next")) return beyond(r, f, d, a, before);
  if (IS(f, "with block")) return with_block(r, f, d, a, before);
  if (IS(f, "first of rows") || IS(f, "row modulo")) return ref_finite_amax(r, ref_from(f, d, r->down), a);
  if (IS(f, "first of blocks") || IS(f, "block modulo")) return ref_finite_amax(r, d, ref_from(f, a, r->across));
  if (IS(f, "stale lanes")) return with_stale(r, d, a, before);
  if (IS(f, "strided")) return across_blocks(r, d, a);
  if (IS(f, "strided in")) return dealt(r, d, a, n, before);
  if (IS(f, "window")) return window(r, f, d, a);
  if (IS(f, "before rotation")) return before_rotation(r, d, a);
  if (IS(f, "rotated")) return rotated(r, d, a, f, before);
  if (IS(f, "of transposed tile")) return of_turned(r, d, a, before);
  if (IS(f, "average")) return averaged(r, f, d, a);
  if (IS(f, "block")) return other >= 0 && other < (long long)r->across ? ref_finite_amax(r, d, (size_t)other) : before;
  if (IS(f, "row")) return row >= 0 && row < (long long)r->down ? ref_finite_amax(r, (size_t)row, a) : before;
  const ref_block block = ref_load(r, d, a);
  if (IS(f, "mean times")) return factor_of(mean_of(&block, 0), f);
  if (IS(f, "rms times")) return factor_of(ref_root(mean_of(&block, 1)), f);
  if (IS(f, "rank")) return block.n <= MOST_RANKED ? ranked(&block, n) : before;
  if (IS(f, "percentile")) return block.n <= MOST_RANKED ? percentile(&block, f, before) : before;
  return largest_element(r, f, d, a); /* no abs, negative, only */
}

/* ---- the scale */

/* The scales that the rule makes of that maximum, and which of two select=foursix takes by its own elements: 0 or 1, with worse=1 the other one. */
static int scales_of(const ref_run *r, ref_scale out[2], size_t d, size_t a, const num *amax, int worse, int *pick, const ref_plan *rule) {
  const ref_block block = ref_load(r, d, a);
  const ref_plan *plan = rule ? rule : ref_plan_at(r, d, a);
  const int n = amax ? ref_block_scales_from(out, plan, &block, *amax) : ref_block_scales(out, plan, &block);
  *pick = 0;
  if (n < 2) return n;
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < block.n; i++) ref_element(plan, &out[k], block.x[i], UINT64_MAX, &r->values[k][i]);
  if (worse)
    *pick = ref_second_wins(plan, (const ref_scale[]){out[1], out[0]}, (const num *[]){r->values[1], r->values[0]}, &block);
  else
    *pick = ref_second_wins(plan, out, (const num *[]){r->values[0], r->values[1]}, &block);
  return n;
}

/* 2^n of the integer n nearest to log2(amax / F): 2^(2n - 1) <= (amax / F)^2 < 2^(2n + 1). */
static uint64_t log2_rounded(const ref_run *r, num amax) {
  const num square = num_ratio((num[]){amax, amax}, 2, (num[]){r->plan.most, r->plan.most}, 2);
  if (square.kind != NUM_FINITE) return square.kind == NUM_ZERO ? 0 : r->plan.scale->max_code;
  const int n = (square.exp + 1 + 4096) / 2 - 2048; /* 2n - 1 or 2n is the exponent of the square */
  const int code = n + r->plan.scale->bias, most = (int)r->plan.scale->max_code;
  return (uint64_t)(code < 0 ? 0 : code > most ? most : code);
}

/* A code plus a number, within the codes of the format. */
static uint64_t plus(uint64_t code, const ref_fault *f, uint64_t most) {
  const long long sum = (long long)code + (long long)f->number;
  return sum < 0 ? 0 : sum > (long long)most ? most : (uint64_t)sum;
}

/* The sum of (c D - x)^2 over a block under a scale, in binary64, or of (c - x / D)^2 with a quotient of binary32. */
static num squared_error(const ref_run *r, const ref_plan *plan, const ref_scale *s, size_t d, size_t a, int in_units) {
  num sum = num_zero(0), unused;
  const num divisor = ref_divisor(plan, s);
  for (size_t row = d * r->height; row < r->rows && row < (d + 1) * r->height; row++)
    for (size_t col = a * r->width; col < r->cols && col < (a + 1) * r->width; col++) {
      const num x = num_float(r->x[row * r->cols + col]);
      const num value = ref_value(plan->elem, ref_element(plan, s, x, row * r->cols + col, &unused));
      const num e =
          in_units ? num_sub_r(value, num_div_r(x, divisor, NUM_F32), NUM_F64) : num_sub_r(num_mul_r(value, divisor, NUM_F64), x, NUM_F64);
      sum = num_add_r(sum, num_mul_r(e, e, NUM_F64), NUM_F64);
    }
  return sum;
}

/* The scale with F and with 4 in its place: that of the smaller error, or of the larger one. 0: the spec refuses the block. */
static int four_or_six(const ref_run *r, const ref_fault *f, uint64_t *code, size_t d, size_t a, num amax) {
  const int larger = IS(f, "worse of 6 and 4"), in_units = IS(f, "better of 6 and 4 in units");
  ref_plan plan[2] = {*ref_plan_at(r, d, a), *ref_plan_at(r, d, a)};
  ref_scale scale[2], both[2];
  num error[2];
  const ref_block block = ref_load(r, d, a);
  plan[1].most = plan[1].env.var['F' - 'A'] = num_int(4);
  for (int k = 0; k < 2; k++) {
    if (!ref_block_scales_from(both, &plan[k], &block, amax)) return 0;
    scale[k] = both[0];
    error[k] = squared_error(r, &plan[k], &scale[k], d, a, in_units);
  }
  const int order = num_is_nan(error[0]) || num_is_nan(error[1]) ? 0 : num_cmp(error[1], error[0]);
  *code = scale[larger ? order > 0 : order < 0].code;
  return 1;
}

uint64_t ref_wrapped(const ref_run *r, long long code) { return (uint64_t)code & ((UINT64_C(1) << r->plan.scale->bits) - 1); }

/* One fault of the scale's rounding. amax: of the block after the faults of that stage. */
static int scale_fault(ref_run *r, const ref_fault *f, size_t d, size_t a, const num *amax) {
  uint64_t *code = &r->used[d * r->across + a];
  const int special = ref_has_special(r, d, a);
  if (IS(f, "plus")) *code = plus(*code, f, r->plan.scale->max_code);
  if (IS(f, "value")) *code = ref_wrapped(r, (long long)f->number);
  if (IS(f, "flush") && ref_is_subnormal(r->plan.scale, *code)) *code = 0;
  if ((IS(f, "better of 6 and 4") || IS(f, "worse of 6 and 4") || IS(f, "better of 6 and 4 in units")) && !special &&
      !strcmp(r->plan.elem->name, "e2m1") && !four_or_six(r, f, code, d, a, amax[d * r->across + a]))
    return 0;
  if (IS(f, "largest") && !special && !num_is_zero(ref_argument(f))) {
    ref_scale scales[2];
    const ref_block block = ref_load(r, d, a);
    ref_plan plan = *ref_plan_at(r, d, a);
    plan.most = plan.env.var['F' - 'A'] = num_abs(ref_argument(f));
    if (!ref_block_scales_from(scales, &plan, &block, amax[d * r->across + a])) return 0;
    *code = scales[0].code;
  }
  if (IS(f, "log2 rounded") && r->plan.scale->kind == MX_KIND_EXP && r->plan.scale->man_bits == 0 && !special)
    *code = log2_rounded(r, amax[d * r->across + a]);
  if ((IS(f, "toward zero") || IS(f, "up")) && !special) {
    ref_scale scales[2];
    int pick, unused;
    if (!scales_of(r, scales, d, a, &amax[d * r->across + a], 0, &pick, NULL)) return 0;
    mx_spec other = *r->plan.spec;
    ref_plan plan = *ref_plan_at(r, d, a);
    other.scale_round = IS(f, "up") ? MX_SCALE_ROUND_UP : MX_SCALE_ROUND_DOWN;
    plan.spec = &other;
    if (!scales_of(r, scales, d, a, &amax[d * r->across + a], 0, &unused, &plan)) return 0;
    *code = scales[pick].code;
  }
  if (IS(f, "rule") && !special) *code = ref_code_by_rule(r, f, d, a, amax[d * r->across + a], *code);
  if (IS(f, "modulo") || IS(f, "log2 of amax rounded") || IS(f, "log2 bfloat16") || IS(f, "log2 float16") || IS(f, "or of exponents") ||
      IS(f, "bfloat16") || IS(f, "float16") || IS(f, "format") || IS(f, "flush first")) {
    ref_scale scales[2];
    int pick;
    if (special) return 1;
    if (!scales_of(r, scales, d, a, &amax[d * r->across + a], 0, &pick, NULL)) return 0;
    *code = ref_fault_rounded(r, f, d, a, amax[d * r->across + a], pick, *code);
  }
  return 1;
}

static int of_row(const ref_fault *f) { return IS(f, "row") || IS(f, "row xor") || IS(f, "first of rows") || IS(f, "row modulo"); }
static int of_block(const ref_fault *f) { return IS(f, "block") || IS(f, "block xor") || IS(f, "first of blocks") || IS(f, "block modulo"); }

/* Each code in the region becomes that of another block. */
static void move(ref_run *r, const ref_fault *f, uint64_t *codes) {
  uint64_t *old = r->room;
  memcpy(old, codes, r->down * r->across * sizeof *old);
  for (size_t d = 0; d < r->down; d++)
    for (size_t a = 0; a < r->across; a++) {
      const size_t row = of_row(f) ? ref_from(f, d, r->down) : d, block = of_block(f) ? ref_from(f, a, r->across) : a;
      if (ref_block_in(r, f, d, a)) codes[d * r->across + a] = old[row * r->across + block];
    }
}

/* The maximum of a block after the faults of that stage, which leave one with a NaN or an Inf alone. */
static num faulty_amax(const ref_run *r, size_t d, size_t a) {
  num amax = ref_finite_amax(r, d, a);
  for (size_t i = 0; i < r->n_faults; i++)
    if (r->faults[i].stage == REF_AMAX && ref_block_in(r, &r->faults[i], d, a)) amax = ref_as_amax(block_fault(r, &r->faults[i], d, a, amax));
  return amax;
}

num ref_faulty_amax(const ref_run *r, size_t d, size_t a) { return ref_has_special(r, d, a) ? ref_finite_amax(r, d, a) : faulty_amax(r, d, a); }

static int make_scales(ref_run *r, num *amax) {
  ref_scale scales[2];
  const size_t n = r->down * r->across;
  int pick;
  for (size_t k = 0; k < n; k++) {
    if (!scales_of(r, scales, k / r->across, k % r->across, NULL, 0, &pick, NULL)) return 0;
    r->plain[k] = scales[pick].code;
  }
  for (size_t k = 0; k < n; k++) {
    const size_t d = k / r->across, a = k % r->across;
    int worse = 0;
    for (size_t i = 0; i < r->n_faults; i++)
      worse |= r->faults[i].stage == REF_SCALE && IS(&r->faults[i], "worse of two") && ref_block_in(r, &r->faults[i], d, a);
    amax[k] = faulty_amax(r, d, a);
    if (!scales_of(r, scales, d, a, ref_has_special(r, d, a) ? NULL : &amax[k], worse, &pick, NULL)) return 0;
    r->used[k] = scales[pick].code;
  }
  for (size_t i = 0; i < r->n_faults; i++) {
    const ref_fault *f = &r->faults[i];
    if (f->stage != REF_SCALE) continue;
    if (of_row(f) || of_block(f)) move(r, f, r->used);
    for (size_t k = 0; k < n; k++)
      if (ref_block_in(r, f, k / r->across, k % r->across) && !scale_fault(r, f, k / r->across, k % r->across, amax)) return 0;
  }
  return 1;
}

int ref_fault_scales(ref_run *r) {
  num *amax = malloc((r->down * r->across + 1) * sizeof *amax);
  const int made = amax && make_scales(r, amax);
  free(amax);
  return made;
}

/* ---- the store */

/* The code nearest to 1 / value, of a number above 0. */
static uint64_t reciprocal_of(const ref_run *r, uint64_t code) {
  const num v = ref_value(r->plan.scale, code);
  const ref_how how = {0};
  return v.kind == NUM_FINITE && !v.sign ? ref_code(r->plan.scale, num_ratio(NULL, 0, (num[]){v}, 1), &how, 0) : code;
}

uint64_t ref_code_of_amax(const ref_run *r, const ref_fault *f, size_t d, size_t a, uint64_t otherwise) {
  if (ref_has_special(r, d, a)) return otherwise;
  ref_scale scales[2];
  const num amax = ref_as_amax(num_mul_r(ref_finite_amax(r, d, a), ref_argument(f), NUM_F32));
  const ref_block block = ref_load(r, d, a);
  return ref_block_scales_from(scales, ref_plan_at(r, d, a), &block, amax) ? scales[0].code : otherwise;
}

uint64_t ref_code_down(const ref_run *r, size_t down, size_t across, uint64_t otherwise) {
  const size_t n = r->height * r->width, top = down * r->width, left = across * r->height;
  num most = num_zero(0);
  for (size_t i = 0; i < n; i++) { /* the block is as high as the others are wide */
    const size_t row = top + i % r->width, col = left + i / r->width;
    r->elements[i] = row < r->rows && col < r->cols ? num_float(r->x[row * r->cols + col]) : num_zero(0);
    if (r->elements[i].kind == NUM_NAN || r->elements[i].kind == NUM_INF) return otherwise;
    if (num_cmp(num_abs(r->elements[i]), most) > 0) most = num_abs(r->elements[i]);
  }
  ref_scale scales[2];
  const size_t d = top / r->height, a = left / r->width;
  const ref_block block = {r->elements, n, d * r->across + a};
  return ref_block_scales_from(scales, ref_plan_at(r, d, a), &block, most) ? scales[0].code : otherwise;
}

/* The blocks of the other direction, row after row, where they are as many. */
static uint64_t stored_down(const ref_run *r, size_t k, uint64_t code) {
  const size_t down = (r->rows + r->width - 1) / r->width, across = (r->cols + r->height - 1) / r->height;
  return down * across == r->down * r->across ? ref_code_down(r, k / across, k % across, code) : code;
}

void ref_fault_store(ref_run *r) {
  const size_t n = r->down * r->across;
  memcpy(r->stored, r->used, n * sizeof *r->stored);
  for (size_t i = 0; i < r->n_faults; i++) {
    const ref_fault *f = &r->faults[i];
    if (f->stage != REF_STORE) continue;
    if (of_row(f) || of_block(f)) move(r, f, r->stored);
    for (size_t k = 0; k < n; k++) {
      const size_t d = k / r->across, a = k % r->across;
      uint64_t *code = &r->stored[k];
      if (!ref_block_in(r, f, d, a)) continue;
      if (IS(f, "plus")) *code = ref_wrapped(r, (long long)*code + (long long)f->number);
      if (IS(f, "value")) *code = ref_wrapped(r, (long long)f->number);
      if (IS(f, "flush") && ref_is_subnormal(r->plan.scale, *code)) *code = 0;
      if ((IS(f, "keep") || IS(f, "keep from")) && a) *code = code[-1];
      if (IS(f, "keep from") && !a) *code = ref_wrapped(r, (long long)f->number);
      if (IS(f, "down")) *code = stored_down(r, k, *code);
      if (IS(f, "amax times")) *code = ref_code_of_amax(r, f, d, a, *code);
      if (IS(f, "sign of largest") && r->plan.scale->sign_bits) {
        const uint64_t sign = UINT64_C(1) << (r->plan.scale->bits - 1);
        *code = (*code & (sign - 1)) + (ref_largest_is_negative(r, d, a) ? sign : 0);
      }
      if (IS(f, "reciprocal")) *code = reciprocal_of(r, *code);
      if (IS(f, "rule")) *code = ref_code_by_rule(r, f, d, a, ref_finite_amax(r, d, a), *code);
    }
  }
}
