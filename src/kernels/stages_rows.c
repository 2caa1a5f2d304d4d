/* Driving the vector kernels: rows of blocks in pieces, and tiles of any shape. */
#include <math.h>
#include <string.h>

#include "kernels/job.h"
#include "mxgold/layout.h"

enum { INF_BITS = 0x7F800000 };

int mx_stages_take_rows(const mx_job *j) {
  const mx_plan *p = j->plan;
  return j->kernels && j->stages->usable && j->stages->lead != MX_LEAD_NONE && p->block_rows == 1 && p->block_cols % 16 == 0 &&
         p->block_cols <= MX_PIECE_ELEMENTS && j->out->scale_bytes == 1;
}

/* Bytes that n codes take in a row. */
static size_t bytes_of(const mx_job *j, size_t n) { return j->stages->nibble < 0 ? n : n / 2; }

/* Codes of zeros: each the code of +0 or of -0. */
static void zero_codes(uint8_t *out, const mx_job *j, const float *x, size_t n, size_t block) {
  const mx_stages *f = j->stages;
  uint8_t codes[MX_PIECE_ELEMENTS];
  for (size_t i = 0; i < n; i++) codes[i] = f->zero_code[signbit(x[i]) != 0];
  if (f->nibble < 0)
    memcpy(out, codes, n);
  else
    j->kernels->pack4(out, codes, n, f->nibble, block);
}

static void piece_run(mx_job *j, mx_piece *p, const float *row_x, size_t row, size_t first, const mx_scratch *mine) {
  const mx_plan *plan = j->plan;
  const size_t block = plan->block_cols;
  uint8_t *codes = j->out->codes + row * j->out->code_stride + bytes_of(j, first * block);
  uint8_t *scales = j->out->scales + row * j->out->scale_cols + first;
  p->block = block;
  p->index = (uint64_t)(j->first_row + row) * plan->cols + first * block;
  j->kernels->block_amax(p);
  j->kernels->scales(j->stages, p);
  j->kernels->codes(codes, j->stages, p);
  memcpy(scales, p->code, p->n_blocks);
  for (size_t b = 0; b < p->n_blocks; b++) {
    if (!p->odd[b]) continue;
    uint8_t *at = codes + bytes_of(j, b * block);
    if (p->amax[b] == 0 && j->stages->zero_known) {
      zero_codes(at, j, p->x + b * block, block, block);
      scales[b] = (uint8_t)j->stages->zero_scale.code;
      continue;
    }
    memset(at, 0, bytes_of(j, block));
    const mx_band band = {row_x, plan->cols, row, 1};
    mx_tile_scalar(j, &band, row, first + b, mine);
  }
}

void mx_stages_blocks(mx_job *j, const float *x, size_t row, size_t first, size_t n, const mx_scratch *mine) {
  const size_t block = j->plan->block_cols, cols = j->plan->cols, whole = cols / block;
  const size_t most = MX_PIECE_ELEMENTS / block < MX_PIECE_BLOCKS ? MX_PIECE_ELEMENTS / block : MX_PIECE_BLOCKS;
  mx_piece p;
  memset(p.amax, 0, sizeof p.amax);
  for (size_t b = first; b < first + n;) {
    const size_t end = first + n < whole ? first + n : whole;
    if (b < end) {
      p.n_blocks = end - b < most ? end - b : most;
      p.x = x + b * block;
      piece_run(j, &p, x, row, b, mine);
      b += p.n_blocks;
      continue;
    }
    float filled[MX_PIECE_ELEMENTS]; /* a short last block */
    memcpy(filled, x + b * block, (cols - b * block) * sizeof *filled);
    memset(filled + (cols - b * block), 0, (block - (cols - b * block)) * sizeof *filled);
    p.n_blocks = 1;
    p.x = filled;
    piece_run(j, &p, x, row, b, mine);
    b++;
  }
}

