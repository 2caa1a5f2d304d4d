/* Computes products on decoded panels, for every ISA: sixteen outputs of a row lie in the lanes, so that every output is summed in the order of
 * its definition on any ISA. The including file defines, for its ISA:
 *
 *   vf, WF, vd, WD      vectors of binary32 and binary64, and how many lanes they have (16 is a multiple)
 *   F_LOAD F_STORE F_SET1 F_ADD F_MUL F_FMA, D_LOAD D_SET1 D_MUL D_FMA D_STORE_F32   as their names say
 *   D_ADD D_SUB D_ABS D_STORE D_LOAD_F32   the same
 *   D_EXACT(a, b, c)    a * b + c if nothing rounds
 *   D_NUMBER(x)         x, or 0 if it is NaN
 *   D_TO_ODD(s, rest)   s, which is s + rest rounded, as that sum rounded to odd; only the sign of rest matters, and a NaN counts as 0
 *   ADD_TERM(acc, t)    WD binary32 sums at acc become rnd_f32(acc + t), t binary64, exactly one rounding
 *   ADD_QUOTIENT(acc, dot, up, under)  the same for dot * up / under; the bits of its result are lanes that it cannot decide
 *   STORE_NEAR(acc, x, near, error)  stores what x rounds to in binary32; the bits of its result are lanes where x - near and x + near round to
 *                       other numbers, or to numbers that are not finite, or to 0 although error is not 0
 *   ROWS                how many rows have their sums in registers at a time
 *   HIGH, ACROSS        the same for dots: rows, and vectors of columns
 *   TABLE               the name of the mxg_kernels */

#include "gemm/tile/group64.h"

enum { L = MXG_LANES, NF = L / WF, ND = L / WD };

enum { RUN = 256 }; /* so many k of both panels stay in the first-level cache */

/* Sets the dots of a tile over n of k, or adds them to what they are. */
static inline void add_dots(double *dots, const double *a, const double *b, size_t n, int to_them) {
  for (size_t i = 0; i < L; i += HIGH)
    for (size_t j = 0; j < L; j += ACROSS * WD) {
      vd dot[HIGH][ACROSS];
#pragma GCC unroll 16
      for (size_t r = 0; r < HIGH; r++)
#pragma GCC unroll 16
        for (size_t v = 0; v < ACROSS; v++) dot[r][v] = to_them ? D_LOAD(dots + (i + r) * L + j + v * WD) : D_SET1(0.0);
      for (size_t k = 0; k < n; k++) {
        vd bk[ACROSS];
#pragma GCC unroll 16
        for (size_t v = 0; v < ACROSS; v++) bk[v] = D_LOAD(b + k * L + j + v * WD);
#pragma GCC unroll 16
        for (size_t r = 0; r < HIGH; r++) {
          const vd x = D_SET1(a[k * L + i + r]);
#pragma GCC unroll 16
          for (size_t v = 0; v < ACROSS; v++) dot[r][v] = D_EXACT(x, bk[v], dot[r][v]);
        }
      }
#pragma GCC unroll 16
      for (size_t r = 0; r < HIGH; r++)
#pragma GCC unroll 16
        for (size_t v = 0; v < ACROSS; v++) D_STORE(dots + (i + r) * L + j + v * WD, dot[r][v]);
    }
}

static size_t length_of(const mxg_panel *a, size_t block) {
  const size_t k = block * a->block;
  return a->K - k < a->block ? a->K - k : a->block;
}

/* The dots of a block of a tile in binary64: exact if it fits (mxi_gemm_dots_fit), and otherwise rounded at every step. */
static void block_dots(double *dots, const mxg_panel *a, const mxg_panel *b, size_t block) {
  const size_t n = length_of(a, block);
  const double *x = a->v + block * a->block * L, *y = b->v + block * a->block * L;
  add_dots(dots, x, y, n < RUN ? n : RUN, 0);
  for (size_t k = RUN; k < n; k += RUN) add_dots(dots, x + k * L, y + k * L, n - k < RUN ? n - k : RUN, 1);
}

/* WD dots of a block in binary64, with what their operations rounded away: its sum, and the sum of its magnitudes. dot_of() in one.c does
 * the same operations in the same order. */
