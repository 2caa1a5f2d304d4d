/* Defines quantize, dequantize, hadamard, and the packings and layouts of codes and scales. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* Arrays of a quantised matrix, while they are filled. */
typedef struct made {
  mx_tensor t;
  mxp_parts parts;
} made;

static int make(made *m, mxp_state *state, size_t rows, size_t cols, const mx_spec *spec) {
  const mx_status status = mx_tensor_layout(&m->t, rows, cols, spec);
  if (status) {
    mxp_raise(status, "x", mx_status_text(status));
    return -1;
  }
  mx_tensor *t = &m->t;
  if (mxp_parts_make(&m->parts, state, t, spec)) return -1;
  t->codes = m->parts.codes.data;
  t->scales = m->parts.scales.data;
  t->micro = m->parts.micro.data;
  return 0;
}

static PyObject *shape_of(const mxp_array *x, int transposed, size_t rows, size_t cols) {
  if (transposed) return Py_BuildValue("(nn)", (Py_ssize_t)rows, (Py_ssize_t)cols);
  PyObject *shape = PyTuple_New(x->n_dims);
  for (int i = 0; shape && i < x->n_dims; i++) {
    PyObject *length = PyLong_FromSsize_t(x->shape[i]);
    if (!length || PyTuple_SetItem(shape, i, length)) {
      Py_CLEAR(shape);
      break;
    }
  }
  return shape;
}

/* Quantized(codes, scales, tensor_scale, spec, shape, dtype, micro) from what was made; takes the three arrays. */
static PyObject *quantized(mxp_state *state, made *m, PyObject *spec, PyObject *shape, const char *dtype, PyObject *like, int failed) {
  PyObject *parts[3], *out = NULL;
  mxp_parts_end(parts, &m->parts, failed);
  for (int i = 0; i < 3 && like && !PyErr_Occurred(); i++) parts[i] = mxp_like(state, parts[i], like);
  failed = failed || PyErr_Occurred(); /* `like` may have been refused: nothing is made while an exception is set */
  PyObject *type = failed ? NULL : PyUnicode_InternFromString(dtype);
  PyObject *scale = failed ? NULL : m->t.has_tensor_scale ? mxp_scalar(state, m->t.tensor_scale) : Py_NewRef(Py_None);
  if (parts[0] && parts[1] && type && scale && shape && !PyErr_Occurred())
    out = PyObject_CallFunctionObjArgs(state->quantized, parts[0], parts[1], scale, spec, shape, type, parts[2] ? parts[2] : Py_None, NULL);
  for (int i = 0; i < 3; i++) Py_XDECREF(parts[i]);
  Py_XDECREF(type);
  Py_XDECREF(scale);
  return out;
}

/* The random integers of sr.source=given: uint32, one for each element. */
static int given_bits(mx_spec *spec, mxp_array *bits, mxp_state *state, PyObject *from, size_t n) {
  if (mxp_array_get(bits, state, from, "bits")) return -1;
  if (!mxp_is(bits, MXP_UINT, 4)) {
    mxp_raise_dtype("bits", "dtype %s, expected uint32", bits->dtype);
    return -1;
  }
  if (bits->n != n) {
    mxp_raisef(MX_ERR_SHAPE, "bits", "%zu integers, expected one for each of the %zu elements of x", bits->n, n);
    return -1;
  }
  if (mxp_contiguous(bits)) return -1;
  spec->given_bits = (const uint32_t *)(const void *)bits->data;
  spec->sr_source = MX_SR_SOURCE_GIVEN;
  return 0;
}

/* A tensor scale that the caller gives, as --tensor-scale. */
static int given_scale(mx_spec *spec, PyObject *from) {
  float v;
  mx_error err;
  if (mxp_scalar_of(&v, from, "given_tensor_scale")) return -1;
  if (!(v - v == 0) || v == 0) {
    mxp_raisef(MX_ERR_ARG, "given_tensor_scale",
               "%R: expected a finite number that is not 0; set={'tensor.given': ...} is for kernels that are given it", from);
    return -1;
  }
  spec->tensor_given = 1;
  spec->tensor_given_value = v;
  const mx_status status = mx_spec_check(spec, &err);
  if (status) mxp_raise(status, "given_tensor_scale", err.text);
  return status ? -1 : 0;
}

