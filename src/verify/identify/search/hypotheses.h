/* Declares the element and scale formats, block shapes and rotations that the shapes and the spread of x / (code * scale) allow. */
#ifndef MX_VERIFY_IDENTIFY_SEARCH_HYPOTHESES_H
#define MX_VERIFY_IDENTIFY_SEARCH_HYPOTHESES_H

#include "core/shortage.h"
#include "mxgold/verify.h"

/* If log2 of a tensor scale is larger than this, the tensor scale is no rounding of 1, and rules that have one are tried first. */
static const double WITHOUT_NORM = 0.7;

enum { MAX_HYPOTHESES = 24, MAX_BLOCKS_TRIED = 12 };

typedef struct hypothesis {
  mx_spec formats; /* elem, scale, block, scale.form, had.* */
  size_t block_rows, block_cols;
  double spread; /* mean distance of log2(x / (code * scale)) from its median */
  size_t order;  /* of the tables: decides between equals */
  double offset; /* that median: log2 of the tensor scale's multiplier */
} hypothesis;

/** Lists the hypotheses, best first; n is at most MAX_HYPOTHESES. MX_ERR_SHAPE if the scales fit no block shape; MX_ERR_NOMEM, noted in lack. */
mx_status mxi_find_hypotheses(hypothesis out[MAX_HYPOTHESES], size_t *n, const mx_sample *samples, size_t n_samples,
                              const mx_identify_options *options, shortage *lack, mx_error *err);

/** Adds every element, scale, block, input.dtype and rotation of a preset that the shapes and codes allow and that is not in `known`; n is at
 *  most MAX_HYPOTHESES. */
void mxi_preset_hypotheses(hypothesis out[MAX_HYPOTHESES], size_t *n, const mx_sample *samples, size_t n_samples,
                           const mx_identify_options *options, const hypothesis *known, size_t n_known);

#endif
