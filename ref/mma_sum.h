/** Declares how one output of one instruction of a matrix-unit model is summed. */
#ifndef REF_MMA_SUM_H
#define REF_MMA_SUM_H

#include "mma_number.h"

/* An accumulator: nothing at all, or bits of type D. */
typedef struct accumulator {
  int exists;
  uint64_t bits;
} accumulator;

/* One product of a group: its factors, and the scales of its blocks (1 where the model has none). */
typedef struct product {
  number a, b, scale_a, scale_b;
} product;

typedef struct term {
  mpz_t value;
  int exponent;
  int takes_part; /* in the alignment; a term that does not is zero */
} term;

/* What the sums of an output work in. */
typedef struct workspace {
  product *ordered, *in_order; /* [K] */
  term *terms;                 /* [K + 1] */
  size_t *index;               /* [K] */
} workspace;

/** Room for K products, their numbers made. MX_ERR_NOMEM: nothing is held. */
mx_status ref_mma_workspace_alloc(workspace *w, size_t K);
void ref_mma_workspace_free(workspace *w, size_t K);

/** The accumulator after the n products at p, which may be reordered, and the accumulator c before them. */
accumulator ref_mma_instruction(const mx_mma_model *m, product *p, size_t n, accumulator c, workspace *w);

#endif
