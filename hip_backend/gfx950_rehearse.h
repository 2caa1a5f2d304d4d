/** The rehearsal of the device profile: the CPU host runtime plays devices whose rules the profile is not told. */
#ifndef MXH_GFX950_REHEARSE_H
#define MXH_GFX950_REHEARSE_H

#include <stdint.h>

/** n devices, the i-th drawn from seed + i, a process each and `jobs` at a time (0: one a processor); prints a table. 0: each is recovered, which
 *  means that each hidden answer is among those found, a model fits all probe tiles, and no word of any instruction differs; 1: one is not; 2: trouble. */
int gfx950_rehearse(int n, uint64_t seed, int jobs, bool verbose);

#endif
