/* Driving the vector kernels: rows of blocks in pieces, and tiles of any shape. */
#include <math.h>
#include <string.h>

#include "kernels/job.h"
#include "kernels/select.h"
#include "mxgold/layout.h"

enum { INF_BITS = 0x7F800000 };

int mx_stages_take_rows(const mx_job *j) {
  const mx_plan *p = j->plan;
  if (j->kernels && j->stages->hif4) return 1;
  return j->kernels && j->stages->usable && j->stages->lead != MX_LEAD_NONE && p->block_rows == 1 && p->block_cols % 16 == 0 &&
         p->block_cols <= MX_PIECE_ELEMENTS && j->out->scale_bytes == 1;
}

/* Bytes that n codes take in a row. */
static size_t bytes_of(const mx_job *j, size_t n) { return j->stages->nibble < 0 ? n : n / 2; }

static void pack(uint8_t *out, const mx_job *j, const uint8_t *codes, size_t n, size_t block) {
  if (j->stages->nibble < 0)
    memcpy(out, codes, n);
  else
    j->kernels->pack4(out, codes, n, j->stages->nibble, block);
}

/* Codes of zeros: each the code of +0 or of -0. */
static void zero_codes(uint8_t *out, const mx_job *j, const float *x, size_t n, size_t block) {
  const mx_stages *f = j->stages;
  uint8_t codes[MX_PIECE_ELEMENTS];
  for (size_t i = 0; i < n; i++) codes[i] = f->zero_code[signbit(x[i]) != 0];
  pack(out, j, codes, n, block);
}

/* Factors a block to factors a sixteen elements. */
static void spread(mx_piece *p, int both) {
  const size_t per = p->block / 16;
  for (size_t b = p->n_blocks; b-- > 0;)
    for (size_t k = 0; k < per; k++) {
      p->f0[b * per + k] = p->f0[b];
      if (both) p->f1[b * per + k] = p->f1[b];
    }
  p->shift = 0;
}

/* Both candidates of select=foursix; a block that is not ordinary under one of them is not ordinary. */
static void two_candidates(uint8_t *out, const mx_job *j, mx_piece *p) {
  uint8_t codes[MX_PIECE_ELEMENTS];
  mx_stages stages;
  mx_piece four;
  mx_stages_map_to_4(&stages, j->stages);
  four.x = p->x, four.n = p->n, four.n_blocks = p->n_blocks, four.block = p->block;
  memcpy(four.amax, p->amax, sizeof four.amax);
  j->kernels->scales(j->stages, p);
  j->kernels->scales(&stages, &four);
  for (size_t b = 0; b < p->n_blocks; b++) p->odd[b] |= four.odd[b];
  j->kernels->foursix(codes, j->stages, p, &four);
  pack(out, j, codes, p->n, p->block);
}

/* All stages of a piece: packed codes, scales in p. micro: of its first block. */
static void piece_codes(uint8_t *out, uint8_t *micro, const mx_job *j, mx_piece *p) {
  if (j->stages->hif4) {
    uint8_t codes[MX_PIECE_ELEMENTS];
    for (size_t b = 0; b < p->n_blocks; b++) p->amax[b] = -1; /* not looked at */
    j->kernels->hif4(codes, micro, j->stages, p);
    pack(out, j, codes, p->n, p->block);
    return;
  }
  j->kernels->block_amax(p);
  if (j->stages->select) {
    two_candidates(out, j, p);
    return;
  }
  j->kernels->scales(j->stages, p);
  if (p->shift < 0) spread(p, j->stages->form == MX_FORM_DIV_MUL);
  j->kernels->codes(out, j->stages, p);
}

static uint8_t *micro_at(const mx_job *j, size_t row, size_t block) {
  return j->out->micro ? j->out->micro + (row * j->out->scale_cols + block) * 3 : NULL;
}

static void piece_run(mx_job *j, mx_piece *p, size_t row, size_t first, const mx_scratch *mine) {
  const mx_plan *plan = j->plan;
  const size_t block = plan->block_cols;
  uint8_t *codes = j->out->codes + row * j->out->code_stride + bytes_of(j, first * block);
  uint8_t *scales = j->out->scales + row * j->out->scale_cols + first;
  p->n = p->n_blocks * block;
  p->index = (uint64_t)(j->first_row + row) * plan->cols + first * block;
  piece_codes(codes, micro_at(j, row, first), j, p);
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
    const mx_band band = {p->x, p->n, row, 1, first * block};
    mx_tile_scalar(j, &band, row, first + b, mine);
  }
}

