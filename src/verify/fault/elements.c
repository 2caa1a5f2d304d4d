/* Makes the codes of a block from its scale, with faults of the divisor, the clamp, the rounding and the code. */
#include <math.h>
#include <string.h>

#include "verify/fault/elements.h"
#include "verify/fault/renamed.h"

/* ---- the divisor */

/* Rounds to so many bits of mantissa after the point, to nearest even. */
static float to_bits(float x, int n, int nearest) {
  uint32_t bits;
  if (n < 0 || n >= 23 || isnan(x)) return x;
  const unsigned dropped = 23 - (unsigned)n;
  memcpy(&bits, &x, sizeof bits);
  if (nearest) bits += (UINT32_C(1) << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits &= ~((UINT32_C(1) << dropped) - 1);
  memcpy(&x, &bits, sizeof bits);
  return x;
}

/* 1 / d as an instruction for Newton's steps has it: the middle of the interval of mantissas of n + 1 bits, rounded to n bits behind the point. */
static float estimate(float d, int n) {
  enum { MOST_BITS = 20 };
  int e;
  if (n < 1 || n > MOST_BITS || d == 0 || !isfinite(d)) return 1 / d;
  const uint64_t a = (uint64_t)ldexp(frexp(fabs((double)d), &e), n + 1), r = ((UINT64_C(1) << (2 * n + 3)) / (2 * a + 1) + 1) / 2;
  return copysignf((float)ldexp((double)r, -n - e), d);
}

/* max|X| of a formula: of a tensor scale that is given, what it stands for. */
float mxi_fault_chain_amax(const mx_plan *p) {
  const char store = *mx_chain_row(p->spec.chain)->store;
  const float given = p->spec.tensor_given_value, k = (float)p->target;
  if (!p->spec.tensor_given || store == 'A') return p->vars[MX_VAR_A];
  return store == 'S' ? k / given : given * k;
}

/* The number T that a decoded scale is multiplied by, in binary32; 1 without a tensor scale. */
static float tensor_of(const mx_plan *p) {
  if (!p->has_tensor_scale) return 1;
  if (!p->uses_chain) return (float)(p->g / p->norm);
  const float a = mxi_fault_chain_amax(p);
  return a != 0 ? a / (float)p->target : 1;
}

/* What the elements are divided by without a tensor scale: sf, or in the encode form its inverse. */
static float part_of(const mx_plan *p, const mx_block_scale *s) {
  if (s->how == MX_BY_CHAIN) return s->sf;
  return (float)(p->spec.scale_form == MX_SCALE_FORM_ENCODE ? 1 / s->used : s->used);
}

/* a b / c rounded once to binary32. */
static float once(double a, double b, double c) {
  const int plain = isfinite(a) && isfinite(b) && isfinite(c) && a != 0 && b != 0 && c != 0;
  return (float)(plain ? mxi_quotient_to_odd(a * b, c) : a * b / c);
}

float mxi_fault_divisor(const mx_plan *p, const mx_block_scale *s) {
  if (s->how == MX_BY_CHAIN && p->chain->element.n == 1) return p->chain->element.op[0] == '/' ? s->factor[0] : 1 / s->factor[0];
  if (s->how == MX_BY_CHAIN) return s->sf * tensor_of(p);
  const int tensor = p->has_tensor_scale && !p->uses_chain;
  const double g = tensor ? p->g : 1, norm = tensor ? p->norm : 1;
  return p->spec.scale_form == MX_SCALE_FORM_ENCODE ? once(g, 1, s->used * norm) : once(s->used, g, norm);
}
static float reciprocal_of(const mx_plan *p, const mx_block_scale *s) {
  if (s->how == MX_BY_CHAIN && p->chain->element.n == 1 && p->chain->element.op[0] == '*') return s->factor[0];
  return 1 / mxi_fault_divisor(p, s);
}

static int is_subnormal(const mx_plan *p, uint32_t code) {
  const mx_format *f = p->scale;
  return f->kind == MX_KIND_FLOAT && code & ((1u << f->man_bits) - 1) && !(code >> f->man_bits & ((1u << f->exp_bits) - 1));
}

static int is_zero(const mx_plan *p, uint32_t code) { return mx_decode(p->scale, code) == 0; }

/* A quotient without end is one that no format holds, one that is no number is +0. */
static double limited(double y) { return isnan(y) ? 0 : isinf(y) ? copysign(1e300, y) : y; }

/* The quotient with a fault of the divisor that says how it is made. */
static double quotient(const fault_block *b, float x) {
  const mx_plan *p = b->plan;
  const mx_fault *f = b->divisor;
  const mx_block_scale *s = &b->scale;
  const float t = tensor_of(p);
  switch (f->op) {
  case MX_FAULT_DIVISOR_ZERO:
    return x == 0 ? (double)x : copysign(INFINITY, (double)x);
  case MX_FAULT_DIVISOR_AS:
  case MX_FAULT_DIVISOR_AS_NUMBER: {
    const mx_format *as = mxi_fault_format(f->format);
    double sf = fabs(mx_decode(as, as->sign_bits ? s->code & ((1u << (as->bits - 1)) - 1) : s->code));
    if (f->op == MX_FAULT_DIVISOR_AS_NUMBER && !isfinite(sf)) sf = mx_format_max(as);
    return (double)(x / ((float)sf * t));
  }
  case MX_FAULT_DIVISOR_TO_ZERO:
    return is_zero(p, s->code) ? copysign(0, (double)x) : mxi_scaled_value(p, s, x);
  case MX_FAULT_DIVISOR_TO_PLUS_ZERO:
    return is_zero(p, s->code) ? 0 : mxi_scaled_value(p, s, x);
  case MX_FAULT_DIVISOR_FLUSH:
    return is_subnormal(p, s->code) ? (double)(x / 0.0f) : mxi_scaled_value(p, s, x);
  case MX_FAULT_DIVISOR_HALF:
    return mxi_scaled_value(p, s, x) * (is_subnormal(p, s->code) ? 2 : 1);
  case MX_FAULT_DIVISOR_BINADE: {
    const unsigned bits = p->scale->man_bits, code = s->code & ((1u << (p->scale->bits - p->scale->sign_bits)) - 1);
    if (p->scale->kind != MX_KIND_FLOAT || code >> bits) return mxi_scaled_value(p, s, x);
    return (double)(x / ((float)ldexp(1 + ldexp(code, -(int)bits), -p->scale->bias) * t));
  }
  case MX_FAULT_DIVISOR_BITS:
  case MX_FAULT_DIVISOR_BITS_NEAREST:
    return (double)(x * to_bits(reciprocal_of(p, s), (int)f->number, f->op == MX_FAULT_DIVISOR_BITS_NEAREST));
  case MX_FAULT_DIVISOR_SCALE_BITS:
  case MX_FAULT_DIVISOR_SCALE_BITS_NEAREST:
    return (double)(x * to_bits(1 / part_of(p, s), (int)f->number, f->op == MX_FAULT_DIVISOR_SCALE_BITS_NEAREST) * (1 / t));
  case MX_FAULT_DIVISOR_ESTIMATE:
    return (double)(x * estimate(mxi_fault_divisor(p, s), (int)f->number));
  case MX_FAULT_DIVISOR_RCP_NAN: {
    const float y = x * reciprocal_of(p, s);
    return isnan(y) ? INFINITY : (double)y;
  }
  case MX_FAULT_DIVISOR_RCP_BF16:
    return (double)(x * mxi_round_dtype(reciprocal_of(p, s), MX_INPUT_DTYPE_BFLOAT16));
  case MX_FAULT_DIVISOR_RCP_F16:
    return (double)(x * mxi_round_dtype(reciprocal_of(p, s), MX_INPUT_DTYPE_FLOAT16));
  case MX_FAULT_DIVISOR_BF16:
    return (double)(x / mxi_round_dtype(mxi_fault_divisor(p, s), MX_INPUT_DTYPE_BFLOAT16));
  case MX_FAULT_DIVISOR_UNROUNDED:
  case MX_FAULT_DIVISOR_UNROUNDED_RCP:
  case MX_FAULT_DIVISOR_UNROUNDED_TIMES: {
    const float amax = b->amax, largest = (float)p->f;
    if (amax == 0) return mxi_scaled_value(p, s, x);
    if (f->op == MX_FAULT_DIVISOR_UNROUNDED_RCP) return (double)(x * (1 / (amax / largest)));
    return f->op == MX_FAULT_DIVISOR_UNROUNDED ? (double)(x / (amax / largest)) : (double)(x * (largest / amax));
  }
  case MX_FAULT_DIVISOR_BEFORE: /* by the scale that divide_by() left */
    return mxi_scaled_value(p, s, x);
  case MX_FAULT_DIVISOR_NO_TENSOR:
    return (double)(x / part_of(p, s));
  case MX_FAULT_DIVISOR_TENSOR_TWICE:
    return (double)((float)mxi_scaled_value(p, s, x) / t);
  case MX_FAULT_DIVISOR_TENSOR_INVERTED:
    return (double)(x / (part_of(p, s) / t));
  case MX_FAULT_DIVISOR_INVERTED:
    return (double)(x * mxi_fault_divisor(p, s));
  case MX_FAULT_DIVISOR_TWICE:
    return (double)((float)mxi_scaled_value(p, s, x) / mxi_fault_divisor(p, s));
  default: /* skip */
    return (double)x;
  }
}

static double divided(const fault_block *b, float x) {
  if (!b->divisor) return mxi_scaled_value(b->plan, &b->scale, x);
  return isfinite(x) ? limited(quotient(b, x)) : (double)x;
}

/* Does the maximum of lane i hold the element of lane j? */
static int lanes_meet(const mx_fault *f, size_t i, size_t j) {
  if (f->op == MX_FAULT_DIVISOR_LANES_FROM) return j >= i;
  if (f->op == MX_FAULT_DIVISOR_LANES_TO) return j <= i;
  return !((i ^ j) & (size_t)(ptrdiff_t)f->number);
}

/* The code of the scale of the elements that lane (row, col) knows the maximum of. */
static uint32_t code_of_lanes(const fault_run *r, const mx_fault *f, size_t row, size_t col, uint32_t otherwise) {
  const size_t d = row / r->block_rows, a = col / r->block_cols, at = row % r->block_rows * r->block_cols + col % r->block_cols;
  mx_block_stats st = r->stats[d * r->across + a];
  uint32_t code;
  if (st.has_nan || st.has_inf) return otherwise;
  st.amax = st.amax_finite = 0;
  for (size_t i = 0; i < r->block_rows * r->block_cols; i++) {
    const size_t y = d * r->block_rows + i / r->block_cols, x = a * r->block_cols + i % r->block_cols;
    if (y < r->rows && x < r->cols && lanes_meet(f, at, i)) mx_block_stats_add(&st, r->x[y * r->cols + x]);
  }
  st.amax = st.amax_finite;
  return mxi_block_scale_code(&code, mxi_fault_plan(r, d, a), &st, 0, d * r->across + a) ? otherwise : code;
}

/* The code of the scale of the lanes from the element's own on, of n elements each, as far as shuffles down over the lanes of a block reach: to the end of
 * the 32 lanes that shuffle, and of the row. */
static uint32_t code_of_lanes_down(const fault_run *r, const mx_fault *f, size_t row, size_t col, uint32_t otherwise) {
  enum { LANES = 32 };
  const size_t a = col / r->block_cols, k = row * r->across + a,
               n = f->number >= 1 && f->number <= (double)r->block_cols ? (size_t)f->number : r->block_cols;
  if (r->block_rows > 1 || r->block_cols % n || r->stats[k].has_nan || r->stats[k].has_inf) return otherwise;
  const size_t lane = col / n, end = lane / LANES * LANES + LANES;
  mx_block_stats st = r->stats[k];
  uint32_t code;
  st.amax = st.amax_finite = 0;
  for (size_t i = lane; i < lane + r->block_cols / n && i < end; i++)
    for (size_t c = i * n; c < (i + 1) * n && c < r->cols; c++) mx_block_stats_add(&st, r->x[row * r->cols + c]);
  if (st.has_nan || st.has_inf) return otherwise; /* in the next block */
  st.amax = st.amax_finite;
  return mxi_block_scale_code(&code, mxi_fault_plan(r, row, a), &st, 0, k) ? otherwise : code;
}

/* The code that a fault of the divisor divides element (row, col) of block (d, a) by, where it takes another one. Returns 0 for a fault that says how to
 * divide. */
static int other_code(const fault_run *r, const mx_fault *f, size_t row, size_t col, uint32_t *code) {
  const size_t d = row / r->block_rows, a = col / r->block_cols, k = d * r->across + a, by = (size_t)(ptrdiff_t)f->number;
  switch (f->op) {
  case MX_FAULT_DIVISOR_ROW:
  case MX_FAULT_DIVISOR_ROW_XOR:
  case MX_FAULT_DIVISOR_FIRST_ROW:
  case MX_FAULT_DIVISOR_ROW_MODULO:
    if (mxi_fault_other(f, d, r->down) != d) *code = r->used[mxi_fault_other(f, d, r->down) * r->across + a];
    return 1;
  case MX_FAULT_DIVISOR_BLOCK:
  case MX_FAULT_DIVISOR_BLOCK_XOR:
  case MX_FAULT_DIVISOR_FIRST_BLOCK:
  case MX_FAULT_DIVISOR_MODULO:
    if (mxi_fault_other(f, a, r->across) != a) *code = r->used[d * r->across + mxi_fault_other(f, a, r->across)];
    return 1;
  case MX_FAULT_DIVISOR_DOWN:
    *code = mxi_fault_code_down(r, row / r->block_cols, col / r->block_rows, *code);
    return 1;
  case MX_FAULT_DIVISOR_ORDER: /* a negative number wraps to one beyond the end */
    *code = k + by < r->down * r->across ? r->used[k + by] : (uint32_t)mx_encode(r->plan.scale, 1, &(mx_encoding){0}, 0);
    return 1;
  case MX_FAULT_DIVISOR_OVER:
    *code = r->used[d * r->across + a / (f->number >= 1 ? by : 1)];
    return 1;
  case MX_FAULT_DIVISOR_REPEATED:
    *code = r->used[d * r->across + col % r->across];
    return 1;
  case MX_FAULT_DIVISOR_LANES:
  case MX_FAULT_DIVISOR_LANES_FROM:
  case MX_FAULT_DIVISOR_LANES_TO:
    *code = code_of_lanes(r, f, row, col, *code);
    return 1;
  case MX_FAULT_DIVISOR_LANES_DOWN:
    *code = code_of_lanes_down(r, f, row, col, *code);
    return 1;
  case MX_FAULT_DIVISOR_RULE:
    *code = mxi_fault_code_by_rule(r, f, &r->stats[k], k, *code);
    return 1;
  case MX_FAULT_DIVISOR_PLUS:
    *code = mxi_fault_code_of(r->plan.scale, (double)*code + f->number);
    return 1;
  case MX_FAULT_DIVISOR_AMAX_TIMES:
    *code = mxi_fault_code_of_amax(r, f, d, a, *code);
    return 1;
  default:
    return 0;
  }
}

/* Has each element of a block a divisor of its own? */
static int is_apart(const fault_run *r, const mx_fault *f) {
  const int op = f->op, of_lanes = op == MX_FAULT_DIVISOR_LANES || op == MX_FAULT_DIVISOR_LANES_DOWN || op == MX_FAULT_DIVISOR_LANES_FROM ||
                                   op == MX_FAULT_DIVISOR_LANES_TO;
  return of_lanes || op == MX_FAULT_DIVISOR_REPEATED || op == MX_FAULT_DIVISOR_DOWN || mxi_fault_of_elements(f) ||
         ((f->region.of == MX_REGION_ROWS || f->also.of == MX_REGION_ROWS) && r->block_rows > 1);
}

/* The divisor of an element, from the code that its block has. */
static void divide_by(fault_block *b, const fault_run *r, size_t row, size_t col) {
  uint32_t code = b->given;
  b->divisor = NULL;
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    if (mxi_fault_stage(f) == MX_STAGE_DIVISOR && mxi_fault_element_in(r, f, row, col) && !other_code(r, f, row, col, &code)) b->divisor = f;
  }
  if (b->has_rule && b->rule.code == code)
    b->scale = b->rule;
  else
    mxi_block_scale_given(&b->scale, b->plan, code);
  if (b->divisor && b->divisor->op == MX_FAULT_DIVISOR_BEFORE) mxi_fault_unrounded_scale(&b->scale, r, b->d * r->across + b->a);
}

