/* Adds exactly, in one fixed-point number that is wide enough for every product of two binary32 numbers and two byte scales (2^-560 ..
 * 2^576). */
#include "internal.h"

void mxi_mma_wide_add(mma_wide *w, int64_t value, int exp) {
  unsigned at = (unsigned)(exp - MMA_WIDE_EXP), i = at / 64, bit = at % 64;
  unsigned __int128 wide = (unsigned __int128)((__int128)value) << bit; /* value is at most 2^62, so the sign survives the shift */
  uint64_t part[2] = {(uint64_t)wide, (uint64_t)(wide >> 64)}, rest = value < 0 ? UINT64_MAX : 0, carry = 0;
  for (unsigned j = i; j < MMA_LIMBS; j++) {
    uint64_t term = j - i < 2 ? part[j - i] : rest;
    if (j - i >= 2 && term + carry == 0) break; /* nothing more changes */
    uint64_t sum = w->limb[j] + term, over = sum < term;
    w->limb[j] = sum + carry;
    carry = over | (w->limb[j] < carry);
  }
}

int64_t mxi_mma_wide_top(const mma_wide *w, int *exp) {
  mma_wide m = *w;
  int negative = m.limb[MMA_LIMBS - 1] >> 63;
  if (negative) { /* makes it a magnitude */
    uint64_t carry = 1;
    for (int i = 0; i < MMA_LIMBS; i++) {
      m.limb[i] = ~m.limb[i] + carry;
      carry = carry && !m.limb[i];
    }
  }
  int top = MMA_LIMBS - 1;
  while (top > 0 && !m.limb[top]) top--;
  uint64_t high = m.limb[top], low = top ? m.limb[top - 1] : 0, sticky = 0;
  for (int i = 0; i < top - 1; i++) sticky |= m.limb[i];
  *exp = MMA_WIDE_EXP + 64 * (top - 1);
  unsigned __int128 both = (unsigned __int128)high << 64 | low;
  while (both >> 62) { /* at most 66 steps */
    sticky |= (uint64_t)both & 1;
    both >>= 1;
    ++*exp;
  }
  int64_t value = (int64_t)((uint64_t)both | (sticky != 0));
  return negative ? -value : value;
}
