/* Makes the codes of a block from its scale, with faults of the divisor, the clamp, the rounding and the code. */
#include <math.h>
#include <string.h>

#include "verify/fault/elements.h"

/* ---- the divisor */

/* Rounds to so many bits of mantissa after the point, to nearest even. */
static float to_bits(float x, int n, int nearest) {
  uint32_t bits;
  if (n < 0 || n >= 23) return x;
  const unsigned dropped = 23 - (unsigned)n;
  memcpy(&bits, &x, sizeof bits);
  if (nearest) bits += (UINT32_C(1) << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits &= ~((UINT32_C(1) << dropped) - 1);
  memcpy(&x, &bits, sizeof bits);
  return x;
}

/* The number T that a decoded scale is multiplied by, in binary32: max|X| / K; 1 without a tensor scale. */
static float tensor_of(const mx_plan *p) {
  const float a = p->uses_chain ? p->vars[MX_VAR_A] : (float)p->g;
  return p->has_tensor_scale && a != 0 ? a / (float)p->target : 1;
}

/* The divisor of the rule, in binary32. */
static float divisor_of(const mx_plan *p, const mx_block_scale *s) {
  if (s->how == MX_BY_CHAIN && p->chain->element.n == 1) return p->chain->element.op[0] == '/' ? s->factor[0] : 1 / s->factor[0];
  if (s->how == MX_BY_CHAIN) return s->sf * tensor_of(p);
  return (float)(s->used * (p->has_tensor_scale ? p->g / p->norm : 1));
}
static float reciprocal_of(const mx_plan *p, const mx_block_scale *s) {
  if (s->how == MX_BY_CHAIN && p->chain->element.n == 1 && p->chain->element.op[0] == '*') return s->factor[0];
  return 1 / divisor_of(p, s);
}

static int is_subnormal(const mx_plan *p, uint32_t code) {
  return p->scale->kind == MX_KIND_FLOAT && code && !(code >> p->scale->man_bits & ((1u << p->scale->exp_bits) - 1));
}

/* Replaces a scaled value that is infinite or NaN as the format saturates. */
static double limited(double y) { return isnan(y) ? 0 : isinf(y) ? copysign(1e300, y) : y; }

/* The scaled value with a fault of the divisor. */
static double divided(const fault_run *r, const fault_block *b, float x) {
  const mx_plan *p = &r->plan;
  const mx_fault *f = b->divisor;
  const mx_block_scale *s = &b->scale;
  const float t = tensor_of(p);
  float q = 0;
  if (!f) return mxi_scaled_value(p, s, x);
  switch (f->op) {
  case MX_FAULT_DIVISOR_ZERO:
    return x == 0 ? (double)x : copysign(1e300, (double)x);
  case MX_FAULT_DIVISOR_AS:
  case MX_FAULT_DIVISOR_AS_NUMBER: {
    const mx_format *as = mxi_fault_format(f->format);
    double sf = mx_decode(as, as->sign_bits ? s->code & ((1u << (as->bits - 1)) - 1) : s->code);
    if (f->op == MX_FAULT_DIVISOR_AS_NUMBER && !isfinite(sf)) sf = mx_format_max(as);
    if (!p->has_tensor_scale) return limited((double)x / sf);
    return limited((double)(x / ((float)sf * t)));
  }
  case MX_FAULT_DIVISOR_FLUSH:
    return is_subnormal(p, s->code) ? x == 0 ? 0 : copysign(1e300, (double)x) : mxi_scaled_value(p, s, x);
  case MX_FAULT_DIVISOR_HALF:
    return mxi_scaled_value(p, s, x) * (is_subnormal(p, s->code) ? 2 : 1);
  case MX_FAULT_DIVISOR_BITS:
  case MX_FAULT_DIVISOR_BITS_NEAREST:
    q = to_bits(reciprocal_of(p, s), (int)f->number, f->op == MX_FAULT_DIVISOR_BITS_NEAREST);
    return limited((double)(x * q));
  case MX_FAULT_DIVISOR_RCP_BF16:
    return limited((double)(x * mxi_round_dtype(reciprocal_of(p, s), MX_INPUT_DTYPE_BFLOAT16)));
  case MX_FAULT_DIVISOR_RCP_F16:
    return limited((double)(x * mxi_round_dtype(reciprocal_of(p, s), MX_INPUT_DTYPE_FLOAT16)));
  case MX_FAULT_DIVISOR_BF16:
    return limited((double)(x / mxi_round_dtype(divisor_of(p, s), MX_INPUT_DTYPE_BFLOAT16)));
  case MX_FAULT_DIVISOR_UNROUNDED:
  case MX_FAULT_DIVISOR_UNROUNDED_TIMES: {
    const float amax = r->stats[b->d * r->across + b->a].amax_finite, largest = (float)p->f;
    if (amax == 0) return mxi_scaled_value(p, s, x);
    return f->op == MX_FAULT_DIVISOR_UNROUNDED ? (double)(x / (amax / largest)) : (double)(x * (largest / amax));
  }
  case MX_FAULT_DIVISOR_NO_TENSOR:
    return s->how == MX_BY_CHAIN ? limited((double)(x / s->sf)) : limited((double)x / s->used);
  case MX_FAULT_DIVISOR_TENSOR_TWICE:
    return limited((double)((float)mxi_scaled_value(p, s, x) / t));
  case MX_FAULT_DIVISOR_TENSOR_INVERTED:
    return limited((double)(x / ((s->how == MX_BY_CHAIN ? s->sf : (float)s->used) / t)));
  case MX_FAULT_DIVISOR_ONE:
    return (double)x;
  default:
    return mxi_scaled_value(p, s, x);
  }
}

void mxi_fault_block(fault_block *b, const fault_run *r, size_t d, size_t a, uint32_t code) {
  const size_t k = d * r->across + a;
  *b = (fault_block){.d = d, .a = a, .sign_of_largest = 1};
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    const int stage = mx_fault_row_at(f->op)->stage;
    if (stage == MX_STAGE_DIVISOR && mxi_fault_block_in(r, &f->region, d, a)) {
      b->divisor = f;
      mx_block_stats st = r->stats[k];
      mx_block_scale other;
      const int of_row = f->op == MX_FAULT_DIVISOR_ROW || f->op == MX_FAULT_DIVISOR_ROW_XOR,
                of_block = f->op == MX_FAULT_DIVISOR_BLOCK || f->op == MX_FAULT_DIVISOR_BLOCK_XOR;
      const size_t row_of = of_row ? mxi_fault_other(f, d, r->down) : d, block_of = of_block ? mxi_fault_other(f, a, r->across) : a;
      if (row_of != d || block_of != a) code = r->used[row_of * r->across + block_of];
      if (f->op == MX_FAULT_DIVISOR_PLUS) code = (uint32_t)((double)code + f->number) & ((1u << r->plan.scale->bits) - 1);
      st.amax = st.amax_finite = st.amax_finite * (float)f->number;
      if (f->op == MX_FAULT_DIVISOR_AMAX_TIMES && !mxi_block_scale_find(&other, &r->plan, &st, 0, k)) code = other.code;
    }
    if (f->op == MX_FAULT_CODE_SIGN_OF_LARGEST) {
      float most = 0;
      for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
        for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++)
          if (fabsf(r->x[row * r->cols + col]) > fabsf(most)) most = r->x[row * r->cols + col];
      b->sign_of_largest = copysignf(1, most);
    }
  }
  if (mxi_block_scale_find(&b->scale, &r->plan, &r->stats[k], 0, k) || b->scale.code != code) mxi_block_scale_given(&b->scale, &r->plan, code);
}

