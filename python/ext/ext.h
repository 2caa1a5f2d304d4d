/* Declares what the files of the extension module mxgold._core share: the module's state, arguments, arrays in and out, errors.
 *
 * The module is built against Python's stable ABI (cp311-abi3) and against the public headers of the library alone. NumPy is not needed to compile: results are
 * made by calling numpy.empty() and filled through the buffer protocol. Nothing Python is held in static variables, so each subinterpreter has its own
 * module. Functions named mxp_ are the module's own. */
#ifndef PYTHON_EXT_H
#define PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#ifdef Py_GIL_DISABLED
#error "mxgold: a free-threaded Python has no stable ABI to build against; build with a Python that has the GIL"
#endif

#include "mxgold/mxgold.h"

/* What one interpreter's module holds. */
typedef struct mxp_state {
  PyObject *empty;     /* numpy.empty */
  PyObject *dtypes[8]; /* numpy.dtype of each mxp_out */
  PyTypeObject *spec_base;
  PyObject *spec;      /* class mxgold.Spec, a subclass of spec_base */
  PyObject *quantized; /* class mxgold.Quantized */
  PyObject *specs;     /* dict: preset's name -> Spec */
  PyObject *make_spec; /* mxgold._spec.make(preset, spec, set, seed) -> Spec */
  PyObject *adapt;     /* mxgold._arrays.adapt(array, argument) -> (array that has a buffer or __dlpack__, dtype's name or None) */
  PyObject *as_like;   /* mxgold._arrays.as_like(array, like) */
  PyObject *encoders;  /* dict: (format, preset) -> capsule of an mx_encoder */
} mxp_state;

mxp_state *mxp_state_of(PyObject *module);

/* --- errors --- */

/** Raise the exception of a status with a message; argument may be NULL. Returns NULL, so that a function can end in `return mxp_raise(...)`. */
PyObject *mxp_raise(mx_status status, const char *argument, const char *text);
/** The same with printf's arguments. */
PyObject *mxp_raisef(mx_status status, const char *argument, const char *format, ...);
/** A TypeError of mxgold's: an array of the wrong kind. */
PyObject *mxp_raise_dtype(const char *argument, const char *format, ...);

/* --- arguments of METH_FASTCALL | METH_KEYWORDS --- */

/** Put positional and keyword arguments where they belong: out[i] is borrowed, NULL if it was not given or is None.
 *  names       of all arguments, NULL at the end; the first `positional` of them may be given without their names
 *  Returns 0, or -1 with a TypeError that names the function. */
int mxp_arguments(PyObject **out, const char *function, const char *const *names, Py_ssize_t positional, PyObject *const *args, Py_ssize_t n,
                  PyObject *keywords);
/** Text of a str argument, borrowed; NULL with a TypeError. */
const char *mxp_text(PyObject *from, const char *argument);
int mxp_unsigned(uint64_t *out, PyObject *from, const char *argument, uint64_t most);
int mxp_float(float *out, PyObject *from, const char *argument);
/** True or False; 0 for NULL. */
int mxp_flag(int *out, PyObject *from, const char *argument);
/** threads=: 0 and None are the default. */
int mxp_threads(int *out, PyObject *from);

/* --- arrays in --- */

typedef enum mxp_kind { MXP_FLOAT, MXP_BFLOAT, MXP_INT, MXP_UINT, MXP_BOOL, MXP_CODE, MXP_OTHER } mxp_kind;
enum { MXP_MAX_DIMS = 32 };

/* An array of the caller's, as it lies in memory. */
typedef struct mxp_array {
  const uint8_t *data;
  mxp_kind kind;
  size_t item; /* bytes of an element */
  int n_dims;
  Py_ssize_t shape[MXP_MAX_DIMS], strides[MXP_MAX_DIMS]; /* in bytes */
  size_t n;                                              /* elements */
  const char *dtype;                                     /* for messages */
  Py_buffer view;
  int has_view;
  PyObject *owner;   /* what keeps data alive, if it is not the caller's object */
  void *managed;     /* of DLPack, with its deleter */
  int is_versioned;  /* which of the two structs `managed` is */
  uint8_t *straight; /* a contiguous copy, where one was needed */
} mxp_array;

/** Look at an array: buffer protocol, DLPack's C exchange, __dlpack__, else what mxgold._arrays.adapt() makes of it. The caller releases it in
 *  either case. Returns 0, or -1 with an exception that names the argument. */
int mxp_array_get(mxp_array *out, mxp_state *state, PyObject *from, const char *argument);
void mxp_array_release(mxp_array *array);
/* DLPack's types of the devices whose memory the processor reads, as a tuple. */
PyObject *mxp_devices_in_memory(void);
/** Is it of this kind and width? */
int mxp_is(const mxp_array *array, mxp_kind kind, size_t item);
/** Elements one after the other, aligned: in place if they lie so, else in a copy. -1 with MemoryError. */
int mxp_contiguous(mxp_array *array);
/** As a matrix [rows][cols] of the last axis and all before it, row stride *ld elements: in place if every row is contiguous and the rows are evenly apart,
 *  else a copy. -1 with an exception. */
