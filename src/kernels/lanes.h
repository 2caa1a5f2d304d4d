/* Declares the numbers with which integer arithmetic on binary32 bits gives the codes of a format, for encoding in vectors. */
#ifndef MX_KERNELS_LANES_H
#define MX_KERNELS_LANES_H

#include "mxgold/spec.h"

/* |x| with exponent field e and 24-bit significand s has the code
 *   (max(e - emin, 0) << man) + (s rounded to a multiple of 2^shift) / 2^shift,  shift = 23 - man + max(emin - e, 0). */
typedef struct mx_lanes {
  int32_t emin, man; /* the exponent field of the smallest normal number; mantissa bits */
  int32_t round;     /* MX_ROUND_RNE .. MX_ROUND_RTN */
  int32_t max_code;  /* magnitudes with larger codes get the code over */
  int32_t over[2];   /* codes with their sign; [1] for negative values */
  int32_t inf[2], nan[2];
  int32_t zero[2], tiny[2]; /* codes of +0 and -0, and of numbers that round to zero */
  int32_t sign;             /* the sign bit of a code, or 0 */
  int32_t negate;           /* two's complement */
  int32_t fixed;            /* all steps are equal, as in the INT formats */
  int32_t flush;            /* numbers with a smaller exponent field become zero */
  int32_t plain;            /* the format has a mantissa and at most eight bits; rounding is to nearest, saturating, and keeps -0 */
  float most;               /* the largest value of the format */
  int32_t exp, low;         /* exp: the format is of kind EXP; low: not all binary32 subnormals have the same code */
} mx_lanes;

/** Returns 0 if this encoding needs the scalar path. */
int mxi_lanes_init(mx_lanes *out, const mx_format *format, const mx_encoding *how);

#endif
