/* Quantises a whole checkpoint and dequantises it again, a file at a time. */
#include "cli/checkpoint/quantize_all.h"
#include "cli/base/shape.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/files.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/fake_file.h"
#include "mxgold/file.h"
#include "mxgold/version.h"
#include "cli/spec/name_filter.h"
#include "cli/base/out.h"
#include "cli/base/tensor_io.h"

typedef struct work {
  const quantize_all_options *o;
  const cli_context *ctx;
  name_filter names;
  progress p;
  uint64_t done;        /* bytes */
  fake_tensor *tensors; /* of all files */
  size_t n;
} work;

/* Which tensors: floats, by default matrices alone, so that norms and biases stay. NULL, or why it is left as it is. */
static const char *why_kept(const work *w, const mx_file *file, const mx_array *a) {
  const char *why = input_why_not(a);
  if (why) return why;
  if (!a->n_values) return "empty";
  why = name_left_out(&w->names, a->name);
  if (why || w->o->include) return why;
  return a->n_dims < 2 ? "no matrix" : input_no_input(file, a);
}

/* The file's tensors, behind those of the files before it. */
static int plan(work *w, const mx_file *in) {
  const size_t n = mx_file_count(in);
  fake_tensor *all = realloc(w->tensors, (w->n + n + 1) * sizeof *all);
  if (!all) return cli_error("out of memory");
  w->tensors = all;
  for (size_t i = 0; i < n; i++) {
    const mx_array *a = mx_file_at(in, i);
    fake_tensor *t = &all[w->n];
    *t = (fake_tensor){.a = a, .name = strdup(a->name), .dtype = a->dtype, .n_dims = a->n_dims, .kept = why_kept(w, in, a)};
    if (!t->name) return cli_error("out of memory");
    memcpy(t->shape, a->shape, sizeof t->shape);
    w->n++;
    mx_error err;
    if (fake_plan(t, w->o->spec, &err)) return cli_fail(&err);
  }
  return CLI_FINE;
}

/* Names of the file's tensors that are quantised, as a JSON list: the others are bytes of the original. NULL if memory ran out. */
static char *quantised_names(const fake_tensor *tensors, size_t n) {
  json_t *names = json_array();
  int failed = !names;
  for (size_t i = 0; i < n; i++)
    if (!tensors[i].kept) failed |= json_array_append_new(names, json_string(tensors[i].name));
  char *text = failed ? NULL : json_dumps(names, JSON_COMPACT);
  json_decref(names);
  return text;
}

/* tensors: those of this file. */
static int declare(work *w, const mx_file *in, const fake_tensor *tensors, mx_writer *to) {
  char keys[4096];
  for (size_t i = 0; i < mx_file_count(in); i++) {
    const mx_array *a = mx_file_at(in, i);
    if (mx_writer_add(to, a->name, a->dtype, a->n_dims, a->shape, NULL)) return cli_error("%s: cannot be declared in the output", a->name);
  }
  int bad = 0;
  for (size_t i = 0; i < mx_file_meta_count(in) && !bad; i++) {
    const char *value, *key = mx_file_meta_at(in, i, &value);
    if (strncmp(key, "xxh3.", 5) && strncmp(key, "mxgold.fake", 11)) bad = mx_writer_meta(to, key, value) != MX_OK;
  }
  mx_spec_print(keys, sizeof keys, w->o->spec, 1);
  char *names = quantised_names(tensors, mx_file_count(in));
  const char *const meta[][2] = {{"mxgold.fake", keys},
                                 {"mxgold.fake.preset", w->o->preset ? w->o->preset : ""},
                                 {"mxgold.fake.tensors", names ? names : ""},
                                 {"mxgold.fake.version", MX_VERSION}};
  bad |= !names;
  for (size_t i = 0; i < sizeof meta / sizeof *meta && !bad; i++) bad = mx_writer_meta(to, meta[i][0], meta[i][1]) != MX_OK;
  free(names);
  return bad ? cli_error("out of memory") : CLI_FINE;
}

