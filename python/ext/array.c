/* Reads arrays of any library: by the buffer protocol (NumPy), by DLPack's C exchange and __dlpack__ (PyTorch, JAX, CuPy), and by the adapter in
 * mxgold/_arrays.py for what has neither. An array whose layout suits the library is not copied. */
#include <stdlib.h>
#include <string.h>

#include "dlpack.h"
#include "ext.h"

/* One format character of the buffer protocol, little-endian or native. */
static void read_format(mxp_array *a, const char *format) {
  static const struct {
    char letter;
    mxp_kind kind;
    const char *name;
  } rows[] = {{'f', MXP_FLOAT, "float32"},    {'B', MXP_UINT, "uint8"},      {'e', MXP_FLOAT, "float16"},   {'d', MXP_FLOAT, "float64"},
              {'g', MXP_FLOAT, "longdouble"}, {'b', MXP_INT, "int8"},        {'c', MXP_UINT, "uint8"},      {'H', MXP_UINT, "uint16"},
              {'h', MXP_INT, "int16"},        {'I', MXP_UINT, "uint32"},     {'i', MXP_INT, "int32"},       {'l', MXP_INT, "int64"},
              {'q', MXP_INT, "int64"},        {'L', MXP_UINT, "uint64"},     {'Q', MXP_UINT, "uint64"},     {'?', MXP_BOOL, "bool"},
              {'O', MXP_OTHER, "object"},     {'F', MXP_OTHER, "complex64"}, {'D', MXP_OTHER, "complex128"}};
  const char *f = format ? format : "B";
  if (*f == '@' || *f == '=' || *f == '<') f++;
  a->kind = MXP_OTHER;
  a->dtype = "of records or another kind";
  if (*f == 'Z') { /* complex: the letter of its parts follows */
    a->dtype = f[1] == 'f' ? "complex64" : f[1] == 'd' ? "complex128" : "clongdouble";
    return;
  }
  for (size_t i = 0; *f && !f[1] && i < sizeof rows / sizeof rows[0]; i++)
    if (*f == rows[i].letter) {
      a->kind = rows[i].kind;
      a->dtype = rows[i].name;
      return;
    }
}

static int from_buffer(mxp_array *a, PyObject *from, const char *argument) {
  if (PyObject_GetBuffer(from, &a->view, PyBUF_RECORDS_RO)) return -1;
  a->has_view = 1;
  if (a->view.ndim > MXP_MAX_DIMS) {
    mxp_raise(MX_ERR_SHAPE, argument, "an array of more than 32 dimensions");
    return -1;
  }
  a->data = a->view.buf;
  a->item = (size_t)a->view.itemsize;
  a->n_dims = a->view.ndim;
  Py_ssize_t dense = a->view.itemsize;
  for (int i = a->n_dims - 1; i >= 0; i--) { /* exporters such as ctypes leave the strides out */
    a->shape[i] = a->view.shape ? a->view.shape[i] : a->view.itemsize ? a->view.len / a->view.itemsize : 0;
    a->strides[i] = a->view.strides ? a->view.strides[i] : dense;
    dense *= a->shape[i];
  }
  read_format(a, a->view.format);
  return 0;
}

static const char *const code_names[] = {"float8_e3m4",     "float8_e4m3",   "float8_e4m3b11fnuz", "float8_e4m3fn",
                                         "float8_e4m3fnuz", "float8_e5m2",   "float8_e5m2fnuz",    "float8_e8m0fnu",
                                         "float6_e2m3fn",   "float6_e3m2fn", "float4_e2m1fn"};

static const char *name_of(const dl_tensor *t) {
  static const char *const names[][4] = {
      {"int8", "int16", "int32", "int64"},      {"uint8", "uint16", "uint32", "uint64"},         {"float8", "float16", "float32", "float64"},
      {"handle", "handle", "handle", "handle"}, {"bfloat8", "bfloat16", "bfloat32", "bfloat64"}, {"complex", "complex", "complex", "complex64"},
      {"bool", "bool16", "bool32", "bool64"}};
  if (t->code >= DL_FIRST_CODE) return t->code <= DL_LAST_CODE ? code_names[t->code - DL_FIRST_CODE] : "unknown";
  return names[t->code][t->bits <= 8 ? 0 : t->bits <= 16 ? 1 : t->bits <= 32 ? 2 : 3];
}

