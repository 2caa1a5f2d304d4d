/* Measures every tensor under every spec. A pair of both is one piece of work for one thread: regions of OpenMP within each small step would cost
 * more than the steps, since their threads spin while they wait. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "cli/base/pipeline.h"
#include "cli/base/progress.h"

/* Values beyond which tensors are measured one at a time, on all threads, for the memory's sake. */
enum { LARGE = 1 << 26 };

/* log2 of the scale that a share of the scales lies at or below. */
static double quantile(const mx_code_counts *n, double share) {
  uint64_t all = 0, at = 0;
  for (int b = 0; b < MX_BINADES; b++) all += n->scale_binade[b];
  for (int b = 0; b < MX_BINADES; b++) {
    at += n->scale_binade[b];
    if (all && (double)at >= share * (double)all) return b - MX_BINADE_0;
  }
  return 0;
}

/* "LOG2:COUNT,..."; what does not fit is left out at a comma, which no format of 8 bits comes near. */
static void print_scales(char *out, size_t size, const mx_code_counts *n) {
  size_t used = 0;
  for (int b = 0; b < MX_BINADES; b++) {
    char one[40];
    const size_t m = (size_t)snprintf(one, sizeof one, "%s%d:%llu", used ? "," : "", b - MX_BINADE_0, (unsigned long long)n->scale_binade[b]);
    if (!n->scale_binade[b] || used + m >= size) continue;
    memcpy(out + used, one, m + 1);
    used += m;
  }
  if (!used) snprintf(out, size, "-");
}

static void fill_row(ablate_row *r, const mx_measure *m) {
  r->sums = m->sums;
  r->repeats = m->repeats;
  r->bits = m->bits;
  r->bias = m->bias;
  r->bias_low = m->bias_low;
  r->bias_high = m->bias_high;
  r->n_codes = m->counts.n;
  r->zero = m->counts.zero;
  r->saturated = m->counts.saturated;
  r->entropy = mx_code_entropy(&m->counts);
  r->tensor_factor = m->counts.tensor_factor;
  print_scales(r->scales, sizeof r->scales, &m->counts);
  r->scale_p05 = quantile(&m->counts, 0.05);
  r->scale_p50 = quantile(&m->counts, 0.5);
  r->scale_p95 = quantile(&m->counts, 0.95);
}

/* A tensor while its specs are measured. */
typedef struct bench {
  pthread_mutex_t lock;
  int ready;
  mx_status status;
  mx_error why;
  float *x;
  uint8_t *have; /* [specs]: the state has this pair */
  ablate_state state;
} bench;

typedef struct work {
  const ablate_sweep_options *o;
  ablate_result *result;
  bench *benches;
  int inner; /* threads within a piece of work */
  pthread_mutex_t large;
  progress p;
  uint64_t done; /* bytes */
} work;

typedef struct desk {
  mx_measure measure;
} desk;

static size_t values_of(const ablate_tensor *t) { return t->rows * t->cols; }

/* Of the pairs of a tensor. */
static double *units_of(const work *w, size_t tensor) { return w->result->units + tensor * w->result->specs->n * ABLATE_UNITS; }

static mx_status load(work *w, size_t tensor, bench *b) {
  const ablate_tensor *t = &w->result->tensors->at[tensor];
  const size_t n = w->result->specs->n;
  ablate_row *rows = &w->result->rows[tensor * n];
  const mx_status status = ablate_load(&b->x, t, &b->why);
  if (status) return status;
  b->have = calloc(n, 1);
  if (!b->have) return mx_fail(&b->why, MX_ERR_NOMEM, "%s: no memory for %zu x %zu values", t->name, t->rows, t->cols);
  if (w->o->refuse_nan && ablate_refuse_nan(t, b->x, &b->why)) return MX_ERR_DATA;
  mx_digest(w->result->digest[tensor], b->x, values_of(t) * sizeof *b->x);
  b->state = (ablate_state){.path = w->o->state};
  for (size_t s = 0; s < n; s++) rows[s].tensor = tensor;
  ablate_state_find(&b->state, rows, &(ablate_pairs){b->have, units_of(w, tensor), ablate_units_of(t)}, t, w->result->digest[tensor],
                    w->result->specs, w->o->repeats);
  return MX_OK;
}

static void clear(bench *b) {
  free(b->x);
  free(b->have);
  b->x = NULL;
  b->have = NULL;
}

/* The first thread that needs a tensor loads it; the others wait. */
static bench *bench_of(work *w, size_t tensor) {
  bench *b = &w->benches[tensor];
  pthread_mutex_lock(&b->lock);
  if (!b->ready) b->status = load(w, tensor, b);
  b->ready = 1;
  pthread_mutex_unlock(&b->lock);
  return b;
}

