/* Declares a folder for the files of one test. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct scratch {
  char dir[256], path[512];
} scratch;

/** Make a folder that no one else has; scratch_end() removes it with all that is in it. Both abort the test on failure. */
void scratch_begin(scratch *s);
void scratch_end(scratch *s);
/** DIR/NAME, in s->path until the next call. */
const char *scratch_path(scratch *s, const char *name);
/** How many files the folder holds, hidden ones included. */
int scratch_count(const scratch *s);

void scratch_write(scratch *s, const char *name, const void *data, size_t n_bytes);
/** The bytes of a file, for free(). */
uint8_t *scratch_read(scratch *s, const char *name, size_t *n_bytes);

#endif
