/* Defines the quantised linear layer: forward and backward of one call, and its recipes. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* Texts of a sequence of str, borrowed from it. */
typedef struct texts {
  const char **items;
  size_t n;
} texts;

static int texts_of(texts *out, PyObject *from, const char *argument) {
  if (!from) return 0;
  if (!PyTuple_Check(from)) {
    PyErr_Format(PyExc_TypeError, "%s: expected a tuple of str", argument);
    return -1;
  }
  const Py_ssize_t n = PyTuple_Size(from);
  out->items = calloc((size_t)n + 1, sizeof *out->items);
  if (!out->items) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++)
    if (!(out->items[out->n++] = mxp_text(PyTuple_GetItem(from, i), argument))) return -1;
  return 0;
}

/* A quantised operand, kept for the caller: bytes of codes and scales with what they are. */
typedef struct keeper {
  mx_tensor tensor[MX_OPERANDS];
  mx_spec spec[MX_OPERANDS];
  int no_memory;
} keeper;

static void keep(void *self, int q, const mx_tensor *t, const mx_spec *spec) {
  keeper *k = self;
  mx_tensor *to = &k->tensor[q];
  const size_t codes = t->rows * t->code_stride, scales = t->scale_rows * t->scale_cols * t->scale_bytes,
               micro = t->scale_rows * t->scale_cols * 3;
  mx_tensor_free(to);
  *to = *t;
  to->codes = malloc(codes + 1);
  to->scales = malloc(scales + 1);
  to->micro = t->micro ? malloc(micro + 1) : NULL;
  if (!to->codes || !to->scales || (t->micro && !to->micro)) {
    k->no_memory = 1;
    return;
  }
  memcpy(to->codes, t->codes, codes);
  memcpy(to->scales, t->scales, scales);
  if (t->micro) memcpy(to->micro, t->micro, micro);
  k->spec[q] = *spec;
  k->spec[q].given_bits = NULL;
}

/* Quantized of a kept operand. */
static PyObject *operand(mxp_state *state, const mx_tensor *t, const mx_spec *spec) {
  mxp_parts filled = {0};
  PyObject *parts[3], *out = NULL, *spec_object = mxp_spec_new(state, spec, NULL);
  const int failed = !spec_object || mxp_parts_of(&filled, state, t, spec);
  mxp_parts_end(parts, &filled, failed);
  PyObject *scale = t->has_tensor_scale ? mxp_scalar(state, t->tensor_scale) : Py_NewRef(Py_None);
  PyObject *shape = Py_BuildValue("(nn)", (Py_ssize_t)t->rows, (Py_ssize_t)t->cols), *dtype = PyUnicode_FromString("float32");
  if (!failed && scale && shape && dtype)
    out = PyObject_CallFunctionObjArgs(state->quantized, parts[0], parts[1], scale, spec_object, shape, dtype, parts[2] ? parts[2] : Py_None,
                                       NULL);
  for (int i = 0; i < 3; i++) Py_XDECREF(parts[i]);
  Py_XDECREF(scale);
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  Py_XDECREF(spec_object);
  return out;
}

/* A float32 or bfloat16 matrix as the layer takes it; float16 is widened. */
static int matrix_in(mx_linear_in *out, mxp_array *x, size_t *rows, size_t *cols, const char *argument) {
  const int narrow = mxp_is(x, MXP_BFLOAT, 2);
  if (narrow || mxp_is(x, MXP_FLOAT, 4)) {
    if (mxp_matrix(x, rows, cols, &out->ld, argument)) return -1;
    out->data = x->data;
    out->dtype = narrow ? MX_BF16 : MX_F32;
    return 0;
  }
  const float *wide;
  if (mxp_floats(&wide, x, argument)) return -1;
  uint64_t shape[MXP_MAX_DIMS];
  for (int i = 0; i < x->n_dims; i++) shape[i] = (uint64_t)x->shape[i];
  mx_matrix_of(rows, cols, shape, x->n_dims);
  *out = (mx_linear_in){wide, *cols, MX_F32};
  return 0;
}

static int result(mxp_result *r, mx_linear_out *out, mxp_state *state, int n_dims, const Py_ssize_t *shape) {
  if (mxp_result_make(r, state, MXP_F32, n_dims, shape)) return -1;
  *out = (mx_linear_out){r->data, n_dims ? (size_t)shape[n_dims - 1] : 1, MX_F32, 0};
  return 0;
}

