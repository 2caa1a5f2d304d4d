/** Lists the types of the numbers in files and arrays, which are not the element formats of format.h. The F8 rows are for checkpoints:
 *  their bytes are codes, and nothing here gives them a value. */
#ifndef MXGOLD_DTYPE_H
#define MXGOLD_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** The types: MX_DTYPE(ID, safetensors name, .npy descr ("" if none), command-line name, bytes) */
#define MX_DTYPES(X)                                                                                                                           \
  X(F32, "F32", "<f4", "f32", 4)                                                                                                               \
  X(F16, "F16", "<f2", "f16", 2)                                                                                                               \
  X(BF16, "BF16", "", "bf16", 2)                                                                                                               \
  X(F64, "F64", "<f8", "f64", 8)                                                                                                               \
  X(U8, "U8", "|u1", "u8", 1)                                                                                                                  \
  X(U16, "U16", "<u2", "u16", 2)                                                                                                               \
  X(U32, "U32", "<u4", "u32", 4)                                                                                                               \
  X(U64, "U64", "<u8", "u64", 8)                                                                                                               \
  X(I8, "I8", "|i1", "i8", 1)                                                                                                                  \
  X(I16, "I16", "<i2", "i16", 2)                                                                                                               \
  X(I32, "I32", "<i4", "i32", 4)                                                                                                               \
  X(I64, "I64", "<i8", "i64", 8)                                                                                                               \
  X(BOOL, "BOOL", "|b1", "bool", 1)                                                                                                            \
  X(F8_E4M3, "F8_E4M3", "", "f8_e4m3", 1)                                                                                                      \
  X(F8_E5M2, "F8_E5M2", "", "f8_e5m2", 1)                                                                                                      \
  X(F8_E8M0, "F8_E8M0", "", "f8_e8m0", 1)

/** A type of the list above: MX_F32, MX_F16, ... */
typedef enum mx_dtype {
#define X(id, st, npy, cli, bytes) MX_##id,
  MX_DTYPES(X)
#undef X
      MX_DTYPE_COUNT
} mx_dtype;

/** Bytes that a value of dtype takes; 0 for a dtype outside the enum. */
size_t mx_dtype_bytes(mx_dtype dtype);
/** Command-line name ("f32"), never NULL. */
const char *mx_dtype_name(mx_dtype dtype);
/** Name in a .safetensors header ("F32"), never NULL. */
const char *mx_dtype_safetensors(mx_dtype dtype);
/** descr in a .npy header ("<f4"), "" if .npy has none; never NULL. */
const char *mx_dtype_npy(mx_dtype dtype);
/** dtype of a command-line name; -1 if the name is unknown. */
int mx_dtype_find(const char *name);

/** Convert binary32 to a checkpoint's own dtype.
 *  out    n values of dtype MX_F32, MX_F16 or MX_BF16; may be x itself.
 *  x      float32 [n].  Rounded to nearest, ties to even; finite values beyond the largest become the largest; Inf stays, a NaN becomes quiet.
 *  n_threads  0: OpenMP's default. The bits do not depend on it.
 *  Threads: reentrant.  Oracle: tests/test_codec.c (mx_encode of the format). */
void mx_narrow(void *out, const float *x, size_t n, mx_dtype dtype, int n_threads);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
