/** Says what the results of a sweep (sweep.h) mean: how far each arm is from its reference, with intervals, and which differences are resolved.
 *
 *  A difference is taken between two runs with the same seed, and therefore with the same data, initial weights and number of steps. Its interval is
 *  Student's t over the seeds. The p values of all arms of the sweep are corrected together by Holm's method, separately for each of the two
 *  evaluations. A difference is resolved if its corrected p is below 1 - confidence.
 *
 *  Threads: reentrant; a report is only read once it is made.
 *  Oracle: tests/cli/report.sh and tests/lib/report_statistics.py, against the same statistics in Python and by scipy. */
#ifndef MXGOLD_REPORT_H
#define MXGOLD_REPORT_H

#include <stdint.h>

#include "paired.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** A report: the results of one sweep with their statistics. */
typedef struct mx_report mx_report;

/* The two evaluations of a run. */
enum { MX_EVAL_QUANTISED, MX_EVAL_FP32, MX_EVALS };

/** What an arm costs, in three respects; in each, lower is better. Layers in high precision and late switches are not counted. */
typedef struct mx_cost {
  /* Mean bits a value over the six operands. An operand of a product that is not quantised has 32. */
  double bits;
  /* Mean time of the three products, in units of the time in BF16. Elements of 4 bits are taken to need a quarter of it, elements of up to 8 bits half. */
  double product_time;
  /* Mean operations a value beyond rounding, as table 2 of arXiv 2509.17791 counts them (TECHNIQUES 1.11):
   *   of an operand                stochastic rounding 1, a tensor scale 1, a rotation of size l log2 l, four-over-six 1, random rounding of scales 1 a block
   *   of X and W (grad.operands)   gradient of block scales 4, of the tensor scale 3, slope of scales 1, slope of elements 15 (spline: log2 40)
   *   of the gradient of W         StableSPAM 1, loss scaling 1 */
  double overhead;
} mx_cost;

/* Techniques that the score counts: gradients of block scales, slopes of rounding, Hadamard rotation, slopes of scale rounding, stochastic rounding,
 * tensor scaling, the gradient of the tensor scale, StableSPAM, loss scaling. */
enum {
  MX_TECHNIQUE_GRAD_CONFIG,
  MX_TECHNIQUE_GRAD_QPRIME,
  MX_TECHNIQUE_HADAMARD,
  MX_TECHNIQUE_GRAD_SCALE_QPRIME,
  MX_TECHNIQUE_SR,
  MX_TECHNIQUE_TENSOR_SCALE,
  MX_TECHNIQUE_GRAD_TENSOR,
  MX_TECHNIQUE_STABLESPAM,
  MX_TECHNIQUE_LOSS_SCALING,
  MX_TECHNIQUES
};
/** The name by which mx_report_weigh() knows it, such as "hadamard"; NULL past the last. */
const char *mx_technique_name(int technique);

/** One arm.
 *
 *  Extra steps are a proxy for "tokens to reach the loss". Training losses are smoothed by the mean of the last max(1, N / 20) of N steps. If the
 *  arm ends at a loss that the reference had reached at step t (interpolated between steps), the arm needed N / t - 1 more steps, as a share. If the
 *  arm reached the reference's last loss at its own step t, it needed 1 - t / N fewer.
 *
 *  The score is S = G / (1 + Omega) of arXiv 2509.17791. G = (M_ref - M) / M_ref, where M is the mean validation loss of the quantised forward pass.
 *  Omega is the sum of the weights of the techniques in the arm's configuration beyond plain rounding (MX_TECHNIQUE_*), 1 each unless
 *  mx_report_weigh() says otherwise. A larger Omega makes a negative G better, so S ranks only arms with a gain.
 *
 *  An arm is on the front if no other arm with the same reference is less far behind it and costs no more in any of the three respects. */
typedef struct mx_report_arm {
  const char *name, *reference; /* reference NULL: it is one itself */
  size_t runs, finished, diverged, failed, missing;
  size_t dropped;             /* by successive halving */
  mx_mean loss[MX_EVALS];     /* validation losses of the finished runs */
  mx_mean behind[MX_EVALS];   /* minus the reference's, of the seeds that both finished; of a reference n is 0 */
  double p[MX_EVALS];         /* of behind, corrected; NaN where there is none */
  int resolved[MX_EVALS];     /* 1 worse than the reference, -1 better, 0 not told apart */
  mx_mean extra_steps;        /* a share: .08 is 8 % more */
  mx_mean reached;            /* steps after which the loss was the reference's last; n: runs that got there */
  mx_mean accuracy[MX_EVALS]; /* a share, of tasks that have one; else n is 0 */
  unsigned techniques;        /* bit MX_TECHNIQUE_*: the arm uses it */
  double omega;               /* the sum of their weights; NaN if no run finished */
  double gain, score;         /* NaN without a reference */
  mx_cost cost;
  int front;             /* 1: no arm beats it in loss and cost */
  const char *beaten_by; /* the arm with the lowest loss that does; NULL if it is on the front */
} mx_report_arm;