enum { XX, W, DY, RECIPE, PRESET, SET, OPERANDS, TRAIN, GEMMS, ACCUM, BIAS, SEED, STEP, LAYER, THREADS, WITH_OPERANDS, NEEDS, COUNT };
static const char *const names[] = {"x",     "w",    "dy",   "recipe", "preset", "set",     "operands",      "train", "gemms",
                                    "accum", "bias", "seed", "step",   "layer",  "threads", "with_operands", "needs", NULL};

static int resolve(mx_linear_recipe *recipe, mx_mma_model *unit, PyObject **a, texts lists[3]) {
  mx_error err;
  const char *words[4] = {NULL};
  static const int which[4] = {RECIPE, PRESET, GEMMS, ACCUM};
  for (int i = 0; i < 4; i++)
    if (a[which[i]] && !(words[i] = mxp_text(a[which[i]], names[which[i]]))) return -1;
  for (int i = 0; i < 3; i++)
    if (texts_of(&lists[i], a[SET + i], names[SET + i])) return -1;
  mx_linear_text text = {.recipe = words[0],
                         .preset = words[1],
                         .gemms = words[2],
                         .accum = words[3],
                         .set = lists[0].items,
                         .n_set = lists[0].n,
                         .operands = lists[1].items,
                         .n_operands = lists[1].n,
                         .train = lists[2].items,
                         .n_train = lists[2].n};
  static const int order[] = {RECIPE, PRESET, SET, OPERANDS, TRAIN, GEMMS, ACCUM};
  mx_status status = mx_linear_resolve(recipe, unit, &text, &err);
  if (!status) return 0;
  mx_error all = err;
  text = (mx_linear_text){0};
  for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) { /* one argument after the other: which of them is it? */
    const int at = order[i];
    if (!a[at]) continue;
    if (at == RECIPE) text.recipe = words[0];
    if (at == PRESET) text.preset = words[1];
    if (at == SET) text.set = lists[0].items, text.n_set = lists[0].n;
    if (at == OPERANDS) text.operands = lists[1].items, text.n_operands = lists[1].n;
    if (at == TRAIN) text.train = lists[2].items, text.n_train = lists[2].n;
    if (at == GEMMS) text.gemms = words[2];
    if (at == ACCUM) text.accum = words[3];
    const mx_status one = mx_linear_resolve(recipe, unit, &text, &err);
    if (!one) continue;
    mxp_raise(one, names[at], err.text);
    return -1;
  }
  mxp_raise(status, NULL, all.text);
  return -1;
}

