/* Lays matrices and tensors into memory that the caller gives: the same code counts the bytes and hands them out. */
#include <string.h>

#include "train/linear/internal.h"

enum { LINE = 64 };

void *mxi_arena_take(mxi_arena *a, size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4 || a->used > SIZE_MAX / 4) {
    a->overflow = 1;
    return NULL;
  }
  /* Kernels may read whole lines. */
  bytes = (bytes + LINE) / LINE * LINE;
  char *at = a->base ? a->base + a->used : NULL;
  a->used += bytes;
  return at;
}

mx_status mxi_arena_tensor(mxi_arena *codes, mxi_arena *scales, mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec) {
  const mx_status status = mx_tensor_layout(out, rows, cols, spec);
  if (status) return status;
  if (codes) out->codes = mxi_arena_take(codes, out->rows, out->code_stride);
  out->scales = mxi_arena_take(scales, out->scale_rows * out->scale_cols, out->scale_bytes);
  if (spec->scale_rule == MX_SCALE_RULE_HIF4) out->micro = mxi_arena_take(scales, out->scale_rows * out->scale_cols, 3);
  return (codes && codes->overflow) || scales->overflow ? MX_ERR_NOMEM : MX_OK;
}

mxi_matrix mxi_linear_values(mxi_layer *y, mx_linear_in in, size_t rows, size_t cols) {
  if (in.dtype == MX_F32) return (mxi_matrix){(float *)in.data, rows, cols, in.ld};
  float *x = mxi_arena_take(&y->work, rows * cols, sizeof *x);
  const uint16_t *from = in.data;
  if (!y->work.base) return (mxi_matrix){NULL, rows, cols, cols};
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const uint32_t bits = (uint32_t)from[r * in.ld + c] << 16;
      memcpy(&x[r * cols + c], &bits, sizeof bits);
    }
  return (mxi_matrix){x, rows, cols, cols};
}

mx_status mxi_linear_as_quantised(mxi_matrix *out, mxi_layer *y, int q, mxi_matrix x) {
  const mx_spec *s = &y->q[q];
  *out = x;
  if (!s->had_size) return MX_OK;
  const size_t wide = y->t[q].cols;
  *out = (mxi_matrix){mxi_arena_take(&y->work, x.rows * wide, sizeof(float)), x.rows, wide, wide};
  if (!out->at) return MX_OK;
  for (size_t r = 0; r < x.rows; r++) {
    memcpy(out->at + r * wide, x.at + r * x.ld, x.cols * sizeof(float));
    memset(out->at + r * wide + x.cols, 0, (wide - x.cols) * sizeof(float));
  }
  return mx_hadamard(out->at, wide, out->at, x.rows, wide, wide, s->had_size, s->had_sign, s->had_signs, s->seed);
}

mxi_matrix mxi_linear_widened(mxi_layer *y, mxi_matrix x, size_t rows, size_t cols) {
  if (rows == x.rows && cols == x.cols) return x;
  float *wide = mxi_arena_take(&y->work, rows * cols, sizeof *wide);
  for (size_t r = 0; wide && r < rows; r++) {
    const size_t n = r < x.rows ? x.cols : 0;
    if (n) memcpy(wide + r * cols, x.at + r * x.ld, n * sizeof *wide);
    memset(wide + r * cols + n, 0, (cols - n) * sizeof *wide);
  }
  return (mxi_matrix){wide, rows, cols, cols};
}
