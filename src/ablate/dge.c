/* Computes the slope of the differentiable gradient estimator: TECHNIQUES 3.1. */
#include <math.h>

#include "ablate/sums/real.h"
#include "mxgold/ablate.h"
#include "mxgold/codec.h"

double mx_dge(const mx_format *format, double x, double k, double clip) {
  const double a = fabs(x), end = 1 / k;
  double low = 0, high = INFINITY; /* the grid on either side: low <= a < high */
  for (uint32_t c = 0; c < 1u << format->bits && format->bits <= 8; c++) {
    const double v = mx_decode(format, c);
    if (v >= low && v <= a) low = v;
    if (v > a && v < high) high = v;
  }
  if (isnan(x)) return x;
  if (!isfinite(high)) return end < clip ? end : clip; /* at the end of the grid and beyond */
  const double r = fabs(2 * (a - low) / (high - low) - 1);
  if (!(r > 0)) return clip;
  const double slope = end * mxi_real_exp((end - 1) * mxi_real_ln(r));
  return slope < clip ? slope : clip;
}