static inline void dot_with_rest(double *dot, double *rest, double *size, const double *a, const double *b, size_t n) {
  vd s = D_SET1(0.0), lost = D_SET1(0.0), lost_size = D_SET1(0.0);
  for (size_t k = 0; k < n; k++) {
    const vd x = D_SET1(a[k * L]), y = D_LOAD(b + k * L), p = D_MUL(x, y), next = D_ADD(s, p), back = D_SUB(next, s);
    const vd of_product = D_FMA(x, y, D_SUB(D_SET1(-0.0), p)), of_sum = D_ADD(D_SUB(s, D_SUB(next, back)), D_SUB(p, back));
    lost = D_ADD(lost, D_ADD(of_product, of_sum));
    lost_size = D_ADD(lost_size, D_ADD(D_ABS(of_product), D_ABS(of_sum)));
    s = next;
  }
  D_STORE(dot, s);
  D_STORE(rest, lost);
  D_STORE(size, lost_size);
}

static void rounded_dots(mxg_dots *out, const mxg_panel *a, const mxg_panel *b, size_t block) {
  const size_t k = block * a->block, n = a->K - k < a->block ? a->K - k : a->block;
  for (size_t i = 0; i < L; i++)
    for (size_t j = 0; j < L; j += WD)
      dot_with_rest(&out->dot[i * L + j], &out->lost[i * L + j], &out->lost_size[i * L + j], a->v + k * L + i, b->v + k * L + j, n);
}

static void clear(float *acc) {
  for (int i = 0; i < L * L; i++) acc[i] = 0;
}

static void f32_block(float *acc, const mxg_panel *a, const mxg_panel *b) {
  double dots[L * L];
  clear(acc);
  for (size_t block = 0; block < a->kb; block++) {
    const double *sa = a->s + block * L, *sb = b->s + block * L;
    block_dots(dots, a, b, block);
    for (size_t i = 0; i < L; i++)
      for (size_t j = 0; j < L; j += WD) {
        const vd s = D_MUL(D_SET1(sa[i]), D_LOAD(sb + j));
        ADD_TERM(acc + i * L + j, D_EXACT(D_LOAD(dots + i * L + j), s, D_SET1(0.0))); /* + 0 makes a zero term +0 */
      }
  }
}

/* What a + b, rounded to s, leaves of the exact sum. */
static inline vd rest_of(vd s, vd a, vd b) {
  const vd back = D_SUB(s, a);
  return D_ADD(D_SUB(a, D_SUB(s, back)), D_SUB(b, back));
}

/* acc + dot * s as binary32, rounded once, for a product that binary64 cannot hold: it is t + e with |e| at most half a place of t, and acc + t is
 * h + r in the same way. So r + e is rounded to odd, then its sum with h, and that to binary32.
 *
 * Why this is one rounding. A number p of 25 bits that decides the last one (a binary32 number, or half-way between two) lies on the same side of
 * h + (r + e) as of h + v, v being r + e rounded to odd, if p - h is a multiple of two of v's places; then v lies on the same side of p - h as r + e
 * does. If |h| >= |t| / 2, |r + e| is below two places of h, so that v's places are at most 2^-51 of h's, of which p - h is a multiple. Otherwise acc
 * is between -t / 2 and -2 t, so that acc + t is exact: r is 0, and v = e is exact. */
static inline void long_term(float *to, vd x, vd dot, vd s) {
  const vd t = D_EXACT(dot, s, D_SET1(0.0)), e = D_FMA(dot, s, D_SUB(D_SET1(-0.0), t));
  const vd h = D_ADD(x, t), r = rest_of(h, x, t), u = D_ADD(r, e), odd = D_TO_ODD(u, rest_of(u, r, e)), v = D_NUMBER(odd), w = D_ADD(h, v);
  D_STORE_F32(to, D_TO_ODD(w, rest_of(w, h, v)));
}

static void terms_long(float *acc, const double *dots, const double *sa, const double *sb) {
  for (size_t i = 0; i < L; i++)
    for (size_t j = 0; j < L; j += WD)
      long_term(acc + i * L + j, D_LOAD_F32(acc + i * L + j), D_LOAD(dots + i * L + j), D_MUL(D_SET1(sa[i]), D_LOAD(sb + j)));
}

