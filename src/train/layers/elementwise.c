/* Adds and multiplies arrays, and applies ReLU. */
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

void mxi_relu_forward(float *h, const float *z, const float *before, size_t n, const mx_exec *exec) {
  const int threads = train_threads(exec, n);
  if (before) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (size_t i = 0; i < n; i++) h[i] = z[i] + before[i];
    z = h;
  }
#pragma omp parallel for simd schedule(static) num_threads(threads)
  for (size_t i = 0; i < n; i++) {
    const float v = z[i];
    h[i] = v <= 0 ? 0 : v; /* NaN stays */
  }
}

/* The signs of h are as good as random, so that a branch on them would often be mispredicted. dh is read whatever h is, which lets the compiler
 * select a value instead of branching. */
void mxi_relu_backward(float *dz, const float *dh, const float *h, size_t n, const mx_exec *exec) {
#pragma omp parallel for simd schedule(static) num_threads(train_threads(exec, n))
  for (size_t i = 0; i < n; i++) {
    const float d = dh[i];
    dz[i] = h[i] > 0 ? d : 0;
  }
}
