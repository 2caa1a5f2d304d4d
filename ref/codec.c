/* Decodes and encodes single values: SPEC 1 and 2.
 *
 * Magnitude codes count the values of a format in ascending order. With man_bits bits of mantissa the values of one binade are equally far apart, and so
 * are those of the subnormals and the lowest binade together: the code below a value follows from its exponent and its leading bits, and how
 * far the value is on the way to the next code is the rest of its bits. Every rounding looks at these two alone. */
#include "codec.h"

#include <string.h>

#define MX_FORMAT(id, name, kind, ...) {name, MX_KIND_##kind, __VA_ARGS__},
static const mx_format elements[] = {
#include "../formats/elements.def"
};
static const mx_format scales[] = {
#include "../formats/scales.def"
};
#undef MX_FORMAT

const mx_format *ref_elem_format(int elem) { return elem >= 0 && elem < MX_ELEM_COUNT ? &elements[elem] : NULL; }
const mx_format *ref_scale_format(int scale) { return scale >= 0 && scale < MX_SCALE_COUNT ? &scales[scale] : NULL; }

static uint64_t ones(int bits) { return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

/* INT's sign is that of two's complement, not a bit beside a magnitude. */
uint64_t ref_sign_bit(const mx_format *f) { return f->sign_bits && f->kind != MX_KIND_INT ? UINT64_C(1) << (f->bits - 1) : 0; }

/* Exponent of the lowest binade. In a FLOAT the subnormals share its spacing; an EXP format starts with its first binade. */
static int lowest(const mx_format *f) { return f->kind == MX_KIND_EXP ? -f->bias : f->kind == MX_KIND_INT ? 0 : 1 - f->bias; }

/* ---- decode ---- */

/* integer * 2^exp */
static num scaled(uint64_t integer, int exp) {
  num r = num_int(integer);
  if (r.kind == NUM_FINITE) r.exp += exp;
  return r;
}

static num magnitude_value(const mx_format *f, uint64_t code) {
  uint64_t field = code >> f->man_bits, man = code & ones(f->man_bits);
  if (f->kind == MX_KIND_INT) return scaled(code, -f->man_bits);
  if (f->kind == MX_KIND_EXP) return scaled(man | UINT64_C(1) << f->man_bits, (int)field - f->bias - f->man_bits);
  if (field == 0) return scaled(man, 1 - f->bias - f->man_bits);
  return scaled(man | UINT64_C(1) << f->man_bits, (int)field - f->bias - f->man_bits);
}

static int in_nan_range(const mx_format *f, uint64_t code) { return f->nan_first != MX_NO_CODE && code >= f->nan_first && code <= f->nan_last; }

num ref_value(const mx_format *f, uint64_t code) {
  code &= ones(f->bits);
  if (f->kind == MX_KIND_INT) {
    uint64_t top = f->sign_bits ? UINT64_C(1) << (f->bits - 1) : 0;
    num r = scaled(code & top ? (top << 1) - code : code, -f->man_bits);
    r.sign = (code & top) != 0;
    return r;
  }
  if (f->kind == MX_KIND_FNUZ && in_nan_range(f, code)) return num_nan(0);
  uint64_t sign_bit = ref_sign_bit(f), magnitude = code & ~sign_bit;
  int sign = (code & sign_bit) != 0;
  if (in_nan_range(f, magnitude)) return num_nan(sign);
  if (magnitude == f->inf_code) return num_inf(sign);
  num r = magnitude_value(f, magnitude);
  r.sign = sign;
  return r;
}

num ref_format_largest(const mx_format *f) { return magnitude_value(f, f->max_code); }

/* ---- encode ---- */

/* A positive value lies at `code`, or at a fraction d = (frac + sticky) / 2^64 of the way from it to code + 1. The grid goes on beyond the
 * largest code of the format. */
typedef struct place {
  uint64_t code, frac;
  int sticky;
} place;

static place locate(const mx_format *f, num v) {
  if (v.kind != NUM_FINITE) return (place){0};
  int low = lowest(f), exp = v.exp;
  if (f->kind == MX_KIND_EXP && exp < low) return (place){0}; /* below the smallest value there is nothing: it is that value */
  if (exp < low || f->kind == MX_KIND_INT) exp = low;
  int drop = 63 - v.exp + exp - f->man_bits; /* bits of sig below one step of 2^(exp - man_bits) */
  place p = {0, 0, v.sticky};
  uint64_t steps = 0;
  if (drop <= 0) { /* an integer beyond 2^63: far past the largest code of any format */
    return (place){.code = UINT64_MAX >> 1};
  } else if (drop < 64) {
    steps = v.sig >> drop;
    p.frac = v.sig << (64 - drop);
  } else if (drop == 64) {
    p.frac = v.sig;
  } else {
    p.frac = drop < 128 ? v.sig >> (drop - 64) : 0;
    p.sticky |= drop < 128 ? (v.sig & ones(drop - 64)) != 0 : 1;
  }
  p.code = ((uint64_t)(exp - low) << f->man_bits) + steps;
  if (f->kind == MX_KIND_EXP) p.code -= UINT64_C(1) << f->man_bits; /* no hidden zero: the first code is the first step of a binade */
  return p;
}

static int at_code(place p) { return p.frac == 0 && !p.sticky; }

/* -1, 0, 1: d below, at, above one half. */
static int half(place p) {
  const uint64_t mid = UINT64_C(1) << 63;
  return p.frac > mid || (p.frac == mid && p.sticky) ? 1 : p.frac == mid ? 0 : -1;
}

/* d * 2^bits as an integer, rounded to nearest with ties to even, or to odd. */
static uint64_t nearest_steps(place p, int bits, int odd) {
  uint64_t whole = bits ? p.frac >> (64 - bits) : 0;
  place rest = {0, p.frac << bits, p.sticky};
  int h = half(rest);
  return whole + (h > 0 || (h == 0 && (whole & 1) != (unsigned)odd));
}

static int stochastic_up(place p, int mode, int bits, uint32_t random) {
  const uint64_t one = UINT64_C(1) << bits, b = random & (one - 1);
  switch (mode) {
  case MX_SR_FASTEST:
    return (p.frac >> (64 - bits)) + b >= one;
  case MX_SR_SRC:
    return nearest_steps(p, bits, 0) + b >= one;
  case MX_SR_ODD:
    return nearest_steps(p, bits, 1) + b >= one;
  default:
    return (p.frac >> (63 - bits)) + 2 * b + 1 >= 2 * one; /* MX_SR_FAST */
  }
}

/* floor(rnd_f32(u + 1/2)) for u = steps + d, and with ties to even one less where u - 1/2 is an even integer; relative to floor(u). u is a binary32 in steps
 * of the quantum, subnormals of the format included. */
static int float_up(const mx_format *f, num v, place p, int even) {
  int low = lowest(f), exp = v.exp < low || f->kind == MX_KIND_INT ? low : v.exp;
  num u = v;
  u.exp -= exp - f->man_bits;
  int up = num_floor(num_add_r(u, num_pow2(-1), NUM_F32)) > num_floor(u);
  return up && !(even && half(p) == 0 && !(num_floor(u) & 1));
}

static int rounds_up(const mx_format *f, num x, place p, const ref_how *how, uint32_t random) {
  if (at_code(p)) return 0;
  switch (how->base.round) {
  case MX_ROUND_RNA:
    return half(p) >= 0;
  case MX_ROUND_RTZ_TIE:
    return half(p) > 0;
  case MX_ROUND_RTZ:
    return 0;
  case MX_ROUND_RTP:
    return !x.sign;
  case MX_ROUND_RTN:
    return x.sign;
  case MX_ROUND_SR:
    return stochastic_up(p, how->base.sr_mode, how->base.sr_bits ? how->base.sr_bits : 16, random);
  case MX_ROUND_RNA_F32:
    return float_up(f, num_abs(x), p, 0);
  case MX_ROUND_RNE_F32:
    return float_up(f, num_abs(x), p, 1);
  default:
    return half(p) > 0 || (half(p) == 0 && (p.code & 1));
  }
}

/* Directed rounding never takes a finite value past the largest finite one in the direction of zero (IEEE 754 7.4). */
static int toward_zero(const ref_how *how, num x) {
  int round = how->base.round;
  return round == MX_ROUND_RTZ || (round == MX_ROUND_RTN && !x.sign) || (round == MX_ROUND_RTP && x.sign);
}

/* Sign and magnitude code as the format writes them. Zero has no sign in INT, FNUZ and unsigned formats. */
static uint64_t with_sign(const mx_format *f, uint64_t magnitude, int sign) {
  if (f->kind == MX_KIND_INT) return (sign ? -magnitude : magnitude) & ones(f->bits);
  if (f->kind == MX_KIND_FNUZ && magnitude == 0) sign = 0;
  return sign ? magnitude | ref_sign_bit(f) : magnitude;
}

static uint64_t nan_code(const mx_format *f, int sign, int largest) {
  return with_sign(f, largest || f->nan_code == MX_NO_CODE ? f->max_code : f->nan_code, sign);
}

static uint64_t or_sign(const mx_format *f, uint64_t code, int sign) {
  return (code | (sign && f->sign_bits && f->kind != MX_KIND_INT ? UINT64_C(1) << (f->bits - 1) : 0)) & ones(f->bits);
}

static uint64_t encode_nan(const mx_format *f, int sign, const mx_encoding *how) {
  switch (how->nan) {
  case MX_ELEM_NAN_POSMAX:
    return nan_code(f, 0, 0);
  case MX_ELEM_NAN_SATMAX:
    return nan_code(f, sign, 1);
  case MX_ELEM_NAN_ZERO:
    return 0;
  case MX_ELEM_NAN_ZERO_FLIP:
    return with_sign(f, 0, !sign);
  case MX_ELEM_NAN_CODE:
    return or_sign(f, how->nan_code, sign);
  default:
    return nan_code(f, sign, 0);
  }
}

/* A value beyond the largest where the largest is to be stored. */
static uint64_t saturated(const mx_format *f, int sign, const mx_encoding *how) {
  return nan_code(f, sign, how->saturate_to != MX_SATURATE_TO_NAN);
}

static uint64_t past_largest(const mx_format *f, int sign, const mx_encoding *how) {
  if (how->overflow == MX_OVERFLOW_IEEE) {
    if (f->inf_code != MX_NO_CODE) return with_sign(f, f->inf_code, sign);
    return nan_code(f, sign, 0);
  }
  return saturated(f, sign, how);
}

static uint64_t encode_zero(const mx_format *f, num x, const mx_encoding *how) {
  int sign = x.sign;
  if (how->zero_sign == MX_ZERO_SIGN_DROP_INPUT && num_is_zero(x)) sign = 0;
  if (how->zero_sign == MX_ZERO_SIGN_DROP_ALL) sign = 0;
  if (how->zero_sign == MX_ZERO_SIGN_FORCE) sign = x.sign || num_is_zero(x);
  return with_sign(f, 0, sign);
}

/* Magnitude code that x rounds to on the grid without an end. */
static uint64_t round_code(const mx_format *f, num x, const ref_how *how, uint32_t random) {
  if (how->base.round == MX_ROUND_RNA_F32 || how->base.round == MX_ROUND_RNE_F32) x = num_round(x, NUM_F32);
  if (x.kind == NUM_INF) return f->max_code + 1;
  place p = locate(f, x);
  if (f->kind == MX_KIND_EXP && f->man_bits == 0 && how->subnormal == MX_SCALE_SUBNORMAL_ENCODING && x.kind == NUM_FINITE && x.exp < -126) {
    /* The mantissa of a binary32 subnormal is taken for that of a normal number of exponent field 0: code 0 at 0, code 1 at 2^-126. */
    const int shift = -127 - x.exp;
    p = (place){0, shift < 64 ? x.sig >> shift : 0, x.sticky};
    const int directed = how->base.round == MX_ROUND_RTZ || how->base.round == MX_ROUND_RTP || how->base.round == MX_ROUND_RTN;
    if (!directed && how->base.round != MX_ROUND_SR) return half(p) > 0; /* its tie goes down, whatever the rounding's own ties do */
  }
  return p.code + (unsigned)rounds_up(f, x, p, how, random);
}

num ref_unbounded(const mx_format *f, num y, const mx_encoding *how, uint32_t random) {
  ref_how all = {.base = *how};
  num largest = ref_format_largest(f);
  if (y.kind != NUM_FINITE) return y;
  if (y.exp <= largest.exp) {
    uint64_t code = round_code(f, y, &all, random);
    num r = magnitude_value(f, code);
    r.sign = y.sign;
    return r;
  }
  /* In steps of the last binade, however large: a format with that one binade and more mantissa. */
  int wider = y.exp - largest.exp;
  mx_format wide = *f;
  if (wider > 40) return y;
  wide.man_bits = (uint8_t)(f->man_bits + wider);
  num r = magnitude_value(&wide, round_code(&wide, y, &all, random));
  r.sign = y.sign;
  return r;
}

/* elem.overflow=wrap_negzero: what lies past the largest goes through bfloat16, and exponent and mantissa are cut out of that without a check. */
static uint64_t wrap(const mx_format *f, num x, const ref_how *how, uint32_t random) {
  num v = num_round(ref_unbounded(f, x, &how->base, random), NUM_BF16);
  uint64_t code = ((uint64_t)(v.exp - lowest(f) + 1) << f->man_bits) | (v.sig << 1 >> (64 - f->man_bits));
  return or_sign(f, code, x.sign);
}

static uint64_t nearest_of_all(const mx_format *f, num y);

uint64_t ref_code(const mx_format *f, num x, const ref_how *how, uint32_t random) {
  if (how->base.round == MX_ROUND_SCAN_Y) return nearest_of_all(f, x);
  int unsigned_format = f->sign_bits == 0;
  if (unsigned_format && how->negative == MX_NEGATIVE_NAN && x.kind != NUM_NAN) {
    if (x.kind == NUM_ZERO ? f->kind == MX_KIND_EXP : x.sign) x = num_nan(0);
  }
  if (x.kind == NUM_NAN) return encode_nan(f, x.sign, &how->base);
  if (unsigned_format) x.sign = 0;
  if (how->base.overflow == MX_OVERFLOW_WRAP_NEGZERO && x.kind == NUM_FINITE && x.exp >= 127) x = num_inf(x.sign); /* there 2 x is Inf */
  if (x.kind == NUM_INF) {
    if (how->base.inf == MX_ELEM_INF_ZERO) return 0;
    if (how->base.inf == MX_ELEM_INF_CODE) return or_sign(f, how->base.inf_code, x.sign);
    return past_largest(f, x.sign, &how->base);
  }
  uint64_t code = round_code(f, x, how, random);
  if (code > f->max_code) {
    if (how->base.overflow == MX_OVERFLOW_WRAP_NEGZERO) return wrap(f, x, how, random);
    if (toward_zero(how, x)) return saturated(f, x.sign, &how->base);
    return past_largest(f, x.sign, &how->base);
  }
  return code || f->kind == MX_KIND_EXP ? with_sign(f, code, x.sign) : encode_zero(f, x, &how->base);
}

/* elem.round=scan_y: the first code of least rnd_f32|y - value|; a distance that is NaN is never chosen. */
static uint64_t nearest_of_all(const mx_format *f, num y) {
  uint64_t best = 0;
  num least = num_nan(0);
  y = num_round(y, NUM_F32);
  for (uint64_t code = 0; code >> f->bits == 0; code++) {
    num d = num_abs(num_sub_r(y, num_round(ref_value(f, code), NUM_F32), NUM_F32));
    if (num_is_nan(d) || (!num_is_nan(least) && num_cmp(d, least) >= 0)) continue;
    best = code;
    least = d;
  }
  return best;
}

/* ---- the public calls ---- */

static double as_double(num a) {
  uint64_t bits = (uint64_t)a.sign << 63;
  if (a.kind == NUM_NAN) bits |= UINT64_C(0x7FF8) << 48;
  if (a.kind == NUM_INF) bits |= UINT64_C(0x7FF0) << 48;
  if (a.kind == NUM_FINITE) bits |= a.exp < -1022 ? a.sig >> (11 - 1022 - a.exp) : (uint64_t)(a.exp + 1023) << 52 | (a.sig << 1 >> 12);
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

double ref_decode(const mx_format *format, uint64_t code) { return as_double(ref_value(format, code)); }

uint64_t ref_encode(const mx_format *format, double x, const mx_encoding *how, uint32_t random) {
  ref_how all = {.base = *how};
  return ref_code(format, num_double(x), &all, random);
}

uint64_t ref_encode_scale(const mx_format *format, double x, const mx_encoding *how, int subnormal, int negative, uint32_t random) {
  ref_how all = {*how, subnormal, negative};
  return ref_code(format, num_double(x), &all, random);
}

double ref_format_max(const mx_format *format) { return as_double(ref_format_largest(format)); }
double ref_format_min(const mx_format *format) { return as_double(magnitude_value(format, format->kind == MX_KIND_EXP ? 0 : 1)); }
int ref_format_emax(const mx_format *format) { return ref_format_largest(format).exp; }
int ref_format_is_nan(const mx_format *format, uint64_t code) { return num_is_nan(ref_value(format, code)); }