/* For the lanes of `asked`, whose sums were x: where no step of the dot rounds, the term is added exactly. Returns the other lanes. */
static unsigned exact_after_all(float *acc, vd x, vd s, unsigned asked, const double *a, const double *b, size_t n) {
  double dot[WD], rest[WD], size[WD];
  float found[WD];
  unsigned left = 0;
  dot_with_rest(dot, rest, size, a, b, n);
  long_term(found, x, D_LOAD(dot), s);
  for (unsigned v = 0; v < WD; v++) {
    if (!(asked >> v & 1)) continue;
    if (size[v] == 0)
      acc[v] = found[v];
    else
      left |= 1u << v;
  }
  return left;
}

/* acc + dot * s for dots whose every step was rounded, by an interval that holds the exact number: if its ends round to one number, so does all of
 * it. With u = 2^-53, n products and n additions change the dot by at most (n + 1) u (1 + n u) times the sum of the magnitudes, which is at most the
 * product of the norms of both rows (Cauchy and Schwarz); `error` is twice that. The product with s, the sum, and the ends themselves round by 4 u of
 * |acc| + |t| at most, and two more places of the sum (at most 4 u of it) keep the ends away from it, so that rounding them to binary64 first does
 * not matter: hence 8 u. What this leaves are mostly ties and zeros, whose dots are exact. */
static void terms_near(float *acc, uint16_t unsure[L], const double *dots, const mxg_panel *a, const mxg_panel *b, size_t block) {
  const double *sa = a->s + block * L, *sb = b->s + block * L, *na = a->norm + block * L, *nb = b->norm + block * L;
  const double *va = a->v + block * a->block * L, *vb = b->v + block * a->block * L;
  const size_t n = length_of(a, block);
  const vd each = D_SET1((double)(n + 1) * 0x1p-52);
  for (size_t i = 0; i < L; i++)
    for (size_t j = 0; j < L; j += WD) {
      const vd s = D_MUL(D_SET1(sa[i]), D_LOAD(sb + j)), x = D_LOAD_F32(acc + i * L + j);
      const vd error = D_MUL(D_MUL(D_MUL(D_SET1(na[i]), each), D_LOAD(nb + j)), D_ABS(s)), t = D_MUL(D_LOAD(dots + i * L + j), s);
      const vd near = D_ADD(D_MUL(D_ADD(D_ABS(x), D_ABS(t)), D_SET1(0x1p-50)), error);
      unsigned left = STORE_NEAR(acc + i * L + j, D_ADD(x, t), near, error);
      if (left) left = exact_after_all(acc + i * L + j, x, s, left, va + i, vb + j, n);
      unsure[i] |= (uint16_t)(left << j);
    }
}

static void f32_any(float *acc, uint16_t unsure[L], const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b) {
  double dots[L * L];
  clear(acc);
  for (size_t block = 0; block < a->kb; block++) {
    block_dots(dots, a, b, block);
    if (mxi_gemm_dots_fit(plan, a, b, block))
      terms_long(acc, dots, a->s + block * L, b->s + block * L);
    else
      terms_near(acc, unsure, dots, a, b, block);
  }
}

static void terms_divided(float *acc, const double *dots, const mxg_factors *f) {
  for (size_t i = 0; i < L; i++)
    for (size_t j = 0; j < L; j += WD) {
      const vd up = D_MUL(D_SET1(f->up_a[i]), D_LOAD(f->up_b + j)), under = D_MUL(D_SET1(f->under_a[i]), D_LOAD(f->under_b + j));
      float *at = acc + i * L + j, before[WD];
      memcpy(before, at, sizeof before);
      const unsigned left = ADD_QUOTIENT(at, D_LOAD(dots + i * L + j), up, under);
      for (size_t v = 0; left && v < WD; v++)
        if (left >> v & 1)
          at[v] = mxi_gemm_one_quotient(before[v], dots[i * L + j + v], f->up_a[i] * f->up_b[j + v], f->under_a[i] * f->under_b[j + v]);
    }
}

static void f32_divided(float *acc, const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b) {
  double dots[L * L];
  clear(acc);
  for (size_t block = 0; block < a->kb; block++) {
    const mxg_factors f = mxg_factors_of(plan, a->s + block * L, b->s + block * L);
    block_dots(dots, a, b, block);
    terms_divided(acc, dots, &f);
  }
}

/* Sums the terms of the blocks without rounding: each sum but the last takes of a term what it rounds to in its place, and the next sum
 * takes the rest. */
