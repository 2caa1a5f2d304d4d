/* Rounds to narrow types. */
#include <math.h>

#include "verify/judge/internal.h"

const judge_type mxi_judge_types[JUDGE_TYPES] = {
    {"binary32", 24, -126, 0x1.fffffep127}, {"binary16", 11, -14, 65504},    {"bfloat16", 8, -126, 0x1.fep127},
    {"e8m13", 14, -126, 0x1.fffp127},       {"tf32", 11, -126, 0x1.ffcp127},
};

double mxi_judge_round(double x, const judge_type *type, int mode, int saturate, int flush) {
  if (!isfinite(x) || x == 0) return x;
  const int top = ilogb(x), e = (top < type->emin ? type->emin : top) - (type->bits - 1);
  const double q = ldexp(fabs(x), -e), down = floor(q), rest = q - down;
  double r = down;
  const int up = mode == JUDGE_RNE    ? rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0)
                 : mode == JUDGE_RNA  ? rest >= 0.5
                 : mode == JUDGE_DOWN ? rest > 0 && x < 0
                 : mode == JUDGE_UP   ? rest > 0 && x > 0
                                      : 0;
  if (up) r += 1;
  double v = ldexp(r, e);
  if (v > type->max) v = saturate || mode == JUDGE_RZ || (mode == JUDGE_DOWN && x > 0) || (mode == JUDGE_UP && x < 0) ? type->max : INFINITY;
  if (flush && v < ldexp(1, type->emin)) v = 0;
  return copysign(v, x);
}

double mxi_judge_add(double a, double b) {
  const double s = a + b;
  if (!isfinite(s)) return s;
  const double back = s - a, rest = (a - (s - back)) + (b - back);
  if (rest == 0) return s;
  /* s is the nearest; its neighbour towards the exact sum, if s is even, is odd */
  int e;
  const double m = frexp(s, &e);
  if (fmod(ldexp(fabs(m), 53), 2) != 0) return s;
  return nextafter(s, rest > 0 ? INFINITY : -INFINITY);
}
