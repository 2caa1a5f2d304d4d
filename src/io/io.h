/* Declares what the readers share. Internal to src/io/. */
#ifndef MX_IO_IO_H
#define MX_IO_IO_H

#include <stdint.h>

#include "mxgold/file.h"
#include "io/base/names.h"

typedef struct io_meta {
  char *key, *value;
} io_meta;

/* What base is: the file in a mapping, the file in memory of its own, or the header alone. */
typedef enum io_way { IO_MAPPED, IO_HELD, IO_HEAD } io_way;

struct mx_file {
  char *path;          /* as given, for messages; "standard input" for "-" */
  const uint8_t *base; /* NULL when the file is empty */
  size_t n_bytes;      /* of the whole file */
  io_way way;
  int open_ended; /* how long the file is is not known: parsers set n_bytes to what the header states */
  int opened;     /* 1 + its descriptor; 0: none */
  mx_array *arrays;
  size_t n_arrays;
  io_meta *meta;
  size_t n_meta;
  struct mx_vectors *vectors;      /* of .mxv: what the arrays' data are; nothing else is held then */
  io_names array_names, meta_keys; /* of a file that is open; a parser's own file has none, and is searched */
};

/* Parsers fill arrays and metadata from base[0 .. n_bytes); what they allocate belongs to f, on failure too: mx_file_close() frees it. */
mx_status mxi_io_parse_npy(mx_file *f, mx_error *err);
mx_status mxi_io_parse_safetensors(mx_file *f, mx_error *err);
/* f holds all of the text. */
mx_status mxi_io_parse_mxv(mx_file *f, mx_error *err);
int mxi_io_is_mxv(const uint8_t *start, size_t n_bytes);
void mxi_io_free_vectors(mx_file *f);
/* Recognise the kind and parse. A file may be put together from bytes that the caller keeps, as the fuzz targets do; then mxi_io_free_parsed() frees
 * what the parser made. */
mx_status mxi_io_parse(mx_file *f, mx_error *err);
void mxi_io_free_parsed(mx_file *f);
/* Unmap or free the bytes, and close the file. */
void mxi_io_let_go(const mx_file *f);
/* So that a name is found at once. 0: out of memory. */
int mxi_io_index_names(mx_file *f);

/* "PATH: byte N: ..." and the status MX_ERR_FORMAT. */
mx_status mxi_io_malformed(const mx_file *f, mx_error *err, uint64_t byte, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fill n_values and n_bytes from dtype and shape. 0 when the sizes overflow 63 bits. Zeros are left out of the checked product, so that any
 * partial product of the shape fits as well: callers may multiply dimensions freely. */
int mxi_io_size_array(mx_array *a);

/* "PATH shrank while being read" and MX_ERR_IO. */
mx_status mxi_io_shrank(const mx_file *f, mx_error *err);

static inline uint64_t io_read_u64(const uint8_t *p) {
  uint64_t v = 0;
  for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
  return v;
}

#endif
