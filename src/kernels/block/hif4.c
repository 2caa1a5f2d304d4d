/* Quantises a block of HiFloat4: three levels of scale in a block of 64. SPEC 3.9, TECHNIQUES 4.9. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/block/plan.h"

double mxi_hif4_factor(const uint8_t micro[3], size_t i) {
  const int two = micro[0] >> (i / 8) & 1, three = micro[1 + i / 32] >> (i / 4 % 8) & 1;
  return 1 << (two + three);
}

/* The value with which an element counts in the largest magnitudes of its group and its block: scale.nan and scale.inf may leave out NaN or
 * Inf, or clamp Inf. */
static double counted(const mx_plan *p, float x) {
  const int inf = p->spec.scale_inf == MX_SCALE_INF_AS_NAN ? p->spec.scale_nan : p->spec.scale_inf - 1; /* as rows of SCALE_NAN */
  if (isnan(x)) return 0;
  if (!isinf(x)) return fabs((double)x);
  return inf == MX_SCALE_NAN_CLAMP ? FLT_MAX : inf == MX_SCALE_NAN_IGNORE ? 0 : INFINITY;
}

int mxi_hif4_block(uint8_t *codes, uint32_t *scale_code, uint8_t micro[3], const mx_plan *p, const float *x, size_t n, uint64_t index) {
  mx_block_stats stats = {0};
  mx_block_scale scale;
  double largest[16] = {0};
  for (size_t i = 0; i < n; i++) {
    const float a = fabsf(x[i]);
    stats.has_nan |= isnan(a) != 0;
    stats.has_inf |= isinf(a) != 0;
    if (isfinite(a) && a > stats.amax_finite) stats.amax_finite = a;
    largest[i / 4] = fmax(largest[i / 4], counted(p, x[i]));
  }
  stats.amax = stats.has_inf ? INFINITY : stats.amax_finite;
  memset(micro, 0, 3);
  if (mxi_block_scale_find(&scale, p, &stats, 0, index)) return 1;
  mx_encoding how = p->encode;
  how.round = p->spec.hif4_ties == MX_HIF4_TIES_EVEN ? MX_ROUND_RNE : MX_ROUND_RNA;
  *scale_code = scale.code;
  if (scale.how != MX_BY_NUMBER || !(scale.used > 0 && scale.used < INFINITY)) {
    for (size_t i = 0; i < n; i++) codes[i] = (uint8_t)mx_encode(p->elem, mxi_scaled_value(p, &scale, x[i]), &how, 0);
    return 0;
  }
  const double rec = mxi_to_bf16(1 / scale.used);
  for (size_t g = 0; g < 8; g++)
    if (fmax(largest[2 * g], largest[2 * g + 1]) * rec >= 4) micro[0] |= (uint8_t)(1 << g);
  for (size_t g = 0; g < 16; g++)
    if (largest[g] * rec / (1 << (micro[0] >> (g / 2) & 1)) >= 2) micro[1 + g / 8] |= (uint8_t)(1 << g % 8);
  for (size_t i = 0; i < n; i++) codes[i] = (uint8_t)mx_encode(p->elem, (double)x[i] * rec / mxi_hif4_factor(micro, i), &how, 0);
  return 0;
}
