/* Computes the approximate reciprocal of sm_90 in integer arithmetic, bit for bit. */
#include "mxgold/rcp.h"

/* The unit interpolates: the upper 7 fraction bits choose a row, the lower 16 are x, and 1/(1.f) = c0/2^26 - c1/2^16 * x/2^23 + c2/2^10 *
 * (x/2^23)^2, with 26-, 16- and 10-bit coefficients. All is exact except that the square leaves out its partial products of weight 2^16 and
 * below, and that 2023/2^39 is added before the sum is cut to 2^-24. (The datapath is of the kind that Oberman and Siu describe, "A
 * High-Performance Area-Efficient Multifunction Interpolator", ARITH 2005.) */

typedef struct row {
  int32_t c0, c1, c2;
} row;

static const row rows[128] = {
#define MX_RCP_SM90(c0, c1, c2) {c0, c1, c2},
#include "formats/rcp_sm90.def"
#undef MX_RCP_SM90
};

/* x^2 / 2^17 without the partial products x_j x_k of weight 2^16 and below: all of the upper byte's square, and of the rest those from 2^17
 * on. */
static int64_t truncated_square(uint32_t x) {
  const uint32_t upper = x >> 8;
  uint32_t square = upper * upper >> 1;
  for (int k = 0; k < 8; k++) square += (x >> k & 1) * (x >> (16 - k));
  return square;
}

uint32_t mx_rcp_approx_sm90(uint32_t bits) {
  const uint32_t sign = bits & 0x80000000u, exp_biased = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFF;
  if (exp_biased == 0xFF) return fraction ? 0x7FFFFFFFu : sign;
  if (exp_biased == 0) return sign | 0x7F800000u;
  const row *r = &rows[fraction >> 16];
  const uint32_t x = fraction & 0xFFFF;
  const int64_t sum = ((int64_t)r->c0 << 13) + 2023 - (int64_t)r->c1 * x + r->c2 * truncated_square(x); /* units of 2^-39 */
  const uint32_t significand = (uint32_t)(sum >> 15);                                                   /* units of 2^-24: 2^23 .. 2^24 */
  const int one = significand >> 24, field = 126 + one + 127 - (int)exp_biased;
  return field <= 0 ? sign : sign | (uint32_t)field << 23 | (one ? 0 : significand & 0x7FFFFF);
}
