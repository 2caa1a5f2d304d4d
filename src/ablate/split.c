/* Measures how wrong a quantised product is, and how much of that each operand causes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/rotate.h"
#include "ablate/sums/bias.h"
#include "mxgold/ablate.h"

/* Sums of two products over repeats, in pieces as mx_error_sums. */
typedef struct pair_sums {
  double aa, bb, ab, ee;
  uint64_t n, left_out;
} pair_sums;

static pair_sums sums_of(const double *a, const double *b, size_t n) {
  pair_sums all = {0};
  for (size_t first = 0; first < n; first += MX_PIECE) {
    const size_t end = n - first < MX_PIECE ? n : first + MX_PIECE;
    pair_sums s = {0};
    for (size_t i = first; i < end; i++) {
      if (!isfinite(a[i]) || !isfinite(b[i])) {
        all.left_out++;
        continue;
      }
      s.n++;
      s.aa += a[i] * a[i];
      s.bb += b[i] * b[i];
      s.ab += a[i] * b[i];
      s.ee += (a[i] - b[i]) * (a[i] - b[i]);
    }
    all.n += s.n;
    all.aa += s.aa;
    all.bb += s.bb;
    all.ab += s.ab;
    all.ee += s.ee;
  }
  return all;
}

static void sums_join(pair_sums *to, const pair_sums *s) {
  to->n += s->n;
  to->aa += s->aa;
  to->bb += s->bb;
  to->ab += s->ab;
  to->ee += s->ee;
  to->left_out += s->left_out;
}

static mx_product_error error_of(pair_sums s) {
  if (!s.n) return (mx_product_error){NAN, NAN, NAN, NAN, NAN, NAN, s.left_out};
  if (!(s.aa > 0)) return (mx_product_error){.left_out = s.left_out};
  const double relative = sqrt(s.ee / s.aa);
  return (mx_product_error){relative, relative, relative, relative, s.ab / s.aa, s.bb > 0 ? s.ab / (sqrt(s.aa) * sqrt(s.bb)) : 0, s.left_out};
}

void mx_product_compare(mx_product_error *out, const double *exact, const double *other, size_t n) {
  *out = error_of(sums_of(exact, other, n));
}

/* One of the four products that are held to a reference, over the repeats. */
typedef struct part {
  pair_sums sums;
  double *mean; /* of the product, for the bias; NULL with one repeat */
  mxi_bias bias;
} part;

static void part_add(part *p, const double *exact, const double *other, size_t n, int repeats, int r) {
  const pair_sums s = sums_of(exact, other, n);
  sums_join(&p->sums, &s);
  if (p->mean)
    for (size_t i = 0; i < n; i++) p->mean[i] += other[i] / repeats;
  if (p->mean) mxi_bias_add(&p->bias, r, exact, other);
}

/* Bias as mx_measure has it: what the finite number of repeats leaves of the random part is taken off. */
static void part_end(mx_product_error *out, const part *p, const double *exact, size_t n, int repeats) {
  *out = error_of(p->sums);
  if (!p->mean || !(p->sums.aa > 0)) return;
  const double total = p->sums.ee / repeats, xx = p->sums.aa / repeats;
  const double fixed = (repeats * sums_of(exact, p->mean, n).ee - total) / (repeats - 1);
  out->bias = fixed > 0 ? sqrt(fixed / xx) : 0;
  mxi_bias_end(out, &p->bias, xx);
}

enum { ONLY_X, ONLY_W, BOTH, TOTAL, PARTS };

typedef struct work {
  const float *x, *w;
  size_t m, n, k;
  const mx_spec *spec_x, *spec_w;
  int model, repeats, n_threads, whole_only;
  const struct mx_mma_model *fused;
  float *xq, *wq;
  double *exact, *y, *under64;
  float *under; /* as the model gives it */
  mx_tensor tx, tw;
  part part[PARTS];
  pair_sums accumulate;
  const mx_measure_options *options; /* may be NULL */
  int n_done, n_products;            /* for progress: the exact one, and those of each repeat */
} work;

static void one_more(work *w) {
  w->n_done++;
  if (w->options && w->options->progress) w->options->progress(w->options->progress_self, (double)w->n_done / w->n_products);
}

