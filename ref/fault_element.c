/* Runs the faults of SPEC 9 by which an element gets another code: of the divisor, the clamp, the rounding, the code. */
#include "fault_run.h"

/* A block whose codes are being made. */
typedef struct lane {
  const ref_run *r;
  size_t d, a;
  ref_scale scale;
  const ref_fault *how; /* the fault that says how elements are divided, NULL: the rule */
} lane;

/* ---- the divisor */

/* sf, or in the encode form its inverse: what elements are divided by without a tensor scale. */
static num part_of(const ref_plan *plan, const ref_scale *s) {
  const int encode = plan->spec->scale_form == MX_SCALE_FORM_ENCODE;
  return num_round(encode ? num_ratio(NULL, 0, &s->used, 1) : s->used, NUM_F32);
}

static num reciprocal_of(const ref_plan *plan, const ref_scale *s) {
  num factor;
  return ref_chain_factor(plan, s, &factor) == '*' ? factor : num_div_r(num_int(1), ref_divisor(plan, s), NUM_F32);
}

/* A binary32 of so many bits behind the point, cut or rounded to nearest even. */
static num to_bits(num x, double bits, int nearest) {
  if (bits < 0 || bits >= 23 || num_is_nan(x)) return x;
  const unsigned dropped = 23 - (unsigned)bits;
  uint32_t word = num_bits32(x);
  if (nearest && (word >> dropped & 1)) word++;
  if (nearest) word += (UINT32_C(1) << (dropped - 1)) - 1;
  word = word >> dropped << dropped;
  float value;
  memcpy(&value, &word, sizeof value);
  return num_float(value);
}

/* An instruction's first guess at 1 / d, of n bits: a = floor(m 2^(n+1)) for d = m 2^e, and r = floor((floor(2^(2n+3) / (2a+1)) + 1) / 2) of 2^n. */
static num estimate(num d, int n) {
  if (n < 1 || n > 20 || d.kind != NUM_FINITE) return num_div_r(num_int(1), d, NUM_F32);
  const uint64_t a = d.sig >> (63 - n); /* d.sig / 2^63 lies from 1 to 2, and m is half of it */
  num guess = num_int(((UINT64_C(1) << (2 * n + 3)) / (2 * a + 1) + 1) / 2);
  guess.exp -= n + d.exp + 1;
  guess.sign = d.sign;
  return num_round(guess, NUM_F32);
}

/* The byte read as another format, without its sign. */
static num read_as(const ref_fault *f, uint64_t code) {
  const mx_format *as = f->format;
  const num v = ref_value(as, as->sign_bits ? code & ((UINT64_C(1) << (as->bits - 1)) - 1) : code);
  return IS(f, "as number") && (v.kind == NUM_NAN || v.kind == NUM_INF) ? ref_format_largest(as) : num_abs(v);
}

/* A quotient that is no number is +0, one without end is too large for any format. */
static num limited(num y) {
  if (num_is_nan(y)) return num_zero(0);
  if (y.kind != NUM_INF) return y;
  num r = num_pow2(900);
  r.sign = y.sign;
  return r;
}

