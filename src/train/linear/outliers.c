/* Clamps outliers of x (occ.*, arXiv 2501.17116) before x is quantised, and adds to y, in high precision, what was cut off. */
#include <string.h>

#include "mxgold/ablate.h"
#include "mxgold/isa.h"
#include "train/linear/internal.h"

/* The order of binary32 as integers: -0 before +0, every NaN last. */
static uint32_t key_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return UINT32_MAX;
  return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static float of_key(uint32_t key) {
  const uint32_t bits = key == UINT32_MAX ? UINT32_C(0x7FC00000) : key >> 31 ? key ^ UINT32_C(1) << 31 : ~key;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

enum { MOST_DIGITS = 1 << 11 };

/* Counts the digit of so many bits above `shift` of the keys that begin as this one does. */
static void count_digits(size_t count[MOST_DIGITS], mxi_matrix x, uint32_t key, int shift, int bits) {
  const uint32_t above = shift + bits < 32 ? UINT32_MAX << (shift + bits) : 0, digits = UINT32_C(1) << bits;
  memset(count, 0, digits * sizeof *count);
  for (size_t r = 0; r < x.rows; r++)
    for (size_t c = 0; c < x.cols; c++) {
      const uint32_t k = key_of(x.at[r * x.ld + c]);
      if ((k & above) == key) count[k >> shift & (digits - 1)]++;
    }
}

/* The key at a rank of a matrix, digit by digit, the highest first. first: how often each first digit comes. */
static uint32_t ranked_by_digits(mxi_matrix x, size_t rank, const size_t first[MOST_DIGITS]) {
  static const int width[] = {11, 11, 10};
  size_t next[MOST_DIGITS];
  uint32_t key = 0;
  for (int w = 0, shift = 32; w < 3; w++) {
    uint32_t digit = 0;
    const size_t *count = w ? next : first;
    shift -= width[w];
    if (w) count_digits(next, x, key, shift, width[w]);
    for (; rank >= count[digit]; digit++) rank -= count[digit];
    key |= digit << shift;
  }
  return key;
}

/* The same of n keys, which it moves about: each turn leaves the part that has the rank. */
static uint32_t ranked_by_parts(uint32_t *keys, size_t n, size_t rank) {
  for (size_t from = 0, to = n - 1; from < to;) {
    const uint32_t middle = keys[rank];
    size_t i = from, j = to + 1; /* what lies from j on is at least as large as the middle, and what lies before i at most as large */
    while (i < j) {
      while (keys[i] < middle) i++;
      while (keys[j - 1] > middle) j--;
      if (i >= j) break;
      const uint32_t moved = keys[i];
      keys[i++] = keys[j - 1];
      keys[--j] = moved;
    }
    if (rank < j)
      to = j - 1;
    else if (rank >= i)
      from = i;
    else
      break;
  }
  return keys[rank];
}

/* The numbers at two ranks of a matrix in ascending order, counted from 0. */
static void ranked(float *low, float *high, mxi_matrix x, size_t lower, size_t upper) {
  enum { FEW = 4096 };
  if (x.rows == 1 && x.cols <= FEW) {
    uint32_t keys[FEW];
    for (size_t c = 0; c < x.cols; c++) keys[c] = key_of(x.at[c]);
    *low = of_key(ranked_by_parts(keys, x.cols, lower));
    *high = of_key(ranked_by_parts(keys, x.cols, upper));
    return;
  }
  size_t first[MOST_DIGITS];
  count_digits(first, x, 0, 21, 11);
  *low = of_key(ranked_by_digits(x, lower, first));
  *high = of_key(ranked_by_digits(x, upper, first));
}

/* Ranks of the two thresholds among n numbers. */
static void ranks_of(size_t *lower, size_t *upper, const mx_linear_recipe *r, size_t n) {
  const double a = r->occ_alpha;
  *lower = (size_t)((1 - a) * (double)(r->occ_index == MX_OCC_MSAMP ? n : n - 1));
  *upper = r->occ_index == MX_OCC_MSAMP ? (size_t)(a * (double)n) : n - 1 - *lower;
  if (*upper > n - 1) *upper = n - 1;
}

/* Clamps x to [low, high]. NaN stays as it is, and so does a value that no binary64 residual would bring back. */
static float clamped(float x, float low, float high) {
  const float y = x < low ? low : x > high ? high : x;
  const double residual = (double)x - (double)y;
  return (float)((double)y + residual) == x ? y : x;
}

static int differs(float a, float b) { return memcmp(&a, &b, sizeof a) != 0; }

/* Clamp row t, and count what moved. */
static size_t clamp_row(float *out, const float *x, size_t n, float low, float high) {
  size_t moved = 0;
  for (size_t i = 0; i < n; i++) moved += (size_t)differs(out[i] = clamped(x[i], low, high), x[i]);
  return moved;
}

mxi_matrix mxi_linear_clamp(mxi_layer *y, mxi_matrix x) {
  const mx_linear_recipe *r = y->r;
  const size_t T = x.rows, I = x.cols, n = r->occ_axis == MX_OCC_TENSOR ? T * I : I;
  if (r->occ_alpha == 0 || !T || !I) return x;
  size_t lower, upper;
  ranks_of(&lower, &upper, r, n);
  const size_t most = (lower + (n - 1 - upper)) * (n == I ? T : 1);
  float *out = mxi_arena_take(&y->work, T * I, sizeof *out);
  mxi_outliers *o = &y->outliers;
  *o = (mxi_outliers){mxi_arena_take(&y->work, T + 1, sizeof *o->starts), mxi_arena_take(&y->work, most, sizeof *o->at),
                      mxi_arena_take(&y->work, most, sizeof *o->residual)};
  if (!out) return (mxi_matrix){NULL, T, I, I};
  float low = 0, high = 0;
  if (r->occ_axis == MX_OCC_TENSOR) ranked(&low, &high, x, lower, upper);
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(y->exec.n_threads)) if (T * I > 1 << 12)
  for (size_t t = 0; t < T; t++) {
    const mxi_matrix row = {x.at + t * x.ld, 1, I, I};
    float from = low, to = high;
    if (r->occ_axis == MX_OCC_ROW) ranked(&from, &to, row, lower, upper);
    o->starts[t + 1] = clamp_row(out + t * I, row.at, I, from, to);
  }
  o->starts[0] = 0;
  for (size_t t = 0; t < T; t++) o->starts[t + 1] += o->starts[t];
  for (size_t t = 0; t < T; t++)
    for (size_t i = 0, k = o->starts[t]; k < o->starts[t + 1]; i++)
      if (differs(out[t * I + i], x.at[t * x.ld + i])) {
        o->at[k] = (uint32_t)i;
        o->residual[k++] = (double)x.at[t * x.ld + i] - (double)out[t * I + i];
      }
  return (mxi_matrix){out, T, I, I};
}