int mxp_matrix(mxp_array *array, size_t *rows, size_t *cols, size_t *ld, const char *argument);
/** float32, float16 or bfloat16 as binary32 [n], contiguous: *out is the array's own memory or owned by it. -1 with an exception. */
int mxp_floats(const float **out, mxp_array *array, const char *argument);

/* --- arrays out --- */

typedef enum mxp_out { MXP_U8, MXP_U16, MXP_U32, MXP_U64, MXP_F32, MXP_F16, MXP_I64 } mxp_out;

/* A new NumPy array that is being filled. */
typedef struct mxp_result {
  PyObject *array;
  Py_buffer view;
  void *data;
} mxp_result;
int mxp_result_make(mxp_result *out, mxp_state *state, mxp_out dtype, int n_dims, const Py_ssize_t *shape);
/** The array, owned by the caller; or with failed set NULL, and the array is dropped. */
PyObject *mxp_result_end(mxp_result *out, int failed);
/** Arrays of a quantised matrix while they are filled: codes, scales and, if it has any, micro-scales, of t's sizes. */
typedef struct mxp_parts {
  mxp_result codes, scales, micro;
} mxp_parts;
int mxp_parts_make(mxp_parts *out, mxp_state *state, const mx_tensor *t, const mx_spec *spec);
/** The same filled with what t has. */
int mxp_parts_of(mxp_parts *out, mxp_state *state, const mx_tensor *t, const mx_spec *spec);
/** Ends all three, the micro-scales NULL where there are none. */
void mxp_parts_end(PyObject *out[3], mxp_parts *parts, int failed);
/** One float32 as an array of no dimensions, bit for bit: a conversion would lose a subnormal where the caller flushes them. NULL with an exception. */
PyObject *mxp_scalar(mxp_state *state, float value);
/** The float32 of such an array or of a numpy.float32, bit for bit; of any other number, rounded. */
int mxp_scalar_of(float *out, PyObject *from, const char *argument);
/** result as the library of `like` (NULL: NumPy) has it; takes result. */
PyObject *mxp_like(mxp_state *state, PyObject *result, PyObject *like);

/* --- specs --- */

typedef struct mxp_spec {
  PyObject_HEAD;
  mx_spec spec;
} mxp_spec;
extern PyType_Spec mxp_spec_type;
/** The spec of preset=, spec=, set= and seed=: a new reference to a Spec. */
PyObject *mxp_spec_of(mxp_state *state, PyObject *preset, PyObject *spec, PyObject *set, PyObject *seed);
const mx_spec *mxp_spec_in(PyObject *spec);
/** A Spec of the class mxgold.Spec that holds `from`; like: a Spec that it was made from, whose preset it may be named after, or NULL. */
PyObject *mxp_spec_new(mxp_state *state, const mx_spec *from, PyObject *like);

/* --- work --- */

/* The library's arithmetic is IEEE's default. A caller may have switched that (torch.set_flush_denormal): it is put right for the call. */
static inline unsigned mxp_arithmetic(void) {
#if defined __x86_64__
  return __builtin_ia32_stmxcsr() & ~0x3Fu; /* without the flags of what has happened */
#elif defined __aarch64__
  unsigned long v;
  __asm__ volatile("mrs %0, fpcr" : "=r"(v));
  return (unsigned)v;
#endif
}
static inline void mxp_set_arithmetic(unsigned v) {
#if defined __x86_64__
  __builtin_ia32_ldmxcsr(v);
#elif defined __aarch64__
  __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)v));
#endif
}
#ifdef __x86_64__
enum { MXP_IEEE = 0x1F80 };
#else
enum { MXP_IEEE = 0 };
#endif
#define MXP_WORK                                                                                                                               \
  {                                                                                                                                            \
    const unsigned mxp_before = mxp_arithmetic();                                                                                              \
    Py_BEGIN_ALLOW_THREADS;                                                                                                                    \
    if (mxp_before != MXP_IEEE) mxp_set_arithmetic(MXP_IEEE);
#define MXP_WORK_END                                                                                                                           \
  if (mxp_before != MXP_IEEE) mxp_set_arithmetic(mxp_before);                                                                                  \
  Py_END_ALLOW_THREADS;                                                                                                                        \
  }

/* The files' functions, joined into one table by module.c. */
extern PyMethodDef mxp_quantize_methods[], mxp_codec_methods[], mxp_product_methods[], mxp_linear_methods[], mxp_case_methods[],
    mxp_file_methods[], mxp_table_methods[];

/* A quantised matrix that came from Python: fields of mxgold.Quantized, held while it is used. */
typedef struct mxp_operand {
  mx_tensor tensor;
  const mx_spec *spec;
  PyObject *parts[4];
  mxp_array arrays[3];
} mxp_operand;
int mxp_operand_get(mxp_operand *out, mxp_state *state, PyObject *quantized, const char *argument);
void mxp_operand_release(mxp_operand *operand);

#define MXP_CALL(function) ((PyCFunction)(void (*)(void))(function))
#define MXP_ROW(name, function, doc)                                                                                                           \
  { name, MXP_CALL(function), METH_FASTCALL | METH_KEYWORDS, doc }

#endif
