/* Makes Q1 and Q2 under grad.config=softmax: a block's scale is made of Z, the log-sum-exp of its magnitudes, in place of the largest one. Z is
 * never below the largest magnitude. So each block gets one more column, which holds Z, and is quantised as usual: every rule of scales then finds Z
 * as the largest magnitude. The columns are taken out again. Random words stay with the elements that they belong to. */
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/layout.h"
#include "mxgold/random.h"
#include "train/linear/rules.h"

int mxi_soft_acts(const mx_linear_recipe *r, int q) {
  return r->grad_config == MX_GRAD_SOFTMAX && (q == MX_Q1 || q == MX_Q2) && mxi_gradient_looks_at(r, q);
}

/* The operand and its wider twin. */
typedef struct soft {
  mxi_matrix x; /* rotated */
  mxi_blocks blocks;
  mxi_normaliser how;
  mx_tensor wide;
  mx_spec spec;         /* of wide */
  float *values, *room; /* [rows][wide.cols]; three of a block's size a worker */
  uint32_t *words;      /* of random bits, [rows][wide.cols]; NULL: none are drawn */
} soft;

static uint32_t word_of(const mx_spec *s, size_t index) {
  if (s->sr_source == MX_SR_SOURCE_GIVEN) return s->given_bits[index];
  return mx_random(s->seed, MX_STREAM_ELEMENT, index) >> (32 - (s->sr_bits ? s->sr_bits : 16));
}

/* Block (i, j) with its Z, at the end of its first row. */
static void widen(const soft *w, const mx_spec *from, size_t i, size_t j, float *room) {
  const mxi_blocks *b = &w->blocks;
  const size_t row = i * b->rows, col = j * b->cols, to = j * (b->cols + 1);
  const size_t rows = mxi_least(b->rows, w->x.rows - row), cols = mxi_least(b->cols, w->x.cols - col), size = b->rows * b->cols;
  size_t n = 0;
  for (size_t r = row; r < row + rows; r++) {
    float *line = w->values + r * w->wide.cols + to;
    memset(line, 0, (b->cols + 1) * sizeof *line);
    memcpy(line, w->x.at + r * w->x.ld + col, cols * sizeof *line);
    memcpy(room + n, line, cols * sizeof *line);
    n += cols;
    if (!w->words) continue;
    uint32_t *words = w->words + r * w->wide.cols + to;
    memset(words, 0, (b->cols + 1) * sizeof *words);
    for (size_t c = 0; c < cols; c++) words[c] = word_of(from, r * w->x.cols + col + c);
  }
  w->values[row * w->wide.cols + to + b->cols] = (float)mxi_normalise(NULL, &w->how, room, n, room + size, room + 2 * size);
}

/* Copies the operand's own codes and scales out of one row of the wider tensor. */
static void narrow(const soft *w, mx_tensor *out, const mx_spec *spec, uint8_t *codes, size_t r) {
  const mxi_blocks *b = &w->blocks;
  memset(codes, 0, out->cols_padded);
  const uint8_t *wide = w->wide.codes + r * w->wide.code_stride;
  const int nibbles = mx_elem_format(spec->elem)->bits == 4; /* the low one first, as spec_of() has it */
  for (size_t j = 0; j < b->across; j++) {
    const size_t from = j * (b->cols + 1);
    uint8_t *to = codes + j * b->cols;
    for (size_t c = 0; c < b->cols; c++) to[c] = nibbles ? wide[(from + c) / 2] >> ((from + c) % 2 * 4) & 15 : wide[from + c];
  }
  uint8_t *line = out->codes + r * out->code_stride;
  if (nibbles)
    mx_pack4(line, codes, out->cols_padded, spec->nibble, b->cols);
  else
    memcpy(line, codes, out->cols_padded);
  const int columns = b->cols == 1 && b->rows > 1; /* one row of scales a row of blocks */
  if (columns && r % b->rows) return;
  memcpy(out->scales + (columns ? r / b->rows : r) * out->scale_cols * out->scale_bytes,
         w->wide.scales + r * w->wide.scale_cols * w->wide.scale_bytes, out->scale_cols * out->scale_bytes);
}

/* The spec of the wider tensor: blocks of one more column, and none of the steps that were done before. */
static mx_spec spec_of(const soft *w, const mx_spec *from) {
  mx_spec s = *from;
  if (s.block_cols != MX_BLOCK_WHOLE) s.block_cols = (int)w->blocks.cols + 1;
  s.had_size = 0;
  s.nibble = MX_NIBBLE_LOW_FIRST;
  if (w->words) s.sr_source = MX_SR_SOURCE_GIVEN;
  s.given_bits = w->words;
  return s;
}

mx_status mxi_soft_quantise(mxi_layer *y, int q, mxi_matrix x, mx_error *err) {
  mx_tensor *out = &y->t[q];
  const mx_spec *spec = &y->q[q];
  soft w = {0};
  mx_status status = mxi_linear_as_quantised(&w.x, y, q, x);
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  mxi_blocks_of(&w.blocks, out, spec);
  const mxi_blocks *b = &w.blocks;
  const size_t wide = b->across * (b->cols + 1), n_workers = mxi_least(MXI_MOST_WORKERS, b->down);
  if (spec->elem_round == MX_ROUND_SR) w.words = mxi_arena_take(&y->work, x.rows * wide, sizeof *w.words);
  w.values = mxi_arena_take(&y->work, x.rows * wide, sizeof *w.values);
  w.room = mxi_arena_take(&y->work, n_workers * b->rows * b->cols, 3 * sizeof *w.room);
  uint8_t *codes = mxi_arena_take(&y->work, n_workers, out->cols_padded);
  w.spec = spec_of(&w, spec);
  status = mxi_arena_tensor(&y->work, &y->work, &w.wide, x.rows, wide, &w.spec);
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  if (!y->work.base || !x.rows || !x.cols) return MX_OK;
  w.how = mxi_normaliser_of(y->r, mxi_tensor_unit(spec, w.x.at, w.x.rows, w.x.cols, w.x.ld));
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(y->exec.n_threads)) if (n_workers > 1)
  for (size_t t = 0; t < n_workers; t++)
    for (size_t i = t; i < b->down; i += n_workers)
      for (size_t j = 0; j < b->across; j++) widen(&w, spec, i, j, w.room + t * 3 * b->rows * b->cols);
  mx_exec exec = y->exec;
  exec.amax_known = 1; /* the tensor scale is made of max|X| */
  mx_spec unrotated = *spec;
  unrotated.had_size = 0;
  status = mx_tensor_amax(&exec.amax, w.x.at, w.x.rows, w.x.cols, w.x.ld, &unrotated, &y->exec);
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  if ((status = mx_quantize(&w.wide, w.values, x.rows, wide, wide, &w.spec, &exec, err))) return status;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(y->exec.n_threads)) if (n_workers > 1)
  for (size_t t = 0; t < n_workers; t++)
    for (size_t r = t; r < x.rows; r += n_workers) narrow(&w, out, spec, codes + t * out->cols_padded, r);
  out->tensor_scale = w.wide.tensor_scale;
  out->has_tensor_scale = w.wide.has_tensor_scale;
  return MX_OK;
}
