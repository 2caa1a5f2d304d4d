/* Declares an index that finds names of tensors in a list, and a test of how a file's name ends. Internal to src/io/. */
#ifndef MX_IO_BASE_NAMES_H
#define MX_IO_BASE_NAMES_H

#include <stddef.h>

/* A struct of zeros is an empty index. of(set, index) gives the names; the set may grow and move between calls. */
typedef struct io_names {
  size_t *slots; /* 1 + an index, or 0 if free; their number is a power of two, and at most half are taken */
  size_t room, n;
} io_names;

typedef const char *io_name_of(const void *set, size_t index);

/* The index of a name, or SIZE_MAX if it is not there. */
size_t mxi_io_names_find(const io_names *names, const char *name, io_name_of *of, const void *set);
/* Adds the name of this index, which must not be there yet. 0: out of memory. */
int mxi_io_names_add(io_names *names, size_t index, io_name_of *of, const void *set);
void mxi_io_names_free(io_names *names);

/* Whether s ends with `end`; the end of a file's name tells its kind. */
int mxi_io_ends_with(const char *s, const char *end);

#endif
