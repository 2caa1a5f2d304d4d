/* Declares the comparison of each operation on each ISA with its scalar code, bit for bit. No library but the C library: the same checks run
 * natively and, cross-compiled, under an emulator. */
#ifndef TESTS_CHECKASM_H
#define TESTS_CHECKASM_H

#include <stddef.h>
#include <stdint.h>

/** Run every operation on one ISA (a bit of MX_ISA_ALL): lengths around vectors and blocks, unaligned inputs, strides, guards on both sides of each
 *  output; ties, thresholds, powers of two, far exponents, NaN, Inf, zeros. Prints a line for each operation, "not run: ..." where the host lacks the
 *  ISA. Returns the number of operations that differ. */
int checkasm(uint32_t isa);

/** Fills x with numbers of one of these kinds: plain ones, ties, far exponents with special values, numbers around a threshold, powers of two. Each block
 *  has a size of its own. */
enum { CHECKASM_KINDS = 5 };
void checkasm_fill(float *x, size_t n, int kind);

#endif
