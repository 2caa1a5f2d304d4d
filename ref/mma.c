/* Runs the reference of the matrix-unit models: operands, and the walk over outputs. docs/reference/SPEC.md section 4. Nothing here is shared with
 * src/gemm but the rows of formats/ and the struct that holds them. */
#include "mma.h"

#include "mma_sum.h"

/* ------------------------------------------------------------------ raw bits in arrays */

static size_t bytes_of(const mx_format *f) { return f->bits <= 8 ? 1 : f->bits <= 16 ? 2 : f->bits <= 32 ? 4 : 8; }

/* Element k of a row: two a byte up to 4 bits, tf32 and xf32 in the upper bits of their word. */
static uint64_t load(const uint8_t *row, const mx_format *f, size_t k) {
  if (f->bits <= 4) return (k % 2 ? row[k / 2] >> 4 : row[k / 2]) & 15;
  size_t size = bytes_of(f);
  uint64_t word = 0;
  for (size_t i = size; i-- > 0;) word = word << 8 | row[k * size + i];
  if (f->bits == 19) word >>= 13;
  return word & ref_low_bits(f->bits);
}

static void save(uint8_t *to, const mx_format *f, uint64_t bits) {
  for (size_t i = 0; i < bytes_of(f); i++, bits >>= 8) to[i] = (uint8_t)bits;
}

static size_t row_bytes(const mx_format *f, size_t K) { return f->bits <= 4 ? (K + 1) / 2 : K * bytes_of(f); }

/* ------------------------------------------------------------------ operands */

/* via=f16: the exponent becomes the one that binary16 gives the value. */
static void convert_to_f16(number *x) {
  if (x->kind != FINITE || number_is_zero(x)) return;
  x->exponent = number_exponent(x->value) < -14 ? -14 : number_exponent(x->value);
}

/* op=fma: element times scale is rounded to binary32 before the chain. A NaN of the element stays, one that the scale makes is the quiet one. */
static void dequantise(number *x, const number *scale, const mx_format *f32) {
  if (x->kind == NOT_A_NUMBER) return;
  if (scale->kind == NOT_A_NUMBER || (x->kind == INFINITE && number_is_zero(scale))) {
    x->kind = NOT_A_NUMBER;
    x->bits = f32->inf_code | UINT64_C(1) << (f32->man_bits - 1);
  }
  if (x->kind != FINITE) return;
  int negative = x->negative;
  number_multiply(x->value, x->value, scale->value);
  uint64_t bits = number_encode(x->value, f32, f32->man_bits, NEAREST_EVEN, MX_ACC_UNDER_KEEP);
  if (mpz_sgn(x->value) == 0 && negative) bits |= UINT32_C(0x80000000);
  number_decode(x, f32, bits);
}

