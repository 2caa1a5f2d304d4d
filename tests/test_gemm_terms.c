/* Tests the terms of f32_block that need more than binary64 holds: the kernels of every ISA on numbers made for the worst, against exact fixed-point
 * numbers; and whole products by each of the ways, against ref_gemm. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "gemm/codes/codes.h"
#include "gemm/internal.h"
#include "gemm/tile/wide.h"
#include "lib/operands.h"
#include "lib/run.h"
#include "mxgold/isa.h"

enum { L = MXG_LANES, TILE = L * L, ROUNDS = 200 };

static uint64_t state;
static uint32_t draw(uint32_t n) { return operands_draw(71, state++) % n; }

/* A number of up to so many significant bits, and often of few. */
static double number_of(uint32_t bits, int least, int span) {
  const uint32_t kept = draw(4) ? bits : 1 + draw(bits);
  const uint64_t m = ((uint64_t)operands_draw(72, state) << 32 | operands_draw(73, state)) >> (64 - kept);
  state++;
  return ldexp(draw(2) ? (double)m : -(double)m, least + (int)draw((uint32_t)span));
}

/* A sum so far that makes the next one hard: any number, one near minus the term, or one that leaves the term half a place, or a little beside it. */
static float sum_beside(double term) {
  const uint32_t kind = draw(5);
  if (kind == 0) return 0;
  if (kind == 1) return (float)number_of(24, -60, 80);
  const float near = (float)-term;
  if (kind == 2) return isfinite(near) ? near : 1;
  if (kind == 3) return isfinite(near) ? nextafterf(near, draw(2) ? INFINITY : -INFINITY) : 1;
  int e;
  frexp(term, &e);
  return (float)ldexp((double)(0x800000 + draw(0x800000)) * (draw(2) ? 1 : -1), e + (int)draw(5) - 2);
}

/* A dot under scales of powers of two whose sum with acc is a tie of binary32 but for something far below. */
static double beside_a_tie(float *acc, double s) {
  const double odd = (double)(0x1000001 + 2 * draw(0x7FFFFF)) * (draw(2) ? 1 : -1); /* 25 bits */
  const double little = ldexp(draw(2) ? 1 : -1, -28 - (int)draw(40));
  if (draw(2)) { /* the term is the tie */
    *acc = (float)(little * s);
    return odd;
  }
  *acc = (float)((odd - 1) * s); /* the term is half a place, and a little beside it */
  return 1 + ldexp(draw(2) ? 1 : -1, -52 + (int)draw(20));
}

static float exact_term(float acc, double dot, double up, double under) {
  mxg_wide sum, one;
  mxi_gemm_wide_zero(&sum);
  mxi_gemm_wide_zero(&one);
  mxi_gemm_wide_add_product(&sum, dot, up, 1);
  mxi_gemm_wide_add_product(&one, (double)acc, under, 1);
  mxi_gemm_wide_add(&sum, &one);
  return (float)mxi_gemm_wide_round(&sum, under, 24, -149, 128);
}

static void compare(const float *got, const float *want, const double *dots, const float *acc, const char *what) {
  for (int i = 0; i < TILE; i++)
    ck_assert_msg(!memcmp(&got[i], &want[i], sizeof *got), "%s: %a + %a times its scales is %a, expected %a", what, (double)acc[i], dots[i],
                  (double)got[i], (double)want[i]);
}

static const mxg_kernels *kernels_of(size_t mask) { return mxi_gemm_kernels_best(&(mx_exec){.isa_mask = operands_masks[mask]}); }

START_TEST(long_terms) {
  double dots[TILE], sa[L], sb[L];
  float acc[TILE], got[TILE], want[TILE];
  for (int round = 0; round < ROUNDS; round++) {
    const int low = round % 4 ? 0 : -70; /* some results are subnormal */
    for (int i = 0; i < L; i++)
      sa[i] = i % 2 ? number_of(24, low - 40, 20) : ldexp(1, -(int)draw(9)),
      sb[i] = i % 2 ? number_of(24, low - 40, 20) : ldexp(1, -(int)draw(9));
    for (int i = 0; i < TILE; i++) {
      dots[i] = draw(50) ? number_of(53, -30, 10) : 0;
      acc[i] = sum_beside(dots[i] * sa[i / L] * sb[i % L]);
      if (i / L % 2 == 0 && i % 2 == 0) dots[i] = beside_a_tie(&acc[i], sa[i / L] * sb[i % L]);
      want[i] = exact_term(acc[i], dots[i], sa[i / L] * sb[i % L], 1);
    }
    for (size_t m = 0; m < 3; m++) {
      memcpy(got, acc, sizeof got);
      kernels_of(m)->terms_long(got, dots, sa, sb);
      compare(got, want, dots, acc, "terms_long");
    }
  }
}
END_TEST

