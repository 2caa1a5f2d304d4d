/* A checkpoint through a quantiser and back, a piece of a tensor at a time. */
#include "quantize_all.h"

#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate_files.h"
#include "checkpoint.h"
#include "mxgold/ablate.h"
#include "mxgold/file.h"
#include "mxgold/quantized.h"
#include "narrow.h"
#include "out.h"
#include "progress.h"

/* Values worked on at a time: whole block rows, about this many. */
enum { PIECE = 1 << 20 };

typedef struct work {
  const quantize_all_options *o;
  const cli_context *ctx;
  regex_t include, exclude;
  progress p;
  uint64_t done; /* bytes */
  out *table;
  uint64_t n_quantised, n_copied;
  mx_error_sums all;
  float *x, *y; /* a piece, and what became of it */
  size_t room;
} work;

/* Which tensors: floats, by default matrices alone, so that norms and biases stay. */
static int chosen(const work *w, const mx_array *a) {
  if (mx_array_read_f32(NULL, a, 0, 0, 0) || !a->n_values) return 0;
  if (w->o->include ? regexec(&w->include, a->name, 0, NULL, 0) != 0 : a->n_dims < 2) return 0;
  return !w->o->exclude || regexec(&w->exclude, a->name, 0, NULL, 0) != 0;
}

/* Pages that are behind us need not stay in memory. */
static void forget(const uint8_t *data, uint64_t n) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)data + page - 1) / page * page,
                  to = ((uintptr_t)data + n) / page * page;
  if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
}

static int make_room(work *w, size_t n) {
  if (n <= w->room) return CLI_FINE;
  free(w->x);
  free(w->y);
  w->x = malloc(n * sizeof *w->x);
  w->y = malloc(n * sizeof *w->y);
  w->room = w->x && w->y ? n : 0;
  return w->room ? CLI_FINE : cli_error("no memory for %zu values at a time", n);
}

/* A tensor as it is walked through. */
typedef struct walk {
  const mx_array *a;
  size_t rows, cols, piece_rows, bytes; /* bytes a value */
  mx_exec exec;
  mx_error_sums sums;
  mx_code_counts counts;
} walk;

static int walk_start(work *w, walk *t, const mx_array *a) {
  *t = (walk){.a = a, .bytes = mx_dtype_bytes(a->dtype), .exec.n_threads = w->o->n_threads};
  if (!mx_matrix_of(&t->rows, &t->cols, a->shape, a->n_dims)) return cli_error("%s: the shape overflows", a->name);
  size_t block_rows, block_cols;
  mx_spec_block(w->o->spec, t->rows, t->cols, &block_rows, &block_cols);
  const size_t want = PIECE / t->cols + 1, whole = (want + block_rows - 1) / block_rows * block_rows;
  t->piece_rows = whole < t->rows ? whole : t->rows;
  return make_room(w, t->piece_rows * t->cols);
}

static size_t rows_from(const walk *t, size_t first) { return t->rows - first < t->piece_rows ? t->rows - first : t->piece_rows; }

/* The tensor's largest magnitude, where the spec has a tensor scale. */
static int find_amax(work *w, walk *t) {
  const mx_spec *s = w->o->spec;
  const int tensor_wide = s->scale_nan == MX_SCALE_NAN_TENSOR || s->scale_inf == MX_SCALE_INF_TENSOR;
  if (!tensor_wide && (s->tensor_norm == MX_TENSOR_NORM_NONE || s->tensor_given)) return CLI_FINE;
  float all = 0;
  for (size_t r = 0; r < t->rows; r += t->piece_rows) {
    const size_t n = rows_from(t, r);
    float amax;
    mx_array_read_f32(w->x, t->a, (uint64_t)r * t->cols, (uint64_t)n * t->cols, 0);
    const mx_status status = mx_tensor_amax(&amax, w->x, n, t->cols, t->cols, s, &t->exec);
    if (status) return cli_error("%s: %s", t->a->name, mx_status_text(status));
    if (!(amax <= all)) all = isnan(all) ? all : amax;
    forget(t->a->data + (uint64_t)r * t->cols * t->bytes, (uint64_t)n * t->cols * t->bytes);
  }
  t->exec.amax_known = 1;
  t->exec.amax = all;
  return CLI_FINE;
}

static int one_piece(work *w, walk *t, mx_writer *to, size_t index, size_t first) {
  const size_t rows = rows_from(t, first), n = rows * t->cols;
  mx_error err;
  mx_array_read_f32(w->x, t->a, (uint64_t)first * t->cols, n, 0);
  t->exec.first_row = first;
  if (mx_fake_quantize(w->y, w->x, rows, t->cols, w->o->spec, &t->exec, &t->counts, &err)) return cli_error("%s: %s", t->a->name, err.text);
  mx_error_sums_add(&t->sums, w->x, w->y, n, w->o->n_threads);
  narrow(w->x, w->y, n, t->a->dtype, w->o->n_threads); /* x is no longer needed, and no dtype here is wider */
  if (mx_writer_write(to, index, w->x, n * t->bytes, &err)) return cli_fail(&err);
  forget(t->a->data + (uint64_t)first * t->cols * t->bytes, (uint64_t)n * t->bytes);
  progress_at(&w->p, w->done += (uint64_t)n * t->bytes);
  return CLI_FINE;
}

