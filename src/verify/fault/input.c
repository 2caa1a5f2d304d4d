/* Applies the faults that come before the blocks: of the input, and of the rotation. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/math.h"
#include "verify/fault/run.h"

static float of_element(const mx_fault *f, float x) {
  switch (f->op) {
  case MX_FAULT_INPUT_RELU:
    return x > 0 ? x : isnan(x) ? x : 0;
  case MX_FAULT_INPUT_ABS:
    return fabsf(x);
  case MX_FAULT_INPUT_NEGATE:
    return -x;
  case MX_FAULT_INPUT_BF16:
    return mxi_round_dtype(x, MX_INPUT_DTYPE_BFLOAT16);
  case MX_FAULT_INPUT_BF16_CUT:
    return mxi_cut_to_bf16(x);
  case MX_FAULT_INPUT_F16:
    return mxi_round_dtype(x, MX_INPUT_DTYPE_FLOAT16);
  case MX_FAULT_INPUT_FORMAT:
    return (float)mxi_fault_to_format(f->format, (double)x);
  case MX_FAULT_INPUT_CLIP:
    return fabsf(x) > fabsf((float)f->number) ? copysignf((float)f->number, x) : x;
  case MX_FAULT_INPUT_TIMES:
    return x * (float)f->number;
  case MX_FAULT_INPUT_SILU:
    return mx_math_array(&x, &x, 1, MX_MATH_SILU, &(mx_exec){.n_threads = 1}) ? 0 : x;
  case MX_FAULT_INPUT_ZERO:
    return 0;
  default:
    return x;
  }
}

/* Sum of n numbers in order, each addition one of binary64. */
static double sum_of(const float *x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)x[i];
  return sum;
}

/* Numbers that were in a format under one scale: the tensor's largest finite magnitude at the format's largest number. */
static void was_in_format(fault_run *r, const mx_fault *f) {
  float amax = 0;
  for (size_t i = 0; i < r->rows * r->cols; i++)
    if (isfinite(r->x[i])) amax = fmaxf(amax, fabsf(r->x[i]));
  const float k = (float)mx_format_max(mxi_fault_format(f->format)) / amax;
  for (size_t i = 0; isfinite(k) && i < r->rows * r->cols; i++)
    if (mxi_fault_element_in(r, f, i / r->cols, i % r->cols)) r->x[i] = (float)mxi_fault_to_format(f->format, (double)(r->x[i] * k)) / k;
}

/* Each column over its largest finite magnitude, or the root of that; one of zeros stays. */
static void over_columns(fault_run *r, const mx_fault *f) {
  for (size_t c = 0; c < r->cols; c++) {
    float m = 0;
    for (size_t i = 0; i < r->rows; i++)
      if (isfinite(r->x[i * r->cols + c])) m = fmaxf(m, fabsf(r->x[i * r->cols + c]));
    if (f->op == MX_FAULT_INPUT_OVER_ROOT) m = sqrtf(m);
    for (size_t i = 0; i < r->rows && m > 0; i++)
      if (mxi_fault_element_in(r, f, i, c)) r->x[i * r->cols + c] /= m;
  }
}

static mx_status input_fault(fault_run *r, const mx_fault *f, mx_error *err) {
  const size_t rows = r->rows, cols = r->cols;
  if (f->op == MX_FAULT_INPUT_MEAN) {
    const size_t n = f->number >= 1 ? (size_t)f->number : 0;
    if (!n) return mx_fail(err, MX_ERR_CONFLICT, "fault: input <- minus mean: expected 1 or more elements");
    for (size_t i = 0; i < rows; i++)
      for (size_t c = 0; c < cols; c += n) {
        float *x = r->x + i * cols + c;
        const size_t here = cols - c < n ? cols - c : n;
        const float mean = (float)(sum_of(x, here) / (double)n); /* a short group as if filled with zeros */
        for (size_t k = 0; k < here; k++)
          if (mxi_fault_element_in(r, f, i, c + k)) x[k] -= mean;
      }
    return MX_OK;
  }
  if (f->op == MX_FAULT_INPUT_TRANSPOSED || f->op == MX_FAULT_INPUT_PITCH) {
    const size_t pitch = f->number >= 1 ? (size_t)f->number : 0, n = rows * cols;
    float *old = malloc((n + 1) * sizeof *old);
    if (!old) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
    memcpy(old, r->x, n * sizeof *old);
    for (size_t i = 0; i < n; i++) { /* row i / cols of the matrix begins where the kernel thinks it does */
      const size_t turned = i % rows * cols + i / rows, from = f->op == MX_FAULT_INPUT_PITCH ? i / cols * pitch + i % cols : turned;
      if (mxi_fault_element_in(r, f, i / cols, i % cols)) r->x[i] = from < n ? old[from] : 0;
    }
    free(old);
    return MX_OK;
  }
  if (f->op == MX_FAULT_INPUT_SCALED_FORMAT) {
    was_in_format(r, f);
    return MX_OK;
  }
  if (f->op == MX_FAULT_INPUT_OVER_COLUMN || f->op == MX_FAULT_INPUT_OVER_ROOT) {
    over_columns(r, f);
    return MX_OK;
  }
  if (f->op == MX_FAULT_INPUT_COLUMN) {
    const ptrdiff_t by = (ptrdiff_t)f->number, n = (ptrdiff_t)(rows * cols);
    float *old = malloc((rows * cols + 1) * sizeof *old);
    if (!old) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
    memcpy(old, r->x, rows * cols * sizeof *old);
    for (ptrdiff_t i = 0; i < n; i++) /* in memory one row follows the other; zeros beyond the ends */
      if (mxi_fault_element_in(r, f, (size_t)i / cols, (size_t)i % cols)) r->x[i] = i + by < 0 || i + by >= n ? 0 : old[i + by];
    free(old);
    return MX_OK;
  }
  for (size_t i = 0; i < rows; i++)
    for (size_t c = 0; c < cols; c++)
      if (mxi_fault_element_in(r, f, i, c)) r->x[i * cols + c] = of_element(f, r->x[i * cols + c]);
  return MX_OK;
}

