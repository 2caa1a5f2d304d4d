/* Makes the suites of inputs that tell kernels apart, as arrays. */
#include <string.h>

#include "ext.h"

/* generate(suite, spec, rows, cols, seed) -> (float32 [n][rows][ld], cols): what lies behind cols in a row is not data. */
static PyObject *generate(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { SUITE, SPEC, ROWS, COLS, SEED, COUNT };
  static const char *const names[] = {"suite", "spec", "rows", "cols", "seed", NULL};
  mxp_state *state = mxp_state_of(module);
  PyObject *a[COUNT];
  uint64_t number[3] = {0, 0, 0};
  mx_cases cases = {0};
  mx_error err;
  if (mxp_arguments(a, "generate", names, COUNT, args, n_args, keywords)) return NULL;
  if (!a[SUITE] || !a[SPEC] || !PyObject_TypeCheck(a[SPEC], state->spec_base))
    return PyErr_Format(PyExc_TypeError, "generate() needs a suite and a Spec");
  const char *name = mxp_text(a[SUITE], "suite");
  if (!name) return NULL;
  for (int i = 0; i < 3; i++)
    if (a[ROWS + i] && mxp_unsigned(&number[i], a[ROWS + i], names[ROWS + i], i < 2 ? 1 << 28 : UINT64_MAX)) return NULL;
  const int suite = mx_suite_find(name);
  if (suite < 0) {
    const char *all[MX_SUITE_COUNT + 1] = {NULL};
    char near[200];
    for (int i = 0; i < MX_SUITE_COUNT; i++) all[i] = mx_suite_name(i);
    mx_nearest(near, sizeof near, name, mx_name_in_array, all);
    return mxp_raisef(MX_ERR_KEY, "suite", "'%s' is unknown, nearest: %s", name, near);
  }
  if ((number[0] || number[1]) && (suite == MX_SUITE_MINIMAL || suite == MX_SUITE_SPECIAL))
    return mxp_raisef(MX_ERR_ARG, "shape", "suite %s has tensors of its own shape, expected no shape", name);
  const mx_spec *spec = mxp_spec_in(a[SPEC]);
  mx_status status;
  MXP_WORK
  status = mx_generate(&cases, suite, spec, number[0], number[1], number[2], &err);
  MXP_WORK_END
  if (status) return mxp_raise(status, "suite", err.text);
  const Py_ssize_t shape[3] = {(Py_ssize_t)cases.n, (Py_ssize_t)cases.rows, (Py_ssize_t)cases.ld};
  mxp_result x = {0};
  const int failed = mxp_result_make(&x, state, MXP_F32, 3, shape);
  if (!failed && x.view.len) memcpy(x.data, cases.x, (size_t)x.view.len);
  const Py_ssize_t cols = (Py_ssize_t)cases.cols;
  mx_cases_free(&cases);
  PyObject *array = mxp_result_end(&x, failed);
  return array ? Py_BuildValue("(Nn)", array, cols) : NULL;
}

PyMethodDef mxp_case_methods[] = {MXP_ROW("generate", generate, "generate(suite, spec, rows, cols, seed)"), {0}};