/* The devices whose memory the processor reads: its own, and the pinned memory of CUDA and ROCm. */
static const int devices_in_memory[] = {DL_CPU, DL_CUDA_HOST, DL_ROCM_HOST};
PyObject *mxp_devices_in_memory(void) { return Py_BuildValue("(iii)", devices_in_memory[0], devices_in_memory[1], devices_in_memory[2]); }

static int in_memory(const dl_tensor *t) {
  for (size_t i = 0; i < sizeof devices_in_memory / sizeof *devices_in_memory; i++)
    if (t->device_type == devices_in_memory[i]) return 1;
  return 0;
}

static int from_tensor(mxp_array *a, const dl_tensor *t, const char *argument) {
  if (!in_memory(t)) {
    mxp_raisef(MX_ERR_ARG, argument, "an array on a device (DLPack's type %d), expected one in memory", (int)t->device_type);
    return -1;
  }
  if (t->n_dims > MXP_MAX_DIMS) {
    mxp_raise(MX_ERR_SHAPE, argument, "an array of more than 32 dimensions");
    return -1;
  }
  const unsigned bits = (unsigned)t->bits * t->lanes;
  a->item = (bits + 7) / 8;
  a->data = (const uint8_t *)t->data + t->byte_offset;
  a->n_dims = t->n_dims;
  a->kind = t->code == DL_FLOAT                                                ? MXP_FLOAT
            : t->code == DL_BFLOAT                                             ? MXP_BFLOAT
            : t->code == DL_INT                                                ? MXP_INT
            : t->code == DL_UINT                                               ? MXP_UINT
            : t->code == DL_BOOL                                               ? MXP_BOOL
            : t->code >= DL_FIRST_CODE && t->code <= DL_LAST_CODE && bits == 8 ? MXP_CODE
                                                                               : MXP_OTHER;
  if (bits % 8 || (t->lanes != 1 && a->kind != MXP_CODE)) a->kind = MXP_OTHER;
  a->dtype = name_of(t);
  Py_ssize_t dense = (Py_ssize_t)a->item;
  for (int i = t->n_dims - 1; i >= 0; i--) {
    a->shape[i] = (Py_ssize_t)t->shape[i];
    a->strides[i] = t->strides ? (Py_ssize_t)t->strides[i] * (Py_ssize_t)a->item : dense;
    dense *= a->shape[i];
  }
  return 0;
}

/* 1: done, 0: the class has no such table, -1: an exception. */
static int from_exchange(mxp_array *a, PyObject *from, const char *argument) {
  PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(from), "__dlpack_c_exchange_api__");
  if (!capsule) {
    PyErr_Clear();
    return 0;
  }
  const dl_exchange *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule); /* the table itself is static */
  PyErr_Clear();
  if (!api || api->version.major != 1 || !api->tensor_from) return 0;
  dl_tensor t;
  if (api->tensor_from(from, &t)) {
    PyErr_Clear(); /* a gradient, a device without memory here: the adapter knows what to do */
    return 0;
  }
  if (!in_memory(&t)) return 0;
  Py_INCREF(from);
  a->owner = from;
  return from_tensor(a, &t, argument) ? -1 : 1;
}

/* 1: done, 0: it has no __dlpack__ that works, or is on a device and not yet adapted, -1: an exception. */
static int from_capsule(mxp_array *a, PyObject *from, int adapted, const char *argument) {
  PyObject *method = PyObject_GetAttrString(from, "__dlpack__");
  if (!method) {
    PyErr_Clear();
    return 0;
  }
  PyObject *none = PyTuple_New(0), *newest = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
  PyObject *capsule = none && newest ? PyObject_Call(method, none, newest) : NULL;
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* an exporter of the time before versions */
    PyErr_Clear();
    capsule = none ? PyObject_CallObject(method, none) : NULL;
  }
  Py_XDECREF(none);
  Py_XDECREF(newest);
  Py_DECREF(method);
  if (!capsule) {
    PyErr_Clear();
    return 0;
  }
  a->is_versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
  a->managed = PyCapsule_GetPointer(capsule, a->is_versioned ? "dltensor_versioned" : "dltensor");
  if (!a->managed || PyCapsule_SetName(capsule, a->is_versioned ? "used_dltensor_versioned" : "used_dltensor")) {
    Py_DECREF(capsule);
    a->managed = NULL;
    return -1;
  }
  Py_DECREF(capsule);
  if (a->is_versioned && ((dl_versioned *)a->managed)->version.major != 1) return 0;
  const dl_tensor *t = a->is_versioned ? &((dl_versioned *)a->managed)->tensor : &((dl_managed *)a->managed)->tensor;
  if (!adapted && !in_memory(t)) return 0; /* the adapter knows how its library copies */
  return from_tensor(a, t, argument) ? -1 : 1;
}

