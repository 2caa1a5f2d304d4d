/* Defines how many threads rows of work are worth. */
#ifndef TRAIN_PARALLEL_H
#define TRAIN_PARALLEL_H

#include "mxgold/isa.h"
#include "mxgold/quantize.h"

/* About 30 microseconds of work; with less, a second thread costs more than it saves. */
enum { TRAIN_VALUES_A_THREAD = 1 << 16 };

static inline int train_threads(const mx_exec *exec, size_t values) {
  const int most = mx_thread_count(exec ? exec->n_threads : 0);
  const size_t worth = values / TRAIN_VALUES_A_THREAD + 1;
  return worth < (size_t)most ? (int)worth : most;
}

#endif