static num quotient(const lane *l, const ref_fault *f, num x) {
  const ref_plan *plan = ref_plan_at(l->r, l->d, l->a);
  const ref_scale *s = &l->scale;
  const num t = ref_tensor_of(plan), amax = ref_faulty_amax(l->r, l->d, l->a), most = num_round(plan->most, NUM_F32);
  const int subnormal = ref_is_subnormal(plan->scale, s->code);
  if (IS(f, "skip")) return x;
  if (IS(f, "zero") && num_is_zero(x)) return x;
  if (IS(f, "zero") || (IS(f, "flush") && subnormal)) return num_div_r(x, num_zero(0), NUM_F32);
  const int zero = num_is_zero(ref_value(plan->scale, s->code));
  if (IS(f, "zero to zero") && zero) return num_zero(x.sign);
  if (IS(f, "zero to +0") && zero) return num_zero(0);
  if (IS(f, "subnormal as normal") && subnormal) return num_ratio((num[]){ref_scaled(plan, s, x), num_int(2)}, 2, NULL, 0);
  const uint64_t bits = s->code & ((UINT64_C(1) << (plan->scale->bits - (plan->scale->sign_bits != 0))) - 1);
  if (IS(f, "exponent 0 as normal") && plan->scale->kind == MX_KIND_FLOAT && bits >> plan->scale->man_bits == 0) {
    num sf = num_int((UINT64_C(1) << plan->scale->man_bits) + bits);
    sf.exp -= plan->scale->man_bits + plan->scale->bias;
    return num_div_r(x, num_mul_r(sf, t, NUM_F32), NUM_F32);
  }
  if (IS(f, "as") || IS(f, "as number")) return num_div_r(x, num_mul_r(num_round(read_as(f, s->code), NUM_F32), t, NUM_F32), NUM_F32);
  if (IS(f, "reciprocal bits")) return num_mul_r(x, to_bits(reciprocal_of(plan, s), f->number, 0), NUM_F32);
  if (IS(f, "reciprocal nearest bits")) return num_mul_r(x, to_bits(reciprocal_of(plan, s), f->number, 1), NUM_F32);
  if (IS(f, "scale reciprocal bits") || IS(f, "scale reciprocal nearest bits")) {
    const num short_of = to_bits(num_div_r(num_int(1), part_of(plan, s), NUM_F32), f->number, IS(f, "scale reciprocal nearest bits"));
    return num_mul_r(num_mul_r(x, short_of, NUM_F32), num_div_r(num_int(1), t, NUM_F32), NUM_F32);
  }
  if (IS(f, "reciprocal estimate")) return num_mul_r(x, estimate(ref_divisor(plan, s), (int)f->number), NUM_F32);
  if (IS(f, "reciprocal, NaN to largest")) {
    const num y = num_mul_r(x, reciprocal_of(plan, s), NUM_F32);
    return num_is_nan(y) ? num_pow2(900) : y;
  }
  if (IS(f, "reciprocal bfloat16")) return num_mul_r(x, num_round(reciprocal_of(plan, s), NUM_BF16), NUM_F32);
  if (IS(f, "reciprocal float16")) return num_mul_r(x, num_round(reciprocal_of(plan, s), NUM_F16), NUM_F32);
  if (IS(f, "bfloat16")) return num_div_r(x, num_round(ref_divisor(plan, s), NUM_BF16), NUM_F32);
  if (IS(f, "unrounded") && !num_is_zero(amax)) return num_div_r(x, num_div_r(amax, most, NUM_F32), NUM_F32);
  if (IS(f, "unrounded times") && !num_is_zero(amax)) return num_mul_r(x, num_div_r(most, amax, NUM_F32), NUM_F32);
  if (IS(f, "unrounded reciprocal") && !num_is_zero(amax))
    return num_mul_r(x, num_div_r(num_int(1), num_div_r(amax, most, NUM_F32), NUM_F32), NUM_F32);
  if (IS(f, "before rounding")) {
    ref_scale number;
    return ref_scaled(plan, ref_unrounded(&number, l->r, l->d, l->a, amax) ? &number : s, x);
  }
  if (IS(f, "inverted")) return num_mul_r(x, ref_divisor(plan, s), NUM_F32);
  if (IS(f, "twice")) return num_div_r(num_round(ref_scaled(plan, s, x), NUM_F32), ref_divisor(plan, s), NUM_F32);
  if (IS(f, "no tensor scale")) return num_div_r(x, part_of(plan, s), NUM_F32);
  if (IS(f, "tensor scale twice")) return num_div_r(num_round(ref_scaled(plan, s, x), NUM_F32), t, NUM_F32);
  if (IS(f, "tensor scale inverted")) return num_div_r(x, num_div_r(part_of(plan, s), t, NUM_F32), NUM_F32);
  return ref_scaled(plan, s, x);
}

static num divided(const lane *l, num x) {
  if (!l->how) return ref_scaled(ref_plan_at(l->r, l->d, l->a), &l->scale, x);
  if (x.kind == NUM_NAN || x.kind == NUM_INF) return x;
  return limited(quotient(l, l->how, x));
}

/* Do the elements i and j of a block share a maximum? */
static int share(const ref_fault *f, size_t i, size_t j) {
  const unsigned long long mask = (unsigned long long)(long long)f->number;
  if (IS(f, "lanes from")) return i <= j;
  if (IS(f, "lanes to")) return i >= j;
  return (i & mask) == (j & mask);
}

