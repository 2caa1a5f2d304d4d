/** Declares the slow twin of mxgold/mma.h: one output at a time, in exact arithmetic, laid out in the order of docs/reference/SPEC.md section 4. */
#ifndef REF_MMA_H
#define REF_MMA_H

#include "mxgold/mma.h"

/** As mx_mma(), on one thread. The model is taken as checked: mx_mma_model_check() has said MX_OK. */
mx_status ref_mma(void *d, const mx_mma_model *model, const mx_mma_args *args);

/** A row of an operand of the product: codes, and a scale for each block of them. */
typedef struct ref_mma_row {
  const mx_format *type;
  const uint64_t *codes; /* [K] of type */
  const int *micro;      /* [K] log2 of a factor of each element, added to its exponent; NULL: none */
  const mx_format *scale;
  const uint64_t *scales; /* [ceil(K / block)] of scale; not read if scale is NULL */
  int scale_signed;       /* 0: the sign bit of a scale is ignored */
  int scale_inverse;      /* 1: the scale stands for its inverse, a power of two */
  size_t block;
} ref_mma_row;

/** One sum over K from nothing: bits of type model->d. Of the model the parameters, k and d are used. A model with whole_k fills K up with +0,
 *  scales beyond the last are 1. MX_ERR_NOMEM. */
mx_status ref_mma_sum(uint64_t *d, const mx_mma_model *model, const ref_mma_row *a, const ref_mma_row *b, size_t K);

#endif
