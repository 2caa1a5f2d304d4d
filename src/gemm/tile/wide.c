/* Computes with fixed-point numbers of 2432 bits. */
#include "gemm/tile/wide.h"

#include <math.h>
#include <string.h>

enum { N = MXG_WIDE_LIMBS };
typedef unsigned __int128 u128;

uint64_t mxi_gemm_split(double x, int *e) {
  if (x == 0) return *e = 0, 0;
  const uint64_t m = (uint64_t)ldexp(fabs(frexp(x, e)), 53);
  const int zeros = __builtin_ctzll(m);
  *e += zeros - 53;
  return m >> zeros;
}

void mxi_gemm_wide_zero(mxg_wide *x) { memset(x, 0, sizeof *x); }

void mxi_gemm_wide_add(mxg_wide *x, const mxg_wide *y) {
  uint64_t carry = 0;
  for (int i = 0; i < N; i++) {
    const u128 sum = (u128)x->w[i] + y->w[i] + carry;
    x->w[i] = (uint64_t)sum;
    carry = (uint64_t)(sum >> 64);
  }
}

static void negate(mxg_wide *x) {
  uint64_t carry = 1;
  for (int i = 0; i < N; i++) {
    x->w[i] = ~x->w[i] + carry;
    carry = carry && x->w[i] == 0;
  }
}

/* Adds or subtracts m * 2^(64 at). */
static void add_limb(mxg_wide *x, int at, uint64_t m, int negative) {
  for (int i = at; m && i < N; i++) {
    const uint64_t old = x->w[i];
    x->w[i] = negative ? old - m : old + m;
    m = negative ? old < m : x->w[i] < m;
  }
}

void mxi_gemm_wide_add_product(mxg_wide *x, double a, double b, double c) {
  int ea, eb, ec;
  const uint64_t ma = mxi_gemm_split(a, &ea), mb = mxi_gemm_split(b, &eb), mc = mxi_gemm_split(c, &ec);
  if (!ma || !mb || !mc) return;
  const int negative = (a < 0) ^ (b < 0) ^ (c < 0), at = ea + eb + ec - MXG_WIDE_LSB, shift = at % 64, limb = at / 64;
  const u128 m = (u128)ma * mb * mc;
  const uint64_t low = (uint64_t)m, high = (uint64_t)(m >> 64);
  add_limb(x, limb, low << shift, negative);
  add_limb(x, limb + 1, high << shift | (shift ? low >> (64 - shift) : 0), negative);
  add_limb(x, limb + 2, shift ? high >> (64 - shift) : 0, negative);
}

static void shift_by(mxg_wide *x, int bits) { /* shifts a magnitude; only zeros are lost at either end */
  mxg_wide r;
  const int limbs = (bits < 0 ? -bits : bits) / 64, rest = (bits < 0 ? -bits : bits) % 64;
  for (int i = 0; i < N; i++) {
    const int from = bits < 0 ? i + limbs : i - limbs, next = bits < 0 ? from + 1 : from - 1;
    const uint64_t v = from >= 0 && from < N ? x->w[from] : 0, n = next >= 0 && next < N ? x->w[next] : 0;
    r.w[i] = !rest ? v : bits < 0 ? v >> rest | n << (64 - rest) : v << rest | n >> (64 - rest);
  }
  *x = r;
}

int mxi_gemm_wide_sign(const mxg_wide *x) {
  if (x->w[N - 1] >> 63) return -1;
  for (int i = 0; i < N; i++)
    if (x->w[i]) return 1;
  return 0;
}

void mxi_gemm_wide_scale(mxg_wide *x, double y) {
  int e, negative = mxi_gemm_wide_sign(x) < 0;
  const uint64_t m = mxi_gemm_split(y, &e);
  if (negative) negate(x);
  uint64_t carry = 0;
  for (int i = 0; i < N; i++) {
    const u128 product = (u128)x->w[i] * m + carry;
    x->w[i] = (uint64_t)product;
    carry = (uint64_t)(product >> 64);
  }
  if (m) shift_by(x, e);
  if (negative != (y < 0)) negate(x);
}

static int top_bit(const mxg_wide *x) {
  for (int i = N - 1; i >= 0; i--)
    if (x->w[i]) return 64 * i + 63 - __builtin_clzll(x->w[i]);
  return -1;
}

static int any_below(const mxg_wide *x, int bit) {
  for (int i = 0; i < bit / 64 && i < N; i++)
    if (x->w[i]) return 1;
  return bit > 0 && bit / 64 < N && (x->w[bit / 64] & ((UINT64_C(1) << bit % 64) - 1));
}

static int bit_at(const mxg_wide *x, int bit) { return bit >= 0 && bit < 64 * N ? (int)(x->w[bit / 64] >> bit % 64 & 1) : 0; }

double mxi_gemm_wide_round(const mxg_wide *x, double divisor, int p, int min_exp, int max_exp) {
  mxg_wide q = *x;
  int e, negative = mxi_gemm_wide_sign(x) < 0;
  if (negative) negate(&q);
  const uint64_t d = mxi_gemm_split(divisor, &e);
  uint64_t rest = 0; /* whether the part of the quotient below the last unit is nonzero */
  for (int i = N - 1; i >= 0; i--) {
    const u128 part = (u128)rest << 64 | q.w[i];
    q.w[i] = (uint64_t)(part / d);
    rest = (uint64_t)(part % d);
  }
  if (divisor < 0) negative = !negative;
  const int top = top_bit(&q);
  if (top < 0 && !rest) return 0;
  const int unit0 = MXG_WIDE_LSB - e; /* q is in units of 2^unit0 */
  int unit = top + unit0 - p + 1;     /* exponent of the result's last place */
  if (unit < min_exp || top < 0) unit = min_exp;
  const int cut = unit - unit0; /* bits of q below the last place */
  uint64_t m = 0;
  for (int i = p; i >= 0; i--) m = m << 1 | (uint64_t)bit_at(&q, cut + i);
  const int half = bit_at(&q, cut - 1), sticky = rest || any_below(&q, cut - 1);
  m += half && (sticky || (m & 1));
  const double r = ldexp((double)m, unit);
  const double limit = ldexp(1, max_exp);
  return copysign(r >= limit ? INFINITY : r, negative ? -1 : 1);
}

mxg_rounding mxi_gemm_rounding_of(mx_dtype type) {
  if (type == MX_F16) return (mxg_rounding){11, -24, 16};
  if (type == MX_BF16) return (mxg_rounding){8, -133, 128};
  return (mxg_rounding){24, -149, 128};
}
