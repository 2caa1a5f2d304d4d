/* Declares how rows of a source are read as the rule sees them: transposed, rounded to the rule's type, flushed, rotated. SPEC 3.2 steps 1
 * to 3. */
#ifndef MX_KERNELS_ROWS_H
#define MX_KERNELS_ROWS_H

#include "kernels/input.h"

typedef struct mx_source {
  const float *at;
  const uint16_t *at16; /* or 16-bit values of `type` (MX_INPUT_DTYPE_*), which cannot be transposed */
  int type;
  ptrdiff_t row_step, col_step; /* in elements */
  size_t rows, cols;
  mx_input input;
  mx_input_kernel *kernel;
  mx_turn_kernel *turn;               /* for transposes */
  mx_turned_amax_kernel *turned_amax; /* the same; NULL: none */
  mx_widen_kernel *widen;
} mx_source;

/** Whether rows can be read in place. Otherwise mxi_rows_load() makes a changed copy. */
int mxi_rows_direct(const mx_source *src);
/** Loads columns [col, col + n_cols) of rows [first, first + count) into out, with row stride ld, and does everything that the spec does to
 *  its input. col is a multiple of had.size, and so is n_cols except at the end of the row. */
void mxi_rows_load(float *out, size_t ld, const mx_source *src, size_t first, size_t count, size_t col, size_t n_cols);

#endif
