/* Runs a matrix-unit model of mma.h (MX_GEMM_FUSED) over the operands of mx_gemm(). SPEC section 4.
 *
 * The model gives the parameters, the k of an instruction and the type of the accumulator; the operands give elements, scales and blocks. If
 * a unit can take the scales (up to four significant bits, multiplied), they go into it beside the elements; otherwise the operand is
 * dequantised first. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "gemm/internal.h"
#include "gemm/output.h"
#include "mma/internal.h"

/* --- how the unit sees an operand --- */

static int in_unit(const mxg_operand *o, const mx_mma_model *m) {
  const mx_format *e = o->elem;
  const mx_accum *x = &m->accum;
  const int element =
      e->kind == MX_KIND_NONE || e->kind == MX_KIND_FLOAT || e->kind == MX_KIND_FNUZ || (e->kind == MX_KIND_INT && e->bits <= 8);
  if (x->op == MX_ACC_OP_INTEGER) return !o->scale;
  if (m->d && m->d->bits == 64) return 0; /* then both are binary64, whatever they were */
  return element && (!o->scale || (x->op == MX_ACC_OP_FUSED && o->scale_bits <= 4 && !o->divides));
}

static const mx_format *type_of(const mxg_operand *o, const mx_mma_model *m) {
  const mx_format *f32 = mx_operand_format(MX_OPERAND_F32);
  if (in_unit(o, m)) return o->elem->kind == MX_KIND_NONE ? f32 : o->elem;
  return m->d && m->d->bits == 64 ? mx_operand_format(MX_OPERAND_F64) : f32;
}

/* The model with the types of the operands, as mx_mma_model_check() takes it. */
static mx_mma_model model_of(const mxg_plan *p) {
  mx_mma_model m = *p->o.fused;
  m.a = type_of(&p->a, &m);
  m.b = type_of(&p->b, &m);
  m.c = m.d;
  m.scale = NULL;
  m.block = 0;
  return m;
}

static int takes_scales(const mxg_plan *p, const mx_mma_model *m) {
  return (p->a.scale && in_unit(&p->a, m)) || (p->b.scale && in_unit(&p->b, m));
}

mx_status mxi_gemm_fused_check(const mxg_plan *p, mx_error *err) {
  if (!p->o.fused) return mx_fail(err, MX_ERR_ARG, "gemm: model fused has no parameters, expected options.fused");
  const mx_mma_model m = model_of(p);
  const mx_accum *x = &m.accum;
  if (x->op == MX_ACC_OP_INTEGER && (p->a.scale || p->b.scale))
    return mx_fail(err, MX_ERR_CONFLICT, "model '%s': an integer sum takes no block scales, expected operands without scales", m.name);
  if (x->P && takes_scales(p, &m) && p->block % (size_t)x->P)
    return mx_fail(err, MX_ERR_CONFLICT, "model '%s': a block of %zu is not a multiple of P=%d", m.name, p->block, x->P);
  return mx_mma_model_check(&m, err);
}

/* --- sides --- */

/* Micro-scales are powers of two up to 4. They are kept above the bits of the code, and the table is indexed by both. */
static void codes_in_unit(uint64_t *out, const mma_side *side, size_t row, size_t k, size_t n) {
  const mxg_operand *o = side->from;
  const size_t there = k >= o->K ? 0 : o->K - k < n ? o->K - k : n;
  mxi_gemm_codes64(out, o, row, k, there);
  for (size_t i = 0; o->micro && i < there; i++) out[i] |= (uint64_t)ilogb(mxi_gemm_micro(o, row, k + i)) << o->elem->bits;
  for (size_t i = there; i < n; i++) out[i] = 0;
}

