/* Computes one output from any numbers: in binary64 if that is provably exact, otherwise in a wide fixed-point number. */
#include <math.h>
#include <string.h>

#include "gemm/tile/group64.h"
#include "gemm/tile/tile.h"
#include "gemm/tile/wide.h"
#include "kernels/block/plan.h"

enum { F32_BITS = 24, F32_MIN = -149, F32_MAX = 128 };

/* x + y as a binary64 rounded to odd, which rounds to binary32 as the exact sum does. */
static double add_to_odd(double x, double y) {
  const double s = x + y, back = s - x, rest = (x - (s - back)) + (y - back);
  if (!(rest < 0 || rest > 0) || !isfinite(s)) return s;
  uint64_t bits;
  memcpy(&bits, &s, sizeof bits);
  if (bits & 1) return s;
  bits += (rest > 0) == (s > 0) ? 1 : UINT64_MAX; /* one place toward the exact sum */
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return odd;
}

/* What multiplies and divides the dot of a block. */
typedef struct factors {
  double a, b, over; /* dot * a * b / over */
} factors;

static factors factors_of(const mxg_plan *plan, double sa, double sb) {
  factors f = {1, 1, 1};
  if (plan->a.divides)
    f.over = sa;
  else
    f.a = sa;
  if (plan->b.divides)
    f.over *= sb; /* at most 48 bits */
  else
    f.b = sb;
  return f;
}

/* acc + dot * up / over of numbers that binary64 holds. The quotient is q + e, q rounded and e rounded to odd: e stands for a number strictly between
 * two binary64 numbers, which is enough unless what is left of the sum without h is so small that places below e's last one matter. */
float mxi_gemm_one_quotient(float acc, double dot, double up, double over) {
  const double x = (double)acc, t = dot * up;
  if (dot == 0 && over == 0 && isfinite(up)) return acc + 0.0f; /* a block that was stored as all zeros */
  if (!isfinite(t) || !isfinite(over) || over == 0 || !isfinite(acc)) return (float)(x + (t / over + 0.0));
  if (t == 0) return acc + 0.0f;
  const double q = t / over, e = mxi_quotient_to_odd(fma(-q, over, t), over);
  const double h = x + q, back = h - x, r = (x - (h - back)) + (q - back), v = add_to_odd(r, e);
  if (e == 0 || fabs(v) > fabs(e) * 0x1p-20) return (float)add_to_odd(h, v);
  mxg_wide sum;
  mxi_gemm_wide_zero(&sum);
  mxi_gemm_wide_add_product(&sum, dot, up, 1);
  mxi_gemm_wide_add_product(&sum, x, over, 1);
  return (float)mxi_gemm_wide_round(&sum, over, F32_BITS, F32_MIN, F32_MAX);
}

static size_t block_end(const mxg_plan *plan, size_t b) { return (b + 1) * plan->block < plan->K ? (b + 1) * plan->block : plan->K; }

static float block_wide(const mxg_plan *plan, mxg_line a, mxg_line b, size_t block, float acc, factors f) {
  mxg_wide sum, one;
  mxi_gemm_wide_zero(&sum);
  for (size_t k = block * plan->block; k < block_end(plan, block); k++) mxi_gemm_wide_add_product(&sum, a.v[k * a.step], b.v[k * b.step], 1);
  mxi_gemm_wide_scale(&sum, f.a);
  mxi_gemm_wide_scale(&sum, f.b);
  mxi_gemm_wide_zero(&one);
  mxi_gemm_wide_add_product(&one, (double)acc, f.over, 1);
  mxi_gemm_wide_add(&sum, &one);
  return (float)mxi_gemm_wide_round(&sum, f.over, F32_BITS, F32_MIN, F32_MAX);
}

/* What the operations of a dot rounded away: its sum, and the sum of its magnitudes. */
typedef struct lost_part {
  double sum, size;
} lost_part;

