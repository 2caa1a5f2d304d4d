/* Which plans have a fast path, and its numbers: asked of the scalar code, not written a second time. */
#include "kernels/fast.h"

#include <math.h>
#include <string.h>

#include "mxgold/isa.h"

enum { ONE = 127, SAFE = 100, LOG2F_MARGIN = 512 };

static float number(int exponent, uint32_t mantissa) {
  const uint32_t bits = (uint32_t)exponent << 23 | mantissa;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Code of a block whose amax is the number; -1 if it is not an ordinary one. */
static int code_at(const mx_plan *p, int exponent, uint32_t mantissa) {
  const float x = number(exponent, mantissa);
  const mx_block_stats st = {.amax = x, .amax_finite = x};
  mx_block_scale s;
  if (mx_block_scale_find(&s, p, &st, 0, 0) || s.how != MX_BY_NUMBER) return -1;
  return s.used == ldexp(1, (int)s.code - 127) ? (int)s.code : -1;
}

/* The rules commute with powers of two, so one binade tells all. */
static int power_of_two_scale(mx_fast *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  const uint32_t end = 1u << 23;
  const int rounds = s->scale_rule == MX_SCALE_RULE_VALUE;
  if (!rounds && s->scale_rule != MX_SCALE_RULE_FLOOR && s->scale_rule != MX_SCALE_RULE_CEIL && s->scale_rule != MX_SCALE_RULE_EVEN) return 0;
  if (p->scale->man_bits || p->scale->bits != 8 || s->scale_form != MX_SCALE_FORM_DECODE || s->tensor_norm != MX_TENSOR_NORM_NONE) return 0;
  if (s->scale_round == MX_SCALE_ROUND_SR && rounds) return 0;
  const int low = code_at(p, ONE, 0), high = code_at(p, ONE, end - 1);
  if (low < 0 || high < low || high > low + 1) return 0;
  uint32_t below = 0, from = end; /* the code is low at `below`, high at `from` */
  if (high > low) {
    from = end - 1;
    while (from - below > 1) {
      const uint32_t middle = below + (from - below) / 2;
      if (code_at(p, ONE, middle) == low)
        below = middle;
      else
        from = middle;
    }
  }
  const int moves = s->scale_log2 == MX_SCALE_LOG2_LOG2F; /* the threshold, with the exponent */
  const int parity = rounds && s->scale_round == MX_SCALE_ROUND_RNE;
  f->offset = low - ONE;
  f->threshold = (int32_t)from;
  f->margin = moves ? LOG2F_MARGIN : parity ? 2 : 0;
  f->least = ONE - SAFE;
  f->largest = ONE + SAFE;
  for (int e = ONE - SAFE; e <= ONE + SAFE; e += 25) { /* the claim, sampled */
    const uint32_t to = from == end ? end - 1 : from;
    if (code_at(p, e, end / 2 == to ? end / 2 + 3 : end / 2) != e + f->offset + (end / 2 >= to && high > low)) return 0;
    if (!f->margin && (code_at(p, e, 0) != e + f->offset || code_at(p, e, to) != e + f->offset + (high > low))) return 0;
  }
  const double top = (double)number(ONE, from == end ? end - 1 : from - 1) / ldexp(1, low - 127);
  f->clamp = top >= 7.9 || (high > low && 2 / ldexp(1, high - 127) >= 8);
  if (from == end && top < 8) f->clamp = 0;
  return 1;
}

/* The expression with every part that a tensor's numbers decide evaluated: what is left are numbers and var. */
static void fold(mx_chain_expr *out, const mx_chain_expr *e, const float *vars, int var) {
  int start[MX_CHAIN_OPS], varies[MX_CHAIN_OPS], depth = 0; /* of each value on the stack: where its operations begin in out */
  out->n = 0;
  for (int i = 0; i < e->n; i++) {
    const mx_chain_op *o = &e->ops[i];
    const int leaf = o->op == MX_OP_NUMBER || o->op == MX_OP_VAR, operands = leaf ? 0 : o->op == MX_OP_RCP0 || o->op == MX_OP_RCPA ? 1 : 2;
    int at = out->n, moving = o->op == MX_OP_VAR && o->var == var;
    for (int k = 0; k < operands; k++) {
      depth--;
      at = start[depth];
      moving |= varies[depth];
    }
    out->ops[out->n++] = *o;
    if (!moving) {
      mx_chain_expr part = {.n = out->n - at};
      memcpy(part.ops, out->ops + at, (size_t)part.n * sizeof *part.ops);
      out->ops[at] = (mx_chain_op){MX_OP_NUMBER, 0, mx_chain_eval(&part, vars)};
      out->n = at + 1;
    }
    start[depth] = at;
    varies[depth++] = moving;
  }
}

static int chain_scale(mx_fast *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  if (s->scale_rule != MX_SCALE_RULE_VALUE || p->scale->kind != MX_KIND_FLOAT || p->scale->bits != 8) return 0;
  if (s->scale_round == MX_SCALE_ROUND_SR || s->scale_round == MX_SCALE_ROUND_GGML || p->chain.again.n || p->chain.element.n < 1) return 0;
  if (!mx_lanes_init(&f->scale, p->scale, &p->scale_encode)) return 0;
  fold(&f->scale_of, &p->chain.scale, p->vars, MX_VAR_AMAX);
  for (int i = 0; i < p->chain.element.n; i++) fold(&f->factor[i], &p->chain.element.factor[i], p->vars, MX_VAR_SF);
  f->scale_plain = f->scale.round == MX_ROUND_RNE && f->scale.man > 0 && f->scale.over[0] == f->scale.max_code;
  for (unsigned c = 0; c < 256; c++) f->sf[c] = fabsf((float)mx_decode(p->scale, c));
  f->least = 1;
  f->largest = 254;
  return 1;
}

static int elements(mx_fast *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  const int rounded = p->uses_chain || s->elem_arith != MX_ELEM_ARITH_EXACT; /* y is a binary32, and can be zero where x is not */
  if (s->elem_round > MX_ROUND_RTN || s->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO) return 0;
  const int directed = s->elem_round == MX_ROUND_RTP || s->elem_round == MX_ROUND_RTN;
  if (!rounded && (directed || s->elem_zero_sign == MX_ZERO_SIGN_FORCE)) return 0; /* what underflows is not zero there */
  if (s->elem != MX_ELEM_E2M1) {
    if (!rounded && s->elem_zero_sign == MX_ZERO_SIGN_DROP_INPUT) return 0; /* nor here */
    return p->elem->bits > 4 && mx_lanes_init(&f->elem, p->elem, &p->encode);
  }
  for (int i = -64; i < 64; i++) f->table[i & 127] = (uint8_t)mx_encode(p->elem, i / 8.0, &p->encode, 0);
  f->by_table = 1;
  f->fold = !p->uses_chain && !directed && (s->elem_zero_sign == MX_ZERO_SIGN_KEEP || s->elem_zero_sign == MX_ZERO_SIGN_DROP_ALL || !rounded);
  f->zero = s->elem_zero_sign == MX_ZERO_SIGN_KEEP                     ? MX_FAST_ZERO_KEEP
            : s->elem_zero_sign == MX_ZERO_SIGN_DROP_INPUT && !rounded ? MX_FAST_ZERO_UNDERFLOW
                                                                       : MX_FAST_ZERO_TABLE;
  if (!mx_lanes_init(&f->elem, p->elem, &p->encode) || f->zero == MX_FAST_ZERO_UNDERFLOW) f->elem.plain = 0;
  if (f->elem.plain) f->fold = 0;
  return 1;
}

int mx_fast_init(mx_fast *f, const mx_plan *p, uint32_t usable) {
  const mx_spec *s = &p->spec;
  memset(f, 0, sizeof *f);
  f->row = NULL;
#if defined(__x86_64__)
  f->row = usable & MX_ISA_AVX512 ? mx_fast_row_avx512 : usable & MX_ISA_AVX2 ? mx_fast_row_avx2 : NULL;
#else
  (void)usable;
#endif
  if (!f->row || p->elem->kind == MX_KIND_NONE || p->block_rows != 1 || p->block_cols % 16 || p->block_cols > MX_FAST_BLOCK) return 0;
  if (s->select != MX_SELECT_ABSMAX || s->input_dtype != MX_INPUT_DTYPE_FLOAT32 || s->elem_prescale != 0 || s->scale_min > 0) return 0;
  if (p->tensor_nan || (s->nibble == MX_NIBBLE_HALF_BLOCK && p->elem->bits == 4) || s->scale_rule == MX_SCALE_RULE_HIF4) return 0;
  f->plan = p;
  f->block = p->block_cols;
  f->high_first = s->nibble == MX_NIBBLE_HIGH_FIRST;
  f->min_code = s->scale_min_byte > 1 ? (int32_t)s->scale_min_byte : 1;
  f->max_code = s->scale_max_byte && s->scale_max_byte < p->scale->max_code ? (int32_t)s->scale_max_byte : (int32_t)p->scale->max_code;
  if (!(p->uses_chain ? chain_scale(f, p) : p->scale->kind == MX_KIND_EXP && power_of_two_scale(f, p))) return 0;
  if (!elements(f, p)) return 0;
#if defined(__x86_64__)
  if (f->row == mx_fast_row_avx2) return f->elem.plain && (!p->uses_chain || f->scale_plain);
#endif
  return 1;
}