/* The code of the scale of the elements with which an element shares its maximum. */
static uint64_t code_of_lanes(const ref_run *r, const ref_fault *f, size_t row, size_t col, uint64_t otherwise) {
  const size_t d = row / r->height, a = col / r->width, own = row % r->height * r->width + col % r->width;
  ref_scale scales[2];
  num most = num_zero(0);
  if (ref_has_special(r, d, a)) return otherwise;
  const ref_block block = ref_load(r, d, a);
  for (size_t i = 0; i < block.n; i++)
    if (share(f, own, i) && num_cmp(num_abs(block.x[i]), most) > 0) most = num_abs(block.x[i]);
  return ref_block_scales_from(scales, ref_plan_at(r, d, a), &block, most) ? scales[0].code : otherwise;
}

/* The code of the scale of the lanes that shuffles down bring to the element's own. */
static uint64_t code_of_lanes_down(const ref_run *r, const ref_fault *f, size_t row, size_t col, uint64_t otherwise) {
  const size_t a = col / r->width, n = f->number >= 1 && f->number <= (double)r->width ? (size_t)f->number : r->width;
  ref_scale scales[2];
  num most = num_zero(0);
  if (r->height > 1 || r->width % n || ref_has_special(r, row, a)) return otherwise;
  for (size_t reached = 0, at = col / n; reached < r->width / n; reached++, at++) {
    for (size_t i = 0; i < n && at * n + i < r->cols; i++) {
      const num x = num_abs(num_float(r->x[row * r->cols + at * n + i]));
      if (num_is_nan(x) || x.kind == NUM_INF) return otherwise;
      if (num_cmp(x, most) > 0) most = x;
    }
    if (at % 32 == 31) break;
  }
  const ref_block block = ref_load(r, row, a);
  return ref_block_scales_from(scales, ref_plan_at(r, row, a), &block, most) ? scales[0].code : otherwise;
}

/* The code that a fault takes in place of another; 0: it says how to divide. */
static int another_code(const ref_run *r, const ref_fault *f, size_t row, size_t col, uint64_t *code) {
  const size_t d = row / r->height, a = col / r->width;
  const long long by = (long long)f->number, to = (long long)(d * r->across + a) + by;
  if (IS(f, "row") || IS(f, "row xor") || IS(f, "first of rows") || IS(f, "row modulo")) {
    if (ref_from(f, d, r->down) != d) *code = r->used[ref_from(f, d, r->down) * r->across + a];
  } else if (IS(f, "block") || IS(f, "block xor") || IS(f, "first of blocks") || IS(f, "block modulo")) {
    if (ref_from(f, a, r->across) != a) *code = r->used[d * r->across + ref_from(f, a, r->across)];
  } else if (IS(f, "down")) {
    *code = ref_code_down(r, row / r->width, col / r->height, *code);
  } else if (IS(f, "order")) {
    const ref_how nearest = {0};
    const int there = to >= 0 && to < (long long)(r->down * r->across);
    *code = there ? r->used[to] : ref_code(r->plan.scale, num_int(1), &nearest, 0);
  } else if (IS(f, "block over")) {
    *code = r->used[d * r->across + a / (by >= 1 ? (size_t)by : 1)];
  } else if (IS(f, "repeated")) {
    *code = r->used[d * r->across + col % r->across];
  } else if (IS(f, "lanes down of")) {
    *code = code_of_lanes_down(r, f, row, col, *code);
  } else if (strncmp(f->op, "lanes", 5) == 0) {
    *code = code_of_lanes(r, f, row, col, *code);
  } else if (IS(f, "plus")) {
    *code = ref_wrapped(r, (long long)*code + by);
  } else if (IS(f, "rule")) {
    *code = ref_code_by_rule(r, f, d, a, ref_finite_amax(r, d, a), *code);
  } else if (IS(f, "amax times")) {
    *code = ref_code_of_amax(r, f, d, a, *code);
  } else {
    return 0;
  }
  return 1;
}

/* The scale that an element meets: the rule's own if that has the code, else the value of the code. */
static void enter(lane *l, const ref_run *r, size_t row, size_t col) {
  const size_t d = row / r->height, a = col / r->width;
  uint64_t code = r->used[d * r->across + a];
  *l = (lane){.r = r, .d = d, .a = a};
  for (size_t i = 0; i < r->n_faults; i++) {
    const ref_fault *f = &r->faults[i];
    if (f->stage == REF_DIVISOR && ref_element_in(r, f, row, col) && !another_code(r, f, row, col, &code)) l->how = f;
  }
  ref_scale own[2];
  const ref_block b = ref_load(r, d, a);
  const ref_plan *plan = ref_plan_at(r, d, a);
  l->scale = ref_block_scales(own, plan, &b) && own[0].code == code ? own[0] : ref_scale_given(plan, code);
}