/* ---- the code */

static uint32_t sign_bit(const mx_format *f) { return f->sign_bits ? UINT32_C(1) << (f->bits - 1) : 0; }

static uint32_t negated(const mx_format *f, uint32_t code) {
  if (f->kind == MX_KIND_INT) return (0u - code) & (2 * sign_bit(f) - 1);
  return code ^ sign_bit(f);
}
static int is_negative(const mx_format *f, uint32_t code) { return (code & sign_bit(f)) != 0; }
static uint32_t with_sign(const mx_format *f, uint32_t code, int negative) {
  return is_negative(f, code) == negative ? code : negated(f, code);
}

double mxi_beyond_largest(const mx_format *f) { return 1.5 * mx_format_max(f) - 0.5 * mx_decode(f, f->max_code - 1); }

static int rounding_of(int op, int otherwise) {
  return op == MX_FAULT_ELEMENT_TRUNCATE    ? MX_ROUND_RTZ
         : op == MX_FAULT_ELEMENT_TIES_AWAY ? MX_ROUND_RNA
         : op == MX_FAULT_ELEMENT_TIES_ZERO ? MX_ROUND_RTZ_TIE
                                            : otherwise;
}

static uint32_t rounded(const fault_run *r, const fault_block *b, const mx_fault *f, float x, double y, uint64_t index) {
  const mx_plan *p = &r->plan;
  mx_encoding how = p->encode;
  if (!f) return b->divisor ? (uint32_t)mx_encode(p->elem, y, &how, 0) : mxi_element_code_of(p, &b->scale, x, y, index);
  const int negative = signbit(y) != 0;
  switch (f->op) {
  case MX_FAULT_ELEMENT_BF16:
    return (uint32_t)mx_encode(p->elem, (double)mxi_round_dtype((float)y, MX_INPUT_DTYPE_BFLOAT16), &how, 0);
  case MX_FAULT_ELEMENT_BF16_CUT:
    return (uint32_t)mx_encode(p->elem, (double)mxi_cut_to_bf16((float)y), &how, 0);
  case MX_FAULT_ELEMENT_F16:
    return (uint32_t)mx_encode(p->elem, (double)mxi_round_dtype((float)y, MX_INPUT_DTYPE_FLOAT16), &how, 0);
  case MX_FAULT_ELEMENT_FORMAT:
    return (uint32_t)mx_encode(p->elem, mxi_fault_to_format(f->format, y), &how, 0);
  case MX_FAULT_ELEMENT_TIMES:
    return (uint32_t)mx_encode(p->elem, (double)((float)y * (float)f->number), &how, 0);
  case MX_FAULT_ELEMENT_AWAY:
    how.round = negative ? MX_ROUND_RTN : MX_ROUND_RTP;
    return (uint32_t)mx_encode(p->elem, y, &how, 0);
  case MX_FAULT_ELEMENT_TIES_UP:
    how.round = negative ? MX_ROUND_RTZ_TIE : MX_ROUND_RNA;
    return (uint32_t)mx_encode(p->elem, y, &how, 0);
  case MX_FAULT_ELEMENT_TIES_DOWN:
    how.round = negative ? MX_ROUND_RNA : MX_ROUND_RTZ_TIE;
    return (uint32_t)mx_encode(p->elem, y, &how, 0);
  case MX_FAULT_ELEMENT_WRAP:
    return fabs(y) < mxi_beyond_largest(p->elem) ? (uint32_t)mx_encode(p->elem, y, &how, 0) : negative ? sign_bit(p->elem) : 0;
  default:
    how.round = rounding_of(f->op, how.round);
    return (uint32_t)mx_encode(p->elem, y, &how, 0);
  }
}

