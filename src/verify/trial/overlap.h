/* Declares how a number is read off the data: each block, or element, allows an interval, and the right number lies in (nearly) all of them. */
#ifndef MX_VERIFY_TRIAL_OVERLAP_H
#define MX_VERIFY_TRIAL_OVERLAP_H

#include "verify/trial/observe.h"

typedef struct interval {
  double least, most;
} interval;

/* Which way a code came from its value. */
typedef enum toward { TOWARD_NEAREST, TOWARD_UP, TOWARD_DOWN, TOWARD_EITHER, TOWARD_COUNT } toward;

/** Values that a positive, finite code stands for under a rounding. 0 if the code says nothing (zero, the largest, NaN). */
int mxi_code_interval(interval *out, const mx_format *f, uint32_t code, toward way);
/** Where most intervals overlap. Returns how many; the list is sorted. 0 if memory ran out, which is noted in lack. */
size_t mxi_overlap(interval *out, interval *list, size_t n, shortage *lack);
/** Interval of scale.max (for normed: of scale.max / tensor.target, from max|X|), seen from the ordinary blocks. Returns the share of them that agrees. */
double mxi_scale_max_interval(interval *out, const observation *o, toward way, int normed);
/** Interval of elem.prescale times what stands before it (normed: tensor.target / max|X| taken out). Returns the share that agrees. */
double mxi_prescale_interval(interval *out, const observation *o, toward way, int normed);
/** The simplest number in [least, most], 0 if there is none with a small denominator. */
double mxi_simplest_between(double least, double most);

#endif
