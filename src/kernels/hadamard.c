/* Rotates rows by Hadamard matrices, and back: SPEC 5. */
#include "kernels/dispatch.h"
#include "kernels/threads.h"

static mx_status check_arguments(const float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size,
                                 int sign, const uint8_t *signs) {
  if (size < 2 || size > MX_HAD_MOST || (size & (size - 1)) || (rows && cols && (!out || !src)) || (sign == MX_HAD_SIGN_FIXED && !signs))
    return MX_ERR_ARG;
  return ld < cols || ld_out < cols ? MX_ERR_SHAPE : MX_OK;
}

mx_status mx_hadamard(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                      const uint8_t *signs, uint64_t seed) {
  const mx_status status = check_arguments(out, ld_out, src, rows, cols, ld, size, sign, signs);
  if (status) return status;
  mx_input in;
  mxi_input_rotation(&in, size, sign, signs, seed);
  mx_input_kernel *kernel = mxi_kernels_for(0)->input;
#pragma omp parallel for schedule(static) num_threads(mx_threads(NULL, rows *cols, MX_THREAD_VALUES))
  for (size_t r = 0; r < rows; r++) kernel(out + r * ld_out, src + r * ld, cols, &in);
  return MX_OK;
}

mx_status mx_hadamard_back(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                           const uint8_t *signs, uint64_t seed) {
  const mx_status status = check_arguments(out, ld_out, src, rows, cols, ld, size, sign, signs);
  if (status) return status;
  if (cols % size) return MX_ERR_SHAPE;
  mx_input plain, in;
  mxi_input_rotation(&plain, size, MX_HAD_SIGN_NONE, NULL, 0);
  mxi_input_rotation(&in, size, sign, signs, seed);
  mx_input_kernel *kernel = mxi_kernels_for(0)->input;
#pragma omp parallel for schedule(static) num_threads(mx_threads(NULL, rows *cols, MX_THREAD_VALUES))
  for (size_t r = 0; r < rows; r++) {
    float *to = out + r * ld_out;
    kernel(to, src + r * ld, cols, &plain);
    for (size_t c = 0; c < cols && in.signs; c++)
      if (in.sign[c & (size - 1)] && to[c] == to[c]) to[c] = -to[c];
  }
  return MX_OK;
}
