/* Computes the scale of scale.rule=quest: 2^floor(log2(2.92247856/6 * std + 1e-8)), std the population's, every number exact: with var = std^2
 * rational, c * std + 1e-8 >= 2^k  if and only if  c^2 * var >= (2^k - 1e-8)^2 or 2^k <= 1e-8. */
#include "rules.h"

#include <gmp.h>

static void set(mpq_t out, num a) {
  mpq_set_ui(out, 0, 1);
  if (a.kind == NUM_INF) a = (num){.kind = NUM_FINITE, .sign = a.sign, .exp = 128, .sig = UINT64_C(1) << 63}; /* scale.inf=rule */
  if (a.kind != NUM_FINITE) return;
  mpz_set_ui(mpq_numref(out), a.sig);
  if (a.exp >= 63)
    mpq_mul_2exp(out, out, (mp_bitcnt_t)(a.exp - 63));
  else
    mpq_div_2exp(out, out, (mp_bitcnt_t)(63 - a.exp));
  if (a.sign) mpq_neg(out, out);
}

/* 2^k - 1e-8 <= 0 for k < -26 */
static int reached(mpq_srcptr square, mpq_srcptr tiny, int k) {
  mpq_t power;
  mpq_init(power);
  mpq_set_ui(power, 1, 1);
  if (k >= 0)
    mpq_mul_2exp(power, power, (mp_bitcnt_t)k);
  else
    mpq_div_2exp(power, power, (mp_bitcnt_t)-k);
  mpq_sub(power, power, tiny);
  int yes = mpq_sgn(power) <= 0;
  mpq_mul(power, power, power);
  yes |= mpq_cmp(square, power) >= 0;
  mpq_clear(power);
  return yes;
}

int ref_quest_exponent(const ref_plan *plan, const ref_block *block) {
  mpq_t x, sum, squares, n, c, tiny;
  mpq_inits(x, sum, squares, n, c, tiny, NULL);
  unsigned long count = 0;
  for (size_t i = 0; i < block->n; i++) {
    num a;
    if (!ref_counts(&a, plan, block->x[i])) continue;
    a.sign = block->x[i].sign;
    count++;
    set(x, a);
    mpq_add(sum, sum, x);
    mpq_mul(x, x, x);
    mpq_add(squares, squares, x);
  }
  /* var = (squares - sum^2 / n) / n */
  mpq_set_ui(n, count, 1);
  mpq_mul(sum, sum, sum);
  mpq_div(sum, sum, n);
  mpq_sub(squares, squares, sum);
  mpq_div(squares, squares, n);
  mpq_set_ui(c, 292247856, 600000000);
  mpq_canonicalize(c);
  set(x, plan->norm_over);
  mpq_mul(c, c, x);
  set(x, plan->norm_under);
  mpq_div(c, c, x);
  mpq_mul(squares, squares, c);
  mpq_mul(squares, squares, c);
  mpq_set_ui(tiny, 1, 100000000);
  int k = -27;
  while (reached(squares, tiny, k + 1)) k++;
  mpq_clears(x, sum, squares, n, c, tiny, NULL);
  return k;
}
