/** Reads and writes test vectors as text: .mxv. SPEC section 8.
 *
 *  The text is ASCII with LF. Line 1 is `# mxv 1`; sorted lines `# key=value` follow; the last header line is `# columns NAME:BITS:COUNT ...`.
 *  Each case is one line: fixed-width lower-case hex, most significant digit first, element 0 first, one blank between numbers, ` | ` between
 *  columns.
 *  `# end N` closes the file, where N is the number of cases.
 *
 *  A program in a pipe gets lines that hold only the first columns (the inputs) and appends the rest. So the lines of a file may hold fewer
 *  columns than its header names, but every line holds the same number.
 *  Threads: one mx_vectors belongs to one thread at a time.  Oracle: tests/test_vector.c, golden/bad/, tests/fuzz/fuzz_mxv.c. */
#ifndef MXGOLD_VECTOR_H
#define MXGOLD_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MX_VECTOR_COLUMNS = 16, MX_VECTOR_NAME = 32 };

/** A column: the numbers of one name, the same count in each case. */
typedef struct mx_column {
  char name[MX_VECTOR_NAME]; /* letters, digits, _ . - */
  unsigned bits;             /* 1..64 */
  size_t count;              /* numbers per case, at least 1 */
  size_t width;              /* bytes per number in data: 1, 2, 4 or 8 */
  uint8_t *data;             /* [n_cases][count], native byte order */
} mx_column;

/** A file in memory. The zero struct is an empty one; the caller frees it with mx_vectors_free(). */
typedef struct mx_vectors {
  char **keys, **values; /* sorted by key */
  size_t n_meta;
  mx_column columns[MX_VECTOR_COLUMNS];
  size_t n_columns, n_filled; /* columns named; columns that the lines hold */
  size_t n_cases;
} mx_vectors;

/** Free the memory of *v and make it empty. */
void mx_vectors_free(mx_vectors *v);

/** Set a header line; an existing key is replaced. key: printable ASCII without '=' and blanks, not "columns", "end" or "mxv"; value:
 *  printable ASCII. MX_ERR_ARG, MX_ERR_NOMEM. */
mx_status mx_vectors_set_meta(mx_vectors *v, const char *key, const char *value);
/** Value of a header line, NULL if there is none. */
const char *mx_vectors_meta(const mx_vectors *v, const char *key);
/** Add a column while there are no cases; it counts as filled. MX_ERR_ARG (name, bits, count, too many). */
mx_status mx_vectors_add_column(mx_vectors *v, const char *name, unsigned bits, size_t count);
/** Index of a column by name, -1 if there is none. */
int mx_vectors_find(const mx_vectors *v, const char *name);
/** Allocate n_cases zeroed cases; only once. MX_ERR_ARG, MX_ERR_NOMEM (also on overflow). */
mx_status mx_vectors_alloc(mx_vectors *v, size_t n_cases);

/** One number. Column, case and index must be in range. */
uint64_t mx_vectors_get(const mx_vectors *v, size_t column, size_t at_case, size_t index);
void mx_vectors_set(mx_vectors *v, size_t column, size_t at_case, size_t index, uint64_t value);

/** Parse text. name is what errors call it. Every error names the line, the byte and what was expected.
 *  Returns MX_OK; MX_ERR_FORMAT; MX_ERR_NOMEM. On error *out is empty. It uses at most a small multiple of n_bytes of memory. */
mx_status mx_vectors_parse(mx_vectors *out, const char *name, const void *text, size_t n_bytes, mx_error *err);
/** No file of vectors is longer: the suites take a few MiB. */
enum { MX_VECTORS_MOST_BYTES = 1 << 30 };
/** Read a file; path "-" is standard input. Also MX_ERR_IO. A file that does not begin as one of vectors is refused before more of it is read,
 *  and so is a file longer than MX_VECTORS_MOST_BYTES. */
mx_status mx_vectors_open(mx_vectors *out, const char *path, mx_error *err);
/** Write to an open stream: the first n_filled columns of each case. MX_ERR_IO. */
mx_status mx_vectors_print(const mx_vectors *v, FILE *to);
/** Write a file under a temporary name, then rename it; path "-" is standard output. */
mx_status mx_vectors_save(const mx_vectors *v, const char *path, mx_error *err);
/** One column as Verilog's $readmemh takes it: one number per line, with comments that say what it is. */
mx_status mx_vectors_print_readmemh(const mx_vectors *v, size_t column, FILE *to);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
