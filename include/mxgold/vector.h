/** Test vectors as text: .mxv. SPEC section 8.
 *
 *  ASCII, LF. Line 1 is `# mxv 1`; then `# key=value`, one a line, sorted; the last header line is `# columns NAME:BITS:COUNT ...`. Each case is
 *  one line: fixed-width lower-case hex, most significant digit first, element 0 first, one blank between numbers, ` | ` between columns.
 *  `# end N` closes the file, N the number of cases.
 *
 *  A pipe partner gets lines that hold the first columns only (the inputs) and appends the rest; so a file may hold fewer columns a line than
 *  its header names, the same number on every line.
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

typedef struct mx_column {
  char name[MX_VECTOR_NAME]; /* letters, digits, _ . - */
  unsigned bits;             /* 1..64 */
  size_t count;              /* numbers a case, at least 1 */
  size_t width;              /* bytes a number takes in data: 1, 2, 4 or 8 */
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

void mx_vectors_free(mx_vectors *v);

/** Set a header line; a key that is there is replaced. key: printable ASCII without '=' and blanks, not "columns", "end" or "mxv"; value:
 *  printable ASCII. MX_ERR_ARG, MX_ERR_NOMEM. */
mx_status mx_vectors_set_meta(mx_vectors *v, const char *key, const char *value);
/** Value of a header line, NULL without one. */
const char *mx_vectors_meta(const mx_vectors *v, const char *key);
/** Add a column while there are no cases; it counts as filled. MX_ERR_ARG (name, bits, count, too many). */
mx_status mx_vectors_add_column(mx_vectors *v, const char *name, unsigned bits, size_t count);
/** Index of a column by name, -1 without one. */
int mx_vectors_find(const mx_vectors *v, const char *name);
/** Make room for n_cases cases, zeroed. Once. MX_ERR_ARG, MX_ERR_NOMEM (also on overflow). */
mx_status mx_vectors_alloc(mx_vectors *v, size_t n_cases);

/** One number. Column, case and index must be in range. */
uint64_t mx_vectors_get(const mx_vectors *v, size_t column, size_t at_case, size_t index);
void mx_vectors_set(mx_vectors *v, size_t column, size_t at_case, size_t index, uint64_t value);

/** Parse text. name is what errors call it. Every error names the line and the byte and what was expected.
 *  Returns MX_OK; MX_ERR_FORMAT; MX_ERR_NOMEM. On error *out is empty. Memory taken is at most a small multiple of n_bytes. */
mx_status mx_vectors_parse(mx_vectors *out, const char *name, const void *text, size_t n_bytes, mx_error *err);
/** No file of vectors is longer: the suites take a few MiB. */
enum { MX_VECTORS_MOST_BYTES = 1 << 30 };
/** Read a file; path "-" is standard input. Also MX_ERR_IO. What does not begin as such a file is refused before more of it is read, and so is what goes
 *  on behind MX_VECTORS_MOST_BYTES. */
mx_status mx_vectors_open(mx_vectors *out, const char *path, mx_error *err);
/** Write to an open stream: the first n_filled columns of each case. MX_ERR_IO. */
mx_status mx_vectors_print(const mx_vectors *v, FILE *to);
/** Write a file: beside its name, then renamed; path "-" is standard output. */
mx_status mx_vectors_save(const mx_vectors *v, const char *path, mx_error *err);
/** One column as Verilog's $readmemh takes it: a number a line, comments say what it is. */
mx_status mx_vectors_print_readmemh(const mx_vectors *v, size_t column, FILE *to);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
