/* Fits the constants of faults to the data. A code rises or falls with the constant, so each cell says between which two numbers the constant
 * lies. The interval of all cells is found by bisection wherever a cell contradicts what is left of it. All cells narrow it; whether the number also
 * holds on other data is judged by how plain it is for so narrow an interval. */
#include "verify/fault/search/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/elements.h"
#include "verify/trial/observe.h"

/* Positive numbers by their bits, which are in their order. */
static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static float of_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* An interval [lo, hi] of bits. */
typedef struct range {
  uint32_t lo, hi;
} range;

/* What a cell gives for a constant. */
typedef int64_t given(const void *self, float constant);

/* Narrows the interval to constants that give `seen`. `rises` is 1, or -1 if codes fall as the constant grows. Returns 0 if nothing is left. */
static int narrow(range *in, given *f, const void *self, int64_t seen, int rises) {
  const int64_t low = f(self, of_bits(in->lo)), high = f(self, of_bits(in->hi));
  if (low == seen && high == seen) return 1;
  if (rises * low > rises * seen || rises * high < rises * seen) return 0;
  uint32_t a = in->lo, b = in->hi;
  if (low != seen) { /* the first that gives it */
    while (b - a > 1) {
      const uint32_t m = a + (b - a) / 2;
      if (rises * f(self, of_bits(m)) < rises * seen)
        a = m;
      else
        b = m;
    }
    in->lo = b;
    if (f(self, of_bits(b)) != seen) return 0;
  }
  a = in->lo, b = in->hi;
  if (high != seen) {
    while (b - a > 1) {
      const uint32_t m = a + (b - a) / 2;
      if (rises * f(self, of_bits(m)) > rises * seen)
        b = m;
      else
        a = m;
    }
    in->hi = a;
  }
  return in->lo <= in->hi;
}

/* Constants that kernels have: quotients of the formats' largest numbers. */
static const double usual[] = {1.0 / 6,     6,           6.0 / 448, 448.0 / 6,   1.0 / 448,   448,           4.0 / 6,     6.0 / 4,
                               1.0 / 4,     1.0 / 3,     2.0 / 3,   448.0 / 240, 240.0 / 448, 57344.0 / 448, 256.0 / 448, 448.0 / 256,
                               127.0 / 128, 128.0 / 127, 1 / 0.9,   2688,        1.0 / 2688,  65504};

/* One in so many intervals as narrow as this holds a number as plain as that by chance. */
static const double BY_CHANCE = 0.1;

/* A fault's usual number is taken if the interval is narrower than this share of its upper end. From wider intervals it would be read off data
 * that say next to nothing; with a smaller share, other constants would be named although the data do not tell them from the usual one. */
static const double WIDTH_OF_SPECIAL = 0.3;

/* A number that was learned may be one of bfloat16, or near it: fewer bits than that are rare enough to be taken for it in narrow intervals alone. */
enum { SHORT_BITS = 11, BITS_TO_SAY_SO = 6 };
static const double SHORT_BY_CHANCE = 0.01;

static int of_few_bits(double *out, double lo, double hi, double *bits) {
  for (int n = 1; n <= SHORT_BITS; n++) {
    const double step = ldexp(1, ilogb(hi) - n + 1), k = floor(hi / step);
    if (k * step < lo) continue;
    *out = k * step;
    *bits = n + BITS_TO_SAY_SO;
    return (hi - lo) / step < SHORT_BY_CHANCE;
  }
  return 0;
}

/* Finds the plainest number of the interval: the one that belongs to the fault, a usual one, or the one of fewest digits. bits is what the number
 * costs. Returns 0 if chance may have put it there. */
