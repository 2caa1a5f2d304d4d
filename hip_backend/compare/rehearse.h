/** Declares the rehearsal of hip-diff's native half, in which the CPU host runtime imitates devices whose rules hip-diff is not told. */
#ifndef MXH_GFX950_REHEARSE_H
#define MXH_GFX950_REHEARSE_H

#include <stdint.h>

struct mxh_oracle;
struct gfx950_rehearsal {
  const mxh_oracle *oracle;
  int devices, wrong; /* devices with hidden rules; those that also have one wrong kernel */
  uint64_t seed;      /* the i-th device is drawn from seed + i */
  int jobs;           /* processes at a time; 0: one for each processor */
  bool verbose;
};
/** Prints a table, running each device in its own process. A device is recovered if each hidden answer is among those found, every pair of
 *  types has a model, and every row of hip-diff's table is equal under them (exit 0). One with a wrong kernel is noticed if that kernel's
 *  row DIFFERS, no other does, and hip-diff would exit 1. Returns 0: all devices pass; 1: one does not; 2: a rehearsal could not be run. */
int gfx950_rehearse(const gfx950_rehearsal &r);

#endif
