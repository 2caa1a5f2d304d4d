/* Hadamard rotation: SPEC 5. */
#include "kernels/dispatch.h"
#include "kernels/threads.h"

mx_status mx_hadamard(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                      const uint8_t *signs, uint64_t seed) {
  if (size < 2 || size > MX_HAD_MOST || (size & (size - 1)) || (rows && cols && (!out || !src)) || (sign == MX_HAD_SIGN_FIXED && !signs))
    return MX_ERR_ARG;
  if (ld < cols || ld_out < cols) return MX_ERR_SHAPE;
  mx_input in;
  mxi_input_rotation(&in, size, sign, signs, seed);
  mx_input_kernel *kernel = mxi_kernels_for(0)->input;
#pragma omp parallel for schedule(static) num_threads(mx_threads(NULL, rows *cols, MX_THREAD_VALUES))
  for (size_t r = 0; r < rows; r++) kernel(out + r * ld_out, src + r * ld, cols, &in);
  return MX_OK;
}