static PyObject *quantize(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { X, PRESET, SPEC, GIVEN, SET, SEED, THREADS, BITS, TRANSPOSE, LIKE, COUNT };
  static const char *const names[] = {"x", "preset", "spec", "given_tensor_scale", "set", "seed", "threads", "bits", "transpose", "like", NULL};
  PyObject *a[COUNT], *spec = NULL, *shape = NULL, *out = NULL;
  mxp_state *state = mxp_state_of(module);
  mxp_array x = {0}, bits = {0};
  made m = {0};
  mx_exec exec = {0};
  mx_error err;
  size_t rows, cols, ld;
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(a, "quantize", names, 2, args, n_args, keywords)) return NULL;
  if (!a[X]) return PyErr_Format(PyExc_TypeError, "quantize() needs x, an array");
  if (mxp_threads(&exec.n_threads, a[THREADS]) || !(spec = mxp_spec_of(state, a[PRESET], a[SPEC], a[SET], a[SEED]))) return NULL;
  mx_spec how = *mxp_spec_in(spec);
  int turn;
  if (mxp_flag(&turn, a[TRANSPOSE], "transpose") || mxp_array_get(&x, state, a[X], "x")) goto end;
  int type = mxp_is(&x, MXP_FLOAT, 4)    ? MX_INPUT_DTYPE_FLOAT32
             : mxp_is(&x, MXP_FLOAT, 2)  ? MX_INPUT_DTYPE_FLOAT16
             : mxp_is(&x, MXP_BFLOAT, 2) ? MX_INPUT_DTYPE_BFLOAT16
                                         : -1;
  if (type < 0) {
    mxp_raise_dtype("x", "dtype %s, expected float32, float16 or bfloat16", x.dtype);
    goto end;
  }
  const char *dtype = type == MX_INPUT_DTYPE_FLOAT32 ? "float32" : type == MX_INPUT_DTYPE_FLOAT16 ? "float16" : "bfloat16";
  if (mxp_matrix(&x, &rows, &cols, &ld, "x")) goto end;
  const void *from = x.data;
  if (turn && type != MX_INPUT_DTYPE_FLOAT32) {
    const float *wide;
    if (mxp_floats(&wide, &x, "x")) goto end;
    from = wide;
    ld = cols;
    type = MX_INPUT_DTYPE_FLOAT32;
  }
  if (a[GIVEN] && given_scale(&how, a[GIVEN])) goto end;
  if (a[BITS] && given_bits(&how, &bits, state, a[BITS], x.n)) goto end;
  if (make(&m, state, turn ? cols : rows, turn ? rows : cols, &how)) goto end;
  MXP_WORK
  status = turn                             ? mx_quantize_transposed(&m.t, from, rows, cols, ld, &how, &exec, &err)
           : type == MX_INPUT_DTYPE_FLOAT32 ? mx_quantize(&m.t, from, rows, cols, ld, &how, &exec, &err)
                                            : mx_quantize_16(&m.t, from, type, rows, cols, ld, &how, &exec, &err);
  MXP_WORK_END
  if (status) {
    mxp_raise(status, "x", err.text);
    goto end;
  }
  if (a[GIVEN] || a[BITS]) {
    PyObject *changed = mxp_spec_new(state, &how, spec);
    Py_DECREF(spec);
    spec = changed;
    if (!spec) goto end;
  }
  shape = shape_of(&x, turn, cols, rows);
end:
  out = quantized(state, &m, spec, shape, status ? "" : dtype, a[LIKE], status != MX_OK || !spec || !shape);
  Py_XDECREF(shape);
  Py_XDECREF(spec);
  mxp_array_release(&x);
  mxp_array_release(&bits);
  return out;
}

