/* Declares what the writer and its layouts share. Internal to src/io/. */
#ifndef MX_IO_WRITER_H
#define MX_IO_WRITER_H

#include "io/base/digest.h"
#include "io.h"
#include "io/base/names.h"

typedef struct io_tensor {
  mx_array a;              /* name owned; data unused */
  uint64_t at;             /* where its first byte is in the file */
  uint64_t taken, written; /* bytes taken from the caller, and those of them that went to the file */
  uint8_t *gather;         /* bytes taken but not yet written */
  XXH3_state_t *digest;
  uint64_t digest_at; /* where its 32 digits are in the header */
} io_tensor;

struct mx_writer {
  char *path;      /* as given, for messages */
  char *target;    /* what is renamed over: path, or what it links to */
  char *temporary; /* NULL before it exists, after it is renamed, and for a file without a name */
  int slot;        /* in the table of cleanup.h */
  int fd;          /* -1 until mx_writer_begin() */
  int npy, stream; /* stream: no rename, the bytes are copied at the end */
  io_tensor *tensors;
  size_t n_tensors;
  io_meta *meta;
  size_t n_meta;
  io_names tensor_names, meta_keys;
  uint64_t n_bytes;
};

/* Lays out the file: the header as text that the caller frees, with zeros for digests; the places of tensors and of their digests; and
 * w->n_bytes. */
mx_status mxi_io_layout_npy(mx_writer *w, uint8_t **header, size_t *n_header, mx_error *err);
mx_status mxi_io_layout_safetensors(mx_writer *w, uint8_t **header, size_t *n_header, mx_error *err);

#endif
