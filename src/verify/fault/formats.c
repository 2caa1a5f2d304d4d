/* Lists the formats that a fault may name, rounds to them, makes codes of integers, and changes the signs of codes. */
#include <math.h>

#include "verify/fault/elements.h"

const mx_format *mxi_fault_format(int f) { return f < MX_ELEM_COUNT ? mx_elem_format(f) : mx_scale_format(f - MX_ELEM_COUNT); }

double mxi_fault_to_format(int f, double x) {
  const mx_format *to = mxi_fault_format(f);
  const double magnitude = mx_decode(to, mx_encode(to, to->sign_bits ? x : fabs(x), &(mx_encoding){0}, 0));
  return to->sign_bits && !isnan(magnitude) ? magnitude : copysign(magnitude, x);
}

uint32_t mxi_fault_code_of(const mx_format *f, double code) { return (uint32_t)((uint64_t)(int64_t)code & ((UINT64_C(1) << f->bits) - 1)); }

/* ---- signs, in two's complement where the format is */

uint32_t mxi_fault_sign_bit(const mx_format *f) { return f->sign_bits ? UINT32_C(1) << (f->bits - 1) : 0; }

uint32_t mxi_fault_negated(const mx_format *f, uint32_t code) {
  if (f->kind == MX_KIND_INT) return (0u - code) & (2 * mxi_fault_sign_bit(f) - 1);
  return code ^ mxi_fault_sign_bit(f);
}
static int is_negative(const mx_format *f, uint32_t code) { return (code & mxi_fault_sign_bit(f)) != 0; }
uint32_t mxi_fault_magnitude(const mx_format *f, uint32_t code) { return is_negative(f, code) ? mxi_fault_negated(f, code) : code; }
uint32_t mxi_fault_with_sign(const mx_format *f, uint32_t code, unsigned negative) {
  return is_negative(f, code) == !!negative ? code : mxi_fault_negated(f, code);
}