static int get_part(mxp_operand *o, int i, mxp_state *state, PyObject *quantized, const char *name, const char *argument) {
  o->parts[i] = PyObject_GetAttrString(quantized, name);
  if (!o->parts[i]) return -1;
  if (o->parts[i] == Py_None) return 0;
  return mxp_array_get(&o->arrays[i], state, o->parts[i], argument) || mxp_contiguous(&o->arrays[i]) ? -1 : 0;
}

static int has_bytes(const mxp_array *a, size_t n, const char *argument, const char *what) {
  if (a->n * a->item == n) return 1;
  mxp_raisef(MX_ERR_SHAPE, argument, "%s hold %zu bytes, expected %zu as the spec and the shape require", what, a->n * a->item, n);
  return 0;
}

int mxp_operand_get(mxp_operand *out, mxp_state *state, PyObject *quantized, const char *argument) {
  memset(out, 0, sizeof *out);
  PyObject *spec = NULL, *rows = NULL, *cols = NULL, *scale = NULL;
  uint64_t extent[2];
  int failed = -1;
  const int is = PyObject_IsInstance(quantized, state->quantized);
  if (is <= 0) {
    if (!is) mxp_raise_dtype(argument, "%R: expected a Quantized", Py_TYPE(quantized));
    return -1;
  }
  if (!(spec = out->parts[3] = PyObject_GetAttrString(quantized, "spec"))) goto end;
  if (!(rows = PyObject_GetAttrString(quantized, "rows")) || !(cols = PyObject_GetAttrString(quantized, "cols")) ||
      mxp_unsigned(&extent[0], rows, "rows", SIZE_MAX / 8) || mxp_unsigned(&extent[1], cols, "cols", SIZE_MAX / 8)) { /* somebody changed it */
    PyErr_Clear();
    mxp_raise(MX_ERR_SHAPE, argument, "its shape is no tuple of lengths");
    goto end;
  }
  if (!(scale = PyObject_GetAttrString(quantized, "tensor_scale"))) goto end;
  if (!PyObject_TypeCheck(spec, state->spec_base)) {
    mxp_raise_dtype(argument, "its spec is %R, expected a Spec", Py_TYPE(spec));
    goto end;
  }
  out->spec = mxp_spec_in(spec);
  if (get_part(out, 0, state, quantized, "codes", argument) || get_part(out, 1, state, quantized, "scales", argument) ||
      get_part(out, 2, state, quantized, "micro", argument))
    goto end;
  mx_tensor *t = &out->tensor;
  const mx_status status = mx_tensor_layout(t, extent[0], extent[1], out->spec);
  if (status) {
    mxp_raise(status, argument, mx_status_text(status));
    goto end;
  }
  if (!has_bytes(&out->arrays[0], t->rows * t->code_stride, argument, "its codes") ||
      !has_bytes(&out->arrays[1], t->scale_rows * t->scale_cols * t->scale_bytes, argument, "its scales") ||
      (out->spec->scale_rule == MX_SCALE_RULE_HIF4 &&
       !has_bytes(&out->arrays[2], t->scale_rows * t->scale_cols * 3, argument, "its micro-scales")))
    goto end;
  t->codes = (uint8_t *)(uintptr_t)out->arrays[0].data; /* read only */
  t->scales = (uint8_t *)(uintptr_t)out->arrays[1].data;
  t->micro = (uint8_t *)(uintptr_t)out->arrays[2].data;
  if (scale != Py_None && mxp_scalar_of(&t->tensor_scale, scale, "tensor_scale")) goto end;
  if (t->has_tensor_scale && scale == Py_None) {
    mxp_raise(MX_ERR_ARG, argument, "it has no tensor scale, which its spec requires");
    goto end;
  }
  failed = 0;
end:
  Py_XDECREF(rows);
  Py_XDECREF(cols);
  Py_XDECREF(scale);
  return failed;
}