void mx_stages_blocks(mx_job *j, const float *x, size_t row, size_t first, size_t n, const float *next, const mx_scratch *mine) {
  const size_t block = j->plan->block_cols, cols = j->plan->cols, whole = cols / block, end = first + n < whole ? first + n : whole;
  const size_t most = MX_PIECE_ELEMENTS / block < MX_PIECE_BLOCKS ? MX_PIECE_ELEMENTS / block : MX_PIECE_BLOCKS;
  mx_piece p;
  memset(p.amax, 0, sizeof p.amax);
  p.block = block;
  p.by_element = 0;
  p.shift = block & (block - 1) ? -1 : __builtin_ctzll(block / 16);
  for (size_t b = first; b < end; b += p.n_blocks, p.shift = block & (block - 1) ? -1 : p.shift) {
    p.n_blocks = end - b < most ? end - b : most;
    p.x = x + (b - first) * block;
    p.next = next ? next + (b - first) * block : p.x + p.n_blocks * block;
    piece_run(j, &p, row, b, mine);
  }
  if (first + n <= whole) return;
  float filled[MX_PIECE_ELEMENTS]; /* a short last block */
  memcpy(filled, x + (whole - first) * block, (cols - whole * block) * sizeof *filled);
  memset(filled + (cols - whole * block), 0, (block - (cols - whole * block)) * sizeof *filled);
  p.n_blocks = 1;
  p.x = p.next = filled;
  piece_run(j, &p, row, whole, mine);
}

/* Rows [row, row + n_rows), `many` whole blocks of each, from a panel that holds them without gaps: one piece of all. */
static void panel_piece(mx_job *j, mx_piece *p, size_t row, size_t n_rows, size_t first, size_t many, const mx_scratch *mine) {
  const size_t block = p->block, bytes = bytes_of(j, many * block);
  uint8_t codes[MX_PIECE_ELEMENTS], micro[3 * MX_PIECE_BLOCKS];
  p->n_blocks = n_rows * many;
  p->n = p->n_blocks * block;
  piece_codes(codes, micro, j, p);
  for (size_t r = 0; r < n_rows; r++) {
    if (j->out->micro) memcpy(micro_at(j, row + r, first), micro + 3 * r * many, 3 * many);
    memcpy(j->out->codes + (row + r) * j->out->code_stride + bytes_of(j, first * block), codes + r * bytes, bytes);
    memcpy(j->out->scales + (row + r) * j->out->scale_cols + first, p->code + r * many, many);
  }
  for (size_t b = 0; b < p->n_blocks; b++) {
    if (!p->odd[b]) continue;
    const size_t r = row + b / many, at = first + b % many;
    memset(j->out->codes + r * j->out->code_stride + bytes_of(j, at * block), 0, bytes_of(j, block));
    const mx_band band = {p->x + b * block, block, r, 1, at * block};
    mx_tile_scalar(j, &band, r, at, mine);
  }
}

void mx_stages_panel(mx_job *j, const float *x, size_t row, size_t n_rows, size_t first, size_t cols, const mx_scratch *mine) {
  const size_t block = j->plan->block_cols, many = cols / block;
  const size_t room = MX_PIECE_ELEMENTS / block < MX_PIECE_BLOCKS ? MX_PIECE_ELEMENTS / block : MX_PIECE_BLOCKS;
  if (cols % block || many > room || j->stages->elem.way == MX_WAY_SR || block & (block - 1)) {
    for (size_t r = 0; r < n_rows; r++) mx_stages_blocks(j, x + r * cols, row + r, first, many + (cols % block != 0), x, mine);
    return;
  }
  mx_piece p;
  memset(p.amax, 0, sizeof p.amax);
  p.block = block;
  p.by_element = 0;
  p.shift = __builtin_ctzll(block / 16);
  for (size_t r = 0, n; r < n_rows; r += n) {
    n = n_rows - r < room / many ? n_rows - r : room / many;
    p.x = x + r * cols;
    p.next = p.x + n * cols;
    panel_piece(j, &p, row + r, n, first, many, mine);
  }
}

/* ---- bands of tiles ---- */

int mx_stages_take_bands(const mx_job *j) {
  const mx_plan *p = j->plan;
  const mx_stages *f = j->stages;
  return j->kernels && f->usable && !f->select && f->lead != MX_LEAD_NONE && !f->again && f->form != MX_FORM_EXACT &&
         j->out->scale_bytes == 1 && p->block_cols <= MX_PIECE_BLOCKS && f->nibble != MX_NIBBLE_HALF_BLOCK && !j->out->micro;
}

