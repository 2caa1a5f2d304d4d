/* Tries other orders than that of SPEC section 4 for the factors after a right sum: tensor scales one after the other, or a product of factors
 * that is not rounded. It also tries sums that began with another output's, because an accumulator was not cleared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/judge/internal.h"

typedef struct factors {
  float ga, gb, alpha;
  double a, b; /* the tensor scales as the exact quotients that their multipliers round */
} factors;

/* A multiplier is taken for the stored scale divided by a whole number if that number is at most this (2688 is the largest target in use). With a
 * larger limit any small multiplier passes for such a quotient, since near 2^24 every number is whole; with a smaller one, targets that someone sets
 * are lost. */
static const double MOST_DIVISOR = 1e6;

/* Finds the stored scale divided by a whole number, if the multiplier is that quotient rounded. */
static double quotient(float multiplier, const mx_tensor *t) {
  const double stored = (double)t->tensor_scale, n = round(stored / (double)multiplier);
  return multiplier != 1 && t->has_tensor_scale && n > 1 && n < MOST_DIVISOR && (float)(stored / n) == multiplier ? stored / n
                                                                                                                  : (double)multiplier;
}

static float chain(const factors *f, int kind, float acc) {
  volatile float x = acc; /* one rounding a step */
  switch (kind) {
  case 0:
    x *= f->ga;
    x *= f->gb;
    x *= f->alpha;
    break;
  case 1:
    x *= f->gb;
    x *= f->ga;
    x *= f->alpha;
    break;
  case 2:
    x *= f->alpha;
    x *= f->ga;
    x *= f->gb;
    break;
  case 3:
    x *= f->ga * f->gb;
    x *= f->alpha;
    break;
  case 4:
    x *= f->alpha;
    x *= f->ga * f->gb;
    break;
  case 5:
    x = (float)((double)x * ((double)f->ga * (double)f->gb * (double)f->alpha));
    break;
  case 6:
    x = (float)((double)x * (f->a * f->b * (double)f->alpha));
    break;
  default:
    x *= (float)(f->a * f->b * (double)f->alpha);
  }
  return x;
}

static const char *const chains[] = {
    "the tensor scale of A, that of B and alpha are multiplied onto the sum one after the other",
    "the tensor scale of B, that of A and alpha are multiplied onto the sum one after the other",
    "alpha, the tensor scale of A and that of B are multiplied onto the sum one after the other",
    "the tensor scales are multiplied onto the sum before alpha, each time rounded",
    "alpha is multiplied onto the sum before the tensor scales, each time rounded",
    "the product of the tensor scales and alpha is not rounded before it is multiplied onto the sum",
    "the tensor scales and their product are not rounded before they are multiplied onto the sum",
    "the tensor scales are not rounded before they are multiplied with each other",
};

static float finish(const judge_job *j, size_t i, float d) {
  return (float)mxi_judge_round(mxi_judge_after(j, i, (double)d),
                                &mxi_judge_types[j->type == MX_F16    ? JUDGE_F16
                                                 : j->type == MX_BF16 ? JUDGE_BF16
                                                                      : JUDGE_F32],
                                JUDGE_RNE, 0, 0);
}

/* Computes the sums without what follows them, under a model: those of the sample, or all. */
static int sums(float *acc, const judge_job *j, int model, const size_t (*pairs)[2], size_t n) {
  mx_gemm_problem p = j->right;
  p.a.multiplier = p.b.multiplier = NULL;
  p.options.alpha = NULL;
  p.options.c = NULL;
  p.options.bias = NULL;
  return j->models[model].id != MX_GEMM_EXACT && !mxi_judge_run(j, acc, &p, model, MX_F32, pairs, n);
}

static int fits_sample(const judge_job *j, const factors *f, int kind, const float *acc) {
  for (size_t i = 0; i < j->n_sample; i++) {
    const size_t at = j->sample[i][0] * j->right.N + j->sample[i][1];
    if (!mxi_judge_same(j, j->got[at], finish(j, at, chain(f, kind, acc[i])))) return 0;
  }
  return 1;
}

