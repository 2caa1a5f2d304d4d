/* Runs the faults of SPEC 9 that come before the blocks: of the input, and of the rotation. */
#include <stdlib.h>

#include "fail.h"
#include "fault_run.h"
#include "math.h"

/* x with the magnitude c where it has a larger one. */
static num clipped(num x, num c) {
  if (num_is_nan(x) || num_cmp(num_abs(x), c) <= 0) return x;
  c.sign = x.sign;
  return c;
}

static num of_element(const ref_fault *f, num x) {
  if (IS(f, "relu")) return num_is_nan(x) || !x.sign ? x : num_zero(0);
  if (IS(f, "abs")) return num_abs(x);
  if (IS(f, "negate")) return num_neg(x);
  if (IS(f, "bfloat16")) return num_round(x, NUM_BF16);
  if (IS(f, "bfloat16 cut")) return ref_cut_to_bf16(x);
  if (IS(f, "float16")) return num_round(x, NUM_F16);
  if (IS(f, "format")) return num_round(ref_to_format(f->format, x), NUM_F32);
  if (IS(f, "clip")) return clipped(x, num_abs(ref_argument(f)));
  if (IS(f, "times")) return num_mul_r(x, ref_argument(f), NUM_F32);
  if (IS(f, "silu")) {
    float y = num_to_float(x);
    ref_math_array(&y, &y, 1, MX_MATH_SILU);
    return num_float(y);
  }
  return num_zero(0); /* zero */
}

/* Each n elements of a row less their mean, a short group as if filled with zeros. */
static mx_status minus_mean(ref_run *r, const ref_fault *f, mx_error *err) {
  if (f->number < 1) return ref_fail(err, MX_ERR_CONFLICT, "reference: a mean of no elements");
  const size_t n = (size_t)f->number;
  for (size_t row = 0; row < r->rows; row++)
    for (size_t c = 0; c < r->cols; c += n) {
      float *x = r->x + row * r->cols + c;
      const size_t here = r->cols - c < n ? r->cols - c : n;
      num sum = num_zero(0);
      for (size_t k = 0; k < here; k++) sum = num_add_r(sum, num_float(x[k]), NUM_F64);
      const num mean = num_round(num_div_r(sum, num_int(n), NUM_F64), NUM_F32);
      for (size_t k = 0; k < here; k++)
        if (ref_element_in(r, f, row, c + k)) x[k] = num_to_float(num_sub_r(num_float(x[k]), mean, NUM_F32));
    }
  return MX_OK;
}

/* The element so far away in memory, where one row follows the other. */
static mx_status column(ref_run *r, const ref_fault *f, mx_error *err) {
  const long long n = (long long)(r->rows * r->cols), by = (long long)f->number;
  float *y = malloc((size_t)(n + 1) * sizeof *y);
  if (!y) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (long long i = 0; i < n; i++) {
    y[i] = r->x[i];
    if (ref_element_in(r, f, (size_t)i / r->cols, (size_t)i % r->cols)) y[i] = i + by >= 0 && i + by < n ? r->x[i + by] : 0;
  }
  free(r->x);
  r->x = y;
  return MX_OK;
}

/* Where a wrong kernel reads element i of n: the matrix taken for its transpose, or its rows so far apart. */
static size_t read_at(const ref_run *r, const ref_fault *f, size_t i) {
  const size_t row = i / r->cols, col = i % r->cols;
  if (IS(f, "transposed")) return i % r->rows * r->cols + i / r->rows;
  return f->number < 1 ? col : row * (size_t)f->number + col;
}

static mx_status elsewhere(ref_run *r, const ref_fault *f, mx_error *err) {
  const size_t n = r->rows * r->cols;
  float *y = malloc((n + 1) * sizeof *y);
  if (!y) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < n; i++) {
    const size_t at = read_at(r, f, i);
    y[i] = !ref_element_in(r, f, i / r->cols, i % r->cols) ? r->x[i] : at < n ? r->x[at] : 0;
  }
  free(r->x);
  r->x = y;
  return MX_OK;
}

/* Numbers that were in a format under one scale: the tensor's largest finite magnitude at the format's largest number. */
static void was_in_format(ref_run *r, const ref_fault *f) {
  num most = num_zero(0);
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    const num x = num_abs(num_float(r->x[i]));
    if ((x.kind == NUM_FINITE || x.kind == NUM_ZERO) && num_cmp(x, most) > 0) most = x;
  }
  const num k = num_div_r(num_round(ref_format_largest(f->format), NUM_F32), most, NUM_F32);
  if (k.kind != NUM_FINITE && k.kind != NUM_ZERO) return;
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    if (!ref_element_in(r, f, i / r->cols, i % r->cols)) continue;
    const num in = ref_to_format(f->format, num_mul_r(num_float(r->x[i]), k, NUM_F32));
    r->x[i] = num_to_float(num_div_r(num_round(in, NUM_F32), k, NUM_F32));
  }
}

/* Each column over its largest finite magnitude or the root of that, unless it is all zeros. */
static void over_columns(ref_run *r, const ref_fault *f) {
  for (size_t col = 0; col < r->cols; col++) {
    num most = num_zero(0);
    for (size_t row = 0; row < r->rows; row++) {
      const num a = num_abs(num_float(r->x[row * r->cols + col]));
      if (a.kind == NUM_FINITE && num_cmp(a, most) > 0) most = a;
    }
    if (num_is_zero(most)) continue;
    if (IS(f, "over root of column amax")) most = ref_root(most);
    for (size_t row = 0; row < r->rows; row++) {
      float *x = &r->x[row * r->cols + col];
      if (ref_element_in(r, f, row, col)) *x = num_to_float(num_div_r(num_float(*x), most, NUM_F32));
    }
  }
}

