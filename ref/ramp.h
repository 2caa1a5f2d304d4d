/* Declares Q-Ramping: the periods of weights, and a step of AdamW under them. */
#ifndef REF_RAMP_H
#define REF_RAMP_H

#include <stdint.h>

/** The period of an element that moved so far while its quantised value moved `jumped`. */
uint32_t ref_ramp_period(float moved, float jumped, double k1, double k2, double every);

/* One element: its weight, moments, the gradients since its last update and how many. */
typedef struct ref_ramped {
  float w, m, v, sum;
  uint32_t count, period;
} ref_ramped;
/* Factors of a step, binary32. */
typedef struct ref_adam {
  float keep1, take1, keep2, take2, root2, eps, rate, decay;
} ref_adam;
/** A step with gradient g; adds 0: its tensor has a gradient that is not finite. */
void ref_ramp_step(ref_ramped *e, float g, int adds, const ref_adam *a);

#endif
