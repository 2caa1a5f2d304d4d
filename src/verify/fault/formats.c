/* Lists the formats that a fault may name, and rounds to them. */
#include <math.h>

#include "verify/fault/run.h"

const mx_format *mxi_fault_format(int f) { return f < MX_ELEM_COUNT ? mx_elem_format(f) : mx_scale_format(f - MX_ELEM_COUNT); }

double mxi_fault_to_format(int f, double x) {
  const mx_format *to = mxi_fault_format(f);
  const double magnitude = mx_decode(to, mx_encode(to, to->sign_bits ? x : fabs(x), &(mx_encoding){0}, 0));
  return to->sign_bits ? magnitude : copysign(magnitude, x);
}