/* No code yet at n elements of a row: those of a tile that goes to the scalar code, which or-s them in. */
static void clear(const mx_job *j, size_t row, size_t c, size_t n) {
  uint8_t *out = j->out->codes + row * j->out->code_stride;
  const int high_first = j->stages->nibble == MX_NIBBLE_HIGH_FIRST;
  if (j->stages->nibble < 0)
    memset(out + c, 0, n);
  else
    for (size_t i = c; i < c + n; i++) out[i / 2] &= (i % 2 != 0) == high_first ? 0xF0 : 0x0F;
}

/* Codes of one row of a band, n columns from c on, under the factors of p. */
static void band_row(mx_job *j, mx_piece *p, const float *x, size_t row, size_t c, size_t n) {
  const size_t cols = j->plan->cols, here = cols - c < n ? cols - c : n, padded = (n + 15) / 16 * 16;
  uint8_t *out = j->out->codes + row * j->out->code_stride + bytes_of(j, c);
  float filled[MX_PIECE_BLOCKS];
  uint8_t codes[MX_PIECE_BLOCKS];
  p->x = x;
  p->next = x + padded; /* the next item of the band */
  p->n = padded;
  p->index = (uint64_t)(j->first_row + row) * cols + c;
  if (here == padded) {
    j->kernels->codes(out, j->stages, p);
    return;
  }
  memset(filled, 0, sizeof filled);
  memcpy(filled, x, here * sizeof *filled);
  p->x = p->next = filled;
  j->kernels->codes(codes, j->stages, p);
  memcpy(out, codes, bytes_of(j, n + (j->stages->nibble >= 0 && n % 2)));
  if (j->stages->nibble >= 0 && n % 2) clear(j, row, c + n, 1); /* the column beyond the last block */
}

void mx_stages_band(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine) {
  const mx_plan *plan = j->plan;
  mx_tensor *t = j->out;
  const size_t block = plan->block_cols, c = first * block, here = plan->cols - c < n * block ? plan->cols - c : n * block;
  const size_t repeats = t->scale_rows == t->rows ? b->rows : 1, scale_row = t->scale_rows == t->rows ? b->first : block_row;
  int32_t column[MX_PIECE_BLOCKS] = {0};
  float f0[MX_PIECE_BLOCKS], f1[MX_PIECE_BLOCKS];
  mx_piece p;
  p.n_blocks = n;
  p.block = block;
  memset(p.amax, 0, sizeof p.amax);
  j->kernels->column_amax(column, b->at, b->ld, b->rows, here);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < block; k++) p.amax[i] = column[i * block + k] > p.amax[i] ? column[i * block + k] : p.amax[i];
  j->kernels->scales(j->stages, &p);
  for (size_t r = 0; r < repeats; r++) memcpy(t->scales + (scale_row + r) * t->scale_cols + first, p.code, n);
  for (size_t i = 0; i < MX_PIECE_BLOCKS; i++) {
    f0[i] = i / block < n ? p.f0[i / block] : 1;
    f1[i] = i / block < n && j->stages->form == MX_FORM_DIV_MUL ? p.f1[i / block] : 1;
  }
  memcpy(p.f0, f0, sizeof f0);
  memcpy(p.f1, f1, sizeof f1);
  p.by_element = 1;
  for (size_t r = 0; r < b->rows; r++) band_row(j, &p, b->at + r * b->ld, b->first + r, c, n * block);
  for (size_t i = 0; i < n; i++) {
    if (!p.odd[i]) continue;
    for (size_t r = 0; r < b->rows; r++) clear(j, b->first + r, (first + i) * block, block);
    mx_tile_scalar(j, b, block_row, first + i, mine);
  }
}

/* ---- one tile ---- */

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

