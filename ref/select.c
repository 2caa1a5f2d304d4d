/* Computes the error of a candidate of select=foursix, in binary32, in the order of select.sum. */
#include "rules.h"

/* code value -> dequantised -> distance from x. A chain with a tensor scale multiplies by A and divides by K, one operation each. */
static num distance(const ref_plan *plan, const ref_scale *scale, num value, num x) {
  num v;
  if (plan->chained) {
    v = num_mul_r(value, scale->used, NUM_F32);
    if (plan->spec->tensor_norm != MX_TENSOR_NORM_NONE)
      v = num_div_r(num_mul_r(v, plan->amax, NUM_F32), num_round(plan->target, NUM_F32), NUM_F32);
  } else {
    num over = plan->norm_under, under = plan->norm_over;
    ref_scale_first_multiplier(plan, 0, &over, &under);
    v = ref_dequantized(plan, value, scale->used, over, under);
  }
  return num_sub_r(v, x, NUM_F32);
}

static num larger(num a, num b) {
  if (num_is_nan(a) || num_is_nan(b)) return num_nan(0);
  return num_cmp(b, a) > 0 ? b : a;
}

static num error_of(const ref_plan *plan, const ref_scale *scale, const num *values, const ref_block *block) {
  const mx_spec *spec = plan->spec;
  const int lanes = spec->select_sum == MX_SELECT_SUM_TORCH16 ? 8 : 1;
  num lane[8];
  for (int i = 0; i < 8; i++) lane[i] = num_zero(0);
  for (size_t i = 0; i < block->n; i++) {
    num d = distance(plan, scale, values[i], block->x[i]);
    num e = spec->select_error == MX_SELECT_ERROR_MSE ? num_mul_r(d, d, NUM_F32) : num_abs(d);
    num *sum = &lane[i % (size_t)lanes];
    *sum = spec->select_error == MX_SELECT_ERROR_ABSMAX ? larger(*sum, e) : num_add_r(*sum, e, NUM_F32);
  }
  for (int i = 1; i < lanes; i++)
    lane[0] = spec->select_error == MX_SELECT_ERROR_ABSMAX ? larger(lane[0], lane[i]) : num_add_r(lane[0], lane[i], NUM_F32);
  return lane[0];
}

int ref_second_wins(const ref_plan *plan, const ref_scale scales[2], const num *values[2], const ref_block *block) {
  num first = error_of(plan, &scales[0], values[0], block), second = error_of(plan, &scales[1], values[1], block);
  return !num_is_nan(first) && !num_is_nan(second) && num_cmp(second, first) < 0;
}
