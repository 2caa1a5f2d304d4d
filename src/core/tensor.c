/* Computes the sizes of a quantised matrix and allocates it. */
#include <stdlib.h>
#include <string.h>

#include "mxgold/quantize.h"

static int mul(size_t *out, size_t a, size_t b) { return !__builtin_mul_overflow(a, b, out); }

mx_status mx_tensor_layout(mx_tensor *t, size_t rows, size_t cols, const mx_spec *spec) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  if (!t || !elem || !scale) return MX_ERR_ARG;
  size_t br, bc;
  mx_spec_block(spec, rows, cols, &br, &bc);
  memset(t, 0, sizeof *t);
  t->rows = rows;
  t->cols = cols;
  t->tensor_scale = 1;
  t->has_tensor_scale = spec->tensor_norm != MX_TENSOR_NORM_NONE;
  if (!mul(&t->cols_padded, cols / bc + (cols % bc != 0), bc)) return MX_ERR_NOMEM;
  if (elem->bits == 4) t->cols_padded += t->cols_padded % 2;
  t->code_stride = elem->kind == MX_KIND_NONE ? 4 * cols : elem->bits == 4 ? t->cols_padded / 2 : t->cols_padded;
  t->scale_bytes = scale->bits <= 8 ? 1 : scale->bits <= 16 ? 2 : 4;
  const int columns = bc == 1 && br > 1; /* block=col and Rx1 */
  t->scale_rows = columns ? rows / br + (rows % br != 0) : rows;
  t->scale_cols = cols / bc + (cols % bc != 0);
  size_t n;
  if (!mul(&n, t->rows, t->code_stride) || !mul(&n, t->scale_rows, t->scale_cols) || !mul(&n, n, 4)) return MX_ERR_NOMEM;
  return MX_OK;
}

/* Zeros, aligned to a cache line, so that kernels that load whole lines touch each line once. */
static void *lines(size_t n) {
  size_t whole;
  if (__builtin_add_overflow(n, 64, &whole)) return NULL;
  void *p = aligned_alloc(64, whole / 64 * 64);
  if (p) memset(p, 0, whole / 64 * 64);
  return p;
}

mx_status mx_tensor_alloc(mx_tensor *t, size_t rows, size_t cols, const mx_spec *spec) {
  const mx_status status = mx_tensor_layout(t, rows, cols, spec);
  if (status) return status;
  const size_t scales = t->scale_rows * t->scale_cols;
  t->codes = lines(rows * t->code_stride);
  t->scales = lines(scales * t->scale_bytes);
  if (spec->scale_rule == MX_SCALE_RULE_HIF4) t->micro = calloc(scales * 3 + 1, 1);
  if (t->codes && t->scales && (t->micro || spec->scale_rule != MX_SCALE_RULE_HIF4)) return MX_OK;
  mx_tensor_free(t);
  return MX_ERR_NOMEM;
}

void mx_tensor_free(mx_tensor *t) {
  if (!t) return;
  free(t->codes);
  free(t->scales);
  free(t->micro);
  t->codes = t->scales = t->micro = NULL;
}

mx_tensor mx_tensor_rows(const mx_tensor *t, size_t first, size_t n, size_t block_rows) {
  mx_tensor part = *t;
  const size_t scale_row = t->scale_rows == t->rows ? first : first / block_rows;
  part.rows = n;
  part.codes += first * t->code_stride;
  part.scale_rows = t->scale_rows == t->rows ? n : (n + block_rows - 1) / block_rows;
  part.scales += scale_row * t->scale_cols * t->scale_bytes;
  if (t->micro) part.micro += scale_row * t->scale_cols * 3;
  return part;
}