static int one_file(work *w, const char *from, const char *path) {
  mx_error err;
  mx_file *in;
  mx_writer *to;
  const size_t before = w->n;
  if (mx_file_open_by(&in, from, MX_BY_READING, &err)) return cli_fail(&err);
  if (plan(w, in)) {
    mx_file_close(in);
    return CLI_TROUBLE;
  }
  if (mx_writer_open(&to, path, &err)) {
    mx_file_close(in);
    return cli_fail(&err);
  }
  const fake_options how = {w->o->spec, w->o->n_threads, w->o->refuse_nan, &w->p, &w->done};
  int rc = mx_writer_is_npy(to) ? cli_error("%s: expected a name that ends in .safetensors", path) : declare(w, in, w->tensors + before, to);
  if (!rc && (mx_writer_begin(to, &err) || fake_file(w->tensors + before, w->n - before, to, &how, &err))) rc = cli_fail(&err);
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
  const char *slash = strrchr(c->from, '/');
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
  if (!rc && asprintf(&path, "%s/%s", w->o->out, slash ? slash + 1 : c->from) >= 0) {
    rc = copy_index(c->from, path);
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
static int same_folder(const quantize_all_options *o, const char *index) {
  const char *slash = strrchr(index, '/');
  char *dir;
  if (asprintf(&dir, "%.*s", slash ? (int)(slash - index + 1) : 1, slash ? index : ".") < 0) return 0;
  struct stat a, b;
  const int same = !stat(dir, &a) && !stat(o->out, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  free(dir);
  return same;
}

static void out_sqnr(out *o, const char *name, const mx_error_sums *s, double sqnr, int json) {
  if (s->n || json)
    out_figure(o, name, s->n ? sqnr : NAN, "%.3f", json);
  else
    out_text(o, name, "none left");
}

static void table_row(out *o, const fake_tensor *t, const mx_spec *spec, int json) {
  const double share = json ? 1 : 100;
  out_row(o);
  out_text(o, "tensor", t->name);
  out_text(o, "dtype", mx_dtype_name(t->dtype));
  out_shape(o, "shape", t->shape, t->n_dims);
  out_sqnr(o, json ? "sqnr_db" : "SQNR dB", &t->sums, mx_sqnr(&t->sums), json);
  out_figure(o, json ? "max_error" : "max err", t->sums.max_error, "%.3g", json);
  out_f64(o, json ? "saturated" : "saturated %", t->n_codes ? share * (double)t->saturated / (double)t->n_codes : 0, "%.3f");
  out_f64(o, json ? "underflow" : "underflow %", t->sums.n ? share * (double)t->sums.n_underflow / (double)t->sums.n : 0, "%.3f");
  if (json || t->sums.n_nan + t->sums.n_inf + t->sums.n_spoiled) {
    out_u64(o, json ? "nan_or_inf" : "NaN and Inf", t->sums.n_nan + t->sums.n_inf);
    out_u64(o, "spoiled", t->sums.n_spoiled);
  }
  char room[SHAPE_NOTE];
  const char *note = shape_note(room, sizeof room, t->rows, t->cols, spec);
  if (json || *note) out_text(o, "note", note);
}

static int report(const work *w) {
  const int json = w->o->json;
  out *o = out_new();
  mx_error_sums all = {0};
  size_t n = 0;
  out_table(o, "tensors");
  for (size_t i = 0; i < w->n; i++) {
    const fake_tensor *t = &w->tensors[i];
    if (t->kept) continue;
    table_row(o, t, w->o->spec, w->o->json);
    mx_error_sums_join(&all, &t->sums);
    n++;
  }
  out_end(o);
  out_table(o, json ? "kept" : "left as it is");
  for (size_t i = 0; i < w->n; i++) {
    const fake_tensor *t = &w->tensors[i];
    if (!t->kept) continue;
    out_row(o);
    out_text(o, json ? "tensor" : "left as it is", t->name);
    out_text(o, "dtype", mx_dtype_name(t->dtype));
    out_shape(o, "shape", t->shape, t->n_dims);
    out_text(o, "why", t->kept);
  }
  out_end(o);
  if (json) {
    char keys[4096];
    mx_spec_print(keys, sizeof keys, w->o->spec, 1);
    out_text(o, "mxgold", MX_VERSION);
    out_text(o, "keys", keys);
  }
  out_u64(o, "quantised", n);
  out_u64(o, "copied", w->n - n);
  if (n) out_sqnr(o, json ? "sqnr_db" : "SQNR dB of all", &all, mx_sqnr_of_all(&all), json); /* spoiled values are lost, not left out */
  return out_print(o, w->o->json);
}

static const char *name_at(const void *set, size_t index) {
  const work *w = set;
  return index < w->n ? w->tensors[index].name : NULL;
}

/* Before anything is written: does --include match a tensor in any of the files? */
static int matches(work *w, const checkpoint *c) {
  int any = 0;
  for (size_t i = 0; i < c->n && !any; i++) {
    mx_error err;
    mx_file *in;
    if (mx_file_open_by(&in, c->paths[i], MX_BY_READING, &err)) return cli_fail(&err);
    const int rc = plan(w, in);
    for (size_t k = 0; k < mx_file_count(in) && !any; k++) any = name_included(&w->names, mx_file_at(in, k)->name);
    mx_file_close(in);
    if (rc) return rc;
  }
  char near[160];
  const int rc = any ? CLI_FINE
                 : mx_nearest(near, sizeof near, w->o->include, name_at, w)
                     ? cli_error("--include: no tensor matches '%.80s', nearest: %s", w->o->include, near)
                     : cli_error("--include: no tensor matches '%.80s'", w->o->include);
  for (size_t i = 0; i < w->n; i++) free(w->tensors[i].name);
  w->n = 0;
  return rc;
}

static int same_file(const char *a, const char *b) {
  struct stat x, y;
  return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int with_checkpoint(work *w, const checkpoint *c) {
  uint64_t bytes;
  if (total_bytes(&bytes, c)) return CLI_TROUBLE;
  if (!c->indexed && same_file(c->paths[0], w->o->out)) return cli_error("%s: is the input itself, expected another file", w->o->out);
  if (w->o->include && strcmp(c->paths[0], "-") && matches(w, c)) return CLI_TROUBLE;
  if (c->indexed && same_folder(w->o, c->from)) return cli_error("%s: is the folder of the input, expected another", w->o->out);
  progress_start(&w->p, w->ctx, "quantize", bytes);
  int rc = c->indexed ? shards(w, c) : one_file(w, c->paths[0], w->o->out);
  if (!rc) progress_end(&w->p);
  if (!rc && strcmp(w->o->out, "-")) rc = report(w);
  return rc;
}

int quantize_all(const cli_context *ctx, const quantize_all_options *o) {
  work w = {.o = o, .ctx = ctx};
  if (name_filter_make(&w.names, o->include, o->exclude)) return CLI_TROUBLE;
  checkpoint c;
  int rc = checkpoint_open(&c, o->in);
  if (!rc) {
    rc = with_checkpoint(&w, &c);
    checkpoint_close(&c);
  }
  for (size_t i = 0; i < w.n; i++) free(w.tensors[i].name);
  free(w.tensors);
  name_filter_free(&w.names);
  return rc;
}
