/* Declares a block whose codes are being made. */
#ifndef MX_VERIFY_FAULT_ELEMENTS_H
#define MX_VERIFY_FAULT_ELEMENTS_H

#include "verify/fault/run.h"

typedef struct fault_block {
  size_t d, a;
  mx_block_scale scale;
  const mx_fault *divisor; /* of this block, or NULL */
  float sign_of_largest;   /* 1 or -1 */
} fault_block;

/** Prepares for the elements of block (d, a) under the scale of that code. */
void mxi_fault_block(fault_block *b, const fault_run *r, size_t d, size_t a, uint32_t code);
/** The middle between a format's largest number and the one that would come next: values from there on overflow. */
double mxi_beyond_largest(const mx_format *f);

#endif
