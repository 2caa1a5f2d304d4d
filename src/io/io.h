/* Declares what the readers share. Internal to src/io/. */
#ifndef MX_IO_IO_H
#define MX_IO_IO_H

#include <stdint.h>

#include "mxgold/file.h"
#include "io/base/names.h"

typedef struct io_meta {
  char *key, *value;
} io_meta;

/* What base is: a mapping of the file, the file in allocated memory, or only the header. */
typedef enum io_way { IO_MAPPED, IO_HELD, IO_HEAD } io_way;

struct mx_file {
  char *path;          /* as given, for messages; "standard input" for "-" */
  const uint8_t *base; /* NULL when the file is empty */
  size_t n_bytes;      /* of the whole file */
  io_way way;
  int open_ended; /* the length of the file is not known: parsers set n_bytes to what the header states */
  int opened;     /* 1 + its descriptor; 0: none */
  mx_array *arrays;
  size_t n_arrays;
  io_meta *meta;
  size_t n_meta;
  struct mx_vectors *vectors;      /* for .mxv: the vectors that own the data of the arrays; base is then released */
  io_names array_names, meta_keys; /* for open files; a file that only a parser uses has no index, and is searched */
};

/* Parsers fill in arrays and metadata from base[0 .. n_bytes). What they allocate belongs to f even on failure, and mx_file_close() frees
 * it. */
mx_status mxi_io_parse_npy(mx_file *f, mx_error *err);
mx_status mxi_io_parse_safetensors(mx_file *f, mx_error *err);
/* For this one f must hold all of the text. */
mx_status mxi_io_parse_mxv(mx_file *f, mx_error *err);
int mxi_io_is_mxv(const uint8_t *start, size_t n_bytes);
void mxi_io_free_vectors(mx_file *f);
/* Recognises the kind of a file and parses it. A file may also be made from bytes that the caller keeps, as fuzz targets do;
 * mxi_io_free_parsed() then frees what the parser made. */
mx_status mxi_io_parse(mx_file *f, mx_error *err);
void mxi_io_free_parsed(mx_file *f);
/* Unmaps or frees the bytes, and closes the file. */
void mxi_io_let_go(const mx_file *f);
/* Builds the index of names. 0: out of memory. */
int mxi_io_index_names(mx_file *f);

/* Reports "PATH: byte N: ..." and returns MX_ERR_FORMAT. */
mx_status mxi_io_malformed(const mx_file *f, mx_error *err, uint64_t byte, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fills in n_values and n_bytes from dtype and shape. 0 if the sizes overflow 63 bits. The check leaves dimensions of zero out of the
 * product, so that any partial product of the shape fits as well, and callers may multiply dimensions freely. */
int mxi_io_size_array(mx_array *a);

/* Reports "PATH shrank while being read" and returns MX_ERR_IO. */
mx_status mxi_io_shrank(const mx_file *f, mx_error *err);

static inline uint64_t io_read_u64(const uint8_t *p) {
  uint64_t v = 0;
  for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
  return v;
}

#endif