/* The dot of a block in binary64; lost->size is 0 if no operation rounded. */
static double dot_of(const mxg_plan *plan, mxg_line a, mxg_line b, size_t block, lost_part *lost) {
  double dot = 0, sum = 0, size = 0;
  for (size_t k = block * plan->block; k < block_end(plan, block); k++) {
    const double x = a.v[k * a.step], y = b.v[k * b.step], p = x * y, s = dot + p;
    if (!plan->bounded) {
      const double back = s - dot;
      const double of_product = fma(x, y, -p), of_sum = (dot - (s - back)) + (p - back);
      sum += of_product + of_sum;
      size += fabs(of_product) + fabs(of_sum);
    }
    dot = s;
  }
  *lost = (lost_part){sum, size};
  return dot;
}

/* acc + (dot + lost) * s as binary32, if it can be decided: what was lost is added back, which gives an interval that holds the result, and
 * if both of its ends round to one number, so does the result. `lost` was summed in binary64 with two roundings for each term, each of at
 * most u = 2^-53 of the partial sums, which are at most lost.size (1 + 2 terms u). The scaled parts are summed with four more roundings.
 * Twice the sum of all these also covers the rounding of the bound itself. The result does not depend on the bound, so kernels may compute
 * it in another way. */
static int block_near(float *out, double acc, double dot, lost_part lost, double s, size_t terms) {
  const double u = 0x1p-53, t = dot * s, t_rest = fma(dot, s, -t), rest = lost.sum * s;
  const double h = acc + t, back = h - acc, h_rest = (acc - (h - back)) + (t - back), low = h_rest + t_rest + rest;
  const double bound = 2 * u * ((double)(2 * terms + 2) * lost.size * fabs(s) + 4 * (fabs(h_rest) + fabs(t_rest) + fabs(rest)));
  if (!isfinite(h) || !(fabs(t) > 0x1p-700 && fabs(t) < 0x1p700)) return 0; /* no part may lose bits below the smallest binary64 number */
  const float from = (float)add_to_odd(h, low - bound), to = (float)add_to_odd(h, low + bound);
  *out = from;
  return from == to && from != 0 && isfinite(from);
}

static float block_step(const mxg_plan *plan, mxg_line a, mxg_line b, size_t block, float acc, double dot, lost_part lost) {
  const factors f = factors_of(plan, a.s[block * a.step], b.s[block * b.step]);
  const double s = f.a * f.b, t = dot * s;
  if (dot == 0 && f.over == 0 && isfinite(s)) return acc + 0.0f; /* a block that was stored as all zeros */
  if (!isfinite(dot) || !isfinite(s) || !isfinite(f.over) || f.over == 0 || !isfinite(acc))
    return (float)((double)acc + (t / f.over + 0.0)); /* + 0.0 makes a zero term +0 */
  const int whole_scale = fma(f.a, f.b, -s) == 0;
  if (lost.size != 0 || !whole_scale || fma(dot, s, -t) != 0) {
    float near;
    if (f.over == 1 && whole_scale && block_near(&near, (double)acc, dot, lost, s, block_end(plan, block) - block * plan->block)) return near;
    return block_wide(plan, a, b, block, acc, f);
  }
  return f.over == 1 ? (float)add_to_odd((double)acc, t + 0.0) : mxi_gemm_one_quotient(acc, dot, s, f.over);
}

float mxi_gemm_one_block(const mxg_plan *plan, mxg_line a, mxg_line b) {
  float acc = 0;
  for (size_t i = 0; i < plan->kb; i++) {
    lost_part lost;
    const double dot = dot_of(plan, a, b, i, &lost);
    acc = block_step(plan, a, b, i, acc, dot, lost);
  }
  return acc;
}

float mxi_gemm_one_step(const mxg_plan *plan, mxg_line a, mxg_line b, size_t block, float acc, const mxg_dots *dots, size_t at) {
  return block_step(plan, a, b, block, acc, dots->dot[at], (lost_part){dots->lost[at], dots->lost_size[at]});
}

