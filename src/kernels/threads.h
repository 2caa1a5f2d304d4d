/* How many threads a call is worth. */
#ifndef MX_KERNELS_THREADS_H
#define MX_KERNELS_THREADS_H

#include "mxgold/isa.h"
#include "mxgold/quantize.h"

/* Values that pay for one more thread: starting it and waiting for it at the end costs tens of microseconds on a quiet machine, and where all
 * processors are busy the first thread waits until the second has had its turn. By vector kernels, and one by one. */
enum { MX_THREAD_VALUES = 1 << 17, MX_THREAD_SCALAR = 1 << 12 };

/** The caller's number, or all processors but no more than one for `least` of the values. */
static inline int mx_threads(const mx_exec *exec, size_t values, size_t least) {
  if (exec && exec->n_threads > 0) return exec->n_threads;
  const size_t most = (size_t)mx_thread_count(0), by = values / least;
  return (int)(by < 1 ? 1 : by < most ? by : most);
}

#endif
