/* Running a Check suite from main(). */
#ifndef TESTS_RUN_H
#define TESTS_RUN_H

#include <check.h>

/** Run a suite, print what failed, free it; returns what main() is to return: 0 if nothing failed. */
int run_suite(Suite *suite);
/** The same in one process: for tests that hand a state from one to the next, or that measure. */
int run_suite_unforked(Suite *suite);

#endif
