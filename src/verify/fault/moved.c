/* Puts back what a fault moved: codes, scales, or the axis of the blocks. */
#include "verify/fault/moved.h"

#include <stdlib.h>
#include <string.h>

#include "mxgold/layout.h"
#include "verify/fault/run.h"

/* Where scale k of a grid of blocks was taken from; of a layout, `order` says it. */
static size_t scale_from(const mx_fault *f, size_t k, size_t down, size_t across, const uint32_t *order) {
  const size_t d = k / across, a = k % across;
  switch (f->op) {
  case MX_FAULT_STORE_ROW_XOR:
    return mxi_fault_other(f, d, down) * across + a;
  case MX_FAULT_STORE_BLOCK_XOR:
    return d * across + mxi_fault_other(f, a, across);
  case MX_FAULT_LAYOUT_SCALES_TRANSPOSED:
    return k % down * across + k / down;
  default:
    return order[k];
  }
}

static size_t code_from(const mx_fault *f, size_t i, size_t rows, size_t cols) {
  const size_t row = i / cols, col = i % cols, n = f->number >= 1 ? (size_t)f->number : 1;
  if (f->op == MX_FAULT_LAYOUT_CODES_ROW_XOR) return mxi_fault_other(f, row, rows) * cols + col;
  if (f->op == MX_FAULT_CODE_COLUMN_XOR) return row * cols + mxi_fault_other(f, col, cols);
  if (f->op == MX_FAULT_CODE_REVERSE) {
    const size_t to = col / n * n + n - 1 - col % n;
    return row * cols + (to < cols ? to : col);
  }
  if (row >= rows / n * n || col >= cols / n * n) return i;
  return (row / n * n + col % n) * cols + col / n * n + row % n;
}

/* Which scale lies at each place of a layout that is read as rows: each of the four bytes of a number is laid out. */
static uint32_t *order_of_layout(int layout, size_t down, size_t across, shortage *lack) {
  const size_t n = down * across;
  if (mx_layout_size((mx_layout)layout, down, across) != n) return NULL;
  uint32_t *order = noted(calloc(n + 1, sizeof *order), lack);
  uint8_t *rows = noted(malloc(2 * n + 1), lack);
  for (unsigned byte = 0; byte < 4 && order && rows; byte++) {
    for (size_t i = 0; i < n; i++) rows[i] = (uint8_t)(i >> 8 * byte);
    mx_layout_pack(rows + n, (mx_layout)layout, rows, down, across, 0);
    for (size_t i = 0; i < n; i++) order[i] |= (uint32_t)rows[n + i] << 8 * byte;
  }
  if (!rows) free(order), order = NULL;
  free(rows);
  return order;
}

/* The transposed matrix. Its scales, [cols][up(rows, width)], lie as they are or column by column. */
static int turn(moved_back *m, const mx_sample *s, const mx_fault *f, size_t width, shortage *lack) {
  const size_t rows = s->rows, cols = s->cols, n = rows * cols, across = (rows + width - 1) / width, scales = s->scale_rows * s->scale_cols;
  if (scales != cols * across) return 0;
  m->x = noted(malloc((n + 1) * sizeof *m->x), lack);
  m->codes = noted(malloc(n + 1), lack);
  m->scales = noted(malloc(scales + 1), lack);
  if (!m->x || !m->codes || !m->scales) return 0;
  for (size_t i = 0; i < n; i++) {
    m->x[i % cols * rows + i / cols] = s->x[i / cols * s->ld + i % cols];
    m->codes[i % cols * rows + i / cols] = s->codes[i];
  }
  for (size_t k = 0; k < scales; k++)
    m->scales[f->op == MX_FAULT_LAYOUT_DOWN ? k % cols * across + k / cols : k] = ((const uint8_t *)s->scales)[k];
  m->s.x = m->x, m->s.codes = m->codes, m->s.scales = m->scales;
  m->s.rows = m->s.scale_rows = cols;
  m->s.cols = m->s.ld = rows;
  m->s.scale_cols = across;
  return 1;
}

static int moves_codes(const mx_fault *f) {
  return f->op == MX_FAULT_CODE_REVERSE || f->op == MX_FAULT_CODE_COLUMN_XOR || f->op == MX_FAULT_LAYOUT_CODES_ROW_XOR ||
         f->op == MX_FAULT_LAYOUT_CODES_TRANSPOSED;
}

int mxi_move_back(moved_back *m, const mx_sample *s, const mx_fault *f, size_t width, shortage *lack) {
  *m = (moved_back){.s = *s};
  if (s->scale_bytes != 1 || !s->codes || !width) return 0;
  if (mxi_fault_is_down(f)) return turn(m, s, f, width, lack);
  if (moves_codes(f)) {
    if (!(m->codes = noted(malloc(s->rows * s->cols + 1), lack))) return 0;
    for (size_t i = 0; i < s->rows * s->cols; i++) m->codes[code_from(f, i, s->rows, s->cols)] = s->codes[i];
    m->s.codes = m->codes;
    return 1;
  }
  const size_t down = s->scale_rows, across = s->scale_cols, n = down * across;
  uint32_t *order = f->op == MX_FAULT_LAYOUT_SWIZZLE ? order_of_layout(f->format, down, across, lack) : NULL;
  if ((f->op == MX_FAULT_LAYOUT_SWIZZLE && !order) || !(m->scales = noted(malloc(n + 1), lack))) return free(order), 0;
  for (size_t k = 0; k < n; k++) m->scales[scale_from(f, k, down, across, order)] = ((const uint8_t *)s->scales)[k];
  free(order);
  m->s.scales = m->scales;
  return 1;
}

void mxi_moved_back_close(moved_back *m) {
  free(m->x);
  free(m->codes);
  free(m->scales);
  *m = (moved_back){0};
}
