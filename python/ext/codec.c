/* Defines encode and decode, one code a value. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

enum { X, FORMAT, PRESET, ROUND, OVERFLOW_, NAN_, SR_MODE, SET, SCALE_EXP, BITS, NBITS, SEED, LIKE, COUNT };
static const char *const names[] = {"x",   "format",    "preset", "round", "overflow", "nan",  "sr_mode",
                                    "set", "scale_exp", "bits",   "nbits", "seed",     "like", NULL};

/* Keys of the preset, then set=, then the arguments that have names of their own, as `mxgold encode` takes its options. */
static int keys_of(mx_spec *spec, const char *format, PyObject **a) {
  mx_error err;
  static const struct {
    int argument;
    const char *key;
  } rows[] = {{ROUND, "elem.round"}, {OVERFLOW_, "elem.overflow"}, {NAN_, "elem.nan"}, {SR_MODE, "sr.mode"}};
  const char *preset = a[PRESET] ? mxp_text(a[PRESET], "preset") : NULL;
  if (a[PRESET] && !preset) return -1;
  mx_status status = mx_encoder_keys(spec, preset, format, &err);
  if (status) {
    mxp_raise(status, "preset", err.text);
    return -1;
  }
  if (a[SET]) {
    PyObject *module = PyImport_ImportModule("mxgold._spec");
    PyObject *text = module ? PyObject_CallMethod(module, "text_of", "(O)", a[SET]) : NULL;
    const char *keys = text ? mxp_text(text, "set") : NULL;
    if (keys && (status = mx_spec_parse(spec, keys, &err))) mxp_raise(status, "set", err.text);
    Py_XDECREF(module);
    Py_XDECREF(text);
    if (!keys || status) return -1;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    PyObject *value = a[rows[i].argument];
    const char *text = value ? mxp_text(value, names[rows[i].argument]) : NULL;
    if (value && !text) return -1;
    if (text && (status = mx_spec_set(spec, rows[i].key, text, &err))) {
      mxp_raise(status, names[rows[i].argument], err.text);
      return -1;
    }
  }
  return a[SEED] && mxp_unsigned(&spec->seed, a[SEED], "seed", UINT64_MAX) ? -1 : 0;
}

static int set_scale_exp(mx_encoder *e, PyObject *from) {
  if (PyFloat_Check(from)) { /* nan */
    const double v = PyFloat_AsDouble(from);
    if (v != v) {
      e->scale_is_nan = 1;
      return 0;
    }
  }
  if (!PyLong_Check(from) && !PyFloat_Check(from)) {
    PyErr_Format(PyExc_TypeError, "scale_exp: expected nan or an int, not %R", Py_TYPE(from));
    return -1;
  }
  const long v = PyLong_Check(from) ? PyLong_AsLong(from) : MX_ENCODER_EXP + 1;
  if (PyErr_Occurred()) PyErr_Clear();
  if (v < -MX_ENCODER_EXP || v > MX_ENCODER_EXP) {
    mxp_raisef(MX_ERR_ARG, "scale_exp", "%R: expected nan, or an int from %d to %d", from, -MX_ENCODER_EXP, MX_ENCODER_EXP);
    return -1;
  }
  e->scale_exp = (int)v;
  return 0;
}

/* n_bits: of the integers in bits=, 0 without nbits=. */
static int make_encoder(mx_encoder *e, unsigned *n_bits, PyObject **a) {
  mx_error err;
  mx_spec spec = {0};
  const mx_format *format;
  const char *name = mxp_text(a[FORMAT], "format");
  uint64_t nbits = 0;
  *n_bits = 0;
  if (!name) return -1;
  mx_status status = mx_encoder_format(&format, name, &err);
  if (status) {
    mxp_raise(status, "format", err.text);
    return -1;
  }
  if (keys_of(&spec, name, a)) return -1;
  if ((status = mx_encoder_init(e, format, &spec, &err))) {
    mxp_raise(status, NULL, err.text);
    return -1;
  }
  for (int i = BITS; i <= NBITS; i++)
    if (a[i] && spec.elem_round != MX_ROUND_SR) {
      mxp_raise(MX_ERR_CONFLICT, names[i], "only round='sr' uses random integers");
      return -1;
    }
  if (a[BITS] && !a[NBITS]) {
    mxp_raise(MX_ERR_ARG, "nbits", "bits without nbits, expected how many bits its integers have");
    return -1;
  }
  if (a[NBITS]) {
    if (mxp_unsigned(&nbits, a[NBITS], "nbits", 32)) return -1;
    if (!e->how.sr_bits) e->how.sr_bits = (int)nbits;
    if (!nbits || (a[BITS] && e->how.sr_bits > (int)nbits)) {
      mxp_raisef(MX_ERR_ARG, "nbits", "%llu: expected %d to 32", (unsigned long long)nbits, e->how.sr_bits ? e->how.sr_bits : 1);
      return -1;
    }
    *n_bits = (unsigned)nbits;
  }
  return a[SCALE_EXP] ? set_scale_exp(e, a[SCALE_EXP]) : 0;
}

