/* Rounds elements by the steps of their format as wrong circuits do: without the bits below a few, a carry, saturation, or at another threshold. */
#include <math.h>

#include "verify/fault/elements.h"

/* More guard bits than these change nothing: a quotient is known to 53 bits. */
enum { MOST_GUARD = 20, MOST_POINT = 20 };

/* How far apart neighbours are at a magnitude. binade: exponents between it and the least one. */
static double step_at(const mx_format *f, double a, int *binade) {
  const int least = 1 - f->bias, of_float = f->kind == MX_KIND_FLOAT, e = a > 0 ? ilogb(a) : least;
  *binade = of_float && e > least ? e - least : 0;
  return ldexp(1, (of_float ? least + *binade : 0) - (int)f->man_bits);
}

/* The code of a magnitude, of the nearest number or of the one below, if numbers went on without end. */
static uint64_t count_of(const mx_format *f, double a, int nearest) {
  int binade;
  const double n = a / step_at(f, a, &binade);
  return (uint64_t)(nearest ? rint(n) : floor(n)) + ((uint64_t)binade << f->man_bits);
}

uint64_t mxi_fault_count(const mx_format *f, double a) { return count_of(f, a, 1); }

/* Does a magnitude that lies so far, from 0 to 1, above the number below it go to the one above? */
static int goes_up(double rest, int how, int negative) {
  switch (how) {
  case MX_ROUND_RTZ:
    return 0;
  case MX_ROUND_RTP:
    return rest > 0 && !negative;
  case MX_ROUND_RTN:
    return rest > 0 && negative;
  case MX_ROUND_RNA:
    return rest >= 0.5;
  default: /* MX_ROUND_RTZ_TIE */
    return rest > 0.5;
  }
}

uint64_t mxi_fault_count_by(const mx_format *f, double y, int how) {
  int binade;
  const double a = fabs(y), n = a / step_at(f, a, &binade);
  if (how == MX_ROUND_RNE) return count_of(f, a, 1);
  return count_of(f, a, 0) + (uint64_t)goes_up(n - floor(n), how, signbit(y) != 0);
}

static int is_below_normal(const mx_format *f, double y) { return f->kind == MX_KIND_FLOAT && fabs(y) < ldexp(1, 1 - f->bias); }

uint32_t mxi_fault_low_bits(const mx_format *f, double y, int how) {
  const uint64_t n = mxi_fault_count_by(f, y, how), all = (UINT64_C(1) << f->bits) - 1;
  if (f->kind == MX_KIND_INT) return (uint32_t)((signbit(y) ? 0 - n : n) & all);
  return (uint32_t)((n + (signbit(y) ? mxi_fault_sign_bit(f) : 0)) & all);
}

static uint32_t without_carry(const mx_format *f, double y) {
  const uint64_t mantissa = (UINT64_C(1) << f->man_bits) - 1, below = count_of(f, fabs(y), 0), near = count_of(f, fabs(y), 1);
  const uint64_t n = f->kind == MX_KIND_FLOAT && below > mantissa ? (below & ~mantissa) | (near & mantissa) : near;
  return mxi_fault_with_sign(f, (uint32_t)(n < f->max_code ? n : f->max_code), signbit(y) != 0);
}

int mxi_fault_is_threshold(int op) { return op == MX_FAULT_ELEMENT_THRESHOLD || op == MX_FAULT_ELEMENT_BEYOND; }

/* The code below a threshold, whose neighbour is the one above; 0: it is beyond the largest. */
static int gap_of(uint32_t *low, const mx_format *f, const mx_fault *fault) {
  const double c = fabs((double)(float)fault->number);
  if (!(c < mx_format_max(f))) return 0;
  *low = (uint32_t)count_of(f, c, 0);
  return *low < f->max_code;
}

/* From a threshold that is a number of the format on, that number goes up, too. */
int mxi_fault_meets(const mx_format *f, const mx_fault *fault, double y) {
  uint32_t low;
  if (!mxi_fault_is_threshold(fault->op)) return 1;
  if (!gap_of(&low, f, fault) || !(fabs(y) < mx_decode(f, low + 1))) return 0;
  const double down = mx_decode(f, low);
  return fabs(y) > down || (fabs(y) == down && down == fabs((double)(float)fault->number) && fault->op == MX_FAULT_ELEMENT_THRESHOLD);
}

static uint32_t by_threshold(const mx_format *f, const mx_fault *fault, double y) {
  const double c = fabs((double)(float)fault->number), a = fabs(y);
  uint32_t low = 0;
  gap_of(&low, f, fault);
  return mxi_fault_with_sign(f, low + (fault->op == MX_FAULT_ELEMENT_THRESHOLD ? a >= c : a > c), signbit(y) != 0);
}

/* y cut N bits behind those of its code. */
static double cut_behind(const mx_format *f, double y, double n) {
  int binade;
  if (!(n >= 0 && n <= MOST_GUARD)) return y;
  const double unit = ldexp(step_at(f, fabs(y), &binade), -(int)n);
  return trunc(y / unit) * unit;
}

