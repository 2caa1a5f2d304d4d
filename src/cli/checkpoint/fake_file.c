/* Quantises a file of a checkpoint and dequantises it again in pieces of whole block rows: each is read, quantised, dequantised and narrowed by one
 * thread, and written in its turn. */
#include "fake_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/quantized.h"
#include "cli/base/pipeline.h"
#include "cli/base/tensor_io.h"
#include "cli/spec/value.h"

/* Values in a piece, so that it stays in a thread's cache; in all pieces at a time, so that with 16 bytes a value (x, y, a rotated copy, codes and
 * scales) memory stays under 1 GiB; bytes of tensors that are worked on together: what a tensor's maximum has read is then still in memory. */
enum { PIECE = 1 << 17, ROOM = 3 << 24, BATCH = 1 << 28 };

typedef struct piece {
  fake_tensor *t;
  size_t index; /* of the tensor in the file */
  uint64_t first, n;
} piece;

typedef struct work {
  const fake_options *o;
  mx_writer *to;
  piece *pieces;
  size_t n_pieces, room, most_pieces; /* room: values in the largest piece */
  int inner;
} work;

typedef struct desk {
  float *x, *y; /* a piece, and what became of it */
  const void *out;
  float amax;
  mx_error_sums sums;
  mx_code_counts counts;
} desk;

mx_status fake_plan(fake_tensor *t, const mx_spec *spec, mx_error *err) {
  if (t->kept) return MX_OK;
  if (!mx_matrix_of(&t->rows, &t->cols, t->shape, t->n_dims)) return mx_fail(err, MX_ERR_SHAPE, "%s: the shape overflows", t->name);
  if (spec->had_size && t->cols % spec->had_size) {
    t->kept = "had.size does not divide its columns";
    return MX_OK;
  }
  size_t block_rows, block_cols;
  mx_spec_block(spec, t->rows, t->cols, &block_rows, &block_cols);
  const size_t want = PIECE / t->cols + 1, whole = (want + block_rows - 1) / block_rows * block_rows;
  t->piece_rows = whole < t->rows ? whole : t->rows;
  if (t->piece_rows > ROOM / t->cols)
    return mx_fail(err, MX_ERR_SHAPE, "%s: a block of %zu rows of %zu columns is more than the %d values that are held at a time", t->name,
                   block_rows, t->cols, ROOM);
  return MX_OK;
}

static uint64_t n_bytes_of(const piece *p) { return p->n * mx_dtype_bytes(p->t->a->dtype); }

static mx_status make_amax(void *self, void *own, size_t index, mx_error *err) {
  const work *w = self;
  const piece *p = &w->pieces[index];
  desk *d = own;
  const mx_exec exec = {.n_threads = w->inner};
  mx_status status = input_read(d->x, p->t->a, p->first, p->n, 0, err);
  if (status) return status;
  status = mx_tensor_amax(&d->amax, d->x, p->n / p->t->cols, p->t->cols, p->t->cols, w->o->spec, &exec);
  return status ? mx_fail(err, status, "%s: %s", p->t->name, mx_status_text(status)) : MX_OK;
}

static mx_status keep_amax(void *self, void *own, size_t index, mx_error *err) {
  (void)err;
  const work *w = self;
  const piece *p = &w->pieces[index];
  const desk *d = own;
  p->t->amax_known = 1;
  if (!(d->amax <= p->t->amax) && !isnan(p->t->amax)) p->t->amax = d->amax;
  return MX_OK;
}

static mx_status refuse_nan(const piece *p, const float *x, mx_error *err) {
  for (uint64_t i = 0; i < p->n; i++)
    if (!isfinite(x[i]))
      return mx_fail(err, MX_ERR_DATA, "%s: row %llu, column %llu is %s, which --refuse-nan refuses", p->t->name,
                     (unsigned long long)((p->first + i) / p->t->cols), (unsigned long long)((p->first + i) % p->t->cols),
                     isnan(x[i]) ? "NaN" : "Inf");
  return MX_OK;
}

uint64_t tensor_seed(uint64_t seed, const char *name) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
  return seed ^ hash;
}

static mx_spec spec_of(const work *w, const fake_tensor *t) {
  mx_spec s = *w->o->spec;
  s.seed = tensor_seed(s.seed, t->name);
  return s;
}

