/* Computes intervals that hold the outputs of devices whose order of summation is not known. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "gemm/internal.h"

typedef struct row {
  double *v, *s, *magnitude; /* elements, scales, |element * scale| */
  double *aligned; /* two to the exponent in the encodings of both; a subnormal number or a zero has that of the smallest normal one */
} row;

static int row_alloc(row *r, const mxg_plan *plan) {
  r->v = malloc((plan->K + 1) * sizeof *r->v);
  r->s = malloc((plan->kb + 1) * sizeof *r->s);
  r->magnitude = malloc((plan->K + 1) * sizeof *r->magnitude);
  r->aligned = malloc((plan->K + 1) * sizeof *r->aligned);
  return r->v && r->s && r->magnitude && r->aligned;
}

static void row_free(row *r) {
  free(r->v);
  free(r->s);
  free(r->magnitude);
  free(r->aligned);
}

/* The smallest power of two as which a number of this format is aligned. An integer always has exponent 0. */
static double lowest_aligned(const mx_format *f) {
  return f->kind == MX_KIND_INT ? 1 : ldexp(1, f->kind == MX_KIND_EXP ? -f->bias : 1 - f->bias);
}

static double at_least(double x, double least) { return x > least ? x : least; }

static void row_fill(row *r, const mxg_operand *o, const mxg_plan *plan, size_t index) {
  for (size_t b = 0; b < plan->kb; b++) r->s[b] = mxi_gemm_scale(o, index, b);
  mxi_gemm_values(r->v, o, index, 0, plan->K);
  const double element = lowest_aligned(o->elem), scale = o->scale ? lowest_aligned(o->scale) : 1;
  for (size_t k = 0; k < plan->K; k++) {
    const double s = r->s[k / plan->block];
    r->magnitude[k] = r->v[k] == 0 ? 0 : fabs(o->divides ? r->v[k] / s : r->v[k] * s);
    /* If an element is dequantised first, the exponent is that of the result, which is larger only for subnormals of binary32. */
    const double e = at_least(fabs(r->v[k]), element * (o->micro ? mxi_gemm_micro(o, index, k) : 1));
    r->aligned[k] = at_least(o->divides ? r->magnitude[k] : e * at_least(fabs(s), scale), 0x1p-126);
  }
}

/* How much a family can change a sum. */
typedef struct loss {
  double growth, floor_error, largest;
  int cuts; /* terms are aligned and cut */
} loss;

static const double flushed_below = 0x1p-126;

/* The interval of one sum S: binary32 numbers at or beyond S - E and S + E. */
static void interval(float ends[2], const mxg_plan *exact, const row *a, const row *b, const loss *f) {
  const float s = mxi_gemm_one_exact(exact, (mxg_line){a->v, a->s, 1}, (mxg_line){b->v, b->s, 1}, 0, 0);
  ends[0] = ends[1] = s;
  if (isnan(s)) return;
  double t = 0, aligned = 0, flushed = 0;
  for (size_t k = 0; k < exact->K; k++) {
    const double term = a->magnitude[k] * b->magnitude[k], as = a->aligned[k] * b->aligned[k];
    t += term;
    if (as > term && as > aligned) aligned = as;
    if (a->magnitude[k] < flushed_below || b->magnitude[k] < flushed_below) flushed += term;
  }
  if (t == 0 || isnan(t)) return;
  if (isinf(t)) return; /* a product is infinite, so every order gives Inf */
  t *= 1 + 0x1p-29;     /* the rounding of t itself, for K up to 2^23 */
  const double e =
      (t + (f->cuts ? aligned : 0)) * f->growth + f->floor_error + flushed + fabs((double)s) * 0x1p-23; /* s is the sum after rounding */
  if (isinf(s) || t + e > f->largest) {
    ends[0] = -INFINITY;
    ends[1] = INFINITY;
    return;
  }
  ends[0] = nextafterf((float)((double)s - e), -INFINITY);
  ends[1] = nextafterf((float)((double)s + e), INFINITY);
}

static float smaller(float x, float y) { return x < y || isnan(x) ? x : y; }
static float larger(float x, float y) { return x > y || isnan(x) ? x : y; }

