/* Rounds elements by the steps of their format: the words of SPEC 9 for bits that are lost, carries, saturation and thresholds. */
#include <string.h>

#include "fault_run.h"

/* A magnitude as a count of units 2^unit: the nearest, ties to even, or the one below. It is below 2^62. */
static uint64_t units(num a, int unit, int nearest) {
  if (a.kind != NUM_FINITE || a.exp < unit - 1) return 0;
  const int dropped = 63 - (a.exp - unit);
  if (dropped == 64) return nearest && (a.sig << 1 || a.sticky); /* from a half up to one unit */
  if (dropped <= 0) return a.sig << -dropped;
  const uint64_t whole = a.sig >> dropped, rest = a.sig << (64 - dropped), half = UINT64_C(1) << 63;
  const int up = rest > half || (rest == half && (a.sticky || whole & 1));
  return whole + (nearest && up);
}

static num from_units(uint64_t n, int unit, int sign) {
  num y = num_int(n);
  y.sign = sign;
  if (y.kind == NUM_FINITE) y.exp += unit;
  return y;
}

static int is_float(const mx_format *format) { return format->kind == MX_KIND_FLOAT; }
static int least_exponent(const mx_format *format) { return is_float(format) ? 1 - format->bias : 0; }

/* The exponent of the binade that a magnitude lies in, at least that of the least normal number; an INT has one. */
static int binade_of(const mx_format *format, num a) {
  const int least = least_exponent(format);
  return is_float(format) && a.kind == NUM_FINITE && a.exp > least ? a.exp : least;
}
static uint64_t count_of(const mx_format *format, num a, int nearest) {
  const int e = binade_of(format, a);
  return units(a, e - format->man_bits, nearest) + ((uint64_t)(e - least_exponent(format)) << format->man_bits);
}

uint64_t ref_count(const mx_format *format, num a) { return count_of(format, a, 1); }

static int is_below_normal(const mx_format *format, num y) {
  return is_float(format) && !num_is_nan(y) && num_cmp(num_abs(y), num_pow2(1 - format->bias)) < 0;
}

static uint64_t with_sign(const mx_format *format, uint64_t magnitude, int sign) {
  const uint64_t bit = UINT64_C(1) << (format->bits - 1), all = 2 * bit - 1;
  if (format->kind == MX_KIND_INT) return (sign ? 0 - magnitude : magnitude) & all;
  return magnitude + (sign ? bit : 0);
}

/* The number below a threshold, if there is one above. */
static int gap_of(uint64_t *low, const mx_format *format, const ref_fault *f) {
  const num c = num_abs(ref_argument(f));
  if (num_cmp(c, ref_format_largest(format)) >= 0) return 0;
  *low = count_of(format, c, 0);
  return *low < format->max_code;
}

static int is_threshold(const ref_fault *f) { return IS(f, "up from") || IS(f, "up beyond"); }

int ref_meets(const mx_format *format, const ref_fault *f, num y) {
  uint64_t low;
  if (!is_threshold(f)) return 1;
  if (num_is_nan(y) || !gap_of(&low, format, f)) return 0;
  return num_cmp(num_abs(y), ref_value(format, low)) > 0 && num_cmp(num_abs(y), ref_value(format, low + 1)) < 0;
}

int ref_rounds_by_steps(const ref_fault *f) {
  static const char *const words[] = {"clip",        "bits behind the point",
                                      "guard bits",  "float16 then cut",
                                      "carry lost",  "modulo",
                                      "flush",       "subnormal times",
                                      "shift bits",  "up from",
                                      "up beyond",   "saturated, carry lost",
                                      "half added",  "flush rounded",
                                      "ties to odd", "subnormal without leading one"};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (IS(f, words[k])) return 1;
  return 0;
}

static uint64_t carry_lost(const mx_format *format, num y) {
  const uint64_t mantissa = (UINT64_C(1) << format->man_bits) - 1, below = count_of(format, num_abs(y), 0),
                 near = count_of(format, num_abs(y), 1);
  const uint64_t code = is_float(format) && below > mantissa ? (below & ~mantissa) | (near & mantissa) : near;
  return with_sign(format, code < format->max_code ? code : format->max_code, y.sign);
}

