/* Reads the processor time of a thread. */
#include "verify/trial/deadline.h"

#include <math.h>
#include <pthread.h>

static double read_clock(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

deadline mxi_deadline_in(double seconds, shortage *lack) {
  deadline d = {.lack = lack};
  if (pthread_getcpuclockid(pthread_self(), &d.of)) d.of = CLOCK_MONOTONIC; /* where threads have no clock of their own */
  d.at = read_clock(d.of) + seconds;
  return d;
}

double mxi_deadline_left(deadline d) { return d.at - read_clock(d.of); }

deadline mxi_deadline_before(deadline d, double seconds) {
  d.at -= seconds;
  return d;
}

deadline mxi_deadline_within(deadline d, double seconds) {
  d.at += fmin(0, seconds - mxi_deadline_left(d));
  return d;
}