/** What a knob of the grid does (a main effect), or, if with_axis is not NULL, how much that depends on another knob (an interaction).
 *
 *  A main effect compares a value of an axis with the axis's first value. It is the mean, over all combinations of the other axes and seed by seed, of
 *  the difference in how far arms are behind their reference, or in their losses if the sweep has no reference. An interaction is how much that
 *  difference changes between the first value of a second axis and another of its values. A combination counts if all of its runs finished for every
 *  seed. Holm's method corrects all main effects together, and all interactions together. */
typedef struct mx_report_effect {
  const char *axis, *level, *base;                /* level instead of base, the axis's first */
  const char *with_axis, *with_level, *with_base; /* NULL: a main effect */
  size_t cells;                                   /* combinations of the other axes that it is a mean over */
  mx_mean mean[MX_EVALS];                         /* of losses; above 0: worse, or worse together */
  double p[MX_EVALS];                             /* corrected */
  int resolved[MX_EVALS];                         /* 1 above 0, -1 below, 0 not told apart */
} mx_report_effect;

/** A claim of the sweep's file about one pair of arms, held against the difference of their losses, seed by seed. The results agree or disagree with
 *  the claim if p, corrected by Holm's method over all claims of the file, is below 1 - confidence. A claim with "within" has two bounds: the results
 *  agree if the interval lies between them, and disagree if it lies beyond one of them. */
typedef struct mx_report_claim {
  const char *says, *source, *less, *more; /* less, more: names of the arms */
  int eval;                                /* MX_EVAL_QUANTISED or MX_EVAL_FP32 */
  double within;                           /* above 0: they differ by less than this; else less's loss is below more's */
  mx_mean difference;                      /* less's loss minus more's */
  double p;                                /* corrected; NaN of a claim with within */
  int agrees;                              /* 1, -1 disagrees, 0 cannot be told */
} mx_report_claim;

/** Read results.jsonl and the runs' metrics of a sweep's folder. The caller frees *out with mx_report_free().
 *  confidence  of intervals, such as .95
 *  Returns MX_OK; MX_ERR_IO, MX_ERR_FORMAT (the file, its line and what was expected), MX_ERR_ARG (confidence outside 0 to 1), MX_ERR_NOMEM. */
mx_status mx_report_read(mx_report **out, const char *dir, double confidence, mx_error *err);
void mx_report_free(mx_report *report);
/** Give a technique another weight in the score than 1: omega and score of every arm follow. arXiv 2509.17791 has such weights in a table that is not
 *  public. Returns MX_OK; MX_ERR_ARG: no such technique (the line names the nearest), or a weight that is negative or not finite.
 *  Threads: not beside other calls on the same report.   Oracle: tests/cli/report.sh, by Python. */
mx_status mx_report_weigh(mx_report *report, const char *technique, double weight, mx_error *err);
/** The weight that it has now; NaN past the last. */
double mx_report_weight(const mx_report *report, int technique);
/** The index-th arm, in the sweep's order; NULL past the last. */
const mx_report_arm *mx_report_arm_at(const mx_report *report, size_t index);
/** The index-th effect: main effects in the order of the grid, then interactions; NULL past the last. */
const mx_report_effect *mx_report_effect_at(const mx_report *report, size_t index);
/** The index-th claim and pair of arms, in the file's order; NULL past the last. */
const mx_report_claim *mx_report_claim_at(const mx_report *report, size_t index);
/** Write one to three sentences that say how many arms differ from their reference, which is best and worst, and how much the loss varies between
 *  seeds. Returns the length of the whole text, as snprintf does. */
size_t mx_report_verdict(char *out, size_t size, const mx_report *report);
/** The curve of an arm's smoothed training loss.
 *  steps, losses  [n]: at most n points of the mean over its finished seeds
 *  low, high      [n]: the lowest and the highest seed's loss at each point; either may be NULL
 *  Returns how many points there are. */
size_t mx_report_curve(double *steps, double *losses, double *low, double *high, size_t n, const mx_report *report, size_t index);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