static float one_seq(const mxg_plan *plan, mxg_line a, mxg_line b) {
  float acc = 0;
  for (size_t k = 0; k < plan->K; k++) acc = fmaf((float)a.v[k * a.step], (float)b.v[k * b.step], acc);
  return acc;
}

/* A counter builds the tree: stack[i] holds the sum of 2^i neighbours while bit i of the count is set. */
static float one_pairwise(const mxg_plan *plan, mxg_line a, mxg_line b) {
  float stack[64];
  for (size_t k = 0; k < plan->K; k++) {
    float sum = (float)a.v[k * a.step] * (float)b.v[k * b.step];
    int level = 0;
    for (size_t n = k; n & 1; n >>= 1) sum = stack[level++] + sum;
    stack[level] = sum;
  }
  int any = 0;
  float acc = 0;
  for (int level = 0; level < 64; level++) {
    if (!(plan->K >> level & 1)) continue;
    acc = any++ ? stack[level] + acc : stack[level];
  }
  return acc;
}

static float one_f64(const mxg_plan *plan, mxg_line a, mxg_line b) {
  double acc = 0;
  for (size_t k = 0; k < plan->K; k++) acc = fma(a.v[k * a.step], b.v[k * b.step], acc);
  return (float)acc;
}

static float one_group64(const mxg_plan *plan, mxg_line a, mxg_line b) {
  float acc = 0;
  for (size_t k = 0; k < plan->K;) {
    const size_t end = plan->K - k < MXG_GROUP ? plan->K : k + MXG_GROUP;
    float sum = 0;
    for (; k < end; k++) sum = fmaf((float)a.v[k * a.step], (float)b.v[k * b.step], sum);
    acc = mxg_add_toward_zero(acc, sum);
  }
  return mxg_to_lattice(acc);
}

float mxi_gemm_one_sum(const mxg_plan *plan, mxg_line a, mxg_line b) {
  switch (plan->model) {
  case MX_GEMM_F32_SEQ:
    return one_seq(plan, a, b);
  case MX_GEMM_F32_PAIRWISE:
    return one_pairwise(plan, a, b);
  case MX_GEMM_F64:
    return one_f64(plan, a, b);
  case MX_GEMM_GROUP64:
    return one_group64(plan, a, b);
  default:
    return mxi_gemm_one_block(plan, a, b);
  }
}

/* --- exact --- */

/* A number that every product of two odd parts of scales of up to four significant bits divides: (9 * 5 * 7 * 11 * 13)^2. */
static const double common = 45045.0 * 45045.0;

static double odd_part(double x) {
  if (x == 0 || !isfinite(x)) return 1;
  int e;
  x = fabs(frexp(x, &e));
  while (x != floor(x)) x *= 2;
  return x;
}

/* The sum if it has Inf or NaN, as a number with which IEEE arithmetic gives the right product and sum with what follows. */
static double special_sum(const mxg_plan *plan, mxg_line a, mxg_line b) {
  double acc = 0;
  for (size_t k = 0; k < plan->K; k++) {
    const double sa = a.s[k / plan->block * a.step], sb = b.s[k / plan->block * b.step];
    const double p = mxi_gemm_scaled(a.v[k * a.step], sa, plan->a.divides) * mxi_gemm_scaled(b.v[k * b.step], sb, plan->b.divides);
    if (!isfinite(p)) acc += p; /* finite products do not matter beside Inf or NaN */
  }
  return acc;
}