/* The same of an element in a block that is entered, where elements may differ. */
static void next(lane *l, const ref_run *r, size_t row, size_t col) {
  int divisors = col % r->width == 0;
  for (size_t i = 0; i < r->n_faults; i++) divisors |= r->faults[i].stage == REF_DIVISOR;
  if (divisors) enter(l, r, row, col);
}

/* ---- the rounding */

static uint64_t rounded(const lane *l, num x, num y, size_t row, size_t col) {
  const ref_plan *plan = ref_plan_at(l->r, l->d, l->a);
  ref_how how = plan->how;
  uint64_t code;
  num unused;
  if (ref_rounded(&code, l->r, plan, y, row, col)) return code;
  if (!l->how) return ref_element(plan, &l->scale, x, (uint64_t)row * l->r->cols + col, &unused);
  if (how.base.round == MX_ROUND_SCAN_X || how.base.round == MX_ROUND_SCAN_Y) how.base.round = MX_ROUND_RNE;
  return ref_code(plan->elem, y, &how, 0);
}

/* ---- the code */

static int is_negative(const mx_format *f, uint64_t code) { return code >> (f->bits - 1) & 1; }

static uint64_t negated(const mx_format *f, uint64_t code) {
  const uint64_t sign = UINT64_C(1) << (f->bits - 1);
  return f->kind == MX_KIND_INT ? (2 * sign - code) & (2 * sign - 1) : code ^ sign;
}

static uint64_t with_sign(const mx_format *f, uint64_t code, int negative) {
  return is_negative(f, code) == negative ? code : negated(f, code);
}

/* The code that element (row, col) takes the place or the sign of: beyond the ends of the row, or of the block, its own. */
static uint64_t of_column(const ref_run *r, const uint8_t *old, size_t row, size_t col, long long to) {
  return old[row * r->cols + (to >= 0 && to < (long long)r->cols ? (size_t)to : col)];
}

static uint64_t moved(const ref_run *r, const ref_fault *f, const uint8_t *old, size_t row, size_t col, uint64_t code) {
  const mx_format *e = r->plan.elem;
  const long long c = (long long)col, by = (long long)f->number, pair = c % 2 ? c - 1 : c + 1, group = by >= 2 ? by : 2;
  const size_t first = col / r->width * r->width, width = r->cols - first < r->width ? r->cols - first : r->width;
  const long long w = (long long)width, turned = (((c - (long long)first + by) % w) + w) % w;
  if (IS(f, "sign smeared")) return c % 2 && is_negative(e, old[row * r->cols + col - 1]) ? (UINT64_C(1) << e->bits) - 1 : code;
  if (IS(f, "swap pairs")) return of_column(r, old, row, col, pair);
  if (IS(f, "column") || IS(f, "column xor")) return old[row * r->cols + ref_from(f, col, r->cols)];
  if (IS(f, "reverse")) return of_column(r, old, row, col, c / group * group + group - 1 - c % group);
  if (IS(f, "sign of")) return with_sign(e, code, is_negative(e, of_column(r, old, row, col, c + by)));
  if (IS(f, "sign xor")) return with_sign(e, code, is_negative(e, old[row * r->cols + ref_from(f, col, r->cols)]));
  if (IS(f, "sign of pair")) return with_sign(e, code, is_negative(e, of_column(r, old, row, col, pair)));
  return with_sign(e, code, is_negative(e, old[row * r->cols + first + (size_t)turned])); /* sign rolled */
}

static int moves(const ref_fault *f) {
  return IS(f, "sign smeared") || IS(f, "swap pairs") || IS(f, "column") || IS(f, "column xor") || IS(f, "reverse") || IS(f, "sign of") ||
         IS(f, "sign of pair") || IS(f, "sign rolled") || IS(f, "sign xor");
}

/* A bit of a binary32 number; beyond its 32 bits 0. */
static int bit_of(float x, double n) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return n >= 0 && n < 32 ? bits >> (unsigned)n & 1 : 0;
}

