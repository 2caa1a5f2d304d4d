/* Runs a Check suite from main(). */
#include "run.h"

#include <stdlib.h>

int run_whole(void) { return getenv("CHECK_ALL") != NULL; }

static int run(SRunner *runner) {
  srunner_run_all(runner, CK_NORMAL);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

int run_suite(Suite *suite) { return run(srunner_create(suite)); }

int run_suite_unforked(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_set_fork_status(runner, CK_NOFORK);
  return run(runner);
}
