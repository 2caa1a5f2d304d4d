/* Declares a record of what a call ran short of, memory or time, which any of its threads may note. A search that loses memory on the way must not
 * answer as if it had looked; one that runs out of time may answer, but must say so. A record belongs to one call. */
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

/** What an allocation returned, as it is; NULL is noted. */
static inline void *noted(void *p, shortage *of) {
  if (!p) shortage_of_memory(of);
  return p;
}

/** What a function returned, as it is; MX_ERR_NOMEM is noted. */
static inline mx_status noted_status(mx_status status, shortage *of) {
  if (status == MX_ERR_NOMEM) shortage_of_memory(of);
  return status;
}

#endif