START_TEST(quotients) {
  double dots[TILE], scale[4][L];
  float acc[TILE], got[TILE], want[TILE];
  const mxg_factors f = {scale[0], scale[1], scale[2], scale[3]};
  for (int round = 0; round < ROUNDS; round++) {
    const uint32_t bits = round % 2 ? 4 : 24;
    for (int i = 0; i < L; i++) {
      for (int k = 0; k < 4; k++) scale[k][i] = k < 2 && round % 3 ? 1 : number_of(bits, -10, 8);
      for (int k = 2; k < 4; k++) scale[k][i] = scale[k][i] == 0 ? 1 : scale[k][i];
    }
    for (int i = 0; i < TILE; i++) {
      const double up = scale[0][i / L] * scale[1][i % L], under = scale[2][i / L] * scale[3][i % L];
      dots[i] = number_of(round % 3 ? 20 : 5, -2, 2); /* dot * up has at most 53 bits */
      acc[i] = sum_beside(dots[i] * up / under);
      want[i] = exact_term(acc[i], dots[i], up, under);
    }
    for (size_t m = 0; m < 3; m++) {
      memcpy(got, acc, sizeof got);
      kernels_of(m)->terms_divided(got, dots, &f);
      compare(got, want, dots, acc, "terms_divided");
    }
  }
}
END_TEST

/* Each way of f32_block: packed codes with wide scales; long and near terms; quotients of one operand and of both. */
START_TEST(ways) {
  static const char *const specs[][2] = {
      {"block=row scale=fp32 scale.rule=value", "block=row scale=fp32 scale.rule=value"},
      {"block=1x16 scale=fp32 scale.rule=value", "block=1x16 scale=bf16 scale.rule=value"},
      {"block=1x40 scale=fp32", "block=1x40 scale=fp32"},
      {"block=1x16 scale=e4m3 scale.form=encode scale.rule=value", "block=1x16 scale=e4m3 scale.form=encode scale.rule=value"},
      {"block=1x32 scale=ue5m3 scale.form=encode scale.rule=value", "block=1x32 scale=fp32"},
      {"block=row scale=e4m3", "block=row scale=e4m3 scale.form=encode scale.rule=value"},
      {"elem=e5m2 block=row scale=fp32 scale.rule=value", "block=row scale=fp32 scale.rule=value"},
      {"elem=e4m3 block=tensor scale=fp32 scale.rule=value", "elem=e4m3 block=tensor scale=fp32 scale.rule=value"},
      {"elem=e5m2 block=tensor scale=fp32 scale.rule=value", "elem=e4m3 block=tensor scale=fp32 scale.rule=value"},
      {"elem=e5m2 block=1x128 scale=fp32 scale.rule=value", "elem=e5m2 block=1x128 scale=fp32 scale.rule=value"},
      {"elem=e5m2", "elem=e5m2"},
      {"elem=none", "elem=e4m3 block=1x96"},
      {"elem=none", "elem=none"},
      {"elem=e5m2 block=1x128 scale=e4m3 scale.form=encode scale.rule=value",
       "elem=e5m2 block=1x128 scale=e4m3 scale.form=encode scale.rule=value"}};
  static const size_t sizes[][3] = {{3, 18, 328}, {17, 5, 640}};
  const mx_spec as = operands_spec(specs[_i][0]), bs = operands_spec(specs[_i][1]);
  for (size_t z = 0; z < 2; z++)
    for (operands_kind kind = 0; kind <= OPERANDS_ZEROS; kind++) {
      if (kind == OPERANDS_KINDS) continue;
      const size_t M = sizes[z][0], N = sizes[z][1], K = sizes[z][2];
      mx_tensor a, b;
      operands_fill(&a, &as, M, K, kind, 11);
      operands_fill(&b, &bs, N, K, kind, 23);
      float got[17 * 18], want[17 * 18];
      mx_gemm_options o = {.model = MX_GEMM_F32_BLOCK};
      mx_error err;
      ck_assert_int_eq(ref_gemm(want, N, &a, &as, &b, &bs, &o, NULL), MX_OK);
      for (size_t m = 0; m < 3; m++) {
        char what[200];
        o.exec.isa_mask = operands_masks[m];
        memset(got, 0xAA, sizeof got);
        if (mx_gemm(got, N, &a, &as, &b, &bs, &o, &err)) ck_abort_msg("%s x %s: %s", specs[_i][0], specs[_i][1], err.text);
        snprintf(what, sizeof what, "%s x %s, %zu x %zu x %zu, kind %d, mask %zu", specs[_i][0], specs[_i][1], M, N, K, kind, m);
        operands_compare(got, want, M * N, MX_F32, what);
      }
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gemm_terms");
  TCase *t = tcase_create("terms");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, long_terms);
  tcase_add_test(t, quotients);
  tcase_add_loop_test(t, ways, 0, 14);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
