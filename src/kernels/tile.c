/* Quantises one tile of a matrix by scalar code, against which every vector kernel is tested, and which takes over if none fits. SPEC 3.2. */
#include <math.h>
#include <string.h>

#include "kernels/block/narrow.h"
#include "kernels/block/select.h"
#include "kernels/job.h"

void mxi_tile_stats(mx_block_stats *st, const mx_plan *p, const mx_band *b, size_t c0, size_t c1) {
  *st = (mx_block_stats){0};
  for (size_t r = 0; r < b->rows; r++)
    for (size_t c = c0; c < c1; c++) mx_block_stats_add(st, b->at[r * b->ld + c - b->col]);
  st->amax = st->has_inf ? INFINITY : st->amax_finite;
  if (p->spec.scale_rule != MX_SCALE_RULE_QUEST) return;
  const double n = (double)(p->block_rows * p->block_cols); /* a short block is filled up with zeros */
  double sum = 0, squares = 0;
  for (size_t r = 0; r < b->rows; r++)
    for (size_t c = c0; c < c1; c++) sum += (double)b->at[r * b->ld + c - b->col];
  const double mean = sum / n;
  for (size_t r = 0; r < b->rows; r++)
    for (size_t c = c0; c < c1; c++) squares += ((double)b->at[r * b->ld + c - b->col] - mean) * ((double)b->at[r * b->ld + c - b->col] - mean);
  squares += (n - (double)(b->rows * (c1 - c0))) * mean * mean;
  st->std = sqrt(squares / n);
}

void mxi_tile_store_scale(const mx_job *j, const mx_band *b, size_t block_row, size_t block_col, uint32_t code) {
  mx_tensor *t = j->out;
  const size_t n = t->scale_bytes, repeats = t->scale_rows == t->rows ? b->rows : 1;
  for (size_t r = 0; r < repeats; r++) {
    const size_t row = repeats == 1 && t->scale_rows != t->rows ? block_row : b->first + r;
    memcpy(t->scales + (row * t->scale_cols + block_col) * n, &code, n);
  }
}

/* Stores the codes of a tile row, which starts at column c0. */
void mxi_tile_store_codes(const mx_job *j, size_t row, size_t c0, size_t n, const uint32_t *codes) {
  const mx_plan *p = j->plan;
  uint8_t *out = j->out->codes + row * j->out->code_stride;
  if (p->elem->bits > 4)
    for (size_t i = 0; i < n; i++) out[c0 + i] = (uint8_t)codes[i];
  else
    for (size_t i = 0; i < n; i++) {
      const size_t c = c0 + i, bc = p->block_cols, half = bc / 2;
      size_t byte = c / 2;
      int high = c % 2;
      if (p->spec.nibble == MX_NIBBLE_HIGH_FIRST) high = !high;
      if (p->spec.nibble == MX_NIBBLE_HALF_BLOCK) {
        byte = c / bc * half + c % bc % half;
        high = c % bc >= half;
      }
      out[byte] |= (uint8_t)(codes[i] << (high ? 4 : 0));
    }
}

static void refuse(mx_job *j, size_t index) {
#pragma omp critical(mxi_quantize_refuse)
  if (index < j->refused) j->refused = index;
}

/* Rounds a row of elem=bf16 to nearest even, and to Inf past the largest number; a NaN keeps its payload. */
static void to_bfloat16(uint8_t *out, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    const uint32_t rounded = mxi_round_bits(bits, 16) << 16;
    bits = (bits & 0x7FFFFFFF) > 0x7F800000 ? bits : rounded;
    memcpy(out + 4 * i, &bits, sizeof bits);
  }
}

/* elem=none, elem=bf16: stores whole rows of a band of tiles. */
void mxi_tile_pass_through(mx_job *j, const mx_band *b, size_t block_row, size_t n_cols) {
  const mx_encoding nearest = {0};
  const uint32_t one = (uint32_t)mx_encode(j->plan->scale, 1, &nearest, 0);
  const int refuses = j->plan->spec.elem_nan == MX_ELEM_NAN_ERROR;
  for (size_t r = 0; r < b->rows; r++) {
    uint8_t *out = j->out->codes + (b->first + r) * j->out->code_stride + 4 * b->col;
    if (j->plan->spec.elem == MX_ELEM_BFLOAT16)
      to_bfloat16(out, b->at + r * b->ld, n_cols);
    else
      memcpy(out, b->at + r * b->ld, n_cols * 4);
    for (size_t c = 0; refuses && c < n_cols; c++)
      if (isnan(b->at[r * b->ld + c])) refuse(j, (b->first + r) * j->src->cols + b->col + c);
  }
  for (size_t t = 0; t < (n_cols + j->plan->block_cols - 1) / j->plan->block_cols; t++)
    mxi_tile_store_scale(j, b, block_row, b->col / j->plan->block_cols + t, one);
}