void mxp_operand_release(mxp_operand *o) {
  for (int i = 0; i < 3; i++) mxp_array_release(&o->arrays[i]);
  for (int i = 0; i < 4; i++) Py_XDECREF(o->parts[i]);
  memset(o, 0, sizeof *o);
}

static int get_shape(Py_ssize_t *shape, int *n_dims, PyObject *from) {
  *n_dims = (int)PyTuple_Size(from);
  if (*n_dims < 0 || *n_dims > MXP_MAX_DIMS) {
    PyErr_SetString(PyExc_TypeError, "shape: expected a tuple of at most 32 lengths");
    return -1;
  }
  for (int i = 0; i < *n_dims; i++) {
    shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(from, i));
    if (shape[i] < 0) {
      if (!PyErr_Occurred()) mxp_raise(MX_ERR_SHAPE, "shape", "a negative length");
      return -1;
    }
  }
  return 0;
}

/* dequantize(quantized, dtype, threads): values in the shape of the input; bfloat16 as uint16 bits. */
static PyObject *dequantize(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { Q, DTYPE, THREADS, COUNT };
  static const char *const names[] = {"q", "dtype", "threads", NULL};
  PyObject *a[COUNT], *shape = NULL, *out = NULL;
  mxp_state *state = mxp_state_of(module);
  mxp_operand q;
  mxp_result values = {0};
  mx_exec exec = {0};
  Py_ssize_t extent[MXP_MAX_DIMS];
  int n_dims;
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(a, "dequantize", names, 3, args, n_args, keywords)) return NULL;
  if (!a[Q]) return PyErr_Format(PyExc_TypeError, "dequantize() needs q, a Quantized");
  const char *dtype = a[DTYPE] ? mxp_text(a[DTYPE], "dtype") : "float32";
  if (!dtype || mxp_threads(&exec.n_threads, a[THREADS])) return NULL;
  const int narrow = !strcmp(dtype, "bfloat16");
  if (!narrow && strcmp(dtype, "float32")) return mxp_raisef(MX_ERR_ARG, "dtype", "'%s': expected float32 or bfloat16", dtype);
  if (mxp_operand_get(&q, state, a[Q], "q") || !(shape = PyObject_GetAttrString(a[Q], "shape")) || get_shape(extent, &n_dims, shape) ||
      mxp_result_make(&values, state, narrow ? MXP_U16 : MXP_F32, n_dims, extent))
    goto end;
  if ((size_t)values.view.len != q.tensor.rows * q.tensor.cols * (narrow ? 2 : 4)) {
    mxp_raise(MX_ERR_SHAPE, "q", "its shape does not have as many elements as its rows and columns");
    goto end;
  }
  MXP_WORK
  status = narrow ? mx_dequantize_bf16(values.data, q.tensor.cols, &q.tensor, q.spec, &exec)
                  : mx_dequantize(values.data, q.tensor.cols, &q.tensor, q.spec, &exec);
  MXP_WORK_END
  if (status) mxp_raise(status, "q", mx_status_text(status));
end:
  out = mxp_result_end(&values, status != MX_OK);
  Py_XDECREF(shape);
  mxp_operand_release(&q);
  return out;
}