static double to_point(double y, double n) { return n >= -MOST_POINT && n <= MOST_POINT ? ldexp(rint(ldexp(y, (int)n)), -(int)n) : y; }

/* y below the normal numbers, shifted by the low n bits alone of its distance from them. */
static double shifted(const mx_format *f, double y, double n) {
  if (!(n >= 1 && n <= MOST_GUARD) || y == 0 || !is_below_normal(f, y)) return y;
  const int away = 1 - f->bias - ilogb(y);
  return ldexp(y, away - (away & ((1 << (int)n) - 1)));
}

/* y below the normal numbers without the first of its bits. */
static double without_leading_one(const mx_format *f, double y) {
  return y == 0 || !is_below_normal(f, y) ? y : copysign(fabs(y) - ldexp(1, ilogb(y)), y);
}

/* The number of the code that y has if exponent 0 has a leading one as others have. */
static double of_binade(const mx_format *f, double y) {
  const double t = ldexp(fabs(y), f->bias), n = t < 1 ? 0 : rint(ldexp(t - 1, (int)f->man_bits));
  return copysign(ldexp(n, 1 - f->bias - (int)f->man_bits), y);
}

/* Ties moved to the neighbour of odd code; all else stays. */
static double to_odd(const mx_format *f, double y) {
  int binade;
  const double u = step_at(f, fabs(y), &binade), n = floor(fabs(y) / u);
  if (fabs(y) / u - n != 0.5) return y;
  return copysign((count_of(f, fabs(y), 0) % 2 ? n : n + 1) * u, y);
}

static double clipped(double y, double most) { return fabs(y) > most ? copysign(most, y) : y; }

/* y and half a step, cut toward zero: a negative number that is not half way or more to the next one loses a step. */
static double half_added(const mx_format *f, double y) {
  int binade;
  const double u = step_at(f, fabs(y), &binade), n = floor(fabs(y) / u);
  const int up = fabs(y) / u - n >= 0.5;
  return copysign((signbit(y) ? fmax(n - !up, 0) : n + up) * u, y);
}

/* A magnitude below the least normal number is rounded to as many bits of mantissa as that has; what does not come up to it is 0. */
static double flushed_rounded(const mx_format *f, double y) {
  const double least = ldexp(1, 1 - f->bias), a = fabs(y), half_step = ldexp(least, -(int)f->man_bits - 2);
  return is_below_normal(f, y) ? copysign(a >= least - half_step ? least : 0, y) : y;
}

double mxi_fault_by_steps(const mx_format *f, const mx_fault *fault, double y) {
  const int usual = isnan(y) || fabs(y) >= MXI_NO_STEPS;
  switch (fault->op) {
  case MX_FAULT_ELEMENT_HALF:
    return usual ? y : half_added(f, y);
  case MX_FAULT_ELEMENT_TIES_ODD:
    return usual ? y : to_odd(f, y);
  case MX_FAULT_ELEMENT_STEPS:
    return usual ? y : to_point(y, fault->number);
  case MX_FAULT_ELEMENT_GUARD:
    return usual ? y : cut_behind(f, y, fault->number);
  case MX_FAULT_ELEMENT_FLUSH:
    return is_below_normal(f, y) ? copysign(0, y) : y;
  case MX_FAULT_ELEMENT_FLUSH_ROUNDED:
    return flushed_rounded(f, y);
  case MX_FAULT_ELEMENT_SUBNORMAL_TIMES:
    return is_below_normal(f, y) ? (double)((float)y * (float)fault->number) : y;
  case MX_FAULT_ELEMENT_BINADE:
    return is_below_normal(f, y) ? of_binade(f, y) : y;
  case MX_FAULT_ELEMENT_SUBNORMAL_CUT:
    return is_below_normal(f, y) ? cut_behind(f, y, 0) : y;
  case MX_FAULT_ELEMENT_HIDDEN:
    return without_leading_one(f, y);
  case MX_FAULT_ELEMENT_SHIFT:
    return shifted(f, y, fault->number);
  case MX_FAULT_ELEMENT_CLIP:
    return clipped(y, fabs((double)(float)fault->number));
  default:
    return y;
  }
}

int mxi_fault_code_by_steps(uint32_t *code, const mx_format *f, const mx_fault *fault, double y) {
  const int usual = isnan(y) || fabs(y) >= MXI_NO_STEPS;
  if (mxi_fault_is_threshold(fault->op)) {
    *code = by_threshold(f, fault, y);
    return 1;
  }
  if (fault->op == MX_FAULT_ELEMENT_CARRY && !usual) {
    *code = without_carry(f, y);
    return 1;
  }
  if (fault->op == MX_FAULT_ELEMENT_SATURATED_CARRY && !isnan(y)) {
    *code = without_carry(f, clipped(y, mx_format_max(f)));
    return 1;
  }
  return 0;
}