/* Values as binary32 or binary64. A product with a scale is exact in binary64, or rounds to binary32 in one step, and so does a quotient. */
static void codes_dequantised(uint64_t *out, const mma_side *side, size_t row, size_t k, size_t n) {
  const mxg_operand *o = side->from;
  const size_t there = k >= o->K ? 0 : o->K - k < n ? o->K - k : n;
  double v[64];
  for (size_t at = 0; at < there; at += 64) {
    const size_t m = there - at < 64 ? there - at : 64;
    mxi_gemm_values(v, o, row, k + at, m);
    for (size_t i = 0; i < m; i++) {
      const double x = mxi_gemm_scaled(v[i], mxi_gemm_scale(o, row, (k + at + i) / o->block), o->divides);
      const float y = (float)x;
      uint32_t bits;
      memcpy(&bits, &y, sizeof bits);
      out[at + i] = bits;
      if (side->type->bits == 64) memcpy(&out[at + i], &x, sizeof x);
      if (isnan(x)) out[at + i] = side->type->nan_code;
    }
  }
  for (size_t i = there; i < n; i++) out[i] = 0;
}

static mma_num one_of(const mx_format *scale) { return (mma_num){INT64_C(1) << scale->man_bits, 0, 0}; }

static mma_num scale_of(const mma_side *side, size_t row, size_t b) {
  const mxg_operand *o = side->from;
  if (b >= o->kb) return one_of(side->scale); /* for the zeros that fill up an instruction */
  const uint32_t code = mxi_gemm_scale_code(o, row, b);
  if (o->scale->bits <= 8) return side->scale_table[code];
  mma_num n = mxi_mma_split(o->scale, code);
  if (n.cls & MMA_ZERO) n.exp = side->zero_exp;
  return n;
}

static void scale_table(mma_side *side, const mma_plan *plan, const mxg_operand *o) {
  const mx_format *s = o->scale;
  for (uint64_t code = 0; code < 256; code++) {
    mma_num n = mxi_mma_scale(plan, s, s->sign_bits && !o->scale_signed ? code & 0x7F : code);
    if (o->encode) n.exp = -n.exp; /* the scale is a power of two */
    side->scale_table[code] = n;
  }
}

static void side_init(mma_side *side, const mxg_operand *o, const mx_mma_model *m, const mx_format *type) {
  const int inside = in_unit(o, m);
  side->type = type;
  side->scale = inside ? o->scale : NULL;
  side->codes = inside ? codes_in_unit : codes_dequantised;
  side->scale_of = scale_of;
  side->from = o;
}

static void side_tables(mma_side *side, const mma_plan *plan, const mxg_operand *o) {
  mxi_mma_tables(side, plan);
  side->zero_exp = plan->zero_exp;
  if (side->scale && side->scale->bits <= 8) scale_table(side, plan, o);
  const unsigned bits = (unsigned)side->type->bits;
  if (!o->micro || bits > 4) return;
  for (unsigned code = 1u << bits; code < 256; code++) {
    side->table[code] = side->table[code & ((1u << bits) - 1)];
    if (!(side->table[code].cls & MMA_ZERO)) side->table[code].exp += (int)(code >> bits);
  }
}

/* --- outputs --- */

typedef struct call {
  const mxg_plan *gemm;
  const mx_mma_model *model;
  void *d;
  const void *c;
} call;

/* The accumulator as binary32, rounded once if its type is wider. An integer sum counts products of the elements' smallest steps. */
static float value_of(const call *x, mma_acc acc) {
  const mx_format *type = x->model->d;
  double wide;
  if (!acc.some) return 0;
  if (type->kind == MX_KIND_INT)
    return (float)ldexp((double)(int32_t)(uint32_t)acc.bits, -x->gemm->a.elem->man_bits - x->gemm->b.elem->man_bits);
  if (type->bits != 64) return (float)mx_decode(type, acc.bits);
  memcpy(&wide, &acc.bits, sizeof wide);
  return (float)wide;
}

static void store(const mma_work *w, size_t t, size_t i, size_t j, mma_acc acc) {
  const call *x = w->context;
  (void)t;
  mxg_put(x->gemm, x->d, x->c, i, j, value_of(x, acc));
}

typedef struct fused {
  mx_mma_model model;
  mma_plan plan;
  size_t K; /* rounded up to whole instructions */
} fused;

/* log2 of a bound of an operand's values, from the format of its elements and from the scales that it actually has. */
static int top_of_operand(const mma_side *side, const mxg_operand *o) {
  int top = INT_MIN;
  for (size_t r = 0; side->scale && r < o->rows; r++)
    for (size_t b = 0; b < o->kb; b++) {
      const mma_num s = scale_of(side, r, b);
      if (!s.cls && s.exp + 1 > top) top = s.exp + 1;
    }
  return mxi_mma_top_of(side->type) + (o->micro ? 2 : 0) + (top == INT_MIN ? 1 : top);
}

