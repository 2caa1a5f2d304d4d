/* Declares a fixed-point number that is wide enough for every sum of SPEC section 4, in two's complement and units of 2^MXG_WIDE_LSB. */
#ifndef MX_GEMM_TILE_WIDE_H
#define MX_GEMM_TILE_WIDE_H

#include "gemm/tile/tile.h"

/* Products of elements reach from 2^-298 to 2^256, products of two scales do too, and alpha * ga * gb reaches from 2^-447 to 2^384. Another
 * 64 bits are for the carries of a sum, and 64 for a common denominator. */
enum { MXG_WIDE_LIMBS = 38, MXG_WIDE_LSB = -1152 };

typedef struct mxg_wide {
  uint64_t w[MXG_WIDE_LIMBS];
} mxg_wide;

/** |x| = m * 2^e of a finite x: returns m, which is odd, or 0 with e = 0. */
uint64_t mxi_gemm_split(double x, int *e);
void mxi_gemm_wide_zero(mxg_wide *x);
void mxi_gemm_wide_add(mxg_wide *x, const mxg_wide *y);
/** x += a * b * c of finite binary64 numbers whose significands have at most 122 bits together. */
void mxi_gemm_wide_add_product(mxg_wide *x, double a, double b, double c);
/** x *= y for a finite y. */
void mxi_gemm_wide_scale(mxg_wide *x, double y);
/** The sign of x: -1, 0 or 1. */
int mxi_gemm_wide_sign(const mxg_wide *x);
/** x / divisor (finite and not zero), rounded once to nearest even, to p bits of significand with no bit below 2^min_exp; Inf from 2^max_exp
 *  on. The result is a binary64, p <= 53. Zero is +0, but a result that underflows to zero keeps its sign. */
double mxi_gemm_wide_round(const mxg_wide *x, double divisor, int p, int min_exp, int max_exp);

/** The significant bits, the place of the last bit and the overflow of an output type. */
typedef struct mxg_rounding {
  int bits, min_exp, max_exp;
} mxg_rounding;
mxg_rounding mxi_gemm_rounding_of(mx_dtype type);

/** The end of `exact`: sum / over with multipliers, C and bias, rounded once to the output type. All numbers are finite. */
double mxi_gemm_exact_round(const mxg_plan *plan, mxg_wide *sum, double over, float c, float bias);

#endif
