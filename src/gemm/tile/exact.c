/* Computes the model `exact` fast, by binary64 sums that provably do not round, and one rounding at the end.
 *
 * A term is a block's dot times its scales, which is exact in binary64 (mxi_gemm_block_fits). All terms of a tile are below 2^top and
 * multiples of 2^low, and there are n <= 2^lg of them. Let u = 2^(top + lg - 51). Multiples of u that are at most 2^top + u each add up to
 * less than 2^(top + lg + 1) = 2^52 u, so their sum is exact in any order. The first sum therefore takes of each term t its rounding to a
 * multiple of u, which is (t + 1.5 * 2^52 u) - 1.5 * 2^52 u, since |t| < 2^51 u. What remains of the term is exact too and at most u / 2; it
 * goes to the next sum in the same way, with top + lg - 52 for top. The last sum takes what is left, which involves no rounding once its u
 * is at most 2^low. */
#include <math.h>

#include "gemm/tile/tile.h"
#include "gemm/tile/wide.h"

typedef unsigned __int128 u128;

static void bounds_of(int *hi, int *lo, const mxg_plan *plan, const mxg_operand *o, const mxg_panel *p) {
  *hi = o->hi;
  *lo = o->lo;
  if (plan->bounded) return;
  *hi = -2000;
  *lo = 2000;
  for (size_t b = 0; b < plan->kb; b++) {
    if (p->hi[b] < p->lo[b]) continue; /* nothing but zeros */
    if (p->hi[b] > *hi) *hi = p->hi[b];
    if (p->lo[b] < *lo) *lo = p->lo[b];
  }
}

static int log2_up(size_t n) { return n > 1 ? 64 - __builtin_clzll(n - 1) : 0; }

int mxi_gemm_exact_split(double place[MXG_SUMS], const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b) {
  if (plan->a.divides || plan->b.divides || !a->finite || !b->finite) return 0;
  for (size_t i = 0; i < plan->kb && !plan->bounded; i++)
    if (!mxi_gemm_block_fits(plan, a, b, i)) return 0;
  int hi_a, lo_a, hi_b, lo_b;
  bounds_of(&hi_a, &lo_a, plan, &plan->a, a);
  bounds_of(&hi_b, &lo_b, plan, &plan->b, b);
  if (hi_a < lo_a || hi_b < lo_b || a->scale_hi < a->scale_lo || b->scale_hi < b->scale_lo) return 1; /* there are only zeros */
  const int lg = log2_up(plan->kb), low = lo_a + lo_b + a->scale_lo + b->scale_lo;
  int top = hi_a + hi_b + 2 + log2_up(plan->block < plan->K ? plan->block : plan->K) + a->scale_hi + b->scale_hi + 2;
  if (top > 900 || low < -1000 || lg > 20) return 0;
  for (int n = 1; n <= MXG_SUMS; n++) {
    const int u = top + lg - 51;
    if (u <= low) return n;
    place[n - 1] = ldexp(1.5, 52 + u);
    top = u; /* |rest| <= 2^(u - 1) */
  }
  return 0;
}

/* m * 2^e rounded once, to nearest even. */
static double round_128(u128 m, int e, mxg_rounding to) {
  if (!m) return 0;
  const uint64_t high = (uint64_t)(m >> 64);
  const int top = high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((uint64_t)m);
  int cut = top + 1 - to.bits; /* bits below the last place */
  if (e + cut < to.min_exp) cut = to.min_exp - e;
  if (cut > 0) {
    const u128 kept = cut > 127 ? 0 : m >> cut, rest = cut > 127 ? m : m & (((u128)1 << cut) - 1), half = cut > 128 ? 0 : (u128)1 << (cut - 1);
    const int up = cut <= 128 && (rest > half || (rest == half && ((uint64_t)kept & 1)));
    m = kept + (u128)up;
    e += cut;
  }
  const double r = ldexp((double)(uint64_t)m, e); /* at most 53 bits are left */
  return r >= ldexp(1, to.max_exp) ? INFINITY : r;
}

float mxi_gemm_exact_finish(const mxg_plan *plan, const double *sums, size_t step, int n, float c, float bias) {
  const double ga = (double)plan->a.multiplier, gb = (double)plan->b.multiplier, alpha = (double)plan->alpha;
  if (n == 1 && c == 0 && bias == 0) { /* 53 bits and three times 24 */
    int e, e1, e2, e3;
    const u128 m = (u128)mxi_gemm_split(sums[0], &e) * mxi_gemm_split(ga, &e1), f = (u128)mxi_gemm_split(gb, &e2) * mxi_gemm_split(alpha, &e3);
    const double r = round_128(m * f, e + e1 + e2 + e3, mxi_gemm_rounding_of(plan->o.out));
    const int negative = (sums[0] < 0) ^ (ga < 0) ^ (gb < 0) ^ (alpha < 0);
    return (float)(m && f && negative ? -r : r);
  }
  mxg_wide sum;
  mxi_gemm_wide_zero(&sum);
  for (int i = 0; i < n; i++) mxi_gemm_wide_add_product(&sum, sums[(size_t)i * step], 1, 1);
  return (float)mxi_gemm_exact_round(plan, &sum, 1, c, bias);
}