/* Applies the faults of a code that need no other element's code. */
static uint32_t stored(const fault_run *r, const fault_block *b, const mx_fault *f, float x, double y, uint32_t code) {
  const mx_format *e = r->plan.elem;
  const uint32_t sign = sign_bit(e), all = 2 * sign - 1;
  switch (f->op) {
  case MX_FAULT_CODE_INVERT:
    return negated(e, code);
  case MX_FAULT_CODE_ABS:
    return with_sign(e, code, 0);
  case MX_FAULT_CODE_NO_NEGATIVE_ZERO:
    return code == sign ? 0 : code;
  case MX_FAULT_CODE_NEGATIVE_ZERO:
    return code == 0 ? sign : code;
  case MX_FAULT_CODE_SIGN_OF_LARGEST:
    return with_sign(e, code, b->sign_of_largest < 0);
  case MX_FAULT_CODE_VALUE:
    return (uint32_t)f->number & all;
  case MX_FAULT_CODE_TWOS:
    return code & sign ? (0u - (code & ~sign)) & all : code;
  case MX_FAULT_CODE_SIGN_MAGNITUDE:
    return code & sign ? sign | ((0u - code) & (sign - 1)) : code;
  case MX_FAULT_CODE_LOWEST:
    (void)x;
    return e->kind == MX_KIND_INT && y <= -(double)(sign - 0.5) * ldexp(1, -(int)e->man_bits) ? sign : code;
  default:
    return code;
  }
}

static const mx_fault *fault_at(const fault_run *r, int stage, size_t row, size_t col) {
  for (size_t i = 0; i < r->n_faults; i++)
    if (mx_fault_row_at(r->faults[i].op)->stage == stage && mxi_fault_element_in(r, &r->faults[i].region, row, col)) return &r->faults[i];
  return NULL;
}

uint32_t mxi_fault_element(const fault_run *r, const fault_block *b, size_t row, size_t col) {
  float x = r->x[row * r->cols + col];
  const mx_fault *clamp = fault_at(r, MX_STAGE_CLAMP, row, col), *element = fault_at(r, MX_STAGE_ELEMENT, row, col);
  if (clamp && fabsf(x) > (float)clamp->number) x = copysignf((float)clamp->number, x);
  const double y = divided(r, b, x);
  uint32_t code = rounded(r, b, element, x, y, (uint64_t)row * r->cols + col);
  for (size_t i = 0; i < r->n_faults; i++)
    if (mx_fault_row_at(r->faults[i].op)->stage == MX_STAGE_CODE && mxi_fault_element_in(r, &r->faults[i].region, row, col))
      code = stored(r, b, &r->faults[i], x, y, code);
  return code;
}
