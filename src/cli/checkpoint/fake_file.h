/* Declares one file of a checkpoint quantised and dequantised again. */
#ifndef CLI_CHECKPOINT_FAKE_FILE_H
#define CLI_CHECKPOINT_FAKE_FILE_H

#include "mxgold/ablate.h"
#include "mxgold/file.h"
#include "cli/base/progress.h"

/** What became of a tensor. */
typedef struct fake_tensor {
  const mx_array *a; /* while the file is open; name, dtype and shape outlive it */
  char *name;
  mx_dtype dtype;
  int n_dims;
  uint64_t shape[MX_MAX_DIMS];
  const char *kept; /* why it is copied as it is; NULL: quantised */
  size_t rows, cols, piece_rows;
  int amax_known;
  float amax;
  mx_error_sums sums;
  uint64_t n_codes, saturated;
} fake_tensor;

typedef struct fake_options {
  const mx_spec *spec;
  int n_threads, refuse_nan;
  progress *p;
  uint64_t *done; /* bytes so far, of all files */
} fake_options;

/** Tensors of one checkpoint draw their random bits apart: the seed xor FNV-1a of the name. */
uint64_t tensor_seed(uint64_t seed, const char *name);
/** In what pieces a tensor is to be quantised; t->kept is set where it cannot be: when had.size does not divide its columns. MX_ERR_SHAPE when a block
 *  is too large to be held. */
mx_status fake_plan(fake_tensor *t, const mx_spec *spec, mx_error *err);
/** Fill `to`, which has begun and holds the tensors in this order. Pieces are made on all threads and written in order, with the same bits for any
 *  number of them. */
mx_status fake_file(fake_tensor *tensors, size_t n, mx_writer *to, const fake_options *o, mx_error *err);

#endif
