/* Parts of encode that a whole block needs. */
#ifndef MX_CORE_ENCODE_H
#define MX_CORE_ENCODE_H

#include "mxgold/format.h"

/** x rounded as encode does, but on a grid whose last binade's steps go on for ever; Inf from 2^127, where fouroversix's 2 x is Inf. */
double mx_round_past_largest(const mx_format *format, double x, const mx_encoding *how, uint32_t random);

#endif
