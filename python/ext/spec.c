/* Defines the base type of Spec: an mx_spec that never changes, with its texts. mxgold/_spec.py gives it keys as attributes. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

enum { TEXT = 4096 };

static int parse(mx_spec *spec, PyObject *from) {
  mx_error err;
  const char *text = mxp_text(from, "spec");
  if (!text) return -1;
  const mx_status status = *text == '{' ? mx_spec_parse_json(spec, text, strlen(text), &err) : mx_spec_parse(spec, text, &err);
  if (!status) return 0;
  mxp_raise(status, NULL, err.text);
  return -1;
}

/* SpecBase(preset or None, text, ...): each text is "key=value ...", or a JSON object, on top of what came before. */
static PyObject *spec_make(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  mx_spec spec = {0};
  mx_error err;
  const Py_ssize_t n = PyTuple_Size(args);
  if (keywords && PyDict_Size(keywords)) {
    PyErr_SetString(PyExc_TypeError, "SpecBase() takes no keywords");
    return NULL;
  }
  PyObject *preset = n ? PyTuple_GetItem(args, 0) : Py_None;
  if (preset != Py_None) {
    const char *name = mxp_text(preset, "preset");
    if (!name) return NULL;
    const mx_status status = mx_preset_find(&spec, name, &err);
    if (status) return mxp_raise(status, "preset", err.text);
  }
  for (Py_ssize_t i = 1; i < n; i++)
    if (parse(&spec, PyTuple_GetItem(args, i))) return NULL;
  const mx_status status = mx_spec_check(&spec, &err);
  if (status) return mxp_raise(status, NULL, err.text);
  allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  mxp_spec *self = (mxp_spec *)make(type, 0);
  if (self) self->spec = spec;
  return (PyObject *)self;
}

static void spec_free(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  freefunc drop = (freefunc)PyType_GetSlot(type, Py_tp_free);
  drop(self);
  Py_DECREF(type);
}

/* Every key, which is one text for equal specs. */
static PyObject *whole_text(const mx_spec *spec) {
  char text[TEXT];
  mx_spec_print(text, sizeof text, spec, 1);
  return PyUnicode_FromString(text);
}

static Py_hash_t spec_hash(PyObject *self) {
  PyObject *text = whole_text(&((mxp_spec *)self)->spec);
  const Py_hash_t hash = text ? PyObject_Hash(text) : -1;
  Py_XDECREF(text);
  return hash;
}

/* The class of SpecBase among the bases of a class: its slot of comparison is this file's. */
static PyObject *spec_compare(PyObject *self, PyObject *other, int how);
static int is_spec(PyObject *o) { return PyType_GetSlot(Py_TYPE(o), Py_tp_richcompare) == (void *)spec_compare; }

