/* Rows of a source as the rule sees them: transposed, rounded to the rule's type, flushed, rotated. SPEC 3.2 steps 1 to 3. */
#ifndef MX_KERNELS_ROWS_H
#define MX_KERNELS_ROWS_H

#include <stddef.h>

#include "mxgold/quantize.h"

typedef struct mx_source {
  const float *at;
  ptrdiff_t row_step, col_step; /* in elements */
  size_t rows, cols;
} mx_source;

/** Can rows be read where they are? Otherwise mx_rows_load() makes a changed copy. */
int mx_rows_direct(const mx_source *src, const mx_spec *spec);
/** Copy rows [first, first + count) to out, row stride src->cols, with everything done that the spec asks of its input. */
void mx_rows_load(float *out, const mx_source *src, size_t first, size_t count, const mx_spec *spec);

#endif
