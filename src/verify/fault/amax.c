/* Computes what a fault puts in place of a maximum, of a block or of the tensor. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/run.h"

float mxi_grid_largest(const amax_grid *g, size_t d0, size_t d1, size_t a0, size_t a1) {
  float m = 0;
  for (size_t d = d0; d < d1 && d < g->down; d++)
    for (size_t a = a0; a < a1 && a < g->across; a++) m = fmaxf(m, mxi_grid_amax(g, d, a));
  return m;
}

/* The larger of m and the finite magnitudes of x[first, end). */
static float with_finite(float m, const float *x, size_t first, size_t end) {
  for (size_t i = first; i < end; i++)
    if (isfinite(x[i])) m = fmaxf(m, fabsf(x[i]));
  return m;
}

/* With the n elements behind each row of the block in memory, or before it if n is negative. */
static float with_next(const fault_run *r, size_t d, size_t a, ptrdiff_t n, float before) {
  const size_t all = r->rows * r->cols;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++) {
    const size_t start = row * r->cols + a * r->block_cols;
    size_t end = (a + 1) * r->block_cols < r->cols ? (a + 1) * r->block_cols : r->cols;
    end += row * r->cols;
    const size_t by = (size_t)(n < 0 ? -n : n);
    before =
        n < 0 ? with_finite(before, r->x, start > by ? start - by : 0, start) : with_finite(before, r->x, end, end + by < all ? end + by : all);
  }
  return before;
}

/* Over the elements a, a + n, a + 2 n, ... of each n blocks, in place of the a-th of them; not where the row has fewer. */
static float strided(const fault_run *r, size_t d, size_t a, size_t n, float before) {
  const size_t first = a / n * n, left = first * r->block_cols + a - first;
  float m = 0;
  if (first + n > r->across) return before;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t i = 0; i < r->block_cols && left + i * n < r->cols; i++) {
      const size_t at = row * r->cols + left + i * n;
      m = with_finite(m, r->x, at, at + 1);
    }
  return m;
}

/* Over as many elements as each row of the block has, n further on in memory; none beyond its ends. */
static float window(const fault_run *r, size_t d, size_t a, ptrdiff_t n) {
  const ptrdiff_t all = (ptrdiff_t)(r->rows * r->cols);
  const size_t left = a * r->block_cols, width = r->cols - left < r->block_cols ? r->cols - left : r->block_cols;
  float m = 0;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (ptrdiff_t at = (ptrdiff_t)(row * r->cols + left) + n, i = 0; i < (ptrdiff_t)width; i++)
      if (at + i >= 0 && at + i < all) m = with_finite(m, r->x, (size_t)(at + i), (size_t)(at + i) + 1);
  return m;
}

/* With what the lanes that a short block has no elements for hold of the block before. */
static float with_stale(const fault_run *r, size_t d, size_t a, float before) {
  const size_t end = (a + 1) * r->block_cols;
  for (size_t row = d * r->block_rows; a && end > r->cols && row < r->rows && row < (d + 1) * r->block_rows; row++)
    before = with_finite(before, r->x, row * r->cols + r->cols - r->block_cols, row * r->cols + end - r->block_cols);
  return before;
}

static float before_rotation(const fault_run *r, size_t d, size_t a) {
  const size_t first = a * r->block_cols, end = first + r->block_cols < r->cols ? first + r->block_cols : r->cols;
  float m = 0;
  for (size_t row = d * r->block_rows; r->straight && row < r->rows && row < (d + 1) * r->block_rows; row++)
    m = with_finite(m, r->straight, row * r->cols + first, row * r->cols + end);
  return r->straight ? m : r->stats[d * r->across + a].amax_finite;
}

/* Of the block's elements as the rotation of whole tiles of n makes them; of a tile that is not whole, as they are. */
static float rotated(const fault_run *r, const mx_fault *f, size_t d, size_t a, float before) {
  enum { MOST = 128 };
  const size_t n = f->number >= 2 && f->number <= MOST ? (size_t)f->number : 0, first = a * r->block_cols,
               end = first + r->block_cols < r->cols ? first + r->block_cols : r->cols;
  float m = 0, tile[MOST];
  if (!n || n & (n - 1)) return before;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t left = first / n * n; left < end; left += n) {
      const size_t width = r->cols - left < n ? r->cols - left : n;
      memcpy(tile, r->x + row * r->cols + left, width * sizeof *tile);
      if (width == n) mx_hadamard(tile, n, tile, 1, n, n, (unsigned)n, MX_HAD_SIGN_NONE, NULL, 0);
      for (size_t i = 0; i < width; i++)
        if (left + i >= first && left + i < end && isfinite(tile[i])) m = fmaxf(m, fabsf(tile[i]));
    }
  return m;
}