static double prescale_of(const mx_spec *s) {
  return s->elem_prescale != 0 && mx_elem_format(s->elem)->kind != MX_KIND_NONE ? (double)s->elem_prescale : 1;
}

/* One operand, rotated: signs of both from the seed of x, so that they cancel; rounding each from its own seed. Codes go to t, values to q. */
static mx_status quantize_rotated(const work *w, mx_tensor *t, mx_spec *used, float *q, const float *from, size_t rows, const mx_spec *spec,
                                  int r, mx_error *err) {
  const mx_exec exec = {.n_threads = w->n_threads};
  mx_spec own = *spec;
  own.seed = mx_repeat_seed(w->spec_x->seed, r);
  if (own.had_size && w->k % own.had_size) return mx_fail(err, MX_ERR_SHAPE, "had.size=%u does not divide the %zu columns", own.had_size, w->k);
  mx_status status = own.had_size ? mxi_rotate(q, from, rows, w->k, &own, w->n_threads) : MX_OK;
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  const float *rotated = own.had_size ? q : from;
  own.had_size = 0;
  own.seed = mx_repeat_seed(spec->seed, r);
  *used = own;
  if ((status = mx_quantize(t, rotated, rows, w->k, w->k, &own, &exec, err))) return status;
  if ((status = mx_dequantize(q, w->k, t, &own, &exec))) return mx_fail(err, status, "%s", mx_status_text(status));
  const double prescale = prescale_of(&own);
  for (size_t i = 0, n = rows * w->k; i < n && prescale != 1; i++) q[i] = (float)((double)q[i] / prescale);
  return MX_OK;
}

/* The product under the model, prescales divided out. */
static mx_status under_model(work *w, const mx_spec *sx, const mx_spec *sw, mx_error *err) {
  const mx_gemm_options how = {.model = w->model, .fused = w->fused, .out = MX_F32, .exec.n_threads = w->n_threads};
  const mx_status status = mx_gemm(w->under, w->n, &w->tx, sx, &w->tw, sw, &how, err);
  const double prescale = prescale_of(sx) * prescale_of(sw);
  for (size_t i = 0, n = w->m * w->n; i < n && !status; i++) w->under64[i] = (double)w->under[i] / prescale;
  return status;
}

static mx_status rotate_back(const work *w, float *q, size_t rows, int r) {
  mx_spec own = *w->spec_x;
  own.seed = mx_repeat_seed(own.seed, r);
  return own.had_size ? mxi_rotate_back(q, rows, w->k, &own, w->n_threads) : MX_OK;
}

static mx_status repeat(work *w, int r, mx_error *err) {
  const size_t size = w->m * w->n;
  mx_spec sx, sw;
  mx_status status = quantize_rotated(w, &w->tx, &sx, w->xq, w->x, w->m, w->spec_x, r, err);
  if (!status) status = quantize_rotated(w, &w->tw, &sw, w->wq, w->w, w->n, w->spec_w, r, err);
  if (status) return status;
  /* Both operands are rotated, as on a device; the rotations cancel in the product. */
  mx_product(w->y, w->xq, w->wq, w->m, w->n, w->k, w->n_threads);
  part_add(&w->part[BOTH], w->exact, w->y, size, w->repeats, r);
  one_more(w);
  const double *under = w->y;
  if (w->model != MX_PRODUCT_DEQUANTIZED) {
    if ((status = under_model(w, &sx, &sw, err))) return status;
    under = w->under64;
    one_more(w);
  }
  part_add(&w->part[TOTAL], w->exact, under, size, w->repeats, r);
  const pair_sums s = sums_of(w->y, under, size);
  sums_join(&w->accumulate, &s);
  if (w->whole_only) return MX_OK;
  if ((status = rotate_back(w, w->xq, w->m, r)) || (status = rotate_back(w, w->wq, w->n, r)))
    return mx_fail(err, status, "%s", mx_status_text(status));
  mx_product(w->y, w->xq, w->w, w->m, w->n, w->k, w->n_threads);
  part_add(&w->part[ONLY_X], w->exact, w->y, size, w->repeats, r);
  one_more(w);
  mx_product(w->y, w->x, w->wq, w->m, w->n, w->k, w->n_threads);
  part_add(&w->part[ONLY_W], w->exact, w->y, size, w->repeats, r);
  one_more(w);
  return MX_OK;
}

