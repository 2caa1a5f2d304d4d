/* Runs mx_mma() on operands, C and D as raw bits in memory. */
#include <string.h>

#include "internal.h"

/* Stores one element; no type of D is narrower than 16 bits. */
void mxi_mma_store(void *d, const mx_format *type, size_t at, uint64_t bits) {
  size_t size = mx_mma_bytes(type, 1);
  uint8_t *to = (uint8_t *)d + at * size;
  for (size_t i = 0; i < size; i++) to[i] = (uint8_t)(bits >> 8 * i);
}

/* An element of C as bits of type D, which is the type of the accumulator, and from which C's exponent is taken (Volta: f16 C, f32 D). */
uint64_t mxi_mma_widen(const mx_format *c, const mx_format *d, uint64_t bits) {
  if (c->kind == MX_KIND_INT || (c->bits == d->bits && c->exp_bits == d->exp_bits)) return bits;
  mma_num n = mxi_mma_split(c, bits);
  uint64_t sign = (uint64_t)(bits >> (c->bits - 1) & 1) << (d->bits - 1);
  if (n.cls & MMA_NAN) { /* as IEEE 754 converts it, quiet and with its payload at the top; types without Inf have no payload */
    const uint64_t quiet = d->inf_code | UINT64_C(1) << (d->man_bits - 1);
    return c->inf_code == MX_NO_CODE ? quiet : sign | quiet | (bits & ((UINT64_C(1) << c->man_bits) - 1)) << (d->man_bits - c->man_bits);
  }
  if (n.cls & MMA_INF) return d->inf_code | sign;
  if (n.cls & MMA_ZERO) return sign;
  uint64_t sig = (uint64_t)(n.sig < 0 ? -n.sig : n.sig) << (d->man_bits - c->man_bits);
  int exp = n.exp;
  while (!(sig >> d->man_bits) && exp > 1 - d->bias) {
    sig <<= 1;
    exp--;
  }
  uint64_t biased = sig >> d->man_bits ? (uint64_t)(exp + d->bias) : 0;
  return sign | biased << d->man_bits | (sig & ((UINT64_C(1) << d->man_bits) - 1));
}

/* --- what mxi_mma_run() calls --- */

static void codes_of(uint64_t *out, const mma_side *side, size_t row, size_t k, size_t n) {
  mxi_mma_codes(out, (const uint8_t *)side->from + row * side->row_bytes, side->type, k, n);
}

static mma_num scale_of(const mma_side *side, size_t row, size_t block) {
  return side->scale_table[side->scales[row * side->row_scales + block]];
}

typedef struct call {
  const mx_mma_model *model;
  const mx_mma_args *args;
  void *d;
} call;

static size_t place_of(const mx_mma_args *g, size_t t, size_t i, size_t j) { return (t * g->M + i) * g->N + j; }

static mma_acc load_c(const mma_work *w, size_t t, size_t i, size_t j) {
  const call *x = w->context;
  const mx_mma_model *m = x->model;
  return (mma_acc){mxi_mma_widen(m->c, m->d, mxi_mma_code(x->args->c, m->c, place_of(x->args, t, i, j))), 1};
}

static void store_d(const mma_work *w, size_t t, size_t i, size_t j, mma_acc acc) {
  const call *x = w->context;
  mxi_mma_store(x->d, x->model->d, place_of(x->args, t, i, j), acc.bits);
}

void mxi_mma_side_of(mma_side *side, const mx_mma_model *m, const mx_format *type, const void *codes, const void *scales, size_t K) {
  side->type = type;
  side->scale = m->scale;
  side->codes = codes_of;
  side->scale_of = scale_of;
  side->from = codes;
  side->scales = scales;
  side->row_bytes = mx_mma_bytes(type, K);
  side->row_scales = m->scale ? (K + (size_t)m->block - 1) / (size_t)m->block : 0;
}

/* Whether the bytes of a tensor of x by y by z values, of at most 8 bytes each, can be computed without overflow. */
static int fits(size_t x, size_t y, size_t z) {
  size_t n;
  return !__builtin_mul_overflow(x, y, &n) && !__builtin_mul_overflow(n, z, &n) && n <= SIZE_MAX / 64;
}

static mx_status check_args(void *d, const mx_mma_model *model, const mx_mma_args *g, mx_error *err) {
  if (!d || !model || !g) return mx_fail(err, MX_ERR_ARG, "mma: NULL");
  mx_status status = mx_mma_model_check(model, err);
  if (status) return status;
  if (!g->a || !g->b) return mx_fail(err, MX_ERR_ARG, "mma: a or b is NULL");
  if (!model->scale != !g->scale_a || !model->scale != !g->scale_b)
    return mx_fail(err, MX_ERR_ARG, "mma: model '%s' %s", model->name, model->scale ? "needs scale_a and scale_b" : "has no scales");
  if (model->whole_k && g->K % (size_t)model->k)
    return mx_fail(err, MX_ERR_SHAPE, "mma: K=%zu is not a multiple of %d, the k of '%s'", g->K, model->k, model->name);
  if (!fits(g->T, g->M, g->N) || !fits(g->T, g->M, g->K) || !fits(g->T, g->N, g->K))
    return mx_fail(err, MX_ERR_SHAPE, "mma: %zu tiles of %zu x %zu x %zu are too large", g->T, g->M, g->N, g->K);
  return MX_OK;
}

mx_status mx_mma(void *d, const mx_mma_model *model, const mx_mma_args *args, const mx_exec *exec, mx_error *err) {
  mx_status status = check_args(d, model, args, err);
  if (status) return status;
  const mx_mma_args g = *args;
  if (!g.T || !g.M || !g.N) return MX_OK;
  mma_plan plan;
  memset(&plan, 0, sizeof plan);
  mxi_mma_side_of(&plan.a, model, model->a, g.a, g.scale_a, g.K);
  mxi_mma_side_of(&plan.b, model, model->b, g.b, g.scale_b, g.K);
  plan.block = model->scale ? (size_t)model->block : 0;
  mxi_mma_plan_make(&plan, model, g.K);
  mxi_mma_tables(&plan.a, &plan);
  mxi_mma_tables(&plan.b, &plan);
  const call x = {model, &g, d};
  mma_work w = {.plan = &plan, .T = g.T, .M = g.M, .N = g.N, .K = g.K, .has_c = g.c != NULL, .load = load_c, .store = store_d, .context = &x};
  status = mxi_mma_run(&w, &plan, exec);
  return status ? mx_fail(err, status, "mma: no memory for panels of K=%zu", g.K) : MX_OK;
}