/* Quantises a tile of HiFloat4. Returns the first value that the spec refuses, or SIZE_MAX. */
static size_t hif4_tile(const mx_job *j, const mx_band *b, size_t c0, size_t c1, size_t block_col, uint64_t index, uint32_t *codes) {
  const mx_plan *p = j->plan;
  uint8_t bytes[64];
  uint32_t scale;
  float x[64] = {0}; /* a short block is stored completely, filled up with +0 */
  memcpy(x, b->at + c0 - b->col, (c1 - c0) * sizeof *x);
  const int refused = mxi_hif4_block(bytes, &scale, j->out->micro + (b->first * j->out->scale_cols + block_col) * 3, p, x, 64, index);
  for (size_t i = 0; i < c1 - c0; i++)
    if (refused ? !isfinite(x[i]) : isnan(x[i]) && p->spec.elem_nan == MX_ELEM_NAN_ERROR) return b->first * p->cols + c0 + i;
  if (refused) return b->first * p->cols + c0;
  for (size_t i = 0; i < 64; i++) codes[i] = bytes[i];
  mxi_tile_store_codes(j, b->first, c0, 64, codes);
  mxi_tile_store_scale(j, b, b->first, block_col, scale);
  return SIZE_MAX;
}

/* Computes values and codes of row r of a tile, n columns including those that fill it up. Returns the first column that the spec refuses,
 * or SIZE_MAX. */
static size_t encode_row(const mx_job *j, const mx_band *b, const mx_block_scale *scale, size_t r, size_t c0, size_t n,
                         const mx_scratch *mine) {
  const mx_plan *p = j->plan;
  const uint64_t index = (uint64_t)(j->first_row + b->first + r) * p->cols;
  for (size_t i = 0; i < n; i++) {
    const float x = mine->values[i] = c0 + i < p->cols ? b->at[r * b->ld + c0 + i - b->col] : 0;
    if (isnan(x) && p->spec.elem_nan == MX_ELEM_NAN_ERROR) return c0 + i;
    /* The zeros that fill up a block stay zero under any random integer, and there may be none for them. */
    mine->codes[i] = mxi_element_code(p, scale, x, c0 + i < p->cols ? index + c0 + i : index);
  }
  return SIZE_MAX;
}

/* Whether the map-to-4 candidate wins, for which it needs a strictly smaller error (TECHNIQUES 4.5). */
static int four_wins(const mx_job *j, const mx_band *b, const mx_block_scale *six, const mx_block_scale *four, size_t c0, size_t n,
                     const mx_scratch *mine) {
  const mx_block_scale *both[2] = {six, four};
  float error[2] = {0, 0};
  for (int i = 0; i < 2; i++)
    for (size_t r = 0; r < b->rows; r++) {
      encode_row(j, b, both[i], r, c0, n, mine);
      error[i] = mxi_candidate_error(j->plan, both[i], error[i], mine->values, mine->codes, n);
    }
  return error[1] < error[0];
}

void mxi_tile_scalar(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine) {
  const mx_plan *p = j->plan;
  const size_t c0 = block_col * p->block_cols, c1 = c0 + p->block_cols < p->cols ? c0 + p->block_cols : p->cols;
  const uint64_t index = (uint64_t)(j->first_row / p->block_rows + block_row) * ((p->cols + p->block_cols - 1) / p->block_cols) + block_col;
  if (p->spec.scale_rule == MX_SCALE_RULE_HIF4) {
    const size_t bad = hif4_tile(j, b, c0, c1, block_col, index, mine->codes);
    if (bad != SIZE_MAX) refuse(j, bad);
    return;
  }
  const size_t n = p->block_cols; /* a short block is stored completely, filled up with +0 */
  mx_block_stats stats;
  mx_block_scale scale, four;
  mxi_tile_stats(&stats, p, b, c0, c1);
  if (mxi_block_scale_find(&scale, p, &stats, 0, index)) {
    size_t at =
        SIZE_MAX; /* the first NaN or Inf; if there is none because the largest value was carried to Inf, the first element of the tile */
    for (size_t r = 0; r < b->rows; r++)
      for (size_t c = c0; c < c1; c++)
        if (at == SIZE_MAX && !isfinite(b->at[r * b->ld + c - b->col])) at = (b->first + r) * p->cols + c;
    refuse(j, at == SIZE_MAX ? b->first * p->cols + c0 : at);
    return;
  }
  if (p->spec.select == MX_SELECT_FOURSIX && !mxi_block_scale_find(&four, p, &stats, 1, index) && four_wins(j, b, &scale, &four, c0, n, mine))
    scale = four;
  for (size_t r = 0; r < b->rows; r++) {
    const size_t bad = encode_row(j, b, &scale, r, c0, n, mine);
    if (bad != SIZE_MAX)
      refuse(j, (b->first + r) * p->cols + bad);
    else
      mxi_tile_store_codes(j, b->first + r, c0, n, mine->codes);
  }
  mxi_tile_store_scale(j, b, block_row, block_col, scale.code);
}
