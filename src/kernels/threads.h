/* Declares how many threads the work of a call justifies. */
#ifndef MX_KERNELS_THREADS_H
#define MX_KERNELS_THREADS_H

#include "mxgold/isa.h"
#include "mxgold/quantize.h"

/* The number of values for which one more thread pays, by vector kernels and by scalar code. Starting a thread and waiting for it costs tens of
 * microseconds on a quiet machine, and if all processors are busy, the first thread waits until the second has had its turn. */
enum { MX_THREAD_VALUES = 1 << 17, MX_THREAD_SCALAR = 1 << 12 };

/* The two halves of mx_thread_count(): how many threads would be sensible, and how many of those can be started. */
int mxi_threads_wanted(int n_threads);
int mxi_threads_granted(int wanted);

/** The caller's number of threads or, by default, one for each processor but at most one for each `least` values, as far as
 *  mx_thread_count() grants it. */
static inline int mx_threads(const mx_exec *exec, size_t values, size_t least) {
  const int given = exec && exec->n_threads > 0;
  const size_t most = (size_t)mxi_threads_wanted(given ? exec->n_threads : 0), by = given ? most : values / least;
  return mxi_threads_granted((int)(by < 1 ? 1 : by < most ? by : most));
}

#endif
