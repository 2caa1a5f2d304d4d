/* Checks whether the fields of a model fit together. */
#include "mma/models/table.h"

#include <string.h>

static int is_float(const mx_format *f) { return f->kind == MX_KIND_FLOAT || f->kind == MX_KIND_FNUZ; }

/* Whether every value of c is also one of d. */
static int widens(const mx_format *c, const mx_format *d) {
  return is_float(c) && is_float(d) && c->man_bits <= d->man_bits && c->exp_bits <= d->exp_bits;
}

static int is_named(const mx_format *f, const char *name) { return !strcmp(f->name, name); }

#define NEED(condition, ...)                                                                                                                   \
  do {                                                                                                                                         \
    if (!(condition)) return mx_fail(err, MX_ERR_CONFLICT, "model '%s': " __VA_ARGS__);                                                        \
  } while (0)

static mx_status check_fused(const mx_mma_model *m, mx_error *err) {
  const mx_accum *x = &m->accum;
  NEED((is_float(m->a) || m->a->kind == MX_KIND_INT) && m->a->bits <= 32, "a=%s cannot enter a fused sum", m->name, m->a->name);
  NEED((is_float(m->b) || m->b->kind == MX_KIND_INT) && m->b->bits <= 32, "b=%s cannot enter a fused sum", m->name, m->b->name);
  NEED(is_float(m->d) && m->d->bits >= 16 && m->d->bits <= 32 && m->d->bits != 19, "d=%s is not f32, f16 or bf16", m->name, m->d->name);
  NEED(widens(m->c, m->d), "c=%s does not widen to d=%s", m->name, m->c->name, m->d->name);
  NEED(x->out_bits <= m->d->man_bits, "out_bits=%d, but %s has %d", m->name, x->out_bits, m->d->name, m->d->man_bits);
  NEED((x->join == MX_ACC_JOIN_AFTER) == (x->sum_bits && x->c_bits), "join=after needs sum_bits and c_bits (1 to 40), other joins have none",
       m->name);
  NEED(!x->c_drop || x->join == MX_ACC_JOIN_AFTER, "c_drop needs join=after", m->name);
  NEED(x->F != MX_ACC_F_EXACT || (x->join != MX_ACC_JOIN_AFTER && !x->split), "F=exact leaves nothing to cut: no join=after, no split",
       m->name);
  NEED(!x->split || x->join == MX_ACC_JOIN_AFTER, "split=evenodd needs join=after", m->name);
  NEED(!x->P || (m->a->exp_bits <= 5 && m->b->exp_bits <= 5), "P needs operands of at most 5 exponent bits", m->name);
  NEED(!x->P || (!x->split && !x->order), "P excludes split and order", m->name);
  NEED(!x->P || !x->L || x->L % x->P == 0, "L=%d is not a multiple of P=%d", m->name, x->L, x->P);
  NEED(!x->P || !m->scale || m->block % x->P == 0, "block=%d is not a multiple of P=%d", m->name, m->block, x->P);
  NEED(!x->via || (m->a->bits <= 8 && m->b->bits <= 8 && is_float(m->a) && is_float(m->b)), "via=f16 needs elements of at most 8 bits",
       m->name);
  return MX_OK;
}

static mx_status check_pairwise(const mx_mma_model *m, mx_error *err) {
  NEED(is_float(m->a) && m->a->bits <= 32 && is_float(m->b) && m->b->bits <= 32, "op=pairwise needs floating-point a and b of at most 32 bits",
       m->name);
  NEED(is_named(m->c, "f32") && is_named(m->d, "f32"), "op=pairwise sums in f32", m->name);
  NEED(!m->scale, "op=pairwise has no scales", m->name);
  return MX_OK;
}

static mx_status check_fma(const mx_mma_model *m, mx_error *err) {
  int f64 = is_named(m->d, "f64");
  NEED(f64 || is_named(m->d, "f32"), "op=fma needs d=f32 or d=f64", m->name);
  NEED(widens(m->c, m->d) && widens(m->a, m->d) && widens(m->b, m->d), "op=fma needs operands that widen to d=%s", m->name, m->d->name);
  NEED(!f64 || !m->scale, "op=fma in f64 has no scales", m->name);
  return MX_OK;
}

static mx_status check_integer(const mx_mma_model *m, mx_error *err) {
  NEED(m->a->kind == MX_KIND_INT && m->a->bits <= 8 && m->b->kind == MX_KIND_INT && m->b->bits <= 8,
       "op=integer needs integers of at most 8 bits", m->name);
  NEED(is_named(m->c, "s32") && is_named(m->d, "s32"), "op=integer sums in s32", m->name);
  NEED(!m->scale, "op=integer has no scales", m->name);
  return MX_OK;
}

mx_status mx_mma_model_check(const mx_mma_model *m, mx_error *err) {
  if (!m) return mx_fail(err, MX_ERR_CONFLICT, "model: NULL");
  const mx_accum *x = &m->accum;
  NEED(m->a && m->b && m->c && m->d, "a type is missing", m->name);
  mx_status status = mxi_mma_keys_check(m, err);
  if (status) return status;
  NEED(m->block >= 0 && m->k >= 0, "block=%d and k=%d must not be negative", m->name, m->block, m->k);
  NEED(!m->scale || m->block > 0, "scale=%s needs a block", m->name, m->scale->name);
  NEED(!m->scale || m->scale->bits <= 8, "scale=%s: scales are bytes", m->name, m->scale->name);
  NEED(!m->k || !x->L || m->k % x->L == 0, "k=%d is not a multiple of L=%d", m->name, m->k, x->L);
  NEED(x->flush == MX_ACC_FLUSH_NO || x->op == MX_ACC_OP_PAIRWISE, "flush needs op=pairwise", m->name);
  NEED(x->nan != MX_ACC_NAN_FIRST || x->op == MX_ACC_OP_FMA, "nan=first needs op=fma", m->name);
  NEED(x->sat == MX_ACC_SAT_WRAP || x->op == MX_ACC_OP_INTEGER, "sat needs op=integer", m->name);
  switch (x->op) {
  case MX_ACC_OP_PAIRWISE:
    return check_pairwise(m, err);
  case MX_ACC_OP_FMA:
    return check_fma(m, err);
  case MX_ACC_OP_INTEGER:
    return check_integer(m, err);
  default:
    return check_fused(m, err);
  }
}
