/* Preloaded: the allocation number FAIL_AT of the program fails, counted from 0. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static int fails(void) {
  static long left = -2;
  if (left == -2) {
    const char *at = getenv("FAIL_AT");
    left = at ? atol(at) : -1;
  }
  if (left < 0 || left--) return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