static PyObject *spec_compare(PyObject *self, PyObject *other, int how) {
  if ((how != Py_EQ && how != Py_NE) || !is_spec(other)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong(mx_spec_equal(&((mxp_spec *)self)->spec, &((mxp_spec *)other)->spec) == (how == Py_EQ));
}

static PyObject *spec_text(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  static const char *const names[] = {"all", NULL};
  PyObject *all;
  char text[TEXT];
  int everything;
  if (mxp_arguments(&all, "text", names, 1, args, n, keywords) || mxp_flag(&everything, all, "all")) return NULL;
  mx_spec_print(text, sizeof text, &((mxp_spec *)self)->spec, everything);
  return PyUnicode_FromString(text);
}

/* Append the keys of `text` that `base` has otherwise; both hold every key, in one order. */
static void changes(char *out, size_t size, const char *base, const char *text) {
  size_t n = strlen(out);
  while (*text && *base && n < size) {
    const size_t a = strcspn(base, " "), b = strcspn(text, " ");
    if (a != b || memcmp(base, text, b)) n += (size_t)snprintf(out + n, size - n, " %.*s", (int)b, text);
    base += a + (base[a] == ' ');
    text += b + (text[b] == ' ');
  }
}

static int gives(const mx_spec *wanted, const char *preset, const char *text) {
  mx_spec spec = {0};
  if (preset && mx_preset_find(&spec, preset, NULL)) return 0;
  return !mx_spec_parse(&spec, text, NULL) && mx_spec_equal(&spec, wanted);
}

/* Every key of a preset, printed once in a process: under the GIL, which calls of this module hold. NULL if there is no such preset, or no memory. */
static const char *preset_text(size_t index) {
  static char **texts;
  mx_spec preset = {0};
  char text[TEXT];
  if (!texts && !(texts = calloc(mx_preset_count(), sizeof *texts))) return NULL;
  if (texts[index] || mx_preset_find(&preset, mx_preset_at(index)->name, NULL)) return texts[index];
  mx_spec_print(text, sizeof text, &preset, 1);
  return texts[index] = strdup(text);
}

/* shortest(like): (preset or None, "key=value ...") of the fewest letters that give this spec again; at equal lengths, and where no key is changed, the
 * preset called `like` comes first. */
static PyObject *spec_shortest(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  static const char *const names[] = {"like", NULL};
  const mx_spec *spec = &((mxp_spec *)self)->spec;
  PyObject *given;
  if (mxp_arguments(&given, "shortest", names, 1, args, n, keywords)) return NULL;
  const char *like = given ? mxp_text(given, "like") : NULL, *best_name = NULL;
  if (given && !like) return NULL;
  char whole[TEXT], text[TEXT], best[TEXT];
  mx_spec_print(whole, sizeof whole, spec, 1);
  mx_spec_print(best, sizeof best, spec, 0);
  size_t least = strlen(best);
  const size_t count = mx_preset_count();
  size_t first = like ? 0 : count;
  while (first < count && strcmp(mx_preset_at(first)->name, like)) first++;
  for (size_t i = 0; i <= count && (least || !i); i++) { /* `like` first: it wins at equal lengths, and at once where it is the spec */
    const size_t at = i ? i - 1 : first;
    if (at == count || (i && mx_preset_at(at)->alias_of)) continue;
    const char *name = mx_preset_at(at)->name, *base = preset_text(at);
    if (!base) continue;
    *text = 0;
    changes(text, sizeof text, base, whole);
    const size_t length = strlen(name) + strlen(text);
    if ((length >= least && !(length == least && !best_name) && !(!i && !*text)) || !gives(spec, name, text)) continue;
    best_name = name;
    memcpy(best, text, sizeof best);
    least = i || *text ? length : 0;
  }
  return Py_BuildValue("(zs)", best_name, *best == ' ' ? best + 1 : best);
}

/* block(rows, cols): rows and columns of a block of such a matrix. */
static PyObject *spec_block(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  static const char *const names[] = {"rows", "cols", NULL};
  PyObject *given[2];
  uint64_t extent[2] = {0, 0};
  size_t rows, cols;
  if (mxp_arguments(given, "block", names, 2, args, n, keywords)) return NULL;
  for (int i = 0; i < 2; i++)
    if (given[i] && mxp_unsigned(&extent[i], given[i], names[i], SIZE_MAX / 2)) return NULL;
  mx_spec_block(&((mxp_spec *)self)->spec, extent[0], extent[1], &rows, &cols);
  return Py_BuildValue("(nn)", (Py_ssize_t)rows, (Py_ssize_t)cols);
}

/* Convention of the tensor scale: "scale", "divisor", "amax" or "none". */
static PyObject *spec_store(PyObject *self, PyObject *unused) {
  (void)unused;
  return PyUnicode_FromString(mx_tensor_store_name(&((mxp_spec *)self)->spec));
}

static PyMethodDef spec_methods[] = {
    MXP_ROW("text", spec_text, "text(all=False): the keys that differ from the default as 'key=value ...'; with all, every key"),
    MXP_ROW("shortest", spec_shortest, "shortest(like=None): (preset or None, 'key=value ...') of the fewest letters"),
    MXP_ROW("block_of", spec_block, "block_of(rows, cols): rows and columns of a block of such a matrix"),
    {"tensor_store", spec_store, METH_NOARGS, "tensor_store(): 'scale', 'divisor', 'amax' or 'none'"},
    {0}};
static PyType_Slot slots[] = {{Py_tp_new, (void *)spec_make},
                              {Py_tp_dealloc, (void *)spec_free},
                              {Py_tp_hash, (void *)spec_hash},
                              {Py_tp_methods, spec_methods},
                              {Py_tp_richcompare, (void *)spec_compare},
                              {Py_tp_doc, (void *)"The keys of a quantisation; see mxgold.Spec."},
                              {0, NULL}};
PyType_Spec mxp_spec_type = {"mxgold._core.SpecBase", sizeof(mxp_spec), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

const mx_spec *mxp_spec_in(PyObject *spec) { return &((mxp_spec *)spec)->spec; }

PyObject *mxp_spec_new(mxp_state *state, const mx_spec *from, PyObject *like) {
  PyObject *spec = PyObject_CallFunctionObjArgs(state->spec, NULL), *name = NULL, *key = NULL;
  if (!spec) return NULL;
  if (like &&
      (!(key = PyUnicode_InternFromString("_like")) || !(name = PyObject_GetAttr(like, key)) || PyObject_GenericSetAttr(spec, key, name)))
    Py_CLEAR(spec);
  Py_XDECREF(key);
  Py_XDECREF(name);
  if (!spec) return NULL;
  ((mxp_spec *)spec)->spec = *from; /* nobody has seen it yet */
  ((mxp_spec *)spec)->spec.given_bits = NULL;
  return spec;
}

PyObject *mxp_spec_of(mxp_state *state, PyObject *preset, PyObject *spec, PyObject *set, PyObject *seed) {
  if (!set && !seed && !preset && spec && PyObject_TypeCheck(spec, state->spec_base)) {
    Py_INCREF(spec);
    return spec;
  }
  if (!set && !seed && !spec && preset && PyUnicode_Check(preset)) {
    PyObject *known = PyDict_GetItemWithError(state->specs, preset);
    if (!known && PyErr_Occurred()) return NULL;
    if (!known) {
      known = PyObject_CallFunctionObjArgs(state->spec, preset, NULL);
      if (!known || PyDict_SetItem(state->specs, preset, known)) {
        Py_XDECREF(known);
        return NULL;
      }
      return known;
    }
    Py_INCREF(known);
    return known;
  }
  return PyObject_CallFunctionObjArgs(state->make_spec, preset ? preset : Py_None, spec ? spec : Py_None, set ? set : Py_None,
                                      seed ? seed : Py_None, NULL);
}
