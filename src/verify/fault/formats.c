/* Lists the formats that a fault may name, rounds to them, and makes codes of integers. */
#include <math.h>

#include "verify/fault/run.h"

const mx_format *mxi_fault_format(int f) { return f < MX_ELEM_COUNT ? mx_elem_format(f) : mx_scale_format(f - MX_ELEM_COUNT); }

double mxi_fault_to_format(int f, double x) {
  const mx_format *to = mxi_fault_format(f);
  const double magnitude = mx_decode(to, mx_encode(to, to->sign_bits ? x : fabs(x), &(mx_encoding){0}, 0));
  return to->sign_bits && !isnan(magnitude) ? magnitude : copysign(magnitude, x);
}

uint32_t mxi_fault_code_of(const mx_format *f, double code) { return (uint32_t)((uint64_t)(int64_t)code & ((UINT64_C(1) << f->bits) - 1)); }
