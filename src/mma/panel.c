/* Turns rows of operands into panels. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *array(size_t n, size_t size) { return calloc(n ? n : 1, size); }

void mxi_mma_panel_shorten(mma_panel *p, const mma_plan *plan, size_t K) {
  p->K = K;
  p->n_blocks = plan->block ? (K + plan->block - 1) / plan->block : 0;
  p->bytes_stride = (K + 3) / 4 * 4;
}

mx_status mxi_mma_panel_alloc(mma_panel *p, const mma_plan *plan, size_t rows, size_t K) {
  const mx_mma_model *m = plan->model;
  int op = plan->x.op, f64 = m->d->bits == 64;
  memset(p, 0, sizeof *p);
  mxi_mma_panel_shorten(p, plan, K);
  int ok = (p->special = array(rows, 1)) != NULL;
  if (op == MX_ACC_OP_FUSED || op == MX_ACC_OP_INTEGER) ok &= (p->sig = array(rows * K, sizeof *p->sig)) != NULL;
  if (op == MX_ACC_OP_FUSED) {
    ok &= (p->exp = array(rows * K, sizeof *p->exp)) != NULL;
    ok &= (p->cls = array(rows * K, 1)) != NULL;
  }
  if (plan->x.P && plan->block) {
    ok &= (p->scale_sig = array(rows * p->n_blocks, sizeof *p->scale_sig)) != NULL;
    ok &= (p->scale_exp = array(rows * p->n_blocks, sizeof *p->scale_exp)) != NULL;
  }
  if (plan->with_bytes) ok &= (p->bytes = array(rows * p->bytes_stride, 1)) != NULL;
  if (op == MX_ACC_OP_PAIRWISE || (op == MX_ACC_OP_FMA && !f64)) ok &= (p->f32 = array(rows * K, sizeof *p->f32)) != NULL;
  if (op == MX_ACC_OP_FMA && f64) ok &= (p->f64 = array(rows * K, sizeof *p->f64)) != NULL;
  if (ok) return MX_OK;
  mxi_mma_panel_free(p);
  return MX_ERR_NOMEM;
}

void mxi_mma_panel_free(mma_panel *p) {
  free(p->sig);
  free(p->exp);
  free(p->cls);
  free(p->f32);
  free(p->f64);
  free(p->scale_sig);
  free(p->scale_exp);
  free(p->bytes);
  free(p->special);
  free(p->live);
  memset(p, 0, sizeof *p);
}

size_t mxi_mma_panel_place(const mma_plan *plan, size_t k, size_t K) {
  if (plan->x.order == MX_ACC_ORDER_SEQ) return k;
  size_t start = k / plan->k * plan->k, n = K - start < plan->k ? K - start : plan->k, j = k - start;
  size_t first = n / 4 * 2 + (n % 4 < 2 ? n % 4 : 2); /* how many elements have j%4 in {0,1} */
  return start + (j % 4 < 2 ? j / 4 * 2 + j % 4 : first + j / 4 * 2 + j % 4 - 2);
}

/* An element times its scale, for a unit that adds exponents. */
static mma_num scaled(mma_num e, mma_num s) {
  if ((s.cls & MMA_NAN) || ((s.cls & MMA_ZERO) && (e.cls & MMA_INF))) return (mma_num){0, 0, MMA_NAN};
  int exp = e.exp + s.exp;
  return (mma_num){e.sig * s.sig, exp < MMA_NO_EXP ? MMA_NO_EXP : exp, e.cls | (s.cls & MMA_ZERO)};
}

/* A run of elements of a row that share a scale. */
typedef struct run {
  const mma_plan *plan;
  const mma_side *side;
  const mma_num *scale; /* NULL: none */
  size_t row, k0;       /* in the operand; k counts from k0 on */
  size_t r, k, n;
} run;

enum { RUN = 128 };

static void read_codes(uint64_t codes[RUN], const run *g) { g->side->codes(codes, g->side, g->row, g->k0 + g->k, g->n); }

static mma_num number_at(const run *g, const uint64_t *codes, size_t i) {
  return g->side->type->bits <= 8 ? g->side->table[codes[i]] : mxi_mma_operand(g->plan, g->side->type, codes[i]);
}

static void put(mma_panel *p, const run *g, size_t k, mma_num n) {
  size_t at = g->r * p->K + (g->plan->x.order ? mxi_mma_panel_place(g->plan, k, p->K) : k);
  p->sig[at] = (int32_t)n.sig;
  p->exp[at] = n.exp;
  p->cls[at] = (uint8_t)n.cls;
  p->special[g->r] |= n.cls & (MMA_INF | MMA_NAN);
}

static void fill_fused(mma_panel *p, const run *g) {
  uint64_t codes[RUN];
  read_codes(codes, g);
  for (size_t i = 0; i < g->n; i++) {
    mma_num n = number_at(g, codes, i);
    put(p, g, g->k + i, g->scale ? scaled(n, *g->scale) : n);
  }
}

