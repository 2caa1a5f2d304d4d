/* Multiplies float32 matrices as the definition of the product reads. */
#include "dense.h"

#include <math.h>
#include <string.h>

static float canonical(float x) {
  static const uint32_t nan_bits = 0x7FC00000;
  if (x != x) memcpy(&x, &nan_bits, sizeof x);
  return x;
}

static void one(const mx_dense *p, const float *a, const float *b, float *d, size_t m, size_t n) {
  if (p->part == MX_DENSE_OUT_LOWER && n > m) return;
  size_t first = 0, end = p->K;
  if (p->part == MX_DENSE_A_LOWER && end > m + 1) end = m + 1;
  if (p->part == MX_DENSE_A_UPPER) first = m;
  float c = p->accumulate ? d[m * p->ldd + n] : 0;
  for (size_t k = first; k < end; k++) c = fmaf(a[m * p->a_row + k * p->a_col], b[n * p->b_row + k * p->b_col], c);
  if (p->bias) c += p->bias[n];
  d[m * p->ldd + n] = canonical(c);
}

void ref_dense_gemm(const mx_dense *p) {
  const size_t rows = p->batch[0] ? p->batch[0] : 1, cols = p->batch[1] ? p->batch[1] : 1;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < cols; j++)
      for (size_t m = 0; m < p->M; m++)
        for (size_t n = 0; n < p->N; n++)
          one(p, p->a + i * p->a_batch[0] + j * p->a_batch[1], p->b + i * p->b_batch[0] + j * p->b_batch[1],
              p->d + i * p->d_batch[0] + j * p->d_batch[1], m, n);
}
