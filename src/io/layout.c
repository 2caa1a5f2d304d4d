/* Lays out the headers of written files. Headers of both kinds are padded so that the data begin at a multiple of 64 bytes, as numpy does,
 * which lets a reader map them. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "writer.h"

enum { ALIGN = 64, N_DIGITS = 32 };

/* Text that grows; a failed allocation is recorded and checked once at the end. */
typedef struct text {
  char *p;
  size_t n, room;
  int failed;
} text;

static void put(text *t, const char *s, size_t n) {
  if (!t->failed && t->n + n > t->room) {
    size_t room = 2 * (t->n + n) + 256;
    char *p = realloc(t->p, room);
    if (p) {
      t->p = p;
      t->room = room;
    } else {
      t->failed = 1;
    }
  }
  if (t->failed) return;
  memcpy(t->p + t->n, s, n);
  t->n += n;
}

static void put_text(text *t, const char *s) { put(t, s, strlen(s)); }

static void put_u64(text *t, uint64_t v) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
  put_text(t, digits);
}

static void put_json(text *t, const char *prefix, const char *s) {
  char *whole = NULL, *quoted = NULL;
  json_t *v = NULL;
  if (asprintf(&whole, "%s%s", prefix, s) < 0) whole = NULL;
  if (whole && (v = json_string(whole))) quoted = json_dumps(v, JSON_ENCODE_ANY);
  if (quoted)
    put_text(t, quoted);
  else
    t->failed = 1;
  json_decref(v);
  free(quoted);
  free(whole);
}

static void pad(text *t, size_t n_before, const char *last) {
  size_t n_last = strlen(last);
  while ((n_before + t->n + n_last) % ALIGN && !t->failed) put_text(t, " ");
  put_text(t, last);
}

static mx_status finish(text *t, const mx_writer *w, uint8_t **header, size_t *n_header, mx_error *err) {
  if (t->failed) {
    free(t->p);
    return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", w->path);
  }
  *header = (uint8_t *)t->p;
  *n_header = t->n;
  return MX_OK;
}

mx_status mxi_io_layout_npy(mx_writer *w, uint8_t **header, size_t *n_header, mx_error *err) {
  const mx_array *a = &w->tensors[0].a;
  text t = {0};
  put(&t, "\x93NUMPY\x01\x00\x00\x00", 10);
  put_text(&t, "{'descr': '");
  put_text(&t, mx_dtype_npy(a->dtype));
  put_text(&t, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < a->n_dims; i++) {
    if (i) put_text(&t, " ");
    put_u64(&t, a->shape[i]);
    if (i + 1 < a->n_dims || a->n_dims == 1) put_text(&t, ",");
  }
  put_text(&t, "), }");
  pad(&t, 0, "\n");
  mx_status s = finish(&t, w, header, n_header, err);
  if (s) return s;
  size_t len = t.n - 10; /* below 65536, since there are at most eight dimensions of 20 digits */
  (*header)[8] = (uint8_t)len;
  (*header)[9] = (uint8_t)(len >> 8);
  w->tensors[0].at = t.n;
  if (__builtin_add_overflow(t.n, a->n_bytes, &w->n_bytes) || w->n_bytes > INT64_MAX) {
    free(t.p);
    return mx_fail(err, MX_ERR_SHAPE, "%s: the file would overflow, expected below 2^63 bytes", w->path);
  }
  return MX_OK;
}

static void put_metadata(text *t, mx_writer *w) {
  put_text(t, "\"__metadata__\":{");
  const char *comma = "";
  for (size_t i = 0; i < w->n_meta; i++) {
    put_text(t, comma);
    comma = ",";
    put_json(t, "", w->meta[i].key);
    put_text(t, ":");
    put_json(t, "", w->meta[i].value);
  }
  for (size_t i = 0; i < w->n_tensors; i++) {
    put_text(t, comma);
    comma = ",";
    put_json(t, "xxh3.", w->tensors[i].a.name);
    put_text(t, ":\"");
    w->tensors[i].digest_at = t->n;
    for (int k = 0; k < N_DIGITS; k++) put_text(t, "0");
    put_text(t, "\"");
  }
  put_text(t, "}");
}

mx_status mxi_io_layout_safetensors(mx_writer *w, uint8_t **header, size_t *n_header, mx_error *err) {
  text t = {0};
  put(&t, "\0\0\0\0\0\0\0\0{", 9);
  put_metadata(&t, w);
  uint64_t at = 0;
  int overflow = 0;
  for (size_t i = 0; i < w->n_tensors; i++) {
    const mx_array *a = &w->tensors[i].a;
    put_text(&t, ",");
    put_json(&t, "", a->name);
    put_text(&t, ":{\"dtype\":\"");
    put_text(&t, mx_dtype_safetensors(a->dtype));
    put_text(&t, "\",\"shape\":[");
    for (int d = 0; d < a->n_dims; d++) {
      if (d) put_text(&t, ",");
      put_u64(&t, a->shape[d]);
    }
    put_text(&t, "],\"data_offsets\":[");
    put_u64(&t, at);
    w->tensors[i].at = at;
    overflow |= __builtin_add_overflow(at, a->n_bytes, &at) || at > INT64_MAX;
    put_text(&t, ",");
    put_u64(&t, at);
    put_text(&t, "]}");
  }
  put_text(&t, "}");
  pad(&t, 0, "");
  mx_status s = finish(&t, w, header, n_header, err);
  if (s) return s;
  for (int i = 0; i < 8; i++) (*header)[i] = (uint8_t)((t.n - 8) >> 8 * i);
  for (size_t i = 0; i < w->n_tensors; i++) w->tensors[i].at += t.n;
  if (overflow || __builtin_add_overflow(at, t.n, &w->n_bytes) || w->n_bytes > INT64_MAX) {
    free(t.p);
    return mx_fail(err, MX_ERR_SHAPE, "%s: the file would overflow, expected below 2^63 bytes", w->path);
  }
  return MX_OK;
}
