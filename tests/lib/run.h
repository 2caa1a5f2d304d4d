/* Declares how a Check suite is run from main(). */
#ifndef TESTS_RUN_H
#define TESTS_RUN_H

#include <check.h>

/* Check writes to a file at each assertion that holds, to say where a test that crashes was last. Where every element is asserted, that took more time
 * than the test; a crash is still reported, with the test's name. */
#define _mark_point(file, line) ((void)(file), (void)(line))

/** 1 in `make check-all`: sweeps that make check runs in part are run whole. */
int run_whole(void);

/** 1 in make check's build with AddressSanitizer, which is several times slower and looks at accesses, not at results: a part of the cases does. */
static inline int run_sanitized(void) {
#ifdef __SANITIZE_ADDRESS__
  return !run_whole();
#else
  return 0;
#endif
}

/** Run a suite, print what failed, free it; returns what main() is to return: 0 if nothing failed. */
int run_suite(Suite *suite);
/** The same in one process: for tests that hand a state from one to the next, or that measure. */
int run_suite_unforked(Suite *suite);

#endif
