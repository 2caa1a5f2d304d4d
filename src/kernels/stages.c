/* Translates a plan into the forms that vector kernels know; a plan without such a form runs by scalar code. */
#include "kernels/stages.h"

#include <float.h>
#include <math.h>
#include <string.h>

static int32_t bits_of(float x) {
  int32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

/* Prepares rounding to one format. Returns 0 if only mx_encode can do it. */
static int encode_init(mx_stage_encode *e, const mx_format *f, const mx_encoding *how) {
  const int fnuz = f->kind == MX_KIND_FNUZ, integer = f->kind == MX_KIND_INT;
  const int scans = how->round == MX_ROUND_SCAN_X || how->round == MX_ROUND_SCAN_Y;
  if (f->kind != MX_KIND_FLOAT && !fnuz && !integer) return 0;
  const int man = integer ? f->bits - 2 : f->man_bits; /* an integer format is one binade whose steps go down to zero */
  const int emin = integer ? man - f->man_bits : 1 - f->bias;
  *e = (mx_stage_encode){.man_bits = man, .round = how->round, .integer = integer, .zero_sign = fnuz ? MX_ZERO_SIGN_DROP_ALL : how->zero_sign};
  e->min_normal = (emin + 127) << 23;
  e->big = (mx_format_emax(f) + 1 + 127) << 23;
  if (integer && !f->sign_bits) return 0;
  if (integer) e->big = (emin + 1 + 127) << 23;
  e->sign_shift = 32 - f->bits;
  e->f32_tie = -1;
  e->max_code = e->over_code = (int32_t)f->max_code;
  e->sr_mode = how->sr_mode;
  e->sr_bits = how->sr_bits;
  switch (how->round) {
  case MX_ROUND_RNE_F32: /* floor(rnd(u + 1/2)) differs from rounding to nearest at one number, the predecessor of 1/2 */
  case MX_ROUND_RNA_F32:
    e->way = how->round == MX_ROUND_RNE_F32 ? MX_WAY_NEAREST : MX_WAY_BIASED;
    e->round = how->round == MX_ROUND_RNE_F32 ? MX_ROUND_RNE : MX_ROUND_RNA;
    e->f32_tie = (emin - man - 1 + 127) << 23;
    break;
  case MX_ROUND_RNE:
    e->way = MX_WAY_NEAREST;
    break;
  case MX_ROUND_SR:
    e->way = MX_WAY_SR;
    e->sr_simple = (how->sr_mode == MX_SR_FASTEST || how->sr_mode == MX_SR_FAST) && how->sr_bits + (how->sr_mode == MX_SR_FAST) + man <= 23 &&
                   e->min_normal >= 64 << 23;
    break;
  case MX_ROUND_SCAN_X:
  case MX_ROUND_SCAN_Y:
    /* Next to a tie both distances are exact (by Sterbenz's lemma), and of two equal ones the lower magnitude is found first; zero is found
     * as code 0. (This does not hold for integers, nor if y is not x / scale; then distances are compared.) */
    e->round = MX_ROUND_RTZ_TIE;
    e->zero_sign = MX_ZERO_SIGN_DROP_ALL;
    e->way = MX_WAY_BIASED;
    break;
  default:
    e->way = MX_WAY_BIASED;
  }
  /* Codes of what lies past the largest value, separately for each sign; an integer format has one such code. */
  e->over_negative = e->max_code;
  if (how->overflow == MX_OVERFLOW_WRAP_NEGZERO && !scans) {
    if (f->kind != MX_KIND_FLOAT || how->round != MX_ROUND_RNE) return 0;
    e->over_code = e->over_negative = 8; /* the code that e2m1 gives up to 8.5 */
    e->wrap = (1 << f->bits) - 1;
    e->wrap_grid = ldexpf(1, mx_format_emax(f) - f->man_bits + 23);
  } else if (!integer && !scans && f->bits <= 8) {
    const int32_t top = 1 << (f->bits - 1), rest = top - 1;
    const int32_t up = (int32_t)mx_encode(f, 0x1p100, how, 0), down = (int32_t)mx_encode(f, -0x1p100, how, 0);
    e->over_code = up == top ? top : up & rest; /* the NaN of an FNUZ format is the code of -0 */
    e->over_negative = down == top && f->sign_bits ? top : f->sign_bits ? down & rest : e->over_code;
  }
  if (e->way == MX_WAY_NEAREST && !integer && !e->wrap && e->over_code == e->max_code && e->over_negative == e->max_code && e->f32_tie < 0)
    e->plain = e->zero_sign == MX_ZERO_SIGN_KEEP ? MX_PLAIN_KEEP : e->zero_sign == MX_ZERO_SIGN_DROP_INPUT ? MX_PLAIN_DROP : MX_PLAIN_NO;
  return 1;
}

/* Evaluates every part of an expression that depends on neither amax nor sf. */
static void fold(mx_chain_expr *out, const mx_chain_expr *e, const float *vars) {
  int start[MX_CHAIN_OPS], varies[MX_CHAIN_OPS], depth = 0; /* for each value on the stack, where its operations begin in out */
  out->n = 0;
  for (int i = 0; i < e->n; i++) {
    const mx_chain_op *o = &e->ops[i];
    const int leaf = o->op == MX_OP_NUMBER || o->op == MX_OP_VAR, operands = leaf ? 0 : o->op == MX_OP_RCP0 || o->op == MX_OP_RCPA ? 1 : 2;
    int at = out->n, moving = o->op == MX_OP_VAR && (o->var == MX_VAR_AMAX || o->var == MX_VAR_SF);
    for (int k = 0; k < operands; k++) {
      depth--;
      at = start[depth];
      moving |= varies[depth];
    }
    out->ops[out->n++] = *o;
    if (!moving) {
      mx_chain_expr part = {.n = out->n - at};
      memcpy(part.ops, out->ops + at, (size_t)part.n * sizeof *part.ops);
      out->ops[at] = (mx_chain_op){MX_OP_NUMBER, 0, mxi_chain_eval(&part, vars)};
      out->n = at + 1;
    }
    start[depth] = at;
    varies[depth++] = moving;
  }
}

/* The number of significant bits of x. */
static int bits_in(double x) {
  int exponent;
  uint64_t bits = (uint64_t)(frexp(fabs(x), &exponent) * 0x1p53);
  return bits ? 53 - __builtin_ctzll(bits) : 0;
}

/* elem.round=scan_x by distances does not use y: x / (the multiplier) shows between which two values x lies. */
static void scan_init(mx_stages *f, const mx_plan *p) {
  f->scan = MX_SCAN_X;
  f->form = MX_FORM_DIV;
  f->factor = p->uses_chain ? MX_FACTOR_CHAIN : MX_FACTOR_SF;
  f->pre = 0;
  f->again = 0; /* encoding again would give the same code */
  f->dtype = MX_INPUT_DTYPE_FLOAT32;
  if (!p->uses_chain) return;
  fold(&f->scale_of, &p->chain->scale, p->vars);
  f->factor_of[0] = (mx_chain_expr){1, {{MX_OP_VAR, MX_VAR_SF, 0}}};
}

/* Decides which float operations scale an element. */
static int form_init(mx_stages *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  const int power = p->scale->kind == MX_KIND_EXP && p->scale->man_bits == 0, encode = s->scale_form == MX_SCALE_FORM_ENCODE;
  if (p->uses_chain) {
    const mx_chain_product *e = &p->chain->element;
    f->factor = MX_FACTOR_CHAIN;
    f->again = p->chain->again.n > 0;
    if (p->chain->again.n > 2) return 0;
    for (uint32_t c = 0; f->again && c < 1u << p->elem->bits; c++) f->values[c] = (float)mx_decode(p->elem, c);
    if (e->n == 1) f->form = e->op[0] == '*' ? MX_FORM_MUL : MX_FORM_DIV;
    if (e->n == 2) f->form = MX_FORM_DIV_MUL;
    fold(&f->scale_of, &p->chain->scale, p->vars);
    for (int i = 0; i < 2 && i < e->n; i++) fold(&f->factor_of[i], &e->factor[i], p->vars);
    for (int i = 0; i < 2 && i < p->chain->again.n; i++) fold(&f->again_of[i], &p->chain->again.factor[i], p->vars);
    return e->n == 1 || (e->n == 2 && e->op[0] == '/' && e->op[1] == '*');
  }
  const int plain = p->norm == 1 && p->g == 1 && (s->elem_prescale == 0 || s->elem_arith != MX_ELEM_ARITH_EXACT);
  f->factor = MX_FACTOR_SF;
  f->exact_times = p->norm;
  f->exact_over = p->g;
  if (s->elem_arith != MX_ELEM_ARITH_EXACT) {
    if (!plain) return 0;
    f->pre = s->elem_prescale;
    if (f->pre != 0 && !(f->pre >= 0x1p-40f && f->pre <= 0x1p40f)) return 0;
    f->form = encode || power || s->elem_arith == MX_ELEM_ARITH_RECIP32 ? MX_FORM_MUL : MX_FORM_DIV;
    if (!encode && power) f->factor = MX_FACTOR_POW2;
    if (!encode && !power && s->elem_arith == MX_ELEM_ARITH_RECIP32) f->factor = MX_FACTOR_RCP32;
    return 1;
  }
  if (plain && power) {
    f->form = MX_FORM_MUL;
    if (!encode) f->factor = MX_FACTOR_POW2;
    return 1;
  }
  /* A quotient of numbers of few bits never rounds to another number of few bits, so neither to a tie nor to the value of a code. */
  if (plain && !encode && p->scale->man_bits + p->elem->man_bits + 4 <= 24 && s->elem_round != MX_ROUND_SR) {
    f->form = MX_FORM_DIV;
    return 1;
  }
  if (s->elem_prescale != 0) f->exact_times *= (double)s->elem_prescale; /* exact, as both have at most 24 bits */
  f->form = MX_FORM_EXACT;
  /* These use y in binary32. */
  f->nearest = s->input_dtype != MX_INPUT_DTYPE_FLOAT32 || s->elem_round == MX_ROUND_RNA_F32 || s->elem_round == MX_ROUND_RNE_F32 ||
               s->elem_round == MX_ROUND_SCAN_Y;
  /* Products stay exact in binary64: 24 bits, those of the numbers and, in the encode form, those of the scale. */
  return 24 + bits_in(f->exact_times) + (encode ? p->scale->man_bits + 1 : 0) <= 53;
}

/* Decides how scales are found many at a time; MX_LEAD_NONE: they are not. */
static int lead_of(mx_stages *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  const int power = p->scale->kind == MX_KIND_EXP && p->scale->man_bits == 0;
  f->scale_is_exp = power;
  f->round = s->scale_round;
  f->log2f = s->scale_log2 == MX_SCALE_LOG2_LOG2F;
  f->emax = p->emax;
  f->f = (float)p->f;
  f->rcp_f = 1 / (float)p->f;
  const int even_bits = s->scale_even_bits ? (int)s->scale_even_bits : p->elem->man_bits;
  f->even_add = even_bits < 23 ? 1 << (22 - even_bits) : 0;
  f->code_lo = power ? 2 : 1;
  f->code_hi = power ? 253 : (int32_t)p->scale->max_code;
  f->amax_lo = 0x00800000;
  f->amax_hi = f->pre > 1 ? bits_of(0x1p126f / f->pre) : 0x7EFFFFFF;                            /* x * prescale stays finite */
  if (s->input_dtype == MX_INPUT_DTYPE_BFLOAT16 && p->scale->man_bits > 7) return MX_LEAD_NONE; /* the scale would be rounded to bfloat16 */
  if (s->input_dtype == MX_INPUT_DTYPE_FLOAT16) {                                               /* the ends of its range */
    f->amax_lo = bits_of(0x1p-13f);
    f->amax_hi = bits_of(0x1p15f);
    if (!power) return MX_LEAD_NONE;
    f->code_lo = 113;
    f->code_hi = 142;
  }
  if ((int32_t)s->scale_min_byte > f->code_lo) f->code_lo = (int32_t)s->scale_min_byte;
  if (s->scale_max_byte && (int32_t)s->scale_max_byte < f->code_hi) f->code_hi = (int32_t)s->scale_max_byte;
  f->v_lo = s->scale_min > 0x1p-120f ? s->scale_min : 0x1p-120f;
  f->v_hi = 0x1p120f;
  f->wide = p->scale->bits > 8;
  if (f->wide) {
    f->v_hi = 0x1p100f; /* nearest() adds an even larger power of two */
    f->code_lo = 1 << p->scale->man_bits;
  }
  if (s->scale_round == MX_SCALE_ROUND_SR || s->scale_rule == MX_SCALE_RULE_QUEST) return MX_LEAD_NONE;
  if (!power) {
    mx_encoding how = p->scale_encode;
    if (!encode_init(&f->scale, p->scale, &how)) return MX_LEAD_NONE;
    f->scale_rebias = (127 - p->scale->bias) << p->scale->man_bits;
    f->scale_sub = ldexpf(1, 1 - p->scale->bias - p->scale->man_bits);
  }
  if (s->scale_rule != MX_SCALE_RULE_VALUE) {
    if (!power || s->tensor_norm != MX_TENSOR_NORM_NONE || s->scale_min != 0) return MX_LEAD_NONE;
    return s->scale_rule == MX_SCALE_RULE_FLOOR ? MX_LEAD_FLOOR : s->scale_rule == MX_SCALE_RULE_CEIL ? MX_LEAD_CEIL : MX_LEAD_EVEN;
  }
  if (p->uses_chain) return MX_LEAD_CHAIN;
  f->times = p->norm;
  f->over = p->f * p->g;
  if (s->scale_form == MX_SCALE_FORM_ENCODE) {
    f->times = p->f * p->g;
    f->over = p->norm;
    return p->scale->man_bits < 23 ? MX_LEAD_EXACT_INVERSE : MX_LEAD_NONE;
  }
  if (s->scale_arith == MX_SCALE_ARITH_DIV32) return MX_LEAD_DIV32;
  if (s->scale_arith == MX_SCALE_ARITH_RECIP32) return MX_LEAD_MUL32;
  if (p->scale->man_bits < 23) return MX_LEAD_EXACT;
  /* A binary32 scale is the quotient rounded to nearest; MX_LEAD_EXACT rounds to odd, for a second rounding. */
  return s->scale_round == MX_SCALE_ROUND_RNE && p->norm == 1 && p->g == 1 ? MX_LEAD_DIV32 : MX_LEAD_NONE;
}

/* scan_x compares value * scale - x, which is a rounding of y only if y is x / scale. */
static int scan_x_is_of_y(const mx_stages *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  if (s->input_dtype != MX_INPUT_DTYPE_FLOAT32 || f->pre != 0) return 0; /* distances are from the original x */
  if (p->uses_chain) return s->chain == MX_CHAIN_MLX;
  return s->scale_form == MX_SCALE_FORM_DECODE && (f->factor == MX_FACTOR_POW2 || f->form == MX_FORM_DIV);
}

/* floor(4y) + ceil(4y) is 8y if 4y is a whole number, and otherwise the odd number between. No rounding of e2m1 needs more than that. */
static void table_init(mx_stages *f, const mx_plan *p) {
  mx_encoding how = p->encode;
  how.zero_sign = f->elem.zero_sign;
  if (how.round == MX_ROUND_SCAN_X || how.round == MX_ROUND_SCAN_Y) how.round = MX_ROUND_RTZ_TIE;
  /* Making these 128 codes takes a third of the time of a call with one block, so a thread keeps those of its last rounding. */
  static _Thread_local struct {
    mx_encoding how; /* it has only words, and so no padding bytes */
    int filled;
    uint8_t codes[128];
  } last;
  if (!last.filled || memcmp(&last.how, &how, sizeof how)) {
    for (int i = -64; i < 64; i++) last.codes[i & 127] = (uint8_t)mx_encode(p->elem, i / 8.0, &how, 0);
    last.how = how;
    last.filled = 1;
  }
  memcpy(f->table, last.codes, sizeof last.codes);
  f->keep_sign = f->elem.zero_sign == MX_ZERO_SIGN_KEEP;
  f->fold_4 = f->table[1] == f->table[0] && f->table[127] == (f->table[0] | (f->keep_sign ? 8 : 0));
}

/* Whether Inf gets the same code as a large finite number. Rounding toward zero makes a finite number the largest one. */
static int inf_goes_with_large(const mx_plan *p) {
  const mx_encoding *how = &p->encode;
  return mx_encode(p->elem, INFINITY, how, 0) == mx_encode(p->elem, 0x1p100, how, 0) &&
         mx_encode(p->elem, -INFINITY, how, 0) == mx_encode(p->elem, -0x1p100, how, 0);
}

static int numbers_are_ordinary(const mx_plan *p) {
  if (p->tensor_nan || !(p->g > 0x1p-140 && p->g < 0x1p140 && p->norm > 0x1p-140 && p->norm < 0x1p140)) return 0;
  for (int v = 0; p->uses_chain && p->has_tensor_scale && v < MX_CHAIN_VARS; v++)
    if (!isfinite(p->vars[v]) || p->vars[v] < 0) return 0;
  return 1;
}

/* Whether both candidates can be computed with a block in each lane, where each element's error is that of the value of its code. */
static int select_in_vectors(const mx_stages *f, const mx_plan *p) {
  return !f->scan && f->elem.way != MX_WAY_SR && p->spec.scale_form == MX_SCALE_FORM_DECODE && p->block_rows <= MX_SIX_BLOCK &&
         p->block_cols <= MX_SIX_BLOCK && p->block_rows * p->block_cols <= MX_SIX_BLOCK;
}

void mxi_stages_flat(mx_stages *flat, const mx_stages *stages) {
  *flat = *stages;
  flat->nibble = -1;
  flat->hot = 0;
  flat->y_hi = flat->y_most;
  if (flat->wrap_far) flat->elem.wrap = flat->wrap_far;
  if (flat->has_ends) {
    flat->ends = 1;
    flat->stochastic = 0;
    flat->y_hi = INFINITY;
  }
  const int round = stages->plan->spec.elem_round;
  flat->far = round == MX_ROUND_SCAN_X || round == MX_ROUND_SCAN_Y;
  if (flat->far) flat->scan = round == MX_ROUND_SCAN_X ? MX_SCAN_X : MX_SCAN_Y;
}

void mxi_stages_map_to_4(mx_stages *four, const mx_stages *six) {
  *four = *six;
  four->map_to_4 = 1;
  four->f = 4;
  four->rcp_f = 0.25f;
  four->over = 4 * six->plan->g;
}

static void hif4_init(mx_stages *f, const mx_plan *p) {
  const mx_encoding half_up = {.round = MX_ROUND_RNA, .zero_sign = p->spec.elem_zero_sign};
  const mx_spec *s = &p->spec;
  f->nibble = s->nibble;
  f->round = s->scale_round;
  f->v_lo = s->scale_min;
  f->code_lo = s->input_dtype == MX_INPUT_DTYPE_FLOAT16 ? (48 - 14) * 4 : 1; /* a normal number of binary16 */
  f->code_hi = 0xFD;
  if ((int32_t)s->scale_min_byte > f->code_lo) f->code_lo = (int32_t)s->scale_min_byte;
  if (s->scale_max_byte && (int32_t)s->scale_max_byte < f->code_hi) f->code_hi = (int32_t)s->scale_max_byte;
  /* A product rounded down in binary32 does not distinguish a tie from a value just above it, so ties to even are left to scalar code. */
  f->hif4 = !p->tensor_nan && s->hif4_ties == MX_HIF4_TIES_HALF_UP &&
            encode_init(&f->elem, p->elem, &half_up); /* the other keys only concern blocks that are not ordinary */
}

/* Whether every operation of an expression is monotone in amax, which it uses once. */
static int is_monotone(const mx_chain_expr *e) {
  int named = 0;
  for (int i = 0; i < e->n; i++) {
    const int op = e->ops[i].op;
    named += op == MX_OP_VAR && e->ops[i].var == MX_VAR_AMAX;
    if (op == MX_OP_IFZERO || op == MX_OP_IFINF || op == MX_OP_IFNAN || op == MX_OP_RCP0 || op == MX_OP_RCPA) return 0;
  }
  return named == 1;
}

void mxi_stages_init(mx_stages *f, const mx_plan *p) {
  const mx_spec *s = &p->spec;
  memset(f, 0, sizeof *f);
  f->plan = p;
  if (s->scale_rule == MX_SCALE_RULE_HIF4) hif4_init(f, p);
  if (p->elem->kind == MX_KIND_NONE || s->scale_rule == MX_SCALE_RULE_HIF4 || !numbers_are_ordinary(p)) return;
  mx_encoding how = p->encode;
  f->elem_max = (float)mx_format_max(p->elem);
  if (!encode_init(&f->elem, p->elem, &how)) return;
  const int formed = form_init(f, p), by_f32 = f->elem.f32_tie >= 0, exact = !p->uses_chain && s->elem_arith == MX_ELEM_ARITH_EXACT;
  f->dtype = s->input_dtype;
  f->scan = s->elem_round == MX_ROUND_SCAN_Y && f->elem.integer ? MX_SCAN_Y : MX_SCAN_NONE;
  if (s->elem_round == MX_ROUND_SCAN_X && (!formed || f->elem.integer || !scan_x_is_of_y(f, p)))
    scan_init(f, p);
  else if (!formed)
    return;
  f->elem.sticky = exact && (s->elem_round == MX_ROUND_RTP || s->elem_round == MX_ROUND_RTN || f->elem.zero_sign == MX_ZERO_SIGN_DROP_INPUT ||
                             f->elem.zero_sign == MX_ZERO_SIGN_FORCE);
  /* A value beyond the range of y's type becomes Inf, which may have its own code, and which a scan finds equally far from every value. */
  const int inf_is_apart = s->elem_inf != MX_ELEM_INF_OVERFLOW || f->elem.wrap || s->elem_round == MX_ROUND_SCAN_Y || !inf_goes_with_large(p);
  const int inf_by_dtype = s->input_dtype == MX_INPUT_DTYPE_FLOAT16 && inf_is_apart;
  /* If overflow saturates, or if y is a real number, a y that is Inf in a kernel gives the same code as any large number. */
  const int saturates = f->elem.over_code == f->elem.max_code && f->elem.over_negative == f->elem.max_code;
  const int any = (!inf_is_apart && saturates) || (exact && !f->elem.wrap && s->input_dtype == MX_INPUT_DTYPE_FLOAT32);
  f->y_most = inf_by_dtype ? 0x1p15f : any ? INFINITY : 0x1p100f;
  if (s->elem_round == MX_ROUND_SCAN_Y) f->y_most = fminf(f->y_most, 0x1p100f);
  if (s->elem_round == MX_ROUND_SCAN_X) f->y_most = INFINITY;
  const int special = f->elem.over_code != f->elem.max_code || f->elem.over_negative != f->elem.max_code;
  if (f->again && special && (!f->elem.wrap || p->elem->nan_code != MX_NO_CODE))
    f->y_most = f->elem_max; /* a NaN or Inf is not encoded again */
  f->y_hi = f->y_most;
  /* Distances from the largest value and the one before it differ in binary32. */
  if (s->elem_round == MX_ROUND_SCAN_Y || s->elem_round == MX_ROUND_SCAN_X)
    f->y_hi = fminf(f->y_hi, ldexpf(1, p->emax - f->elem.man_bits + 20));
  f->nibble = p->elem->bits == 4 ? s->nibble : -1;
  f->lead = lead_of(f, p);
  f->select = s->select == MX_SELECT_FOURSIX;
  f->six = f->select && select_in_vectors(f, p);
  f->hot = s->elem == MX_ELEM_E2M1 && (f->form == MX_FORM_MUL || f->form == MX_FORM_DIV) && f->dtype == MX_INPUT_DTYPE_FLOAT32 && !by_f32 &&
           !f->elem.sticky && f->pre == 0 && f->elem.way != MX_WAY_SR && !f->again && !f->scan && f->nibble != MX_NIBBLE_HALF_BLOCK;
  if (f->hot) table_init(f, p);
  f->y_six = fminf(f->y_hi, 0x1p100f);
  if (f->hot || f->select) f->y_hi = fminf(f->y_hi, f->elem.wrap ? 8.5f : 0x1p20f);
  if (f->select && f->elem.wrap) f->y_most = f->y_hi; /* the error of a single tile allows for only one wrapped code */
  const int keeps = f->elem.zero_sign == MX_ZERO_SIGN_KEEP, drops = f->elem.zero_sign == MX_ZERO_SIGN_DROP_INPUT;
  if (f->elem.way == MX_WAY_SR && f->elem.sr_simple && saturates && !f->elem.integer && p->elem->bits <= 8 && f->elem.man_bits > 0 &&
      (f->form == MX_FORM_MUL || f->form == MX_FORM_DIV) && f->dtype == MX_INPUT_DTYPE_FLOAT32 && !f->elem.sticky && f->pre == 0 && !f->again)
    f->stochastic = keeps ? MX_PLAIN_KEEP : drops ? MX_PLAIN_DROP : MX_PLAIN_NO;
  f->byte_sized = (f->elem.plain == MX_PLAIN_KEEP || f->elem.plain == MX_PLAIN_DROP) && p->elem->bits <= 8 && f->elem.man_bits > 0;
  if (f->elem.wrap && s->elem == MX_ELEM_E2M1 && !f->again) {
    f->wrap_far = f->elem.wrap;
    f->elem.wrap = 0;
    f->y_hi = fminf(f->y_hi, 8.5f);
  }
  if (f->six) f->y_hi = f->y_six;
  const mx_block_stats zeros = {0};
  f->zero_known = s->scale_round != MX_SCALE_ROUND_SR && !mxi_block_scale_find(&f->zero_scale, p, &zeros, 0, 0);
  for (int i = 0; f->zero_known && i < 2; i++) f->zero_code[i] = (uint8_t)mxi_element_code(p, &f->zero_scale, i ? -0.0f : 0.0f, 0);
  const int narrow = s->input_dtype == MX_INPUT_DTYPE_FLOAT16, scans = s->elem_round == MX_ROUND_SCAN_X || s->elem_round == MX_ROUND_SCAN_Y;
  f->has_ends = !f->again && !scans && !f->select && s->scale_form == MX_SCALE_FORM_DECODE && p->elem->bits <= 8 &&
                (!exact || s->input_dtype != MX_INPUT_DTYPE_FLOAT32) && (narrow || f->y_most < INFINITY);
  f->columns = s->elem == MX_ELEM_E2M1 && p->block_rows == 1 && p->block_cols == 16 && f->form == MX_FORM_MUL && f->lead != MX_LEAD_NONE &&
               !f->wide && s->select == MX_SELECT_ABSMAX && s->nibble == MX_NIBBLE_LOW_FIRST && !f->has_ends &&
               (f->elem.way == MX_WAY_SR ? f->stochastic && s->sr_source == MX_SR_SOURCE_PHILOX : f->hot && f->elem.plain);
  f->ends_from = bits_of(narrow ? 0x1p16f : s->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO ? 0x1p127f : INFINITY);
  for (int i = 0; i < 2; i++) f->inf_code[i] = (int32_t)(mx_encode(p->elem, i ? -INFINITY : INFINITY, &p->encode, 0) & 0xFF);
  f->nan_code = (int32_t)(mx_encode(p->elem, copysign(NAN, -1), &p->encode, 0) & 0xFF);
  f->steps = !p->uses_chain || is_monotone(&f->scale_of);
  f->usable = 1;
}

static int ordinary(const mx_stages *f, float x) { return f->has_ends ? x >= 0 : x > 0 && x < INFINITY; }

int mxi_stages_factors(float f[2], const mx_stages *stages, const mx_block_scale *b) {
  f[0] = f[1] = 1;
  /* scan_x never takes a value that is infinite in binary32. */
  const double used = b->how == MX_BY_CHAIN ? (double)b->sf : b->used;
  if (stages->plan->spec.elem_round == MX_ROUND_SCAN_X && !(used * mx_format_max(stages->plan->elem) < 0x1p127)) return 0;
  if (b->how == MX_BY_CHAIN && stages->scan == MX_SCAN_X) {
    f[0] = b->sf;
    return ordinary(stages, f[0]);
  }
  for (int i = 0; stages->again && i < stages->plan->chain->again.n; i++) /* so that what is encoded again stays finite */
    if (!(b->again[i] >= 0x1p-60f && b->again[i] <= 0x1p60f)) return 0;
  if (b->how == MX_BY_CHAIN) {
    for (int i = 0; i < stages->plan->chain->element.n; i++) f[i] = b->factor[i];
    return ordinary(stages, f[0]) && ordinary(stages, f[1]);
  }
  if (b->how != MX_BY_NUMBER || !(b->used >= (stages->has_ends ? 0 : 0x1p-149) && b->used <= 0x1p127)) return 0;
  f[0] = (float)b->used;
  if (stages->factor == MX_FACTOR_POW2 || stages->factor == MX_FACTOR_RCP32) f[0] = 1 / f[0];
  if (stages->factor == MX_FACTOR_POW2 && isinf(f[0]) && b->used != 0) return 0; /* a quotient by the scale itself may be finite */
  return ordinary(stages, f[0]);
}
