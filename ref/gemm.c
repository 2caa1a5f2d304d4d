/* Computes the product of SPEC 4 from exact numbers, rounded where a model says so. */
#include "gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ext.h"
#include "gemm_fused.h"
#include "gemm_read.h"
#include "ref.h"

/* What the sum of one output needs. */
typedef struct problem {
  ref_matrix a, b;
  const mx_gemm_options *o;
  int alpha_zero;
} problem;

static double elem(const ref_matrix *m, size_t r, size_t k) { return m->elem[r * m->K + k]; }
static double scale(const ref_matrix *m, size_t r, size_t b) { return m->scale[r * m->kb + b]; }

/* code * scale, or code / scale where a zero scale with a zero code is an all-zero block. */
static void value(ext *v, const ref_matrix *m, size_t r, size_t k) {
  ext s;
  ext_init(&s);
  ext_double(v, elem(m, r, k));
  ext_double(&s, scale(m, r, k / m->block));
  if (!m->divides)
    ext_mul(v, v, &s);
  else if (v->kind != NUM_ZERO || s.kind != NUM_ZERO)
    ext_div(v, v, &s);
  ext_clear(&s);
}

/* f32_block: the exact dot of the codes times the exact product of the scales, added and rounded once. */
static void add_block(ext *acc, const problem *p, size_t i, size_t j, size_t block) {
  ext dot, x, y;
  ext_init(&dot);
  ext_init(&x);
  ext_init(&y);
  for (size_t k = block * p->a.block; k < (block + 1) * p->a.block && k < p->a.K; k++) {
    ext_double(&x, elem(&p->a, i, k));
    ext_double(&y, elem(&p->b, j, k));
    ext_mul(&x, &x, &y);
    ext_add(&dot, &dot, &x);
  }
  ext up, under;
  ext_init(&up);
  ext_init(&under);
  ext_double(&up, 1);
  ext_double(&under, 1);
  const ref_matrix *const side[2] = {&p->a, &p->b};
  const size_t row[2] = {i, j};
  for (int s = 0; s < 2; s++) {
    ext_double(&x, scale(side[s], row[s], block));
    if (side[s]->divides)
      ext_mul(&under, &under, &x);
    else
      ext_mul(&up, &up, &x);
  }
  if (!(dot.kind == NUM_ZERO && under.kind == NUM_ZERO && up.kind <= NUM_FINITE)) {
    ext_mul(&dot, &dot, &up);
    ext_div(&dot, &dot, &under);
  }
  if (dot.kind == NUM_ZERO) dot.sign = 0;
  ext_add(acc, acc, &dot);
  ext_round_f32(acc);
  ext_clear(&dot);
  ext_clear(&x);
  ext_clear(&y);
  ext_clear(&up);
  ext_clear(&under);
}

/* acc += a_k * b_k, with a and b rounded first: 32 or 64 for that width, 0 for no rounding at all. */
static void add_product(ext *acc, const problem *p, size_t i, size_t j, size_t k, int width) {
  ext x, y;
  ext_init(&x);
  ext_init(&y);
  value(&x, &p->a, i, k);
  value(&y, &p->b, j, k);
  if (width == 32) ext_round_f32(&x), ext_round_f32(&y);
  if (width == 64) ext_round_f64(&x), ext_round_f64(&y);
  ext_mul(&x, &x, &y);
  ext_add(acc, acc, &x);
  if (width == 32) ext_round_f32(acc);
  if (width == 64) ext_round_f64(acc);
  ext_clear(&x);
  ext_clear(&y);
}

/* The sum of products k0 .. k0 + n: that of the first m, m the largest power of two below n, plus that of the rest. */
static void pairwise(ext *sum, const problem *p, size_t i, size_t j, size_t k0, size_t n) {
  if (n == 1) { /* rnd(x + a * b) of x = -0 is rnd(a * b), signs of zeros included */
    sum->kind = NUM_ZERO;
    sum->sign = 1;
    add_product(sum, p, i, j, k0, 32);
    return;
  }
  size_t m = 1;
  while (2 * m < n) m *= 2;
  ext rest;
  ext_init(&rest);
  pairwise(sum, p, i, j, k0, m);
  pairwise(&rest, p, i, j, k0 + m, n - m);
  ext_add(sum, sum, &rest);
  ext_round_f32(sum);
  ext_clear(&rest);
}