static void fused_init(fused *f, const mxg_plan *p) {
  memset(&f->plan, 0, sizeof f->plan);
  f->model = model_of(p);
  const size_t k = (size_t)f->model.k;
  f->K = f->model.whole_k && k && p->K % k ? p->K + (k - p->K % k) : p->K;
  side_init(&f->plan.a, &p->a, &f->model, f->model.a);
  side_init(&f->plan.b, &p->b, &f->model, f->model.b);
  f->plan.block = takes_scales(p, &f->model) ? p->block : 0;
  mxi_mma_plan_make(&f->plan, &f->model, f->K);
  side_tables(&f->plan.a, &f->plan, &p->a);
  side_tables(&f->plan.b, &f->plan, &p->b);
  if (f->plan.may_be_huge) f->plan.may_be_huge = top_of_operand(&f->plan.a, &p->a) + top_of_operand(&f->plan.b, &p->b) > 128;
}

mx_status mxi_gemm_fused_run(const mxg_plan *p, void *d, const void *c) {
  fused f;
  fused_init(&f, p);
  const call x = {p, &f.model, d, c};
  mma_work w = {.plan = &f.plan, .T = 1, .M = p->M, .N = p->N, .K = f.K, .store = store, .context = &x};
  return mxi_mma_run(&w, &f.plan, &p->o.exec);
}

/* --- a list of outputs --- */

typedef struct desk {
  mma_panel a, b;
  size_t row_a, row_b; /* the rows that are held whole; SIZE_MAX: none */
} desk;

static mma_acc one_pair(const fused *f, desk *k, size_t stretch, size_t i, size_t j) {
  mma_kernel *kernel = mxi_mma_kernel_of(&f->plan);
  mma_acc acc = {0, 0};
  size_t k0 = 0;
  do {
    const size_t n = f->K - k0 < stretch ? f->K - k0 : stretch;
    mxi_mma_panel_shorten(&k->a, &f->plan, n);
    mxi_mma_panel_shorten(&k->b, &f->plan, n);
    if (k->row_a != i) mxi_mma_panel_fill(&k->a, 0, &f->plan, &f->plan.a, i, k0);
    if (k->row_b != j) mxi_mma_panel_fill(&k->b, 0, &f->plan, &f->plan.b, j, k0);
    acc = kernel(&f->plan, &k->a, 0, &k->b, 0, acc);
    k0 += n;
  } while (k0 < f->K);
  k->row_a = stretch < f->K ? SIZE_MAX : i;
  k->row_b = stretch < f->K ? SIZE_MAX : j;
  return acc;
}

mx_status mxi_gemm_fused_pairs(const mxg_plan *p, void *d, const void *c, const size_t (*pairs)[2], size_t n, int threads) {
  fused f;
  fused_init(&f, p);
  const call x = {p, &f.model, d, c};
  const size_t stretch = mxi_mma_stretch(&f.plan, f.K);
  int failed = 0;
  (void)threads; /* without OpenMP */
#pragma omp parallel num_threads(threads)
  {
    desk k = {.row_a = SIZE_MAX, .row_b = SIZE_MAX};
    const int bad_a = mxi_mma_panel_alloc(&k.a, &f.plan, 1, stretch) != MX_OK, bad_b = mxi_mma_panel_alloc(&k.b, &f.plan, 1, stretch) != MX_OK;
    if (bad_a || bad_b) {
#pragma omp atomic write
      failed = 1;
    }
#pragma omp for schedule(static)
    for (size_t at = 0; at < n; at++)
      if (!bad_a && !bad_b)
        mxg_put_at(p, d, at, c, pairs[at][0], pairs[at][1], value_of(&x, one_pair(&f, &k, stretch, pairs[at][0], pairs[at][1])));
    mxi_mma_panel_free(&k.a);
    mxi_mma_panel_free(&k.b);
  }
  return failed ? MX_ERR_NOMEM : MX_OK;
}
