/* Compiles functions and ordered sums of float32 arrays in plain C, with one lane. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define WD 1
#define vd double
#define vi int64_t
#define vm int
#define TABLE mxi_math_scalar
#define vd_load(p) ((double)*(p))
#define vd_load64(p) (*(p))
#define vd_store64(p, x) (*(p) = (x))
#define vd_set(x) ((double)(x))
#define vd_add(a, b) ((a) + (b))
#define vd_sub(a, b) ((a) - (b))
#define vd_mul(a, b) ((a) * (b))
#define vd_div(a, b) ((a) / (b))
#define vd_sqrt(a) sqrt(a)
#define vd_fma(a, b, c) fma(a, b, c)
#define vd_lt(a, b) ((a) < (b))
#define vd_eq(a, b) ((a) == (b))
#define vd_blend(m, a, b) ((m) ? (a) : (b))
#define vm_any(m) (m)
#define vi_set(x) ((int64_t)(x))
/* Integers wrap around, as in vectors. */
#define vi_add(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define vi_sub(a, b) ((int64_t)((uint64_t)(a) - (uint64_t)(b)))
#define vi_and(a, b) ((a) & (b))
#define vi_or(a, b) ((a) | (b))
#define vi_xor(a, b) ((a) ^ (b))
#define vi_shl(a, n) ((int64_t)((uint64_t)(a) << (n)))
#define vi_shr(a, n) ((int64_t)((uint64_t)(a) >> (n)))
#define vi_is_zero(a) ((a) == 0)

static inline int64_t vd_bits(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double vi_double(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline void vd_store(float *p, double x) {
  static const uint32_t nan_bits = 0x7FC00000;
  const float y = (float)x;
  memcpy(p, y == y ? (const void *)&y : (const void *)&nan_bits, sizeof y);
}

#include "kernels/math/functions.inc.h"
