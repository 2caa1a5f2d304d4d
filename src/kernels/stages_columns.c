/* Drives the vector kernels over columns of a matrix that need not be transposed. */
#include <string.h>

#include "kernels/job.h"

enum { SIDE = 16 };

int mxi_stages_take_columns(const mx_job *j) {
  const mx_input *in = &j->src->input;
  return j->kernels && j->kernels->columns_load && j->stages->columns && (!in->had_size || in->had_size == SIDE) &&
         in->dtype == MX_INPUT_DTYPE_FLOAT32 && !in->flush && !j->src->at16 && j->plan->cols % 4 == 0 && j->first_row == 0;
}

/* A block that is not ordinary goes to the code of a single tile. */
static void one_by_one(mx_job *j, const mx_piece *p, size_t b, size_t row, size_t first, const mx_scratch *mine) {
  float x[SIDE];
  const size_t lane = b % SIDE, block = first + b / SIDE;
  for (size_t k = 0; k < SIDE; k++) x[k] = p->x[SIDE * (b / SIDE * SIDE + k) + lane];
  memset(j->out->codes + (row + lane) * j->out->code_stride + block * SIDE / 2, 0, SIDE / 2);
  const mx_band band = {x, SIDE, row + lane, 1, block * SIDE};
  mxi_stages_tile(j, &band, row + lane, block, mine);
}

/* Does sixteen columns. */
static void sixteen(mx_job *j, mx_piece *p, size_t row, size_t first, size_t groups, const mx_scratch *mine) {
  const mx_tensor *t = j->out;
  p->index = (uint64_t)row * j->plan->cols + first * SIDE;
  p->apart = j->plan->cols;
  p->beyond = 0;
  mxi_stages_scales(j, p, mine->memo);
  j->kernels->columns_codes(t->codes + row * t->code_stride + first * SIDE / 2, t->code_stride, j->stages, p, groups);
  for (size_t r = 0; r < SIDE; r++) {
    uint8_t *to = t->scales + (row + r) * t->scale_cols + first;
    for (size_t g = 0; g < groups; g++) to[g] = p->code[g * SIDE + r];
  }
  for (const uint8_t *odd = p->odd; (odd = memchr(odd, 1, p->n_blocks - (size_t)(odd - p->odd))); odd++)
    one_by_one(j, p, (size_t)(odd - p->odd), row, first, mine);
}

int mxi_stages_columns(mx_job *j, const float *x, size_t ld, size_t row, size_t n_rows, size_t first, size_t cols, size_t ahead,
                       const mx_scratch *mine) {
  enum { MOST = MX_PIECE_BLOCKS / SIDE };
  const uint64_t from = (uint64_t)row * j->plan->cols / 4, to = (uint64_t)(row + n_rows) * j->plan->cols / 4;
  if (n_rows % SIDE || cols % SIDE || from >> 32 != to >> 32) return 0; /* counters of random words would carry */
  float y[MX_PIECE_ELEMENTS];
  mx_piece p;
  p.x = p.next = y;
  p.block = SIDE;
  p.by_element = p.shift = 0;
  for (size_t r = 0; r < n_rows; r += SIDE)
    for (size_t g = 0, n; g < cols / SIDE; g += n) {
      n = cols / SIDE - g < MOST ? cols / SIDE - g : MOST;
      p.n_blocks = n * SIDE;
      p.n = p.run = n * SIDE * SIDE;
      j->kernels->columns_load(y, &p, x + g * SIDE * ld + r, ld, n, ahead, &j->src->input);
      sixteen(j, &p, row + r, first + g, n, mine);
    }
  return 1;
}
