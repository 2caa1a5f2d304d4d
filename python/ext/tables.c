/* Gives the library's tables (presets, formats, layouts, keys, suites, recipes, models, bugs) as rows of plain objects. */
#include <math.h>
#include <string.h>

#include "ext.h"

static int add(PyObject *list, PyObject *row) {
  const int failed = !row || PyList_Append(list, row);
  Py_XDECREF(row);
  return failed;
}

/* presets() -> [(name, keys, alias of, status, source), ...] */
static PyObject *presets(PyObject *module, PyObject *unused) {
  static const char *const status[] = {"run", "standard", "read"};
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (size_t i = 0; list && i < mx_preset_count(); i++) {
    const mx_preset *p = mx_preset_at(i);
    if (add(list, Py_BuildValue("(szzss)", p->name, p->keys, p->alias_of, status[p->status], p->source))) Py_CLEAR(list);
  }
  return list;
}

static PyObject *format_row(const mx_format *f, const char *table) {
  static const char *const kinds[] = {"float", "exp", "int", "fnuz", "none"};
  const int none = f->kind == MX_KIND_NONE;
  return Py_BuildValue("(sssiiiiidds)", f->name, table, kinds[f->kind], (int)f->bits, (int)f->sign_bits, (int)f->exp_bits, (int)f->man_bits,
                       (int)f->bias, none ? (double)INFINITY : mx_format_max(f), none ? 0. : mx_format_min(f), f->source);
}

/* formats() -> [(name, table, kind, bits, sign, exponent and mantissa bits, bias, largest, smallest, source), ...] */
static PyObject *formats(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (int i = 0; list && i < MX_ELEM_COUNT; i++)
    if (add(list, format_row(mx_elem_format(i), "elements"))) Py_CLEAR(list);
  for (int i = 0; list && i < MX_SCALE_COUNT; i++)
    if (add(list, format_row(mx_scale_format(i), "scales"))) Py_CLEAR(list);
  for (int i = 0; list && i < MX_OPERAND_COUNT; i++)
    if (add(list, format_row(mx_operand_format(i), "operands"))) Py_CLEAR(list);
  return list;
}

/* layouts() -> [(name, row_pad, k_pad, source), ...] */
static PyObject *layouts(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (int i = 0; list && i < MX_LAYOUT_COUNT; i++) {
    const mx_layout_row *l = mx_layout_row_at(i);
    if (add(list, Py_BuildValue("(snns)", l->name, (Py_ssize_t)l->row_pad, (Py_ssize_t)l->k_pad, l->source))) Py_CLEAR(list);
  }
  return list;
}

/* keys() -> [(name, meaning, ((choice, meaning), ...)), ...] */
static PyObject *keys(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (size_t i = 0; list && mx_key_name(i); i++) {
    PyObject *choices = PyList_New(0);
    const char *name, *doc;
    int number;
    for (size_t row = 0; choices && (name = mx_key_choice(i, row, &doc, &number)); row++)
      if (add(choices, Py_BuildValue("(ss)", name, doc ? doc : ""))) Py_CLEAR(choices);
    PyObject *frozen = choices ? PyList_AsTuple(choices) : NULL;
    Py_XDECREF(choices);
    if (!frozen || add(list, Py_BuildValue("(ssN)", mx_key_name(i), mx_key_doc(i), frozen))) Py_CLEAR(list);
  }
  return list;
}

/* suites() -> [(name, meaning), ...] */
static PyObject *suites(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (int i = 0; list && i < MX_SUITE_COUNT; i++)
    if (add(list, Py_BuildValue("(ss)", mx_suite_name(i), mx_suite_doc(i)))) Py_CLEAR(list);
  return list;
}

/* recipes() -> [(name, source), ...] */
static PyObject *recipes(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (size_t i = 0; list && i < mx_recipe_count(); i++)
    if (add(list, Py_BuildValue("(ss)", mx_recipe_at(i)->name, mx_recipe_at(i)->source))) Py_CLEAR(list);
  return list;
}

/* models() -> names of accumulation models, rows and instructions, for accum= and model=. */
static PyObject *models(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  mx_mma_model m;
  (void)module, (void)unused;
  for (int i = 0; list && mx_gemm_model_name(i); i++)
    if (i != MX_GEMM_FUSED && add(list, PyUnicode_FromString(mx_gemm_model_name(i)))) Py_CLEAR(list);
  for (size_t i = 0; list && !mx_mma_model_at(&m, i); i++)
    if (add(list, PyUnicode_FromString(m.name))) Py_CLEAR(list);
  return list;
}

/* bugs() -> names of the known bugs, some of them several times. */
static PyObject *bugs(PyObject *module, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (size_t i = 0; list && mx_bug_name_at(i); i++)
    if (add(list, PyUnicode_FromString(mx_bug_name_at(i)))) Py_CLEAR(list);
  return list;
}

/* How many threads a call with threads=n uses: 1 in a child of fork() whose parent had several. */
static PyObject *thread_count(PyObject *module, PyObject *from) {
  uint64_t n;
  (void)module;
  if (mxp_unsigned(&n, from, "threads", 1 << 20)) return NULL;
  return PyLong_FromLong(mx_thread_count((int)n));
}

PyMethodDef mxp_table_methods[] = {{"presets", presets, METH_NOARGS, NULL},      {"formats", formats, METH_NOARGS, NULL},
                                   {"layouts", layouts, METH_NOARGS, NULL},      {"keys", keys, METH_NOARGS, NULL},
                                   {"suites", suites, METH_NOARGS, NULL},        {"recipes", recipes, METH_NOARGS, NULL},
                                   {"models", models, METH_NOARGS, NULL},        {"bugs", bugs, METH_NOARGS, NULL},
                                   {"thread_count", thread_count, METH_O, NULL}, {0}};
