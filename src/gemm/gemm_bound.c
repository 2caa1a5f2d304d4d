/* Intervals for devices whose order of summation is not known. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "gemm/gemm_internal.h"

typedef struct row {
  double *v, *s, *magnitude; /* elements, scales, |element * scale| */
} row;

static int row_alloc(row *r, const mxg_plan *plan) {
  r->v = malloc((plan->K + 1) * sizeof *r->v);
  r->s = malloc((plan->kb + 1) * sizeof *r->s);
  r->magnitude = malloc((plan->K + 1) * sizeof *r->magnitude);
  return r->v && r->s && r->magnitude;
}

static void row_free(row *r) {
  free(r->v);
  free(r->s);
  free(r->magnitude);
}

static void row_fill(row *r, const mxg_operand *o, const mxg_plan *plan, size_t index) {
  for (size_t b = 0; b < plan->kb; b++) r->s[b] = mxg_scale(o, index, b);
  mxg_values(r->v, o, index, 0, plan->K);
  for (size_t k = 0; k < plan->K; k++) {
    const double s = r->s[k / plan->block];
    r->magnitude[k] = r->v[k] == 0 ? 0 : fabs(o->divides ? r->v[k] / s : r->v[k] * s);
  }
}

/* Of one sum: binary32 numbers at or beyond S - E and S + E. */
static void interval(float ends[2], const mxg_plan *exact, const row *a, const row *b, double growth, double floor_error) {
  const float s = mxg_one_exact(exact, (mxg_line){a->v, a->s, 1}, (mxg_line){b->v, b->s, 1}, 0, 0);
  ends[0] = ends[1] = s;
  if (isnan(s)) return;
  double t = 0;
  for (size_t k = 0; k < exact->K; k++) t += a->magnitude[k] * b->magnitude[k];
  if (t == 0 || isnan(t)) return;
  if (isinf(t)) return;                                                  /* an infinite product: Inf in every order */
  t *= 1 + 0x1p-29;                                                      /* the rounding of t itself, for K up to 2^23 */
  const double e = t * growth + floor_error + fabs((double)s) * 0x1p-23; /* the last: s is the sum rounded */
  if (isinf(s) || t + e > (double)FLT_MAX) {
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
  double growth, floor_error;
} job;

static void one_row(const job *j, float *lo, float *hi, const float *bias, const void *c, size_t i, row *a, row *b) {
  const mxg_plan *p = &j->plan;
  row_fill(a, &p->a, p, i);
  for (size_t n = 0; n < p->N; n++) {
    float ends[2];
    row_fill(b, &p->b, p, n);
    interval(ends, &j->exact, a, b, j->growth, j->floor_error);
    const float cx = c && p->beta != 0 ? mxg_load(c, i * p->ldc + n, p->o.c_type) : 0, bx = bias ? bias[p->o.bias_of_rows ? i : n] : 0;
    const float x = mxg_combine(p, ends[0], cx, bx), y = mxg_combine(p, ends[1], cx, bx);
    mxg_store(lo, n, MX_F32, smaller(x, y));
    mxg_store(hi, n, MX_F32, larger(x, y));
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
  const mx_status status = mxg_plan_of_tensors(&j.plan, a, a_spec, b, b_spec, &o, ld, err);
  if (status) return status;
  if (o.out != MX_F32 || f->bits < 0 || f->bits > 24 || f->fraction < 0)
    return mx_fail(err, MX_ERR_ARG, "bound: expected f32 out, up to 24 bits and a fraction of 0 or more");
  if ((!lo || !hi) && j.plan.M && j.plan.N) return mx_fail(err, MX_ERR_ARG, "bound: no place for it");
  const double K = (double)j.plan.K, u = ldexp(1, 1 - (f->bits ? f->bits : 24)), cut = f->fraction ? ldexp(1, -f->fraction) : 0;
  j.growth = (expm1((K + 1) * log1p(u)) + 1) * (1 + 2 * K * cut) - 1;
  j.growth *= 1 + 0x1p-20;
  j.floor_error = 3 * K * 0x1p-126;
  row ra = {0}, rb = {0};
  int room = row_alloc(&ra, &j.plan) & row_alloc(&rb, &j.plan);
  for (size_t t = 0; t < j.plan.o.batch && room; t++) {
    mxg_move_to(&j.plan.a, a, t, j.plan.M);
    mxg_move_to(&j.plan.b, b, t, j.plan.N);
    j.exact = j.plan; /* the sum alone */
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
