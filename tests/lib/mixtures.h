/* Declares random mixtures of a spec's keys, which no preset combines. */
#ifndef TESTS_MIXTURES_H
#define TESTS_MIXTURES_H

#include "mxgold/spec.h"

#define MIXTURES_SEED UINT64_C(20261121)

/** A spec of keys drawn at random, more often the default than not; 0 if they exclude each other (draw again). The same sequence on every machine for a
 *  state that starts from MIXTURES_SEED. */
int mixtures_draw(mx_spec *spec, uint64_t *state);

/** The same, or a preset, under some of the values that people rarely give: formats without NaN or -0, tensor scales of NaN and Inf, codes with a sign,
 *  numbers next to the ends of their types. A sequence of its own: mixtures_draw's is not disturbed. */
int mixtures_draw_odd(mx_spec *spec, uint64_t *state);
/** deq.arith=scale_first on a spec drawn so, with a tensor scale where none was drawn: a value younger than the sequences, which it leaves as they are. */
void mixtures_scale_first(mx_spec *spec, uint64_t *state);
/** scale.margin on a spec drawn so, with what it needs: as young. */
void mixtures_margin(mx_spec *spec, uint64_t *state);
/** The same of select=eden. */
void mixtures_eden(mx_spec *spec, uint64_t *state);
/** Data for those: magnitudes at the ends of binary32 and binary16, ties, zeros of either sign, blocks with several NaN and Inf, and numbers whose
 *  rotation overflows. */
void mixtures_odd_data(float *x, size_t n, uint64_t *state);

#endif