typedef struct job {
  mxg_plan plan, exact;
  loss loss;
} job;

/* (1 + u)^(K + 1) (1 + f)^(2 K) - 1, and what binary32 or binary16 loses below its smallest exponent. */
static loss loss_of(const mx_gemm_family *f, size_t n) {
  const double K = (double)n, u = ldexp(1, 1 - (f->bits ? f->bits : 24)), cut = f->fraction ? ldexp(1, -f->fraction) : 0;
  loss out = {.growth = expm1((K + 1) * log1p(u) + 2 * K * log1p(cut)) * (1 + 0x1p-20), .cuts = f->fraction > 0};
  out.floor_error = f->sums == MX_F16 ? 2 * (K + 1) * 0x1p-24 + 2 * K * cut * 0x1p-21 : 3 * K * 0x1p-126;
  out.largest = f->sums == MX_F16 ? 65504 : (double)FLT_MAX;
  return out;
}

static void one_row(const job *j, float *lo, float *hi, const float *bias, const void *c, size_t i, row *a, row *b) {
  const mxg_plan *p = &j->plan;
  row_fill(a, &p->a, p, i);
  for (size_t n = 0; n < p->N; n++) {
    float ends[2];
    row_fill(b, &p->b, p, n);
    interval(ends, &j->exact, a, b, &j->loss);
    const float cx = c && p->beta != 0 ? mxi_gemm_load(c, i * p->ldc + n, p->o.c_type) : 0, bx = bias ? bias[p->o.bias_of_rows ? i : n] : 0;
    const float x = mxi_gemm_combine(p, ends[0], cx, bx), y = mxi_gemm_combine(p, ends[1], cx, bx);
    mxi_gemm_store(lo, n, MX_F32, smaller(x, y));
    mxi_gemm_store(hi, n, MX_F32, larger(x, y));
  }
}

mx_status mx_gemm_bound(float *lo, float *hi, size_t ld, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                        const mx_gemm_options *options, const mx_gemm_family *family, mx_error *err) {
  static const mx_gemm_family plain = {0};
  const mx_gemm_family *f = family ? family : &plain;
  mx_gemm_options o = {0};
  if (options) o = *options;
  o.model = MX_GEMM_EXACT;
  job j;
  const mx_status status = mxi_gemm_plan_of_tensors(&j.plan, a, a_spec, b, b_spec, &o, ld, err);
  if (status) return status;
  if (o.out != MX_F32 || f->bits < 0 || f->bits > 24 || f->fraction < 0)
    return mx_fail(err, MX_ERR_ARG, "bound: expected f32 out, up to 24 bits and a fraction of 0 or more");
  if (f->sums != MX_F32 && f->sums != MX_F16)
    return mx_fail(err, MX_ERR_ARG, "bound: partial sums of %s, expected f32 or f16", mx_dtype_name(f->sums));
  if ((!lo || !hi) && j.plan.M && j.plan.N) return mx_fail(err, MX_ERR_ARG, "bound: lo and hi must not be NULL");
  j.loss = loss_of(f, j.plan.K);
  row ra = {0}, rb = {0};
  int room = row_alloc(&ra, &j.plan) & row_alloc(&rb, &j.plan);
  for (size_t t = 0; t < j.plan.o.batch && room; t++) {
    mxi_gemm_move_to(&j.plan.a, a, t, j.plan.M);
    mxi_gemm_move_to(&j.plan.b, b, t, j.plan.N);
    j.exact = j.plan; /* only the sum */
    j.exact.alpha = 1;
    j.exact.beta = 0;
    j.exact.a.multiplier = j.exact.b.multiplier = 1;
    const uint8_t *c = o.c ? (const uint8_t *)o.c + t * j.plan.M * j.plan.ldc * mx_dtype_bytes(o.c_type) : NULL;
    for (size_t i = 0; i < j.plan.M; i++) one_row(&j, lo + (t * j.plan.M + i) * ld, hi + (t * j.plan.M + i) * ld, o.bias, c, i, &ra, &rb);
  }
  row_free(&ra);
  row_free(&rb);
  return room ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "bound: no memory");
}
