/* Opens and writes files of quantised matrices. */
#include "mxgold/quantized.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/version.h"

int mx_matrix_of(size_t *rows, size_t *cols, const uint64_t *shape, int n_dims) {
  uint64_t r = 1;
  for (int i = 0; i + 1 < n_dims; i++)
    if (__builtin_mul_overflow(r, shape[i], &r)) return 0;
  *rows = r;
  *cols = n_dims ? shape[n_dims - 1] : 1;
  return 1;
}

static mx_dtype scale_dtype(const mx_tensor *t, const mx_spec *spec) {
  if (spec->scale == MX_SCALE_BF16) return MX_BF16;
  return t->scale_bytes == 1 ? MX_U8 : t->scale_bytes == 2 ? MX_U16 : MX_F32;
}

static void shape_text(char *out, size_t size, const uint64_t *shape, int n_dims) {
  size_t n = (size_t)snprintf(out, size, "[");
  for (int i = 0; i < n_dims && n < size; i++) n += (size_t)snprintf(out + n, size - n, "%s%" PRIu64, i ? ", " : "", shape[i]);
  if (n < size) snprintf(out + n, size - n, "]");
}

static int parse_shape(uint64_t *shape, const char *text) {
  int n = 0;
  if (*text++ != '[') return -1;
  while (*text && *text != ']') {
    char *end;
    if (n == MX_MAX_DIMS || *text < '0' || *text > '9') return -1;
    shape[n++] = strtoull(text, &end, 10);
    text = end;
    while (*text == ',' || *text == ' ') text++;
  }
  return *text == ']' ? n : -1;
}

mx_status mx_quantized_declare(mx_quantized_layout *out, mx_writer *w, const mx_spec *spec, const char *preset, const uint64_t *shape,
                               int n_dims, mx_dtype dtype, int with_dequantized, mx_error *err) {
  return mx_quantized_declare_in(out, w, spec, preset, shape, n_dims, dtype, with_dequantized, MX_LAYOUT_ROW, 0, err);
}

mx_status mx_quantized_declare_in(mx_quantized_layout *out, mx_writer *w, const mx_spec *spec, const char *preset, const uint64_t *shape,
                                  int n_dims, mx_dtype dtype, int with_dequantized, mx_layout layout, uint8_t pad, mx_error *err) {
  size_t rows, cols;
  mx_tensor t;
  if (!mx_matrix_of(&rows, &cols, shape, n_dims)) return mx_fail(err, MX_ERR_SHAPE, "the shape overflows");
  mx_status status = mx_tensor_layout(&t, rows, cols, spec);
  if (status) return mx_fail(err, status, "a matrix of %zu x %zu: %s", rows, cols, mx_status_text(status));
  const int plain = mx_spec_is_plain(spec), moved = layout != MX_LAYOUT_ROW;
  const uint64_t flat[1] = {moved ? mx_layout_size(layout, t.scale_rows, t.scale_cols) : 0};
  if (moved && t.scale_bytes != 1)
    return mx_fail(err, MX_ERR_CONFLICT, "scale=%s excludes layout %s: it holds scales of one byte", mx_scale_format(spec->scale)->name,
                   mx_layout_name(layout));
  if (flat[0] > SIZE_MAX / 4)
    return mx_fail(err, MX_ERR_SHAPE, "%zu x %zu scales in layout %s: too large", t.scale_rows, t.scale_cols, mx_layout_name(layout));
  const uint64_t codes[2] = {rows, plain ? cols : t.code_stride}, scales[2] = {t.scale_rows, t.scale_cols},
                 micro[3] = {t.scale_rows, t.scale_cols, 3}, one[1] = {1};
  size_t index = 0;
  for (int i = 0; i < MX_Q_COUNT; i++) out->index[i] = -1;
#define ADD(which, name, type, dims, extent)                                                                                                   \
  do {                                                                                                                                         \
    if ((status = mx_writer_add(w, name, type, dims, extent, &index))) return mx_fail(err, status, "cannot declare tensor %s", name);          \
    out->index[which] = (ptrdiff_t)index;                                                                                                      \
  } while (0)
  ADD(MX_Q_CODES, "codes", plain ? MX_F32 : MX_U8, 2, codes);
  ADD(MX_Q_SCALES, "scales", scale_dtype(&t, spec), moved ? 1 : 2, moved ? flat : scales);
  if (spec->scale_rule == MX_SCALE_RULE_HIF4) ADD(MX_Q_MICRO, "micro", MX_U8, 3, micro);
  if (t.has_tensor_scale) ADD(MX_Q_TENSOR_SCALE, "tensor_scale", MX_F32, 1, one);
  if (with_dequantized) ADD(MX_Q_DEQUANTIZED, "dequantized", MX_F32, n_dims, shape);
#undef ADD
  char text[4096], block[48], extent[256], seed[24], padding[8];
  mx_spec_print(text, sizeof text, spec, 1);
  shape_text(extent, sizeof extent, shape, n_dims);
  const char *at = strstr(text, "block=");
  snprintf(block, sizeof block, "%.*s", (int)strcspn(at + 6, " "), at + 6);
  snprintf(seed, sizeof seed, "%" PRIu64, spec->seed);
  snprintf(padding, sizeof padding, "%u", pad);
  const char *pairs[][2] = {{"spec", text},
                            {"preset", preset ? preset : ""},
                            {"shape", extent},
                            {"dtype", mx_dtype_name(dtype)},
                            {"block", block},
                            {"tensor_store", mx_tensor_store_name(spec)},
                            {"seed", seed},
                            {"version", MX_VERSION},
                            {"layout", mx_layout_name(layout)},
                            {"layout_pad", padding}};
  const size_t n_pairs = sizeof pairs / sizeof pairs[0] - (moved ? 0 : 2);
  for (size_t i = 0; i < n_pairs; i++)
    if ((status = mx_writer_meta(w, pairs[i][0], pairs[i][1]))) return mx_fail(err, status, "cannot add metadata %s", pairs[i][0]);
  return MX_OK;
}

