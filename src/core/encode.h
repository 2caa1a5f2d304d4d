/* Declares the parts of encoding that a whole block needs. */
#ifndef MX_CORE_ENCODE_H
#define MX_CORE_ENCODE_H

#include <math.h>
#include <string.h>

#include "mxgold/format.h"
#include "mxgold/spec.h"

/* x * 2^n, rounded once. It gives what ldexp() gives, without a function call. */
static inline double mx_times_pow2(double x, int n) {
  const uint64_t bits = (uint64_t)(n + 1023) << 52;
  double power;
  if (n < -1022 || n > 1023) return ldexp(x, n);
  memcpy(&power, &bits, sizeof power);
  return x * power;
}

/** x rounded as encode does, but on a grid on which the steps of the last binade go on for ever. The result is Inf from 2^127 on, since
 * fouroversix computes 2 x there, which is Inf. */
double mxi_round_past_largest(const mx_format *format, double x, const mx_encoding *how, uint32_t random);

#endif
