/** Reads and writes the files that hold a quantised matrix: `mxgold quantize` writes one, and every later command reads it.
 *
 *  Such a file is a .safetensors file with tensors codes (U8; F32 under elem=none, bf16), scales (U8, U16, F32), tensor_scale (F32 [1], if the spec has
 *  one), micro (U8, only with scale.rule=hif4) and dequantized (F32, on request). Its metadata are spec (every key), preset, shape (of the
 *  input), rows, cols, dtype, block, tensor_store, seed, version, and xxh3.NAME for each tensor.
 *  With the metadata key layout (a name of formats/layouts.def other than row) scales is a flat U8 tensor of mx_layout_size() bytes in that layout;
 *  layout_pad is the byte in its padding. Opening such a file gives the scales in row-major order all the same. */
#ifndef MXGOLD_QUANTIZED_H
#define MXGOLD_QUANTIZED_H

#include "file.h"
#include "layout.h"
#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** An open file with its spec, its quantised matrix and what its metadata say. */
typedef struct mx_quantized {
  mx_file *file;
  mx_spec spec;
  mx_tensor tensor; /* pointers into the mapping: read only, valid until mx_quantized_close() */
  uint64_t shape[MX_MAX_DIMS];
  int n_dims;
  const mx_array *dequantized; /* NULL if not in the file */
  const char *preset;          /* "" if none was named */
  mx_dtype dtype;              /* of the input */
  mx_layout layout;            /* of the file's scales */
  uint8_t *unpacked;           /* tensor.scales, if the file has them in a layout other than row; freed by mx_quantized_close() */
} mx_quantized;

/** Open such a file and check that every tensor has the dtype and shape that its spec requires.
 *  MX_ERR_FORMAT names the file, the tensor or metadata key, and what was expected. */
mx_status mx_quantized_open(mx_quantized *out, const char *path, mx_error *err);
/** The same from an open file, which *out then owns. On error the caller still has it, and *out is zero. */
mx_status mx_quantized_take(mx_quantized *out, mx_file *file, mx_error *err);
/** Close the file and free what belongs to *q. */
void mx_quantized_close(mx_quantized *q);

/** Indices of the tensors of a quantised matrix in a file that is written in pieces of rows; -1 for those that the spec does not have. */
enum { MX_Q_CODES, MX_Q_SCALES, MX_Q_MICRO, MX_Q_TENSOR_SCALE, MX_Q_DEQUANTIZED, MX_Q_COUNT };
typedef struct mx_quantized_layout {
  ptrdiff_t index[MX_Q_COUNT];
} mx_quantized_layout;
/** Add the tensors and metadata of a quantised matrix to w, before mx_writer_begin(). shape [n_dims] and dtype are the input's.
 *  Returns MX_OK; MX_ERR_SHAPE (a shape that overflows); and the errors of mx_writer_add() and mx_writer_meta(). */
mx_status mx_quantized_declare(mx_quantized_layout *out, mx_writer *w, const mx_spec *spec, const char *preset, const uint64_t *shape,
                               int n_dims, mx_dtype dtype, int with_dequantized, mx_error *err);
/** The same with scales in a layout other than row; MX_ERR_CONFLICT if they are wider than a byte. The caller then writes the whole output of
 *  mx_layout_pack() to index[MX_Q_SCALES] at once, since mx_quantized_append() does not. */
mx_status mx_quantized_declare_in(mx_quantized_layout *out, mx_writer *w, const mx_spec *spec, const char *preset, const uint64_t *shape,
                                  int n_dims, mx_dtype dtype, int with_dequantized, mx_layout layout, uint8_t pad, mx_error *err);
/** Append rows: codes and scales of a piece (whole block rows), and its dequantised values if declared (else NULL). */
mx_status mx_quantized_append(mx_writer *w, const mx_quantized_layout *layout, const mx_tensor *piece, const float *dequantized, mx_error *err);

/** [rows][cols] of a shape: the product of the leading dimensions, and the last; a vector is one row, a scalar 1 x 1. 0 on overflow. */
int mx_matrix_of(size_t *rows, size_t *cols, const uint64_t *shape, int n_dims);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
