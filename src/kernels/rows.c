/* Reading rows. */
#include "kernels/rows.h"

static int as_they_are(const mx_input *in) { return in->dtype == MX_INPUT_DTYPE_FLOAT32 && !in->flush && !in->had_size; }

int mx_rows_direct(const mx_source *src) { return src->col_step == 1 && as_they_are(&src->input); }

/* Rows of the transpose: a line of the source holds some elements of each of 16 rows, and is read once. */
static void transpose(float *out, size_t ld, const mx_source *src, size_t first, size_t count, size_t col, size_t n_cols) {
  enum { LINE = 16 };
  for (size_t r = 0; r < count; r += LINE) {
    const size_t lanes = count - r < LINE ? count - r : LINE;
    const float *from = src->at + (ptrdiff_t)(first + r) * src->row_step + (ptrdiff_t)col * src->col_step;
    float *to = out + r * ld;
    if (lanes == LINE && src->row_step == 1)
      for (size_t c = 0; c < n_cols; c++)
        for (size_t k = 0; k < LINE; k++) to[k * ld + c] = from[(ptrdiff_t)c * src->col_step + (ptrdiff_t)k];
    else
      for (size_t k = 0; k < lanes; k++)
        for (size_t c = 0; c < n_cols; c++) to[k * ld + c] = from[(ptrdiff_t)c * src->col_step + (ptrdiff_t)k * src->row_step];
  }
}

void mx_rows_load(float *out, size_t ld, const mx_source *src, size_t first, size_t count, size_t col, size_t n_cols) {
  const int turned = src->col_step != 1;
  if (turned) transpose(out, ld, src, first, count, col, n_cols);
  if (turned && as_they_are(&src->input)) return;
  for (size_t r = 0; r < count; r++) {
    const float *from = turned ? out + r * ld : src->at + (ptrdiff_t)(first + r) * src->row_step + col;
    src->kernel(out + r * ld, from, n_cols, &src->input);
  }
}