static int plainest(double *out, range in, double *bits, double special) {
  const double lo = (double)of_bits(in.lo), hi = (double)of_bits(in.hi), width = (hi - lo) / hi;
  *bits = 10;
  if (special > 0 && bits_of((float)special) >= in.lo && bits_of((float)special) <= in.hi && width < WIDTH_OF_SPECIAL) {
    *bits = 4;
    *out = special;
    return 1;
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    const uint32_t u = bits_of((float)usual[i]);
    if (u < in.lo || u > in.hi || width * 16 > BY_CHANCE) continue;
    *bits = 6;
    *out = (double)(float)usual[i];
    return 1;
  }
  for (int digits = 1; digits <= 9; digits++) {
    const double step = pow(10, floor(log10(hi)) - digits + 1);
    for (double k = ceil(lo / step); k * step <= hi * (1 + 1e-12); k += 1) {
      char text[40];
      snprintf(text, sizeof text, "%.*g", digits, k * step);
      const float c = strtof(text, NULL);
      if (bits_of(c) < in.lo || bits_of(c) > in.hi) continue;
      *bits = 3.33 * digits + 4;
      if ((hi - lo) / step >= BY_CHANCE && of_few_bits(out, lo, hi, bits)) return 1;
      *out = strtod(text, NULL);
      return (hi - lo) / step < BY_CHANCE; /* so many numbers of as many digits as lie there on average */
    }
  }
  *bits = 32;
  *out = (double)of_bits(in.lo + (in.hi - in.lo) / 2);
  return in.lo == in.hi;
}

/* The number of a fault, from the interval that the data leave. */
static void fit_number(mx_fault *f, fitted *out, range in, double special) {
  enum { BITS_OF_A_GUESS = 32 };
  out->guessed = !plainest(&f->number, in, &out->bits, special);
  if (out->guessed) out->bits = BITS_OF_A_GUESS;
  out->low = (double)of_bits(in.lo);
  out->high = (double)of_bits(in.hi);
}

/* ---- scales */

typedef struct block_cell {
  const view *v;
  mx_fault f;
  size_t d, a;
} block_cell;

static int64_t scale_given(const void *self, float constant) {
  block_cell c = *(const block_cell *)self;
  const fault_run *r = &c.v->r;
  const size_t k = c.d * r->across + c.a;
  mx_block_stats st = r->stats[k];
  uint32_t code = 0;
  c.f.number = (double)constant;
  for (size_t i = 0; i < r->n_faults; i++)
    if (mx_fault_row_at(r->faults[i].op)->stage == MX_STAGE_AMAX && mxi_fault_block_in(r, &r->faults[i], c.d, c.a))
      st.amax = st.amax_finite = mxi_fault_block_amax(r, &r->faults[i], c.d, c.a, st.amax_finite);
  if (c.f.op == MX_FAULT_SCALE_LARGEST)
    return mxi_fault_scale_of_largest(&code, mxi_fault_plan(r, c.d, c.a), &st, constant, k) ? -1 : (int64_t)code;
  if (c.f.op == MX_FAULT_STORE_AMAX_TIMES)
    st.amax = st.amax_finite = st.amax_finite * constant;
  else
    st.amax = st.amax_finite = mxi_fault_block_amax(r, &c.f, c.d, c.a, st.amax_finite);
  return mxi_block_scale_code(&code, mxi_fault_plan(r, c.d, c.a), &st, 0, k) ? -1 : (int64_t)code;
}

int mxi_fit_scales(mx_fault *f, fitted *out, view *v, int only_wrong) {
  const fault_run *r = &v->r;
  range in = {bits_of(0x1p-100f), bits_of(0x1p100f)};
  size_t used = 0;
  for (size_t k = 0; k < r->down * r->across; k++) {
    const size_t d = k / r->across, a = k % r->across;
    if (r->stats[k].amax_finite == 0 || r->stats[k].has_nan || r->stats[k].has_inf || (only_wrong && v->scales[k] == v->seen[k])) continue;
    const block_cell c = {v, *f, d, a};
    if (!narrow(&in, scale_given, &c, (int64_t)v->seen[k], f->op == MX_FAULT_SCALE_LARGEST ? -1 : 1)) return 0;
    used++;
  }
  if (!used) return 0;
  const double special = f->op == MX_FAULT_AMAX_LEAST ? 1 : f->op == MX_FAULT_SCALE_LARGEST ? mx_format_max(r->plan.scale) : 0;
  fit_number(f, out, in, special);
  if (!out->guessed || r->plan.has_tensor_scale) return 1;
  /* Fits a limit, or the largest scale, of the kernel: all numbers that give the same scale code predict the same bytes on any data. */
  const int is_limit = f->op == MX_FAULT_AMAX_LEAST || f->op == MX_FAULT_AMAX_MOST || f->op == MX_FAULT_AMAX_VALUE;
  mx_block_stats lo = {.amax = of_bits(in.lo), .amax_finite = of_bits(in.lo)}, hi = {.amax = of_bits(in.hi), .amax_finite = of_bits(in.hi)};
  uint32_t low = 0, high = 1;
  out->guessed =
      !(is_limit && !mxi_block_scale_code(&low, &r->plan, &lo, 0, 0) && !mxi_block_scale_code(&high, &r->plan, &hi, 0, 0) && low == high);
  return 1;
}

