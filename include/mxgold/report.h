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
 *  Score (arXiv 2509.17791): S = G / (1 + Omega), G = (M_ref - M) / M_ref with M the mean validation loss of the quantised forward pass, Omega the number of
 *  techniques in the arm's configuration beyond plain rounding, each with weight 1: gradients of block scales, slopes of rounding, Hadamard
 *  rotation, slopes of scale rounding, stochastic rounding, tensor scaling, the gradient of the tensor scale, StableSPAM, loss scaling. A negative G is made
 *  better by a larger Omega, so S ranks arms with a gain only.
 *  Oracle: tests/cli/report.sh, against the same statistics in Python. */
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

typedef struct mx_report_arm {
  const char *name, *reference; /* reference NULL: it is one itself */
  size_t runs, finished, diverged, failed, missing;
  mx_mean loss[MX_EVALS];    /* validation losses of the finished runs */
  mx_mean behind[MX_EVALS];  /* minus the reference's, of the seeds that both finished; of a reference n is 0 */
  double p[MX_EVALS];        /* of behind, corrected; NaN where there is none */
  int resolved[MX_EVALS];    /* 1 worse than the reference, -1 better, 0 not told apart */
  mx_mean extra_steps;       /* a share: .08 is 8 % more */
  double gain, omega, score; /* NaN without a reference */
} mx_report_arm;

/** Read results.jsonl and the runs' metrics of a sweep's folder.
 *  confidence  of intervals, such as .95
 *  Returns MX_OK; MX_ERR_IO, MX_ERR_FORMAT (the file, its line and what was expected), MX_ERR_ARG (confidence outside 0 to 1), MX_ERR_NOMEM. */
mx_status mx_report_read(mx_report **out, const char *dir, double confidence, mx_error *err);
void mx_report_free(mx_report *report);
/** The index-th arm, in the sweep's order; NULL past the last. */
const mx_report_arm *mx_report_arm_at(const mx_report *report, size_t index);
/** One to three sentences: how many arms are told from their reference, which is best and worst, what the noise of seeds is. Returns the length. */
size_t mx_report_verdict(char *out, size_t size, const mx_report *report);
/** The arm's smoothed training loss, the mean over its finished seeds, at most n points: steps and losses. Returns how many. */
size_t mx_report_curve(double *steps, double *losses, size_t n, const mx_report *report, size_t index);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