static void drop_encoder(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, "mxgold.encoder")); }

/* The encoder of (format, preset) alone, which is kept. */
static int known_encoder(mx_encoder *out, mxp_state *state, PyObject **a) {
  PyObject *key = Py_BuildValue("(OO)", a[FORMAT], a[PRESET] ? a[PRESET] : Py_None);
  PyObject *kept = key ? PyDict_GetItemWithError(state->encoders, key) : NULL;
  int failed = -1;
  if (kept) {
    const mx_encoder *e = PyCapsule_GetPointer(kept, "mxgold.encoder");
    if (e) *out = *e, failed = 0;
  } else if (key && !PyErr_Occurred()) {
    unsigned none;
    mx_encoder *e = PyMem_Malloc(sizeof *e);
    if (!e) PyErr_NoMemory();
    if (e && !make_encoder(e, &none, a)) {
      *out = *e;
      PyObject *capsule = PyCapsule_New(e, "mxgold.encoder", drop_encoder);
      if (capsule) failed = PyDict_SetItem(state->encoders, key, capsule), e = NULL;
      Py_XDECREF(capsule);
    }
    PyMem_Free(e);
  }
  Py_XDECREF(key);
  return failed;
}

/* Integers of bits= as the rounding takes them: their top sr_bits bits. NULL with an exception. */
static uint32_t *read_bits(const mxp_array *bits, unsigned n_bits, unsigned used) {
  uint32_t *random = malloc(bits->n * sizeof *random + 1);
  if (!random) PyErr_NoMemory();
  for (size_t i = 0; random && i < bits->n; i++) {
    uint64_t v = 0;
    memcpy(&v, bits->data + i * bits->item, bits->item);
    if (v >> n_bits) {
      mxp_raisef(MX_ERR_DATA, "bits", "integer %zu is 0x%llx, expected %u bits", i, (unsigned long long)v, n_bits);
      free(random);
      return NULL;
    }
    random[i] = (uint32_t)(v >> (n_bits - used));
  }
  return random;
}

static PyObject *encode(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  PyObject *a[COUNT];
  mxp_state *state = mxp_state_of(module);
  mxp_array x = {0}, bits = {0};
  mxp_result codes = {0};
  mx_encoder e;
  const float *values;
  unsigned n_bits = 0;
  uint32_t *random = NULL;
  uint64_t refused = 0;
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(a, "encode", names, 3, args, n_args, keywords)) return NULL;
  if (!a[X] || !a[FORMAT]) return PyErr_Format(PyExc_TypeError, "encode() needs x and format");
  if (!mxp_text(a[FORMAT], "format") || (a[PRESET] && !mxp_text(a[PRESET], "preset")))
    return NULL; /* they are a key of the encoders that are kept */
  int simple = 1;
  for (int i = ROUND; i < LIKE; i++) simple &= !a[i];
  if (simple ? known_encoder(&e, state, a) : make_encoder(&e, &n_bits, a)) return NULL;
  if (mxp_array_get(&x, state, a[X], "x") || mxp_floats(&values, &x, "x")) goto end;
  if (a[BITS]) {
    if (mxp_array_get(&bits, state, a[BITS], "bits") || mxp_contiguous(&bits)) goto end;
    if ((bits.kind != MXP_UINT && bits.kind != MXP_INT) || bits.n != x.n) {
      mxp_raisef(MX_ERR_SHAPE, "bits", "%zu values of %s, expected one integer for each of the %zu values of x", bits.n, bits.dtype, x.n);
      goto end;
    }
    if (!(random = read_bits(&bits, n_bits, (unsigned)e.how.sr_bits))) goto end;
  }
  if (mxp_result_make(&codes, state, MXP_U8, x.n_dims, x.shape)) goto end;
  MXP_WORK
  status = mx_encoder_run(codes.data, values, 0, x.n, &e, random, &refused);
  MXP_WORK_END
  if (status == MX_ERR_DATA)
    mxp_raisef(status, "x", "value %llu is NaN, refused by elem.nan=error", (unsigned long long)refused);
  else if (status)
    mxp_raise(status, "x", mx_status_text(status));
end:
  free(random);
  mxp_array_release(&bits);
  mxp_array_release(&x);
  return mxp_like(state, mxp_result_end(&codes, status != MX_OK), a[LIKE]);
}

static const char *format_name(const void *set, size_t index) {
  (void)set;
  if (index < MX_ELEM_COUNT) return mx_elem_format((int)index)->name;
  if ((index -= MX_ELEM_COUNT) < MX_SCALE_COUNT) return mx_scale_format((int)index)->name;
  return (index -= MX_SCALE_COUNT) < MX_OPERAND_COUNT ? mx_operand_format((int)index)->name : NULL;
}

