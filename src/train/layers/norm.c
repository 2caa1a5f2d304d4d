/* Computes RMSNorm and LayerNorm. */
#include <math.h>

#include "train/layers/layers.h"
#include "train/layers/parallel.h"

mx_status mxi_rmsnorm_forward(float *out, float *rstd, const float *x, const float *gain, size_t N, size_t C, double eps, const mx_exec *exec) {
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C)) reduction(| : failed)
  for (size_t n = 0; n < N; n++) {
    const float *row = x + n * C;
    double squares;
    const mx_exec one = {.n_threads = 1, .isa_mask = exec ? exec->isa_mask : 0};
    failed |= mx_math_row_sums(&squares, row, C, row, C, 1, C, &one) != MX_OK;
    const float r = rstd[n] = (float)(1 / sqrt(squares / (double)C + eps));
#pragma omp simd
    for (size_t c = 0; c < C; c++) out[n * C + c] = row[c] * r * gain[c];
  }
  return failed ? MX_ERR_ARG : MX_OK;
}

/* With g = dout * gain and u = x * rstd: dx = rstd * (g - u * mean(g * u)). */
mx_status mxi_rmsnorm_backward(float *dx, float *dgain, const float *dout, const float *x, const float *rstd, const float *gain, size_t N,
                               size_t C, double *sums, float *room, const mx_exec *exec) {
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C)) reduction(| : failed)
  for (size_t n = 0; n < N; n++) {
    const float r = rstd[n], *d = dout + n * C, *row = x + n * C;
    float *t = room + n * C;
    const mx_exec one = {.n_threads = 1, .isa_mask = exec ? exec->isa_mask : 0};
#pragma omp simd
    for (size_t c = 0; c < C; c++) t[c] = d[c] * gain[c];
    failed |= mx_math_row_sums(&sums[n], t, C, row, C, 1, C, &one) != MX_OK;
    const float mean = (float)(sums[n] * (double)r / (double)C);
#pragma omp simd
    for (size_t c = 0; c < C; c++) dx[n * C + c] += r * (t[c] - row[c] * r * mean);
#pragma omp simd
    for (size_t c = 0; c < C; c++) t[c] = row[c] * r;
  }
  if (failed) return MX_ERR_ARG;
  return mx_math_column_sums(dgain, 1, dout, C, room, C, N, C, exec);
}

mx_status mxi_layernorm_forward(float *out, float *mean, float *rstd, const float *x, const float *gain, const float *bias, size_t N, size_t C,
                                double eps, double *sums, const mx_exec *exec) {
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C)) reduction(| : failed)
  for (size_t n = 0; n < N; n++) {
    const float *row = x + n * C;
    float *o = out + n * C;
    double squares;
    const mx_exec one = {.n_threads = 1, .isa_mask = exec ? exec->isa_mask : 0};
    failed |= mx_math_row_sums(&sums[n], row, C, NULL, 0, 1, C, &one) != MX_OK;
    const float m = mean[n] = (float)(sums[n] / (double)C);
#pragma omp simd
    for (size_t c = 0; c < C; c++) o[c] = row[c] - m;
    failed |= mx_math_row_sums(&squares, o, C, o, C, 1, C, &one) != MX_OK;
    const float r = rstd[n] = (float)(1 / sqrt(squares / (double)C + eps));
    if (bias) {
#pragma omp simd
      for (size_t c = 0; c < C; c++) o[c] = o[c] * r * gain[c] + bias[c];
    } else {
#pragma omp simd
      for (size_t c = 0; c < C; c++) o[c] = o[c] * r * gain[c];
    }
  }
  return failed ? MX_ERR_ARG : MX_OK;
}

/* With g = dout * gain and u = (x - mean) * rstd: dx = rstd * (g - mean(g) - u * mean(g * u)). */
mx_status mxi_layernorm_backward(float *dx, float *dgain, float *dbias, const float *dout, const float *x, const float *mean, const float *rstd,
                                 const float *gain, size_t N, size_t C, double *sums, float *room, const mx_exec *exec) {
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C)) reduction(| : failed)
  for (size_t n = 0; n < N; n++) {
    const float r = rstd[n], m = mean[n], *d = dout + n * C, *row = x + n * C;
    float *u = room + n * C, *to = dx + n * C;
    const mx_exec one = {.n_threads = 1, .isa_mask = exec ? exec->isa_mask : 0};
#pragma omp simd
    for (size_t c = 0; c < C; c++) u[c] = d[c] * gain[c];
    failed |= mx_math_row_sums(&sums[2 * n], u, C, NULL, 0, 1, C, &one) != MX_OK;
    failed |= mx_math_row_sums(&sums[2 * n + 1], u, C, row, C, 1, C, &one) != MX_OK;
    /* sum(g * u) = (sum(g x) - mean * sum(g)) * rstd */
    const float all = (float)(sums[2 * n] / (double)C);
    const float along = (float)((sums[2 * n + 1] - (double)m * sums[2 * n]) * (double)r / (double)C);
#pragma omp simd
    for (size_t c = 0; c < C; c++) to[c] += r * (u[c] - all - (row[c] - m) * r * along);
#pragma omp simd
    for (size_t c = 0; c < C; c++) u[c] = (row[c] - m) * r;
  }
  if (failed) return MX_ERR_ARG;
  mx_status status = mx_math_column_sums(dgain, 1, dout, C, room, C, N, C, exec);
  if (!status && dbias) status = mx_math_column_sums(dbias, 1, dout, C, NULL, 0, N, C, exec);
  return status;
}