/* linear(...) -> (y, dx, dw, db, (q1, ..., q6)): gradients None without dy, operands None unless with_operands. */
static PyObject *linear(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  PyObject *a[COUNT], *out = NULL, *q[MX_OPERANDS] = {NULL};
  mxp_state *state = mxp_state_of(module);
  mxp_array x = {0}, w = {0}, dy = {0}, bias = {0};
  mxp_result r[4] = {0};
  mx_linear_recipe recipe;
  mx_mma_model unit;
  texts lists[3] = {0};
  mx_linear layer = {.recipe = &recipe};
  mx_linear_in in[3] = {0};
  mx_linear_out to[4] = {0};
  mx_exec exec = {0};
  mx_error err;
  keeper kept;
  memset(&kept, 0, sizeof kept);
  uint64_t seed = 0, step = 0, number = 0, needs = 3;
  size_t rows[3], cols[3], saved, room;
  const float *bias_values = NULL;
  char *memory = NULL;
  int failed = -1;
  if (mxp_arguments(a, "linear", names, 3, args, n_args, keywords)) return NULL;
  if (!a[XX] || !a[W]) return PyErr_Format(PyExc_TypeError, "linear() needs x and w");
  if ((a[SEED] && mxp_unsigned(&seed, a[SEED], "seed", UINT64_MAX)) ||
      (a[STEP] && mxp_unsigned(&step, a[STEP], "step", ((uint64_t)1 << 36) - 1)) ||
      (a[LAYER] && mxp_unsigned(&number, a[LAYER], "layer", (1 << 20) - 1)) || (a[NEEDS] && mxp_unsigned(&needs, a[NEEDS], "needs", 3)) ||
      mxp_threads(&exec.n_threads, a[THREADS]))
    return NULL;
  if (resolve(&recipe, &unit, a, lists)) goto end;
  static const int which[3] = {XX, W, DY};
  mxp_array *arrays[3] = {&x, &w, &dy};
  for (int i = 0; i < 3; i++)
    if (a[which[i]] &&
        (mxp_array_get(arrays[i], state, a[which[i]], names[which[i]]) || matrix_in(&in[i], arrays[i], &rows[i], &cols[i], names[which[i]])))
      goto end;
  if (cols[0] != cols[1]) {
    mxp_raisef(MX_ERR_SHAPE, "w", "%zu columns, expected %zu input features as in x", cols[1], cols[0]);
    goto end;
  }
  if (a[DY] && (rows[2] != rows[0] || cols[2] != rows[1])) {
    mxp_raisef(MX_ERR_SHAPE, "dy", "%zu x %zu, expected %zu x %zu: a row for each of x, a column for each row of w", rows[2], cols[2], rows[0],
               rows[1]);
    goto end;
  }
  layer.T = rows[0], layer.I = cols[0], layer.O = rows[1];
  layer.seed = seed, layer.step = step, layer.layer = (uint32_t)number;
  int with_operands;
  if (mxp_flag(&with_operands, a[WITH_OPERANDS], "with_operands")) goto end;
  if (with_operands) layer.operand = keep, layer.self = &kept;
  if (a[BIAS]) {
    if (mxp_array_get(&bias, state, a[BIAS], "bias")) goto end;
    if (bias.n != layer.O) {
      mxp_raisef(MX_ERR_SHAPE, "bias", "%zu values, expected one for each of the %zu rows of w", bias.n, layer.O);
      goto end;
    }
    if (mxp_floats(&bias_values, &bias, "bias")) goto end;
  }
  Py_ssize_t shape[MXP_MAX_DIMS];
  memcpy(shape, x.shape, sizeof shape);
  const int n_dims = x.n_dims ? x.n_dims : 1;
  shape[n_dims - 1] = (Py_ssize_t)layer.O;
  const Py_ssize_t flat[1] = {(Py_ssize_t)layer.O};
  if (result(&r[0], &to[0], state, n_dims, shape)) goto end;
  if (a[DY] && needs & 1 && result(&r[1], &to[1], state, x.n_dims, x.shape)) goto end;
  if (a[DY] && needs & 2 && result(&r[2], &to[2], state, w.n_dims, w.shape)) goto end;
  if (a[DY] && result(&r[3], &to[3], state, 1, flat)) goto end;
  mx_status status = mx_linear_sizes(&saved, &room, &layer, &exec, &err);
  if (!status && !(memory = malloc(saved + room + 128))) status = mx_fail(&err, MX_ERR_NOMEM, "no memory for the layer");
  if (!status) {
    char *work = memory + (saved + 63) / 64 * 64;
    MXP_WORK
    status = mx_linear_forward(&layer, to[0], in[0], in[1], bias_values, memory, work, &exec, &err);
    if (!status && a[DY]) status = mx_linear_backward(&layer, to[1], to[2], to[3].data, in[2], in[0], in[1], memory, work, &exec, &err);
    MXP_WORK_END
  }
  if (!status && kept.no_memory) status = mx_fail(&err, MX_ERR_NOMEM, "no memory for the operands");
  if (status) {
    mxp_raise(status, NULL, err.text);
    goto end;
  }
  failed = 0;
  for (int i = 0; i < MX_OPERANDS && !failed; i++)
    if (kept.tensor[i].codes && (i < MX_Q3 || a[DY]) && !(q[i] = operand(state, &kept.tensor[i], &kept.spec[i]))) failed = -1;
end:
  free(memory);
  for (int i = 0; i < 3; i++) free(lists[i].items);
  for (int i = 0; i < MX_OPERANDS; i++) mx_tensor_free(&kept.tensor[i]);
  mxp_array_release(&x);
  mxp_array_release(&w);
  mxp_array_release(&dy);
  mxp_array_release(&bias);
  PyObject *made[4];
  for (int i = 0; i < 4; i++)
    if (!(made[i] = mxp_result_end(&r[i], failed != 0))) made[i] = Py_NewRef(Py_None);
  for (int i = 0; i < MX_OPERANDS; i++)
    if (!q[i]) q[i] = Py_NewRef(Py_None);
  if (!failed) out = Py_BuildValue("(OOOO(OOOOOO))", made[0], made[1], made[2], made[3], q[0], q[1], q[2], q[3], q[4], q[5]);
  for (int i = 0; i < 4; i++) Py_DECREF(made[i]);
  for (int i = 0; i < MX_OPERANDS; i++) Py_DECREF(q[i]);
  return out;
}

PyMethodDef mxp_linear_methods[] = {MXP_ROW("linear", linear, "linear(x, w, dy, ...) -> (y, dx, dw, db, operands); see mxgold.linear"), {0}};
