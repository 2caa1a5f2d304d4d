/* Declares rows of a source as the rule sees them: transposed, rounded to the rule's type, flushed, rotated. SPEC 3.2 steps 1 to 3. */
#ifndef MX_KERNELS_ROWS_H
#define MX_KERNELS_ROWS_H

#include "kernels/input.h"

typedef struct mx_source {
  const float *at;
  const uint16_t *at16; /* or these, of type (MX_INPUT_DTYPE_*); not of transposes */
  int type;
  ptrdiff_t row_step, col_step; /* in elements */
  size_t rows, cols;
  mx_input input;
  mx_input_kernel *kernel;
  mx_turn_kernel *turn; /* of transposes */
  mx_widen_kernel *widen;
} mx_source;

/** Can rows be read where they are? Otherwise mxi_rows_load() makes a changed copy. */
int mxi_rows_direct(const mx_source *src);
/** Columns [col, col + n_cols) of rows [first, first + count) to out, row stride ld, with everything done that the spec asks of its input. col is
 *  a multiple of had.size; so is n_cols, but for the end of the row. */
void mxi_rows_load(float *out, size_t ld, const mx_source *src, size_t first, size_t count, size_t col, size_t n_cols);

#endif
