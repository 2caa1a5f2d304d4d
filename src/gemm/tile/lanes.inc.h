/* Computes products on decoded panels, for every ISA: sixteen outputs of a row lie in the lanes, so that every output is summed in the order of
 * its definition on any ISA. The including file defines, for its ISA:
 *
 *   vf, WF, vd, WD      vectors of binary32 and binary64, and how many lanes they have (16 is a multiple)
 *   F_LOAD F_STORE F_SET1 F_ADD F_MUL F_FMA, D_LOAD D_SET1 D_MUL D_FMA D_STORE_F32   as their names say
 *   D_ADD D_SUB D_ABS D_STORE   the same
 *   D_EXACT(a, b, c)    a * b + c if nothing rounds
 *   ADD_TERM(acc, t)    WD binary32 sums at acc become rnd_f32(acc + t), t binary64, exactly one rounding
 *   ADD_QUOTIENT(acc, t, over)  optional: the same for t / over; the bits of its result are lanes that it cannot decide
 *   ROWS                how many rows have their sums in registers at a time
 *   TABLE               the name of the mxg_kernels */

#include "gemm/tile/group64.h"

enum { L = MXG_LANES, NF = L / WF, ND = L / WD };

/* The dots of a block for ROWS rows and WD columns, which mxi_gemm_block_fits() has found to be exact in binary64. */
static inline void dot_rows(vd dot[ROWS], const double *a, const double *b, size_t n) {
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) dot[r] = D_SET1(0.0);
  for (size_t k = 0; k < n; k++) {
    const vd bk = D_LOAD(b + k * L);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) dot[r] = D_EXACT(D_SET1(a[k * L + (size_t)r]), bk, dot[r]);
  }
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

static void f32_block(float *acc, const mxg_panel *a, const mxg_panel *b) {
  for (int i = 0; i < L * L; i++) acc[i] = 0;
  for (size_t block = 0; block < a->kb; block++) {
    const size_t k = block * a->block, n = a->K - k < a->block ? a->K - k : a->block;
    const double *sa = a->s + block * L, *sb = b->s + block * L;
    for (size_t i = 0; i < L; i += ROWS)
      for (size_t j = 0; j < L; j += WD) {
        vd dot[ROWS];
        dot_rows(dot, a->v + k * L + i, b->v + k * L + j, n);
#pragma GCC unroll 16
        for (size_t r = 0; r < ROWS; r++) {
          const vd s = D_MUL(D_SET1(sa[i + r]), D_LOAD(sb + j));
          ADD_TERM(acc + (i + r) * L + j, D_EXACT(dot[r], s, D_SET1(0.0))); /* + 0 makes a zero term +0 */
        }
      }
  }
}

#ifdef ADD_QUOTIENT
static void f32_divided(float *acc, uint16_t unsure[L], const mxg_panel *a, const mxg_panel *b) {
  for (int i = 0; i < L * L; i++) acc[i] = 0;
  for (int i = 0; i < L; i++) unsure[i] = 0;
  for (size_t block = 0; block < a->kb; block++) {
    const size_t k = block * a->block, n = a->K - k < a->block ? a->K - k : a->block;
    const double *sa = a->s + block * L, *sb = b->s + block * L;
    for (size_t i = 0; i < L; i += ROWS)
      for (size_t j = 0; j < L; j += WD) {
        vd dot[ROWS];
        dot_rows(dot, a->v + k * L + i, b->v + k * L + j, n);
#pragma GCC unroll 16
        for (size_t r = 0; r < ROWS; r++)
          unsure[i + r] |= (uint16_t)(ADD_QUOTIENT(acc + (i + r) * L + j, dot[r], D_MUL(D_SET1(sa[i + r]), D_LOAD(sb + j))) << j);
      }
  }
}
#else
#define f32_divided NULL
#endif

/* Sums the terms of the blocks without rounding: each sum but the last takes of a term what it rounds to in its place, and the next sum
 * takes the rest. */
static void exact(double *sums, const mxg_panel *a, const mxg_panel *b, const double *place, int n_sums) {
  for (int i = 0; i < n_sums * L * L; i++) sums[i] = 0;
  for (size_t block = 0; block < a->kb; block++) {
    const size_t k = block * a->block, n = a->K - k < a->block ? a->K - k : a->block;
    const double *sa = a->s + block * L, *sb = b->s + block * L;
    for (size_t i = 0; i < L; i += ROWS)
      for (size_t j = 0; j < L; j += WD) {
        vd dot[ROWS];
        dot_rows(dot, a->v + k * L + i, b->v + k * L + j, n);
#pragma GCC unroll 16
        for (size_t r = 0; r < ROWS; r++) {
          vd t = D_MUL(dot[r], D_MUL(D_SET1(sa[i + r]), D_LOAD(sb + j)));
          double *sum = sums + (i + r) * L + j;
          for (int m = 0; m + 1 < n_sums; m++, sum += L * L) {
            const vd c = D_SET1(place[m]), part = D_SUB(D_ADD(t, c), c);
            D_STORE(sum, D_ADD(D_LOAD(sum), part));
            t = D_SUB(t, part);
          }
          D_STORE(sum, D_ADD(D_LOAD(sum), t));
        }
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

const mxg_kernels TABLE = {f32_block, f32_seq, f32_pairwise, f64, group64, exact, f32_divided, rounded_dots};