static mx_status make(void *self, void *own, size_t index, mx_error *err) {
  const work *w = self;
  const piece *p = &w->pieces[index];
  const fake_tensor *t = p->t;
  desk *d = own;
  d->out = d->x;
  if (t->kept) return mx_array_read(d->x, t->a, p->first * mx_dtype_bytes(t->a->dtype), n_bytes_of(p), err);
  const mx_exec exec = {.n_threads = w->inner, .first_row = p->first / t->cols, .amax_known = t->amax_known, .amax = t->amax};
  const mx_spec spec = spec_of(w, t);
  mx_error why;
  const float *x = d->x;
  mx_status status = input_read(d->x, t->a, p->first, p->n, 0, err);
  if (status) return status;
  if (w->o->refuse_nan && refuse_nan(p, x, err)) return MX_ERR_DATA;
  memset(&d->counts, 0, sizeof d->counts);
  memset(&d->sums, 0, sizeof d->sums);
  status = mx_fake_quantize(d->y, x, p->n / t->cols, t->cols, &spec, &exec, &d->counts, &why);
  if (status) return mx_fail(err, status, "%s: %s", t->name, why.text);
  mx_error_sums_add(&d->sums, x, d->y, p->n, w->inner);
  d->out = d->y;
  if (t->a->dtype == MX_F32) return MX_OK;
  mx_narrow(d->x, d->y, p->n, t->a->dtype, w->inner); /* x is no longer needed, and no dtype here is wider */
  d->out = d->x;
  return MX_OK;
}

static mx_status keep(void *self, void *own, size_t index, mx_error *err) {
  const work *w = self;
  const piece *p = &w->pieces[index];
  const desk *d = own;
  const mx_status status = mx_writer_write(w->to, p->index, d->out, n_bytes_of(p), err);
  if (status) return status;
  if (!p->t->kept) {
    mx_error_sums_join(&p->t->sums, &d->sums);
    p->t->n_codes += d->counts.n;
    p->t->saturated += d->counts.saturated;
  }
  progress_at(w->o->p, *w->o->done += n_bytes_of(p));
  return MX_OK;
}

static void *new_desk(void *self) {
  const work *w = self;
  desk *d = malloc(sizeof *d);
  if (!d) return NULL;
  d->x = malloc(w->room * sizeof *d->x + 1);
  d->y = malloc(w->room * sizeof *d->y + 1);
  if (!d->x || !d->y) {
    free(d->x);
    free(d->y);
    free(d);
    return NULL;
  }
  return d;
}

static void leave(void *self, void *own) {
  (void)self;
  desk *d = own;
  free(d->x);
  free(d->y);
  free(d);
}

static int add_pieces(work *w, fake_tensor *t, size_t index) {
  const size_t step = t->kept ? PIECE : t->piece_rows * t->cols;
  for (uint64_t at = 0; at < t->a->n_values; at += step) {
    if (w->n_pieces == w->most_pieces) {
      const size_t most = w->most_pieces ? 2 * w->most_pieces : 1024;
      piece *more = realloc(w->pieces, most * sizeof *more);
      if (!more) return 0;
      w->pieces = more;
      w->most_pieces = most;
    }
    const uint64_t left = t->a->n_values - at, n = left < step ? left : step;
    w->pieces[w->n_pieces++] = (piece){t, index, at, n};
    const size_t room = t->kept ? (n * mx_dtype_bytes(t->a->dtype) + sizeof(float) - 1) / sizeof(float) : n;
    if (room > w->room) w->room = room;
  }
  return 1;
}

static mx_status through(work *w, mx_status (*made)(void *, void *, size_t, mx_error *), mx_status (*kept)(void *, void *, size_t, mx_error *),
                         mx_error *err) {
  const size_t desks = w->room ? ROOM / w->room : 1; /* at least one: fake_plan() */
  pipeline p = {.n_pieces = w->n_pieces, .self = w, .desk = new_desk, .leave = leave, .make = made, .keep = kept};
  const size_t most = w->n_pieces < desks ? w->n_pieces : desks;
  pipeline_share(&p, most, w->o->n_threads); /* threads within a piece would spend their time spinning after each small step */
  p.n_spare = (int)(most - (size_t)p.n_threads < (size_t)p.n_threads ? most - (size_t)p.n_threads : (size_t)p.n_threads);
  w->inner = p.inner;
  return w->n_pieces ? pipeline_run(&p, err) : MX_OK;
}

/* Tensors [from, end). A tensor of one piece finds its maximum itself. */
static mx_status batch(work *w, fake_tensor *tensors, size_t from, size_t end, mx_error *err) {
  int good = 1;
  w->n_pieces = w->room = 0;
  for (size_t i = from; i < end && spec_needs_amax(w->o->spec); i++)
    if (!tensors[i].kept && tensors[i].piece_rows < tensors[i].rows) good &= add_pieces(w, &tensors[i], i);
  mx_status status = good ? through(w, make_amax, keep_amax, err) : MX_ERR_NOMEM;
  w->n_pieces = w->room = 0;
  for (size_t i = from; i < end; i++) good &= add_pieces(w, &tensors[i], i);
  if (!good) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  return status ? status : through(w, make, keep, err);
}

mx_status fake_file(fake_tensor *tensors, size_t n, mx_writer *to, const fake_options *o, mx_error *err) {
  work w = {.o = o, .to = to};
  mx_status status = MX_OK;
  for (size_t from = 0, end; from < n && !status; from = end) {
    uint64_t bytes = 0;
    for (end = from; end < n && (end == from || bytes + tensors[end].a->n_bytes <= BATCH); end++) bytes += tensors[end].a->n_bytes;
    status = batch(&w, tensors, from, end, err);
  }
  free(w.pieces);
  return status;
}
