/* Reads every tensor of a file, with its metadata, as arrays, and writes files as the program does. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

static const struct {
  mx_dtype dtype;
  mxp_out as; /* the words that its bytes become */
} words[] = {{MX_F32, MXP_F32}, {MX_F16, MXP_F16}, {MX_U8, MXP_U8}, {MX_U16, MXP_U16}, {MX_U32, MXP_U32}, {MX_U64, MXP_U64}, {MX_I64, MXP_I64}};

static mxp_out words_of(mx_dtype dtype) {
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (words[i].dtype == dtype) return words[i].as;
  const size_t n = mx_dtype_bytes(dtype);
  return n == 1 ? MXP_U8 : n == 2 ? MXP_U16 : n == 4 ? MXP_U32 : MXP_U64;
}

/* One tensor: (name, dtype's name, array of its words). */
static PyObject *tensor(mxp_state *state, const mx_array *a) {
  Py_ssize_t shape[MX_MAX_DIMS];
  mxp_result to = {0};
  mx_error err;
  for (int i = 0; i < a->n_dims; i++) shape[i] = (Py_ssize_t)a->shape[i];
  int failed = mxp_result_make(&to, state, words_of(a->dtype), a->n_dims, shape);
  if (!failed && a->n_bytes) {
    mx_status status = MX_OK;
    void *room = to.data;
    Py_BEGIN_ALLOW_THREADS;
    if (a->data)
      memcpy(room, a->data, a->n_bytes);
    else
      status = mx_array_read(room, a, 0, a->n_bytes, &err);
    Py_END_ALLOW_THREADS;
    failed = status != MX_OK;
    if (failed) mxp_raise(status, NULL, err.text);
  }
  PyObject *array = mxp_result_end(&to, failed);
  return array ? Py_BuildValue("(ssN)", a->name ? a->name : "", mx_dtype_name(a->dtype), array) : NULL;
}

static PyObject *path_of(PyObject *from) {
  PyObject *bytes = NULL;
  return PyUnicode_FSConverter(from, &bytes) ? bytes : NULL;
}

/* read_file(path) -> ([(name, dtype, array), ...], {key: value}): digests that the file states are checked. */
static PyObject *read_file(PyObject *module, PyObject *from) {
  mxp_state *state = mxp_state_of(module);
  PyObject *path = path_of(from), *list = NULL, *meta = NULL, *out = NULL;
  mx_file *file = NULL;
  mx_error err;
  if (!path) return NULL;
  const char *name = PyBytes_AsString(path);
  mx_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = mx_file_open_by(&file, name, MX_BY_READING, &err);
  if (!status) status = mx_file_check_digests(file, &err);
  Py_END_ALLOW_THREADS;
  if (status) {
    mxp_raise(status, NULL, err.text);
    goto end;
  }
  list = PyList_New(0);
  meta = PyDict_New();
  for (size_t i = 0; list && meta && i < mx_file_count(file); i++) {
    PyObject *one = tensor(state, mx_file_at(file, i));
    const int failed = !one || PyList_Append(list, one);
    Py_XDECREF(one);
    if (failed) goto end;
  }
  for (size_t i = 0; list && meta && i < mx_file_meta_count(file); i++) {
    const char *value, *key = mx_file_meta_at(file, i, &value);
    PyObject *text = PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace");
    const int failed = !text || PyDict_SetItemString(meta, key, text);
    Py_XDECREF(text);
    if (failed) goto end;
  }
  if (list && meta) out = Py_BuildValue("(OO)", list, meta);
end:
  Py_XDECREF(list);
  Py_XDECREF(meta);
  mx_file_close(file);
  Py_DECREF(path);
  return out;
}

/* One tensor (name, dtype's name, array) of write_file(). */
typedef struct entry {
  const char *name;
  mx_dtype dtype;
  mxp_array array;
} entry;

