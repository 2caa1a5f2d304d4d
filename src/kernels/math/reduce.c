/* Reduces large angles for sines and cosines, by subtracting whole quarters of a turn with enough bits of 2 / pi. */
#include <math.h>

#include "kernels/math/kernels.h"

/* Let x = m 2^e with m of 24 bits. Only the bits of 2 / pi from 2^(1 - e) down matter in the product, since those above give whole turns;
 * 128 bits leave an error below 2^-102. */
int mxi_math_reduce(double *rest, double x) {
  static const uint64_t two_over_pi[4] = {0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561};
  int e;
  const uint64_t m = (uint64_t)ldexp(frexp(fabs(x), &e), 24);
  e -= 24; /* at least 5 */
  const int skip = e - 2, word = skip / 64, bit = skip % 64;
  const uint64_t *from = two_over_pi + word;
  unsigned __int128 window = (unsigned __int128)from[0] << 64 | from[1];
  if (bit) window = window << bit | (word + 2 < 4 ? from[2] >> (64 - bit) : 0);
  const unsigned __int128 product = window * m;                                  /* units of 2^-126, modulo 4 */
  const unsigned __int128 up = product + ((unsigned __int128)1 << 125);          /* to the nearest quarter */
  const int quadrant = (int)(up >> 126);                                         /* a quadrant is 2^126 units */
  const __int128 f = (__int128)(product - ((unsigned __int128)quadrant << 126)); /* signed: the top quarter wraps around */
  const double high = (double)(int64_t)(f >> 64), low = (double)(uint64_t)f;
  const double r = (high * 0x1p64 + low) * 0x1p-126 * 0x1.921fb54442d18p+0;
  *rest = x < 0 ? -r : r;
  return x < 0 ? -quadrant : quadrant;
}
