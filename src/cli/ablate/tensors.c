/* Lists the tensors of an ablation: from files, wildcards, shards and generators. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ablate.h"
#include "cli/checkpoint/checkpoint.h"
#include "mxgold/quantized.h"
#include "cli/base/tensor_io.h"

static int append(ablate_tensors *t, const ablate_tensor *one) {
  ablate_tensor *at = realloc(t->at, (t->n + 1) * sizeof *at);
  if (!at) return cli_error("out of memory");
  t->at = at;
  at[t->n] = *one;
  if (!(at[t->n].name = strdup(one->name))) return cli_error("out of memory");
  t->n++;
  return CLI_FINE;
}

static int keep_file(ablate_tensors *t, mx_file *file) {
  mx_file **files = realloc(t->files, (t->n_files + 1) * sizeof(mx_file *));
  if (!files) {
    mx_file_close(file);
    return cli_error("out of memory");
  }
  t->files = files;
  files[t->n_files++] = file;
  return CLI_FINE;
}

static int add_array(ablate_tensors *t, const mx_array *a, const char *path, int swept) {
  ablate_tensor one = {.name = (char *)(uintptr_t)(*a->name ? a->name : path), .array = a, .swept = swept};
  if (a->dtype == MX_F64) return input_refuse_f64(one.name);
  if (input_why_not(a)) return cli_error("%s: dtype is %s, expected f32, f16 or bf16", one.name, mx_dtype_name(a->dtype));
  if (!mx_matrix_of(&one.rows, &one.cols, a->shape, a->n_dims)) return cli_error("%s: the shape overflows", one.name);
  if (!one.rows || !one.cols) return cli_error("%s: the tensor is empty", one.name);
  return append(t, &one);
}

static int leave_out(ablate_tensors *t, const mx_array *a, const char *why) {
  for (size_t i = 0; i < t->n_left_out; i++)
    if (t->left_out[i].array == a) return CLI_FINE; /* patterns may overlap */
  ablate_left_out *all = realloc(t->left_out, (t->n_left_out + 1) * sizeof *all);
  if (!all) return cli_error("out of memory");
  t->left_out = all;
  all[t->n_left_out++] = (ablate_left_out){a, why};
  return CLI_FINE;
}

static int fits(const ablate_tensor *t, const ablate_specs *s) {
  for (size_t i = 0; i < s->n; i++)
    if (t->swept && s->at[i].spec.had_size && t->cols % s->at[i].spec.had_size) return 0;
  return 1;
}

int ablate_tensors_fit(ablate_tensors *t, const ablate_specs *s) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) n += (size_t)fits(&t->at[i], s);
  if (!n || n == t->n) return CLI_FINE;
  n = 0;
  for (size_t i = 0; i < t->n; i++) {
    if (fits(&t->at[i], s)) {
      const ablate_tensor keep = t->at[i];
      t->at[i] = t->at[n]; /* names stay owned by one element each */
      t->at[n++] = keep;
    } else if (leave_out(t, t->at[i].array, "had.size does not divide its columns"))
      return CLI_TROUBLE;
  }
  for (size_t i = n; i < t->n; i++) free(t->at[i].name);
  t->n = n;
  return CLI_FINE;
}

/* Is it among the first n? */
static int seen(const ablate_tensors *t, size_t n, const ablate_tensor *one) {
  for (size_t i = 0; i < n; i++)
    if (one->array ? t->at[i].array == one->array : !t->at[i].array && !strcmp(t->at[i].name, one->name)) return 1;
  return 0;
}

void ablate_tensors_unique(ablate_tensors *t) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) {
    const ablate_tensor one = t->at[i];
    if (seen(t, n, &one))
      free(one.name);
    else
      t->at[n++] = one;
  }
  t->n = n;
}