/* f32_seq over 64 products at a time; their sums are added toward zero, and the result goes to a lattice of 1/1024. */
static void group64(ext *acc, const problem *p, size_t i, size_t j) {
  ext sum;
  for (size_t k0 = 0; k0 < p->a.K; k0 += 64) {
    ext_init(&sum);
    for (size_t k = k0; k < k0 + 64 && k < p->a.K; k++) add_product(&sum, p, i, j, k, 32);
    ext_add(acc, acc, &sum);
    ext_truncate_f32(acc);
    ext_clear(&sum);
  }
  ext_round(acc, 1000, -10, 128);
}

static void sum_of(ext *acc, const problem *p, size_t i, size_t j) {
  const size_t K = p->a.K;
  switch (p->o->model) {
  case MX_GEMM_F32_SEQ:
    for (size_t k = 0; k < K; k++) add_product(acc, p, i, j, k, 32);
    break;
  case MX_GEMM_F32_PAIRWISE:
    if (K) pairwise(acc, p, i, j, 0, K);
    break;
  case MX_GEMM_F64:
    for (size_t k = 0; k < K; k++) add_product(acc, p, i, j, k, 64);
    ext_round_f32(acc);
    break;
  case MX_GEMM_GROUP64:
    group64(acc, p, i, j);
    break;
  case MX_GEMM_EXACT:
    for (size_t k = 0; k < K; k++) add_product(acc, p, i, j, k, 0);
    break;
  case MX_GEMM_FUSED:
    if (ref_gemm_fused(acc, p->o->fused, &p->a, &p->b, i, j)) abort(); /* no memory */
    break;
  default:
    for (size_t b = 0; b < p->a.kb; b++) add_block(acc, p, i, j, b);
  }
}

/* d = rnd(sum * t); fmaf(beta, c, d); rnd(d + bias); `exact` leaves out every rounding. c or bias NULL: not given. */
static void combine(ext *d, const problem *p, const float *c, const float *bias) {
  const int exact = p->o->model == MX_GEMM_EXACT;
  ext t, x;
  ext_init(&t);
  ext_init(&x);
  ext_double(&t, p->a.multiplier);
  ext_double(&x, p->b.multiplier);
  ext_mul(&t, &t, &x);
  if (!exact) ext_round_f32(&t);
  ext_double(&x, p->o->alpha ? (double)*p->o->alpha : 1);
  ext_mul(&t, &t, &x);
  if (!exact) ext_round_f32(&t);
  if (p->alpha_zero)
    ext_double(d, 0);
  else
    ext_mul(d, d, &t);
  if (!exact) ext_round_f32(d);
  if (c) {
    ext_double(&x, (double)*c);
    ext_double(&t, p->o->beta ? (double)*p->o->beta : 1);
    ext_mul(&x, &x, &t);
    ext_add(d, d, &x);
    if (!exact) ext_round_f32(d);
  }
  if (bias) {
    ext_double(&x, (double)*bias);
    ext_add(d, d, &x);
    if (!exact) ext_round_f32(d);
  }
  if (exact && d->kind == NUM_ZERO) d->sign = 0;
  ext_clear(&t);
  ext_clear(&x);
}

static size_t bytes_of(mx_dtype type) { return type == MX_F32 ? 4 : 2; }

static const mx_format *format_of(mx_dtype type) {
  static const mx_format f16 = {"f16", MX_KIND_FLOAT, 16, 1, 5, 10, 15, 0x7BFF, 0x7C00, 0x7C01, 0x7FFF, 0x7E00, NULL};
  return type == MX_F32 ? ref_scale_format(MX_SCALE_FP32) : type == MX_BF16 ? ref_scale_format(MX_SCALE_BF16) : &f16;
}

static void store(uint8_t *to, mx_dtype type, ext *d) {
  if (type == MX_F16) ext_round(d, 11, -24, 16);
  if (type == MX_BF16) ext_round(d, 8, -133, 128);
  if (type == MX_F32) ext_round_f32(d);
  static const mx_encoding exactly = {.overflow = MX_OVERFLOW_IEEE};
  const uint64_t code = ref_encode(format_of(type), ext_get(d), &exactly, 0);
  for (size_t i = 0; i < bytes_of(type); i++) to[i] = (uint8_t)(code >> 8 * i);
}