static int is_of_amax(int op) {
  return op == MX_FAULT_DIVISOR_UNROUNDED || op == MX_FAULT_DIVISOR_UNROUNDED_RCP || op == MX_FAULT_DIVISOR_UNROUNDED_TIMES;
}

void mxi_fault_block(fault_block *b, const fault_run *r, size_t d, size_t a, uint32_t code) {
  const size_t k = d * r->across + a;
  *b = (fault_block){.d = d, .a = a, .given = code, .plan = mxi_fault_plan(r, d, a), .divided_alone = 1, .sign_of_largest = 1};
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    b->apart |= mxi_fault_stage(f) == MX_STAGE_DIVISOR && is_apart(r, f);
    b->divided_alone &= mxi_fault_stage(f) <= MX_STAGE_DIVISOR || mxi_fault_stage(f) == MX_STAGE_LAYOUT;
    if (is_of_amax(f->op)) b->amax = mxi_fault_stats(r, d, a, &(int){0}).amax_finite;
    if (f->op == MX_FAULT_CODE_SIGN_OF_LARGEST || f->op == MX_FAULT_CODE_BY_LARGEST)
      b->sign_of_largest = mxi_fault_largest_is_negative(r, d, a) ? -1 : 1;
  }
  b->has_rule = !mxi_block_scale_find(&b->rule, b->plan, &r->stats[k], 0, k);
  divide_by(b, r, d * r->block_rows, a * r->block_cols);
}

