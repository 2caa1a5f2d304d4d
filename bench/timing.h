/* Defines how the benches of products take times: seconds and their median. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

/* Wall-clock seconds; with one thread its own processor time, so that a busy machine does not count. */
static inline double timing_now(int n_threads) {
  struct timespec t;
  clock_gettime(n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int timing_compare(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Sorts x. */
static inline double timing_median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, timing_compare);
  return x[n / 2];
}

#endif
