/* Matrix-unit models, the reference. docs/SPEC.md section 4, in its order.
 *
 * Every finite number is an integer count of 2^-BASE (GMP): sums and products of it are exact, and to cut a number to a multiple of 2^u is to
 * divide that integer. Nothing here is shared with src/gemm but the rows of formats/ and the struct that holds them. */
#include "mma.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

/* Below the product of two smallest binary64 numbers (2^-2148) and of two smallest binary32 numbers with two smallest scales (2^-560). */
enum { BASE = 2400 };

/* ------------------------------------------------------------------ numbers */

typedef enum kind { FINITE, INFINITE, NOT_A_NUMBER } kind;

typedef struct number {
  kind kind;
  int negative;
  mpz_t value;   /* finite: count of 2^-BASE */
  int exponent;  /* of the encoding: subnormals are not normalised */
  uint64_t bits; /* as stored */
} number;

static void number_init(number *x) { mpz_init(x->value); }
static void number_clear(number *x) { mpz_clear(x->value); }
static int is_zero(const number *x) { return x->kind == FINITE && mpz_sgn(x->value) == 0; }

/* value = n * 2^exponent */
static void set_scaled(mpz_t value, int64_t n, int exponent) {
  mpz_set_si(value, n);
  mpz_mul_2exp(value, value, (mp_bitcnt_t)(exponent + BASE));
}

static uint64_t low_bits(int n) { return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; }

static void decode_integer(number *x, const mx_format *f, uint64_t code) {
  int64_t n = (int64_t)code;
  if (f->sign_bits && code >> (f->bits - 1) & 1) n -= (int64_t)1 << f->bits;
  x->kind = FINITE;
  x->negative = n < 0;
  x->exponent = 0;
  set_scaled(x->value, n, -f->man_bits);
}

/* The value of a code: docs/SPEC.md section 1. */
static void decode(number *x, const mx_format *f, uint64_t code) {
  x->bits = code;
  if (f->kind == MX_KIND_INT) {
    decode_integer(x, f, code);
    return;
  }
  x->negative = f->sign_bits ? (int)(code >> (f->bits - 1) & 1) : 0;
  uint64_t magnitude = code & low_bits(f->bits - f->sign_bits);
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
  int64_t fraction = (int64_t)(magnitude & low_bits(f->man_bits)), field = (int64_t)(magnitude >> f->man_bits);
  int subnormal = field == 0 && f->kind != MX_KIND_EXP;
  x->exponent = (subnormal ? 1 : (int)field) - f->bias;
  int64_t significand = subnormal ? fraction : fraction + ((int64_t)1 << f->man_bits);
  set_scaled(x->value, x->negative ? -significand : significand, x->exponent - f->man_bits);
}

/* ------------------------------------------------------------------ raw bits in arrays */

static size_t bytes_of(const mx_format *f) { return f->bits <= 8 ? 1 : f->bits <= 16 ? 2 : f->bits <= 32 ? 4 : 8; }

/* Element k of a row: two a byte up to 4 bits, tf32 and xf32 in the upper bits of their word. */
static uint64_t load(const uint8_t *row, const mx_format *f, size_t k) {
  if (f->bits <= 4) return (k % 2 ? row[k / 2] >> 4 : row[k / 2]) & 15;
  size_t size = bytes_of(f);
  uint64_t word = 0;
  for (size_t i = size; i-- > 0;) word = word << 8 | row[k * size + i];
  if (f->bits == 19) word >>= 13;
  return word & low_bits(f->bits);
}

static void save(uint8_t *to, const mx_format *f, uint64_t bits) {
  for (size_t i = 0; i < bytes_of(f); i++, bits >>= 8) to[i] = (uint8_t)bits;
}

static size_t row_bytes(const mx_format *f, size_t K) { return f->bits <= 4 ? (K + 1) / 2 : K * bytes_of(f); }

/* ------------------------------------------------------------------ cutting and rounding */

typedef enum direction { TOWARD_ZERO, DOWN, NEAREST_EVEN } direction;