/* Of the column of the block's square tile whose number is that of the row; blocks of one row alone. */
static float of_turned(const fault_run *r, size_t d, size_t a, float before) {
  const size_t top = d / r->block_cols * r->block_cols, col = a * r->block_cols + d % r->block_cols;
  float m = 0;
  for (size_t row = top; row < top + r->block_cols && row < r->rows && col < r->cols; row++)
    m = with_finite(m, r->x, row * r->cols + col, row * r->cols + col + 1);
  return r->block_rows > 1 ? before : m;
}

/* c times the average of the row above and the rest of the own maximum, from the first row on. */
static float averaged(const fault_run *r, size_t d, size_t a, double c) {
  const float kept = (float)c, added = (float)(1 - c);
  float m = r->stats[a].amax_finite;
  for (size_t i = 1; i <= d; i++) m = kept * m + added * r->stats[i * r->across + a].amax_finite;
  return m;
}

static int falling(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x < y) - (x > y);
}

/* The k-th largest magnitude of a block (1: the largest), counting missing elements as zeros, plus a fraction of the way to the next one; of a large
 * block, `otherwise`. */
static float rank_of(const fault_run *r, size_t d, size_t a, size_t k, double fraction, float otherwise) {
  enum { MOST = 1024 };
  float m[MOST];
  const size_t area = r->block_rows * r->block_cols;
  size_t n = 0;
  if (area > MOST) return otherwise;
  for (size_t i = 0; i < area; i++) {
    const size_t row = d * r->block_rows + i / r->block_cols, col = a * r->block_cols + i % r->block_cols;
    m[n++] = row < r->rows && col < r->cols ? fabsf(r->x[row * r->cols + col]) : 0;
  }
  if (!k || k > n) return 0;
  qsort(m, n, sizeof *m, falling);
  const double high = (double)m[k - 1], low = k < n ? (double)m[k] : high;
  return (float)(high + (low - high) * fraction);
}

/* Over the elements of a block. */
static float over_elements(const fault_run *r, const mx_fault *f, size_t d, size_t a) {
  float most = 0, of_negative = -1; /* the second: of raw bits with a sign, which are larger than all others */
  double sum = 0, squares = 0;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++) {
      const float x = r->x[row * r->cols + col], m = fabsf(x);
      sum += (double)m;
      squares += (double)m * (double)m;
      switch (f->op) {
      case MX_FAULT_AMAX_NOABS:
        most = fmaxf(most, mxi_fault_element_in(r, f, row, col) ? x : m);
        break;
      case MX_FAULT_AMAX_NEGATIVE:
        most = fmaxf(most, mxi_fault_element_in(r, f, row, col) ? -x : m);
        break;
      case MX_FAULT_AMAX_UNSIGNED:
        if (signbit(x) && mxi_fault_element_in(r, f, row, col))
          of_negative = fmaxf(of_negative, m);
        else
          most = fmaxf(most, m);
        break;
      default:
        if (mxi_fault_element_in(r, f, row, col) == (f->op != MX_FAULT_AMAX_WITHOUT)) most = fmaxf(most, m);
      }
    }
  if (of_negative >= 0) return of_negative;
  const double n = (double)(r->block_rows * r->block_cols);
  if (f->op == MX_FAULT_AMAX_MEAN) return (float)((double)(float)(sum / n) * f->number);
  if (f->op == MX_FAULT_AMAX_RMS) return (float)((double)sqrtf((float)(squares / n)) * f->number);
  return most;
}

/* Over the block and those above it, each n rows of blocks over the one before. */
static float running_down(const fault_run *r, size_t d, size_t a, size_t n) {
  float m = 0;
  for (size_t i = d % n; i <= d; i += n) m = fmaxf(m, r->stats[i * r->across + a].amax_finite);
  return m;
}