mx_status mx_quantized_append(mx_writer *w, const mx_quantized_layout *l, const mx_tensor *t, const float *dequantized, mx_error *err) {
  const size_t n_scales = t->scale_rows * t->scale_cols;
  mx_status status = mx_writer_write(w, (size_t)l->index[MX_Q_CODES], t->codes, t->rows * t->code_stride, err);
  if (!status) status = mx_writer_write(w, (size_t)l->index[MX_Q_SCALES], t->scales, n_scales * t->scale_bytes, err);
  if (!status && l->index[MX_Q_MICRO] >= 0) status = mx_writer_write(w, (size_t)l->index[MX_Q_MICRO], t->micro, n_scales * 3, err);
  if (!status && l->index[MX_Q_DEQUANTIZED] >= 0)
    status = mx_writer_write(w, (size_t)l->index[MX_Q_DEQUANTIZED], dequantized, t->rows * t->cols * sizeof *dequantized, err);
  return status;
}

static mx_status expect(const mx_array **out, const mx_quantized *q, const char *name, mx_dtype dtype, uint64_t d0, uint64_t d1,
                        mx_error *err) {
  const char *path = mx_file_path(q->file);
  *out = NULL;
  mx_status status = mx_file_find(out, q->file, name, err);
  if (status) return status;
  const mx_array *a = *out;
  if (a->dtype != dtype)
    return mx_fail(err, MX_ERR_FORMAT, "%s: tensor %s is %s, expected %s for its spec", path, name, mx_dtype_name(a->dtype),
                   mx_dtype_name(dtype));
  const int flat = d1 == 0 && a->n_dims == 1;
  if (flat ? a->shape[0] != d0 : a->n_dims < 2 || a->shape[0] != d0 || a->shape[1] != d1)
    return mx_fail(err, MX_ERR_FORMAT,
                   "%s: the shape of tensor %s does not match its spec and the shape in the metadata, expected [%" PRIu64 "%s%.0" PRIu64 "]",
                   path, name, d0, d1 ? ", " : "", d1);
  return MX_OK;
}

/* Gives the scales in row-major order, whatever the layout of the file. */
static mx_status open_scales(mx_quantized *q, mx_error *err) {
  mx_tensor *t = &q->tensor;
  const char *path = mx_file_path(q->file), *name = mx_file_meta(q->file, "layout");
  const int layout = name ? mx_layout_find(name) : MX_LAYOUT_ROW;
  if (layout < 0) return mx_fail(err, MX_ERR_FORMAT, "%s: metadata 'layout' is %.40s, expected the name of a layout", path, name);
  q->layout = (mx_layout)layout;
  const mx_array *a;
  if (layout == MX_LAYOUT_ROW) {
    const mx_status status = expect(&a, q, "scales", scale_dtype(t, &q->spec), t->scale_rows, t->scale_cols, err);
    if (!status) t->scales = (uint8_t *)(uintptr_t)a->data;
    return status;
  }
  const size_t size = mx_layout_size(q->layout, t->scale_rows, t->scale_cols);
  if (t->scale_bytes != 1 || size == SIZE_MAX)
    return mx_fail(err, MX_ERR_FORMAT, "%s: metadata 'layout' is %s, expected row for such scales", path, name);
  const mx_status status = expect(&a, q, "scales", MX_U8, size, 0, err);
  if (status) return status;
  q->unpacked = malloc(t->scale_rows * t->scale_cols + 1);
  if (!q->unpacked) return mx_fail(err, MX_ERR_NOMEM, "%s: no memory for %zu x %zu scales", path, t->scale_rows, t->scale_cols);
  mx_layout_unpack(q->unpacked, q->layout, a->data, t->scale_rows, t->scale_cols);
  t->scales = q->unpacked;
  return MX_OK;
}

