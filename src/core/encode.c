/* Encodes one value as one code: SPEC 2. */
#include <math.h>

#include "core/encode.h"
#include "mxgold/spec.h"

/* |x| as significand * 2^exponent with 53 bits, the significand's top bit set (0 stays 0). */
static uint64_t split(double x, int *exponent) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const int field = (int)(bits >> 52 & 0x7FF);
  if (field) {
    *exponent = field - 1075;
    return (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  }
  int e;
  const double m = frexp(fabs(x), &e);
  *exponent = e - 53;
  return (uint64_t)ldexp(m, 53);
}

/* Whether the discarded part rounds up. significand / 2^shift is the magnitude in steps of the target; odd: the code below is odd. */
static int rounds_up(uint64_t significand, int shift, int odd, int negative, const mx_encoding *how, uint32_t random) {
  const uint64_t rest = shift >= 64 ? significand : significand & ((UINT64_C(1) << shift) - 1);
  const uint64_t half = shift > 64 ? UINT64_MAX : UINT64_C(1) << (shift - 1); /* a 53-bit significand never reaches UINT64_MAX */
  switch (how->round) {
  case MX_ROUND_RNE:
    return rest > half || (rest == half && odd);
  case MX_ROUND_RNA:
    return rest >= half;
  case MX_ROUND_RTZ_TIE:
    return rest > half;
  case MX_ROUND_RTZ:
    return 0;
  case MX_ROUND_RTP:
    return rest && !negative;
  case MX_ROUND_RTN:
    return rest && negative;
  default:
    break;
  }
  /* Stochastic: the fraction d = rest / 2^shift, in units of 2^-keep, is compared with a random b of r bits. */
  const int r = how->sr_bits ? how->sr_bits : 16;
  const uint64_t b = random & ((UINT64_C(1) << r) - 1);
  const int keep = how->sr_mode == MX_SR_FAST ? r + 1 : r;
  const int drop = shift - keep;
  uint64_t d = drop >= 64 ? 0 : drop >= 0 ? rest >> drop : rest << -drop;
  if (how->sr_mode == MX_SR_FAST) return d + 2 * b + 1 >= UINT64_C(1) << keep;
  if (how->sr_mode != MX_SR_FASTEST && drop > 0 && drop < 64) {
    const uint64_t low = rest & ((UINT64_C(1) << drop) - 1), middle = UINT64_C(1) << (drop - 1);
    const uint64_t tie_up = how->sr_mode == MX_SR_ODD ? !(d & 1) : d & 1;
    d += low > middle || (low == middle && tie_up);
  }
  return d + b >= UINT64_C(1) << r;
}

/* floor(rnd_f32(u + 1/2)), u in steps of the target: how some libraries round. The addition rounds too, so a u just below one half goes up. */
static uint64_t round_f32(float u, int ties_even) {
  const float sum = u + 0.5f;
  return (uint64_t)floorf(sum) - (ties_even && fmodf(u - 0.5f, 2) == 0);
}

static uint64_t nan_code(const mx_format *f, uint64_t sign, const mx_encoding *how) {
  const uint64_t natural = f->nan_code != MX_NO_CODE ? f->nan_code : f->max_code;
  switch (how->nan) {
  case MX_ELEM_NAN_POSMAX:
    return natural;
  case MX_ELEM_NAN_SATMAX:
    return sign | f->max_code;
  case MX_ELEM_NAN_ZERO:
    return 0;
  case MX_ELEM_NAN_ZERO_FLIP:
    return f->kind == MX_KIND_FLOAT && f->sign_bits && !sign ? UINT64_C(1) << (f->bits - 1) : 0;
  case MX_ELEM_NAN_CODE:
    return sign | how->nan_code;
  default:
    return f->kind == MX_KIND_FNUZ ? natural : sign | natural;
  }
}

/* Finite |x| rounded to a whole number of steps of 2^quantum. Its code is *base, the code at which the steps count from 0, plus that number.
 * `last`: above the format's largest binade the steps of that binade go on; otherwise exponents go on. */
