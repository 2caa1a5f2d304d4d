/* Preloaded: the allocation number FAIL_AT of the program fails, counted from 0. COUNT_TO is a file that gets the number of allocations at the end. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static long done;

static int fails(void) {
  static long left = -2;
  __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
  if (left == -2) {
    const char *at = getenv("FAIL_AT");
    left = at ? atol(at) : -1;
  }
  if (left < 0 || left--) return 0;
  errno = ENOMEM;
  return 1;
}

static __attribute__((destructor)) void count(void) {
  const long n = done;
  FILE *f = getenv("COUNT_TO") ? fopen(getenv("COUNT_TO"), "w") : NULL;
  if (f) fprintf(f, "%ld\n", n), fclose(f);
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