static mx_status input_fault(ref_run *r, const ref_fault *f, mx_error *err) {
  if (IS(f, "minus mean")) return minus_mean(r, f, err);
  if (IS(f, "column")) return column(r, f, err);
  if (IS(f, "transposed") || IS(f, "pitch")) return elsewhere(r, f, err);
  if (IS(f, "over column amax") || IS(f, "over root of column amax")) {
    over_columns(r, f);
    return MX_OK;
  }
  if (IS(f, "scaled format")) {
    was_in_format(r, f);
    return MX_OK;
  }
  for (size_t i = 0; i < r->rows * r->cols; i++)
    if (ref_element_in(r, f, i / r->cols, i % r->cols)) r->x[i] = num_to_float(of_element(f, num_float(r->x[i])));
  return MX_OK;
}

/* ---- rotation */

/* How often row `row` of the n x n Hadamard matrix changes sign: its entries are -1 where row & column has an odd number of ones. */
static unsigned changes_of_sign(unsigned row, unsigned n) {
  unsigned changes = 0;
  for (unsigned c = 1; c < n; c++) changes += (unsigned)((__builtin_popcount(row & c) ^ __builtin_popcount(row & (c - 1))) & 1);
  return changes;
}

/* Sums and differences of the numbers 1, 2, 4, ... apart, each rounded to binary32 and to bfloat16. */
static void narrow_butterflies(num *t, unsigned n) {
  for (unsigned apart = 1; apart < n; apart *= 2) {
    num next[MOST_ROTATED];
    for (unsigned i = 0; i < n; i++) {
      const num other = t[i ^ apart];
      next[i] = num_round(i & apart ? num_sub_r(other, t[i], NUM_F32) : num_add_r(t[i], other, NUM_F32), NUM_BF16);
    }
    for (unsigned i = 0; i < n; i++) t[i] = next[i];
  }
}

static mx_status rotation_fault(ref_run *r, const ref_fault *f, mx_error *err) {
  const int down = IS(f, "down");
  const unsigned n = f->number >= 2 && f->number <= MOST_ROTATED ? (unsigned)f->number : 0;
  if (!n || (n & (n - 1)) != 0 || (down ? r->rows : r->cols) % n != 0)
    return ref_fail(err, MX_ERR_CONFLICT, "reference: a rotation of %g does not go here", f->number);
  for (size_t row = 0; row < r->rows; row += down ? n : 1)
    for (size_t col = 0; col < r->cols; col += down ? 1 : n) {
      if (!ref_element_in(r, f, row, col)) continue; /* a tile is where its first element is */
      num t[MOST_ROTATED];
      float *x = r->x + row * r->cols + col;
      const size_t step = down ? r->cols : 1;
      for (unsigned i = 0; i < n; i++) t[i] = num_float(x[i * step]);
      /* without the last step: two halves, each on its own */
      if (IS(f, "bfloat16 steps"))
        narrow_butterflies(t, n);
      else
        ref_butterflies(t, IS(f, "unfinished") ? n / 2 : n);
      if (IS(f, "unfinished")) ref_butterflies(t + n / 2, n / 2);
      for (unsigned i = 0; i < n; i++) {
        const unsigned to = IS(f, "sequency") ? changes_of_sign(i, n) : i;
        num y = t[i];
        if (IS(f, "normalised twice"))
          y = num_mul_r(y, num_ratio(NULL, 0, (num[]){num_int(n)}, 1), NUM_F32);
        else if (!IS(f, "unnormalised"))
          y = num_mul_r(y, ref_rotation_factor(n), NUM_F32);
        if (IS(f, "to bfloat16")) y = num_round(y, NUM_BF16);
        x[to * step] = num_to_float(y);
      }
    }
  return MX_OK;
}

mx_status ref_fault_input(ref_run *r, const float *src, size_t ld, mx_error *err) {
  if (!(r->x = malloc((r->rows * r->cols + 1) * sizeof *r->x))) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < r->rows; i++) memcpy(r->x + i * r->cols, src + i * ld, r->cols * sizeof *r->x);
  mx_status status = MX_OK;
  for (size_t k = 0; k < r->n_faults && !status; k++)
    if (r->faults[k].stage == REF_INPUT) status = input_fault(r, &r->faults[k], err);
  float *prepared = NULL;
  mx_spec unrotated = *r->plan.spec;
  unrotated.had_size = 0;
  if (!status) status = ref_prepare(&r->given, src, r->rows, r->cols, ld, &unrotated);
  if (!status) status = ref_prepare(&r->straight, r->x, r->rows, r->cols, r->cols, &unrotated);
  if (!status) status = ref_prepare(&prepared, r->x, r->rows, r->cols, r->cols, r->plan.spec);
  if (status) return status;
  free(r->x);
  r->x = prepared;
  for (size_t k = 0; k < r->n_faults && !status; k++)
    if (r->faults[k].stage == REF_ROTATION) status = rotation_fault(r, &r->faults[k], err);
  return status;
}