static uint64_t steps_of(const mx_format *f, double x, int last, uint64_t *base, int *quantum, const mx_encoding *how, uint32_t random) {
  int exponent;
  const uint64_t significand = split(x, &exponent);
  int e = exponent + 52; /* floor(log2 |x|) */
  const int emin = 1 - f->bias, emax = (int)(f->max_code >> f->man_bits) - f->bias;
  if (f->kind == MX_KIND_INT) {
    e = 0;
    *base = 0;
  } else if (f->kind == MX_KIND_EXP) {
    *base = (uint64_t)(e + f->bias - 1) << f->man_bits;
  } else {
    if (e < emin) e = emin;
    if (last && e > emax) e = emax;
    *base = (uint64_t)(e - emin) << f->man_bits;
  }
  *quantum = e - f->man_bits;
  const int shift = *quantum - exponent;
  if (how->round == MX_ROUND_RNA_F32 || how->round == MX_ROUND_RNE_F32)
    return round_f32((float)mx_times_pow2(fabs(x), -*quantum), how->round == MX_ROUND_RNE_F32);
  if (shift <= 0) return significand << -shift;
  const uint64_t steps = shift >= 64 ? 0 : significand >> shift;
  return steps + rounds_up(significand, shift, (int)((*base + steps) & 1), f->sign_bits && signbit(x), how, random);
}

/* Formats with exponents have the codes of their numbers where binary64 has its bits: cut off, they are the code below. Returns 0 for what the
 * general way alone can do: other formats, other roundings than by the part that is cut off, subnormal numbers of binary64. */
static int magnitude_by_bits(uint64_t *code, const mx_format *f, double x, const mx_encoding *how) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= ~(UINT64_C(1) << 63);
  const int field = (int)(bits >> 52), least = 1 - f->bias + 1023; /* of the exponents: of x, and of the format's least normal number */
  if ((f->kind != MX_KIND_FLOAT && f->kind != MX_KIND_FNUZ) || f->man_bits >= 52 || !field || least < 1) return 0;
  int shift = 52 - f->man_bits;
  if (field >= least)
    bits -= (uint64_t)(least - 1) << 52;
  else {
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    shift = least - field < 63 - shift ? shift + least - field : 63;
  }
  const uint64_t half = UINT64_C(1) << (shift - 1), rest = bits & (2 * half - 1), below = bits >> shift;
  const int negative = f->sign_bits && signbit(x);
  switch (how->round) {
  case MX_ROUND_RNE:
    *code = below + (rest + (below & 1) > half);
    return 1;
  case MX_ROUND_RNA:
    *code = below + (rest >= half);
    return 1;
  case MX_ROUND_RTZ_TIE:
    *code = below + (rest > half);
    return 1;
  case MX_ROUND_RTZ:
    *code = below;
    return 1;
  case MX_ROUND_RTP:
    *code = below + (rest && !negative);
    return 1;
  case MX_ROUND_RTN:
    *code = below + (rest && negative);
    return 1;
  default:
    return 0;
  }
}

/* The code of finite |x|, as if the format had exponents above its largest value. */
static uint64_t magnitude(const mx_format *f, double x, const mx_encoding *how, uint32_t random) {
  uint64_t base, code;
  int quantum;
  if (x == 0) return 0;
  if (magnitude_by_bits(&code, f, x, how)) return code;
  if (f->kind == MX_KIND_EXP && fabs(x) < mx_times_pow2(1, -f->bias)) return 0; /* no code lies below the smallest value */
  if (f->kind == MX_KIND_INT && fabs(x) >= mx_times_pow2(1, f->bits - f->sign_bits - f->man_bits)) return f->max_code + 1;
  const uint64_t steps = steps_of(f, x, 0, &base, &quantum, how, random);
  return base + steps;
}

double mxi_round_past_largest(const mx_format *f, double x, const mx_encoding *how, uint32_t random) {
  uint64_t base;
  int quantum;
  if (!(fabs(x) < 0x1p127)) return isnan(x) ? x : copysign(INFINITY, x);
  if (x == 0 || ilogb(x) >= (int)(f->max_code >> f->man_bits) - f->bias + 52) return x;
  const uint64_t steps = steps_of(f, x, 1, &base, &quantum, how, random);
  return copysign(mx_times_pow2((double)steps, quantum), x);
}

/* elem.overflow=wrap_negzero: a value beyond the largest is rounded to bfloat16, and its exponent and mantissa bits are taken without a
 * check. */
static uint64_t wrapped(const mx_format *f, double x, const mx_encoding *how, uint32_t random) {
  static const mx_encoding cut = {.round = MX_ROUND_RTZ}, nearest = {.overflow = MX_OVERFLOW_IEEE};
  const mx_format *bf16 = mx_scale_format(MX_SCALE_BF16);
  return magnitude(f, mx_round_to(bf16, fabs(mxi_round_past_largest(f, x, how, random)), &nearest, 0), &cut, 0);
}

