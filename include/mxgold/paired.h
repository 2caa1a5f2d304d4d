/** Computes the statistics of paired runs: the mean difference of two arms with the same seeds, its interval, and corrections for several comparisons.
 *
 *  All sums are in binary64, in the order of the arrays. Threads: every call is reentrant.
 *  Oracle: tests/test_paired.c, against figures of scipy; closed forms for 1 and 2 degrees of freedom. */
#ifndef MXGOLD_PAIRED_H
#define MXGOLD_PAIRED_H

#include <stddef.h>

#include "status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** P(T <= t) of Student's t with so many degrees of freedom (> 0, need not be whole). NaN for NaN or degrees <= 0. Relative error below 1e-12. */
double mx_student_cdf(double t, double degrees);
/** The t with P(T <= t) = p. p 0 and 1 give the infinities; NaN outside. */
double mx_student_quantile(double p, double degrees);

/** A mean of n values with its interval. */
typedef struct mx_mean {
  size_t n;
  double mean;
  double sd;        /* sample standard deviation, of n - 1; NaN for n < 2 */
  double low, high; /* mean -+ t sd / sqrt n at the confidence that was asked for; NaN for n < 2 */
  double p;         /* two-sided, that the mean is 0; NaN for n < 2. All values equal: 1 if they are 0, else 0 */
} mx_mean;

/** The mean of x [n] with its interval at a confidence such as .95. Values that are not finite make every field but n NaN. */

mx_mean mx_mean_of(const double *x, size_t n, double confidence);
/** The same of the differences a[i] - b[i], both [n]. */
mx_mean mx_mean_of_pairs(const double *a, const double *b, size_t n, double confidence);

/** The score of arXiv 2509.17791, S = (reference - loss) / reference / (1 + omega). reference and loss are validation losses; omega is the sum of the
 *  weights of what the arm does beyond plain rounding. A larger omega makes a negative gain better.   Oracle: tests/test_paired.c */
double mx_score(double reference, double loss, double omega);

/** Holm's correction: adjusted[i] is the smallest overall chance of error at which hypothesis i is rejected among all n. A NaN in p stands for no
 *  hypothesis: it stays NaN and is not counted. p and adjusted are [n], and may be the same array.   Source: S. Holm, Scand. J. Statist. 6 (1979) 65-70.
 *  Returns MX_OK or MX_ERR_NOMEM. */
mx_status mx_holm(double *adjusted, const double *p, size_t n);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