/* ---- signs */

/* Of the elements that are looked at, at most one in so many may have the other sign: kernels lose a sign here and there. */
enum { SIGNS_LOOKED_AT = 256, OTHER_SIGN_ONE_IN = 16 };

int mxi_signs_allow(const mx_fault *f, const view *v) {
  const fault_run *r = &v->r;
  const mx_format *e = r->plan.elem;
  const uint32_t sign = e->sign_bits ? 1u << (e->bits - 1) : 0;
  const size_t n = r->rows * r->cols;
  size_t looked = 0, other = 0;
  for (size_t i = r->cols; i < n && looked < SIGNS_LOOKED_AT && sign; i++) { /* the first row may be in its place */
    const size_t row = i / r->cols, col = i % r->cols;
    const size_t from = f->op == MX_FAULT_INPUT_PITCH ? row * (size_t)f->number + col : i % v->s->rows * r->cols + i / v->s->rows;
    if (from >= v->s->rows * r->cols || !(v->s->codes[i] & ~sign)) continue;
    const float x = v->s->x[from / r->cols * v->s->ld + from % r->cols];
    if (x == 0 || isnan(x)) continue;
    looked++;
    other += (signbit(x) != 0) != ((v->s->codes[i] & sign) != 0);
    if (looked >= OTHER_SIGN_ONE_IN && other * OTHER_SIGN_ONE_IN > looked) return 0;
  }
  return looked >= OTHER_SIGN_ONE_IN;
}

int mxi_fit_pitch(mx_fault *f, double *bits, const view *v) {
  for (size_t n = 1; n <= 2 * v->r.cols; n++) {
    f->number = (double)n;
    if (n == v->r.cols || !mxi_signs_allow(f, v)) continue;
    *bits = 10;
    return 1;
  }
  return 0;
}

/* ---- the tensor */

/* A tensor scale that is a power of two makes a number of few digits whatever the kernel did: so many bits are no surprise. */
enum { FEW_BITS = 8 };
static int is_power_of_two(double x) {
  int exponent;
  return frexp(x, &exponent) == 0.5;
}

/* Numbers of 16 bits, and what a kernel makes of a few of them, have few digits whatever it does: then the number must be as short as people write
 * them. */
enum { TENSOR_DIGITS = 4, DIGITS_OF_SHORT = 2 };

int mxi_fit_tensor(mx_fault *f, double *bits, const view *v) {
  const double made = (double)v->r.plan.tensor_scale, seen = (double)v->s->tensor_scale, a = (double)v->r.amax;
  float twice = 0;
  if (!v->s->has_tensor_scale || !(made > 0) || !(seen > 0) || isinf(seen) || seen == made ||
      mx_tensor_scale(&twice, 2 * v->r.amax, &v->r.spec))
    return 0;
  const double guess = (double)twice > made ? a * seen / made : a * made / seen;
  for (int digits = 1, most = mxi_is_short(v->r.amax) ? DIGITS_OF_SHORT : TENSOR_DIGITS; digits <= most; digits++) {
    char text[40];
    float t;
    snprintf(text, sizeof text, "%.*g", digits, guess);
    if (mx_tensor_scale(&t, strtof(text, NULL), &v->r.spec) || (double)t != seen) continue;
    f->number = strtod(text, NULL);
    *bits = 3.33 * digits + 4 + (is_power_of_two(seen) ? FEW_BITS : 0);
    return 1;
  }
  return 0;
}

