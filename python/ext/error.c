/* Turns a status of the library into an exception of mxgold._errors. */
#include <stdarg.h>
#include <string.h>

#include "ext.h"

/* mxgold._errors.make(kind, argument, text) gives the exception; kind is a status or -1 for a wrong dtype. */
static PyObject *raise_text(int kind, const char *argument, PyObject *text) {
  PyObject *module = text ? PyImport_ImportModule("mxgold._errors") : NULL;
  PyObject *error = module ? PyObject_CallMethod(module, "make", "izO", kind, argument, text) : NULL;
  if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
  Py_XDECREF(module);
  Py_XDECREF(text);
  return NULL;
}

PyObject *mxp_raise(mx_status status, const char *argument, const char *text) {
  return raise_text(status, argument, PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
}

PyObject *mxp_raisef(mx_status status, const char *argument, const char *format, ...) {
  va_list list;
  va_start(list, format);
  PyObject *text = PyUnicode_FromFormatV(format, list);
  va_end(list);
  return raise_text(status, argument, text);
}

PyObject *mxp_raise_dtype(const char *argument, const char *format, ...) {
  va_list list;
  va_start(list, format);
  PyObject *text = PyUnicode_FromFormatV(format, list);
  va_end(list);
  return raise_text(-1, argument, text);
}