static float made_of(const fault_run *r, const mx_fault *f, size_t d, size_t a, float before) {
  const double k = f->number;
  const ptrdiff_t to_row = (ptrdiff_t)d + (ptrdiff_t)k, to_block = (ptrdiff_t)a + (ptrdiff_t)k;
  const size_t n = k >= 1 ? (size_t)k : 1;
  const amax_grid grid = {r->stats, r->down, r->across, 1};
  switch (f->op) {
  case MX_FAULT_AMAX_TIMES:
    return before * (float)k;
  case MX_FAULT_AMAX_PLUS:
    return before + (float)k;
  case MX_FAULT_AMAX_LEAST:
    return fmaxf(before, (float)k);
  case MX_FAULT_AMAX_MOST:
    return fminf(before, (float)k);
  case MX_FAULT_AMAX_VALUE:
    return (float)k;
  case MX_FAULT_AMAX_INTEGER:
    return truncf(before);
  case MX_FAULT_AMAX_BF16:
    return mxi_round_dtype(before, MX_INPUT_DTYPE_BFLOAT16);
  case MX_FAULT_AMAX_BF16_CUT:
    return mxi_cut_to_bf16(before);
  case MX_FAULT_AMAX_F16:
    return mxi_round_dtype(before, MX_INPUT_DTYPE_FLOAT16);
  case MX_FAULT_AMAX_RANK:
    return rank_of(r, d, a, n, 0, before);
  case MX_FAULT_AMAX_PERCENTILE: {
    const double steps = (double)(r->block_rows * r->block_cols - 1) * (100 - k) / 100;
    return steps < 0 ? before : rank_of(r, d, a, (size_t)steps + 1, steps - floor(steps), before);
  }
  case MX_FAULT_AMAX_BLOCKS:
    return mxi_grid_largest(&grid, d, d + 1, a / n * n, a / n * n + n);
  case MX_FAULT_AMAX_ROWS:
    return mxi_grid_largest(&grid, d / n * n, d / n * n + n, a, a + 1);
  case MX_FAULT_AMAX_WHOLE_ROW:
    return mxi_grid_largest(&grid, d, d + 1, 0, r->across);
  case MX_FAULT_AMAX_RUNNING:
    return mxi_grid_largest(&grid, d, d + 1, 0, a + 1);
  case MX_FAULT_AMAX_RUNNING_IN:
    return mxi_grid_largest(&grid, d, d + 1, a / n * n, a + 1);
  case MX_FAULT_AMAX_RUNNING_DOWN:
    return running_down(r, d, a, n);
  case MX_FAULT_AMAX_NEXT:
    return with_next(r, d, a, (ptrdiff_t)k, before);
  case MX_FAULT_AMAX_WITH_BLOCK: {
    const size_t blocks = r->down * r->across, to = d * r->across + a + (size_t)(ptrdiff_t)k; /* wraps to one beyond the end */
    return to < blocks ? fmaxf(before, r->stats[to].amax_finite) : before;
  }
  case MX_FAULT_AMAX_STALE:
    return with_stale(r, d, a, before);
  case MX_FAULT_AMAX_FIRST_ROW:
  case MX_FAULT_AMAX_ROW_MODULO:
    return mxi_grid_amax(&grid, mxi_fault_other(f, d, r->down), a);
  case MX_FAULT_AMAX_FIRST_BLOCK:
  case MX_FAULT_AMAX_BLOCK_MODULO:
    return mxi_grid_amax(&grid, d, mxi_fault_other(f, a, r->across));
  case MX_FAULT_AMAX_STRIDED:
    return strided(r, d, a, r->across, before);
  case MX_FAULT_AMAX_STRIDED_IN:
    return strided(r, d, a, n, before);
  case MX_FAULT_AMAX_WINDOW:
    return window(r, d, a, (ptrdiff_t)k);
  case MX_FAULT_AMAX_STRAIGHT:
    return before_rotation(r, d, a);
  case MX_FAULT_AMAX_ROTATED:
    return rotated(r, f, d, a, before);
  case MX_FAULT_AMAX_TURNED:
    return of_turned(r, d, a, before);
  case MX_FAULT_AMAX_AVERAGE:
    return averaged(r, d, a, k);
  case MX_FAULT_AMAX_BLOCK: /* at an end of the row: the block itself */
    return to_block >= 0 && (size_t)to_block < r->across ? mxi_grid_amax(&grid, d, (size_t)to_block) : before;
  case MX_FAULT_AMAX_ROW:
    return to_row >= 0 && (size_t)to_row < r->down ? mxi_grid_amax(&grid, (size_t)to_row, a) : before;
  default:
    return over_elements(r, f, d, a);
  }
}

float mxi_fault_as_amax(float x) { return fminf(fmaxf(x, 0), FLT_MAX); }

float mxi_fault_block_amax(const fault_run *r, const mx_fault *f, size_t d, size_t a, float before) {
  return mxi_fault_as_amax(made_of(r, f, d, a, before));
}