/* The tensor scale rises or falls with the maximum, so that bisection finds it. */
int mxi_fit_maximum(float *amax, const view *v) {
  const mx_spec *spec = &v->r.spec;
  const float seen = v->s->tensor_scale;
  range in = {bits_of(0x1p-100f), bits_of(0x1p100f)};
  float low, high, made;
  if (!v->s->has_tensor_scale || isnan(seen)) return 0;
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) return seen == 1 ? 0 : -1;
  if (mx_tensor_scale(&low, of_bits(in.lo), spec) || mx_tensor_scale(&high, of_bits(in.hi), spec)) return 0;
  if (fminf(low, high) >= seen || fmaxf(low, high) <= seen) return 0;
  while (in.hi - in.lo > 1) {
    const uint32_t m = in.lo + (in.hi - in.lo) / 2;
    if (mx_tensor_scale(&made, of_bits(m), spec)) return 0;
    if (made == seen) {
      *amax = of_bits(m);
      return 1;
    }
    *((made < seen) == (low < high) ? &in.lo : &in.hi) = m;
  }
  return -1;
}

/* The code of a block's scale under the tensor scale that a fault computes with. */
static int64_t tensor_scale_given(const void *self, float constant) {
  block_cell c = *(const block_cell *)self;
  const fault_run *r = &c.v->r;
  const size_t k = c.d * r->across + c.a;
  mx_plan p;
  uint32_t code = 0;
  c.f.number = (double)constant;
  mxi_fault_give_tensor(&p, &r->plan, &c.f);
  return mxi_block_scale_code(&code, &p, &r->stats[k], 0, k) ? -1 : (int64_t)code;
}

int mxi_fit_tensor_scale(mx_fault *f, double *bits, const view *v) {
  const fault_run *r = &v->r;
  const float own = f->op == MX_FAULT_TENSOR_SCALE_TIMES ? 1 : r->plan.tensor_scale;
  if (!v->scales_wrong || !(own > 0) || isinf(own) || (v->s->has_tensor_scale && v->s->tensor_scale != r->plan.tensor_scale)) return 0;
  range in = {bits_of(own * 0x1p-30f), bits_of(own * 0x1p30f)};
  for (size_t k = 0; k < r->down * r->across; k++) {
    const block_cell c = {v, *f, k / r->across, k % r->across};
    if (r->stats[k].amax_finite == 0 || r->stats[k].has_nan || r->stats[k].has_inf) continue;
    const int rises = tensor_scale_given(&c, of_bits(in.lo)) <= tensor_scale_given(&c, of_bits(in.hi)) ? 1 : -1;
    if (!narrow(&in, tensor_scale_given, &c, (int64_t)v->seen[k], rises)) return 0;
  }
  return plainest(&f->number, in, bits, 0);
}

/* Are the scales of group g of rows those of a tensor of its own, or next to them, as with another rounding? before: the maximum of the group before it. */
static int is_tensor(const view *v, const mx_fault *f, size_t g, float before) {
  const fault_run *r = &v->r;
  const size_t d = g * (size_t)f->number / r->block_rows;
  mx_plan plan = r->plan;
  float amax;
  if (noted_status(mxi_fault_group_amax(&amax, r, f, g, before), v->e->until.lack)) return 0;
  mxi_fault_set_tensor(&plan, r, amax);
  for (size_t a = 0; a < r->across; a++) {
    const mx_block_stats *st = &r->stats[d * r->across + a];
    uint32_t code = 0;
    if (st->amax_finite == 0 || st->has_nan || st->has_inf) continue;
    if (mxi_block_scale_code(&code, &plan, st, 0, d * r->across + a)) return 0;
    if (code + 1 < v->seen[d * r->across + a] || code > v->seen[d * r->across + a] + 1) return 0;
  }
  return 1;
}

int mxi_fits_rows(const mx_fault *f, const view *v) {
  const size_t n = (size_t)f->number;
  const int of_tensor = !v->s->has_tensor_scale || v->s->tensor_scale == v->r.plan.tensor_scale;
  const int stored = of_tensor == (f->op != MX_FAULT_TENSOR_SCALE_LAST);
  if (!v->r.plan.has_tensor_scale || v->r.spec.tensor_given || !v->scales_wrong || !stored || n % v->r.block_rows) return 0;
  if (n > v->r.rows) return 1; /* not in the rows that are looked at */
  const size_t last = (v->r.rows - 1) / n, end = f->op == MX_FAULT_TENSOR_SCALE_BEFORE ? (last - 1) * n : last * n;
  float before = 0;
  if (mxi_fault_is_running(f->op) && last && end && noted_status(mxi_fault_rows_amax(&before, &v->r, 0, end), v->e->until.lack)) return 0;
  return v->r.spec.select != MX_SELECT_ABSMAX || (is_tensor(v, f, 0, 0) && is_tensor(v, f, last, before));
}