static void table_row(work *w, const walk *t) {
  out_row(w->table);
  out_text(w->table, "tensor", t->a->name);
  out_text(w->table, "dtype", mx_dtype_name(t->a->dtype));
  out_shape(w->table, "shape", t->a->shape, t->a->n_dims);
  out_f64(w->table, w->o->json ? "sqnr_db" : "SQNR dB", mx_sqnr(&t->sums), "%.3f");
  out_f64(w->table, w->o->json ? "max_error" : "max err", t->sums.max_error, "%.3g");
  out_f64(w->table, w->o->json ? "saturated" : "sat %",
          t->counts.n ? (w->o->json ? 1 : 100) * (double)t->counts.saturated / (double)t->counts.n : 0, "%.3f");
  out_f64(w->table, w->o->json ? "underflow" : "under %",
          t->sums.n ? (w->o->json ? 1 : 100) * (double)t->sums.n_underflow / (double)t->sums.n : 0, "%.3f");
  if (w->o->json || t->sums.n_nan + t->sums.n_inf) out_u64(w->table, w->o->json ? "nan_or_inf" : "NaN and Inf", t->sums.n_nan + t->sums.n_inf);
}

static int fake(work *w, const mx_array *a, mx_writer *to, size_t index) {
  walk t;
  if (walk_start(w, &t, a) || find_amax(w, &t)) return CLI_TROUBLE;
  for (size_t r = 0; r < t.rows; r += t.piece_rows)
    if (one_piece(w, &t, to, index, r)) return CLI_TROUBLE;
  w->n_quantised++;
  w->all.n += t.sums.n;
  w->all.xx += t.sums.xx;
  w->all.ee += t.sums.ee;
  table_row(w, &t);
  return CLI_FINE;
}

static int copy(work *w, const mx_array *a, mx_writer *to, size_t index) {
  mx_error err;
  for (uint64_t at = 0; at < a->n_bytes; at += 4 * PIECE) {
    const uint64_t n = a->n_bytes - at < 4 * PIECE ? a->n_bytes - at : 4 * PIECE;
    if (mx_writer_write(to, index, a->data + at, n, &err)) return cli_fail(&err);
    forget(a->data + at, n);
    progress_at(&w->p, w->done += n);
  }
  w->n_copied++;
  return CLI_FINE;
}

static int declare(work *w, const mx_file *in, mx_writer *to) {
  char keys[4096];
  for (size_t i = 0; i < mx_file_count(in); i++) {
    const mx_array *a = mx_file_at(in, i);
    if (mx_writer_add(to, a->name, a->dtype, a->n_dims, a->shape, NULL)) return cli_error("%s: cannot be declared in the output", a->name);
  }
  for (size_t i = 0; i < mx_file_meta_count(in); i++) {
    const char *value, *key = mx_file_meta_at(in, i, &value);
    if (strncmp(key, "xxh3.", 5) && strcmp(key, "mxgold.fake")) mx_writer_meta(to, key, value);
  }
  mx_spec_print(keys, sizeof keys, w->o->spec, 1);
  return mx_writer_meta(to, "mxgold.fake", keys) ? cli_error("out of memory") : CLI_FINE;
}

static int one_file(work *w, const char *from, const char *path) {
  mx_error err;
  mx_file *in;
  mx_writer *to;
  if (mx_file_open(&in, from, &err)) return cli_fail(&err);
  if (mx_writer_open(&to, path, &err)) {
    mx_file_close(in);
    return cli_fail(&err);
  }
  int rc = mx_writer_is_npy(to) ? cli_error("%s: expected a name that ends in .safetensors", path) : declare(w, in, to);
  if (!rc && mx_writer_begin(to, &err)) rc = cli_fail(&err);
  for (size_t i = 0; i < mx_file_count(in) && !rc; i++) {
    const mx_array *a = mx_file_at(in, i);
    rc = chosen(w, a) ? fake(w, a, to, i) : copy(w, a, to, i);
  }
  if (rc)
    mx_writer_abort(to);
  else if (mx_writer_commit(to, &err))
    rc = cli_fail(&err);
  mx_file_close(in);
  return rc;
}

