/* Declares how a number is read off the data: each block, or element, allows an interval, and the right number lies in (nearly) all of them. */
#ifndef MX_VERIFY_TRIAL_OVERLAP_H
#define MX_VERIFY_TRIAL_OVERLAP_H

#include "verify/trial/observe.h"

typedef struct interval {
  double least, most;
} interval;

/* How a code was rounded from its value. */
typedef enum toward { TOWARD_NEAREST, TOWARD_UP, TOWARD_DOWN, TOWARD_EITHER, TOWARD_COUNT } toward;

/** The interval of values that round to a positive, finite code. Returns 0 if the code tells nothing (zero, the largest, NaN). */
int mxi_code_interval(interval *out, const mx_format *f, uint32_t code, toward way);
/** Finds where most intervals overlap and returns how many do; the list gets sorted. 0 if memory ran out, which is noted in lack. */
size_t mxi_overlap(interval *out, interval *list, size_t n, shortage *lack);
/** The interval of scale.max (normed: of scale.max / tensor.target, from max|X|) that the ordinary blocks allow. Returns the share of them that
 *  agrees. */
double mxi_scale_max_interval(interval *out, const observation *o, toward way, int normed);
/** The interval of elem.prescale times the factors before it (normed: without tensor.target / max|X|). Returns the share of elements that agrees. */
double mxi_prescale_interval(interval *out, const observation *o, toward way, int normed);
/** The simplest number in [least, most], 0 if there is none with a small denominator. */
double mxi_simplest_between(double least, double most);

#endif