static float load(const uint8_t *from, mx_dtype type) {
  uint64_t code = 0;
  for (size_t i = 0; i < bytes_of(type); i++) code |= (uint64_t)from[i] << 8 * i;
  return (float)ref_decode(format_of(type), code);
}

static void one(uint8_t *d, const problem *p, size_t i, size_t j, const uint8_t *c) {
  ext acc;
  ext_init(&acc);
  if (!p->alpha_zero) sum_of(&acc, p, i, j);
  const int use_c = c && !(p->o->beta && *p->o->beta == 0);
  const float cx = use_c ? load(c, p->o->c_type) : 0, *bias = p->o->bias ? &p->o->bias[p->o->bias_of_rows ? i : j] : NULL;
  combine(&acc, p, use_c ? &cx : NULL, bias);
  store(d, p->o->out, &acc);
  ext_clear(&acc);
}

mx_status ref_gemm(void *d, size_t ldd, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                   const mx_gemm_options *options, mx_error *err) {
  static const mx_gemm_options plain = {0};
  const mx_gemm_options *o = options ? options : &plain;
  (void)err;
  const size_t batch = o->batch ? o->batch : 1, M = a->rows / batch, N = b->rows / batch, ldc = o->ldc ? o->ldc : N;
  size_t rows, block;
  if (ref_elem_format(a_spec->elem)->kind != MX_KIND_NONE)
    ref_block_of(a_spec, a, &rows, &block);
  else
    ref_block_of(b_spec, b, &rows, &block);
  for (size_t t = 0; t < batch; t++) {
    problem p = {.o = o, .alpha_zero = o->alpha && *o->alpha == 0};
    if (ref_matrix_of_tensor(&p.a, a, a_spec, block, t * M, M) || ref_matrix_of_tensor(&p.b, b, b_spec, block, t * N, N)) return MX_ERR_NOMEM;
    for (size_t i = 0; i < M; i++)
      for (size_t j = 0; j < N; j++)
        one((uint8_t *)d + ((t * M + i) * ldd + j) * bytes_of(o->out), &p, i, j,
            o->c ? (const uint8_t *)o->c + ((t * M + i) * ldc + j) * bytes_of(o->c_type) : NULL);
    ref_matrix_free(&p.a);
    ref_matrix_free(&p.b);
  }
  return MX_OK;
}

mx_status ref_gemm_raw(const mx_gemm_problem *g, mx_error *err) {
  const mx_gemm_options *o = &g->options;
  (void)err;
  const int columns = g->order == MX_COL_MAJOR;
  const size_t batch = o->batch ? o->batch : 1, length = columns ? g->M : g->N, ldd = g->ldd ? g->ldd : length, ldc = o->ldc ? o->ldc : length;
  for (size_t t = 0; t < batch; t++) {
    problem p = {.o = o, .alpha_zero = o->alpha && *o->alpha == 0};
    if (ref_matrix_of_operand(&p.a, g, &g->a, 0, t) || ref_matrix_of_operand(&p.b, g, &g->b, 1, t)) return MX_ERR_NOMEM;
    const size_t stride = g->stride_d || !g->pairs ? g->stride_d : g->n_pairs;
    uint8_t *d = g->list_d ? g->list_d[t] : (uint8_t *)g->d + t * stride * bytes_of(o->out);
    const uint8_t *c = g->list_c ? g->list_c[t] : o->c ? (const uint8_t *)o->c + t * g->stride_c * bytes_of(o->c_type) : NULL;
    const size_t n = g->pairs ? g->n_pairs : g->M * g->N;
    for (size_t at = 0; at < n; at++) {
      const size_t i = g->pairs ? g->pairs[at][0] : at / g->N, j = g->pairs ? g->pairs[at][1] : at % g->N;
      const size_t to = g->pairs ? at : columns ? j * ldd + i : i * ldd + j, from = columns ? j * ldc + i : i * ldc + j;
      one(d + to * bytes_of(o->out), &p, i, j, c ? c + from * bytes_of(o->c_type) : NULL);
    }
    ref_matrix_free(&p.a);
    ref_matrix_free(&p.b);
  }
  return MX_OK;
}
