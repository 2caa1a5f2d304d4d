/* Declares what commands ask of a spec: one key as text, and whether the tensor's maximum must be known first. */
#ifndef CLI_SPEC_VALUE_H
#define CLI_SPEC_VALUE_H

#include "mxgold/spec.h"

enum { SPEC_VALUE = 160 };

/** The value of a key as mx_spec_print() writes it; returns out. "" for a key that is not there. */
const char *spec_value(char out[SPEC_VALUE], const mx_spec *spec, const char *key);
/** Must the whole tensor be read before its first block can be scaled? */
int spec_needs_amax(const mx_spec *spec);

#endif