/* hadamard(x, size, sign, signs, seed, like): rows rotated in tiles along the last axis. */
static PyObject *hadamard(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { X, SIZE, SIGN, SIGNS, SEED, LIKE, COUNT };
  static const char *const names[] = {"x", "size", "sign", "signs", "seed", "like", NULL};
  PyObject *a[COUNT], *out = NULL;
  mxp_state *state = mxp_state_of(module);
  mxp_array x = {0};
  mxp_result values = {0};
  mx_error err;
  mx_spec spec = {0};
  uint64_t size = 16, seed = 0;
  size_t rows, cols, ld;
  const float *from;
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(a, "hadamard", names, 2, args, n_args, keywords)) return NULL;
  if (!a[X]) return PyErr_Format(PyExc_TypeError, "hadamard() needs x, an array");
  if ((a[SIZE] && mxp_unsigned(&size, a[SIZE], "size", 1024)) || (a[SEED] && mxp_unsigned(&seed, a[SEED], "seed", UINT64_MAX))) return NULL;
  if (size < 2 || (size & (size - 1)))
    return mxp_raisef(MX_ERR_ARG, "size", "%llu: expected a power of two from 2 to 1024", (unsigned long long)size);
  const char *key[2] = {"had.sign", "had.signs"};
  for (int i = 0; i < 2; i++) {
    PyObject *value = a[SIGN + i];
    const char *text = value ? mxp_text(value, names[SIGN + i]) : NULL;
    if (value && !text) return NULL;
    if (text && (status = mx_spec_set(&spec, key[i], text, &err))) return mxp_raise(status, names[SIGN + i], err.text);
  }
  status = MX_ERR_ARG;
  if (mxp_array_get(&x, state, a[X], "x") || mxp_floats(&from, &x, "x")) goto end;
  if (mxp_matrix(&x, &rows, &cols, &ld, "x") || mxp_result_make(&values, state, MXP_F32, x.n_dims, x.shape)) goto end;
  MXP_WORK
  status = mx_hadamard(values.data, cols, from, rows, cols, cols, (unsigned)size, spec.had_sign, spec.had_signs, seed);
  MXP_WORK_END
  if (status) mxp_raise(status, "x", mx_status_text(status));
end:
  out = mxp_like(state, mxp_result_end(&values, status != MX_OK), a[LIKE]);
  mxp_array_release(&x);
  return out;
}

/* unpack_codes(quantized): one code an element, uint8, uint16 or uint32. */
static PyObject *unpack_codes(PyObject *module, PyObject *from) {
  mxp_state *state = mxp_state_of(module);
  mxp_operand q;
  mxp_result codes = {0};
  int failed = 1;
  if (!mxp_operand_get(&q, state, from, "q")) {
    const mx_tensor *t = &q.tensor;
    const Py_ssize_t shape[2] = {(Py_ssize_t)t->rows, (Py_ssize_t)t->cols};
    const int narrow = mx_elem_format(q.spec->elem)->bits <= 8 && !mx_spec_is_plain(q.spec);
    uint32_t *wide = narrow ? malloc(t->rows * t->cols * sizeof *wide + 1) : NULL;
    if (narrow && !wide) PyErr_NoMemory();
    if ((!narrow || wide) && !mxp_result_make(&codes, state, narrow ? MXP_U8 : MXP_U32, 2, shape)) {
      mx_unpack_codes(narrow ? wide : codes.data, t, q.spec);
      for (size_t i = 0; narrow && i < t->rows * t->cols; i++) ((uint8_t *)codes.data)[i] = (uint8_t)wide[i];
      failed = 0;
    }
    free(wide);
  }
  mxp_operand_release(&q);
  return mxp_result_end(&codes, failed);
}

