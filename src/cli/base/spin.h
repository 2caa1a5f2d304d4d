/* Declares how long OpenMP's threads spin before they sleep: a training step has hundreds of short parallel regions. */
#ifndef CLI_SPIN_H
#define CLI_SPIN_H

/** Starts the program again with threads that wait for each other for some 50 microseconds before they sleep, unless the environment already says
 *  how they wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME). By default they spin for milliseconds. If other programs want the processors, a
 *  thread then spins where the thread that it waits for should run, and a small model takes ten times as long on two threads as on one. OpenMP's
 *  runtime reads these variables when the program is loaded, so main() cannot set them. Returns if nothing was to be done or the program cannot be
 *  started again. Results do not depend on it. */
void cli_spin_briefly(char **argv);

#endif