/* Under P scales are kept separate, unless one decides the class of an element. */
static void fill_presum(mma_panel *p, const run *g) {
  uint64_t codes[RUN];
  read_codes(codes, g);
  if (g->plan->block) {
    size_t at = g->r * p->n_blocks + g->k / g->plan->block;
    p->scale_sig[at] = g->scale ? (int32_t)g->scale->sig : 1;
    p->scale_exp[at] = g->scale ? g->scale->exp : 0;
  }
  for (size_t i = 0; i < g->n; i++) {
    mma_num n = number_at(g, codes, i);
    if (p->bytes) p->bytes[g->r * p->bytes_stride + g->k + i] = (uint8_t)(64 + (n.cls ? 0 : n.sig * (1 << (n.exp - 1 + g->side->type->bias))));
    if (g->scale && ((g->scale->cls & MMA_NAN) || (n.cls & MMA_INF)))
      n = scaled(n, *g->scale);
    else if (g->scale)
      n.cls |= g->scale->cls & MMA_ZERO; /* so that an Inf of the other operand meets a zero */
    put(p, g, g->k + i, n);
  }
}

static void fill_integer(mma_panel *p, const run *g) {
  uint64_t codes[RUN];
  read_codes(codes, g);
  for (size_t i = 0; i < g->n; i++) p->sig[g->r * p->K + g->k + i] = (int32_t)g->side->table[codes[i]].sig;
}

/* A number as an exact binary64; a NaN keeps its payload if the type is binary64 (put_nan() handles narrower types). */
static double to_f64(const mx_format *type, uint64_t code) {
  double x;
  if (type->bits == 64) {
    memcpy(&x, &code, 8);
    return x;
  }
  mma_num n = mxi_mma_split(type, code);
  if (n.cls & MMA_NAN) return NAN;
  x = n.cls & MMA_INF ? INFINITY : ldexp((double)llabs(n.sig), n.exp - type->man_bits);
  return type->sign_bits && code >> (type->bits - 1) ? -x : x;
}

static double scale_value(const run *g) {
  const mma_num *s = g->scale;
  return s->cls & MMA_NAN ? NAN : s->cls & MMA_ZERO ? 0.0 : ldexp((double)s->sig, s->exp - g->side->scale->man_bits);
}

/* nan=first: the NaN of an element as bits of D, or the quiet one that its scale made. */
static void put_nan(mma_panel *p, const run *g, size_t at, uint64_t code) {
  const mx_format *d = g->plan->model->d, *type = g->side->type;
  const int its_own = (mxi_mma_split(type, code).cls & MMA_NAN) != 0;
  const uint64_t bits = its_own ? mxi_mma_widen(type, d, code) : mxi_mma_nan(g->plan);
  const uint32_t narrow = (uint32_t)bits;
  if (p->f64)
    memcpy(&p->f64[at], &bits, sizeof bits);
  else
    memcpy(&p->f32[at], &narrow, sizeof narrow);
}

static void fill_float(mma_panel *p, const run *g) {
  uint64_t codes[RUN];
  double scale = g->scale ? scale_value(g) : 1.0, smallest = ldexp(1.0, 1 - g->side->type->bias);
  read_codes(codes, g);
  for (size_t i = 0; i < g->n; i++) {
    double x = to_f64(g->side->type, codes[i]);
    if (g->scale) x *= scale;                            /* exact: 24 by 4 bits */
    if (g->plan->x.flush && fabs(x) < smallest) x = 0.0; /* zeros lose their sign too */
    const size_t at = g->r * p->K + g->k + i;
    if (isnan(x) && g->plan->x.nan == MX_ACC_NAN_FIRST)
      put_nan(p, g, at, codes[i]);
    else if (p->f64)
      p->f64[at] = x;
    else
      p->f32[at] = (float)x; /* rounds only if a scale took it out of the range of binary32 */
  }
}

void mxi_mma_panel_fill(mma_panel *p, size_t r, const mma_plan *plan, const mma_side *side, size_t row, size_t k0) {
  const size_t block = plan->block ? plan->block : SIZE_MAX;
  int op = plan->x.op;
  void (*fill)(mma_panel *, const run *) = op == MX_ACC_OP_INTEGER ? fill_integer
                                           : op != MX_ACC_OP_FUSED ? fill_float
                                           : plan->x.P             ? fill_presum
                                                                   : fill_fused;
  p->special[r] = 0;
  if (p->bytes) memset(p->bytes + r * p->bytes_stride + p->bytes_stride - 4, 64, 4); /* zeros beyond K */
  for (size_t k = 0; k < p->K;) {
    size_t n = p->K - k < RUN ? p->K - k : RUN, in_block = (k0 + k) % block;
    if (n > block - in_block) n = block - in_block; /* at most to the end of the block */
    mma_num scale = {0};
    if (side->scale) scale = side->scale_of(side, row, (k0 + k) / block);
    run g = {plan, side, side->scale ? &scale : NULL, row, k0, r, k, n};
    fill(p, &g);
    k += n;
  }
}
