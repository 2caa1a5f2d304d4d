/* Reads .safetensors: 8 bytes of header length, a JSON header, the data.
 * Source: huggingface/safetensors, safetensors/src/tensor.rs. What that refuses is refused here too: a header above 100 MB, holes, overlaps,
 * data after the last tensor, duplicate names. */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"

enum { PREFIX = 8, MAX_HEADER = 100000000, MAX_DEPTH = 3 };

/* The JSON library recurses into nested values. A header has only three levels, so deeper ones are refused before the library sees them. */
static mx_status check_depth(const mx_file *f, size_t end, mx_error *err) {
  int depth = 0, quoted = 0;
  for (size_t i = PREFIX; i < end; i++) {
    uint8_t c = f->base[i];
    if (quoted) {
      if (c == '\\')
        i++;
      else if (c == '"')
        quoted = 0;
    } else if (c == '"') {
      quoted = 1;
    } else if (c == '{' || c == '[') {
      if (++depth > MAX_DEPTH) return mxi_io_malformed(f, err, i, "JSON nested %d deep, expected at most %d levels", depth, MAX_DEPTH);
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  return MX_OK;
}

/* Where a name is in the header, for messages; the start of the header if the name is written with escapes. */
static uint64_t where(const mx_file *f, size_t end, const char *name) {
  size_t n = strlen(name);
  const uint8_t *p = f->base + PREFIX, *stop = f->base + end;
  while ((size_t)(stop - p) >= n + 2 && (p = memmem(p, (size_t)(stop - p), name, n))) {
    const uint8_t *after = p + n;
    if (p[-1] == '"' && after < stop && *after == '"') {
      for (after++; after < stop && (*after == ' ' || *after == '\n' || *after == '\t' || *after == '\r'); after++)
        ;
      if (after < stop && *after == ':') return (uint64_t)(p - 1 - f->base);
    }
    p++;
  }
  return PREFIX;
}

typedef struct entry_at {
  const mx_file *f;
  size_t end; /* where the header ends */
  const char *name;
  mx_error *err;
} entry_at;

#define BAD(e, ...) mxi_io_malformed((e)->f, (e)->err, where((e)->f, (e)->end, (e)->name), __VA_ARGS__)

/* Types of codes that are no dtype here: their bytes are read unchanged, as codes. bits: of one code; the shape counts codes. */
static const struct {
  const char *name;
  unsigned bits;
} codes[] = {{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};
enum { CODES = sizeof codes / sizeof codes[0] };

/* Turns the shape of codes of fewer than 8 bits into one of bytes. */
static mx_status pack_shape(mx_array *a, const entry_at *e, unsigned bits) {
  if (bits == 8 || !a->n_dims) return bits == 8 ? MX_OK : BAD(e, "tensor '%.64s' is one code of %u bits, expected whole bytes", e->name, bits);
  uint64_t *last = &a->shape[a->n_dims - 1];
  if (*last % 4 || *last > UINT64_MAX / 8)
    if (bits != 4 || *last % 2) return BAD(e, "the rows of tensor '%.64s' are not whole bytes of %u-bit codes", e->name, bits);
  *last = *last / 4 * bits / 2 + (*last % 4 ? 1 : 0);
  mxi_io_size_array(a); /* these are fewer bytes than before, so it cannot fail */
  return MX_OK;
}

static unsigned bits_of_codes(const json_t *entry) {
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  for (size_t i = 0; dtype && i < CODES; i++)
    if (!strcmp(dtype, codes[i].name)) return codes[i].bits;
  return 8;
}

static mx_status read_dtype(mx_array *a, const entry_at *e, const json_t *entry) {
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  if (!dtype) return BAD(e, "tensor '%.64s' has no dtype, expected \"dtype\": \"F32\" or another", e->name);
  for (int d = 0; d < MX_DTYPE_COUNT; d++)
    if (!strcmp(dtype, mx_dtype_safetensors((mx_dtype)d))) {
      a->dtype = (mx_dtype)d;
      return MX_OK;
    }
  for (size_t i = 0; i < CODES; i++)
    if (!strcmp(dtype, codes[i].name)) {
      a->dtype = MX_U8;
      return MX_OK;
    }
  char known[160] = "";
  for (size_t d = 0, used = 0; d < MX_DTYPE_COUNT; d++) {
    const char *row = mx_dtype_safetensors((mx_dtype)d);
    if (used + strlen(row) + 2 > sizeof known) break;
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? " " : "", row);
  }
  return BAD(e, "tensor '%.64s' has dtype '%.32s', expected one of %s", e->name, dtype, known);
}

static mx_status read_shape(mx_array *a, const entry_at *e, const json_t *entry) {
  const json_t *shape = json_object_get(entry, "shape");
  if (!json_is_array(shape)) return BAD(e, "tensor '%.64s' has no shape, expected \"shape\": [..]", e->name);
  size_t n = json_array_size(shape);
  if (n > MX_MAX_DIMS) return BAD(e, "tensor '%.64s' has %zu dimensions, expected at most %d", e->name, n, MX_MAX_DIMS);
  a->n_dims = (int)n;
  for (size_t i = 0; i < n; i++) {
    const json_t *v = json_array_get(shape, i);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
      return BAD(e, "dimension %zu of tensor '%.64s' is not a count, expected an integer from 0", i, e->name);
    a->shape[i] = (uint64_t)json_integer_value(v);
  }
  if (!mxi_io_size_array(a)) return BAD(e, "the shape of tensor '%.64s' overflows, expected a product of dimensions below 2^63 bytes", e->name);
  return MX_OK;
}

static mx_status read_offsets(mx_array *a, const entry_at *e, const json_t *entry) {
  const json_t *pair = json_object_get(entry, "data_offsets");
  const json_t *from = json_array_get(pair, 0), *to = json_array_get(pair, 1);
  if (json_array_size(pair) != 2 || !json_is_integer(from) || !json_is_integer(to) || json_integer_value(from) < 0)
    return BAD(e, "tensor '%.64s' has no place, expected \"data_offsets\": [begin, end]", e->name);
  uint64_t begin = (uint64_t)json_integer_value(from), end = (uint64_t)json_integer_value(to), have = e->f->n_bytes - e->end;
  if (json_integer_value(to) < json_integer_value(from))
    return BAD(e, "tensor '%.64s' ends at %lld before it begins at %lld, expected begin <= end", e->name, json_integer_value(to),
               json_integer_value(from));
  if (end - begin != a->n_bytes)
    return BAD(e, "tensor '%.64s' takes %llu bytes by its offsets, expected %llu by its dtype and shape", e->name,
               (unsigned long long)(end - begin), (unsigned long long)a->n_bytes);
  if (e->f->open_ended ? end > INT64_MAX - e->end : end > have)
    return BAD(e, "tensor '%.64s' ends at data byte %llu, expected at most the %llu that the file holds", e->name, (unsigned long long)end,
               (unsigned long long)have);
  a->data = e->f->base + e->end + begin;
  return MX_OK;
}

static int by_place(const void *pa, const void *pb) {
  const mx_array *a = pa, *b = pb;
  if (a->data != b->data) return a->data < b->data ? -1 : 1;
  if (a->n_bytes != b->n_bytes)
    return a->n_bytes < b->n_bytes ? -1 : 1; /* an empty tensor comes before the one that starts at the same place */
  return strcmp(a->name, b->name);
}

static mx_status check_tiling(mx_file *f, size_t header_end, mx_error *err) {
  const uint8_t *at = f->base + header_end, *end = f->base + f->n_bytes;
  for (size_t i = 0; i < f->n_arrays; i++) {
    const mx_array *a = &f->arrays[i];
    const entry_at e = {f, header_end, a->name, err};
    if (a->data < at)
      return BAD(&e, "tensor '%.64s' begins at data byte %llu inside tensor '%.64s', expected %llu", a->name,
                 (unsigned long long)(a->data - f->base - header_end), f->arrays[i - 1].name, (unsigned long long)(at - f->base - header_end));
    if (a->data > at)
      return BAD(&e, "a hole of %llu bytes before tensor '%.64s', expected it to begin at data byte %llu", (unsigned long long)(a->data - at),
                 a->name, (unsigned long long)(at - f->base - header_end));
    at = a->data + a->n_bytes;
  }
  if (f->open_ended)
    f->n_bytes = (size_t)(at - f->base);
  else if (at != end)
    return mxi_io_malformed(f, err, (uint64_t)(at - f->base), "%llu bytes after the last tensor, expected the end of the file",
                            (unsigned long long)(end - at));
  return MX_OK;
}

static mx_status read_meta(mx_file *f, const entry_at *e, json_t *meta) {
  if (!json_is_object(meta)) return BAD(e, "__metadata__ is not an object, expected strings by name");
  f->meta = calloc(json_object_size(meta) + 1, sizeof *f->meta);
  if (!f->meta) return mx_fail(e->err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  const char *key;
  json_t *value;
  json_object_foreach(meta, key, value) {
    const entry_at here = {f, e->end, key, e->err};
    if (!json_is_string(value)) return BAD(&here, "metadata '%.64s' is not a string, expected a string", key);
    io_meta *m = &f->meta[f->n_meta++];
    m->key = strdup(key);
    m->value = strdup(json_string_value(value));
    if (!m->key || !m->value) return mx_fail(e->err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  }
  return MX_OK;
}

static mx_status read_entries(mx_file *f, size_t header_end, json_t *header, mx_error *err) {
  f->arrays = calloc(json_object_size(header) + 1, sizeof *f->arrays);
  if (!f->arrays) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  const char *name;
  json_t *entry;
  json_object_foreach(header, name, entry) {
    const entry_at e = {f, header_end, name, err};
    mx_status s;
    if (!strcmp(name, "__metadata__")) {
      if ((s = read_meta(f, &e, entry))) return s;
      continue;
    }
    if (!json_is_object(entry)) return BAD(&e, "tensor '%.64s' is not an object, expected dtype, shape and data_offsets", name);
    mx_array *a = &f->arrays[f->n_arrays];
    if (!(a->name = strdup(name))) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
    f->n_arrays++; /* counted now, so that mx_file_close() frees the name */
    if ((s = read_dtype(a, &e, entry)) || (s = read_shape(a, &e, entry)) || (s = pack_shape(a, &e, bits_of_codes(entry))) ||
        (s = read_offsets(a, &e, entry)))
      return s;
  }
  qsort(f->arrays, f->n_arrays, sizeof *f->arrays, by_place);
  return check_tiling(f, header_end, err);
}

mx_status mxi_io_parse_safetensors(mx_file *f, mx_error *err) {
  if (f->n_bytes < PREFIX) return mxi_io_malformed(f, err, f->n_bytes, "the file ends, expected 8 bytes of header length");
  uint64_t len = io_read_u64(f->base);
  if (len > MAX_HEADER)
    return mxi_io_malformed(f, err, 0, "the header claims to take %llu bytes, expected at most %d", (unsigned long long)len, MAX_HEADER);
  if (len > f->n_bytes - PREFIX)
    return mxi_io_malformed(f, err, 0, "the header claims to take %llu bytes, expected at most the %llu that follow", (unsigned long long)len,
                            (unsigned long long)(f->n_bytes - PREFIX));
  if (len < 2 || f->base[PREFIX] != '{') return mxi_io_malformed(f, err, PREFIX, "no JSON object, expected {");
  size_t header_end = PREFIX + (size_t)len;
  mx_status s = check_depth(f, header_end, err);
  if (s) return s;
  json_error_t why;
  json_t *header = json_loadb((const char *)f->base + PREFIX, (size_t)len, JSON_REJECT_DUPLICATES, &why);
  if (!header) {
    if (json_error_code(&why) == json_error_out_of_memory) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
    return mxi_io_malformed(f, err, PREFIX + (uint64_t)(why.position > 0 ? why.position : 0), "bad JSON: %.100s, expected a header of tensors",
                            why.text);
  }
  s = read_entries(f, header_end, header, err);
  json_decref(header);
  return s;
}
