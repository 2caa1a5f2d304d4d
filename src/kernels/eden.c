/* Applies select=eden to a quantised matrix, by reading groups of a row back from where their codes and scales were stored. */
#include "kernels/block/eden.h"
#include "kernels/job.h"
#include "mxgold/layout.h"

/* The codes of n elements of a row from column c on, one to a byte. */
static void codes_at(uint8_t *out, const mx_job *j, size_t row, size_t c, size_t n, size_t n_blocks) {
  const mx_plan *p = j->plan;
  const size_t whole = n_blocks * p->block_cols;
  if (p->elem->bits == 4 && c % 2 == 0 && whole % 2 == 0)
    mx_unpack4(out, j->out->codes + row * j->out->code_stride + c / 2, whole, p->spec.nibble, p->block_cols);
  else
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)mx_code_at(j->out, &p->spec, row, c + i);
}

void mxi_eden_rows(const mx_job *j, const float *x, size_t ld, size_t row, size_t n_rows, size_t col, size_t n_cols) {
  const mx_plan *p = j->plan;
  const size_t group = mxi_eden_group(p), block = p->block_cols, across = j->out->scale_cols;
  if (p->spec.select != MX_SELECT_EDEN) return;
  for (size_t r = row; r < row + n_rows; r++)
    for (size_t at = 0; at < n_cols; at += group) {
      const size_t n = n_cols - at < group ? n_cols - at : group, n_blocks = (n + block - 1) / block, first = (col + at) / block;
      uint8_t codes[MX_EDEN_GROUP], *stored = j->out->scales + r * across + first;
      uint32_t scales[MX_EDEN_GROUP];
      codes_at(codes, j, r, col + at, n, n_blocks);
      for (size_t b = 0; b < n_blocks; b++) scales[b] = stored[b];
      mxi_eden_correct(scales, p, x + (r - row) * ld + at, codes, n, n_blocks, (uint64_t)(j->first_row + r) * across + first);
      for (size_t b = 0; b < n_blocks; b++) stored[b] = (uint8_t)scales[b];
    }
}
