/* Defines what model group64 does beside f32_seq: it adds sums rounding toward zero, and rounds the result to a lattice. SPEC section 4. */
#ifndef MX_GEMM_TILE_GROUP64_H
#define MX_GEMM_TILE_GROUP64_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MXG_GROUP = 64 }; /* products that are summed as in f32_seq */

/* a + b rounded toward zero. The nearest sum and its error (by Knuth's two-sum) say whether it lies beyond the exact sum. A finite sum past
 * the largest number is the largest number. */
static inline float mxg_add_toward_zero(float a, float b) {
  float s = a + b;
  const float back = s - a, lost = (a - (s - back)) + (b - back);
  uint32_t bits;
  if (isinf(s)) return isfinite(a) && isfinite(b) ? copysignf(FLT_MAX, s) : s;
  memcpy(&bits, &s, sizeof bits);
  bits -= s > 0 ? lost < 0 : s < 0 ? lost > 0 : 0;
  memcpy(&s, &bits, sizeof s);
  return s;
}

/* The nearest multiple of 1/1024, ties to even; a zero keeps its sign. Binary32 can hold it, since from 2^13 on all its numbers are such
 * multiples. */
static inline float mxg_to_lattice(float x) { return (float)(rint((double)x * 1024) / 1024); }

#endif