mx_status mxi_linear_compensate(mxi_layer *y, float *out, size_t ld, mxi_matrix w, mx_error *err) {
  const mx_linear_recipe *r = y->r;
  if (r->occ_alpha == 0 || r->occ_residual == MX_OCC_RESIDUAL_OFF || y->plain[MX_FPROP]) return MX_OK;
  if (r->occ_weight == MX_OCC_WEIGHT_Q) {
    const mx_status status = mxi_linear_made(y, MX_Q2, &w, err);
    if (status) return status;
  }
  const mxi_outliers *o = &y->outliers;
  if (!y->work.base || !o->starts) return MX_OK;
#pragma omp parallel for schedule(dynamic, 16) num_threads(mx_thread_count(y->exec.n_threads)) if (o->starts[y->l->T] * y->l->O > 1 << 14)
  for (size_t t = 0; t < y->l->T; t++) {
    const size_t first = o->starts[t], last = o->starts[t + 1];
    for (size_t c = 0; c < y->l->O && first < last; c++) {
      const float *row = w.at + c * w.ld;
      double sum = 0;
      for (size_t k = first; k < last; k++) sum += o->residual[k] * (double)row[o->at[k]];
      out[t * ld + c] = mxi_gradient_store((double)(out[t * ld + c] + (float)sum)); /* Inf - Inf is the one NaN too */
    }
  }
  return MX_OK;
}

mx_status mxi_outliers_check(const mx_linear_recipe *r, mx_error *err) {
  if (r->occ_alpha == 0) return MX_OK;
  if (!(r->occ_alpha >= .5 && r->occ_alpha < 1))
    return mx_fail(err, MX_ERR_CONFLICT, "occ.alpha=%.9g: expected a quantile from .5 to below 1, or off", r->occ_alpha);
  if (r->occ_weight == MX_OCC_WEIGHT_Q && r->q[MX_Q2].had_size)
    return mx_fail(err, MX_ERR_CONFLICT, "occ.residual_weight=q: Q2 is rotated (had.size=%u), and the residual is not", r->q[MX_Q2].had_size);
  return MX_OK;
}
