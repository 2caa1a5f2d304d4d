/* Declares exact numbers of any size, for sums: a rational of GMP, or a signed zero, an infinity or NaN, for which IEEE 754's rules hold. */
#ifndef REF_EXT_H
#define REF_EXT_H

#include <gmp.h>

#include "num.h"

typedef struct ext {
  int kind; /* NUM_ZERO, NUM_FINITE, NUM_INF, NUM_NAN */
  int sign; /* 1: negative */
  mpq_t q;  /* NUM_FINITE: the value with its sign */
} ext;

void ext_init(ext *x); /* +0 */
void ext_clear(ext *x);
void ext_copy(ext *r, const ext *a);
void ext_double(ext *r, double value); /* exact */
/* r may be an operand. Exact; x - x is +0; a sum of zeros of one sign keeps it. */
void ext_add(ext *r, const ext *a, const ext *b);
void ext_mul(ext *r, const ext *a, const ext *b);
void ext_div(ext *r, const ext *a, const ext *b);
/* To p bits of significand, no bit below 2^min_exp, RNE; Inf at 2^max_exp. What underflows is a zero of its sign. */
void ext_round(ext *r, int p, int min_exp, int max_exp);
void ext_round_f32(ext *r);
void ext_round_f64(ext *r);
/* To binary32, toward zero. */
void ext_truncate_f32(ext *r);
/* The value, if a binary64 has it; NaN without a sign. */
double ext_get(const ext *x);

#endif
