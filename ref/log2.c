/* Computes the exact log2 of a binary32, rounded once to binary32: what torch.log2 and glibc's log2f give where floor or ceil is taken of them.
 *
 * With x = m * 2^e, 1 <= m < 2, the digits of log2 m come one by one: square m; if it reaches 2 the digit is 1, and m is halved. m is held between
 * two bounds of 254 fraction bits; each squaring loses at most two bits, so that 64 digits leave more than 100 bits of certainty. log2 of
 * a number that is not a power of two is irrational: it lies strictly between two numbers of 64 digits, and no tie can occur. */
#include "num.h"
#include "ref.h"

#include <gmp.h>
#include <string.h>

enum { LIMBS = 4 }; /* 1.0 is bit 254 */

/* bound = bound^2 / 2^254, rounded down, plus up units. */
static void square(mp_limb_t *bound, mp_limb_t up) {
  mp_limb_t wide[2 * LIMBS];
  mpn_sqr(wide, bound, LIMBS);
  mpn_lshift(wide + LIMBS - 1, wide + LIMBS - 1, LIMBS + 1, 2); /* drop 256 - 2 bits */
  memcpy(bound, wide + LIMBS, LIMBS * sizeof *bound);
  mpn_add_1(bound, bound, LIMBS, up);
}

static uint64_t digits(uint64_t sig) {
  mp_limb_t low[LIMBS] = {0}, high[LIMBS];
  low[LIMBS - 1] = sig >> 1; /* bit 63 of sig is 1.0; a binary32 leaves the last bit free */
  memcpy(high, low, sizeof low);
  uint64_t result = 0;
  for (int i = 0; i < 64; i++) {
    square(low, 0);
    square(high, 2);
    int digit = (int)(low[LIMBS - 1] >> 63);
    if (digit != (int)(high[LIMBS - 1] >> 63)) __builtin_trap(); /* cannot be: see above */
    result = result << 1 | (unsigned)digit;
    if (digit) {
      mpn_rshift(low, low, LIMBS, 1);
      mpn_rshift(high, high, LIMBS, 1);
      mpn_add_1(high, high, LIMBS, 1);
    }
  }
  return result;
}

num num_log2f(num a) {
  if (a.kind == NUM_NAN) return a;
  if (a.kind == NUM_ZERO) return num_inf(1);
  if (a.sign) return num_nan(1);
  if (a.kind == NUM_INF) return a;
  int power = a.sig == UINT64_C(1) << 63;
  /* e + 0.digits in units of 2^-64; its magnitude, cut to whole units, and whether something was cut */
  __int128 value = (__int128)a.exp * ((__int128)1 << 64) + (power ? 0 : digits(a.sig));
  int sign = value < 0;
  unsigned __int128 magnitude = (unsigned __int128)(sign ? -value - !power : value);
  if (magnitude == 0 && power) return num_zero(0);
  num whole = num_int((uint64_t)(magnitude >> 64)), part = num_int((uint64_t)magnitude);
  if (part.kind == NUM_FINITE) part.exp -= 64;
  num sum = num_add(whole, part);
  sum.sign = sign;
  sum.sticky |= !power;
  return num_round(sum, NUM_F32);
}

int ref_log2f_int(float x, int up) {
  num l = num_log2f(num_float(x));
  return up ? num_ceil(l) : num_floor(l);
}