mx_block_stats mxi_fault_stats(const fault_run *r, size_t d, size_t a, int *changed) {
  mx_block_stats st = r->stats[d * r->across + a];
  *changed = 0;
  for (size_t i = 0; i < r->n_faults && !st.has_nan && !st.has_inf; i++) {
    const mx_fault *f = &r->faults[i];
    if (mxi_fault_stage(f) != MX_STAGE_AMAX || !mxi_fault_block_in(r, f, d, a)) continue;
    st.amax = st.amax_finite = mxi_fault_block_amax(r, f, d, a, st.amax_finite);
    *changed = 1;
  }
  return st;
}

int mxi_fault_largest_is_negative(const fault_run *r, size_t d, size_t a) {
  float most = 0;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++)
      if (fabsf(r->x[row * r->cols + col]) > fabsf(most)) most = r->x[row * r->cols + col];
  return signbit(most) != 0;
}

uint32_t mxi_fault_code_of_amax(const fault_run *r, const mx_fault *f, size_t d, size_t a, uint32_t otherwise) {
  mx_block_stats st = r->stats[d * r->across + a];
  uint32_t code;
  if (st.has_nan || st.has_inf) return otherwise;
  st.amax = st.amax_finite = mxi_fault_as_amax(st.amax_finite * (float)f->number);
  return mxi_block_scale_code(&code, mxi_fault_plan(r, d, a), &st, 0, d * r->across + a) ? otherwise : code;
}

uint32_t mxi_fault_code_down(const fault_run *r, size_t down, size_t across, uint32_t otherwise) {
  mx_block_stats st = {0};
  uint32_t code;
  for (size_t i = 0; i < r->block_rows * r->block_cols; i++) {
    const size_t row = down * r->block_cols + i / r->block_rows, col = across * r->block_rows + i % r->block_rows;
    if (row < r->rows && col < r->cols) mx_block_stats_add(&st, r->x[row * r->cols + col]);
  }
  st.amax = st.amax_finite;
  const size_t d = down * r->block_cols / r->block_rows, a = across * r->block_rows / r->block_cols; /* where its first element is */
  if (st.has_nan || st.has_inf || mxi_block_scale_code(&code, mxi_fault_plan(r, d, a), &st, 0, d * r->across + a)) return otherwise;
  return code;
}

static mx_status largest(float *out, const fault_run *r, const float *x, size_t rows, size_t ld) {
  mx_spec counted = r->spec; /* x has been through this, or is to be counted without it */
  counted.had_size = counted.had_sign = 0;
  return mx_tensor_amax(out, x, rows, r->cols, ld, &counted, &(mx_exec){.n_threads = 1});
}

mx_status mxi_fault_rows_amax(float *out, const fault_run *r, size_t first, size_t end) {
  return largest(out, r, r->x + first * r->cols, end - first, r->cols);
}

/* The maximum over a part of the elements, the others read as zeros. */
static mx_status largest_of_part(fault_run *r, const mx_fault *f) {
  float *part = malloc((r->rows * r->cols + 1) * sizeof *part);
  if (!part) return MX_ERR_NOMEM;
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    const int counts = mxi_fault_element_in(r, f, i / r->cols, i % r->cols) && (f->op == MX_FAULT_TENSOR_ONLY || !signbit(r->x[i]));
    part[i] = counts ? r->x[i] : 0;
  }
  const mx_status status = largest(&r->amax, r, part, r->rows, r->cols);
  free(part);
  return status;
}

mx_status mxi_fault_tensor_amax(fault_run *r, const float *src, size_t ld) {
  mx_status status = largest(&r->amax, r, r->x, r->rows, r->cols);
  for (size_t k = 0; k < r->n_faults && !status; k++) {
    const mx_fault *f = &r->faults[k];
    switch (f->op) {
    case MX_FAULT_TENSOR_ONLY:
    case MX_FAULT_TENSOR_NOABS:
      status = largest_of_part(r, f);
      break;
    case MX_FAULT_TENSOR_AS_GIVEN:
      status = largest(&r->amax, r, src, r->rows, ld);
      break;
    case MX_FAULT_TENSOR_TIMES:
      r->amax *= (float)f->number;
      break;
    case MX_FAULT_TENSOR_BF16:
      r->amax = mxi_round_dtype(r->amax, MX_INPUT_DTYPE_BFLOAT16);
      break;
    case MX_FAULT_TENSOR_LEAST:
      if (r->amax < (float)f->number) r->amax = (float)f->number; /* a NaN stays */
      break;
    case MX_FAULT_TENSOR_INTEGER:
      r->amax = truncf(r->amax);
      break;
    case MX_FAULT_TENSOR_VALUE:
      r->amax = (float)f->number;
      break;
    default:
      break;
    }
    if (r->amax <= 0) r->amax = 0; /* -0 too: it is stored */
  }
  return status;
}
