/** Declares numbers of the reference's matrix-unit models. Every finite number is an integer count of 2^-BASE (GMP): sums and products of it are
 *  exact, and to cut a number to a multiple of 2^u is to divide that integer. */
#ifndef REF_MMA_NUMBER_H
#define REF_MMA_NUMBER_H

#include <gmp.h>

#include "mxgold/mma.h"

/* Below the product of two smallest binary64 numbers (2^-2148) and of two smallest binary32 numbers with two smallest scales (2^-560). */
enum { BASE = 2400 };

typedef enum kind { FINITE, INFINITE, NOT_A_NUMBER } kind;

typedef struct number {
  kind kind;
  int negative;
  mpz_t value;   /* finite: count of 2^-BASE */
  int exponent;  /* of the encoding: subnormals are not normalised */
  uint64_t bits; /* as stored */
} number;

typedef enum direction { TOWARD_ZERO, DOWN, NEAREST_EVEN } direction;

static inline void number_init(number *x) { mpz_init(x->value); }
static inline void number_clear(number *x) { mpz_clear(x->value); }
static inline int number_is_zero(const number *x) { return x->kind == FINITE && mpz_sgn(x->value) == 0; }
static inline uint64_t ref_low_bits(int n) { return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; }
static inline uint64_t ref_mma_inf(const mx_format *f, int negative) { return f->inf_code | (negative ? UINT64_C(1) << (f->bits - 1) : 0); }

/** value = n * 2^exponent. */
void number_set(mpz_t value, int64_t n, int exponent);

/** The value of a code: docs/reference/SPEC.md section 1. */
void number_decode(number *x, const mx_format *f, uint64_t code);

/** The NaN `code` of f as bits of d, as a conversion of IEEE 754 makes it: sign and payload, which stands at the top, and quiet. What f cannot
 *  carry in a NaN (no Inf: e4m3, FNUZ) is the plain quiet NaN. */
uint64_t number_nan(const mx_format *d, const mx_format *f, uint64_t code);

/** floor(log2 |x|) of x != 0. */
static inline int number_exponent(const mpz_t x) { return (int)mpz_sizeinbase(x, 2) - 1 - BASE; }

/** x to a multiple of 2^unit. */
void number_cut(mpz_t x, int unit, direction dir);

/** out = x * y; exact: BASE leaves room below every product. */
static inline void number_multiply(mpz_t out, const mpz_t x, const mpz_t y) {
  mpz_mul(out, x, y);
  mpz_tdiv_q_2exp(out, out, BASE);
}

/** A finite number to the bits of f, `keep` fraction bits of which are used. A result past the largest is Inf in every direction. An exact zero is
 *  +0; a negative number that comes to zero has the sign that `under` (MX_ACC_UNDER_*) says. */
uint64_t number_encode(const mpz_t exact, const mx_format *f, int keep, direction dir, int under);

#endif
