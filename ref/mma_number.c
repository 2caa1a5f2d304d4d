/* Computes with numbers of the reference's matrix-unit models: exact, cut and rounded. */
#include "mma_number.h"

void number_set(mpz_t value, int64_t n, int exponent) {
  mpz_set_si(value, n);
  mpz_mul_2exp(value, value, (mp_bitcnt_t)(exponent + BASE));
}

static void decode_integer(number *x, const mx_format *f, uint64_t code) {
  int64_t n = (int64_t)code;
  if (f->sign_bits && code >> (f->bits - 1) & 1) n -= (int64_t)1 << f->bits;
  x->kind = FINITE;
  x->negative = n < 0;
  x->exponent = 0;
  number_set(x->value, n, -f->man_bits);
}

void number_decode(number *x, const mx_format *f, uint64_t code) {
  x->bits = code;
  if (f->kind == MX_KIND_INT) {
    decode_integer(x, f, code);
    return;
  }
  x->negative = f->sign_bits ? (int)(code >> (f->bits - 1) & 1) : 0;
  uint64_t magnitude = code & ref_low_bits(f->bits - f->sign_bits);
  uint64_t nan_low = f->nan_first, nan_high = f->nan_last, tested = f->kind == MX_KIND_FNUZ ? code : magnitude;
  mpz_set_ui(x->value, 0);
  x->exponent = 0;
  if (nan_low != MX_NO_CODE && tested >= nan_low && tested <= nan_high) {
    x->kind = NOT_A_NUMBER;
    return;
  }
  if (magnitude == f->inf_code) {
    x->kind = INFINITE;
    return;
  }
  x->kind = FINITE;
  int64_t fraction = (int64_t)(magnitude & ref_low_bits(f->man_bits)), field = (int64_t)(magnitude >> f->man_bits);
  int subnormal = field == 0 && f->kind != MX_KIND_EXP;
  x->exponent = (subnormal ? 1 : (int)field) - f->bias;
  int64_t significand = subnormal ? fraction : fraction + ((int64_t)1 << f->man_bits);
  number_set(x->value, x->negative ? -significand : significand, x->exponent - f->man_bits);
}

uint64_t number_nan(const mx_format *d, const mx_format *f, uint64_t code) {
  uint64_t quiet = d->inf_code | UINT64_C(1) << (d->man_bits - 1);
  if (f->inf_code == MX_NO_CODE) return quiet;
  uint64_t sign = code >> (f->bits - 1) & 1, payload = code & ref_low_bits(f->man_bits);
  return sign << (d->bits - 1) | quiet | payload << (d->man_bits - f->man_bits);
}

void number_cut(mpz_t x, int unit, direction dir) {
  if (unit <= -BASE) return;
  mp_bitcnt_t n = (mp_bitcnt_t)(unit + BASE);
  mpz_t twice;
  switch (dir) {
  case TOWARD_ZERO:
    mpz_tdiv_q_2exp(x, x, n);
    break;
  case DOWN:
    mpz_fdiv_q_2exp(x, x, n);
    break;
  case NEAREST_EVEN: /* floor(x + 1/2), less one where that was a tie that went to an odd count */
    mpz_init(twice);
    mpz_ui_pow_ui(twice, 2, n - 1); /* n >= 1: unit > -BASE */
    mpz_add(x, x, twice);
    int tie = mpz_divisible_2exp_p(x, n);
    mpz_fdiv_q_2exp(x, x, n);
    if (tie && mpz_odd_p(x)) mpz_sub_ui(x, x, 1);
    mpz_clear(twice);
    break;
  }
  mpz_mul_2exp(x, x, n);
}

uint64_t number_encode(const mpz_t exact, const mx_format *f, int keep, direction dir, int under) {
  int lowest = 1 - f->bias, negative = mpz_sgn(exact) < 0;
  uint64_t sign = negative ? UINT64_C(1) << (f->bits - 1) : 0, bits;
  if (mpz_sgn(exact) == 0) return 0;
  mpz_t x;
  mpz_init_set(x, exact);
  int e = number_exponent(x);
  if (e < lowest) e = lowest;
  number_cut(x, e - keep, dir);
  if (mpz_sgn(x) == 0)
    bits = under == MX_ACC_UNDER_KEEP ? sign : 0;
  else {
    e = number_exponent(x); /* may have gone up by one */
    int unit = (e < lowest ? lowest : e) - f->man_bits;
    mpz_abs(x, x);
    mpz_tdiv_q_2exp(x, x, (mp_bitcnt_t)(unit + BASE));
    uint64_t significand = mpz_get_ui(x), field = e < lowest ? 0 : (uint64_t)(e + f->bias);
    bits =
        field >= ref_low_bits(f->exp_bits) ? ref_mma_inf(f, negative) : sign | field << f->man_bits | (significand & ref_low_bits(f->man_bits));
  }
  mpz_clear(x);
  return bits;
}
