/* What counting and the search for patterns share. */
#ifndef MX_VERIFY_DIFF_H
#define MX_VERIFY_DIFF_H

#include "mxgold/verify.h"

typedef struct diff_job {
  mx_difference *out;
  const mx_tensor *a, *b;
  const mx_spec *spec;
  const mx_format *elem, *scale;
  size_t block_rows, block_cols;
  const float *x;
  size_t ld;
  mx_diff_options how;
} diff_job;

uint32_t diff_scale(const diff_job *j, const mx_tensor *t, size_t row, size_t col);
/** Do these codes count as the same? scale: of A. */
int diff_same(const diff_job *j, uint32_t a, uint32_t b);
/** Name what the differences have in common. */
void diff_patterns(diff_job *j);

#endif