static mx_status measure(work *w, desk *d, size_t tensor, size_t spec, int n_threads, mx_error *err) {
  const ablate_tensor *t = &w->result->tensors->at[tensor];
  const ablate_spec *s = &w->result->specs->at[spec];
  const bench *b = bench_of(w, tensor);
  if (b->status) {
    *err = b->why;
    return b->status;
  }
  if (b->have[spec]) return MX_OK;
  const mx_measure_options how = {
      .repeats = w->o->repeats, .n_threads = n_threads, .n_units = ablate_units_of(t), .unit_error = units_of(w, tensor) + spec * ABLATE_UNITS};
  mx_error why;
  const mx_spec own = ablate_spec_of(s, t);
  const mx_status status = mx_measure_tensor(&d->measure, b->x, t->rows, t->cols, &own, &how, &why);
  if (status) return mx_fail(err, status, "%s, %s: %s", t->name, s->label, why.text);
  ablate_row *r = &w->result->rows[tensor * w->result->specs->n + spec];
  *r = (ablate_row){.tensor = tensor, .spec = spec};
  fill_row(r, &d->measure);
  if (r->repeats == 1 && mx_spec_is_random(&s->spec)) r->bias = NAN; /* one draw does not tell bias from noise */
  return MX_OK;
}

static mx_status make(void *self, void *own, size_t piece, mx_error *err) {
  work *w = self;
  const size_t n = w->result->specs->n, tensor = piece / n;
  const int large = values_of(&w->result->tensors->at[tensor]) > LARGE;
  if (!large) return measure(w, own, tensor, piece % n, w->inner, err);
  pthread_mutex_lock(&w->large);
  const mx_status status = measure(w, own, tensor, piece % n, w->o->n_threads, err);
  pthread_mutex_unlock(&w->large);
  return status;
}

/* The last spec of a tensor ends it. */
static mx_status keep(void *self, void *own, size_t piece, mx_error *err) {
  (void)own;
  work *w = self;
  const size_t n = w->result->specs->n, tensor = piece / n;
  w->done += values_of(&w->result->tensors->at[tensor]) * sizeof(float);
  progress_at(&w->p, w->done);
  bench *b = &w->benches[tensor];
  const size_t spec = piece % n;
  mx_status status = MX_OK;
  if (!b->have[spec])
    status = ablate_state_add(&b->state, &w->result->rows[piece], units_of(w, tensor) + spec * ABLATE_UNITS,
                              ablate_units_of(&w->result->tensors->at[tensor]), err);
  else
    w->result->found++;
  if (status || spec != n - 1) return status;
  if (!w->o->only_measure) status = ablate_find_same(w->result, tensor, b->x, w->inner, err);
  clear(b);
  return status;
}

/* How far each spec of a tensor is behind its best, and which are on its front. */
static mx_status compare(void *self, void *own, size_t tensor, mx_error *err) {
  (void)own;
  const ablate_result *r = ((work *)self)->result;
  const size_t best = ablate_best(r, tensor), n = r->specs->n;
  mx_column_pair *pairs = calloc(n, sizeof *pairs);
  mx_interval *behind = malloc(n * sizeof *behind);
  mx_status status = pairs && behind ? MX_OK : MX_ERR_NOMEM;
  for (size_t s = 0; s < n && !status; s++) pairs[s] = (mx_column_pair){best, s};
  if (!status) status = ablate_between(behind, r, tensor, pairs, n);
  for (size_t s = 0; s < n && !status; s++) r->rows[tensor * n + s].behind = behind[s];
  if (!status) status = ablate_find_front(r, tensor);
  free(pairs);
  free(behind);
  return status ? mx_fail(err, status, "out of memory") : MX_OK;
}

static mx_status kept(void *self, void *own, size_t piece, mx_error *err) {
  (void)self, (void)own, (void)piece, (void)err;
  return MX_OK;
}

static void *new_desk(void *self) {
  (void)self;
  return malloc(sizeof(desk));
}

static void leave(void *self, void *own) {
  (void)self;
  free(own);
}

size_t ablate_best(const ablate_result *r, size_t tensor) {
  size_t best = 0;
  for (size_t s = 1; s < r->specs->n; s++)
    if (ablate_error(ablate_row_at(r, tensor, s)) < ablate_error(ablate_row_at(r, tensor, best))) best = s;
  return best;
}

/* An exact result, as of a tensor of zeros, has no SQNR that a mean could hold. */
static int has_sqnr(const ablate_result *r, size_t tensor) {
  for (size_t s = 0; s < r->specs->n; s++)
    if (ablate_is_void(ablate_row_at(r, tensor, s)) || !isfinite(mx_sqnr_of_all(&ablate_row_at(r, tensor, s)->sums))) return 0;
  return 1;
}