static direction of_align(int align) { return align == MX_ACC_ALIGN_RD ? DOWN : align == MX_ACC_ALIGN_RNE ? NEAREST_EVEN : TOWARD_ZERO; }
static direction of_cut(int cut) { return cut == MX_ACC_CUT_RD ? DOWN : cut == MX_ACC_CUT_RNE ? NEAREST_EVEN : TOWARD_ZERO; }
static direction of_out(int out) { return out == MX_ACC_OUT_RD ? DOWN : out == MX_ACC_OUT_RNE ? NEAREST_EVEN : TOWARD_ZERO; }

/* x to a multiple of 2^unit. */
static void cut(mpz_t x, int unit, direction dir) {
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

/* floor(log2 |x|) of x != 0. */
static int exponent_of(const mpz_t x) { return (int)mpz_sizeinbase(x, 2) - 1 - BASE; }

static uint64_t infinity_of(const mx_format *f, int negative) { return f->inf_code | (negative ? UINT64_C(1) << (f->bits - 1) : 0); }

static uint64_t nan_of(const mx_mma_model *m) {
  if (m->accum.nan == MX_ACC_NAN_ONES) return low_bits(m->d->bits - 1);
  return m->d->inf_code + (UINT64_C(1) << (m->d->man_bits - 1));
}

/* A finite number to the bits of f, `keep` fraction bits of which are used. A result past the largest is Inf in every direction. An exact zero
 * is +0; a negative number that comes to zero has the sign that `under` says. */
static uint64_t encode(const mpz_t exact, const mx_format *f, int keep, direction dir, int under) {
  int lowest = 1 - f->bias, negative = mpz_sgn(exact) < 0;
  uint64_t sign = negative ? UINT64_C(1) << (f->bits - 1) : 0, bits;
  if (mpz_sgn(exact) == 0) return 0;
  mpz_t x;
  mpz_init_set(x, exact);
  int e = exponent_of(x);
  if (e < lowest) e = lowest;
  cut(x, e - keep, dir);
  if (mpz_sgn(x) == 0)
    bits = under == MX_ACC_UNDER_KEEP ? sign : 0;
  else {
    e = exponent_of(x); /* may have gone up by one */
    int unit = (e < lowest ? lowest : e) - f->man_bits;
    mpz_abs(x, x);
    mpz_tdiv_q_2exp(x, x, (mp_bitcnt_t)(unit + BASE));
    uint64_t significand = mpz_get_ui(x), field = e < lowest ? 0 : (uint64_t)(e + f->bias);
    bits = field >= low_bits(f->exp_bits) ? infinity_of(f, negative) : sign | field << f->man_bits | (significand & low_bits(f->man_bits));
  }
  mpz_clear(x);
  return bits;
}

/* ------------------------------------------------------------------ one output */

/* An accumulator: nothing at all, or bits of type D. */
typedef struct accumulator {
  int exists;
  uint64_t bits;
} accumulator;

/* One product of a group: its factors, and the scales of its blocks (1 where the model has none). */
typedef struct product {
  number a, b, scale_a, scale_b;
} product;

static void product_init(product *p) {
  number_init(&p->a);
  number_init(&p->b);
  number_init(&p->scale_a);
  number_init(&p->scale_b);
}

static void product_clear(product *p) {
  number_clear(&p->a);
  number_clear(&p->b);
  number_clear(&p->scale_a);
  number_clear(&p->scale_b);
}

static void multiply(mpz_t out, const mpz_t x, const mpz_t y) {
  mpz_mul(out, x, y);
  mpz_tdiv_q_2exp(out, out, BASE); /* exact: BASE leaves room below every product */
}

/* a * b, and a * b * scale_a * scale_b. */
static void value_of_elements(mpz_t out, const product *p) { multiply(out, p->a.value, p->b.value); }
static void value_of_scales(mpz_t out, const product *p) { multiply(out, p->scale_a.value, p->scale_b.value); }
static void value_of(mpz_t out, const product *p) {
  mpz_t s;
  mpz_init(s);
  value_of_elements(out, p);
  value_of_scales(s, p);
  multiply(out, out, s);
  mpz_clear(s);
}

/* --- 1. Inf and NaN --- */

typedef struct verdict {
  int nan, plus, minus; /* what was met */
} verdict;

static void meet_product(verdict *v, const product *p) {
  const number *factor[] = {&p->a, &p->b, &p->scale_a, &p->scale_b};
  int infinite = 0, zero = 0, negative = 0;
  for (int i = 0; i < 4; i++) {
    v->nan |= factor[i]->kind == NOT_A_NUMBER;
    infinite |= factor[i]->kind == INFINITE;
    zero |= is_zero(factor[i]);
    negative ^= factor[i]->negative;
  }
  if (infinite && zero) v->nan = 1;
  if (infinite) *(negative ? &v->minus : &v->plus) = 1;
}

static void meet(verdict *v, const number *x) {
  if (x->kind == NOT_A_NUMBER) v->nan = 1;
  if (x->kind == INFINITE) *(x->negative ? &v->minus : &v->plus) = 1;
}

/* Whether the verdict decides the result. */
static int decides(const verdict *v, const mx_mma_model *m, uint64_t *bits) {
  if (v->nan || (v->plus && v->minus)) {
    *bits = nan_of(m);
    return 1;
  }
  if (v->plus || v->minus) *bits = infinity_of(m->d, v->minus);
  return v->plus || v->minus;
}

/* huge=inf: a finite product of 2^128 or more. */
static void meet_huge(verdict *v, const product *p) {
  mpz_t x;
  mpz_init(x);
  value_of(x, p);
  if (mpz_sgn(x) != 0 && exponent_of(x) >= 128) *(mpz_sgn(x) < 0 ? &v->minus : &v->plus) = 1;
  mpz_clear(x);
}

/* --- 2. terms and their exponents --- */

typedef struct term {
  mpz_t value;
  int exponent;
  int takes_part; /* in the alignment; a term that does not is zero */
} term;

/* The exponent that a number brings to a product's: zero=e126 gives every zero -126. */
static int own_exponent(const mx_accum *x, const number *n) { return x->zero == MX_ACC_ZERO_E126 && is_zero(n) ? -126 : n->exponent; }

static void term_of_product(term *t, const mx_accum *x, const product *p) {
  value_of(t->value, p);
  t->exponent = own_exponent(x, &p->a) + own_exponent(x, &p->b) + own_exponent(x, &p->scale_a) + own_exponent(x, &p->scale_b);
  t->takes_part = x->zero == MX_ACC_ZERO_E126 || mpz_sgn(t->value) != 0;
}

static void term_of_number(term *t, const mx_accum *x, const number *n) {
  mpz_set(t->value, n->value);
  t->exponent = own_exponent(x, n);
  t->takes_part = x->zero == MX_ACC_ZERO_E126 || !is_zero(n);
}

/* P products of one scale: summed exactly, then times the scales, whose exponents alone are the term's. */
static void term_of_presum(term *t, const mx_accum *x, const product *p, size_t n) {
  mpz_t v;
  mpz_init(v);
  mpz_set_ui(t->value, 0);
  for (size_t i = 0; i < n; i++) {
    value_of_elements(v, &p[i]);
    mpz_add(t->value, t->value, v);
  }
  value_of_scales(v, &p[0]);
  multiply(t->value, t->value, v);
  t->exponent = own_exponent(x, &p[0].scale_a) + own_exponent(x, &p[0].scale_b);
  t->takes_part = x->zero == MX_ACC_ZERO_E126 || mpz_sgn(t->value) != 0;
  mpz_clear(v);
}

/* --- 3. align, cut, sum --- */

/* Sum of the terms start, start + step, ..., each cut to F bits below the largest exponent. Becomes a term of that exponent. */
static void align_and_sum(term *sum, const mx_accum *x, term *terms, size_t n, size_t start, size_t step) {
  sum->takes_part = 0;
  mpz_set_ui(sum->value, 0);
  for (size_t i = start; i < n; i += step)
    if (terms[i].takes_part && (!sum->takes_part || terms[i].exponent > sum->exponent)) {
      sum->takes_part = 1;
      sum->exponent = terms[i].exponent;
    }
  if (!sum->takes_part) return;
  if (x->floor && sum->exponent < x->floor) sum->exponent = x->floor;
  for (size_t i = start; i < n; i += step) {
    if (!terms[i].takes_part) continue;
    if (x->F != MX_ACC_F_EXACT) cut(terms[i].value, sum->exponent - x->F, of_align(x->align));
    mpz_add(sum->value, sum->value, terms[i].value);
  }
}

/* Two terms, each cut to its own width below the larger exponent, and added. */
static void join_two(term *out, term *one, int one_bits, term *two, int two_bits, direction dir) {
  out->takes_part = one->takes_part || two->takes_part;
  out->exponent = !two->takes_part || (one->takes_part && one->exponent > two->exponent) ? one->exponent : two->exponent;
  mpz_set_ui(out->value, 0);
  if (one->takes_part) {
    cut(one->value, out->exponent - one_bits, dir);
    mpz_add(out->value, out->value, one->value);
  }
  if (two->takes_part) {
    cut(two->value, out->exponent - two_bits, dir);
    mpz_add(out->value, out->value, two->value);
  }
}

/* split=evenodd, or all terms at once. */
static void sum_products(term *sum, const mx_accum *x, term *terms, size_t n) {
  if (x->split == MX_ACC_SPLIT_NONE) {
    align_and_sum(sum, x, terms, n, 0, 1);
    return;
  }
  term even, odd;
  mpz_init(even.value);
  mpz_init(odd.value);
  align_and_sum(&even, x, terms, n, 0, 2);
  align_and_sum(&odd, x, terms, n, 1, 2);
  if (even.takes_part && odd.takes_part)
    join_two(sum, &even, x->F, &odd, x->F, of_cut(x->join_cut));
  else {
    term *one = even.takes_part ? &even : &odd;
    mpz_set(sum->value, one->value);
    sum->exponent = one->exponent;
    sum->takes_part = one->takes_part;
  }
  mpz_clear(even.value);
  mpz_clear(odd.value);
}

/* --- 4. C joins --- */

/* join=after: C that lies too far below counts as zero. */
static void join_after(term *out, const mx_accum *x, term *sum, term *c) {
  int larger = sum->takes_part && sum->exponent > c->exponent ? sum->exponent : c->exponent;
  if (x->c_drop && c->takes_part && c->exponent < larger - x->c_drop) mpz_set_ui(c->value, 0);
  join_two(out, sum, x->sum_bits, c, x->c_bits, of_cut(x->join_cut));
}

/* --- 5. a group --- */

static size_t make_terms(term *terms, const mx_accum *x, const product *p, size_t n) {
  size_t count = 0;
  if (!x->P) {
    for (size_t i = 0; i < n; i++) term_of_product(&terms[count++], x, &p[i]);
    return count;
  }
  for (size_t i = 0; i < n; i += (size_t)x->P) term_of_presum(&terms[count++], x, &p[i], n - i < (size_t)x->P ? n - i : (size_t)x->P);
  return count;
}

/* terms has room for n + 1. */
static uint64_t fused_group(const mx_mma_model *m, const product *p, size_t n, accumulator acc, term *terms) {
  const mx_accum *x = &m->accum;
  uint64_t bits = 0;
  verdict v = {0};
  number c;
  number_init(&c);
  if (acc.exists) decode(&c, m->d, acc.bits);
  for (size_t i = 0; i < n; i++) meet_product(&v, &p[i]);
  if (acc.exists) meet(&v, &c);
  int decided = decides(&v, m, &bits);
  if (!decided && x->huge == MX_ACC_HUGE_INF) {
    for (size_t i = 0; i < n; i++) meet_huge(&v, &p[i]);
    decided = decides(&v, m, &bits);
  }
  if (!decided) {
    term sum, joint, last;
    mpz_init(sum.value);
    mpz_init(joint.value);
    mpz_init(last.value);
    last.takes_part = 0;
    last.exponent = -BASE;
    size_t count = make_terms(terms, x, p, n);
    if (acc.exists) term_of_number(&last, x, &c);
    if (x->join == MX_ACC_JOIN_AFTER) {
      sum_products(&sum, x, terms, count);
      join_after(&joint, x, &sum, &last);
    } else {
      if (acc.exists) {
        mpz_set(terms[count].value, last.value);
        terms[count].exponent = last.exponent;
        terms[count].takes_part = last.takes_part;
        count++;
      }
      align_and_sum(&joint, x, terms, count, 0, 1);
    }
    bits = encode(joint.value, m->d, x->out_bits ? x->out_bits : m->d->man_bits, of_out(x->out_round), x->under);
    mpz_clear(sum.value);
    mpz_clear(joint.value);
    mpz_clear(last.value);
  }
  number_clear(&c);
  return bits;
}

/* --- 6. additions and fused multiply-adds of IEEE 754 --- */

/* a * b + c to f, RNE; b may be NULL for 1. NaN as the model has it, unless nan=first. */
static uint64_t multiply_add(const mx_mma_model *m, const mx_format *f, const number *a, const number *b, const number *c) {
  uint64_t bits = 0, quiet = UINT64_C(1) << (f->man_bits - 1), sign = UINT64_C(1) << (f->bits - 1);
  int negative = a->negative ^ (b ? b->negative : 0);
  int infinite = a->kind == INFINITE || (b && b->kind == INFINITE);
  int nan = a->kind == NOT_A_NUMBER || (b && b->kind == NOT_A_NUMBER) || c->kind == NOT_A_NUMBER;
  int invalid = !nan && infinite && (is_zero(a) || (b && is_zero(b)) || (c->kind == INFINITE && c->negative != negative));
  if (nan || invalid) {
    if (m->accum.nan != MX_ACC_NAN_FIRST) return nan_of(m);
    if (invalid) return f->inf_code | quiet | sign;
    const number *first = b && b->kind == NOT_A_NUMBER ? b : c->kind == NOT_A_NUMBER ? c : a;
    return first->bits | quiet;
  }
  if (infinite) return infinity_of(f, negative);
  if (c->kind == INFINITE) return infinity_of(f, c->negative);
  mpz_t sum;
  mpz_init_set(sum, a->value);
  if (b) multiply(sum, a->value, b->value);
  int product_zero = mpz_sgn(sum) == 0;
  mpz_add(sum, sum, c->value);
  if (mpz_sgn(sum) == 0) /* -0 only from two negative zeros */
    bits = product_zero && is_zero(c) && negative && c->negative ? sign : 0;
  else
    bits = encode(sum, f, f->man_bits, NEAREST_EVEN, MX_ACC_UNDER_KEEP);
  mpz_clear(sum);
  return bits;
}

static uint64_t add(const mx_mma_model *m, const mx_format *f, uint64_t x, uint64_t y) {
  number a, b;
  number_init(&a);
  number_init(&b);
  decode(&a, f, x);
  decode(&b, f, y);
  uint64_t sum = multiply_add(m, f, &a, NULL, &b);
  number_clear(&a);
  number_clear(&b);
  return sum;
}

/* ------------------------------------------------------------------ an instruction */

/* order=pairs: k%4 in {0,1} first. Fills index with 0 .. n-1 in the order of summation. */
static void order_of(size_t *index, const mx_accum *x, size_t n) {
  size_t count = 0;
  for (int late = 0; late < 2; late++)
    for (size_t k = 0; k < n; k++)
      if (x->order == MX_ACC_ORDER_SEQ ? !late : (k % 4 >= 2) == late) index[count++] = k;
}

typedef struct workspace {
  product *ordered, *in_order; /* [K] */
  term *terms;                 /* [K + 1] */
  size_t *index;               /* [K] */
} workspace;

static accumulator fused_instruction(const mx_mma_model *m, product *p, size_t n, accumulator c, workspace *w) {
  const mx_accum *x = &m->accum;
  size_t L = x->L ? (size_t)x->L : n;
  accumulator sum = x->join == MX_ACC_JOIN_ADD ? (accumulator){0, 0} : c;
  order_of(w->index, x, n);
  for (size_t k = 0; k < n; k++) w->in_order[k] = p[w->index[k]]; /* shallow: no number is changed */
  for (size_t k = 0; k < n; k += L) sum = (accumulator){1, fused_group(m, w->in_order + k, n - k < L ? n - k : L, sum, w->terms)};
  if (x->join == MX_ACC_JOIN_ADD && c.exists) sum.bits = add(m, m->d, sum.bits, c.bits);
  return sum;
}

static accumulator fma_instruction(const mx_mma_model *m, const product *p, size_t n, accumulator c) {
  number acc;
  number_init(&acc);
  if (!c.exists) c = (accumulator){1, 0};
  for (size_t k = 0; k < n; k++) {
    decode(&acc, m->d, c.bits);
    c.bits = multiply_add(m, m->d, &p[k].a, &p[k].b, &acc);
  }
  number_clear(&acc);
  return c;
}

/* flush=yes: a result below the smallest normal number becomes a zero of its sign. */
static uint64_t flushed(const mx_mma_model *m, uint64_t f32) {
  int small = (f32 & UINT32_C(0x7F800000)) == 0;
  return m->accum.flush && small ? f32 & UINT32_C(0x80000000) : f32;
}

static uint64_t pairwise_sum(const mx_mma_model *m, const product *p, size_t n) {
  if (n == 1) {
    number zero;
    number_init(&zero);
    decode(&zero, m->d, 0);
    uint64_t bits = flushed(m, multiply_add(m, m->d, &p->a, &p->b, &zero));
    number_clear(&zero);
    return bits;
  }
  return flushed(m, add(m, m->d, pairwise_sum(m, p, n / 2), pairwise_sum(m, p + n / 2, n - n / 2)));
}

static accumulator pairwise_instruction(const mx_mma_model *m, const product *p, size_t n, accumulator c) {
  size_t L = m->accum.L ? (size_t)m->accum.L : n;
  uint64_t sum = c.exists ? c.bits : 0;
  if (m->accum.flush && (sum & UINT32_C(0x7F800000)) == 0) sum = 0; /* an operand: its zeros and subnormals become +0 */
  for (size_t k = 0; k < n; k += L) sum = flushed(m, add(m, m->d, sum, pairwise_sum(m, p + k, n - k < L ? n - k : L)));
  return (accumulator){1, sum};
}

static accumulator integer_instruction(const mx_mma_model *m, const product *p, size_t n, accumulator c) {
  mpz_t sum, v, limit;
  mpz_init_set_si(sum, c.exists ? (int32_t)(uint32_t)c.bits : 0);
  mpz_init(v);
  mpz_init(limit);
  for (size_t k = 0; k < n; k++) {
    value_of_elements(v, &p[k]);
    mpz_tdiv_q_2exp(v, v, BASE); /* a count of ones */
    mpz_add(sum, sum, v);
  }
  if (m->accum.sat == MX_ACC_SAT_FINITE) {
    mpz_set_si(limit, INT32_MAX);
    if (mpz_cmp(sum, limit) > 0) mpz_set(sum, limit);
    mpz_set_si(limit, INT32_MIN);
    if (mpz_cmp(sum, limit) < 0) mpz_set(sum, limit);
  }
  mpz_fdiv_r_2exp(sum, sum, 32);
  uint64_t bits = mpz_get_ui(sum);
  mpz_clear(sum);
  mpz_clear(v);
  mpz_clear(limit);
  return (accumulator){1, bits};
}

static accumulator instruction(const mx_mma_model *m, product *p, size_t n, accumulator c, workspace *w) {
  switch (m->accum.op) {
  case MX_ACC_OP_PAIRWISE:
    return pairwise_instruction(m, p, n, c);
  case MX_ACC_OP_FMA:
    return fma_instruction(m, p, n, c);
  case MX_ACC_OP_INTEGER:
    return integer_instruction(m, p, n, c);
  default:
    return fused_instruction(m, p, n, c, w);
  }
}

/* ------------------------------------------------------------------ operands */

/* via=f16: the exponent becomes the one that binary16 gives the value. */
static void convert_to_f16(number *x) {
  if (x->kind != FINITE || is_zero(x)) return;
  x->exponent = exponent_of(x->value) < -14 ? -14 : exponent_of(x->value);
}

/* op=fma: element times scale is rounded to binary32 before the chain. */
static void dequantise(number *x, const number *scale, const mx_format *f32) {
  if (scale->kind == NOT_A_NUMBER || (x->kind == INFINITE && is_zero(scale))) x->kind = NOT_A_NUMBER;
  if (x->kind != FINITE) return;
  int negative = x->negative;
  multiply(x->value, x->value, scale->value);
  uint64_t bits = encode(x->value, f32, f32->man_bits, NEAREST_EVEN, MX_ACC_UNDER_KEEP);
  if (mpz_sgn(x->value) == 0 && negative) bits |= UINT32_C(0x80000000);
  decode(x, f32, bits);
}

static void read_operand(number *x, number *scale, const mx_mma_model *m, const mx_format *f, const uint8_t *row, const uint8_t *scales,
                         size_t k) {
  decode(x, f, load(row, f, k));
  if (m->scale) {
    uint8_t byte = scales[k / (size_t)m->block];
    decode(scale, m->scale, m->scale->sign_bits ? byte & low_bits(m->scale->bits - 1) : byte);
  } else {
    scale->kind = FINITE;
    scale->negative = scale->exponent = 0;
    set_scaled(scale->value, 1, 0);
  }
  if (m->accum.via == MX_ACC_VIA_F16) convert_to_f16(x);
  if (m->accum.op == MX_ACC_OP_FMA && m->scale) dequantise(x, scale, m->d);
  if (m->accum.flush && x->kind == FINITE && (is_zero(x) || exponent_of(x->value) < 1 - f->bias)) {
    mpz_set_ui(x->value, 0);
    x->negative = 0;
  }
}

/* An element of C in the type of D, exactly. */
static accumulator read_c(const mx_mma_model *m, const uint8_t *c, size_t at) {
  if (!c) return (accumulator){0, 0};
  uint64_t bits = load(c, m->c, at);
  if (m->c->kind == MX_KIND_INT) return (accumulator){1, bits};
  number x;
  number_init(&x);
  decode(&x, m->c, bits);
  int narrower = m->c->bits != m->d->bits;
  if (narrower && x.kind == NOT_A_NUMBER) bits = m->d->nan_code;
  if (narrower && x.kind == INFINITE) bits = infinity_of(m->d, x.negative);
  if (narrower && x.kind == FINITE)
    bits = is_zero(&x) ? (x.negative ? UINT64_C(1) << (m->d->bits - 1) : 0)
                       : encode(x.value, m->d, m->d->man_bits, NEAREST_EVEN, MX_ACC_UNDER_KEEP);
  number_clear(&x);
  return (accumulator){1, bits};
}

/* ------------------------------------------------------------------ all outputs */

static mx_status workspace_alloc(workspace *w, size_t K) {
  *w = (workspace){calloc(K + 1, sizeof *w->ordered), calloc(K + 1, sizeof *w->in_order), calloc(K + 1, sizeof *w->terms),
                   calloc(K + 1, sizeof *w->index)};
  if (!w->ordered || !w->in_order || !w->terms || !w->index) {
    free(w->ordered);
    free(w->in_order);
    free(w->terms);
    free(w->index);
    return MX_ERR_NOMEM;
  }
  for (size_t k = 0; k <= K; k++) {
    product_init(&w->ordered[k]);
    mpz_init(w->terms[k].value);
  }
  return MX_OK;
}

static void workspace_free(workspace *w, size_t K) {
  for (size_t k = 0; k <= K; k++) {
    product_clear(&w->ordered[k]);
    mpz_clear(w->terms[k].value);
  }
  free(w->ordered);
  free(w->in_order);
  free(w->terms);
  free(w->index);
}

mx_status ref_mma(void *d, const mx_mma_model *m, const mx_mma_args *g) {
  if (!d || !m || !g || !g->a || !g->b || (m->scale && (!g->scale_a || !g->scale_b))) return MX_ERR_ARG;
  if (m->whole_k && g->K % (size_t)m->k) return MX_ERR_SHAPE;
  workspace w;
  if (workspace_alloc(&w, g->K)) return MX_ERR_NOMEM;
  size_t bytes_a = row_bytes(m->a, g->K), bytes_b = row_bytes(m->b, g->K),
         blocks = m->scale ? (g->K + (size_t)m->block - 1) / (size_t)m->block : 0;
  size_t step = m->k ? (size_t)m->k : g->K;
  for (size_t t = 0; t < g->T; t++)
    for (size_t i = 0; i < g->M; i++)
      for (size_t j = 0; j < g->N; j++) {
        size_t row = t * g->M + i, col = t * g->N + j, at = row * g->N + j;
        const uint8_t *a = (const uint8_t *)g->a + row * bytes_a, *b = (const uint8_t *)g->b + col * bytes_b;
        const uint8_t *sa = m->scale ? (const uint8_t *)g->scale_a + row * blocks : NULL,
                      *sb = m->scale ? (const uint8_t *)g->scale_b + col * blocks : NULL;
        for (size_t k = 0; k < g->K; k++) {
          read_operand(&w.ordered[k].a, &w.ordered[k].scale_a, m, m->a, a, sa, k);
          read_operand(&w.ordered[k].b, &w.ordered[k].scale_b, m, m->b, b, sb, k);
        }
        accumulator acc = read_c(m, g->c, at);
        for (size_t k = 0; k < g->K; k += step) acc = instruction(m, w.ordered + k, g->K - k < step ? g->K - k : step, acc, &w);
        save((uint8_t *)d + at * bytes_of(m->d), m->d, acc.bits);
      }
  workspace_free(&w, g->K);
  return MX_OK;
}

/* ------------------------------------------------------------------ one output of a product */

static void set_one(number *x) {
  x->kind = FINITE;
  x->negative = x->exponent = 0;
  set_scaled(x->value, 1, 0);
}

static void read_scale(number *x, const ref_mma_row *r, size_t b) {
  uint64_t code = r->scales[b] & low_bits(r->scale->bits - (r->scale->sign_bits && !r->scale_signed));
  decode(x, r->scale, code);
  if (!r->scale_inverse || x->kind != FINITE) return;
  x->exponent = -x->exponent;
  set_scaled(x->value, 1, x->exponent);
}

/* Element k of a row of K; those beyond are +0. */
static void read_row(number *x, number *scale, const mx_mma_model *m, const ref_mma_row *r, size_t k, size_t K) {
  decode(x, r->type, k < K ? r->codes[k] & low_bits(r->type->bits) : 0);
  if (k < K && r->micro && x->kind == FINITE) {
    mpz_mul_2exp(x->value, x->value, (mp_bitcnt_t)r->micro[k]);
    x->exponent += r->micro[k];
  }
  if (m->accum.via == MX_ACC_VIA_F16) convert_to_f16(x);
  if (m->accum.flush && x->kind == FINITE && (is_zero(x) || exponent_of(x->value) < 1 - r->type->bias)) {
    mpz_set_ui(x->value, 0);
    x->negative = 0;
  }
  if (r->scale && k / r->block < (K + r->block - 1) / r->block)
    read_scale(scale, r, k / r->block);
  else
    set_one(scale);
}

mx_status ref_mma_sum(uint64_t *d, const mx_mma_model *m, const ref_mma_row *a, const ref_mma_row *b, size_t K) {
  size_t step = m->k ? (size_t)m->k : K, whole = m->whole_k && m->k ? (K + step - 1) / step * step : K;
  workspace w;
  if (workspace_alloc(&w, whole)) return MX_ERR_NOMEM;
  for (size_t k = 0; k < whole; k++) {
    read_row(&w.ordered[k].a, &w.ordered[k].scale_a, m, a, k, K);
    read_row(&w.ordered[k].b, &w.ordered[k].scale_b, m, b, k, K);
  }
  accumulator acc = {0, 0};
  for (size_t k = 0; k < whole; k += step) acc = instruction(m, w.ordered + k, whole - k < step ? whole - k : step, acc, &w);
  *d = acc.bits;
  workspace_free(&w, whole);
  return MX_OK;
}