/* Does the dtype of codes not say another format? 0 with the error of mxgold._tables.hold_dtype(). */
static int is_of(const mxp_array *codes, const mx_format *format) {
  PyObject *tables = PyImport_ImportModule("mxgold._tables");
  PyObject *done = tables ? PyObject_CallMethod(tables, "hold_dtype", "sss", codes->dtype, format->name, "codes") : NULL;
  Py_XDECREF(tables);
  Py_XDECREF(done);
  return done != NULL;
}

static PyObject *decode(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { CODES, FORMAT_, THREADS, LIKE_, ALL };
  static const char *const words[] = {"codes", "format", "threads", "like", NULL};
  PyObject *a[ALL];
  mxp_state *state = mxp_state_of(module);
  mxp_array codes = {0};
  mxp_result values = {0};
  mx_exec exec = {0};
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(a, "decode", words, 2, args, n_args, keywords)) return NULL;
  if (!a[CODES] || !a[FORMAT_]) return PyErr_Format(PyExc_TypeError, "decode() needs codes and format");
  const char *name = mxp_text(a[FORMAT_], "format");
  if (!name || mxp_threads(&exec.n_threads, a[THREADS])) return NULL;
  const mx_format *format = mx_format_find(name);
  if (!format || format->kind == MX_KIND_NONE) {
    char near[200];
    mx_nearest(near, sizeof near, name, format_name, NULL);
    return mxp_raisef(MX_ERR_KEY, "format", "'%s' is unknown, nearest: %s", name, near);
  }
  const size_t width = format->bits <= 8 ? 1 : 2;
  if (mxp_array_get(&codes, state, a[CODES], "codes")) goto end;
  if (codes.item != width || codes.kind == MXP_BOOL || codes.kind == MXP_OTHER || codes.kind == MXP_FLOAT) {
    mxp_raise_dtype("codes", "dtype %s, expected uint%zu for codes of %s", codes.dtype, 8 * width, format->name);
    goto end;
  }
  if (codes.kind == MXP_CODE && !is_of(&codes, format)) goto end;
  if (format->bits > 16) {
    mxp_raisef(MX_ERR_UNSUPPORTED, "format", "%s has %d bits, expected at most 16", format->name, (int)format->bits);
    goto end;
  }
  if (mxp_contiguous(&codes) || mxp_result_make(&values, state, MXP_F32, codes.n_dims, codes.shape)) goto end;
  MXP_WORK
  status = mx_decode_array(values.data, codes.data, codes.n, format, &exec);
  MXP_WORK_END
  if (status) mxp_raise(status, "codes", mx_status_text(status));
end:
  mxp_array_release(&codes);
  return mxp_like(state, mxp_result_end(&values, status != MX_OK), a[LIKE_]);
}

PyMethodDef mxp_codec_methods[] = {
    MXP_ROW(
        "encode", encode,
        "encode(x, format, preset=None, *, round=None, overflow=None, nan=None, sr_mode=None, set=None, scale_exp=None, bits=None, nbits=None, "
        "seed=None, like=None)\n--\n\n"
        "Codes of single values, without blocks: what a cast to the format gives, to the byte as `mxgold encode` does.\n\n"
        "x: float32, float16 or bfloat16 of any shape. format: an element or a one-byte scale ('e2m1', 'e4m3', 'e8m0', ...; "
        "mxgold.formats()).\n"
        "preset: the cast of a library ('torch', 'ml-dtypes', 'cuda-host', 'amd-host', 'gfloat'). round, overflow, nan, sr_mode: keys "
        "elem.round,\n"
        "elem.overflow, elem.nan, sr.mode; set: any other key. scale_exp: encode x * 2^-scale_exp; nan: under a NaN scale.\n"
        "bits: random integers of nbits bits, one a value, for round='sr'; without them those of Philox of `seed`.\n\n"
        "Returns uint8 in the shape of x, one code a value. Raises SpecError, DataError (a NaN under nan='error': .index), DtypeError.\n\n"
        ">>> import numpy as np, mxgold\n"
        ">>> mxgold.encode(np.float32([0.25, 0.75, 5, -9]), 'e2m1')\n"
        "array([ 0,  2,  6, 15], dtype=uint8)"),
    MXP_ROW("decode", decode,
            "decode(codes, format, *, threads=0, like=None)\n--\n\n"
            "Values of codes, exact.\n\n"
            "codes: one a number, uint8 (or a float8 dtype seen as bits), uint16 for formats of more than 8 bits. format: a name of "
            "mxgold.formats().\n"
            "Returns float32 in the shape of codes; NaN codes give NaN with their sign.\n\n"
            ">>> import numpy as np, mxgold\n"
            ">>> mxgold.decode(np.uint8([0, 2, 6, 15]), 'e2m1')\n"
            "array([ 0.,  1.,  4., -6.], dtype=float32)"),
    {0}};
