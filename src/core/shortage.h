/* Declares a record of whether a call ran out of memory or of time, which any of its threads may set. A search in which an allocation failed
 * must not answer as if it had looked; one that ran out of time may answer, but must say so. A record belongs to one call. */
#ifndef MX_CORE_SHORTAGE_H
#define MX_CORE_SHORTAGE_H

#include "mxgold/status.h"

typedef struct shortage {
  int memory, time; /* 1: ran out; set and read atomically */
} shortage;

static inline void shortage_of_memory(shortage *of) { __atomic_store_n(&of->memory, 1, __ATOMIC_RELAXED); }
static inline void shortage_of_time(shortage *of) { __atomic_store_n(&of->time, 1, __ATOMIC_RELAXED); }
static inline int short_of_memory(const shortage *of) { return __atomic_load_n(&of->memory, __ATOMIC_RELAXED); }
static inline int short_of_time(const shortage *of) { return __atomic_load_n(&of->time, __ATOMIC_RELAXED); }

/** Returns p, the result of an allocation, and records a NULL. */
static inline void *noted(void *p, shortage *of) {
  if (!p) shortage_of_memory(of);
  return p;
}

/** Returns the status of a function, and records MX_ERR_NOMEM. */
static inline mx_status noted_status(mx_status status, shortage *of) {
  if (status == MX_ERR_NOMEM) shortage_of_memory(of);
  return status;
}

#endif
