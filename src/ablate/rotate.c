/* Rotations over many rows, in threads. */
#include "ablate/rotate.h"

#include <string.h>

#include "mxgold/isa.h"

enum { MAX_SIZE = 128, ROWS_AT_ONCE = 16 };

mx_status mxi_rotate(float *out, const float *in, size_t rows, size_t cols, const mx_spec *spec, int n_threads) {
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads)) reduction(max : failed)
  for (size_t r = 0; r < rows; r += ROWS_AT_ONCE) {
    const size_t n = rows - r < ROWS_AT_ONCE ? rows - r : ROWS_AT_ONCE;
    const int s =
        (int)mx_hadamard(out + r * cols, cols, in + r * cols, n, cols, cols, spec->had_size, spec->had_sign, spec->had_signs, spec->seed);
    failed = s > failed ? s : failed;
  }
  return (mx_status)failed;
}

/* H S e_i is s_i times a column of H, whose first entry is positive. */
static mx_status signs_of(float signs[MAX_SIZE], const mx_spec *s) {
  if (s->had_size > MAX_SIZE) return MX_ERR_ARG;
  for (unsigned i = 0; i < s->had_size; i++) {
    float unit[MAX_SIZE] = {0};
    unit[i] = 1;
    const mx_status status = mx_hadamard(unit, s->had_size, unit, 1, s->had_size, s->had_size, s->had_size, s->had_sign, s->had_signs, s->seed);
    if (status) return status;
    signs[i] = unit[0] < 0 ? -1 : 1;
  }
  return MX_OK;
}

mx_status mxi_rotate_back(float *x, size_t rows, size_t cols, const mx_spec *spec, int n_threads) {
  float signs[MAX_SIZE];
  mx_status status = signs_of(signs, spec);
  mx_spec plain = *spec;
  plain.had_sign = MX_HAD_SIGN_NONE;
  if (!status) status = mxi_rotate(x, x, rows, cols, &plain, n_threads);
  if (status) return status;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads))
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) x[r * cols + c] *= signs[c % spec->had_size];
  return MX_OK;
}
