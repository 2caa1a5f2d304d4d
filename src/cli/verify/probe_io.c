/* Reads and writes batches of probe tiles: tensors a, b, c, scale_a, scale_b as `mxgold mma` takes them, and probe [n][4], the labels. */
#include "probe_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/file.h"

static mx_dtype words(size_t width) { return width == 1 ? MX_U8 : width == 2 ? MX_U16 : width == 4 ? MX_U32 : MX_U64; }

typedef struct part {
  const char *name;
  mx_dtype dtype;
  uint64_t shape[3];
  int n_dims;
  void *data;
} part;

enum { PARTS = 6 };

/* The tensors of a batch; how many. */
static size_t parts_of(part out[PARTS], const mx_probe *p) {
  const mx_probe_spec *s = &p->spec;
  const size_t wa = mx_mma_bytes(s->a, 1), wb = mx_mma_bytes(s->b, 1);
  size_t n = 0;
  out[n++] = (part){"a", words(wa), {p->T, s->M, p->a_bytes / wa}, 3, p->a};
  out[n++] = (part){"b", words(wb), {p->T, s->N, p->b_bytes / wb}, 3, p->b};
  out[n++] = (part){"c", words(p->c_bytes), {p->T, s->M, s->N}, 3, p->c};
  if (s->scale) {
    out[n++] = (part){"scale_a", MX_U8, {p->T, s->M, p->s_bytes}, 3, p->scale_a};
    out[n++] = (part){"scale_b", MX_U8, {p->T, s->N, p->s_bytes}, 3, p->scale_b};
  }
  out[n++] = (part){"probe", MX_I32, {p->n, MX_PROBE_LABELS}, 2, p->labels};
  return n;
}

static uint64_t bytes_of(const part *t) {
  uint64_t n = mx_dtype_bytes(t->dtype);
  for (int i = 0; i < t->n_dims; i++) n *= t->shape[i];
  return n;
}

static mx_status put_meta(mx_writer *w, const char *key, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return mx_writer_meta(w, key, text);
}

static mx_status describe(mx_writer *w, const mx_probe *p) {
  const mx_probe_spec *s = &p->spec;
  mx_status status = mx_writer_meta(w, "mxgold.probe", "1");
  if (!status) status = mx_writer_meta(w, "a", s->a->name);
  if (!status) status = mx_writer_meta(w, "b", s->b->name);
  if (!status) status = mx_writer_meta(w, "c", s->c->name);
  if (!status) status = mx_writer_meta(w, "d", s->d->name);
  if (!status && s->scale) status = mx_writer_meta(w, "scale", s->scale->name);
  if (!status && s->scale) status = put_meta(w, "block", (uint64_t)s->block);
  if (!status) status = put_meta(w, "K", s->K);
  if (!status) status = put_meta(w, "seed", s->seed);
  if (!status) status = put_meta(w, "fit_tiles", p->T_fit);
  return status;
}

mx_status probe_write(const char *path, const mx_probe *p, mx_error *err) {
  part parts[PARTS];
  size_t index[PARTS];
  const size_t n = parts_of(parts, p);
  mx_writer *w;
  mx_status status = mx_writer_open(&w, path, err);
  if (status) return status;
  if (mx_writer_is_npy(w)) status = mx_fail(err, MX_ERR_ARG, "%s: probes are several tensors, a .safetensors file is needed", path);
  for (size_t i = 0; i < n && !status; i++)
    status = mx_writer_add(w, parts[i].name, parts[i].dtype, parts[i].n_dims, parts[i].shape, &index[i]);
  if (!status) status = describe(w, p);
  if (!status) status = mx_writer_begin(w, err);
  for (size_t i = 0; i < n && !status; i++) status = mx_writer_write(w, index[i], parts[i].data, bytes_of(&parts[i]), err);
  if (!status) return mx_writer_commit(w, err);
  mx_writer_abort(w);
  return status;
}

/* --- reading --- */

static mx_status meta_number(uint64_t *out, const mx_file *f, const char *key, uint64_t max, mx_error *err) {
  const char *text = mx_file_meta(f, key);
  char *end;
  if (!text) return mx_fail(err, MX_ERR_FORMAT, "%s: metadata has no '%s': not a file of mxgold probe --emit", mx_file_path(f), key);
  const unsigned long long v = strtoull(text, &end, 10);
  if (end == text || *end || *text == '-' || v > max)
    return mx_fail(err, MX_ERR_FORMAT, "%s: metadata '%s' is '%.40s', a number up to %llu expected", mx_file_path(f), key, text,
                   (unsigned long long)max);
  *out = v;
  return MX_OK;
}

/* A type by its name, as models spell it: of scales in scales.def, else of elements.def or operands.def. */
static const mx_format *element(const char *name) {
  for (int i = 0; i < MX_OPERAND_COUNT; i++) /* first, since bf16 has codes there alone */
    if (!strcmp(mx_operand_format(i)->name, name)) return mx_operand_format(i);
  for (int i = 0; i < MX_ELEM_COUNT; i++)
    if (!strcmp(mx_elem_format(i)->name, name)) return mx_elem_format(i);
  return NULL;
}

static const mx_format *scale_format(const char *name) {
  for (int i = 0; i < MX_SCALE_COUNT; i++)
    if (!strcmp(mx_scale_format(i)->name, name)) return mx_scale_format(i);
  return NULL;
}

