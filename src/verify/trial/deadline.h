/* Declares when a search gives up: by the processor time of the thread that began it, so that other work on the machine does not change what is
 * found. */
#ifndef MX_VERIFY_TRIAL_DEADLINE_H
#define MX_VERIFY_TRIAL_DEADLINE_H

#include <time.h>

#include "core/shortage.h"

/** A moment on the clock of one thread; other threads may ask as well. */
typedef struct deadline {
  clockid_t of;
  double at;
  shortage *lack;  /* of the call */
  int provisional; /* the search goes on after it: to stop there cuts nothing short */
} deadline;

/** So many seconds from now, of the calling thread; lack is the record of the call. */
deadline mxi_deadline_in(double seconds, shortage *lack);
/** Seconds that are left; below 0 when it is over. */
double mxi_deadline_left(deadline d);
/** Is it over? If so, that is noted, unless the search goes on after it. It is also over if memory ran out, since no answer will be given then. */
static inline int deadline_over(deadline d) {
  if (short_of_memory(d.lack)) return 1;
  if (mxi_deadline_left(d) > 0) return 0;
  if (!d.provisional) shortage_of_time(d.lack);
  return 1;
}
/** So many seconds before d. */
deadline mxi_deadline_before(deadline d, double seconds);
/** The earlier one of d and so many seconds from now. */
deadline mxi_deadline_within(deadline d, double seconds);

#endif
