/* Computes with exact numbers of any size. */
#include "ext.h"

#include <math.h>

void ext_init(ext *x) {
  x->kind = NUM_ZERO;
  x->sign = 0;
  mpq_init(x->q);
}

void ext_clear(ext *x) { mpq_clear(x->q); }

static void set(ext *x, int kind, int sign) {
  x->kind = kind;
  x->sign = sign;
}

/* The kind and sign that follow from q. */
static void settle(ext *x) {
  int s = mpq_sgn(x->q);
  set(x, s ? NUM_FINITE : NUM_ZERO, s < 0);
}

void ext_copy(ext *r, const ext *a) {
  set(r, a->kind, a->sign);
  if (a->kind == NUM_FINITE) mpq_set(r->q, a->q);
}

void ext_double(ext *r, double value) {
  if (isnan(value))
    set(r, NUM_NAN, 0);
  else if (isinf(value))
    set(r, NUM_INF, value < 0);
  else if (value == 0)
    set(r, NUM_ZERO, signbit(value) != 0);
  else {
    mpq_set_d(r->q, value);
    settle(r);
  }
}

void ext_add(ext *r, const ext *a, const ext *b) {
  if (a->kind == NUM_NAN || b->kind == NUM_NAN)
    set(r, NUM_NAN, 0);
  else if (a->kind == NUM_INF && b->kind == NUM_INF)
    set(r, a->sign == b->sign ? NUM_INF : NUM_NAN, a->sign == b->sign && a->sign);
  else if (a->kind == NUM_INF)
    set(r, NUM_INF, a->sign);
  else if (b->kind == NUM_INF)
    set(r, NUM_INF, b->sign);
  else if (a->kind == NUM_ZERO && b->kind == NUM_ZERO)
    set(r, NUM_ZERO, a->sign && b->sign);
  else if (a->kind == NUM_ZERO)
    ext_copy(r, b);
  else if (b->kind == NUM_ZERO)
    ext_copy(r, a);
  else {
    mpq_add(r->q, a->q, b->q);
    settle(r);
  }
}

void ext_mul(ext *r, const ext *a, const ext *b) {
  int sign = a->sign != b->sign, zero = a->kind == NUM_ZERO || b->kind == NUM_ZERO, inf = a->kind == NUM_INF || b->kind == NUM_INF;
  if (a->kind == NUM_NAN || b->kind == NUM_NAN || (zero && inf))
    set(r, NUM_NAN, 0);
  else if (inf || zero)
    set(r, inf ? NUM_INF : NUM_ZERO, sign);
  else {
    mpq_mul(r->q, a->q, b->q);
    settle(r);
  }
}

void ext_div(ext *r, const ext *a, const ext *b) {
  int sign = a->sign != b->sign;
  if (a->kind == NUM_NAN || b->kind == NUM_NAN || (a->kind == b->kind && a->kind != NUM_FINITE))
    set(r, NUM_NAN, 0);
  else if (a->kind == NUM_INF || b->kind == NUM_ZERO)
    set(r, NUM_INF, sign);
  else if (a->kind == NUM_ZERO || b->kind == NUM_INF)
    set(r, NUM_ZERO, sign);
  else {
    mpq_div(r->q, a->q, b->q);
    settle(r);
  }
}

/* q *= 2^e */
static void shift(mpq_t q, long e) {
  if (e >= 0)
    mpq_mul_2exp(q, q, (mp_bitcnt_t)e);
  else
    mpq_div_2exp(q, q, (mp_bitcnt_t)-e);
}

/* floor(log2 q) of a positive q. */
static long floor_log2(const mpq_t q) {
  long e = (long)mpz_sizeinbase(mpq_numref(q), 2) - (long)mpz_sizeinbase(mpq_denref(q), 2); /* right, or one too large */
  mpq_t x;
  mpq_init(x);
  mpq_set(x, q);
  shift(x, -e);
  if (mpq_cmp_ui(x, 1, 1) < 0) e--;
  mpq_clear(x);
  return e;
}

/* nearest 0: toward zero, where what is past the largest is the largest. */
static void to_bits(ext *r, int p, int min_exp, int max_exp, int nearest) {
  if (r->kind != NUM_FINITE) return;
  const int sign = r->sign;
  mpq_abs(r->q, r->q);
  long unit = floor_log2(r->q) - p + 1;
  if (unit < min_exp) unit = min_exp;
  shift(r->q, -unit);
  mpz_t n, rest;
  mpz_inits(n, rest, NULL);
  mpz_fdiv_qr(n, rest, mpq_numref(r->q), mpq_denref(r->q));
  mpz_mul_2exp(rest, rest, 1);
  const int half = mpz_cmp(rest, mpq_denref(r->q));
  if (nearest && (half > 0 || (half == 0 && mpz_odd_p(n)))) mpz_add_ui(n, n, 1);
  mpq_set_z(r->q, n);
  mpz_clears(n, rest, NULL);
  if (mpq_sgn(r->q) == 0) {
    set(r, NUM_ZERO, sign);
    return;
  }
  shift(r->q, unit);
  if (floor_log2(r->q) >= max_exp && nearest) {
    set(r, NUM_INF, sign);
    return;
  }
  if (floor_log2(r->q) >= max_exp) { /* (2^p - 1) 2^(max_exp - p) */
    mpq_set_ui(r->q, 1, 1);
    shift(r->q, p);
    mpz_sub_ui(mpq_numref(r->q), mpq_numref(r->q), 1);
    shift(r->q, max_exp - p);
  }
  if (sign) mpq_neg(r->q, r->q);
  settle(r);
}

void ext_round(ext *r, int p, int min_exp, int max_exp) { to_bits(r, p, min_exp, max_exp, 1); }
void ext_truncate_f32(ext *r) { to_bits(r, 24, -149, 128, 0); }
void ext_round_f32(ext *r) { ext_round(r, 24, -149, 128); }
void ext_round_f64(ext *r) { ext_round(r, 53, -1074, 1024); }

double ext_get(const ext *x) {
  switch (x->kind) {
  case NUM_NAN:
    return NAN;
  case NUM_INF:
    return x->sign ? -INFINITY : INFINITY;
  case NUM_ZERO:
    return x->sign ? -0.0 : 0.0;
  default:
    return mpq_get_d(x->q);
  }
}
