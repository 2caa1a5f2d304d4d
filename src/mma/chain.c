/* Runs models without alignment: chains of fused multiply-adds, pairwise f32 sums, integers. docs/reference/SPEC.md section 4. */
#include "internal.h"

#include <math.h>
#include <string.h>

static float f32_of(uint64_t bits) {
  uint32_t u = (uint32_t)bits;
  float x;
  memcpy(&x, &u, 4);
  return x;
}

static uint64_t bits_of_f32(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

static double f64_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

static uint64_t bits_of_f64(double x) {
  uint64_t u;
  memcpy(&u, &x, 8);
  return u;
}

/* --- fma --- */

/* nan=first: the NaN that a step gives from the bits of b, acc and a, in this order; an invalid operation has its own NaN. */
static uint64_t first_nan(const mma_plan *plan, uint64_t b, uint64_t acc, uint64_t a) {
  const mx_format *d = plan->model->d;
  const uint64_t order[] = {b, acc, a}, sign = UINT64_C(1) << (d->bits - 1), quiet = UINT64_C(1) << (d->man_bits - 1);
  for (int i = 0; i < 3; i++)
    if ((order[i] & (sign - 1)) > d->inf_code) return order[i] | quiet;
  return sign | d->inf_code | quiet;
}

static uint64_t chain_f32(const mma_plan *plan, const float *a, const float *b, size_t K, uint64_t acc) {
  for (size_t k = 0; k < K; k++) {
    const float next = fmaf(a[k], b[k], f32_of(acc));
    acc = isnan(next) ? first_nan(plan, bits_of_f32(b[k]), acc, bits_of_f32(a[k])) : bits_of_f32(next);
  }
  return acc;
}

static uint64_t chain_f64(const mma_plan *plan, const double *a, const double *b, size_t K, uint64_t acc) {
  for (size_t k = 0; k < K; k++) {
    const double next = fma(a[k], b[k], f64_of(acc));
    acc = isnan(next) ? first_nan(plan, bits_of_f64(b[k]), acc, bits_of_f64(a[k])) : bits_of_f64(next);
  }
  return acc;
}

/* A sum that becomes NaN stays NaN; its bits are found afterwards. */
static mma_acc fma_f32(const mma_plan *plan, const float *a, const float *b, size_t K, mma_acc acc) {
  const uint64_t from = acc.some ? acc.bits : 0;
  float sum = f32_of(from);
  for (size_t k = 0; k < K; k++) sum = fmaf(a[k], b[k], sum);
  if (!isnan(sum) || !K) return (mma_acc){bits_of_f32(sum), 1};
  return (mma_acc){plan->x.nan == MX_ACC_NAN_FIRST ? chain_f32(plan, a, b, K, from) : mxi_mma_nan(plan), 1};
}

static mma_acc fma_f64(const mma_plan *plan, const double *a, const double *b, size_t K, mma_acc acc) {
  const uint64_t from = acc.some ? acc.bits : 0;
  double sum = f64_of(from);
  for (size_t k = 0; k < K; k++) sum = fma(a[k], b[k], sum);
  if (!isnan(sum) || !K) return (mma_acc){bits_of_f64(sum), 1};
  return (mma_acc){plan->x.nan == MX_ACC_NAN_FIRST ? chain_f64(plan, a, b, K, from) : mxi_mma_nan(plan), 1};
}

mma_acc mxi_mma_fma(const mma_plan *plan, const mma_panel *a, size_t i, const mma_panel *b, size_t j, mma_acc acc) {
  if (a->f64) return fma_f64(plan, a->f64 + i * a->K, b->f64 + j * a->K, a->K, acc);
  return fma_f32(plan, a->f32 + i * a->K, b->f32 + j * a->K, a->K, acc);
}

/* --- pairwise --- */

/* A subnormal becomes a zero of its sign. */
static float flushed(const mma_plan *plan, float x) { return plan->x.flush && fabsf(x) < 0x1p-126f ? x * 0.0f : x; }

/* fma(a, b, +0): the product, except that an exact zero is +0. */
static float times(float a, float b) { return a == 0 || b == 0 ? a * b + 0.0f : a * b; }

static float tree(const mma_plan *plan, const float *a, const float *b, size_t n) {
  if (n == 1) return flushed(plan, times(*a, *b));
  size_t half = n / 2;
  float left = tree(plan, a, b, half), right = tree(plan, a + half, b + half, n - half);
  return flushed(plan, left + right);
}

mma_acc mxi_mma_pairwise(const mma_plan *plan, const mma_panel *a, size_t i, const mma_panel *b, size_t j, mma_acc acc) {
  const float *ra = a->f32 + i * a->K, *rb = b->f32 + j * a->K;
  size_t K = a->K, L = plan->x.L ? (size_t)plan->x.L : plan->k;
  float sum = acc.some ? f32_of(acc.bits) : 0.0f;
  for (size_t start = 0; start < K; start += plan->k) {
    size_t end = K - start < plan->k ? K : start + plan->k;
    if (plan->x.flush && fabsf(sum) < 0x1p-126f) sum = 0.0f; /* C is an operand of each instruction, so its zeros lose their sign */
    for (size_t k = start; k < end; k += L) sum = flushed(plan, sum + tree(plan, ra + k, rb + k, end - k < L ? end - k : L));
  }
  return (mma_acc){isnan(sum) && K ? mxi_mma_nan(plan) : bits_of_f32(sum), 1};
}

/* --- integers --- */

mma_acc mxi_mma_integer(const mma_plan *plan, const mma_panel *a, size_t i, const mma_panel *b, size_t j, mma_acc acc) {
  const int32_t *ra = a->sig + i * a->K, *rb = b->sig + j * a->K;
  size_t K = a->K;
  int64_t sum = acc.some ? (int32_t)(uint32_t)acc.bits : 0;
  for (size_t start = 0; start < K; start += plan->k) {
    size_t end = K - start < plan->k ? K : start + plan->k;
    for (size_t k = start; k < end; k++) sum += (int64_t)ra[k] * rb[k];
    if (plan->x.sat == MX_ACC_SAT_FINITE)
      sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    else
      sum = (int32_t)(uint32_t)(uint64_t)sum;
  }
  return (mma_acc){(uint32_t)sum, 1};
}
