/* Computes the derivative of a block's quantiser x_i -> unit q_i (arXiv 2509.17791, eqs 1 to 3): of its elements' rounding, of its scale, and of a
 * tensor scale. Nothing here knows a format: slopes and values are given, so that tests can give smooth ones. */
#include <math.h>

#include "train/linear/gradient/block.h"

double mxi_scale_before(int encode, double rule_max, double multiplier, double z, double stored) {
  return encode ? rule_max * multiplier / z * stored : z / (rule_max * multiplier) * stored;
}

double mxi_lever(int encode, double rule_max, double prescale, double multiplier, double z, double scale_slope) {
  if (!(z > 0) || !(multiplier < INFINITY)) return 0;
  if (!encode) return scale_slope / (rule_max * prescale);
  const double ratio = multiplier / z;
  return scale_slope * rule_max * ratio * ratio / prescale;
}

static double through_scale(const mxi_block *b, size_t i) { return b->q[i] - b->v[i] * b->slope[i]; }

void mxi_jacobian_diag(double *out, const mxi_block *b, mxi_tensor_slope t) {
  for (size_t i = 0; i < b->n; i++) {
    const double d = b->slope[i] + b->lever * through_scale(b, i) * b->dz[i];
    out[i] = t.dg ? d + b->unit / t.g * (b->q[i] - b->v[i] * d) * t.dg[i] : d;
  }
}

double mxi_jacobian_sum(const mxi_block *b, const double *up) {
  double sum = 0;
  for (size_t i = 0; i < b->n; i++) sum += up[i] * through_scale(b, i);
  return sum;
}

double mxi_jacobian_of_tensor(const mxi_block *b, double sum, double g) {
  double moment = 0;
  for (size_t i = 0; i < b->n; i++) moment += b->v[i] * b->dz[i];
  return b->unit / g * (1 - b->lever * moment) * sum;
}

void mxi_jacobian_full(double *out, const mxi_block *b, const double *up, double sum, const double *dg, double of_tensor) {
  for (size_t i = 0; i < b->n; i++) {
    out[i] = up[i] * b->slope[i] + b->lever * sum * b->dz[i];
    if (dg) out[i] += of_tensor * dg[i];
  }
}
