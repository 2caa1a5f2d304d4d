/* Quantises a tensor and dequantises it again, piece by piece. */
#include <stdlib.h>

#include "ablate/rotate.h"
#include "mxgold/ablate.h"
#include "mxgold/isa.h"

static void divide(float *x, size_t n, float by, int n_threads) {
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads))
  for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] / (double)by);
}

/* Codes are compared with the values that were quantised, which are the rotated ones. */
static mx_status count(mx_code_counts *counts, const mx_tensor *t, const mx_spec *spec, const float *src, const float *y, int n_threads) {
  if (!spec->had_size) return mx_code_counts_add(counts, t, spec, src, y, n_threads);
  float *rotated = malloc(t->rows * t->cols * sizeof *rotated + 1);
  mx_status status = rotated ? mxi_rotate(rotated, src, t->rows, t->cols, spec, n_threads) : MX_ERR_NOMEM;
  if (!status) status = mx_code_counts_add(counts, t, spec, rotated, y, n_threads);
  free(rotated);
  return status;
}

/* out may be src, so that counting, which needs both, works on a copy of the dequantised values first. */
static mx_status back(float *out, const mx_tensor *t, const float *src, const mx_spec *spec, const mx_exec *exec, mx_code_counts *counts) {
  const int n_threads = exec ? exec->n_threads : 0;
  const size_t n = t->rows * t->cols;
  float *own = counts && out == src ? malloc(n * sizeof *own + 1) : NULL;
  if (counts && out == src && !own) return MX_ERR_NOMEM;
  float *y = own ? own : out;
  mx_status status = mx_dequantize(y, t->cols, t, spec, exec);
  if (!status && counts) status = count(counts, t, spec, src, y, n_threads);
  if (own) {
    for (size_t i = 0; i < n; i++) out[i] = own[i];
    free(own);
  }
  if (status) return status;
  if (spec->elem_prescale != 0 && spec->elem_prescale != 1 && mx_elem_format(spec->elem)->kind != MX_KIND_NONE)
    divide(out, n, spec->elem_prescale, n_threads);
  return spec->had_size ? mxi_rotate_back(out, t->rows, t->cols, spec, n_threads) : MX_OK;
}

mx_status mx_fake_quantize(float *out, const float *src, size_t rows, size_t cols, const mx_spec *spec, const mx_exec *exec,
                           mx_code_counts *counts, mx_error *err) {
  if (!spec || ((!out || !src) && rows && cols)) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (spec->had_size && cols % spec->had_size)
    return mx_fail(err, MX_ERR_SHAPE, "had.size=%u does not divide the %zu columns, so that the rotation cannot be undone", spec->had_size,
                   cols);
  mx_tensor t;
  mx_status status = mx_tensor_alloc(&t, rows, cols, spec);
  if (status) return mx_fail(err, status, "no memory for codes of %zu x %zu", rows, cols);
  status = mx_quantize(&t, src, rows, cols, cols, spec, exec, err);
  if (!status && (status = back(out, &t, src, spec, exec, counts))) mx_fail(err, status, "%zu x %zu: %s", rows, cols, mx_status_text(status));
  mx_tensor_free(&t);
  return status;
}

int mx_spec_is_random(const mx_spec *s) {
  return (s->elem_round == MX_ROUND_SR && s->sr_source != MX_SR_SOURCE_GIVEN) || s->scale_round == MX_SCALE_ROUND_SR ||
         (s->had_size && s->had_sign == MX_HAD_SIGN_FRESH);
}
