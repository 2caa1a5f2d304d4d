/* Cuts and rounds integers that are scaled by a power of two. */
#include "internal.h"

#include <string.h>

__int128 mxi_mma_cut_wide(__int128 value, int shift, int mode) {
  if (shift <= 0) return (__int128)((unsigned __int128)value << -shift);
  if (mode == MX_ACC_ALIGN_RD) return value >> (shift > 127 ? 127 : shift);
  unsigned __int128 magnitude = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value, kept = shift > 127 ? 0 : magnitude >> shift;
  if (mode == MX_ACC_ALIGN_RNE && shift <= 127) {
    unsigned __int128 rest = magnitude & (((unsigned __int128)1 << shift) - 1), half = (unsigned __int128)1 << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
  }
  return value < 0 ? -(__int128)kept : (__int128)kept;
}

uint64_t mxi_mma_inf(const mma_plan *plan, int negative) {
  const mx_format *d = plan->model->d;
  return d->inf_code | (uint64_t)negative << (d->bits - 1);
}

uint64_t mxi_mma_nan(const mma_plan *plan) {
  const mx_format *d = plan->model->d;
  return plan->x.nan == MX_ACC_NAN_ONES ? (UINT64_C(1) << (d->bits - 1)) - 1 : d->inf_code | UINT64_C(1) << (d->man_bits - 1);
}

uint64_t mxi_mma_round(const mma_plan *plan, int64_t value, int exp, int mode) {
  const mx_format *d = plan->model->d;
  if (!value) return 0;
  int negative = value < 0;
  uint64_t u = negative ? 0 - (uint64_t)value : (uint64_t)value;
  int top = 63 - __builtin_clzll(u) + exp; /* the exponent of the value */
  if (top < plan->exp_min) top = plan->exp_min;
  int shift = top - plan->keep - exp; /* leaves `keep` fraction bits */
  static const int as_align[] = {[MX_ACC_OUT_RZ] = MX_ACC_ALIGN_RZ, [MX_ACC_OUT_RNE] = MX_ACC_ALIGN_RNE, [MX_ACC_OUT_RD] = MX_ACC_ALIGN_RD};
  int64_t cut = mma_cut(value, shift, as_align[mode]);
  uint64_t q = cut < 0 ? 0 - (uint64_t)cut : (uint64_t)cut;
  if (!q) return negative && plan->x.under == MX_ACC_UNDER_KEEP ? UINT64_C(1) << (d->bits - 1) : 0;
  if (q >> (plan->keep + 1)) { /* it was rounded up to the next power of two */
    q >>= 1;
    top++;
  }
  if (top > plan->exp_max) return mxi_mma_inf(plan, negative);
  q <<= plan->man - plan->keep;
  uint64_t biased = q >> plan->man ? (uint64_t)(top + plan->bias) : 0;
  return biased << plan->man | (q & ((UINT64_C(1) << plan->man) - 1)) | (uint64_t)negative << (d->bits - 1);
}

/* What exceeds 62 bits is kept as one sticky bit. */
uint64_t mxi_mma_round_wide(const mma_plan *plan, __int128 value, int exp, int mode) {
  unsigned __int128 u = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
  uint64_t sticky = 0;
  for (; u >> 62; exp++, u >>= 1) sticky |= (uint64_t)u & 1;
  int64_t narrow = (int64_t)((uint64_t)u | sticky);
  return mxi_mma_round(plan, value < 0 ? -narrow : narrow, exp, mode);
}

static float to_f32(const mma_plan *plan, uint64_t bits) {
  mma_num n = mxi_mma_split(plan->model->d, bits);
  return __builtin_ldexpf((float)n.sig, n.exp - plan->man);
}

/* An ordinary addition, which keeps all fraction bits of the type whatever out_bits says. Binary32 has at least 2p+2 bits for the narrower
 * types, so that rounding its sum once more gives the exact sum rounded once. */
uint64_t mxi_mma_add(const mma_plan *plan, uint64_t x, uint64_t y) {
  mma_num a = mxi_mma_split(plan->model->d, x), b = mxi_mma_split(plan->model->d, y);
  int special = (a.cls | b.cls) & (MMA_INF | MMA_NAN);
  if (special & MMA_NAN) return mxi_mma_nan(plan);
  if (special) {
    if (a.cls & b.cls & MMA_INF && (a.sig ^ b.sig) < 0) return mxi_mma_nan(plan);
    return mxi_mma_inf(plan, (a.cls & MMA_INF ? a.sig : b.sig) < 0);
  }
  if (a.cls & b.cls & MMA_ZERO) return x & y; /* -0 only if both are -0 */
  float sum = to_f32(plan, x) + to_f32(plan, y);
  if (sum == 0) return 0;
  uint32_t bits;
  memcpy(&bits, &sum, 4);
  int exp = (int)(bits >> 23 & 255);
  if (exp == 255) return mxi_mma_inf(plan, bits >> 31);
  int64_t sig = (bits & 0x7FFFFF) | (exp ? 0x800000 : 0);
  mma_plan ordinary = *plan;
  ordinary.keep = plan->man;
  return mxi_mma_round(&ordinary, bits >> 31 ? -sig : sig, (exp ? exp : 1) - 127 - 23, MX_ACC_OUT_RNE);
}
