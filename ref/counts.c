/* Decides what of a block counts toward its largest magnitude, NaN and Inf as scale.nan and scale.inf say: SPEC 3.2 step 4. */
#include "rules.h"

num ref_flt_max(void) { return (num){.kind = NUM_FINITE, .exp = 127, .sig = UINT64_C(0xFFFFFF) << 40}; }

int ref_counts(num *magnitude, const ref_plan *plan, num x) {
  *magnitude = num_abs(x);
  if (x.kind == NUM_NAN) return plan->act_nan != MX_SCALE_NAN_IGNORE && plan->act_nan != MX_SCALE_NAN_CLAMP;
  if (x.kind != NUM_INF) return 1;
  if (plan->act_inf == MX_SCALE_NAN_CLAMP) *magnitude = ref_flt_max();
  return plan->act_inf != MX_SCALE_NAN_IGNORE;
}