/* Adds the block's dot times its scales, in units of 1 / common if scales divide. */
static void add_block(mxg_wide *sum, const mxg_plan *plan, mxg_line a, mxg_line b, size_t block) {
  factors f = factors_of(plan, a.s[block * a.step], b.s[block * b.step]);
  double whole = 1, parts = 1;
  if (f.over == 0) return;                  /* all elements are zeros, since all_finite() has held */
  if (plan->a.divides || plan->b.divides) { /* common / over = parts * whole, where parts is an integer and whole a power of two */
    const double odd = odd_part(f.over);
    parts = common / odd;
    whole = odd / f.over;
  }
  lost_part lost;
  const double dot = dot_of(plan, a, b, block, &lost), s = f.a * f.b * whole;
  if (lost.size == 0 && plan->a.scale_bits + plan->b.scale_bits <= 24) {
    mxi_gemm_wide_add_product(sum, dot, s, parts);
    return;
  }
  mxg_wide term;
  mxi_gemm_wide_zero(&term);
  for (size_t k = block * plan->block; k < block_end(plan, block); k++) mxi_gemm_wide_add_product(&term, a.v[k * a.step], b.v[k * b.step], 1);
  mxi_gemm_wide_scale(&term, f.a);
  mxi_gemm_wide_scale(&term, f.b);
  mxi_gemm_wide_scale(&term, whole);
  mxi_gemm_wide_scale(&term, parts);
  mxi_gemm_wide_add(sum, &term);
}

static int line_finite(const mxg_plan *plan, mxg_line x, int divides) {
  for (size_t k = 0; k < plan->K; k++) {
    const double element = x.v[k * x.step], scale = x.s[k / plan->block * x.step];
    if (!isfinite(element) || !isfinite(scale) || (divides && scale == 0 && element != 0)) return 0;
  }
  return 1;
}

static int all_finite(const mxg_plan *plan, mxg_line a, mxg_line b) {
  return line_finite(plan, a, plan->a.divides) && line_finite(plan, b, plan->b.divides);
}

static double sign_of(double x) { return isfinite(x) && x != 0 ? copysign(1, x) : x; }

/* sum / over with everything that follows, rounded once to the output type. All numbers are finite. */
double mxi_gemm_exact_round(const mxg_plan *plan, mxg_wide *sum, double over, float c, float bias) {
  mxi_gemm_wide_scale(sum, (double)plan->a.multiplier);
  mxi_gemm_wide_scale(sum, (double)plan->b.multiplier);
  mxi_gemm_wide_scale(sum, (double)plan->alpha);
  mxi_gemm_wide_add_product(sum, (double)plan->beta, (double)c, over);
  mxi_gemm_wide_add_product(sum, 1, (double)bias, over);
  const mxg_rounding to = mxi_gemm_rounding_of(plan->o.out);
  return mxi_gemm_wide_round(sum, over, to.bits, to.min_exp, to.max_exp);
}

float mxi_gemm_one_exact(const mxg_plan *plan, mxg_line a, mxg_line b, float c, float bias) {
  const int skip = plan->alpha == 0;
  const double ga = (double)plan->a.multiplier, gb = (double)plan->b.multiplier, alpha = (double)plan->alpha, beta = (double)plan->beta;
  const int finite = skip || all_finite(plan, a, b);
  if (!finite || (!skip && (!isfinite(ga) || !isfinite(gb) || !isfinite(alpha))) || !isfinite(beta) || !isfinite(c) || !isfinite(bias)) {
    mxg_wide sum;
    mxi_gemm_wide_zero(&sum);
    for (size_t i = 0; finite && !skip && i < plan->kb; i++) add_block(&sum, plan, a, b, i);
    const double s = finite ? mxi_gemm_wide_sign(&sum) : special_sum(plan, a, b);
    const double product = skip ? 0 : sign_of(s) * sign_of(ga) * sign_of(gb) * sign_of(alpha), joined = sign_of(beta) * sign_of((double)c);
    /* Finite parts do not matter beside Inf or NaN, so only the others are added. */
    return (float)((isfinite(product) ? 0 : product) + (isfinite(joined) ? 0 : joined) + (isfinite(bias) ? 0 : (double)bias));
  }
  const double over = plan->a.divides || plan->b.divides ? common : 1;
  mxg_wide sum;
  mxi_gemm_wide_zero(&sum);
  for (size_t i = 0; !skip && i < plan->kb; i++) add_block(&sum, plan, a, b, i);
  return (float)mxi_gemm_exact_round(plan, &sum, over, c, bias);
}
