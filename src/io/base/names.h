/* Declares how names of tensors are found in a list without looking at all of them, and how the end of a file's name is tested. Internal to src/io/. */
#ifndef MX_IO_BASE_NAMES_H
#define MX_IO_BASE_NAMES_H

#include <stddef.h>

/* The zero struct is empty. A name is what of(set, index) says; the set may grow and move between calls. */
typedef struct io_names {
  size_t *slots; /* 1 + an index, 0: free; a power of two of them, at most half taken */
  size_t room, n;
} io_names;

typedef const char *io_name_of(const void *set, size_t index);

/* The index of a name, SIZE_MAX if it is not there. */
size_t mxi_io_names_find(const io_names *names, const char *name, io_name_of *of, const void *set);
/* Note the name of this index, which is not there yet. 0: out of memory. */
int mxi_io_names_add(io_names *names, size_t index, io_name_of *of, const void *set);
void mxi_io_names_free(io_names *names);

/* Does s end with `end`? Kinds of files are told by the ends of their names. */
int mxi_io_ends_with(const char *s, const char *end);

#endif
