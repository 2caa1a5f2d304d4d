/* Declares numbers of the reference: a real as sign, exponent and a 64-bit significand, with one bit that says whether anything lies below it.
 *
 * A finite non-zero number is sig * 2^(exp - 63) with bit 63 of sig set, so that exp = floor(log2 |value|). sticky = 1 means that the real lies
 * strictly between this number and the next one of 64 bits. No format has more than 53 bits and no stochastic rounding looks at more than 32
 * bits beyond them, so every rounding decision made from (sig, sticky) is the decision made from the real itself: that is what "exact" means
 * here. No host floating point decides a bit. */
#ifndef REF_NUM_H
#define REF_NUM_H

#include <stddef.h>
#include <stdint.h>

enum { NUM_ZERO, NUM_FINITE, NUM_INF, NUM_NAN };

typedef struct num {
  int kind;
  int sign; /* 1: negative; zeros and NaNs have one too */
  int exp;
  uint64_t sig;
  int sticky;
} num;

/* The binary formats that arithmetic is done in. */
typedef enum num_type { NUM_F32, NUM_BF16, NUM_F16, NUM_F64 } num_type;

num num_zero(int sign);
num num_inf(int sign);
num num_nan(int sign);
num num_int(uint64_t value);
num num_pow2(int exp);
num num_float(float value);
num num_double(double value);
num num_abs(num a);
num num_neg(num a);

/* Order of two numbers that are not NaN: -1, 0, 1; -0 equals +0. */
int num_cmp(num a, num b);
int num_is_zero(num a);
int num_is_nan(num a);

/* The product of n_over numbers divided by the product of n_under, each of them exact. A NaN operand passes through (the first one wins, over
 * before under); 0 * Inf, 0 / 0 and Inf / Inf give the negative NaN that x86 gives. n_over <= 6, n_under <= 6. */
num num_ratio(const num *over, int n_over, const num *under, int n_under);
/* a + b of exact operands; x + -x is +0. NaN as above, Inf - Inf is the negative NaN. */
num num_add(num a, num b);

/* To the nearest value of the type, ties to even, subnormals kept, overflow to Inf. */
num num_round(num a, num_type type);

/* One operation of the type each: exact, then rounded once. */
num num_mul_r(num a, num b, num_type type);
num num_div_r(num a, num b, num_type type);
num num_add_r(num a, num b, num_type type);
num num_sub_r(num a, num b, num_type type);

/* The binary32 of a number that is one already (num_round first). NaN gives 0x7FC00000 with the sign. */
uint32_t num_bits32(num a);
float num_to_float(num a);
/* The binary32 of a result: as above, NaN canonical. */
float num_result(num a);

/* Largest integer <= a, or least integer >= a, of a finite number below 2^31. */
int num_floor(num a);
int num_ceil(num a);

/* The exact log2 of a positive binary32, rounded once to binary32 (log2.c). */
num num_log2f(num a);

#endif
