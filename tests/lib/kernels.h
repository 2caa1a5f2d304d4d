/* Declares a kernel under test that is made from a spec: suites in, samples for identify out. */
#ifndef TESTS_KERNELS_H
#define TESTS_KERNELS_H

#include "mxgold/mxgold.h"

typedef struct outputs {
  mx_sample *samples;
  size_t n, room;
  size_t elements;
} outputs;

/** Quantise the cases of a suite by spec and append them as samples (each tensor one). Cases that spec refuses are left out. */
void outputs_add(outputs *o, const mx_cases *cases, const mx_spec *spec, int keep_tensor_scale);
/** random, ties, boundary and special for spec. */
void outputs_of_suites(outputs *o, const mx_spec *spec, uint64_t seed);
void outputs_free(outputs *o);
/** A spec with random keys that mx_spec_check allows; stream picks which. */
void random_mixture(mx_spec *out, uint64_t stream);
/** The same with every key of SPEC 3: tiles, whole rows, columns and tensors, foursix, HiFloat4, given tensor scales, chance, rotations. */
void wide_mixture(mx_spec *out, uint64_t stream);

#endif