/* ---- elements */

typedef struct element_cell {
  fault_run r; /* its one more fault is `f` */
  mx_fault f[MX_FAULTS + 1];
  size_t n;
  fault_block b;
  size_t row, col;
} element_cell;

static int64_t code_given(const void *self, float constant) {
  element_cell c = *(const element_cell *)self;
  c.f[c.n - 1].number = (double)constant;
  c.r.faults = c.f;
  c.r.n_faults = c.n;
  return mxi_fault_magnitude(c.r.plan.elem, mxi_fault_element(&c.r, &c.b, c.row, c.col));
}

/* x is changed before the run: the clip of the input. */
static int64_t clipped_given(const void *self, float constant) {
  const element_cell *c = self;
  const float x = c->r.x[c->row * c->r.cols + c->col], y = fabsf(x) > constant ? copysignf(constant, x) : x;
  return mxi_fault_magnitude(c->r.plan.elem, mxi_element_code(&c->r.plan, &c->b.scale, y, 0));
}

/* Narrows the interval by the elements of block row d. Returns 0 if nothing is left. */
static int narrow_by_row(range *in, element_cell *c, const view *v, size_t d, int only_wrong, uint32_t *most, size_t *used) {
  const int clip = c->f[c->n - 1].op == MX_FAULT_INPUT_CLIP;
  for (size_t a = 0; a < c->r.across; a++) {
    mxi_fault_block(&c->b, &v->r, d, a, v->seen[d * c->r.across + a]);
    c->b.divided_alone = 0; /* f is not among the run's faults yet */
    for (c->row = d * c->r.block_rows; c->row < c->r.rows && c->row < (d + 1) * c->r.block_rows; c->row++)
      for (c->col = a * c->r.block_cols; c->col < c->r.cols && c->col < (a + 1) * c->r.block_cols; c->col++) {
        const size_t at = c->row * c->r.cols + c->col;
        const uint32_t seen = v->s->codes[at], magnitude = mxi_fault_magnitude(c->r.plan.elem, seen);
        if (only_wrong && v->codes[at] == seen) continue;
        if (!narrow(in, clip ? clipped_given : code_given, c, magnitude, 1)) return 0;
        if (magnitude > *most) *most = magnitude;
        ++*used;
      }
  }
  return 1;
}

int mxi_fit_codes(mx_fault *f, fitted *out, view *v, int only_wrong) {
  range in = {bits_of(0x1p-100f), bits_of(0x1p100f)};
  element_cell c = {.r = v->r, .n = v->n_first + 1};
  size_t used = 0;
  uint32_t most = 0;
  const int clip = f->op == MX_FAULT_INPUT_CLIP;
  if (c.n > MX_FAULTS) return 0;
  memcpy(c.f, v->first, v->n_first * sizeof *v->first);
  c.f[c.n - 1] = *f;
  for (size_t k = 0; k < v->n_sample; k++)
    if (!narrow_by_row(&in, &c, v, v->sample[k], only_wrong, &most, &used)) return 0;
  if (!used) return 0;
  const int one_step =
      clip && !c.r.plan.has_tensor_scale && c.r.plan.scale->kind == MX_KIND_EXP; /* clipped elements have one code, of any data */
  for (int whole = 0; whole < 2; whole++) {
    const double special = f->op == MX_FAULT_ELEMENT_TIMES  ? 0
                           : f->op == MX_FAULT_ELEMENT_CLIP ? mx_decode(c.r.plan.elem, most)
                                                            : mx_format_max(c.r.plan.elem);
    fit_number(f, out, in, special);
    if (one_step) out->guessed = 0;
    if (!out->guessed || whole) break;
    effort_spend(v->e, 2 * c.r.rows * c.r.cols);
    for (size_t d = 0; d < c.r.down; d++)
      if (!narrow_by_row(&in, &c, v, d, only_wrong, &most, &used)) return 0;
  }
  return 1;
}