/* The block with the divisor of one of its elements. */
static const fault_block *at_element(fault_block *own, const fault_block *b, const fault_run *r, size_t row, size_t col) {
  if (!b->apart) return b;
  *own = *b;
  divide_by(own, r, row, col);
  return own;
}

/* ---- the code */

static uint32_t rounded(const fault_run *r, const fault_block *b, float x, double y, size_t row, size_t col) {
  const mx_plan *p = b->plan;
  mx_encoding how = p->encode;
  uint32_t code;
  if (!b->divided_alone && mxi_fault_rounded(&code, r, p, y, row, col)) return code;
  if (!b->divisor) return mxi_element_code_of(p, &b->scale, x, y, (uint64_t)row * r->cols + col);
  if (how.round == MX_ROUND_SCAN_X || how.round == MX_ROUND_SCAN_Y) how.round = MX_ROUND_RNE;
  return (uint32_t)mx_encode(p->elem, y, &how, 0);
}

/* A bit of a number; beyond its 32 bits 0. */
static int bit_of(float x, double n) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return n >= 0 && n < 32 && (bits >> (int)n & 1);
}

/* Applies the faults of a code that need no other element's code. */
static uint32_t stored(const fault_run *r, const fault_block *b, const mx_fault *f, size_t row, size_t col, double y, uint32_t code) {
  const mx_format *e = r->plan.elem;
  const uint32_t sign = mxi_fault_sign_bit(e), all = 2 * sign - 1;
  switch (f->op) {
  case MX_FAULT_CODE_INVERT:
    return mxi_fault_negated(e, code);
  case MX_FAULT_CODE_ABS:
    return mxi_fault_with_sign(e, code, 0);
  case MX_FAULT_CODE_NO_NEGATIVE_ZERO:
    return code == sign ? 0 : code;
  case MX_FAULT_CODE_NEGATIVE_ZERO:
    return code == 0 ? sign : code;
  case MX_FAULT_CODE_SIGN_OF_LARGEST:
    return mxi_fault_with_sign(e, code, b->sign_of_largest < 0);
  case MX_FAULT_CODE_BY_LARGEST:
    return b->sign_of_largest < 0 ? mxi_fault_negated(e, code) : code;
  case MX_FAULT_CODE_VALUE:
    return mxi_fault_code_of(e, f->number);
  case MX_FAULT_CODE_SIGN_BIT:
    return mxi_fault_with_sign(e, code, bit_of(r->x[row * r->cols + col], f->number));
  case MX_FAULT_CODE_TWOS:
    return code & sign ? (0u - (code & ~sign)) & all : code;
  case MX_FAULT_CODE_SIGN_MAGNITUDE:
    return code & sign ? sign | ((0u - code) & (sign - 1)) : code;
  case MX_FAULT_CODE_BITS:
  case MX_FAULT_CODE_TABLE:
    return mxi_renamed(f, code);
  case MX_FAULT_CODE_PLUS:
    return (uint32_t)((int64_t)code + (int64_t)f->number) & all;
  case MX_FAULT_CODE_FLUSH:
    return e->kind == MX_KIND_FLOAT && (code & ~sign) < 1u << e->man_bits ? code & sign : code;
  case MX_FAULT_CODE_LOWEST:
    return e->kind == MX_KIND_INT && y <= -(double)(sign - 0.5) * ldexp(1, -(int)e->man_bits) ? sign : code;
  default:
    return code;
  }
}

