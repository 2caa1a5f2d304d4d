/* Defines the module mxgold._core, its state, and what Python gives it at import. */
#include "ext.h"

mxp_state *mxp_state_of(PyObject *module) { return PyModule_GetState(module); }

/* setup(empty, dtype, Spec, Quantized, make_spec, adapt, as_like): called once by mxgold/__init__.py; empty and dtype are NumPy's. */
static PyObject *setup(PyObject *module, PyObject *args) {
  mxp_state *s = mxp_state_of(module);
  static const char *const types[] = {"uint8", "uint16", "uint32", "uint64", "float32", "float16", "int64"};
  PyObject *given[6], *dtype;
  if (!PyArg_ParseTuple(args, "OOOOOOO", &given[0], &dtype, &given[1], &given[2], &given[3], &given[4], &given[5])) return NULL;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    PyObject *old = s->dtypes[i];
    if (!(s->dtypes[i] = PyObject_CallFunction(dtype, "s", types[i]))) return NULL;
    Py_XDECREF(old);
  }
  PyObject **to[6] = {&s->empty, &s->spec, &s->quantized, &s->make_spec, &s->adapt, &s->as_like};
  for (int i = 0; i < 6; i++) {
    PyObject *old = *to[i];
    Py_INCREF(given[i]);
    *to[i] = given[i];
    Py_XDECREF(old);
  }
  Py_RETURN_NONE;
}

static PyMethodDef own[] = {{"setup", setup, METH_VARARGS, "setup(empty, dtype, Spec, Quantized, make_spec, adapt, as_like)"}, {0}};

static int fill(PyObject *module) {
  mxp_state *s = mxp_state_of(module);
  if (!(s->specs = PyDict_New()) || !(s->encoders = PyDict_New())) return -1;
  if (!(s->spec_base = (PyTypeObject *)PyType_FromModuleAndSpec(module, &mxp_spec_type, NULL)) || PyModule_AddType(module, s->spec_base))
    return -1;
  PyMethodDef *lists[] = {own,
                          mxp_quantize_methods,
                          mxp_codec_methods,
                          mxp_product_methods,
                          mxp_linear_methods,
                          mxp_case_methods,
                          mxp_file_methods,
                          mxp_table_methods};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    if (PyModule_AddFunctions(module, lists[i])) return -1;
  PyObject *devices = mxp_devices_in_memory();
  const int failed = PyModule_AddObjectRef(module, "devices_in_memory", devices);
  Py_XDECREF(devices);
  if (failed) return -1;
  const int64_t interpreter = PyInterpreterState_GetID(PyInterpreterState_Get()); /* 0: the main one */
  if (interpreter < 0 || PyModule_AddIntConstant(module, "interpreter", (long)interpreter)) return -1;
  return PyModule_AddStringConstant(module, "version", MX_VERSION);
}

static int visit_state(PyObject *module, visitproc visit, void *arg) {
  mxp_state *s = mxp_state_of(module);
  if (!s) return 0;
  PyObject *all[] = {s->empty, (PyObject *)s->spec_base, s->spec, s->quantized, s->specs, s->make_spec, s->adapt, s->as_like, s->encoders};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) Py_VISIT(all[i]);
  return 0;
}

static int clear_state(PyObject *module) {
  mxp_state *s = mxp_state_of(module);
  if (!s) return 0;
  for (size_t i = 0; i < sizeof s->dtypes / sizeof s->dtypes[0]; i++) Py_CLEAR(s->dtypes[i]);
  Py_CLEAR(s->spec_base);
  PyObject **all[] = {&s->empty, &s->spec, &s->quantized, &s->specs, &s->make_spec, &s->adapt, &s->as_like, &s->encoders};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) Py_CLEAR(*all[i]);
  return 0;
}

static void free_state(void *module) { clear_state(module); }

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)fill}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,       .m_name = "mxgold._core", .m_doc = "The C functions of mxgold; use the package mxgold.",
    .m_size = sizeof(mxp_state), .m_slots = module_slots,  .m_traverse = visit_state,
    .m_clear = clear_state,      .m_free = free_state};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
