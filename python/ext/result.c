/* Makes results: NumPy arrays from numpy.empty(), filled through their buffers. */
#include <string.h>

#include "ext.h"

int mxp_result_make(mxp_result *out, mxp_state *state, mxp_out dtype, int n_dims, const Py_ssize_t *shape) {
  PyObject *extent = n_dims == 1 ? PyLong_FromSsize_t(shape[0]) : PyTuple_New(n_dims);
  out->array = NULL;
  out->data = NULL;
  for (int i = 0; extent && n_dims != 1 && i < n_dims; i++) {
    PyObject *length = PyLong_FromSsize_t(shape[i]);
    if (!length || PyTuple_SetItem(extent, i, length)) {
      Py_DECREF(extent);
      return -1;
    }
  }
  if (!extent) return -1;
  out->array = PyObject_CallFunctionObjArgs(state->empty, extent, state->dtypes[dtype], NULL);
  Py_DECREF(extent);
  if (!out->array) return -1;
  if (PyObject_GetBuffer(out->array, &out->view, PyBUF_WRITABLE)) {
    Py_DECREF(out->array);
    out->array = NULL;
    return -1;
  }
  out->data = out->view.buf;
  return 0;
}

PyObject *mxp_result_end(mxp_result *out, int failed) {
  PyObject *array = out->array;
  if (!array) return NULL;
  PyBuffer_Release(&out->view);
  out->array = NULL;
  if (!failed) return array;
  Py_DECREF(array);
  return NULL;
}

PyObject *mxp_scalar(mxp_state *state, float value) {
  mxp_result r;
  if (mxp_result_make(&r, state, MXP_F32, 0, NULL)) return NULL;
  memcpy(r.data, &value, sizeof value);
  return mxp_result_end(&r, 0);
}

int mxp_scalar_of(float *out, PyObject *from, const char *argument) {
  Py_buffer view;
  if (PyObject_CheckBuffer(from)) {
    if (PyObject_GetBuffer(from, &view, PyBUF_RECORDS_RO)) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "%s: expected a number, not %R", argument, Py_TYPE(from));
      return -1;
    }
    const int is_float = view.len == sizeof *out && view.format && !strcmp(view.format, "f");
    if (is_float) memcpy(out, view.buf, sizeof *out);
    PyBuffer_Release(&view);
    if (is_float) return 0;
  }
  return mxp_float(out, from, argument);
}

PyObject *mxp_like(mxp_state *state, PyObject *result, PyObject *like) {
  if (!like || !result) return result;
  PyObject *other = PyObject_CallFunctionObjArgs(state->as_like, result, like, NULL);
  Py_DECREF(result);
  return other;
}

static mxp_out scale_type(const mx_tensor *t, const mx_spec *spec) {
  if (t->scale_bytes == 1) return MXP_U8;
  return t->scale_bytes == 2 ? MXP_U16 : spec->scale == MX_SCALE_FP32 ? MXP_F32 : MXP_U32;
}

int mxp_parts_make(mxp_parts *out, mxp_state *state, const mx_tensor *t, const mx_spec *spec) {
  const int plain = mx_spec_is_plain(spec);
  const Py_ssize_t codes[2] = {(Py_ssize_t)t->rows, (Py_ssize_t)(plain ? t->cols : t->code_stride)},
                   scales[3] = {(Py_ssize_t)t->scale_rows, (Py_ssize_t)t->scale_cols, 3};
  *out = (mxp_parts){0};
  if (mxp_result_make(&out->codes, state, plain ? MXP_F32 : MXP_U8, 2, codes) ||
      mxp_result_make(&out->scales, state, scale_type(t, spec), 2, scales) ||
      (spec->scale_rule == MX_SCALE_RULE_HIF4 && mxp_result_make(&out->micro, state, MXP_U8, 3, scales)))
    return -1;
  return 0;
}

static void fill(mxp_result *to, const void *from) {
  if (to->view.len) memcpy(to->data, from, (size_t)to->view.len);
}

int mxp_parts_of(mxp_parts *out, mxp_state *state, const mx_tensor *t, const mx_spec *spec) {
  if (mxp_parts_make(out, state, t, spec)) return -1;
  fill(&out->codes, t->codes);
  fill(&out->scales, t->scales);
  if (t->micro) fill(&out->micro, t->micro);
  return 0;
}

void mxp_parts_end(PyObject *out[3], mxp_parts *parts, int failed) {
  out[0] = mxp_result_end(&parts->codes, failed);
  out[1] = mxp_result_end(&parts->scales, failed);
  out[2] = mxp_result_end(&parts->micro, failed);
}
