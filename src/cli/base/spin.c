/* Sets how long OpenMP's threads spin before they sleep. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/base/spin.h"

/* Settings of GNU's and LLVM's runtimes that a user may have made. */
static int is_set(void) { return getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"); }

void cli_spin_briefly(char **argv) {
  if (is_set() || setenv("GOMP_SPINCOUNT", "1000", 0) || setenv("KMP_BLOCKTIME", "0", 0)) return;
  execv("/proc/self/exe", argv); /* comes back where that is impossible, and then nothing is lost but time */
}