static int count(mxp_array *a, const char *argument) {
  a->n = 1;
  for (int i = 0; i < a->n_dims; i++)
    if (__builtin_mul_overflow(a->n, (size_t)a->shape[i], &a->n)) {
      mxp_raise(MX_ERR_SHAPE, argument, "the shape overflows");
      return -1;
    }
  if (a->n > PY_SSIZE_T_MAX / 8) { /* of a broadcast: a copy, or a result of eight bytes each, must have a size */
    mxp_raise(MX_ERR_SHAPE, argument, "more elements than memory can hold");
    return -1;
  }
  return 0;
}

/* Whether a tensor of torch stands for the negative of what lies in memory: its DLPack says nothing of that bit. */
static int is_negated(PyObject *from) {
  PyObject *method = PyObject_GetAttrString(from, "is_neg"), *said = method ? PyObject_CallObject(method, NULL) : NULL;
  const int negated = said == Py_True;
  Py_XDECREF(method);
  Py_XDECREF(said);
  PyErr_Clear();
  return negated;
}

static int get(mxp_array *out, PyObject *from, int adapted, const char *argument) {
  if (PyObject_CheckBuffer(from)) {
    if (!from_buffer(out, from, argument)) return 1;
    if (out->has_view) return -1;
    PyErr_Clear(); /* NumPy arrays of ml_dtypes' types have a buffer that cannot be had */
    return 0;
  }
  if (!adapted && is_negated(from)) return 0; /* the adapter resolves it */
  const int done = from_exchange(out, from, argument);
  return done ? done : from_capsule(out, from, adapted, argument);
}

int mxp_array_get(mxp_array *out, mxp_state *state, PyObject *from, const char *argument) {
  memset(out, 0, sizeof *out);
  int done = get(out, from, 0, argument);
  if (done < 0) return -1;
  if (!done) {
    mxp_array_release(out);
    PyObject *pair = PyObject_CallFunction(state->adapt, "Os", from, argument), *name;
    if (!pair) return -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
      Py_DECREF(pair);
      PyErr_SetString(PyExc_SystemError, "mxgold._arrays.adapt() gave no pair");
      return -1;
    }
    done = get(out, PyTuple_GetItem(pair, 0), 1, argument);
    name = PyTuple_GetItem(pair, 1);
    if (done > 0 && name != Py_None) {
      const char *text = mxp_text(name, "dtype"); /* as long as the pair, which is kept */
      out->kind = !text ? MXP_OTHER : !strcmp(text, "bfloat16") ? MXP_BFLOAT : MXP_CODE;
      out->dtype = text ? text : "unknown";
    }
    PyObject *kept = out->owner; /* the pair holds the array that was made */
    out->owner = pair;
    Py_XDECREF(kept);
    if (done <= 0) {
      if (!PyErr_Occurred()) mxp_raise_dtype(argument, "%R: expected an array", Py_TYPE(from));
      return -1;
    }
  }
  return count(out, argument);
}

void mxp_array_release(mxp_array *a) {
  if (a->has_view) PyBuffer_Release(&a->view);
  if (a->managed && a->is_versioned) {
    dl_versioned *m = a->managed;
    if (m->deleter) m->deleter(m);
  } else if (a->managed) {
    dl_managed *m = a->managed;
    if (m->deleter) m->deleter(m);
  }
  Py_XDECREF(a->owner);
  free(a->straight);
  memset(a, 0, sizeof *a);
}

int mxp_is(const mxp_array *a, mxp_kind kind, size_t item) { return a->kind == kind && a->item == item; }

static int is_dense(const mxp_array *a) {
  Py_ssize_t dense = (Py_ssize_t)a->item;
  for (int i = a->n_dims - 1; i >= 0; i--) {
    if (a->shape[i] != 1 && a->strides[i] != dense) return 0;
    dense *= a->shape[i];
  }
  return 1;
}