static void in_another_order(judge_job *j) {
  const size_t total = j->right.M * j->right.N;
  factors f = {.ga = j->right.a.multiplier ? *j->right.a.multiplier : 1,
               .gb = j->right.b.multiplier ? *j->right.b.multiplier : 1,
               .alpha = j->right.options.alpha ? *j->right.options.alpha : 1};
  f.a = quotient(f.ga, j->a);
  f.b = quotient(f.gb, j->b);
  if ((f.ga != 1) + (f.gb != 1) + (f.alpha != 1) < 2 || f.alpha == 0) return; /* one factor has one order */
  float *acc = noted(malloc((total + 1) * sizeof *acc), j->lack), some[JUDGE_SAMPLE];
  int found = acc == NULL;
  for (int m = 0; m < j->n_models && !found; m++) {
    if (!sums(some, j, m, (const size_t(*)[2])j->sample, j->n_sample)) continue;
    for (int k = 0; k < (int)(sizeof chains / sizeof chains[0]) && !found; k++) {
      if (!fits_sample(j, &f, k, some) || !sums(acc, j, m, NULL, 0)) continue;
      size_t i = 0;
      while (i < total && mxi_judge_same(j, j->got[i], finish(j, i, chain(&f, k, acc[i])))) i++;
      if ((found = i == total)) mxi_judge_say(j, j->models[m].name, j->out->differ, "%s", chains[k]);
    }
  }
  free(acc);
}

/* ---- an accumulator that was not cleared */

/* A sum that began with another one is rounded differently from the sum of both. It counts if it is off by no more than this, relative to both and
 * to the largest output. A larger tolerance would admit other causes; a smaller one would miss long sums, whose roundings add up. */
static const double OF_BOTH = 0x1p-16, OF_LARGEST = 0x1p-18;
/* More than one in so many wrong outputs must follow a sum that was not zero; after zeros, nothing shows. */
enum { SHOWN_ONE_IN = 2 };

/* Does every output hold its own sum plus that of the output `shift` before it, or with `all` of every output before it? Outputs of the first tile
 * are right. */
static int holds_more(const judge_job *j, size_t down, size_t right, int all, double size) {
  const size_t M = j->right.M, N = j->right.N;
  uint64_t differs = 0;
  for (size_t i = 0; i < M * N; i++) {
    const size_t r = i / N, c = i % N;
    const int first = r < down || c < right;
    const double before = first ? 0 : (double)(all ? j->got : j->want)[(r - down) * N + c - right];
    const double want = (double)j->want[i], got = (double)j->got[i];
    if (!isfinite(got) || !isfinite(want) || !isfinite(before)) return 0;
    if (fabs(got - want - before) > OF_BOTH * (fabs(want) + fabs(before)) + OF_LARGEST * size) return 0;
    differs += !first && before != 0;
  }
  return differs * SHOWN_ONE_IN > j->out->differ;
}

static void not_cleared(judge_job *j) {
  static const size_t tiles[] = {8, 16, 32, 64, 128, 256};
  const size_t M = j->right.M, N = j->right.N;
  double size = 0;
  if (j->right.options.c || j->right.options.bias || j->type != MX_F32) return;
  for (size_t i = 0; i < M * N; i++) size = fmax(size, isfinite(j->want[i]) ? fabs((double)j->want[i]) : 0);
  for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++)
    for (int across = 0; across < 2; across++)
      for (int all = 0; all < 2; all++) {
        if (tiles[t] >= (across ? N : M) || !holds_more(j, across ? 0 : tiles[t], across ? tiles[t] : 0, all, size)) continue;
        mxi_judge_say(j, "", j->out->differ, "an accumulator is not cleared: each %zu %s hold the sum of %s too", tiles[t],
                      across ? "columns" : "rows",
                      all      ? "all before them"
                      : across ? "the columns before them"
                               : "the rows before them");
        return;
      }
}

void mxi_judge_chains(judge_job *j) {
  if (!j->raw || j->out->differ < JUDGE_FEWEST) return;
  in_another_order(j);
  if (!j->out->n_findings) not_cleared(j);
}
