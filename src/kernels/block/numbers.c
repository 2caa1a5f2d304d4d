/* Computes the correctly rounded quotients, logarithms and roundings from which the scale of a block is made. */
#include <math.h>
#include <string.h>

#include "kernels/block/narrow.h"
#include "kernels/block/plan.h"

double mxi_quotient_to_odd(double product, double divisor) {
  if (divisor == 1) return product;
  double q = product / divisor;
  if (q == 0 || !isfinite(q) || isinf(divisor)) return q;
  const double rest = fma(-q, divisor, product); /* exact, and its sign says on which side of the quotient q lies */
  if (rest == 0) return q;
  uint64_t bits;
  memcpy(&bits, &q, sizeof bits);
  if (bits & 1) return q;                                 /* q is already the odd neighbour */
  const int quotient_above = (rest > 0) == (divisor > 0); /* in value */
  const int away = quotient_above == (q > 0);             /* in magnitude */
  bits = away ? bits + 1 : bits - 1;
  memcpy(&q, &bits, sizeof q);
  return q;
}

/* The exact log2, rounded once to binary32, is already k at 2^k (1 - d) for d up to half an ulp of k times ln 2: such numbers have floor k,
 * not k - 1. Likewise from above. For x = m * 2^k with m next to 1, log1p decides far more precisely than half an ulp requires. */
static int log2_rounds_to(double m_minus_1, int k) {
  if (k == 0) return m_minus_1 == 0; /* near 0 binary32 can tell log2 from 0 */
  const double l = log1p(m_minus_1) / 0.693147180559945309417232121458;
  return (float)((double)k + l) == (float)k;
}

int mxi_floor_log2(double x, int log2f) {
  int e;
  const double m = frexp(x, &e) * 2; /* x = m * 2^(e-1), 1 <= m < 2 */
  if (log2f && m > 1.99 && log2_rounds_to(m / 2 - 1, e)) return e;
  return e - 1;
}

int mxi_ceil_log2(double x, int log2f) {
  int e;
  const double m = frexp(x, &e) * 2;
  if (m == 1) return e - 1;
  if (log2f && m < 1.01 && log2_rounds_to(m - 1, e - 1)) return e - 1;
  return e;
}

float mxi_cut_to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (!isnan(x)) bits &= 0xFFFF0000u; /* a NaN whose payload goes would be an Inf */
  memcpy(&x, &bits, sizeof bits);
  return x;
}

float mxi_round_dtype(float x, int dtype) {
  uint32_t bits;
  if (dtype == MX_INPUT_DTYPE_FLOAT32 || isnan(x) || isinf(x)) return x;
  const int half = dtype != MX_INPUT_DTYPE_BFLOAT16, dropped = half ? 13 : 16;
  const float a = fabsf(x);
  if (half && a < 0x1p-14f) return copysignf(a + 0.5f - 0.5f, x); /* steps of 2^-24, which numbers from 1/2 on have too */
  if (half && a >= 65520) return copysignf(INFINITY, x);
  bits = mxi_round_bits(mxi_bits_of(x), (unsigned)dropped) << dropped;
  memcpy(&x, &bits, sizeof x);
  return x;
}

double mxi_to_bf16(double x) {
  static const mx_encoding nearest = {0};
  return mx_round_to(mx_scale_format(MX_SCALE_BF16), x, &nearest, 0);
}