/* A file that is open already, by another argument: its tensors are the same ones. */
static mx_file *opened(const ablate_tensors *t, const char *path) {
  struct stat a, b;
  if (stat(path, &a) || !S_ISREG(a.st_mode)) return NULL;
  for (size_t i = 0; i < t->n_files; i++)
    if (!stat(mx_file_path(t->files[i]), &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino) return t->files[i];
  return NULL;
}

/* Why a tensor that comes with others is not measured; NULL if it is. */
static const char *why_not(const ablate_tensors *t, const mx_file *file, const mx_array *a, int whole) {
  const char *why = input_why_not(a);
  if (!why) why = !a->n_values ? "empty" : name_left_out(&t->names, a->name);
  if (why || !whole || t->names.include_text) return why;
  return a->n_dims < 2 ? "no matrix" : input_no_input(file, a);
}

/* In one file: a name, a pattern, or every matrix of floats. */
static int add_file(ablate_tensors *t, const char *path, const char *which, int must) {
  mx_error err;
  mx_file *file = opened(t, path);
  if (!file) {
    if (mx_file_open_by(&file, path, MX_BY_READING, &err)) return cli_fail(&err);
    if (keep_file(t, file)) return CLI_TROUBLE;
  }
  const int pattern = !which || strpbrk(which, "*?[");
  const mx_array *a;
  const int filtered = t->names.include_text || t->names.exclude_text;
  if (!pattern || (must && !filtered && mx_file_count(file) == 1)) { /* a shard of one tensor is no other than one of many */
    if (mx_file_find(&a, file, pattern && which ? NULL : which, &err)) return must ? cli_fail(&err) : CLI_FINE;
    if (!pattern || !which || !*a->name || !fnmatch(which, a->name, 0)) return add_array(t, a, path, pattern && *a->name);
  }
  const size_t before = t->n;
  for (size_t i = 0; i < mx_file_count(file); i++) {
    a = mx_file_at(file, i);
    if (which && fnmatch(which, a->name, 0)) continue;
    const char *why = why_not(t, file, a, !which);
    if (why ? leave_out(t, a, why) : add_array(t, a, path, 1)) return CLI_TROUBLE;
  }
  if (filtered || !must || t->n > before) return CLI_FINE;
  if (which) return cli_error("%s: no tensor of floats matches '%s'", path, which);
  return cli_error("%s: no matrix of floats", path);
}

static int add_generator(ablate_tensors *t, const char *text, size_t rows, size_t cols, uint64_t seed) {
  mx_error err;
  ablate_tensor one = {.name = (char *)(uintptr_t)text, .rows = rows, .cols = cols, .seed = seed};
  if (mx_data_parse(&one.data, text + 4, &err)) return cli_fail(&err);
  return append(t, &one);
}

int ablate_tensors_add(ablate_tensors *t, const char *from, size_t rows, size_t cols, uint64_t seed) {
  if (!strncmp(from, "gen:", 4)) return add_generator(t, from, rows, cols, seed);
  static const char *const ends[] = {".safetensors:", ".index.json:", ".mxv:"};
  char *path = strdup(from);
  const char *which = NULL;
  if (!path) return cli_error("out of memory");
  for (size_t i = 0; i < sizeof ends / sizeof *ends && !which; i++) {
    char *at = strstr(path, ends[i]);
    if (!at) continue;
    at += strlen(ends[i]) - 1;
    *at = 0;
    which = at + 1;
  }
  char *colon = strrchr(path, ':'); /* FOLDER:TENSOR */
  if (!which && colon && !checkpoint_is_folder(path)) {
    *colon = 0;
    if (checkpoint_is_folder(path))
      which = colon + 1;
    else
      *colon = ':';
  }
  checkpoint c;
  int rc = checkpoint_open(&c, path);
  const size_t before = t->n;
  for (size_t i = 0; !rc && i < c.n; i++) rc = add_file(t, c.paths[i], which, !c.indexed);
  const int filtered = t->names.include_text || t->names.exclude_text; /* then another input may have what is left */
  if (!rc && t->n == before && !filtered) rc = cli_error("%s: no tensor of floats matches '%s'", path, which ? which : "*");
  if (c.n) checkpoint_close(&c);
  free(path);
  return rc;
}

void ablate_tensors_free(ablate_tensors *t) {
  for (size_t i = 0; i < t->n; i++) free(t->at[i].name);
  for (size_t i = 0; i < t->n_files; i++) mx_file_close(t->files[i]);
  free(t->at);
  free(t->files);
  free(t->left_out);
  name_filter_free(&t->names);
  *t = (ablate_tensors){0};
}

mx_status ablate_load(float **out, const ablate_tensor *t, mx_error *err) {
  float *x = *out = malloc(t->rows * t->cols * sizeof *x + 1);
  if (!x) return mx_fail(err, MX_ERR_NOMEM, "%s: no memory for %zu x %zu values", t->name, t->rows, t->cols);
  if (t->array) return input_read(x, t->array, 0, (uint64_t)t->rows * t->cols, 0, err);
  mx_data_fill(x, t->rows, t->cols, &t->data, t->seed);
  return MX_OK;
}

mx_status ablate_refuse_nan(const ablate_tensor *t, const float *x, mx_error *err) {
  for (size_t i = 0, n = t->rows * t->cols; i < n; i++)
    if (!isfinite(x[i]))
      return mx_fail(err, MX_ERR_DATA, "%s: row %zu, column %zu is %s, which --refuse-nan refuses", t->name, i / t->cols, i % t->cols,
                     isnan(x[i]) ? "NaN" : "Inf");
  return MX_OK;
}
