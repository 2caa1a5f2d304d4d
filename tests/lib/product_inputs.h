/* Declares the operands of golden products: mixes of formats, kinds of inputs, and what follows the sum. golden.c computes them, hip-diff holds a device
 * to them. */
#ifndef TESTS_PRODUCT_INPUTS_H
#define TESTS_PRODUCT_INPUTS_H

#include <stddef.h>

#include "mxgold/gemm.h"

enum { PRODUCT_M = 3, PRODUCT_N = 4, PRODUCT_K = 104, PRODUCT_MIXES = 10 }; /* K: no multiple of a block or an instruction */

/** Keys of A and of B. */
typedef struct product_mix {
  const char *name, *keys[2];
  int wide; /* an operand is dequantised to binary32: P and via have no room for it */
} product_mix;
extern const product_mix product_mixes[PRODUCT_MIXES];

/** Bell-shaped numbers in runs of 16 of one size: over 2^13 (near), 2^135 (wide). cancel: the last half takes back what the first half of a row of A
 *  gave, but for one element in eight. nonfinite: NaN and Inf in the first row. after: near, and what follows the sum. */
enum { PRODUCT_NEAR, PRODUCT_CANCEL, PRODUCT_WIDE, PRODUCT_NONFINITE, PRODUCT_AFTER, PRODUCT_KINDS };
extern const char *const product_kinds[PRODUCT_KINDS];

/** float32 [rows][PRODUCT_K] of A or of B, the caller's to free. */
float *product_operand(int kind, size_t rows, int is_b);
/** alpha, beta, C, a bias and binary16 for kind after; of another kind nothing. */
void product_after(mx_gemm_options *o, int kind);

#endif
