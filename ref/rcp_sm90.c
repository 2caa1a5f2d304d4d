/* Computes rcp.approx.ftz.f32 on sm_90, bit by bit: the interpolation of formats/rcp_sm90.def written as the sum it stands for. */
#include "ref.h"

static const int64_t coefficients[128][3] = {
#define MX_RCP_SM90(c0, c1, c2) {c0, c1, c2},
#include "../formats/rcp_sm90.def"
#undef MX_RCP_SM90
};

/* The square of the lower 16 fraction bits as a folded array of partial products: x_j x_k at weight j + k + 1 for j < k, x_j at weight 2 j. The unit
 * has no columns up to weight 16. */
static int64_t folded_square(uint32_t x) {
  int64_t sum = 0;
  for (int k = 0; k < 16; k++)
    for (int j = 0; j <= k; j++) {
      const int weight = j == k ? 2 * j : j + k + 1;
      if (weight > 16 && x >> j & 1 && x >> k & 1) sum += INT64_C(1) << weight;
    }
  return sum;
}

uint32_t ref_rcp_sm90(uint32_t bits) {
  const uint32_t sign = bits >> 31 << 31, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7FFFFFFF;
  if (magnitude == 0x7F800000) return sign;
  if (magnitude < 0x00800000) return sign | 0x7F800000;
  const uint32_t x = magnitude & 0xFFFF;
  const int64_t *c = coefficients[magnitude >> 16 & 0x7F];
  /* c0 2^-26 - c1 2^-16 x 2^-23 + c2 2^-10 x^2 2^-46 + 2023 2^-39, in units of 2^-39 (the square is a multiple of 2^17) */
  const int64_t sum = c[0] * (1 << 13) - c[1] * x + c[2] * (folded_square(x) / (1 << 17)) + 2023;
  int64_t significand = sum / (1 << 15); /* cut to 2^-24: from 2^23, one half, to 2^24, one */
  int exp = 126 - ((int)(magnitude >> 23) - 127);
  if (significand == 1 << 24) significand = 1 << 23, exp++;
  return exp < 1 ? sign : sign | ((uint32_t)exp << 23) | (uint32_t)(significand - (1 << 23));
}
