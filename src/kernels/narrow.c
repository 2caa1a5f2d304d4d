/* Casts whole arrays to binary16 and bfloat16 and back. */
#include "mxgold/dtype.h"

#include <stdint.h>
#include <string.h>

#include "kernels/block/narrow.h"
#include "mxgold/isa.h"

void mx_narrow(void *out, const float *x, size_t n, mx_dtype dtype, int n_threads) {
  if (dtype == MX_F32) {
    memcpy(out, x, n * sizeof *x);
    return;
  }
  uint16_t *to = out;
  const int threads = mx_thread_count(n_threads);
  if (dtype == MX_BF16) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (size_t i = 0; i < n; i++) to[i] = mxi_bf16_of(x[i], NARROW_TO_LARGEST);
  } else {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < n; i++) to[i] = mxi_f16_of(x[i], NARROW_TO_LARGEST);
  }
}