/* pack_codes(codes, spec): uint8 [rows][cols], one an element, as quantize() packs them, with codes of +0 in the padding. */
static PyObject *pack_codes(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  static const char *const names[] = {"codes", "spec", NULL};
  mxp_state *state = mxp_state_of(module);
  PyObject *a[2];
  mxp_array codes = {0};
  mxp_result packed = {0};
  size_t rows, cols, ld, block_rows, block;
  mx_tensor t;
  int failed = 1;
  if (mxp_arguments(a, "pack_codes", names, 2, args, n_args, keywords)) return NULL;
  if (!a[0] || !a[1] || !PyObject_TypeCheck(a[1], state->spec_base))
    return PyErr_Format(PyExc_TypeError, "pack_codes() needs codes and a Spec");
  const mx_spec *spec = mxp_spec_in(a[1]);
  uint8_t *row = NULL;
  if (mxp_array_get(&codes, state, a[0], "codes") || mxp_contiguous(&codes) || mxp_matrix(&codes, &rows, &cols, &ld, "codes")) goto end;
  if (codes.item != 1 || mx_elem_format(spec->elem)->bits > 8) {
    mxp_raise_dtype("codes", "dtype %s, expected one byte a code", codes.dtype);
    goto end;
  }
  if (mx_tensor_layout(&t, rows, cols, spec)) {
    mxp_raise(MX_ERR_SHAPE, "codes", "the shape does not fit the spec");
    goto end;
  }
  mx_spec_block(spec, rows, cols, &block_rows, &block);
  const Py_ssize_t shape[2] = {(Py_ssize_t)rows, (Py_ssize_t)t.code_stride};
  if (!(row = calloc(t.cols_padded + 1, 1))) {
    PyErr_NoMemory();
    goto end;
  }
  if (mxp_result_make(&packed, state, MXP_U8, 2, shape)) goto end;
  const unsigned bits = mx_elem_format(spec->elem)->bits;
  for (size_t r = 0; r < rows; r++) {
    memcpy(row, codes.data + r * cols, cols);
    for (size_t c = 0; c < cols; c++)
      if (row[c] >> bits) {
        mxp_raisef(MX_ERR_DATA, "codes", "row %zu, column %zu: 0x%02x, expected a code of %u bits", r, c, row[c], bits);
        goto end;
      }
    uint8_t *to = (uint8_t *)packed.data + r * t.code_stride;
    if (bits == 4)
      mx_pack4(to, row, t.cols_padded, spec->nibble, block);
    else
      memcpy(to, row, t.cols_padded);
  }
  failed = 0;
end:
  free(row);
  mxp_array_release(&codes);
  return mxp_result_end(&packed, failed);
}

/* layout_scales(scales, layout, pad, back, rows, kb): row-major scales [rows][kb] to a layout, flat; or back. */
static PyObject *layout_scales(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { SCALES, LAYOUT, PAD, BACK, ROWS, KB, COUNT };
  static const char *const names[] = {"scales", "layout", "pad", "back", "rows", "kb", NULL};
  mxp_state *state = mxp_state_of(module);
  PyObject *a[COUNT];
  mxp_array scales = {0};
  mxp_result out = {0};
  uint64_t pad = 0, extent[2] = {0, 0};
  size_t rows, kb, ld;
  int failed = 1;
  if (mxp_arguments(a, "layout_scales", names, 6, args, n_args, keywords)) return NULL;
  if (!a[SCALES] || !a[LAYOUT]) return PyErr_Format(PyExc_TypeError, "layout_scales() needs scales and layout");
  const char *name = mxp_text(a[LAYOUT], "layout");
  if (!name || (a[PAD] && mxp_unsigned(&pad, a[PAD], "pad", 255)) || (a[ROWS] && mxp_unsigned(&extent[0], a[ROWS], "rows", SIZE_MAX / 8)) ||
      (a[KB] && mxp_unsigned(&extent[1], a[KB], "kb", SIZE_MAX / 8)))
    return NULL;
  const int layout = mx_layout_find(name);
  int back;
  if (mxp_flag(&back, a[BACK], "back")) return NULL;
  if (layout < 0) {
    const char *all[MX_LAYOUT_COUNT + 1] = {NULL};
    char near[200];
    for (int i = 0; i < MX_LAYOUT_COUNT; i++) all[i] = mx_layout_name((mx_layout)i);
    mx_nearest(near, sizeof near, name, mx_name_in_array, all);
    return mxp_raisef(MX_ERR_KEY, "layout", "'%s' is unknown, nearest: %s", name, near);
  }
  if (mxp_array_get(&scales, state, a[SCALES], "scales") || mxp_contiguous(&scales)) goto end;
  if (scales.item != 1) {
    mxp_raise_dtype("scales", "dtype %s, expected one byte a scale", scales.dtype);
    goto end;
  }
  if (back)
    rows = extent[0], kb = extent[1];
  else if (mxp_matrix(&scales, &rows, &kb, &ld, "scales"))
    goto end;
  const size_t size = mx_layout_size((mx_layout)layout, rows, kb);
  if (size > PY_SSIZE_T_MAX || (back && size != scales.n)) {
    mxp_raisef(MX_ERR_SHAPE, "scales", "%zu bytes, expected %zu of %zu x %zu scales in layout %s", scales.n, size, rows, kb, name);
    goto end;
  }
  const Py_ssize_t flat[1] = {(Py_ssize_t)size}, matrix[2] = {(Py_ssize_t)rows, (Py_ssize_t)kb};
  if (mxp_result_make(&out, state, MXP_U8, back ? 2 : 1, back ? matrix : flat)) goto end;
  if (back)
    mx_layout_unpack(out.data, (mx_layout)layout, scales.data, rows, kb);
  else
    mx_layout_pack(out.data, (mx_layout)layout, scales.data, rows, kb, (uint8_t)pad);
  failed = 0;
end:
  mxp_array_release(&scales);
  return mxp_result_end(&out, failed);
}

