/* Gives the columns of an .mxv file as tensors. */
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mxgold/vector.h"

int mxi_io_is_mxv(const uint8_t *p, size_t n) { return n >= 7 && !memcmp(p, "# mxv 1", 7); }

void mxi_io_free_vectors(mx_file *f) {
  if (!f->vectors) return;
  mx_vectors_free(f->vectors);
  free(f->vectors);
  f->vectors = NULL;
}

static uint64_t stated(const mx_vectors *v, const char *key) {
  const char *text = mx_vectors_meta(v, key);
  return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

/* Whether the 32-bit numbers of a column are binary32. */
static int is_float(const mx_column *c) {
  return c->bits == 32 &&
         (!strcmp(c->name, "x") || !strcmp(c->name, "input") || !strcmp(c->name, "tensor_scale") || !strcmp(c->name, "dequantized"));
}

/* The shape is [cases][numbers]. If the header says that each case is a tensor with rows, columns with one number per element are
 * [cases][rows][numbers in a row]. */
static void shape_column(mx_array *a, const mx_vectors *v, const mx_column *c) {
  const char *form = mx_vectors_meta(v, "case");
  const uint64_t rows = form && !strcmp(form, "tensor") ? stated(v, "rows") : 0, cols = stated(v, "cols");
  a->n_dims = 2;
  a->shape[0] = v->n_cases;
  a->shape[1] = c->count;
  if (!rows || !cols || c->count % rows || c->count / rows < cols || c->count / rows == 0) return;
  if (strcmp(c->name, "x") && strcmp(c->name, "codes") && strcmp(c->name, "dequantized")) return;
  a->n_dims = 3;
  a->shape[1] = rows;
  a->shape[2] = c->count / rows;
}

/* What follows the end of a row (in suite padding) is not data, so the rows are moved together. */
static void drop_padding(mx_array *a, const mx_vectors *v, const mx_column *c) {
  const uint64_t cols = stated(v, "cols"), ld = a->shape[a->n_dims - 1];
  if (strcmp(c->name, "x") || !mx_vectors_meta(v, "case") || !cols || cols >= ld) return;
  const size_t row = (size_t)cols * c->width;
  for (uint64_t r = 1; r < v->n_cases * (c->count / ld); r++) memmove(c->data + r * row, c->data + r * ld * c->width, row);
  a->shape[a->n_dims - 1] = cols;
}

mx_status mxi_io_parse_mxv(mx_file *f, mx_error *err) {
  mx_vectors *v = f->vectors = calloc(1, sizeof *v);
  if (!v) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  const mx_status s = mx_vectors_parse(v, f->path, f->base, f->n_bytes, err);
  if (s) return s;
  f->arrays = calloc(v->n_filled + 1, sizeof *f->arrays);
  if (!f->arrays) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
  for (size_t i = 0; i < v->n_filled; i++) {
    const mx_column *c = &v->columns[i];
    mx_array *a = &f->arrays[i];
    *a = (mx_array){.name = strdup(c->name), .data = c->data};
    if (!a->name) return mx_fail(err, MX_ERR_NOMEM, "%s: out of memory", f->path);
    f->n_arrays++;
    a->dtype = is_float(c) ? MX_F32 : c->width == 1 ? MX_U8 : c->width == 2 ? MX_U16 : c->width == 4 ? MX_U32 : MX_U64;
    shape_column(a, v, c);
    drop_padding(a, v, c);
    if (!mxi_io_size_array(a)) return mx_fail(err, MX_ERR_FORMAT, "%s: column %s: the shape overflows", f->path, c->name);
  }
  return MX_OK;
}
