/* Rounds the quotients of elements by the words of SPEC 9: what is done to one first, how it is rounded, what it becomes. */
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

/* Does the rounding of y meet the fault? A threshold acts between two neighbours alone. */
static int meets(const mx_format *format, const ref_fault *f, num y) {
  uint64_t low;
  if (!is_threshold(f)) return 1;
  if (num_is_nan(y) || !gap_of(&low, format, f)) return 0;
  if (num_cmp(num_abs(y), ref_value(format, low + 1)) >= 0) return 0;
  if (num_cmp(num_abs(y), ref_value(format, low)) == 0) return IS(f, "up from") && num_cmp(num_abs(ref_argument(f)), num_abs(y)) == 0;
  return num_cmp(num_abs(y), ref_value(format, low)) > 0;
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

/* The binary16 next to y on the side of zero, found from the nearest one. */
static num cut_to_f16(num y) {
  const num largest = num_int(65504), ulp = num_pow2(y.kind == NUM_FINITE && y.exp > -14 ? y.exp - 10 : -24);
  if (num_is_nan(y) || y.kind == NUM_INF || num_is_zero(y)) return y;
  num near = num_cmp(num_abs(y), largest) >= 0 ? largest : num_abs(num_round(y, NUM_F16));
  if (num_cmp(near, num_abs(y)) > 0) near = num_add(near, num_neg(ulp));
  near.sign = y.sign;
  return near;
}

/* Beyond all steps of a format, where codes are not counted. */
static int is_far(num y) { return num_is_nan(y) || y.kind == NUM_INF || (y.kind == NUM_FINITE && y.exp >= 40); }

/* ---- the three kinds of words */

enum { INTO, BEFORE, ROUND, KINDS };

static int is_one_of(const ref_fault *f, const char *const *words, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (IS(f, words[k])) return 1;
  return 0;
}

static int kind_of(const ref_fault *f) {
  static const char *const before[] = {"bfloat16",
                                       "bfloat16 cut",
                                       "float16",
                                       "float16 cut",
                                       "format",
                                       "times",
                                       "clip",
                                       "flush",
                                       "flush rounded",
                                       "shift bits",
                                       "subnormal times",
                                       "subnormal without leading one",
                                       "subnormal toward zero",
                                       "exponent 0 as normal",
                                       "guard bits",
                                       "bits behind the point"};
  static const char *const into[] = {"as", "wrap", "modulo"};
  if (is_one_of(f, before, sizeof before / sizeof *before)) return BEFORE;
  return is_one_of(f, into, sizeof into / sizeof *into) ? INTO : ROUND;
}

static num change(const mx_format *format, const ref_fault *f, num y) {
  const int n = (int)f->number;
  if (IS(f, "bfloat16")) return num_round(num_round(y, NUM_F32), NUM_BF16);
  if (IS(f, "bfloat16 cut")) return ref_cut_to_bf16(num_round(y, NUM_F32));
  if (IS(f, "float16")) return num_round(num_round(y, NUM_F32), NUM_F16);
  if (IS(f, "float16 cut")) return cut_to_f16(num_round(y, NUM_F32));
  if (IS(f, "format")) return ref_to_format(f->format, y);
  if (IS(f, "times")) return num_mul_r(num_round(y, NUM_F32), ref_argument(f), NUM_F32);
  if (IS(f, "clip")) return clipped(y, num_abs(ref_argument(f)));
  if (IS(f, "flush rounded")) return flush_rounded(format, y);
  if (IS(f, "bits behind the point") && !is_far(y) && n >= -20 && n <= 20) return from_units(units(num_abs(y), -n, 1), -n, y.sign);
  if (IS(f, "guard bits") && !is_far(y) && n >= 0 && n <= 20) {
    const int unit = binade_of(format, num_abs(y)) - format->man_bits - n;
    return from_units(units(num_abs(y), unit, 0), unit, y.sign);
  }
  if (!is_below_normal(format, y)) return y;
  if (IS(f, "flush")) return num_zero(y.sign);
  if (IS(f, "exponent 0 as normal")) {
    const int unit = least_exponent(format) - format->man_bits;
    const uint64_t one = UINT64_C(1) << format->man_bits;
    if (y.kind != NUM_FINITE || y.exp != -format->bias) return num_zero(y.sign);
    return units(num_abs(y), unit - 1, 1) == one ? num_zero(y.sign) : from_units(units(num_abs(y), unit - 1, 1) - one, unit, y.sign);
  }
  if (IS(f, "subnormal toward zero")) {
    const int unit = least_exponent(format) - format->man_bits;
    const uint64_t below = units(num_abs(y), unit, 0);
    return below ? from_units(below, unit, y.sign) : num_zero(y.sign);
  }
  if (IS(f, "subnormal times")) return num_mul_r(num_round(y, NUM_F32), ref_argument(f), NUM_F32);
  if (IS(f, "subnormal without leading one")) return without_leading_one(format, y);
  if (IS(f, "shift bits") && n >= 1 && n <= 20 && y.kind == NUM_FINITE) {
    const int away = least_exponent(format) - y.exp;
    y.exp += away - away % (1 << n);
  }
  return y;
}

/* The code of |y| by a word that rounds to a neighbour, NULL to nearest even, if numbers went on beyond the largest. */
static uint64_t neighbour(const mx_format *format, const ref_fault *f, num y) {
  const num a = num_abs(y);
  const int unit = binade_of(format, a) - format->man_bits;
  if (!f) return count_of(format, a, 1);
  const uint64_t below = count_of(format, a, 0), halves = units(a, unit - 1, 0), is_half = halves % 2;
  const int is_exact = num_cmp(from_units(halves / 2, unit, 0), a) == 0, is_tie = is_half && num_cmp(from_units(halves, unit - 1, 0), a) == 0;
  if (IS(f, "toward zero") || IS(f, "float16 then cut")) return below;
  if (IS(f, "away from zero")) return below + !is_exact;
  if (IS(f, "ties away") || (IS(f, "ties up") && !y.sign) || (IS(f, "ties down") && y.sign)) return below + is_half;
  if (IS(f, "ties toward zero") || IS(f, "ties up") || IS(f, "ties down")) return below + (is_half && !is_tie);
  return count_of(format, a, 1); /* of a number that has become one of the format */
}

static void direct(ref_how *how, const ref_fault *f, num y) {
  if (IS(f, "toward zero") || IS(f, "float16 then cut")) how->base.round = MX_ROUND_RTZ;
  if (IS(f, "away from zero")) how->base.round = y.sign ? MX_ROUND_RTN : MX_ROUND_RTP;
  if (IS(f, "ties away")) how->base.round = MX_ROUND_RNA;
  if (IS(f, "ties toward zero")) how->base.round = MX_ROUND_RTZ_TIE;
  if (IS(f, "ties up")) how->base.round = y.sign ? MX_ROUND_RTZ_TIE : MX_ROUND_RNA;
  if (IS(f, "ties down")) how->base.round = y.sign ? MX_ROUND_RNA : MX_ROUND_RTZ_TIE;
}

num ref_beyond_largest(const mx_format *f) {
  const num three_halves = num_ratio((num[]){num_int(3)}, 1, (num[]){num_int(2)}, 1);
  num below = num_ratio((num[]){ref_value(f, f->max_code - 1), num_pow2(-1)}, 2, NULL, 0);
  return num_add(num_ratio((num[]){ref_format_largest(f), three_halves}, 2, NULL, 0), num_neg(below));
}

/* y by its rounding, as what the last word makes of it. */
static uint64_t become(const mx_format *format, const ref_fault *round, const ref_fault *into, num y, const ref_how *how) {
  if (into && IS(into, "modulo") && !is_far(y))
    return with_sign(format, neighbour(format, round, y), y.sign) & ((UINT64_C(1) << format->bits) - 1);
  if (into && IS(into, "wrap") && !num_is_nan(y)) {
    const int by_count = round && !is_far(y);
    if (by_count ? neighbour(format, round, y) > format->max_code : num_cmp(num_abs(y), ref_beyond_largest(format)) >= 0)
      return y.sign ? UINT64_C(1) << (format->bits - 1) : 0;
  }
  return ref_code(format, y, how, 0);
}

int ref_rounded(uint64_t *code, const ref_run *r, const ref_plan *plan, num y, size_t row, size_t col) {
  const ref_fault *met[KINDS] = {NULL, NULL, NULL};
  const mx_format *format = plan->elem;
  ref_how how = plan->how;
  uint64_t low = 0;
  for (int kind = 0; kind < KINDS; kind++) { /* what it becomes says in which format the others count */
    for (size_t i = r->n_faults; i--;) {
      const ref_fault *f = &r->faults[i];
      if (f->stage == REF_ELEMENT && kind_of(f) == kind && ref_element_in(r, f, row, col) && (kind != ROUND || meets(format, f, y)))
        met[kind] = f;
    }
    if (kind == INTO && met[INTO] && IS(met[INTO], "as")) {
      format = met[INTO]->format;
      how = (ref_how){0};
      if (!format->sign_bits) y = num_abs(y);
    }
    if (kind == BEFORE && met[BEFORE]) y = change(format, met[BEFORE], y);
  }
  const ref_fault *round = met[ROUND];
  if (!met[BEFORE] && !round && !met[INTO]) return 0;
  if (how.base.round == MX_ROUND_SCAN_X || how.base.round == MX_ROUND_SCAN_Y) how.base.round = MX_ROUND_RNE;
  if (round) direct(&how, round, y);
  if (round && IS(round, "float16 then cut")) y = num_round(num_round(y, NUM_F32), NUM_F16);
  if (round && IS(round, "float16 then cut") && y.kind == NUM_INF && format->inf_code != MX_NO_CODE)
    how.base.overflow = MX_OVERFLOW_IEEE, how.base.inf = MX_ELEM_INF_OVERFLOW;
  if (round && IS(round, "half added") && !is_far(y)) y = half_added(format, y);
  if (round && IS(round, "ties to odd") && !is_far(y)) y = ties_to_odd(format, y);
  if (round && ref_is_random(round) && !num_is_nan(y) && y.kind != NUM_INF) {
    *code = ref_random_code(r, format, round, y, row, col);
  } else if (round && is_threshold(round)) {
    const int order = num_cmp(num_abs(y), num_abs(ref_argument(round)));
    gap_of(&low, format, round);
    *code = with_sign(format, low + (IS(round, "up from") ? order >= 0 : order > 0), y.sign);
  } else if (round && IS(round, "carry lost") && !is_far(y)) {
    *code = carry_lost(format, y);
  } else if (round && IS(round, "saturated, carry lost") && !num_is_nan(y)) {
    *code = carry_lost(format, clipped(y, ref_format_largest(format)));
  } else {
    *code = become(format, round, met[INTO], y, &how);
  }
  if (format != plan->elem) *code &= (UINT64_C(1) << plan->elem->bits) - 1;
  return 1;
}
