/** Declares the rehearsal of hip-diff's native half: the CPU host runtime plays devices whose rules it is not told. */
#ifndef MXH_GFX950_REHEARSE_H
#define MXH_GFX950_REHEARSE_H

#include <stdint.h>

struct mxh_oracle;
struct gfx950_rehearsal {
  const mxh_oracle *oracle;
  int devices, wrong; /* devices with hidden rules; devices that have, besides, one kernel that is wrong */
  uint64_t seed;      /* the i-th device is drawn from seed + i */
  int jobs;           /* processes at a time; 0: one a processor */
  bool verbose;
};
/** Prints a table, a process a device. A device is recovered if each hidden answer is among those found, every pair of types has a model, and every row
 *  of hip-diff's table is equal under them (exit 0); one with a wrong kernel is noticed if that kernel's row DIFFERS, no other does, and hip-diff would
 *  exit 1. Returns 0: all are; 1: one is not; 2: trouble. */
int gfx950_rehearse(const gfx950_rehearsal &r);

#endif
