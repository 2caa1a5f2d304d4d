/* Reads the arguments of calls: a parser of names, since the stable ABI has none for METH_FASTCALL, and readers of single values. */
#include <string.h>

#include "ext.h"

static int place_of(PyObject *keyword, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (!PyUnicode_CompareWithASCIIString(keyword, names[i])) return i;
  return -1;
}

static void unknown(const char *function, PyObject *keyword, const char *const *names) {
  char near[160];
  Py_ssize_t size;
  const char *text = PyUnicode_AsUTF8AndSize(keyword, &size);
  if (!text) PyErr_Clear(); /* a half of a surrogate pair */
  mx_nearest(near, sizeof near, text ? text : "", mx_name_in_array, names);
  PyErr_Format(PyExc_TypeError, "%s() has no argument '%U', nearest: %s", function, keyword, near);
}

int mxp_arguments(PyObject **out, const char *function, const char *const *names, Py_ssize_t positional, PyObject *const *args, Py_ssize_t n,
                  PyObject *keywords) {
  const Py_ssize_t n_keywords = keywords ? PyTuple_Size(keywords) : 0;
  int count = 0;
  while (names[count]) out[count++] = NULL;
  if (n > positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments without their names (%zd given)", function, positional, n);
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) out[i] = args[i];
  for (Py_ssize_t i = 0; i < n_keywords; i++) {
    PyObject *keyword = PyTuple_GetItem(keywords, i);
    const int at = place_of(keyword, names);
    if (at < 0) {
      unknown(function, keyword, names);
      return -1;
    }
    if (out[at]) {
      PyErr_Format(PyExc_TypeError, "%s() got argument '%s' twice", function, names[at]);
      return -1;
    }
    out[at] = args[n + i];
  }
  for (int i = 0; i < count; i++)
    if (out[i] == Py_None) out[i] = NULL;
  return 0;
}

const char *mxp_text(PyObject *from, const char *argument) {
  if (!PyUnicode_Check(from)) {
    PyErr_Format(PyExc_TypeError, "%s: expected a str, not %R", argument, Py_TYPE(from));
    return NULL;
  }
  Py_ssize_t size;
  const char *text = PyUnicode_AsUTF8AndSize(from, &size);
  if (!text) { /* a half of a surrogate pair */
    PyErr_Clear();
    mxp_raise(MX_ERR_ARG, argument, "text that cannot be encoded as UTF-8");
  } else if (strlen(text) != (size_t)size) {
    mxp_raise(MX_ERR_ARG, argument, "a NUL in the text");
    return NULL;
  }
  return text;
}

int mxp_unsigned(uint64_t *out, PyObject *from, const char *argument, uint64_t most) {
  PyObject *index = PyNumber_Index(from);
  if (!index) {
    PyErr_Format(PyExc_TypeError, "%s: expected an int, not %R", argument, Py_TYPE(from));
    return -1;
  }
  *out = PyLong_AsUnsignedLongLong(index);
  const int failed = PyErr_Occurred() != NULL;
  if (failed) PyErr_Clear();
  if (failed || *out > most) {
    mxp_raisef(MX_ERR_ARG, argument, "%R: expected an int from 0 to %llu", index, (unsigned long long)most);
    Py_DECREF(index);
    return -1;
  }
  Py_DECREF(index);
  return 0;
}

int mxp_float(float *out, PyObject *from, const char *argument) {
  const double v = PyFloat_AsDouble(from);
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError, "%s: expected a number, not %R", argument, Py_TYPE(from));
    return -1;
  }
  *out = (float)v;
  return 0;
}

int mxp_flag(int *out, PyObject *from, const char *argument) {
  *out = from && !PyUnicode_Check(from) ? PyObject_IsTrue(from) : from ? -1 : 0;
  if (*out >= 0) return 0;
  PyErr_Clear(); /* an array of several values says what it likes */
  PyErr_Format(PyExc_TypeError, "%s: expected True or False, not %R", argument, Py_TYPE(from));
  return -1;
}

int mxp_threads(int *out, PyObject *from) {
  uint64_t n = 0;
  if (from && mxp_unsigned(&n, from, "threads", 1 << 20)) return -1;
  *out = (int)n;
  return 0;
}