static int copy_index(const char *from, const char *to) {
  FILE *f = fopen(from, "rb");
  if (!f) return cli_error("%s: cannot read: %s", from, strerror(errno));
  char *text = NULL;
  size_t n, got;
  FILE *t = open_memstream(&text, &n);
  char buffer[4096];
  while (t && (got = fread(buffer, 1, sizeof buffer, f)) > 0) fwrite(buffer, 1, got, t);
  const int bad = ferror(f) || !t;
  fclose(f);
  if (t && fclose(t)) {
    free(text);
    return cli_error("out of memory");
  }
  const int rc = bad ? cli_error("%s: cannot read", from) : file_write_whole(to, text, n);
  free(text);
  return rc;
}

/* Shards are whole files each; when one fails, those that this run has written go too. */
static int shards(work *w, const checkpoint *c) {
  const char *slash = strrchr(w->o->in, '/');
  const int made = mkdir(w->o->out, 0777) == 0;
  if (!made && errno != EEXIST) return cli_error("%s: cannot make the folder for the shards: %s", w->o->out, strerror(errno));
  size_t written = 0;
  int rc = CLI_FINE;
  char *path;
  for (; written < c->n && !rc; written += !rc) {
    if (asprintf(&path, "%s/%s", w->o->out, c->names[written]) < 0) return cli_error("out of memory");
    rc = one_file(w, c->paths[written], path);
    free(path);
  }
  if (!rc && asprintf(&path, "%s/%s", w->o->out, slash ? slash + 1 : w->o->in) >= 0) {
    rc = copy_index(w->o->in, path);
    free(path);
  }
  for (size_t i = 0; rc && i < written; i++)
    if (asprintf(&path, "%s/%s", w->o->out, c->names[i]) >= 0) {
      unlink(path);
      free(path);
    }
  if (rc && made) rmdir(w->o->out);
  return rc;
}

static int total_bytes(uint64_t *total, const checkpoint *c) {
  *total = 0;
  for (size_t i = 0; i < c->n; i++) {
    struct stat s;
    if (stat(c->paths[i], &s) == 0)
      *total += (uint64_t)s.st_size;
    else if (strcmp(c->paths[i], "-"))
      return cli_error("%s: cannot be opened: %s", c->paths[i], strerror(errno));
  }
  return CLI_FINE;
}

/* Every shard into the folder it comes from would overwrite the checkpoint. */
static int same_folder(const quantize_all_options *o) {
  const char *slash = strrchr(o->in, '/');
  char *dir;
  if (asprintf(&dir, "%.*s", slash ? (int)(slash - o->in + 1) : 1, slash ? o->in : ".") < 0) return 0;
  struct stat a, b;
  const int same = !stat(dir, &a) && !stat(o->out, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  free(dir);
  return same;
}

static int report(work *w) {
  out *o = w->table;
  out_end(o);
  out_u64(o, "quantised", w->n_quantised);
  out_u64(o, "copied", w->n_copied);
  if (w->n_quantised) out_f64(o, w->o->json ? "sqnr_db" : "SQNR dB of all", mx_sqnr(&w->all), "%.3f");
  w->table = NULL;
  return out_print(o, w->o->json);
}

static int with_checkpoint(work *w, const checkpoint *c) {
  uint64_t bytes;
  if (total_bytes(&bytes, c)) return CLI_TROUBLE;
  if (c->indexed && same_folder(w->o)) return cli_error("%s: is the folder of the input, expected another", w->o->out);
  w->table = out_new();
  out_table(w->table, "tensors");
  progress_start(&w->p, w->ctx, "quantize", bytes);
  int rc = c->indexed ? shards(w, c) : one_file(w, c->paths[0], w->o->out);
  if (!rc) progress_end(&w->p);
  if (!rc && strcmp(w->o->out, "-")) rc = report(w);
  out_free(w->table);
  return rc;
}

static int compile(regex_t *to, const char *option, const char *text) {
  const int bad = text ? regcomp(to, text, REG_EXTENDED | REG_NOSUB) : 0;
  char why[100];
  if (!bad) return CLI_FINE;
  regerror(bad, to, why, sizeof why);
  return cli_error("--%s: '%.100s': %s, expected an extended regular expression", option, text, why);
}

int quantize_all(const cli_context *ctx, const quantize_all_options *o) {
  work w = {.o = o, .ctx = ctx};
  if (compile(&w.include, "include", o->include)) return CLI_TROUBLE;
  if (compile(&w.exclude, "exclude", o->exclude)) {
    if (o->include) regfree(&w.include);
    return CLI_TROUBLE;
  }
  checkpoint c;
  int rc = checkpoint_open(&c, o->in);
  if (!rc) {
    rc = with_checkpoint(&w, &c);
    checkpoint_close(&c);
  }
  free(w.x);
  free(w.y);
  if (o->include) regfree(&w.include);
  if (o->exclude) regfree(&w.exclude);
  return rc;
}
