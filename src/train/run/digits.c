/* Reads handwritten digits, or other small images with a label each, from a .safetensors file. */
#include <stdlib.h>

#include "mxgold/file.h"
#include "train/run/table.h"

static mx_status bytes_of(const mx_array **out, const mx_file *file, const char *name, int n_dims, mx_error *err) {
  const mx_status status = mx_file_find(out, file, name, err);
  if (status) return status;
  const mx_array *a = *out;
  if (a->dtype != MX_U8 || a->n_dims != n_dims)
    return mx_fail(err, MX_ERR_SHAPE, "%s: %s: expected %d dimensions of u8", mx_file_path(file), name, n_dims);
  return MX_OK;
}

static mx_status take(mxi_table *t, const mx_file *file, const mx_array *images, const mx_array *labels, mx_error *err) {
  uint8_t most = 0;
  if (!images->n_values || images->shape[0] != labels->shape[0] || images->shape[0] > UINT32_MAX)
    return mx_fail(err, MX_ERR_SHAPE, "%s: expected as many labels as images, and at least one", mx_file_path(file));
  t->n = (size_t)images->shape[0];
  t->features = t->inputs = (size_t)images->shape[1];
  t->x = malloc((size_t)images->n_values * sizeof *t->x);
  t->label = malloc(t->n * sizeof *t->label);
  if (!t->x || !t->label) return mx_fail(err, MX_ERR_NOMEM, "no memory for %s", mx_file_path(file));
  for (size_t i = 0; i < images->n_values; i++) most = images->data[i] > most ? images->data[i] : most;
  for (size_t i = 0; i < images->n_values; i++) t->x[i] = (float)((double)images->data[i] / (most ? most : 1));
  for (size_t i = 0; i < t->n; i++) {
    t->label[i] = labels->data[i];
    t->classes = labels->data[i] >= t->classes ? (size_t)labels->data[i] + 1 : t->classes;
  }
  return MX_OK;
}

mx_status mxi_digits_read(mxi_table *t, const mxi_config *c, mx_error *err) {
  mx_file *file;
  const mx_array *images, *labels;
  mx_error why;
  mx_status status = mx_file_open(&file, c->data.file, &why);
  if (status) return mx_fail(err, status, "data.file: %s", why.text);
  status = bytes_of(&images, file, "images", 2, &why);
  if (!status) status = bytes_of(&labels, file, "labels", 1, &why);
  if (!status) status = take(t, file, images, labels, &why);
  mx_file_close(file);
  return status ? mx_fail(err, status, "data.file: %s", why.text) : MX_OK;
}