/* Roundings toward zero never take a number past the largest. */
static int stays_below(const mx_format *f, double x, const mx_encoding *how) {
  const int down = f->sign_bits && signbit(x) ? how->round == MX_ROUND_RTP : how->round == MX_ROUND_RTN;
  return !isinf(x) && (down || how->round == MX_ROUND_RTZ);
}

/* What a magnitude beyond the largest becomes. */
static uint64_t overflowed(const mx_format *f, double x, const mx_encoding *how) {
  if (how->overflow == MX_OVERFLOW_IEEE && !stays_below(f, x, how)) {
    if (f->inf_code != MX_NO_CODE) return f->inf_code;
    if (f->nan_code != MX_NO_CODE) return f->nan_code;
  }
  return how->saturate_to == MX_SATURATE_TO_NAN && f->nan_code != MX_NO_CODE ? f->nan_code : f->max_code;
}

uint64_t mx_encode(const mx_format *f, double x, const mx_encoding *how, uint32_t random) {
  const uint64_t all = f->bits == 64 ? UINT64_MAX : (UINT64_C(1) << f->bits) - 1, top = UINT64_C(1) << (f->bits - 1);
  const int negative = f->sign_bits && signbit(x), integer = f->kind == MX_KIND_INT;
  const uint64_t sign = negative && !integer ? top : 0;
  uint64_t mag;
  if (integer && isnan(x) && how->nan == MX_ELEM_NAN_POSMAX) return f->max_code;
  if (integer && ((isnan(x) && how->nan == MX_ELEM_NAN_CODE) || (isinf(x) && how->inf == MX_ELEM_INF_CODE))) /* the key gives the code itself */
    return isnan(x) ? how->nan_code : how->inf_code;
  if (isnan(x))
    mag = nan_code(f, sign, how);
  else if (how->overflow == MX_OVERFLOW_WRAP_NEGZERO && isfinite(x) && fabs(x) >= 0x1p127)
    return mx_encode(f, copysign(INFINITY, x), how, random); /* twice x is Inf there */
  else if (isinf(x) && how->inf == MX_ELEM_INF_ZERO)
    return 0;
  else if (isinf(x) && how->inf == MX_ELEM_INF_CODE)
    mag = sign | how->inf_code;
  else {
    mag = isinf(x) ? f->max_code + 1 : magnitude(f, x, how, random);
    if (mag > f->max_code) {
      if (how->overflow == MX_OVERFLOW_WRAP_NEGZERO && isfinite(x)) return (sign | wrapped(f, x, how, random)) & all;
      mag = overflowed(f, x, how);
    }
    const int dropped = mag == 0 && (f->kind == MX_KIND_FNUZ || how->zero_sign == MX_ZERO_SIGN_DROP_ALL ||
                                     (how->zero_sign == MX_ZERO_SIGN_DROP_INPUT && x == 0));
    if (!integer && !dropped && !(f->kind == MX_KIND_FNUZ && mag == f->nan_code))
      mag |= how->zero_sign == MX_ZERO_SIGN_FORCE && f->sign_bits && !(x > 0) ? top : sign;
  }
  return integer && negative ? (~mag + 1) & all : mag;
}

double mx_round_to(const mx_format *format, double x, const mx_encoding *how, uint32_t random) {
  return mx_decode(format, mx_encode(format, x, how, random));
}

mx_encoding mx_elem_encoding(const mx_spec *spec) {
  return (mx_encoding){.round = spec->elem_round,
                       .overflow = spec->elem_overflow,
                       .saturate_to = spec->elem_saturate_to,
                       .nan = spec->elem_nan,
                       .inf = spec->elem_inf,
                       .zero_sign = spec->elem_zero_sign,
                       .sr_mode = spec->sr_mode,
                       .sr_bits = (int)spec->sr_bits,
                       .nan_code = (uint32_t)spec->elem_nan_n,
                       .inf_code = (uint32_t)spec->elem_inf_n};
}

static int scale_rounding(int round) {
  switch (round) {
  case MX_SCALE_ROUND_UP:
    return MX_ROUND_RTP;
  case MX_SCALE_ROUND_DOWN:
    return MX_ROUND_RTZ;
  case MX_SCALE_ROUND_RNA:
    return MX_ROUND_RNA;
  case MX_SCALE_ROUND_SR:
    return MX_ROUND_SR;
  default:
    return MX_ROUND_RNE;
  }
}

mx_encoding mx_scale_encoding(const mx_spec *spec) {
  return (mx_encoding){.round = scale_rounding(spec->scale_round), .sr_mode = MX_SR_FASTEST, .sr_bits = 24};
}