/* y + u / 2 cut toward zero, u the distance of neighbours. */
static num half_added(const mx_format *format, num y) {
  const int unit = binade_of(format, num_abs(y)) - format->man_bits;
  const uint64_t halves = units(num_abs(y), unit - 1, 0);
  return from_units(y.sign ? (halves - (halves > 0)) / 2 : (halves + 1) / 2, unit, y.sign);
}

/* Below the least normal number: that number, if y rounded to the bits of its mantissa is, else 0. */
static num flush_rounded(const mx_format *format, num y) {
  if (!is_below_normal(format, y)) return y;
  if (y.kind != NUM_FINITE) return num_zero(y.sign);
  const num rounded = from_units(units(num_abs(y), y.exp - format->man_bits, 1), y.exp - format->man_bits, y.sign);
  return is_below_normal(format, rounded) ? num_zero(y.sign) : rounded;
}

/* The leading one of a number below the least normal one taken away. What is behind the 64 bits of a quotient keeps it above 0. */
static num without_leading_one(const mx_format *format, num y) {
  if (y.kind != NUM_FINITE || !is_below_normal(format, y)) return y;
  y.sig <<= 1;
  y.exp--;
  if (!y.sig && !y.sticky) return num_zero(y.sign);
  if (!y.sig) y.sig = 1;
  for (; !(y.sig >> 63); y.exp--) y.sig <<= 1;
  return y;
}

/* A tie becomes that of its neighbours whose code is odd. */
static num ties_to_odd(const mx_format *format, num y) {
  const num a = num_abs(y);
  const int unit = binade_of(format, a) - format->man_bits;
  const uint64_t halves = units(a, unit - 1, 0);
  if (halves % 2 == 0 || num_cmp(from_units(halves, unit - 1, 0), a) != 0) return y;
  return from_units(halves / 2 + (count_of(format, a, 0) % 2 == 0), unit, y.sign);
}

static num clipped(num y, num most) {
  if (num_is_nan(y) || num_cmp(num_abs(y), most) <= 0) return y;
  most.sign = y.sign;
  return most;
}

uint64_t ref_by_steps(const mx_format *format, const ref_fault *f, num y, const ref_how *how) {
  ref_how other = *how;
  const int n = (int)f->number, usual = num_is_nan(y) || y.kind == NUM_INF || (y.kind == NUM_FINITE && y.exp >= 40);
  const num a = num_abs(y);
  uint64_t low = 0;
  if (is_threshold(f)) {
    const int order = num_cmp(a, num_abs(ref_argument(f)));
    gap_of(&low, format, f);
    return with_sign(format, low + (IS(f, "up from") ? order >= 0 : order > 0), y.sign);
  }
  if (IS(f, "clip")) y = clipped(y, num_abs(ref_argument(f)));
  if (IS(f, "flush") && is_below_normal(format, y)) y = num_zero(y.sign);
  if (IS(f, "subnormal times") && is_below_normal(format, y)) y = num_mul_r(num_round(y, NUM_F32), ref_argument(f), NUM_F32);
  if (IS(f, "shift bits") && n >= 1 && n <= 20 && y.kind == NUM_FINITE && is_below_normal(format, y)) {
    const int away = least_exponent(format) - y.exp;
    y.exp += away - away % (1 << n);
  }
  if (IS(f, "float16 then cut")) {
    y = num_round(num_round(y, NUM_F32), NUM_F16);
    other.base.round = MX_ROUND_RTZ;
  }
  if (IS(f, "bits behind the point") && !usual && n >= -20 && n <= 20) y = from_units(units(a, -n, 1), -n, y.sign);
  if (IS(f, "guard bits") && !usual && n >= 0 && n <= 20) {
    const int unit = binade_of(format, a) - format->man_bits - n;
    y = from_units(units(a, unit, 0), unit, y.sign);
  }
  if (IS(f, "modulo") && !usual) return with_sign(format, count_of(format, a, 1), y.sign) & ((UINT64_C(1) << format->bits) - 1);
  if (IS(f, "carry lost") && !usual) return carry_lost(format, y);
  if (IS(f, "saturated, carry lost") && !num_is_nan(y)) return carry_lost(format, clipped(y, ref_format_largest(format)));
  if (IS(f, "half added") && !usual) y = half_added(format, y);
  if (IS(f, "ties to odd") && !usual) y = ties_to_odd(format, y);
  if (IS(f, "subnormal without leading one")) y = without_leading_one(format, y);
  if (IS(f, "flush rounded")) y = flush_rounded(format, y);
  return ref_code(format, y, &other, 0);
}