static int entry_of(entry *e, mxp_state *state, PyObject *from) {
  if (!PyTuple_Check(from) || PyTuple_Size(from) != 3) {
    PyErr_SetString(PyExc_TypeError, "tensors: expected (name, dtype, array)");
    return -1;
  }
  const char *dtype = NULL;
  if (!(e->name = mxp_text(PyTuple_GetItem(from, 0), "name")) || !(dtype = mxp_text(PyTuple_GetItem(from, 1), "dtype")) ||
      mxp_array_get(&e->array, state, PyTuple_GetItem(from, 2), e->name))
    return -1;
  const int type = mx_dtype_find(dtype);
  if (type < 0 || mx_dtype_bytes((mx_dtype)type) != e->array.item) {
    mxp_raise_dtype(e->name, "%zu bytes an element, not a %s", e->array.item, dtype);
    return -1;
  }
  e->dtype = (mx_dtype)type;
  return mxp_contiguous(&e->array);
}

/* write_file(path, [(name, dtype, array), ...], {key: value}): whole, or not at all. */
static PyObject *write_file(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  static const char *const names[] = {"path", "tensors", "meta", NULL};
  mxp_state *state = mxp_state_of(module);
  PyObject *a[3], *path = NULL, *keys = NULL;
  mx_writer *w = NULL;
  mx_error err;
  mx_status status = MX_OK;
  if (mxp_arguments(a, "write_file", names, 3, args, n_args, keywords)) return NULL;
  if (!a[0] || !a[1] || !PyList_Check(a[1])) return PyErr_Format(PyExc_TypeError, "write_file() needs a path and a list of tensors");
  if (!(path = path_of(a[0]))) return NULL;
  const Py_ssize_t n = PyList_Size(a[1]);
  entry *e = calloc((size_t)n + 1, sizeof *e);
  int failed = !e;
  if (!e) PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n && !failed; i++) failed = entry_of(&e[i], state, PyList_GetItem(a[1], i));
  if (!failed && (status = mx_writer_open(&w, PyBytes_AsString(path), &err))) failed = 1;
  for (Py_ssize_t i = 0; i < n && !failed; i++) {
    uint64_t shape[MX_MAX_DIMS];
    if (e[i].array.n_dims > MX_MAX_DIMS) {
      status = mx_fail(&err, MX_ERR_SHAPE, "%s: %d dimensions, expected at most %d", e[i].name, e[i].array.n_dims, MX_MAX_DIMS);
      failed = 1;
      break;
    }
    for (int d = 0; d < e[i].array.n_dims; d++) shape[d] = (uint64_t)e[i].array.shape[d];
    status = mx_writer_add(w, e[i].name, e[i].dtype, e[i].array.n_dims, shape, NULL);
    if (status) failed = 1, mx_fail(&err, status, "tensor %s: %s", e[i].name, mx_status_text(status));
  }
  PyObject *key, *value;
  Py_ssize_t at = 0;
  if (a[2] && !PyDict_Check(a[2])) failed = 1, PyErr_SetString(PyExc_TypeError, "meta: expected a dict of str");
  while (!failed && a[2] && PyDict_Next(a[2], &at, &key, &value)) {
    const char *k = mxp_text(key, "meta"), *v = k ? mxp_text(value, k) : NULL;
    failed = !v;
    if (v && (status = mx_writer_meta(w, k, v))) failed = 1, mx_fail(&err, status, "metadata %s: %s", k, mx_status_text(status));
  }
  if (!failed) {
    Py_BEGIN_ALLOW_THREADS;
    status = mx_writer_begin(w, &err);
    for (Py_ssize_t i = 0; i < n && !status; i++) status = mx_writer_write(w, (size_t)i, e[i].array.data, e[i].array.n * e[i].array.item, &err);
    if (!status) {
      status = mx_writer_commit(w, &err);
      w = NULL;
    }
    Py_END_ALLOW_THREADS;
    failed = status != MX_OK;
  }
  if (w) mx_writer_abort(w);
  if (status) mxp_raise(status, NULL, err.text);
  for (Py_ssize_t i = 0; e && i < n; i++) mxp_array_release(&e[i].array);
  free(e);
  Py_XDECREF(keys);
  Py_DECREF(path);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static int dtype_named(const char *name) {
  static const struct {
    const char *name;
    mx_dtype dtype;
  } rows[] = {{"float32", MX_F32}, {"float16", MX_F16}, {"bfloat16", MX_BF16}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (!strcmp(rows[i].name, name)) return (int)rows[i].dtype;
  return MX_F32;
}

/* write_quantized(path, q, preset, dequantized, layout, pad): the bytes that `mxgold quantize` writes. */
static PyObject *write_quantized(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { PATH, Q, PRESET, DEQUANTIZED, LAYOUT, PAD, COUNT };
  static const char *const names[] = {"path", "q", "preset", "dequantized", "layout", "pad", NULL};
  mxp_state *state = mxp_state_of(module);
  PyObject *a[COUNT], *path = NULL, *shape = NULL, *type = NULL;
  mxp_operand q = {0};
  mxp_array values = {0};
  mx_writer *w = NULL;
  mx_quantized_layout at;
  mx_error err;
  mx_status status = MX_OK;
  uint64_t pad = 0, extent[MX_MAX_DIMS];
  int failed = 1;
  if (mxp_arguments(a, "write_quantized", names, COUNT, args, n_args, keywords)) return NULL;
  if (!a[PATH] || !a[Q]) return PyErr_Format(PyExc_TypeError, "write_quantized() needs a path and a Quantized");
  const char *preset = a[PRESET] ? mxp_text(a[PRESET], "preset") : "", *layout_name = a[LAYOUT] ? mxp_text(a[LAYOUT], "layout") : "row";
  if (!preset || !layout_name || (a[PAD] && mxp_unsigned(&pad, a[PAD], "pad", 255)) || !(path = path_of(a[PATH]))) return NULL;
  const int layout = mx_layout_find(layout_name);
  if (layout < 0) {
    mxp_raisef(MX_ERR_KEY, "layout", "'%s' is unknown", layout_name);
    goto end;
  }
  if (mxp_operand_get(&q, state, a[Q], "q") || !(shape = PyObject_GetAttrString(a[Q], "shape")) ||
      !(type = PyObject_GetAttrString(a[Q], "dtype")))
    goto end;
  const char *dtype = mxp_text(type, "dtype");
  const Py_ssize_t n_dims = PyTuple_Size(shape);
  if (!dtype || n_dims < 0) goto end;
  if (n_dims > MX_MAX_DIMS) {
    mxp_raisef(MX_ERR_SHAPE, "q", "%zd dimensions, a file holds at most %d", n_dims, MX_MAX_DIMS);
    goto end;
  }
  for (Py_ssize_t i = 0; i < n_dims; i++)
    if (mxp_unsigned(&extent[i], PyTuple_GetItem(shape, i), "shape", SIZE_MAX / 8)) goto end;
  if (a[DEQUANTIZED]) {
    if (mxp_array_get(&values, state, a[DEQUANTIZED], "dequantized") || mxp_contiguous(&values)) goto end;
    if (!mxp_is(&values, MXP_FLOAT, 4) || values.n != q.tensor.rows * q.tensor.cols) {
      mxp_raise(MX_ERR_SHAPE, "dequantized", "expected float32 in the shape of the input");
      goto end;
    }
  }
  const mx_tensor *t = &q.tensor;
  const size_t moved = layout == MX_LAYOUT_ROW ? 0 : mx_layout_size((mx_layout)layout, t->scale_rows, t->scale_cols);
  Py_BEGIN_ALLOW_THREADS;
  status = mx_writer_open(&w, PyBytes_AsString(path), &err);
  if (!status && mx_writer_is_npy(w))
    status = mx_fail(&err, MX_ERR_ARG, "a .npy file holds one tensor, expected a name that ends in .safetensors");
  if (!status)
    status = mx_quantized_declare_in(&at, w, q.spec, preset, extent, (int)n_dims, (mx_dtype)dtype_named(dtype), a[DEQUANTIZED] != NULL,
                                     (mx_layout)layout, (uint8_t)pad, &err);
  if (!status) status = mx_writer_begin(w, &err);
  if (!status && layout == MX_LAYOUT_ROW) {
    status = mx_quantized_append(w, &at, t, (const float *)(const void *)values.data, &err);
  } else if (!status) {
    uint8_t *scales = malloc(moved + 1);
    status = scales ? mx_writer_write(w, (size_t)at.index[MX_Q_CODES], t->codes, t->rows * t->code_stride, &err)
                    : mx_fail(&err, MX_ERR_NOMEM, "no memory");
    if (scales) mx_layout_pack(scales, (mx_layout)layout, t->scales, t->scale_rows, t->scale_cols, (uint8_t)pad);
    if (!status) status = mx_writer_write(w, (size_t)at.index[MX_Q_SCALES], scales, moved, &err);
    if (!status && t->micro && at.index[MX_Q_MICRO] >= 0)
      status = mx_writer_write(w, (size_t)at.index[MX_Q_MICRO], t->micro, t->scale_rows * t->scale_cols * 3, &err);
    if (!status && values.data) status = mx_writer_write(w, (size_t)at.index[MX_Q_DEQUANTIZED], values.data, values.n * 4, &err);
    free(scales);
  }
  if (!status && at.index[MX_Q_TENSOR_SCALE] >= 0)
    status = mx_writer_write(w, (size_t)at.index[MX_Q_TENSOR_SCALE], &t->tensor_scale, sizeof t->tensor_scale, &err);
  if (!status) {
    status = mx_writer_commit(w, &err);
    w = NULL;
  }
  if (w) mx_writer_abort(w);
  Py_END_ALLOW_THREADS;
  failed = status != MX_OK;
  if (failed) mxp_raise(status, NULL, err.text);
end:
  Py_XDECREF(shape);
  Py_XDECREF(type);
  mxp_array_release(&values);
  mxp_operand_release(&q);
  Py_DECREF(path);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* read_quantized(path) -> (codes, scales, micro, tensor_scale, spec, shape, dtype, preset); scales in row-major order whatever the file's layout. */
static PyObject *read_quantized(PyObject *module, PyObject *from) {
  mxp_state *state = mxp_state_of(module);
  PyObject *path = path_of(from), *out = NULL, *spec = NULL, *shape = NULL;
  mx_quantized q = {0};
  mx_error err;
  mx_status status;
  if (!path) return NULL;
  const char *name = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  status = mx_quantized_open(&q, name, &err);
  if (!status && (status = mx_file_check_digests(q.file, &err))) mx_quantized_close(&q);
  Py_END_ALLOW_THREADS;
  Py_DECREF(path);
  if (status) return mxp_raise(status, NULL, err.text);
  const mx_tensor *t = &q.tensor;
  mxp_parts filled = {0};
  PyObject *parts[3];
  int failed = mxp_parts_of(&filled, state, t, &q.spec) || !(spec = mxp_spec_new(state, &q.spec, NULL)) || !(shape = PyTuple_New(q.n_dims));
  for (int i = 0; !failed && i < q.n_dims; i++) {
    PyObject *length = PyLong_FromUnsignedLongLong(q.shape[i]);
    failed = !length || PyTuple_SetItem(shape, i, length);
  }
  mxp_parts_end(parts, &filled, failed);
  PyObject *scale = t->has_tensor_scale ? mxp_scalar(state, t->tensor_scale) : Py_NewRef(Py_None);
  if (!failed && scale)
    out = Py_BuildValue("(OOOOOOss)", parts[0], parts[1], parts[2] ? parts[2] : Py_None, scale, spec, shape,
                        q.dtype == MX_F16    ? "float16"
                        : q.dtype == MX_BF16 ? "bfloat16"
                                             : "float32",
                        q.preset ? q.preset : "");
  for (int i = 0; i < 3; i++) Py_XDECREF(parts[i]);
  Py_XDECREF(scale);
  Py_XDECREF(spec);
  Py_XDECREF(shape);
  mx_quantized_close(&q);
  return out;
}

PyMethodDef mxp_file_methods[] = {{"read_file", read_file, METH_O, "read_file(path)"},
                                  MXP_ROW("write_file", write_file, "write_file(path, tensors, meta)"),
                                  {"read_quantized", read_quantized, METH_O, "read_quantized(path)"},
                                  MXP_ROW("write_quantized", write_quantized, "write_quantized(path, q, preset, dequantized, layout, pad)"),
                                  {0}};