static uint64_t stored(const lane *l, const ref_fault *f, float x, num y, uint64_t code) {
  const mx_format *e = l->r->plan.elem;
  const uint64_t sign = UINT64_C(1) << (e->bits - 1), all = 2 * sign - 1;
  if (IS(f, "negate")) return negated(e, code);
  if (IS(f, "abs")) return with_sign(e, code, 0);
  if (IS(f, "sign bit")) return with_sign(e, code, bit_of(x, f->number));
  if (IS(f, "+0 for -0")) return code == sign ? 0 : code;
  if (IS(f, "-0 for +0")) return code == 0 ? sign : code;
  if (IS(f, "plus")) return (uint64_t)((long long)code + (long long)f->number) & all;
  if (IS(f, "flush")) return ref_is_subnormal(e, code) ? code & sign : code;
  if (IS(f, "sign of largest")) return with_sign(e, code, ref_largest_is_negative(l->r, l->d, l->a));
  if (IS(f, "negate by largest")) return ref_largest_is_negative(l->r, l->d, l->a) ? negated(e, code) : code;
  if (IS(f, "value")) return (uint64_t)(long long)f->number & all;
  if (IS(f, "two's complement")) return code & sign ? (2 * sign - (code ^ sign)) & all : code;
  if (IS(f, "sign and magnitude")) return code & sign ? sign | ((2 * sign - code) & (sign - 1)) : code;
  if (IS(f, "table")) return f->digits[code];
  if (IS(f, "bits")) {
    uint64_t out = 0;
    for (size_t k = 0; k < f->n_digits; k++)
      if (code & UINT64_C(1) << f->digits[k]) out += UINT64_C(1) << k;
    return out;
  }
  num limit = ref_beyond_largest(e); /* lowest */
  limit.sign = 1;
  return e->kind == MX_KIND_INT && !num_is_nan(y) && num_cmp(y, limit) <= 0 ? sign : code;
}

/* The first fault of a stage that the element meets. */
static const ref_fault *first_of(const ref_run *r, int stage, size_t row, size_t col) {
  for (size_t i = 0; i < r->n_faults; i++) {
    const ref_fault *f = &r->faults[i];
    if (f->stage == stage && ref_element_in(r, f, row, col)) return f;
  }
  return NULL;
}

/* The element after the clamp, and what it is divided to. */
static num clamped(const ref_run *r, size_t row, size_t col) {
  const ref_fault *f = first_of(r, REF_CLAMP, row, col);
  if (f && IS(f, "column")) return num_float(r->x[row * r->cols + ref_from(f, col, r->cols)]);
  if (f && IS(f, "row")) return num_float(r->x[ref_from(f, row, r->rows) * r->cols + col]);
  num x = num_float(r->x[row * r->cols + col]);
  if (!f || num_is_nan(x)) return x;
  if (IS(f, "bfloat16")) return num_round(x, NUM_BF16);
  if (IS(f, "float16")) return num_round(x, NUM_F16);
  num most = num_abs(ref_argument(f));
  most.sign = x.sign;
  return num_cmp(num_abs(x), num_abs(most)) > 0 ? most : x;
}

void ref_fault_codes(ref_run *r) {
  lane l = {0};
  for (size_t row = 0; row < r->rows; row++)
    for (size_t col = 0; col < r->cols; col++) {
      next(&l, r, row, col);
      const num x = clamped(r, row, col), y = divided(&l, x);
      r->codes[row * r->cols + col] = (uint8_t)rounded(&l, x, y, row, col);
    }
  for (size_t i = 0; i < r->n_faults; i++) {
    const ref_fault *f = &r->faults[i];
    uint8_t *old = r->room;
    if (f->stage != REF_CODE) continue;
    memcpy(old, r->codes, r->rows * r->cols);
    for (size_t row = 0; row < r->rows; row++)
      for (size_t col = 0; col < r->cols; col++) {
        uint8_t *code = &r->codes[row * r->cols + col];
        next(&l, r, row, col);
        if (!ref_element_in(r, f, row, col)) continue;
        const float x = r->x[row * r->cols + col];
        *code = (uint8_t)(moves(f) ? moved(r, f, old, row, col, *code) : stored(&l, f, x, divided(&l, clamped(r, row, col)), *code));
      }
  }
}