static const mx_fault *of_clamp(const fault_run *r, size_t row, size_t col) {
  for (size_t i = 0; i < r->n_faults; i++)
    if (mxi_fault_stage(&r->faults[i]) == MX_STAGE_CLAMP && mxi_fault_element_in(r, &r->faults[i], row, col)) return &r->faults[i];
  return NULL;
}

/* The element after the clamp. */
static float clamped(const fault_run *r, size_t row, size_t col) {
  const float x = r->x[row * r->cols + col];
  const mx_fault *clamp = of_clamp(r, row, col);
  if (clamp && clamp->op == MX_FAULT_CLAMP_COLUMN) return r->x[row * r->cols + mxi_fault_other(clamp, col, r->cols)];
  if (clamp && clamp->op == MX_FAULT_CLAMP_ROW) return r->x[mxi_fault_other(clamp, row, r->rows) * r->cols + col];
  if (clamp && clamp->op == MX_FAULT_CLAMP_BF16) return mxi_round_dtype(x, MX_INPUT_DTYPE_BFLOAT16);
  if (clamp && clamp->op == MX_FAULT_CLAMP_F16) return mxi_round_dtype(x, MX_INPUT_DTYPE_FLOAT16);
  return clamp && fabsf(x) > fabsf((float)clamp->number) ? copysignf((float)clamp->number, x) : x;
}

