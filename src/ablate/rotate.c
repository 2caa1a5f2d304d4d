/* Rotates many rows in threads, and rotates them back. */
#include "ablate/rotate.h"

#include "mxgold/isa.h"

enum { ROWS_AT_ONCE = 16 };

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

mx_status mxi_rotate_back(float *x, size_t rows, size_t cols, const mx_spec *spec, int n_threads) {
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads)) reduction(max : failed)
  for (size_t r = 0; r < rows; r += ROWS_AT_ONCE) {
    const size_t n = rows - r < ROWS_AT_ONCE ? rows - r : ROWS_AT_ONCE;
    float *at = x + r * cols;
    const int s = (int)mx_hadamard_back(at, cols, at, n, cols, cols, spec->had_size, spec->had_sign, spec->had_signs, spec->seed);
    failed = s > failed ? s : failed;
  }
  return (mx_status)failed;
}