static void read_operand(number *x, number *scale, const mx_mma_model *m, const mx_format *f, const uint8_t *row, const uint8_t *scales,
                         size_t k) {
  number_decode(x, f, load(row, f, k));
  if (m->accum.op == MX_ACC_OP_FMA && x->kind == NOT_A_NUMBER) x->bits = number_nan(m->d, f, x->bits);
  if (m->scale) {
    uint8_t byte = scales[k / (size_t)m->block];
    number_decode(scale, m->scale, m->scale->sign_bits ? byte & ref_low_bits(m->scale->bits - 1) : byte);
  } else {
    scale->kind = FINITE;
    scale->negative = scale->exponent = 0;
    number_set(scale->value, 1, 0);
  }
  if (m->accum.via == MX_ACC_VIA_F16) convert_to_f16(x);
  if (m->accum.op == MX_ACC_OP_FMA && m->scale) dequantise(x, scale, m->d);
  if (m->accum.flush && x->kind == FINITE && (number_is_zero(x) || number_exponent(x->value) < 1 - f->bias)) {
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
  number_decode(&x, m->c, bits);
  int narrower = m->c->bits != m->d->bits;
  if (narrower && x.kind == NOT_A_NUMBER) bits = number_nan(m->d, m->c, bits);
  if (narrower && x.kind == INFINITE) bits = ref_mma_inf(m->d, x.negative);
  if (narrower && x.kind == FINITE)
    bits = number_is_zero(&x) ? (x.negative ? UINT64_C(1) << (m->d->bits - 1) : 0)
                              : number_encode(x.value, m->d, m->d->man_bits, NEAREST_EVEN, MX_ACC_UNDER_KEEP);
  number_clear(&x);
  return (accumulator){1, bits};
}

/* ------------------------------------------------------------------ all outputs */

mx_status ref_mma(void *d, const mx_mma_model *m, const mx_mma_args *g) {
  if (!d || !m || !g || !g->a || !g->b || (m->scale && (!g->scale_a || !g->scale_b))) return MX_ERR_ARG;
  if (m->whole_k && g->K % (size_t)m->k) return MX_ERR_SHAPE;
  workspace w;
  if (ref_mma_workspace_alloc(&w, g->K)) return MX_ERR_NOMEM;
  mx_format type_a = *m->a, type_b = *m->b;
  if (m->accum.op == MX_ACC_OP_INTEGER) type_a.man_bits = type_b.man_bits = 0; /* elements are counts of their smallest step */
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
          read_operand(&w.ordered[k].a, &w.ordered[k].scale_a, m, &type_a, a, sa, k);
          read_operand(&w.ordered[k].b, &w.ordered[k].scale_b, m, &type_b, b, sb, k);
        }
        accumulator acc = read_c(m, g->c, at);
        for (size_t k = 0; k < g->K; k += step) acc = ref_mma_instruction(m, w.ordered + k, g->K - k < step ? g->K - k : step, acc, &w);
        save((uint8_t *)d + at * bytes_of(m->d), m->d, acc.bits);
      }
  ref_mma_workspace_free(&w, g->K);
  return MX_OK;
}

/* ------------------------------------------------------------------ one output of a product */

static void set_one(number *x) {
  x->kind = FINITE;
  x->negative = x->exponent = 0;
  number_set(x->value, 1, 0);
}

static void read_scale(number *x, const ref_mma_row *r, size_t b) {
  uint64_t code = r->scales[b] & ref_low_bits(r->scale->bits - (r->scale->sign_bits && !r->scale_signed));
  number_decode(x, r->scale, code);
  if (!r->scale_inverse || x->kind != FINITE) return;
  x->exponent = -x->exponent;
  number_set(x->value, 1, x->exponent);
}

/* Element k of a row of K; those beyond are +0. */
static void read_row(number *x, number *scale, const mx_mma_model *m, const ref_mma_row *r, size_t k, size_t K) {
  number_decode(x, r->type, k < K ? r->codes[k] & ref_low_bits(r->type->bits) : 0);
  if (m->accum.op == MX_ACC_OP_FMA && x->kind == NOT_A_NUMBER) x->bits = number_nan(m->d, r->type, x->bits);
  if (k < K && r->micro && x->kind == FINITE) {
    mpz_mul_2exp(x->value, x->value, (mp_bitcnt_t)r->micro[k]);
    x->exponent += r->micro[k];
  }
  if (m->accum.via == MX_ACC_VIA_F16) convert_to_f16(x);
  if (m->accum.flush && x->kind == FINITE && (number_is_zero(x) || number_exponent(x->value) < 1 - r->type->bias)) {
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
  if (ref_mma_workspace_alloc(&w, whole)) return MX_ERR_NOMEM;
  for (size_t k = 0; k < whole; k++) {
    read_row(&w.ordered[k].a, &w.ordered[k].scale_a, m, a, k, K);
    read_row(&w.ordered[k].b, &w.ordered[k].scale_b, m, b, k, K);
  }
  accumulator acc = {0, 0};
  for (size_t k = 0; k < whole; k += step) acc = ref_mma_instruction(m, w.ordered + k, whole - k < step ? whole - k : step, acc, &w);
  *d = acc.bits;
  ref_mma_workspace_free(&w, whole);
  return MX_OK;
}