/* Codes, one a byte, of `count` elements of a row from column c on, all under one scale. Those that the row lacks are +0. */
static void piece_bytes(uint8_t *codes, const mx_job *j, const mx_block_scale *b, const float f[2], int zero, const float *x, size_t row,
                        size_t c, size_t count) {
  const mx_plan *plan = j->plan;
  mx_piece p;
  float filled[MX_PIECE_ELEMENTS];
  const size_t here = c >= plan->cols ? 0 : plan->cols - c < count ? plan->cols - c : count;
  p.x = x + c;
  if (here < count || count % 16) {
    memcpy(filled, x + (here ? c : 0), here * sizeof *filled);
    memset(filled + here, 0, ((count + 15) / 16 * 16 - here) * sizeof *filled);
    p.x = filled;
  }
  if (zero) {
    for (size_t i = 0; i < count; i++) codes[i] = j->flat->zero_code[signbit(p.x[i]) != 0];
    return;
  }
  p.n_blocks = 1;
  p.block = p.n = (count + 15) / 16 * 16;
  p.by_element = 0;
  p.shift = 31;
  p.next = p.x;
  p.index = (uint64_t)(j->first_row + row) * plan->cols + c;
  p.f0[0] = f[0];
  p.f1[0] = f[1];
  for (int i = 0; i < 2; i++) p.again[i][0] = b->again[i];
  j->kernels->codes(codes, j->flat, &p);
}

/* Elements of one row of a tile. */
static void row_codes(mx_job *j, const mx_block_scale *b, const float f[2], int zero, const float *x, size_t row, size_t c0, size_t n) {
  uint8_t codes[MX_PIECE_ELEMENTS];
  for (size_t at = 0; at < n; at += MX_PIECE_ELEMENTS) {
    const size_t count = n - at < MX_PIECE_ELEMENTS ? n - at : MX_PIECE_ELEMENTS;
    piece_bytes(codes, j, b, f, zero, x, row, c0 + at, count);
    store_bytes(j, row, c0 + at, count, codes);
  }
}

/* Is the largest element under this scale one that the kernels' rounding knows? */
static int within(const mx_job *j, const float f[2], float amax) {
  const mx_stages *s = j->stages;
  float y = s->form == MX_FORM_MUL ? amax * f[0] : amax / f[0] * f[1];
  if (s->form == MX_FORM_EXACT) { /* about: the limit has room */
    if (j->plan->spec.scale_form == MX_SCALE_FORM_ENCODE) y = amax * f[0];
    y *= (float)(s->exact_times / s->exact_over);
  }
  return y <= s->y_hi;
}

/* Error of a tile under one scale, by the values of its codes. */
static float error_of(mx_job *j, const mx_band *b, const mx_block_scale *scale, const float f[2], size_t c0, size_t n) {
  const mx_plan *p = j->plan;
  uint8_t codes[MX_PIECE_ELEMENTS];
  float values[MX_SIX_VALUES], error = 0;
  mx_six_values(values, p, scale);
  for (size_t r = 0; r < b->rows; r++) {
    const float *x = b->at + r * b->ld;
    piece_bytes(codes, j, scale, f, 0, x, b->first + r, c0, n);
    error =
        mx_six_error(p, values, j->stages->form == MX_FORM_MUL ? f[0] : 1 / f[0], error, x + c0, codes, p->cols - c0 < n ? p->cols - c0 : n, n);
  }
  return error;
}

void mx_stages_tile(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine) {
  const mx_plan *p = j->plan;
  const mx_stages *stages = j->stages;
  const size_t n = p->block_cols, c0 = block_col * n, c1 = c0 + n < p->cols ? c0 + n : p->cols;
  const uint64_t index = (uint64_t)(j->first_row / p->block_rows + block_row) * ((p->cols + n - 1) / n) + block_col;
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
    ordinary = amax >= 0x1p-126f && !mx_block_scale_find(&scale, p, &stats, 0, index) && mx_stages_factors(f, stages, &scale);
  }
  if (ordinary && !zero) ordinary = within(j, f, amax);
  if (ordinary && !zero && p->spec.select == MX_SELECT_FOURSIX) {
    mx_block_scale four;
    float g[2];
    ordinary =
        n <= MX_PIECE_ELEMENTS && !mx_block_scale_find(&four, p, &stats, 1, index) && mx_stages_factors(g, stages, &four) && within(j, g, amax);
    if (ordinary && error_of(j, b, &four, g, c0, n) < error_of(j, b, &scale, f, c0, n)) {
      scale = four;
      memcpy(f, g, sizeof g);
    }
  }
  if (!ordinary) {
    mx_tile_scalar(j, b, block_row, block_col, mine);
    return;
  }
  for (size_t r = 0; r < b->rows; r++) row_codes(j, &scale, f, zero, b->at + r * b->ld, b->first + r, c0, n);
  mx_tile_store_scale(j, b, block_row, block_col, scale.code);
}