static mx_status meta_type(const mx_format **out, const mx_file *f, const char *key, int scale, mx_error *err) {
  const char *text = mx_file_meta(f, key);
  if (!text) return mx_fail(err, MX_ERR_FORMAT, "%s: metadata has no '%s': not a file of mxgold probe --emit", mx_file_path(f), key);
  *out = scale ? scale_format(text) : element(text);
  return *out ? MX_OK : mx_fail(err, MX_ERR_FORMAT, "%s: metadata '%s' is '%.40s', no type of that name is known", mx_file_path(f), key, text);
}

static mx_status read_spec(mx_probe_spec *s, uint64_t *T, uint64_t *T_fit, const mx_file *f, mx_error *err) {
  uint64_t K, block = 0, seed;
  const mx_array *a, *b;
  mx_status status = meta_number(&seed, f, "mxgold.probe", 1, err);
  if (!status) status = meta_type(&s->a, f, "a", 0, err);
  if (!status) status = meta_type(&s->b, f, "b", 0, err);
  if (!status) status = meta_type(&s->c, f, "c", 0, err);
  if (!status) status = meta_type(&s->d, f, "d", 0, err);
  if (!status && mx_file_meta(f, "scale")) {
    status = meta_type(&s->scale, f, "scale", 1, err);
    if (!status) status = meta_number(&block, f, "block", 4096, err);
  }
  if (!status) status = meta_number(&K, f, "K", 4096, err);
  if (!status) status = meta_number(&seed, f, "seed", UINT64_MAX, err);
  if (!status) status = meta_number(T_fit, f, "fit_tiles", UINT64_C(1) << 24, err);
  if (!status) status = mx_file_find(&a, f, "a", err);
  if (!status) status = mx_file_find(&b, f, "b", err);
  if (status) return status;
  if (a->n_dims != 3 || b->n_dims != 3)
    return mx_fail(err, MX_ERR_SHAPE, "%s: a and b have three dimensions in a file of probes", mx_file_path(f));
  s->block = (int)block;
  s->K = (size_t)K;
  s->seed = seed;
  s->M = (size_t)a->shape[1];
  s->N = (size_t)b->shape[1];
  *T = a->shape[0];
  return MX_OK;
}

mx_status probe_read_file(mx_probe *out, const char *path, mx_error *err) {
  mx_file *f;
  mx_probe_spec s = {0};
  uint64_t T = 0, T_fit = 0;
  memset(out, 0, sizeof *out);
  mx_status status = mx_file_open(&f, path, err);
  if (status) return status;
  status = read_spec(&s, &T, &T_fit, f, err);
  if (!status && (T > UINT64_C(1) << 24 || T_fit > T))
    status = mx_fail(err, MX_ERR_FORMAT, "%s: %llu tiles, %llu of them to be fitted", path, (unsigned long long)T, (unsigned long long)T_fit);
  /* what the tensors hold bounds what is allocated */
  if (!status) {
    const mx_array *c;
    status = mx_file_find(&c, f, "c", err);
    if (!status && (c->n_dims != 3 || c->shape[0] != T || c->shape[1] != s.M || c->shape[2] != s.N))
      status = mx_fail(err, MX_ERR_SHAPE, "%s: tensor c is not %llu x %zu x %zu", path, (unsigned long long)T, s.M, s.N);
  }
  if (!status) {
    status = mx_probe_alloc(out, &s, (size_t)T, (size_t)T_fit, err);
    if (status && err && strlen(err->text) + strlen(path) + 3 < sizeof err->text) {
      char text[sizeof err->text];
      snprintf(text, sizeof text, "%s", err->text);
      mx_fail(err, status, "%.200s: %.250s", path, text);
    }
  }
  part parts[PARTS];
  const size_t n = status ? 0 : parts_of(parts, out);
  for (size_t i = 0; i < n && !status; i++) {
    const mx_array *x;
    if ((status = mx_file_find(&x, f, parts[i].name, err))) break;
    int same = x->n_dims == parts[i].n_dims && x->dtype == parts[i].dtype;
    for (int q = 0; q < parts[i].n_dims && same; q++) same = x->shape[q] == parts[i].shape[q];
    if (!same)
      status = mx_fail(err, MX_ERR_SHAPE, "%s: tensor %s does not have the type and shape that the metadata state", path, parts[i].name);
    else
      memcpy(parts[i].data, x->data, x->n_bytes);
  }
  mx_file_close(f);
  if (status) mx_probe_free(out);
  return status;
}

mx_status probe_read_d(void **out, const char *path, const mx_probe *p, mx_error *err) {
  mx_file *f;
  const mx_array *x;
  const mx_probe_spec *s = &p->spec;
  *out = NULL;
  mx_status status = mx_file_open(&f, path, err);
  if (status) return status;
  status = mx_file_find(&x, f, mx_file_count(f) == 1 ? NULL : "d", err);
  if (!status && (x->n_dims != 3 || x->shape[0] != p->T || x->shape[1] != s->M || x->shape[2] != s->N))
    status = mx_fail(err, MX_ERR_SHAPE, "%s: d is not %zu x %zu x %zu, the shape of the probes", path, p->T, s->M, s->N);
  if (!status && mx_dtype_bytes(x->dtype) != mx_mma_bytes(s->d, 1))
    status = mx_fail(err, MX_ERR_SHAPE, "%s: d is %s, the probes ask for %s in words of %zu bytes", path, mx_dtype_name(x->dtype), s->d->name,
                     mx_mma_bytes(s->d, 1));
  if (!status && !(*out = malloc(x->n_bytes + 1))) status = mx_fail(err, MX_ERR_NOMEM, "%s: no memory", path);
  if (!status) memcpy(*out, x->data, x->n_bytes);
  mx_file_close(f);
  return status;
}
