/* Computes one instruction of a matrix-unit model: docs/reference/SPEC.md section 4, in its order. */
#include "mma_sum.h"

#include <stdlib.h>

/* floor, c_drop, out_bits: whether there is one, and which. */
static int given(int field) { return field != 0; }
static int number_given(int field) { return field == MX_ACC_NUMBER_0 ? 0 : field; }

static direction of_align(int align) { return align == MX_ACC_ALIGN_RD ? DOWN : align == MX_ACC_ALIGN_RNE ? NEAREST_EVEN : TOWARD_ZERO; }
static direction of_cut(int cut) { return cut == MX_ACC_CUT_RD ? DOWN : cut == MX_ACC_CUT_RNE ? NEAREST_EVEN : TOWARD_ZERO; }
static direction of_out(int out) { return out == MX_ACC_OUT_RD ? DOWN : out == MX_ACC_OUT_RNE ? NEAREST_EVEN : TOWARD_ZERO; }
static uint64_t nan_of(const mx_mma_model *m) {
  if (m->accum.nan == MX_ACC_NAN_ONES) return ref_low_bits(m->d->bits - 1);
  return m->d->inf_code + (UINT64_C(1) << (m->d->man_bits - 1));
}

/* ------------------------------------------------------------------ one output */

/* a * b, and a * b * scale_a * scale_b. */
static void value_of_elements(mpz_t out, const product *p) { number_multiply(out, p->a.value, p->b.value); }
static void value_of_scales(mpz_t out, const product *p) { number_multiply(out, p->scale_a.value, p->scale_b.value); }
static void value_of(mpz_t out, const product *p) {
  mpz_t s;
  mpz_init(s);
  value_of_elements(out, p);
  value_of_scales(s, p);
  number_multiply(out, out, s);
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
    zero |= number_is_zero(factor[i]);
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
  if (v->plus || v->minus) *bits = ref_mma_inf(m->d, v->minus);
  return v->plus || v->minus;
}

/* huge=inf: a finite product of 2^128 or more. */
static void meet_huge(verdict *v, const product *p) {
  mpz_t x;
  mpz_init(x);
  value_of(x, p);
  if (mpz_sgn(x) != 0 && number_exponent(x) >= 128) *(mpz_sgn(x) < 0 ? &v->minus : &v->plus) = 1;
  mpz_clear(x);
}

/* --- 2. terms and their exponents --- */

/* The exponent that a number brings to a product's: zero=e126 gives every zero -126. */
static int own_exponent(const mx_accum *x, const number *n) { return x->zero == MX_ACC_ZERO_E126 && number_is_zero(n) ? -126 : n->exponent; }

static void term_of_product(term *t, const mx_accum *x, const product *p) {
  value_of(t->value, p);
  t->exponent = own_exponent(x, &p->a) + own_exponent(x, &p->b) + own_exponent(x, &p->scale_a) + own_exponent(x, &p->scale_b);
  t->takes_part = x->zero == MX_ACC_ZERO_E126 || mpz_sgn(t->value) != 0;
}

static void term_of_number(term *t, const mx_accum *x, const number *n) {
  mpz_set(t->value, n->value);
  t->exponent = own_exponent(x, n);
  t->takes_part = x->zero == MX_ACC_ZERO_E126 || !number_is_zero(n);
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
  number_multiply(t->value, t->value, v);
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
  if (given(x->floor) && sum->exponent < number_given(x->floor)) sum->exponent = number_given(x->floor);
  for (size_t i = start; i < n; i += step) {
    if (!terms[i].takes_part) continue;
    if (x->F != MX_ACC_F_EXACT) number_cut(terms[i].value, sum->exponent - x->F, of_align(x->align));
    mpz_add(sum->value, sum->value, terms[i].value);
  }
}

/* Two terms, each cut to its own width below the larger exponent, and added. */
static void join_two(term *out, term *one, int one_bits, term *two, int two_bits, direction dir) {
  out->takes_part = one->takes_part || two->takes_part;
  out->exponent = !two->takes_part || (one->takes_part && one->exponent > two->exponent) ? one->exponent : two->exponent;
  mpz_set_ui(out->value, 0);
  if (one->takes_part) {
    number_cut(one->value, out->exponent - one_bits, dir);
    mpz_add(out->value, out->value, one->value);
  }
  if (two->takes_part) {
    number_cut(two->value, out->exponent - two_bits, dir);
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
  if (given(x->c_drop) && c->takes_part && c->exponent < larger - number_given(x->c_drop)) mpz_set_ui(c->value, 0);
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
  if (acc.exists) number_decode(&c, m->d, acc.bits);
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
    bits = number_encode(joint.value, m->d, given(x->out_bits) ? number_given(x->out_bits) : m->d->man_bits, of_out(x->out_round), x->under);
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
  int invalid = !nan && infinite && (number_is_zero(a) || (b && number_is_zero(b)) || (c->kind == INFINITE && c->negative != negative));
  if (nan || invalid) {
    if (m->accum.nan != MX_ACC_NAN_FIRST) return nan_of(m);
    if (invalid) return f->inf_code | quiet | sign;
    const number *first = b && b->kind == NOT_A_NUMBER ? b : c->kind == NOT_A_NUMBER ? c : a;
    return first->bits | quiet; /* op=fma alone: its operands' NaN are in f's bits (mma.c) */
  }
  if (infinite) return ref_mma_inf(f, negative);
  if (c->kind == INFINITE) return ref_mma_inf(f, c->negative);
  mpz_t sum;
  mpz_init_set(sum, a->value);
  if (b) number_multiply(sum, a->value, b->value);
  int product_zero = mpz_sgn(sum) == 0;
  mpz_add(sum, sum, c->value);
  if (mpz_sgn(sum) == 0) /* -0 only from two negative zeros */
    bits = product_zero && number_is_zero(c) && negative && c->negative ? sign : 0;
  else
    bits = number_encode(sum, f, f->man_bits, NEAREST_EVEN, MX_ACC_UNDER_KEEP);
  mpz_clear(sum);
  return bits;
}

static uint64_t add(const mx_mma_model *m, const mx_format *f, uint64_t x, uint64_t y) {
  number a, b;
  number_init(&a);
  number_init(&b);
  number_decode(&a, f, x);
  number_decode(&b, f, y);
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
    number_decode(&acc, m->d, c.bits);
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
    number_decode(&zero, m->d, 0);
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

accumulator ref_mma_instruction(const mx_mma_model *m, product *p, size_t n, accumulator c, workspace *w) {
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

/* ------------------------------------------------------------------ what it works in */

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

mx_status ref_mma_workspace_alloc(workspace *w, size_t K) {
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

void ref_mma_workspace_free(workspace *w, size_t K) {
  for (size_t k = 0; k <= K; k++) {
    product_clear(&w->ordered[k]);
    mpz_clear(w->terms[k].value);
  }
  free(w->ordered);
  free(w->in_order);
  free(w->terms);
  free(w->index);
}
