/** What the results of a sweep (sweep.h) mean: each arm against its reference, seed by seed, with intervals, and which differences are resolved.
 *
 *  Differences are of runs with one seed: the same data, initial weights and number of steps. An interval is Student's t over the seeds; p values of all arms of
 *  the sweep are corrected together by Holm's method, those of the two evaluations apart. A difference is resolved if its corrected p is below
 *  1 - confidence.
 *
 *  Extra steps are a proxy for "tokens to reach the loss": training losses are smoothed by the mean of the last max(1, N / 20) of N steps; an arm
 *  that ends at a loss which the reference had reached at step t (interpolated between steps) needed N / t - 1 more steps, and one that reached the reference's
 *  last loss at its own step t needed 1 - t / N fewer.
 *
 *  Effects of the knobs of a grid: of a value against the axis's first value, the mean difference of what arms are behind their reference (of their losses
 *  if the sweep has no reference) over all combinations of the other axes, seed by seed; interactions: how much that difference itself differs between
 *  a value of a second axis and that axis's first. A combination counts if all of its runs finished for every seed. Holm's method corrects the main effects
 *  together, and the interactions together.
 *
 *  Claims of the sweep's file: the difference of the two arms' losses, seed by seed; it agrees or disagrees with the claim if p, corrected by Holm's method
 *  over all claims of the file, is below 1 - confidence; a claim with "within" agrees if the interval lies between the two bounds, and disagrees if it lies
 *  beyond one of them.
 *
 *  Cost of an arm: bits a value of the six operands, mean (an operand of a product that is not quantised has 32); time of the three products in units of BF16's,
 *  mean, if elements of 4 bits take a quarter and those of up to 8 bits half of it; operations a value of an operand beyond rounding, mean, as arXiv
 *  2509.17791's table 2 counts them (TECHNIQUES 1.11): stochastic rounding 1, a tensor scale 1, a rotation of size l log2 l, four-over-six 1, random rounding of
 *  scales one a block; on X and W, as grad.operands says: gradient of block scales 4, of the tensor scale 3, slope of scales 1, of elements 15 (spline
 *  log2 40); on the gradient of W: StableSPAM 1, loss scaling 1. Layers in high precision and late switches are not counted. Arms are on the front
 *  if no other with the same reference costs no more in all three respects and is less behind it.
 *
 *  Score (arXiv 2509.17791): S = G / (1 + Omega), G = (M_ref - M) / M_ref with M the mean validation loss of the quantised forward pass, Omega the number of
 *  techniques in the arm's configuration beyond plain rounding, each with weight 1: gradients of block scales, slopes of rounding, Hadamard
 *  rotation, slopes of scale rounding, stochastic rounding, tensor scaling, the gradient of the tensor scale, StableSPAM, loss scaling. A negative G is made
 *  better by a larger Omega, so S ranks arms with a gain only.
 *  Oracle: tests/cli/report.sh and tests/lib/report_statistics.py, against the same statistics in Python and by scipy. */
#ifndef MXGOLD_REPORT_H
#define MXGOLD_REPORT_H

#include <stdint.h>

#include "paired.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef struct mx_report mx_report;

/* The two evaluations of a run. */
enum { MX_EVAL_QUANTISED, MX_EVAL_FP32, MX_EVALS };

/** What an arm costs; lower is better in each respect. */
typedef struct mx_cost {
  double bits, product_time, overhead;
} mx_cost;

typedef struct mx_report_arm {
  const char *name, *reference; /* reference NULL: it is one itself */
  size_t runs, finished, diverged, failed, missing;
  size_t dropped;             /* by successive halving */
  mx_mean loss[MX_EVALS];     /* validation losses of the finished runs */
  mx_mean behind[MX_EVALS];   /* minus the reference's, of the seeds that both finished; of a reference n is 0 */
  double p[MX_EVALS];         /* of behind, corrected; NaN where there is none */
  int resolved[MX_EVALS];     /* 1 worse than the reference, -1 better, 0 not told apart */
  mx_mean extra_steps;        /* a share: .08 is 8 % more */
  mx_mean reached;            /* steps after which the loss was the reference's last; n: runs that came there */
  mx_mean accuracy[MX_EVALS]; /* a share, of tasks that have one; else n is 0 */
  double gain, omega, score;  /* NaN without a reference */
  mx_cost cost;
  int front;             /* 1: no arm beats it in loss and cost */
  const char *beaten_by; /* the arm with the lowest loss that does; NULL if it is on the front */
} mx_report_arm;

/** What a knob does, or (with_axis not NULL) how much that depends on another. */
typedef struct mx_report_effect {
  const char *axis, *level, *base;                /* level instead of base, the axis's first */
  const char *with_axis, *with_level, *with_base; /* NULL: a main effect */
  size_t cells;                                   /* combinations of the other axes that it is a mean over */
  mx_mean mean[MX_EVALS];                         /* of losses; above 0: worse, or worse together */
  double p[MX_EVALS];                             /* corrected */
  int resolved[MX_EVALS];                         /* 1 above 0, -1 below, 0 not told apart */
} mx_report_effect;

/** A claim of the sweep's file about one pair of arms. */
typedef struct mx_report_claim {
  const char *says, *source, *less, *more; /* less, more: names of the arms */
  int eval;                                /* MX_EVAL_QUANTISED or MX_EVAL_FP32 */
  double within;                           /* above 0: they differ by less than this; else less's loss is below more's */
  mx_mean difference;                      /* less's loss minus more's */
  double p;                                /* corrected; NaN of a claim with within */
  int agrees;                              /* 1, -1 disagrees, 0 cannot be told */
} mx_report_claim;

/** Read results.jsonl and the runs' metrics of a sweep's folder.
 *  confidence  of intervals, such as .95
 *  Returns MX_OK; MX_ERR_IO, MX_ERR_FORMAT (the file, its line and what was expected), MX_ERR_ARG (confidence outside 0 to 1), MX_ERR_NOMEM. */
mx_status mx_report_read(mx_report **out, const char *dir, double confidence, mx_error *err);
void mx_report_free(mx_report *report);
/** The index-th arm, in the sweep's order; NULL past the last. */
const mx_report_arm *mx_report_arm_at(const mx_report *report, size_t index);
/** The index-th effect: main effects in the order of the grid, then interactions; NULL past the last. */
const mx_report_effect *mx_report_effect_at(const mx_report *report, size_t index);
/** The index-th claim and pair of arms, in the file's order; NULL past the last. */
const mx_report_claim *mx_report_claim_at(const mx_report *report, size_t index);
/** One to three sentences: how many arms are told from their reference, which is best and worst, what the noise of seeds is. Returns the length. */
size_t mx_report_verdict(char *out, size_t size, const mx_report *report);
/** The arm's smoothed training loss, the mean over its finished seeds, at most n points: steps and losses; low and high, which may be NULL: the lowest and the
 *  highest seed's. Returns how many. */
size_t mx_report_curve(double *steps, double *losses, double *low, double *high, size_t n, const mx_report *report, size_t index);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
