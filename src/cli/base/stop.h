/* Declares the signals that ask a long command to stop, before which it writes a checkpoint. */
#ifndef CLI_BASE_STOP_H
#define CLI_BASE_STOP_H

#include <signal.h>

/** The number of the signal that came since cli_stop_on_signals(); 0: none. */
extern volatile sig_atomic_t cli_stop;
/** From here on SIGINT, SIGTERM and SIGUSR1, which batch systems send ahead of the end, set cli_stop and nothing else. */
void cli_stop_on_signals(void);

#endif
