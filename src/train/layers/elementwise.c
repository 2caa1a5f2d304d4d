/* Sums and products of arrays. */
#include "train/layers/layers.h"
#include "train/layers/parallel.h"

void mxi_multiply(float *out, const float *a, const float *b, size_t n, const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) out[i] = a[i] * b[i];
}

void mxi_add(float *x, const float *y, size_t n, const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) x[i] += y[i];
}
