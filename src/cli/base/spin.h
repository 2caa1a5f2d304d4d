/* Declares how long OpenMP's threads spin before they sleep: a training step has hundreds of short parallel regions. */
#ifndef CLI_SPIN_H
#define CLI_SPIN_H

/** Start the program again with threads that wait some 50 microseconds for each other before they sleep, unless the environment already says how
 *  they wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME). By default they spin for milliseconds: if other programs want the processors, a
 *  thread spins where the one that it waits for should run, and a small model takes ten times as long on two threads as on one. OpenMP's
 *  runtime reads these variables when the program is loaded, so that it is too late to set them in main(). Returns where nothing was to be
 *  done, or where the program cannot be started again. Results do not depend on it. */
void cli_spin_briefly(char **argv);

#endif
