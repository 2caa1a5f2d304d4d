/* When a search gives up: by the processor time of the thread that began it, so that what is found does not hang on what else the machine does. */
#ifndef MX_VERIFY_TRIAL_DEADLINE_H
#define MX_VERIFY_TRIAL_DEADLINE_H

#include <time.h>

/** A moment on the clock of one thread; other threads may ask as well. */
typedef struct deadline {
  clockid_t of;
  double at;
} deadline;

/** So many seconds from now, of the calling thread. */
deadline mxi_deadline_in(double seconds);
/** Seconds that are left; below 0 when it is over. */
double mxi_deadline_left(deadline d);
static inline int deadline_over(deadline d) { return mxi_deadline_left(d) <= 0; }
/** So many seconds before d. */
deadline mxi_deadline_before(deadline d, double seconds);
/** The earlier one of d and so many seconds from now. */
deadline mxi_deadline_within(deadline d, double seconds);

#endif
