/* Corrects the scales of a group under select=eden of SPEC 3.6. */
#include "rules.h"

enum { LANES = 16 };

/* Element i to the sum i mod 16, in binary64; then the sums at distance 8, 4, 2, 1. */
static num sum_of_products(const num *a, const num *b, size_t n) {
  num lane[LANES];
  for (int i = 0; i < LANES; i++) lane[i] = num_zero(0);
  for (size_t i = 0; i < n; i++) lane[i % LANES] = num_add_r(lane[i % LANES], num_mul_r(a[i], b[i], NUM_F64), NUM_F64);
  for (int distance = LANES / 2; distance; distance /= 2)
    for (int i = 0; i < distance; i++) lane[i] = num_add_r(lane[i], lane[i + distance], NUM_F64);
  return lane[0];
}

int ref_eden_factor(num *factor, const num *z, const num *q, size_t n) {
  *factor = num_div_r(sum_of_products(z, z, n), sum_of_products(z, q, n), NUM_F64);
  return factor->kind == NUM_FINITE && !factor->sign;
}

uint64_t ref_eden_code(const ref_plan *plan, uint64_t code, num factor, size_t index) {
  static const ref_how how = {.base = {.round = MX_ROUND_SR, .sr_mode = MX_SR_FASTEST, .sr_bits = 24}};
  const num stored = ref_scale_value(plan, code);
  if (stored.kind != NUM_FINITE || stored.sign) return code;
  return ref_code(plan->scale, num_mul_r(factor, stored, NUM_F64), &how, ref_random(plan->spec->seed, MX_STREAM_SCALE, index) >> 8);
}
