/* Notes signals that ask a long command to stop. */
#include "stop.h"

#include <stddef.h>

volatile sig_atomic_t cli_stop;

static void note(int number) { cli_stop = number; }

void cli_stop_on_signals(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGUSR1};
  const struct sigaction act = {.sa_handler = note};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &act, NULL);
}
