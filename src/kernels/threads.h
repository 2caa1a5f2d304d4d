/* Declares how many threads a call is worth. */
#ifndef MX_KERNELS_THREADS_H
#define MX_KERNELS_THREADS_H

#include "mxgold/isa.h"
#include "mxgold/quantize.h"

/* Values that pay for one more thread: starting it and waiting for it at the end costs tens of microseconds on a quiet machine, and where all
 * processors are busy the first thread waits until the second has had its turn. By vector kernels, and one by one. */
enum { MX_THREAD_VALUES = 1 << 17, MX_THREAD_SCALAR = 1 << 12 };

/* The two halves of mx_thread_count(): what would be sensible, and of that what can be started. */
int mxi_threads_wanted(int n_threads);
int mxi_threads_granted(int wanted);

/** The caller's number, or all processors but no more than one for `least` of the values, as mx_thread_count() grants it. */
static inline int mx_threads(const mx_exec *exec, size_t values, size_t least) {
  const int given = exec && exec->n_threads > 0;
  const size_t most = (size_t)mxi_threads_wanted(given ? exec->n_threads : 0), by = given ? most : values / least;
  return mxi_threads_granted((int)(by < 1 ? 1 : by < most ? by : most));
}

#endif