PyMethodDef mxp_quantize_methods[] = {
    MXP_ROW(
        "quantize", quantize,
        "quantize(x, preset=None, *, spec=None, given_tensor_scale=None, set=None, seed=None, threads=0, bits=None, transpose=False, "
        "like=None)\n--\n\n"
        "Quantise an array into blocks along its last axis, to the byte as `mxgold quantize` does.\n\n"
        "x: float32, float16 or bfloat16 of any shape [..., K], from NumPy, PyTorch, JAX, CuPy or ml_dtypes; all axes but the last are rows.\n"
        "preset: a name of mxgold.presets(); spec: a Spec, or what Spec() takes, instead. set: keys on top, {'elem.round': 'sr'} or "
        "'elem.round=sr'.\n"
        "seed: of stochastic rounding. given_tensor_scale: a calibrated tensor scale in the preset's stored convention, instead of max|x|.\n"
        "bits: uint32, one an element, random integers for sr.source=given. transpose: quantise the transpose of x seen as a matrix.\n"
        "threads: 0 for all processors; no byte depends on it. like: an array, a module or a name whose library the results are "
        "made for; NumPy by default.\n\n"
        "Returns a Quantized. Raises SpecError, ShapeError, DataError (a NaN that the spec refuses: .index), DtypeError.\n"
        "The GIL is released. float32 rows are read in place, whatever their stride.\n\n"
        ">>> import numpy as np, mxgold\n"
        ">>> q = mxgold.quantize(np.arange(32, dtype=np.float32)[None], preset='ocp-mxfp4')\n"
        ">>> q.scales\n"
        "array([[129]], dtype=uint8)\n"
        ">>> q.codes[0, :4]\n"
        "array([ 0, 33, 34, 67], dtype=uint8)"),
    MXP_ROW("dequantize", dequantize, "dequantize(q, dtype, threads)"),
    MXP_ROW("hadamard", hadamard,
            "hadamard(x, size=16, *, sign=None, signs=None, seed=None, like=None)\n--\n\n"
            "Rotate each row in tiles of `size` along the last axis, as a spec with had.size does before it quantises.\n\n"
            "x: float32, float16 or bfloat16 [..., K]. size: a power of two from 2 to 1024. sign: a choice of had.sign ('none', 'fixed', "
            "'fresh').\n"
            "signs: digits 0 and 1, one an element of a tile, 1 negates. seed: of fresh signs. like: as quantize().\n"
            "Returns float32 in the shape of x. Without signs the rotation is its own inverse, up to rounding."),
    {"unpack_codes", unpack_codes, METH_O, "unpack_codes(q): one code an element"},
    MXP_ROW("pack_codes", pack_codes, "pack_codes(codes, spec): as quantize() packs them"),
    MXP_ROW("layout_scales", layout_scales, "layout_scales(scales, layout, pad, back, rows, kb)"),
    {0}};