static int is_aligned(const mxp_array *a) { return !a->item || (uintptr_t)a->data % (a->item < 8 ? a->item : 8) == 0; }

/* Elements of any strides, negative ones too, one after the other. */
static void gather(uint8_t *out, const mxp_array *a) {
  Py_ssize_t at[MXP_MAX_DIMS] = {0};
  const uint8_t *from = a->data;
  for (size_t i = 0; i < a->n; i++) {
    memcpy(out + i * a->item, from, a->item);
    for (int d = a->n_dims - 1; d >= 0; d--) {
      from += a->strides[d];
      if (++at[d] < a->shape[d]) break;
      from -= a->strides[d] * a->shape[d];
      at[d] = 0;
    }
  }
}

static int straighten(mxp_array *a) {
  size_t size;
  a->straight = __builtin_mul_overflow(a->n, a->item, &size) || size == SIZE_MAX ? NULL : malloc(size + 1);
  if (!a->straight) {
    PyErr_NoMemory();
    return -1;
  }
  gather(a->straight, a);
  a->data = a->straight;
  Py_ssize_t dense = (Py_ssize_t)a->item;
  for (int i = a->n_dims - 1; i >= 0; i--) {
    a->strides[i] = dense;
    dense *= a->shape[i];
  }
  return 0;
}

int mxp_contiguous(mxp_array *a) { return !a->n || (is_dense(a) && is_aligned(a)) ? 0 : straighten(a); }

/* Bytes from one row to the next, if all rows are that far apart and each is contiguous; 0 if not. */
static size_t row_stride(const mxp_array *a) {
  const int last = a->n_dims - 1;
  const Py_ssize_t width = (Py_ssize_t)a->item * (last < 0 ? 1 : a->shape[last]);
  if (!is_aligned(a) || (last >= 0 && a->shape[last] != 1 && a->strides[last] != (Py_ssize_t)a->item)) return 0;
  Py_ssize_t stride = 0, rows = 0;
  for (int i = last - 1; i >= 0; i--) {
    if (a->shape[i] == 1) continue;
    if (!rows)
      stride = a->strides[i], rows = 1;
    else if (a->strides[i] != stride * rows)
      return 0;
    rows *= a->shape[i];
  }
  if (!rows) return (size_t)width; /* one row */
  return stride < width || stride % (Py_ssize_t)a->item ? 0 : (size_t)stride;
}

int mxp_matrix(mxp_array *a, size_t *rows, size_t *cols, size_t *ld, const char *argument) {
  uint64_t shape[MXP_MAX_DIMS];
  for (int i = 0; i < a->n_dims; i++) shape[i] = (uint64_t)a->shape[i];
  if (!mx_matrix_of(rows, cols, shape, a->n_dims)) {
    mxp_raise(MX_ERR_SHAPE, argument, "the shape overflows");
    return -1;
  }
  *ld = *cols;
  if (!a->n) return 0;
  size_t stride = row_stride(a);
  if (!stride) {
    if (straighten(a)) return -1;
    stride = *cols * a->item;
  }
  *ld = stride / a->item;
  return 0;
}

int mxp_floats(const float **out, mxp_array *a, const char *argument) {
  const mx_dtype type = mxp_is(a, MXP_FLOAT, 4) ? MX_F32 : mxp_is(a, MXP_FLOAT, 2) ? MX_F16 : mxp_is(a, MXP_BFLOAT, 2) ? MX_BF16 : MX_F64;
  if (type == MX_F64) {
    mxp_raise_dtype(argument, "dtype %s, expected float32, float16 or bfloat16", a->dtype);
    return -1;
  }
  if (mxp_contiguous(a)) return -1;
  *out = (const float *)(const void *)a->data;
  if (type == MX_F32) return 0;
  const mx_array halves = {.name = "", .dtype = type, .n_dims = 1, .shape = {a->n}, .n_values = a->n, .n_bytes = 2 * a->n, .data = a->data};
  float *wide = malloc(a->n * sizeof *wide + 1);
  if (!wide || mx_array_read_f32(wide, &halves, 0, a->n, 0)) {
    free(wide);
    PyErr_NoMemory();
    return -1;
  }
  free(a->straight);
  a->straight = (uint8_t *)wide;
  *out = wide;
  return 0;
}
