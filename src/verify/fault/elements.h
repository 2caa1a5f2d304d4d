/* Declares a block whose codes are being made. */
#ifndef MX_VERIFY_FAULT_ELEMENTS_H
#define MX_VERIFY_FAULT_ELEMENTS_H

#include "verify/fault/run.h"

typedef struct fault_block {
  size_t d, a;
  mx_block_scale scale, rule; /* of the code that the elements have; of the rule */
  int has_rule;               /* the spec refuses no element of the block */
  uint32_t given;             /* the code before the faults of the divisor */
  const mx_fault *divisor;    /* of this block, or NULL */
  const mx_plan *plan;        /* what the block is computed with */
  int apart;                  /* elements of the block have divisors of their own */
  int divided_alone;          /* none of the run's faults comes after the division */
  float sign_of_largest;      /* 1 or -1 */
  float amax;                 /* after the faults of that stage, where the divisor asks for it */
} fault_block;

/** Prepares for the elements of block (d, a) under the scale of that code. */
void mxi_fault_block(fault_block *b, const fault_run *r, size_t d, size_t a, uint32_t code);
/** Does a fault of the code take codes or signs from other elements? Those run on whole rows; mxi_fault_element() stops before the first of them. */
int mxi_fault_exchanges(int op);
/** What another fault of the code makes of a code. */
uint32_t mxi_fault_element_stored(const fault_run *r, const fault_block *b, const mx_fault *f, size_t row, size_t col, uint32_t code);
/** The code with another sign, in two's complement if the format is. */
uint32_t mxi_fault_with_sign(const mx_format *f, uint32_t code, unsigned negative);
/** The bit of a code's sign, 0 in an unsigned format; the code of the number with the other sign. */
uint32_t mxi_fault_sign_bit(const mx_format *f);
uint32_t mxi_fault_negated(const mx_format *f, uint32_t code);
/** The code of the magnitude of the number that a code means. */
uint32_t mxi_fault_magnitude(const mx_format *f, uint32_t code);
/** round.c: the code of quotient y of element (row, col) under the faults of the rounding whose regions it is in. Returns 0 if there is none: the rule has it. */
int mxi_fault_rounded(uint32_t *code, const fault_run *r, const mx_plan *p, double y, size_t row, size_t col);

/** steps.c: does y meet the fault? A threshold acts between two neighbours alone. */
int mxi_fault_meets(const mx_format *f, const mx_fault *fault, double y);
int mxi_fault_is_threshold(int op);
/** The code of the number nearest to a magnitude, ties to even, if numbers went on beyond the largest. Below MXI_NO_STEPS. */
uint64_t mxi_fault_count(const mx_format *f, double a);
/** The same of |y| by another rounding, one of those that round to a neighbour. */
uint64_t mxi_fault_count_by(const mx_format *f, double y, int how);
/** Its low bits as a code. */
uint32_t mxi_fault_low_bits(const mx_format *f, double y, int how);
#define MXI_NO_STEPS 0x1p40 /* no format has steps there, and counts of them would not fit */
/** y as a fault has it that changes it by the steps of the format. */
double mxi_fault_by_steps(const mx_format *f, const mx_fault *fault, double y);
/** The code of y under a fault that says itself which neighbour it is, and never one beyond the largest. 0: this one does not, or not of y. */
int mxi_fault_code_by_steps(uint32_t *code, const mx_format *f, const mx_fault *fault, double y);
/** The middle between a format's largest number and the one that would come next: values from there on overflow. */
double mxi_beyond_largest(const mx_format *f);
/** What element (row, col) of the block is divided to. */
double mxi_fault_quotient(const fault_run *r, const fault_block *b, size_t row, size_t col);
/** max|X| of a chain: of a tensor scale that is given, what it stands for. */
float mxi_fault_chain_amax(const mx_plan *p);
/** The divisor of the rule, in binary32. */
float mxi_fault_divisor(const mx_plan *p, const mx_block_scale *s);

#endif
