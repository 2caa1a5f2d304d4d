/* Computes the numbers that vector encoders need from a format and a rounding. The codes of special values come from mx_encode itself. */
#include "kernels/lanes.h"

#include <float.h>
#include <math.h>

int mxi_lanes_init(mx_lanes *out, const mx_format *f, const mx_encoding *how) {
  if (f->kind == MX_KIND_NONE || f->bits > 16 || f->man_bits > 12) return 0;
  if (f->kind == MX_KIND_INT && (!f->man_bits || !f->sign_bits)) return 0; /* whole numbers, which are operands of matrix units */
  if (how->round < MX_ROUND_RNE || how->round > MX_ROUND_RTN || how->overflow == MX_OVERFLOW_WRAP_NEGZERO) return 0;
  const int emin = f->kind == MX_KIND_INT ? 127 : f->kind == MX_KIND_EXP ? 127 - f->bias : 128 - f->bias;
  const int32_t top = f->sign_bits ? 1 << (f->bits - 1) : 0;
  const int bare = f->kind == MX_KIND_FNUZ || how->zero_sign == MX_ZERO_SIGN_DROP_ALL;
  *out = (mx_lanes){.emin = emin,
                    .man = f->man_bits,
                    .round = how->round,
                    .max_code = (int32_t)f->max_code,
                    .sign = f->kind == MX_KIND_INT ? 0 : top,
                    .negate = f->kind == MX_KIND_INT,
                    .fixed = f->kind == MX_KIND_INT,
                    .flush = f->kind == MX_KIND_EXP ? emin : 0,
                    .exp = f->kind == MX_KIND_EXP,
                    .low = emin - f->man_bits < 2};
  out->tiny[1] = bare || out->negate ? 0 : top;
  for (int i = 0; i < 2; i++) {
    const double s = i ? -1 : 1;
    out->over[i] = (int32_t)mx_encode(f, s * FLT_MAX, how, 0);
    out->inf[i] = (int32_t)mx_encode(f, s * INFINITY, how, 0);
    out->nan[i] = (int32_t)mx_encode(f, copysign(NAN, s), how, 0);
    out->zero[i] = (int32_t)mx_encode(f, s * 0.0, how, 0);
  }
  out->most = (float)mx_format_max(f);
  out->plain = f->kind == MX_KIND_FLOAT && top && f->bits <= 8 && f->man_bits > 0 && how->round == MX_ROUND_RNE && emin > 64;
  out->plain &=
      out->over[0] == out->max_code && out->over[1] == (out->max_code | top) && !out->zero[0] && out->zero[1] == top && out->tiny[1] == top;
  return 1;
}