static mx_status open_tensors(mx_quantized *q, mx_error *err) {
  const char *path = mx_file_path(q->file), *spec = mx_file_meta(q->file, "spec"), *shape = mx_file_meta(q->file, "shape"),
             *preset = mx_file_meta(q->file, "preset");
  if (!spec || !shape)
    return mx_fail(err, MX_ERR_FORMAT, "%s: metadata has no '%s', expected a file that mxgold quantize wrote", path, spec ? "shape" : "spec");
  mx_error inner;
  if (mx_spec_parse(&q->spec, spec, &inner) || mx_spec_check(&q->spec, &inner))
    return mx_fail(err, MX_ERR_FORMAT, "%s: metadata 'spec': %s", path, inner.text);
  q->n_dims = parse_shape(q->shape, shape);
  size_t rows, cols;
  if (q->n_dims < 0 || !mx_matrix_of(&rows, &cols, q->shape, q->n_dims))
    return mx_fail(err, MX_ERR_FORMAT, "%s: metadata 'shape' is %.60s, expected [N, N, ...]", path, shape);
  mx_tensor *t = &q->tensor;
  mx_status status = mx_tensor_layout(t, rows, cols, &q->spec);
  if (status) return mx_fail(err, MX_ERR_FORMAT, "%s: a matrix of %zu x %zu is too large", path, rows, cols);
  const int plain = mx_spec_is_plain(&q->spec);
  const mx_array *a;
  if ((status = expect(&a, q, "codes", plain ? MX_F32 : MX_U8, rows, plain ? cols : t->code_stride, err))) return status;
  t->codes = (uint8_t *)(uintptr_t)a->data; /* mx_tensor also serves writers; nothing here writes */
  if ((status = open_scales(q, err))) return status;
  if (q->spec.scale_rule == MX_SCALE_RULE_HIF4) {
    if ((status = expect(&a, q, "micro", MX_U8, t->scale_rows, t->scale_cols, err))) return status;
    if (a->n_bytes != t->scale_rows * t->scale_cols * 3)
      return mx_fail(err, MX_ERR_FORMAT, "%s: tensor micro has %" PRIu64 " bytes, expected 3 for each block", path, a->n_bytes);
    t->micro = (uint8_t *)(uintptr_t)a->data;
  }
  if (t->has_tensor_scale) {
    if ((status = expect(&a, q, "tensor_scale", MX_F32, 1, 0, err))) return status;
    memcpy(&t->tensor_scale, a->data, sizeof t->tensor_scale);
  }
  if (mx_file_find(&a, q->file, "dequantized", NULL) == MX_OK && a->dtype == MX_F32 && a->n_values == rows * cols) q->dequantized = a;
  q->preset = preset ? preset : "";
  const char *dtype = mx_file_meta(q->file, "dtype");
  const int known = dtype ? mx_dtype_find(dtype) : -1;
  q->dtype = known < 0 ? MX_F32 : (mx_dtype)known;
  return MX_OK;
}

mx_status mx_quantized_take(mx_quantized *out, mx_file *file, mx_error *err) {
  memset(out, 0, sizeof *out);
  out->file = file;
  const mx_status status = open_tensors(out, err);
  if (!status) return MX_OK;
  free(out->unpacked);
  memset(out, 0, sizeof *out);
  return status;
}

mx_status mx_quantized_open(mx_quantized *out, const char *path, mx_error *err) {
  mx_file *file;
  memset(out, 0, sizeof *out);
  mx_status status = mx_file_open(&file, path, err);
  if (status) return status;
  status = mx_quantized_take(out, file, err);
  if (status) mx_file_close(file);
  return status;
}

void mx_quantized_close(mx_quantized *q) {
  mx_file_close(q->file);
  free(q->unpacked);
  memset(q, 0, sizeof *q);
}
