/* Quantises under scale.rule=hif4 (TECHNIQUES 4.9): a block of 64 = 8 groups of 8 = 16 groups of 4. Level 1 is the block's E6M2 scale, levels 2 and
 * 3 are one bit each that doubles; elements are E1M2, rounded half away from zero, or with hif4.ties=even to even. */
#include <string.h>

#include "rules.h"

static num times(num a, num b) { return num_ratio((num[]){a, b}, 2, NULL, 0); }

/* Largest magnitude of n elements, NaN and what does not count left out. */
static num group_amax(const ref_plan *plan, const num *x, size_t n) {
  num most = num_zero(0);
  for (size_t i = 0; i < n; i++) {
    num a;
    if (!num_is_nan(x[i]) && ref_counts(&a, plan, x[i]) && num_cmp(a, most) > 0) most = a;
  }
  return most;
}

int ref_hif4_block(uint64_t *scale_code, uint8_t micro[3], uint64_t codes[64], const ref_plan *plan, const ref_block *block) {
  /* The block's scale is bf16(amax * bf16(1/7)) rounded to E6M2: as a value rule whose F is 1 / bf16(1/7). Zero blocks, NaN and Inf by the keys. */
  ref_scale scales[2];
  if (!ref_block_scales(scales, plan, block)) return 0;
  const ref_scale *scale = &scales[0];
  ref_how how = plan->how;
  how.base.round = plan->spec->hif4_ties == MX_HIF4_TIES_EVEN ? MX_ROUND_RNE : MX_ROUND_RNA;
  *scale_code = scale->code;
  memset(micro, 0, 3);
  const int plain = scale->scaling != SCALING_USED || scale->used.kind != NUM_FINITE;
  const num reciprocal = num_div_r(num_int(1), scale->used, NUM_BF16);
  for (size_t i = 0; i < 64; i++) {
    num y = ref_scaled(plan, scale, block->x[i]);
    if (!plain) {
      const size_t eight = i / 8, four = i / 4;
      int doubled = num_cmp(times(group_amax(plan, block->x + eight * 8, 8), reciprocal), num_int(4)) >= 0;
      num rest = times(group_amax(plan, block->x + four * 4, 4), reciprocal);
      if (rest.kind == NUM_FINITE) rest.exp -= doubled;
      int again = num_cmp(rest, num_int(2)) >= 0;
      if (doubled) micro[0] = (uint8_t)(micro[0] | 1 << eight);
      if (again) micro[1 + four / 8] = (uint8_t)(micro[1 + four / 8] | 1 << four % 8);
      y = times(block->x[i], reciprocal);
      if (y.kind == NUM_FINITE) y.exp -= doubled + again;
    }
    codes[i] = ref_code(plan->elem, y, &how, 0);
  }
  return 1;
}
