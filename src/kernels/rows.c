/* Reads rows of a source as the rule of a spec sees them: transposed if necessary, rounded, flushed and rotated. */
#include "kernels/rows.h"

static int as_they_are(const mx_input *in) { return in->dtype == MX_INPUT_DTYPE_FLOAT32 && !in->flush && !in->had_size; }

int mxi_rows_direct(const mx_source *src) { return !src->at16 && src->col_step == 1 && as_they_are(&src->input); }

void mxi_rows_load(float *out, size_t ld, const mx_source *src, size_t first, size_t count, size_t col, size_t n_cols) {
  const int turned = src->col_step != 1;
  if (turned) { /* then row_step is 1 */
    const float *at = src->at + first + col * (size_t)src->col_step;
    if (src->turn(out, ld, at, (size_t)src->col_step, count, n_cols, &src->input)) return;
  }
  for (size_t r = 0; r < count && src->at16; r++)
    src->widen(out + r * ld, src->at16 + (ptrdiff_t)(first + r) * src->row_step + col, n_cols, src->type);
  if ((turned || src->at16) && as_they_are(&src->input)) return;
  for (size_t r = 0; r < count; r++) {
    const float *from = turned || src->at16 ? out + r * ld : src->at + (ptrdiff_t)(first + r) * src->row_step + col;
    src->kernel(out + r * ld, from, n_cols, &src->input);
  }
}