/* ---- rotation */

enum { MOST_TILE = 128 };

/* Butterflies of n numbers of stride 1, 2, 4, ..., below `most`, each rounded to binary32 and to the type. */
static void butterflies(float *x, size_t n, size_t most, int dtype) {
  for (size_t h = 1; h < most; h *= 2)
    for (size_t first = 0; first < n; first += 2 * h)
      for (size_t i = first; i < first + h; i++) {
        const float a = x[i], b = x[i + h];
        x[i] = mxi_round_dtype(a + b, dtype);
        x[i + h] = mxi_round_dtype(a - b, dtype);
      }
}

/* Row of the n x n Hadamard matrix that changes sign k times: the bits of k's Gray code in reverse. */
static size_t of_sequency(size_t k, size_t n) {
  size_t gray = k ^ k >> 1, row = 0;
  for (size_t bit = 1; bit < n; bit *= 2) row = row * 2 + (gray & 1), gray >>= 1;
  return row;
}

static void rotate_tile(float *x, size_t step, size_t n, int op) {
  float t[MOST_TILE];
  const float root = (float)(1 / sqrt((double)n));
  for (size_t i = 0; i < n; i++) t[i] = x[i * step];
  butterflies(t, n, op == MX_FAULT_ROTATION_UNFINISHED ? n / 2 : n,
              op == MX_FAULT_ROTATION_BF16_STEPS ? MX_INPUT_DTYPE_BFLOAT16 : MX_INPUT_DTYPE_FLOAT32);
  for (size_t i = 0; i < n; i++) {
    float y = t[op == MX_FAULT_ROTATION_SEQUENCY ? of_sequency(i, n) : i];
    if (op == MX_FAULT_ROTATION_TWICE) y *= 1 / (float)n;
    if (op != MX_FAULT_ROTATION_TWICE && op != MX_FAULT_ROTATION_RAW) y *= root;
    x[i * step] = op == MX_FAULT_ROTATION_BF16 ? mxi_round_dtype(y, MX_INPUT_DTYPE_BFLOAT16) : y;
  }
}

static mx_status rotation_fault(fault_run *r, const mx_fault *f, mx_error *err) {
  const size_t n = f->number >= 2 && f->number <= MOST_TILE ? (size_t)f->number : 0;
  const int down = f->op == MX_FAULT_ROTATION_DOWN;
  if (!n || n & (n - 1) || (down ? r->rows : r->cols) % n)
    return mx_fail(err, MX_ERR_CONFLICT, "fault: a rotation of %.0f: expected a power of two, 2 to %d, that divides the %s", f->number,
                   MOST_TILE, down ? "rows" : "columns");
  for (size_t i = 0; i < r->rows; i += down ? n : 1)
    for (size_t c = 0; c < r->cols; c += down ? 1 : n)
      if (mxi_fault_element_in(r, f, i, c)) rotate_tile(r->x + i * r->cols + c, down ? r->cols : 1, n, f->op);
  return MX_OK;
}

mx_status mxi_fault_input(fault_run *r, const float *src, size_t ld, mx_error *err) {
  for (size_t i = 0; i < r->rows; i++) memcpy(r->x + i * r->cols, src + i * ld, r->cols * sizeof *r->x);
  for (size_t k = 0; k < r->n_faults; k++) {
    const mx_status status = mxi_fault_stage(&r->faults[k]) == MX_STAGE_INPUT ? input_fault(r, &r->faults[k], err) : MX_OK;
    if (status) return status;
  }
  const mx_spec *s = &r->spec;
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    r->x[i] = mxi_round_dtype(r->x[i], s->input_dtype);
    if (s->flush == MX_SWITCH_ON && fabsf(r->x[i]) < FLT_MIN) r->x[i] = copysignf(0, r->x[i]);
  }
  int rotated = s->had_size != 0;
  for (size_t k = 0; k < r->n_faults; k++) rotated |= mxi_fault_stage(&r->faults[k]) == MX_STAGE_ROTATION;
  if (rotated) {
    if (!(r->straight = malloc((r->rows * r->cols + 1) * sizeof *r->straight))) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
    memcpy(r->straight, r->x, r->rows * r->cols * sizeof *r->straight);
  }
  if (s->had_size) {
    const mx_status status = mx_hadamard(r->x, r->cols, r->x, r->rows, r->cols, r->cols, s->had_size, s->had_sign, s->had_signs, s->seed);
    if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  }
  for (size_t k = 0; k < r->n_faults; k++) {
    const mx_status status = mxi_fault_stage(&r->faults[k]) == MX_STAGE_ROTATION ? rotation_fault(r, &r->faults[k], err) : MX_OK;
    if (status) return status;
  }
  return MX_OK;
}
