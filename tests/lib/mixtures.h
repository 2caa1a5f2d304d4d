/* Random mixtures of a spec's keys: what no preset combines. */
#ifndef TESTS_MIXTURES_H
#define TESTS_MIXTURES_H

#include "mxgold/spec.h"

#define MIXTURES_SEED UINT64_C(20261121)

/** A spec of keys drawn at random, more often the default than not; 0 if they exclude each other (draw again). The same sequence on every machine for a
 *  state that starts from MIXTURES_SEED. */
int mixtures_draw(mx_spec *spec, uint64_t *state);

#endif