static int same_rotation(const mx_spec *a, const mx_spec *b) {
  if (a->had_size != b->had_size) return 0;
  if (!a->had_size) return 1;
  if (a->had_sign != b->had_sign) return 0;
  return a->had_sign != MX_HAD_SIGN_FIXED || !memcmp(a->had_signs, b->had_signs, sizeof a->had_signs);
}

static int allocate(work *w) {
  const size_t size = w->m * w->n;
  w->xq = malloc(w->m * w->k * sizeof *w->xq + 1);
  w->wq = malloc(w->n * w->k * sizeof *w->wq + 1);
  w->exact = malloc(size * sizeof(double) + 1);
  w->y = malloc(size * sizeof(double) + 1);
  const size_t modelled = w->model == MX_PRODUCT_DEQUANTIZED ? 0 : size;
  w->under = malloc(modelled * sizeof *w->under + 1);
  w->under64 = malloc(modelled * sizeof *w->under64 + 1);
  int good = w->xq && w->wq && w->exact && w->y && w->under && w->under64;
  good &= !mx_tensor_alloc(&w->tx, w->m, w->k, w->spec_x) && !mx_tensor_alloc(&w->tw, w->n, w->k, w->spec_w);
  for (int p = 0; p < PARTS && w->repeats > 1; p++)
    good &= (w->part[p].mean = calloc(size + 1, sizeof(double))) != NULL && mxi_bias_make(&w->part[p].bias, size, w->repeats);
  return good;
}

static void release(work *w) {
  free(w->xq);
  free(w->wq);
  free(w->exact);
  free(w->y);
  free(w->under);
  free(w->under64);
  mx_tensor_free(&w->tx);
  mx_tensor_free(&w->tw);
  for (int p = 0; p < PARTS; p++) {
    free(w->part[p].mean);
    mxi_bias_free(&w->part[p].bias);
  }
}

mx_status mx_product_split_measure(mx_product_split *out, const float *x, const float *w, size_t m, size_t n, size_t k, const mx_spec *spec_x,
                                   const mx_spec *spec_w, int model, const mx_measure_options *options, mx_error *err) {
  if (!out || !spec_x || !spec_w || !x || !w) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (model != MX_PRODUCT_DEQUANTIZED && !mx_gemm_model_name(model))
    return mx_fail(err, MX_ERR_ARG, "there is no accumulation model %d", model);
  if (model == MX_GEMM_FUSED && !(options && options->fused)) return mx_fail(err, MX_ERR_ARG, "a matrix unit's model needs its parameters");
  if (!same_rotation(spec_x, spec_w))
    return mx_fail(err, MX_ERR_CONFLICT, "the operands' had.size or had.sign differ, so that the rotations do not cancel in the product");
  work own = {.x = x, .w = w, .m = m, .n = n, .k = k, .spec_x = spec_x, .spec_w = spec_w, .model = model};
  const int random = mx_spec_is_random(spec_x) || mx_spec_is_random(spec_w);
  own.repeats = !random ? 1 : options && options->repeats > 0 ? options->repeats : 8;
  own.n_threads = options ? options->n_threads : 0;
  own.fused = options ? options->fused : NULL;
  own.whole_only = options && options->whole_only;
  own.options = options;
  own.n_products = 1 + own.repeats * ((own.whole_only ? 1 : 3) + (model != MX_PRODUCT_DEQUANTIZED));
  mx_status status = allocate(&own) ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for a product of %zu x %zu", m, n);
  if (!status) {
    mx_product(own.exact, x, w, m, n, k, own.n_threads);
    one_more(&own);
  }
  for (int r = 0; r < own.repeats && !status; r++) status = repeat(&own, r, err);
  if (!status) {
    mx_product_error *to[PARTS] = {&out->x, &out->w, &out->both, &out->total};
    for (int p = 0; p < PARTS; p++) {
      part_end(to[p], &own.part[p], own.exact, m * n, own.repeats);
      if (random && own.repeats == 1) to[p]->bias_low = 0; /* one draw: no more than the error */
    }
    out->accumulate = error_of(own.accumulate);
  }
  release(&own);
  return status;
}
