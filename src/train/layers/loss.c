/* Computes losses and their gradients. */
#include "train/layers/layers.h"
#include "train/layers/parallel.h"

mx_status mxi_cross_entropy(double *loss, float *dlogits, const float *logits, const int32_t *target, size_t N, size_t V, double *log_sum,
                            const mx_exec *exec) {
  double total = 0;
  /* dlogits may be logits: the targets' own are read first. */
  for (size_t n = 0; n < N; n++) total -= (double)logits[n * V + (size_t)target[n]];
  float *p = dlogits;
  if (!p) return MX_ERR_ARG;
  const mx_status status = mx_math_softmax(p, V, log_sum, logits, V, N, V, 1, 0, exec);
  if (status) return status;
  for (size_t n = 0; n < N; n++) total += log_sum[n];
  *loss = total / (double)N;
  const float share = (float)(1 / (double)N);
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *V))
  for (size_t n = 0; n < N; n++) {
    float *row = p + n * V;
    row[target[n]] -= 1;
#pragma omp simd
    for (size_t v = 0; v < V; v++) row[v] *= share;
  }
  return MX_OK;
}

size_t mxi_count_hits(const float *logits, const int32_t *target, size_t N, size_t V) {
  size_t hits = 0;
  for (size_t n = 0; n < N; n++) {
    size_t best = 0;
    for (size_t v = 1; v < V; v++) best = logits[n * V + v] > logits[n * V + best] ? v : best;
    hits += best == (size_t)target[n];
  }
  return hits;
}

void mxi_squared_error(double *loss, float *dout, const float *out, const float *target, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; i++) {
    const double e = (double)out[i] - (double)target[i];
    total += e * e;
    if (dout) dout[i] = (float)(2 * e / (double)n);
  }
  *loss = total / (double)n;
}
