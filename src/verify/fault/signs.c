/* Changes the signs of codes, in two's complement where the format is. */
#include "verify/fault/elements.h"

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
