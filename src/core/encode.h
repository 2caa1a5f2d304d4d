/* Declares the parts of encoding that a whole block needs. */
#ifndef MX_CORE_ENCODE_H
#define MX_CORE_ENCODE_H

#include <math.h>
#include <string.h>

#include "mxgold/format.h"
#include "mxgold/spec.h"

/* x * 2^n, rounded once: as ldexp(), which is a call. */
static inline double mx_times_pow2(double x, int n) {
  const uint64_t bits = (uint64_t)(n + 1023) << 52;
  double power;
  if (n < -1022 || n > 1023) return ldexp(x, n);
  memcpy(&power, &bits, sizeof power);
  return x * power;
}

/** x rounded as encode does, but on a grid whose last binade's steps go on for ever; Inf from 2^127, where fouroversix's 2 x is Inf. */
double mxi_round_past_largest(const mx_format *format, double x, const mx_encoding *how, uint32_t random);

#endif