static ablate_summary summarize(const ablate_result *r, size_t spec) {
  ablate_summary a = {0};
  double all = 0, with_sqnr = 0, finite = 0, told = 0, at = 0, below = 0, above = 0; /* values; sums of the interval's parts */
  size_t n_void = 0;
  for (size_t t = 0; t < r->tensors->n; t++) {
    const ablate_row *row = ablate_row_at(r, t, spec);
    const double n = (double)values_of(&r->tensors->at[t]);
    const int is_best = ablate_best(r, t) == spec;
    a.bits += row->bits * n;
    all += n;
    n_void += (size_t)ablate_is_void(row);
    if (ablate_is_void(row)) continue;
    a.best_for += (size_t)(is_best && !ablate_is_lost(row));
    a.equal_for += !is_best && !ablate_matters(row) && isfinite(row->behind.low);
    a.front_for += (size_t)ablate_on_front(r, t, spec);
    if (has_sqnr(r, t)) {
      a.mean_sqnr += mx_sqnr_of_all(&row->sums) * n;
      with_sqnr += n;
      a.n_sqnr++;
    }
    if (isfinite(row->behind.at)) {
      a.mean_behind += row->behind.at * n;
      finite += n;
    }
    if (isfinite(row->behind.low) && isfinite(row->behind.high)) {
      const double low = n * (row->behind.at - row->behind.low), high = n * (row->behind.high - row->behind.at);
      at += row->behind.at * n;
      below += low * low;
      above += high * high;
      told += n;
    }
    if (row->behind.at > a.worst_behind) a.worst_behind = row->behind.at;
  }
  a.bits /= all;
  a.mean_sqnr = with_sqnr > 0 ? a.mean_sqnr / with_sqnr : INFINITY;
  a.mean_behind = finite > 0 ? a.mean_behind / finite : INFINITY;
  a.behind = told > 0 ? (mx_interval){at / told, (at - sqrt(below)) / told, (at + sqrt(above)) / told}
                      : (mx_interval){a.mean_behind, -INFINITY, INFINITY};
  if (n_void == r->tensors->n) a.mean_behind = a.worst_behind = NAN; /* of nothing */
  return a;
}

/* Damage of a tensor: the SQNR of its first spec. */
static int worse_first(const void *a, const void *b, void *result) {
  const size_t i = *(const size_t *)a, j = *(const size_t *)b;
  const double x = mx_sqnr_of_all(&ablate_row_at(result, i, 0)->sums), y = mx_sqnr_of_all(&ablate_row_at(result, j, 0)->sums);
  return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

static int run(work *w, const cli_context *ctx) {
  const ablate_tensors *tensors = w->result->tensors;
  const size_t n = tensors->n * w->result->specs->n;
  pipeline p = {.n_pieces = n, .self = w, .desk = new_desk, .leave = leave, .make = make, .keep = keep};
  pipeline_share(&p, n, w->o->n_threads);
  w->inner = p.inner;
  uint64_t total = 0;
  for (size_t t = 0; t < tensors->n; t++) total += (uint64_t)values_of(&tensors->at[t]) * sizeof(float) * w->result->specs->n;
  progress_start(&w->p, ctx, "ablate", total);
  mx_error err;
  pipeline q = {.n_pieces = tensors->n, .self = w, .desk = new_desk, .leave = leave, .make = compare, .keep = kept};
  pipeline_share(&q, tensors->n, w->o->n_threads);
  if (pipeline_run(&p, &err) || (!w->o->only_measure && pipeline_run(&q, &err))) return cli_fail(&err);
  progress_end(&w->p);
  return CLI_FINE;
}

int ablate_sweep(ablate_result *out, const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs,
                 const ablate_sweep_options *o) {
  *out = (ablate_result){tensors,
                         specs,
                         calloc(tensors->n * specs->n, sizeof *out->rows),
                         calloc(specs->n, sizeof *out->summary),
                         malloc(tensors->n * sizeof *out->order),
                         calloc(tensors->n * specs->n * ABLATE_UNITS, sizeof *out->units),
                         calloc((tensors->n + 1) * specs->n, 1),
                         calloc(tensors->n, sizeof *out->digest),
                         o->repeats,
                         0};
  work w = {.o = o, .result = out, .benches = calloc(tensors->n, sizeof *w.benches), .large = PTHREAD_MUTEX_INITIALIZER};
  if (!out->rows || !out->summary || !out->order || !out->units || !out->front || !out->digest || !w.benches) {
    free(w.benches);
    return cli_error("out of memory");
  }
  for (size_t t = 0; t < tensors->n; t++) {
    pthread_mutex_init(&w.benches[t].lock, NULL);
    out->order[t] = t;
  }
  int rc = run(&w, ctx);
  for (size_t t = 0; t < tensors->n; t++) {
    clear(&w.benches[t]);
    pthread_mutex_destroy(&w.benches[t].lock);
  }
  free(w.benches);
  if (o->only_measure) return rc;
  for (size_t s = 0; s < specs->n && !rc; s++) out->summary[s] = summarize(out, s);
  if (!rc && ablate_find_front_of_all(out)) rc = cli_error("out of memory");
  if (!rc) qsort_r(out->order, tensors->n, sizeof *out->order, worse_first, out);
  return rc;
}

void ablate_result_free(ablate_result *r) {
  free(r->rows);
  free(r->summary);
  free(r->order);
  free(r->units);
  free(r->front);
  free(r->digest);
}