int mxi_fault_exchanges(int op) {
  return op == MX_FAULT_CODE_SWAP || op == MX_FAULT_CODE_COLUMN || op == MX_FAULT_CODE_COLUMN_XOR || op == MX_FAULT_CODE_REVERSE ||
         op == MX_FAULT_CODE_SIGN_OF || op == MX_FAULT_CODE_SIGN_ROLLED || op == MX_FAULT_CODE_SIGN_OF_PAIR || op == MX_FAULT_CODE_SIGN_XOR ||
         op == MX_FAULT_CODE_SMEARED;
}

double mxi_fault_quotient(const fault_run *r, const fault_block *b, size_t row, size_t col) {
  fault_block own;
  return divided(at_element(&own, b, r, row, col), clamped(r, row, col));
}

uint32_t mxi_fault_element_stored(const fault_run *r, const fault_block *b, const mx_fault *f, size_t row, size_t col, uint32_t code) {
  fault_block own;
  b = at_element(&own, b, r, row, col);
  return stored(r, b, f, row, col, divided(b, clamped(r, row, col)), code);
}

uint32_t mxi_fault_element(const fault_run *r, const fault_block *b, size_t row, size_t col) {
  if (b->divided_alone && !b->apart) {
    const float x = r->x[row * r->cols + col];
    return rounded(r, b, x, divided(b, x), row, col);
  }
  const float x = clamped(r, row, col);
  fault_block own;
  b = at_element(&own, b, r, row, col);
  const double y = divided(b, x);
  uint32_t code = rounded(r, b, x, y, row, col);
  for (size_t i = 0; i < r->n_faults; i++) {
    if (mxi_fault_exchanges(r->faults[i].op)) break; /* what comes behind it is the caller's */
    if (mxi_fault_stage(&r->faults[i]) == MX_STAGE_CODE && mxi_fault_element_in(r, &r->faults[i], row, col))
      code = stored(r, b, &r->faults[i], row, col, y, code);
  }
  return code;
}