/* Codes, one a byte, of n elements of a tile's row to where they stand. */
static void store_bytes(const mx_job *j, size_t row, size_t c, size_t n, const uint8_t *codes) {
  uint8_t *out = j->out->codes + row * j->out->code_stride;
  const int nibble = j->stages->nibble;
  if (nibble < 0) {
    memcpy(out + c, codes, n);
    return;
  }
  if (c % 2 == 0 && n % 2 == 0 && nibble != MX_NIBBLE_HALF_BLOCK) {
    mx_pack4(out + c / 2, codes, n, nibble, n);
    return;
  }
  uint32_t wide[MX_PIECE_ELEMENTS];
  for (size_t i = 0; i < n; i++) wide[i] = codes[i];
  mx_tile_store_codes(j, row, c, n, wide);
}

/* Elements of one row of a tile, all under one scale. */
static void row_codes(mx_job *j, const mx_block_scale *b, const float f[2], int zero, const float *x, size_t row, size_t c0, size_t n) {
  const mx_plan *plan = j->plan;
  mx_stages f4 = *j->stages;
  f4.nibble = -1; /* a code a byte: where it goes is decided after */
  f4.hot = 0;
  mx_piece p;
  uint8_t codes[MX_PIECE_ELEMENTS];
  float filled[MX_PIECE_ELEMENTS];
  for (size_t at = 0; at < n; at += MX_PIECE_ELEMENTS) {
    const size_t count = n - at < MX_PIECE_ELEMENTS ? n - at : MX_PIECE_ELEMENTS, c = c0 + at;
    const size_t here = c >= plan->cols ? 0 : plan->cols - c < count ? plan->cols - c : count;
    p.x = x + c;
    if (here < count || count % 16) {
      memcpy(filled, x + (here ? c : 0), here * sizeof *filled);
      memset(filled + here, 0, ((count + 15) / 16 * 16 - here) * sizeof *filled);
      p.x = filled;
    }
    if (zero)
      for (size_t i = 0; i < count; i++) codes[i] = f4.zero_code[signbit(p.x[i]) != 0];
    else {
      p.n_blocks = 1;
      p.block = (count + 15) / 16 * 16;
      p.index = (uint64_t)(j->first_row + row) * plan->cols + c;
      p.f0[0] = f[0];
      p.f1[0] = f[1];
      for (int i = 0; i < 2; i++) p.again[i][0] = b->again[i];
      j->kernels->codes(codes, &f4, &p);
    }
    store_bytes(j, row, c, count, codes);
  }
}

void mx_stages_tile(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine) {
  const mx_plan *p = j->plan;
  const mx_stages *stages = j->stages;
  const size_t n = p->block_cols, c0 = block_col * n, c1 = c0 + n < p->cols ? c0 + n : p->cols;
  int32_t most = 0;
  for (size_t r = 0; r < b->rows; r++) {
    const int32_t m = j->kernels->amax(b->at + r * b->ld + c0, c1 - c0);
    most = m > most ? m : most;
  }
  mx_block_stats stats = {0};
  mx_block_scale scale;
  float f[2] = {1, 1}, amax;
  memcpy(&amax, &most, sizeof amax);
  const int zero = most == 0 && stages->zero_known;
  int ordinary = most < INF_BITS;
  if (zero)
    scale = stages->zero_scale;
  else if (ordinary) {
    if (p->spec.scale_rule == MX_SCALE_RULE_QUEST)
      mx_tile_stats(&stats, p, b, c0, c1);
    else
      stats.amax = stats.amax_finite = amax;
    const uint64_t index = (uint64_t)(j->first_row / p->block_rows + block_row) * ((p->cols + n - 1) / n) + block_col;
    ordinary = amax >= 0x1p-126f && !mx_block_scale_find(&scale, p, &stats, 0, index) && mx_stages_factors(f, stages, &scale);
  }
  if (ordinary && !zero) {
    float y = stages->form == MX_FORM_MUL ? amax * f[0] : amax / f[0] * f[1];
    if (stages->form == MX_FORM_EXACT) { /* about: the limit has room */
      if (p->spec.scale_form == MX_SCALE_FORM_ENCODE) y = amax * f[0];
      y *= (float)(stages->exact_times / stages->exact_over);
    }
    ordinary = y <= stages->y_hi;
  }
  if (!ordinary) {
    mx_tile_scalar(j, b, block_row, block_col, mine);
    return;
  }
  for (size_t r = 0; r < b->rows; r++) row_codes(j, &scale, f, zero, b->at + r * b->ld, b->first + r, c0, n);
  mx_tile_store_scale(j, b, block_row, block_col, scale.code);
}