static void exact(double *sums, const mxg_panel *a, const mxg_panel *b, const double *place, int n_sums) {
  double dots[L * L];
  for (int i = 0; i < n_sums * L * L; i++) sums[i] = 0;
  for (size_t block = 0; block < a->kb; block++) {
    const double *sa = a->s + block * L, *sb = b->s + block * L;
    block_dots(dots, a, b, block);
    for (size_t i = 0; i < L; i++)
      for (size_t j = 0; j < L; j += WD) {
        vd t = D_MUL(D_LOAD(dots + i * L + j), D_MUL(D_SET1(sa[i]), D_LOAD(sb + j)));
        double *sum = sums + i * L + j;
        for (int m = 0; m + 1 < n_sums; m++, sum += L * L) {
          const vd c = D_SET1(place[m]), part = D_SUB(D_ADD(t, c), c);
          D_STORE(sum, D_ADD(D_LOAD(sum), part));
          t = D_SUB(t, part);
        }
        D_STORE(sum, D_ADD(D_LOAD(sum), t));
      }
  }
}

static void f32_seq(float *acc, const mxg_panel *a, const mxg_panel *b) {
  for (size_t i = 0; i < L; i += ROWS) {
    vf sum[ROWS][NF];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
      for (int v = 0; v < NF; v++) sum[r][v] = F_SET1(0.0f);
    for (size_t k = 0; k < a->K; k++)
#pragma GCC unroll 16
      for (int v = 0; v < NF; v++) {
        const vf bk = F_LOAD(b->f + k * L + (size_t)v * WF);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) sum[r][v] = F_FMA(F_SET1(a->f[k * L + i + (size_t)r]), bk, sum[r][v]);
      }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
      for (int v = 0; v < NF; v++) F_STORE(acc + (i + (size_t)r) * L + (size_t)v * WF, sum[r][v]);
  }
}

/* A counter builds the tree: stack[level] holds the sum of 2^level neighbours while that bit of the count is set. */
static void f32_pairwise(float *acc, const mxg_panel *a, const mxg_panel *b) {
  for (size_t i = 0; i < L; i++)
#pragma GCC unroll 16
    for (size_t v = 0; v < NF; v++) {
      vf stack[64];
      for (size_t k = 0; k < a->K; k++) {
        vf sum = F_MUL(F_SET1(a->f[k * L + i]), F_LOAD(b->f + k * L + v * WF));
        int level = 0;
        for (size_t n = k; n & 1; n >>= 1) sum = F_ADD(stack[level++], sum);
        stack[level] = sum;
      }
      vf sum = F_SET1(0.0f);
      for (int level = 0, any = 0; level < 64; level++)
        if (a->K >> level & 1) sum = any++ ? F_ADD(stack[level], sum) : stack[level];
      F_STORE(acc + i * L + v * WF, sum);
    }
}

static void f64(float *acc, const mxg_panel *a, const mxg_panel *b) {
  for (size_t i = 0; i < L; i += ROWS)
    for (size_t j = 0; j < L; j += WD) {
      vd sum[ROWS];
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; r++) sum[r] = D_SET1(0.0);
      for (size_t k = 0; k < a->K; k++) {
        const vd bk = D_LOAD(b->v + k * L + j);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) sum[r] = D_FMA(D_SET1(a->v[k * L + i + (size_t)r]), bk, sum[r]);
      }
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; r++) D_STORE_F32(acc + (i + (size_t)r) * L + j, sum[r]);
    }
}

static void group64(float *acc, const mxg_panel *a, const mxg_panel *b) {
  float sum[L * L];
  for (int i = 0; i < L * L; i++) acc[i] = 0;
  for (size_t k = 0; k < a->K; k += MXG_GROUP) {
    mxg_panel x = *a, y = *b;
    x.f += k * L, y.f += k * L;
    x.K = y.K = a->K - k < MXG_GROUP ? a->K - k : MXG_GROUP;
    f32_seq(sum, &x, &y);
    for (int i = 0; i < L * L; i++) acc[i] = mxg_add_toward_zero(acc[i], sum[i]);
  }
  for (int i = 0; i < L * L; i++) acc[i] = mxg_to_lattice(acc[i]);
}

const mxg_kernels TABLE = {f32_block, f32_seq,     f32_pairwise, f64,           group64,     exact,
                           f32_any,   f32_divided, terms_long,   terms_divided, rounded_dots};
