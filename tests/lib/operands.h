/* Declares quantised operands of the block-scaled product, and how to compare what two implementations make of them. */
#ifndef TESTS_OPERANDS_H
#define TESTS_OPERANDS_H

#include "mxgold/gemm.h"
#include "mxgold/mma.h"

typedef enum operands_kind {
  OPERANDS_NARROW,    /* scales near 1 */
  OPERANDS_WIDE,      /* scales over their whole range */
  OPERANDS_ANY,       /* every byte, NaN and Inf among them */
  OPERANDS_CANCEL,    /* rows whose second half of K takes back the first */
  OPERANDS_QUANTISED, /* values through mx_quantize() */
  OPERANDS_KINDS,
  OPERANDS_ZEROS /* those with blocks of zeros, whose scales are the smallest */
} operands_kind;
extern const char *const operands_names[];

/* What exec.isa_mask is to be in turn: all that the processor has, without AVX-512, scalar, without AMX. */
enum { OPERANDS_MASKS = 4 };
extern const uint32_t operands_masks[OPERANDS_MASKS];

uint32_t operands_draw(uint64_t seed, uint64_t i);
/** Allocates t. All of these end the test where they cannot do it. */
void operands_fill(mx_tensor *t, const mx_spec *spec, size_t rows, size_t cols, operands_kind kind, uint64_t seed);
mx_spec operands_spec(const char *keys);
mx_mma_model operands_unit(const char *model);
/** n values of this type: bits against bits. */
void operands_compare(const void *got, const void *want, size_t n, mx_dtype type, const char *what);

#endif
