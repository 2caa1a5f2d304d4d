/* Declares fixed inputs of math.h and dense.h, and the digests of what comes of them, for every machine and compiler: no library but the C library. */
#ifndef TESTS_MATH_INPUTS_H
#define TESTS_MATH_INPUTS_H

#include <stddef.h>
#include <stdint.h>

/** The special floats, then every stride-th of all 2^32, at most n; returns how many. */
size_t math_inputs(float *x, size_t n, uint32_t stride);
/** n floats of both signs and any exponent, every 37th a special one. */
void math_inputs_random(float *x, size_t n, uint32_t seed);
/** Functions, gradients, sums, softmax and products under an ISA mask, held to the digests typed in math_inputs.c; prints and counts those that
 *  differ. */
size_t math_digests(uint32_t isa_mask);

#endif
