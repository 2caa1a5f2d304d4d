/** Computes exactly with small numbers in binary64, the same on every device, without any math library.
 *  The reals of SPEC 3 are binary64 values, or binary64 rounded to odd if a quotient does not terminate. */
#ifndef MXD_NUMBER_H
#define MXD_NUMBER_H

#include "hip_backend/run/runtime.h"
#include "mxgold/spec.h"

#define MXD_FLT_MAX 3.40282346638528859812e38f

MXH_DEVICE double mxd_inf() { return mxh_bits<double>(0x7FF0000000000000ull); }
MXH_DEVICE double mxd_nan() { return mxh_bits<double>(0x7FF8000000000000ull); }
MXH_DEVICE float mxd_nanf(bool negative) { return mxh_bits<float>(negative ? 0xFFC00000u : 0x7FC00000u); }
MXH_DEVICE bool mxd_isnan(double x) { return x != x; }
MXH_DEVICE bool mxd_isnan(float x) { return x != x; }
MXH_DEVICE double mxd_abs(double x) { return mxh_bits<double>(mxh_bits<uint64_t>(x) & 0x7FFFFFFFFFFFFFFFull); }
MXH_DEVICE float mxd_abs(float x) { return mxh_bits<float>(mxh_bits<uint32_t>(x) & 0x7FFFFFFFu); }
MXH_DEVICE bool mxd_isinf(double x) { return mxd_abs(x) == mxd_inf(); }
MXH_DEVICE bool mxd_finite(double x) { return mxd_abs(x) < mxd_inf(); }
MXH_DEVICE bool mxd_negative(double x) { return mxh_bits<uint64_t>(x) >> 63 != 0; }
MXH_DEVICE bool mxd_negative(float x) { return mxh_bits<uint32_t>(x) >> 31 != 0; }
MXH_DEVICE double mxd_with_sign(double x, bool negative) {
  return mxh_bits<double>((mxh_bits<uint64_t>(x) & 0x7FFFFFFFFFFFFFFFull) | (negative ? 1ull << 63 : 0));
}
/* 2^e for -1022 <= e <= 1023. */
MXH_DEVICE double mxd_pow2(int e) { return mxh_bits<double>((uint64_t)(e + 1023) << 52); }
/* floor(log2 |x|) of a normal binary64, as every nonzero finite binary32 and every product here is. */
MXH_DEVICE int mxd_exponent(double x) { return (int)(mxh_bits<uint64_t>(x) >> 52 & 0x7FF) - 1023; }
/* Widens x; a NaN keeps its sign on every device, and no code depends on its payload. */
MXH_DEVICE double mxd_widen(float x) { return mxd_isnan(x) ? mxd_with_sign(mxd_nan(), mxd_negative(x)) : (double)x; }
MXH_DEVICE float mxd_narrow(double x) { return mxd_isnan(x) ? mxd_nanf(mxd_negative(x)) : (float)x; }

/* The NaN that an operation on a and b gives under SPEC 3: the first NaN operand, and one made from numbers is negative. Devices disagree
 * about the signs of both. */
MXH_DEVICE double mxd_nan_of(double a, double b) { return mxd_isnan(a) ? a : mxd_isnan(b) ? b : mxd_with_sign(mxd_nan(), true); }
/* An exact product. */
MXH_DEVICE double mxd_times(double a, double b) {
  const double r = a * b;
  return mxd_isnan(r) ? mxd_nan_of(a, b) : r;
}

/* product / divisor rounded to odd, so that it rounds to any narrower type as the real quotient does. */
MXH_DEVICE double mxd_quotient(double product, double divisor) {
  double q = product / divisor;
  if (mxd_isnan(q)) return mxd_nan_of(product, divisor);
  if (q == 0 || !mxd_finite(q) || mxd_isinf(divisor)) return q;
  double rest = mxh_fma(-q, divisor, product); /* exact; its sign says on which side of the real quotient q lies */
  uint64_t bits = mxh_bits<uint64_t>(q);
  if (rest == 0 || bits & 1) return q;
  bool real_is_above = (rest > 0) == (divisor > 0), outward = real_is_above == (q > 0);
  return mxh_bits<double>(outward ? bits + 1 : bits - 1);
}

/* a - b rounded to odd. */
MXH_DEVICE double mxd_difference(double a, double b) {
  const double d = a - b, back = d + b; /* the rounding error, by Knuth's two-sum of a and -b */
  const double lost = (a - back) - (b - (back - d));
  const uint64_t bits = mxh_bits<uint64_t>(d);
  if (!mxd_finite(d) || lost == 0 || bits & 1) return d;
  return mxh_bits<double>((lost > 0) == (d > 0) ? bits + 1 : bits - 1);
}

/* One binary32 operation with the NaN of SPEC 3: the first NaN operand passes through; a NaN made from numbers is negative. */
MXH_DEVICE float mxd_step(char op, float a, float b) {
  if (mxd_isnan(a)) return a;
  if (mxd_isnan(b)) return b;
  float r = op == '*' ? a * b : op == '/' ? a / b : op == '+' ? a + b : a - b;
  return mxd_isnan(r) ? mxd_nanf(true) : r;
}

/* Rounds a real (exact, or rounded to odd) to the nearest number with man_bits and smallest exponent emin, Inf from 2^(emax + 1) on: for
 * bfloat16 and binary16. */
MXH_DEVICE double mxd_round_to(double x, int man_bits, int emin, int emax) {
  if (!(mxd_abs(x) < mxd_inf()) || x == 0) return x;
  double a = mxd_abs(x);
  int e = mxd_exponent(a);
  double magic = mxd_pow2((e < emin ? emin : e) - man_bits + 52); /* its last place is that of the type */
  double r = a < magic ? (a + magic) - magic : a;
  return mxd_with_sign(r >= mxd_pow2(emax + 1) ? mxd_inf() : r, mxd_negative(x));
}
MXH_DEVICE double mxd_to_dtype(double x, int dtype) {
  return dtype == MX_INPUT_DTYPE_BFLOAT16 ? mxd_round_to(x, 7, -126, 127) : dtype == MX_INPUT_DTYPE_FLOAT16 ? mxd_round_to(x, 10, -14, 15) : x;
}
MXH_DEVICE double mxd_to_bf16(double x) { return mxd_round_to(x, 7, -126, 127); }
#endif
