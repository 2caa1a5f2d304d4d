/* Drives the vector kernels over rows of blocks in pieces, and over tiles of any shape. */
#include <math.h>
#include <string.h>

#include "kernels/job.h"
#include "kernels/block/select.h"
#include "mxgold/layout.h"
#include "mxgold/random.h"

enum { INF_BITS = 0x7F800000 };

int mxi_stages_take_rows(const mx_job *j) {
  const mx_plan *p = j->plan;
  if (j->kernels && j->stages->hif4) return 1;
  return j->kernels && j->stages->usable && p->block_rows == 1 && p->block_cols % 16 == 0 && p->block_cols <= MX_PIECE_ELEMENTS &&
         !(j->stages->select && !j->stages->six);
}

/* How many bytes n codes take in a row. */
static size_t bytes_of(const mx_job *j, size_t n) { return j->stages->nibble < 0 ? n : n / 2; }

static void pack(uint8_t *out, const mx_job *j, const uint8_t *codes, size_t n, size_t block) {
  if (j->stages->nibble < 0)
    memcpy(out, codes, n);
  else
    j->kernels->pack4(out, codes, n, j->stages->nibble, block);
}

/* Stores the codes of zeros, each that of +0 or of -0. */
static void zero_codes(uint8_t *out, const mx_job *j, const float *x, size_t n, size_t block) {
  const mx_stages *f = j->stages;
  uint8_t codes[MX_PIECE_ELEMENTS];
  for (size_t i = 0; i < n; i++) codes[i] = f->zero_code[signbit(x[i]) != 0];
  pack(out, j, codes, n, block);
}

/* Sets where in the tensor the elements of a piece lie: `run` from column c of row `row` on, and as many in each row after it. */
static void indexed(mx_piece *p, const mx_job *j, size_t row, size_t c, size_t run) {
  p->index = (uint64_t)(j->first_row + row) * j->plan->cols + c;
  p->run = run;
  p->apart = j->plan->cols;
}

/* Turns factors per block into factors per sixteen elements. */
static void spread(mx_piece *p, int both) {
  const size_t per = p->block / 16;
  for (size_t b = p->n_blocks; b-- > 0;)
    for (size_t k = 0; k < per; k++) {
      p->f0[b * per + k] = p->f0[b];
      if (both) p->f1[b * per + k] = p->f1[b];
    }
  p->shift = 0;
}

/* Whether the kernels can round the largest element under this scale. */
static int within(const mx_job *j, const mx_stages *s, const float f[2], float amax) {
  if (s->pre != 0 && !isfinite(amax * s->pre)) return 0; /* it is Inf before it is scaled */
  float y = s->form == MX_FORM_MUL ? amax * f[0] : amax / f[0] * f[1];
  if (s->form == MX_FORM_EXACT) { /* approximately; the limit has room for that */
    if (j->plan->spec.scale_form == MX_SCALE_FORM_ENCODE) y = amax * f[0];
    y *= (float)(s->exact_times / s->exact_over);
  }
  if (s->pre != 0) y *= s->pre;
  return y <= s->y_hi;
}

static int same_scale(const mx_block_scale *a, const mx_block_scale *b) {
  return a->plain && b->plain && a->code == b->code && a->how == b->how && memcmp(&a->used, &b->used, sizeof a->used) == 0;
}

/* Sets a block's scale and the factors of its elements. Returns 0 if the kernels have no form for it. */
static int scale_of(mx_block_scale *out, float f[2], const mx_job *j, const mx_block_stats *stats, int map_to_4, uint64_t index,
                    mx_memo *memo) {
  const double key = j->plan->spec.scale_rule == MX_SCALE_RULE_QUEST ? stats->std : (double)stats->amax;
  uint64_t bits;
  memcpy(&bits, &key, sizeof bits);
  if (memo->job != j) {
    memset(memo, 0, sizeof *memo);
    memo->job = j;
  }
  mx_known *known = &memo->found[map_to_4][bits >> (52 - 5) & (MX_MEMO_BUCKETS - 1)];
  if (known->scale.plain && known->least <= key && key <= known->most) {
    *out = known->scale;
    memcpy(f, known->f, sizeof known->f);
    return known->formed;
  }
  if (mxi_block_scale_find(out, j->plan, stats, map_to_4, index)) return 0;
  const int formed = mxi_stages_factors(f, j->stages, out);
  if (!j->stages->steps || !out->plain) return formed;
  if (same_scale(out, &known->scale)) {
    known->least = fmin(known->least, key);
    known->most = fmax(known->most, key);
    return formed;
  }
  known->least = known->most = key;
  known->scale = *out;
  memcpy(known->f, f, sizeof known->f);
  known->formed = formed;
  return formed;
}

/* The standard deviation for QuEST over n elements, of which each row has `here` and the others are +0. Returns 0 next to a jump of the
 * logarithm's floor, which is left to the scalar code. */
static int quest_stats(mx_block_stats *stats, const mx_job *j, const float *x, size_t ld, size_t rows, size_t here) {
  const double n = (double)(j->plan->block_rows * j->plan->block_cols);
  double sum = 0, squares = 0, m[2];
  for (size_t r = 0; r < rows; r++) {
    j->kernels->moments(m, x + r * ld, here, 0);
    sum += m[0];
    squares += m[1];
  }
  const double mean = sum / n, about = squares / n - mean * mean;
  if (!(about > 1e-6 * (squares / n))) { /* the difference has lost too many digits */
    squares = (n - (double)(rows * here)) * mean * mean;
    for (size_t r = 0; r < rows; r++) {
      j->kernels->moments(m, x + r * ld, here, mean);
      squares += m[1];
    }
    stats->std = sqrt(squares / n);
  } else
    stats->std = sqrt(about);
  int exponent;
  const double significand = frexp(2.92247856 / 6 * stats->std + 1e-8, &exponent);
  return significand > 0.5 + 1e-6 && significand < 1 - 1e-6;
}

/* Where the blocks of a piece are: `many` in each row of the matrix, from block `first` of row `row` of blocks on. */
typedef struct place {
  size_t row, first, many, ld, rows;
  int cut; /* 1: x ends with the matrix; 0: blocks are filled up with +0 */
} place;

/* The index in the tensor of a block of the piece. */
static uint64_t index_of(const mx_job *j, const place *at, size_t b) {
  const mx_plan *plan = j->plan;
  const size_t across = (plan->cols + plan->block_cols - 1) / plan->block_cols;
  return (uint64_t)(j->first_row / plan->block_rows + at->row + b / at->many) * across + at->first + b % at->many;
}

/* A block counts as odd until it has its scale. */
static void without_scale(mx_piece *p, size_t b) {
  p->code[b] = 0;
  p->wide[b] = 0;
  p->odd[b] = 1;
  p->f0[b] = p->f1[b] = p->again[0][b] = p->again[1][b] = p->sf[b] = 1;
}

static void with_scale(mx_piece *p, size_t b, const mx_plan *plan, const mx_block_scale *scale, const float f[2]) {
  p->code[b] = (uint8_t)scale->code;
  p->wide[b] = scale->code;
  p->f0[b] = f[0];
  p->f1[b] = f[1];
  p->sf[b] = plan->uses_chain ? scale->sf : (float)scale->used;
  for (int i = 0; i < 2; i++) p->again[i][b] = scale->again[i];
  p->odd[b] = 0;
}

/* Stage 2 if the kernels have no form for it: finds scales one at a time, so that elements can still be done many at a time. odd: only for
 * the blocks that a kernel found odd, such as those whose scale is clamped. */
static void scales_one_by_one(const mx_job *j, mx_piece *p, const place *at, int odd, mx_memo *memo) {
  const mx_plan *plan = j->plan;
  const size_t block = plan->block_cols;
  for (size_t b = 0; b < p->n_blocks; b++) {
    if (odd && (!p->odd[b] || p->amax[b] == 0)) continue;
    const size_t col = at->first + b % at->many;
    mx_block_stats stats = {0};
    mx_block_scale scale;
    float f[2] = {1, 1}, amax;
    memcpy(&amax, &p->amax[b], sizeof amax);
    stats.amax = stats.amax_finite = amax;
    without_scale(p, b);
    if (p->amax[b] >= INF_BITS || amax < 0x1p-126f) continue;
    if (plan->spec.scale_rule == MX_SCALE_RULE_QUEST) {
      const size_t here = at->cut ? (plan->cols - col * block < block ? plan->cols - col * block : block) : block;
      if (!quest_stats(&stats, j, p->x + b * block, at->ld, at->rows, here)) continue;
    }
    if (!scale_of(&scale, f, j, &stats, 0, index_of(j, at, b), memo)) continue;
    if (!within(j, j->flat, f, amax)) continue;
    p->beyond |= !within(j, j->stages, f, amax) || f[0] < 0x1p-120f || f[0] > 0x1p120f; /* four times the factor may be Inf */
    with_scale(p, b, plan, &scale, f);
  }
}

/* Stage 2 for a piece. */
static void find_scales(const mx_job *j, mx_piece *p, const place *at, mx_memo *memo) {
  p->beyond = 0;
  if (j->stages->lead == MX_LEAD_NONE) {
    scales_one_by_one(j, p, at, 0, memo);
    return;
  }
  j->kernels->scales(j->stages, p);
  if (memchr(p->odd, 1, p->n_blocks)) scales_one_by_one(j, p, at, 1, memo);
}

void mxi_stages_scales(const mx_job *j, mx_piece *p, mx_memo *memo) {
  const place any = {0, 0, 1, p->block, 1, 0};
  find_scales(j, p, &any, memo);
}

/* Stores the codes of n scales in the tensor. */
static void store_scales(const mx_job *j, size_t row, size_t first, const mx_piece *p, size_t from, size_t n) {
  const size_t bytes = j->out->scale_bytes;
  uint8_t *out = j->out->scales + (row * j->out->scale_cols + first) * bytes;
  if (bytes == 1)
    memcpy(out, p->code + from, n);
  else
    for (size_t b = 0; b < n; b++) memcpy(out + b * bytes, p->wide + from + b, bytes);
}

/* Finds the scales of one candidate, as find_scales() does for the rule. */
static void candidate_scales(const mx_job *j, const mx_stages *s, mx_piece *p, const place *at, mx_memo *memo) {
  if (s->lead == MX_LEAD_NONE)
    memset(p->odd, 1, p->n_blocks);
  else
    j->kernels->scales(s, p);
  for (size_t b = 0; b < p->n_blocks; b++) {
    if (!p->odd[b]) continue;
    mx_block_stats stats = {0};
    mx_block_scale scale;
    float f[2] = {1, 1};
    memcpy(&stats.amax, &p->amax[b], sizeof stats.amax);
    stats.amax_finite = stats.amax;
    without_scale(p, b);
    if (p->amax[b] >= INF_BITS || stats.amax < 0x1p-126f) continue;
    if (scale_of(&scale, f, j, &stats, s->map_to_4, index_of(j, at, b), memo) && within(j, s, f, stats.amax))
      with_scale(p, b, j->plan, &scale, f);
  }
}

/* Both candidates of select=foursix, with one code to a byte; a block that is not ordinary under one of them counts as not ordinary. */
static void two_candidates(uint8_t *codes, const mx_job *j, mx_piece *p, const place *at, mx_memo *memo) {
  mx_stages stages;
  mx_piece four;
  mxi_stages_map_to_4(&stages, j->stages);
  four.x = p->x, four.n = p->n, four.n_blocks = p->n_blocks, four.block = p->block;
  memcpy(four.amax, p->amax, sizeof four.amax);
  candidate_scales(j, j->stages, p, at, memo);
  candidate_scales(j, &stages, &four, at, memo);
  for (size_t b = 0; b < p->n_blocks; b++) p->odd[b] |= four.odd[b];
  j->kernels->foursix(codes, j->stages, p, &four);
}

/* Runs all stages of a piece: packed codes, with scales in p. micro: that of its first block. */
static void piece_codes(uint8_t *out, uint8_t *micro, const mx_job *j, mx_piece *p, const place *at, mx_memo *memo) {
  if (j->stages->hif4) {
    uint8_t codes[MX_PIECE_ELEMENTS];
    const mx_plan *plan = j->plan;
    const size_t across = (plan->cols + plan->block_cols - 1) / plan->block_cols;
    for (size_t b = 0; b < p->n_blocks; b++) p->amax[b] = -1; /* not known yet */
    for (size_t b = 0; plan->spec.scale_round == MX_SCALE_ROUND_SR && b < p->n_blocks; b++)
      p->wide[b] =
          mx_random(plan->spec.seed, MX_STREAM_SCALE, (uint64_t)(j->first_row + at->row + b / at->many) * across + at->first + b % at->many);
    j->kernels->hif4(codes, micro, j->stages, p);
    pack(out, j, codes, p->n, p->block);
    return;
  }
  j->kernels->block_amax(p);
  if (j->stages->select) {
    uint8_t codes[MX_PIECE_ELEMENTS];
    two_candidates(codes, j, p, at, memo);
    pack(out, j, codes, p->n, p->block);
    return;
  }
  find_scales(j, p, at, memo);
  if (p->shift < 0) spread(p, j->stages->form == MX_FORM_DIV_MUL);
  if (p->beyond) {
    uint8_t codes[MX_PIECE_ELEMENTS];
    j->kernels->codes(codes, j->flat, p);
    pack(out, j, codes, p->n, p->block);
  } else
    j->kernels->codes(out, j->stages, p);
}

static uint8_t *micro_at(const mx_job *j, size_t row, size_t block) {
  return j->out->micro ? j->out->micro + (row * j->out->scale_cols + block) * 3 : NULL;
}

static void piece_run(mx_job *j, mx_piece *p, size_t row, size_t first, const mx_scratch *mine) {
  const mx_plan *plan = j->plan;
  const size_t block = plan->block_cols;
  uint8_t *codes = j->out->codes + row * j->out->code_stride + bytes_of(j, first * block);
  const place at = {row, first, p->n_blocks, p->n_blocks * block, 1, 0};
  p->n = p->n_blocks * block;
  indexed(p, j, row, first * block, p->n);
  piece_codes(codes, micro_at(j, row, first), j, p, &at, mine->memo);
  store_scales(j, row, first, p, 0, p->n_blocks);
  for (size_t b = 0; b < p->n_blocks; b++) {
    if (!p->odd[b]) continue;
    uint8_t *to = codes + bytes_of(j, b * block);
    if (p->amax[b] == 0 && j->stages->zero_known) {
      zero_codes(to, j, p->x + b * block, block, block);
      p->code[b] = (uint8_t)j->stages->zero_scale.code;
      p->wide[b] = j->stages->zero_scale.code;
      store_scales(j, row, first + b, p, b, 1);
      continue;
    }
    memset(to, 0, bytes_of(j, block));
    const mx_band band = {p->x, p->n, row, 1, first * block};
    mxi_stages_tile(j, &band, row, first + b, mine);
  }
}

void mxi_stages_blocks(mx_job *j, const float *x, size_t row, size_t first, size_t n, const float *next, const mx_scratch *mine) {
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

/* Copies a row of a piece's codes or scales, which is too short for a call to be worth it. */
static void copy_few(uint8_t *to, const uint8_t *from, size_t n) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) memcpy(to + i, from + i, 32);
  for (; i + 8 <= n; i += 8) memcpy(to + i, from + i, 8);
  for (; i < n; i++) to[i] = from[i];
}

/* Stores the scales of a piece of n_rows rows with `many` blocks each. */
static void panel_scales(const mx_job *j, size_t row, size_t n_rows, size_t first, size_t many, const mx_piece *p) {
  const mx_tensor *t = j->out;
  if (many == t->scale_cols)
    store_scales(j, row, 0, p, 0, n_rows * many);
  else if (t->scale_bytes == 1)
    for (size_t r = 0; r < n_rows; r++) copy_few(t->scales + (row + r) * t->scale_cols + first, p->code + r * many, many);
  else
    for (size_t r = 0; r < n_rows; r++) store_scales(j, row + r, first, p, r * many, many);
}

/* Does rows [row, row + n_rows), with `many` whole blocks of each, as one piece, from a panel that holds them without gaps. */
static void panel_piece(mx_job *j, mx_piece *p, size_t row, size_t n_rows, size_t first, size_t many, const mx_scratch *mine) {
  const size_t block = p->block, bytes = bytes_of(j, many * block), stride = j->out->code_stride;
  uint8_t codes[MX_PIECE_ELEMENTS], micro[3 * MX_PIECE_BLOCKS], *to = j->out->codes + row * stride + bytes_of(j, first * block);
  p->n_blocks = n_rows * many;
  p->n = p->n_blocks * block;
  indexed(p, j, row, first * block, many * block);
  const place from = {row, first, many, block, 1, 0};
  piece_codes(bytes == stride ? to : codes, micro, j, p, &from, mine->memo);
  for (size_t r = 0; bytes != stride && r < n_rows; r++) copy_few(to + r * stride, codes + r * bytes, bytes);
  for (size_t r = 0; j->out->micro && r < n_rows; r++) memcpy(micro_at(j, row + r, first), micro + 3 * r * many, 3 * many);
  panel_scales(j, row, n_rows, first, many, p);
  for (const uint8_t *odd = p->odd; (odd = memchr(odd, 1, p->n_blocks - (size_t)(odd - p->odd))); odd++) {
    const size_t b = (size_t)(odd - p->odd), r = row + b / many, at = first + b % many;
    memset(j->out->codes + r * stride + bytes_of(j, at * block), 0, bytes_of(j, block));
    const mx_band band = {p->x + b * block, block, r, 1, at * block};
    mxi_stages_tile(j, &band, r, at, mine);
  }
}

void mxi_stages_panel(mx_job *j, const float *x, size_t row, size_t n_rows, size_t first, size_t cols, const mx_scratch *mine) {
  const size_t block = j->plan->block_cols, many = cols / block;
  const size_t room = MX_PIECE_ELEMENTS / block < MX_PIECE_BLOCKS ? MX_PIECE_ELEMENTS / block : MX_PIECE_BLOCKS;
  if (cols % block || many > room || block & (block - 1)) {
    for (size_t r = 0; r < n_rows; r++) mxi_stages_blocks(j, x + r * cols, row + r, first, many + (cols % block != 0), x, mine);
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

int mxi_stages_take_bands(const mx_job *j) {
  const mx_plan *p = j->plan;
  const mx_stages *f = j->stages;
  return j->kernels && f->usable && !f->select && !f->again && p->block_cols <= MX_PIECE_BLOCKS && !j->out->micro;
}

/* Zeroes the codes of n elements of a row of a tile that goes to the scalar code, which combines codes with OR. */
static void clear(const mx_job *j, size_t row, size_t c, size_t n) {
  uint8_t *out = j->out->codes + row * j->out->code_stride;
  const int high_first = j->stages->nibble == MX_NIBBLE_HIGH_FIRST;
  if (j->stages->nibble < 0)
    memset(out + c, 0, n);
  else if (j->stages->nibble == MX_NIBBLE_HALF_BLOCK) /* here tiles are whole blocks */
    memset(out + c / 2, 0, n / 2);
  else
    for (size_t i = c; i < c + n; i++) out[i / 2] &= (i % 2 != 0) == high_first ? 0xF0 : 0x0F;
}

/* Computes the codes of n columns of one row of a band from column c on, with the factors of p. */
static void band_row(mx_job *j, mx_piece *p, const float *x, size_t row, size_t c, size_t n) {
  const size_t cols = j->plan->cols, here = cols - c < n ? cols - c : n, padded = (n + 15) / 16 * 16;
  uint8_t *out = j->out->codes + row * j->out->code_stride + bytes_of(j, c);
  float filled[MX_PIECE_BLOCKS];
  uint8_t codes[MX_PIECE_BLOCKS];
  p->x = x;
  p->next = x + padded; /* the next item of the band */
  p->n = padded;
  indexed(p, j, row, c, padded);
  const int halves = j->stages->nibble == MX_NIBBLE_HALF_BLOCK;
  const int packs = halves || (p->beyond && j->stages->nibble >= 0); /* packs codes that were made one to a byte */
  if (here == padded && !packs) {
    j->kernels->codes(out, p->beyond ? j->flat : j->stages, p);
    return;
  }
  if (here < padded) {
    memset(filled, 0, sizeof filled);
    memcpy(filled, x, here * sizeof *filled);
    p->x = p->next = filled;
  }
  if (halves) {
    j->kernels->codes(codes, j->flat, p);
    mx_pack4(out, codes, n, MX_NIBBLE_HALF_BLOCK, j->plan->block_cols);
    return;
  }
  if (packs) {
    uint8_t packed[MX_PIECE_BLOCKS / 2];
    j->kernels->codes(codes, j->flat, p);
    j->kernels->pack4(packed, codes, padded, j->stages->nibble, padded);
    memcpy(codes, packed, padded / 2);
  } else
    j->kernels->codes(codes, p->beyond ? j->flat : j->stages, p);
  memcpy(out, codes, bytes_of(j, n + (j->stages->nibble >= 0 && n % 2)));
  if (j->stages->nibble >= 0 && n % 2) clear(j, row, c + n, 1); /* the column beyond the last block */
}

void mxi_stages_band(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine) {
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
  const place at = {block_row, first, n, b->ld, b->rows, 1};
  p.x = b->at;
  find_scales(j, &p, &at, mine->memo);
  for (size_t r = 0; r < repeats; r++) store_scales(j, scale_row + r, first, &p, 0, n);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < block; k++) {
      f0[i * block + k] = p.f0[i];
      f1[i * block + k] = j->stages->form == MX_FORM_DIV_MUL ? p.f1[i] : 1;
    }
  for (size_t i = n * block; i < MX_PIECE_BLOCKS; i++) f0[i] = f1[i] = 1;
  memcpy(p.f0, f0, sizeof f0);
  memcpy(p.f1, f1, sizeof f1);
  p.by_element = 1;
  for (size_t r = 0; r < b->rows; r++) band_row(j, &p, b->at + r * b->ld, b->first + r, c, n * block);
  for (size_t i = 0; i < n; i++) {
    if (!p.odd[i]) continue;
    for (size_t r = 0; r < b->rows; r++) clear(j, b->first + r, (first + i) * block, block);
    mxi_stages_tile(j, b, block_row, first + i, mine);
  }
}

/* ---- one tile ---- */

/* Stores the codes, given one to a byte, of n elements of a tile's row. */
static void store_bytes(const mx_job *j, size_t row, size_t c, size_t n, const uint8_t *codes) {
  uint8_t *out = j->out->codes + row * j->out->code_stride;
  const int nibble = j->stages->nibble;
  if (nibble < 0) {
    memcpy(out + c, codes, n);
    return;
  }
  if (c % 2 == 0 && n % 2 == 0 && (nibble != MX_NIBBLE_HALF_BLOCK || n == j->plan->block_cols)) {
    mx_pack4(out + c / 2, codes, n, nibble, n);
    return;
  }
  uint32_t wide[MX_PIECE_ELEMENTS];
  for (size_t i = 0; i < n; i++) wide[i] = codes[i];
  mxi_tile_store_codes(j, row, c, n, wide);
}

/* Computes the codes, one to a byte, of `count` elements x of a row from column c on, all under one scale. Elements that the row lacks are
 * +0. */
static void piece_bytes(uint8_t *codes, const mx_job *j, const mx_block_scale *b, const float f[2], int zero, const float *x, size_t row,
                        size_t c, size_t count) {
  const mx_plan *plan = j->plan;
  mx_piece p;
  float filled[MX_PIECE_ELEMENTS];
  const size_t here = c >= plan->cols ? 0 : plan->cols - c < count ? plan->cols - c : count;
  p.x = x;
  if (here < count || count % 16) {
    memcpy(filled, x, here * sizeof *filled);
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
  indexed(&p, j, row, c, p.n);
  p.f0[0] = f[0];
  p.f1[0] = f[1];
  for (int i = 0; i < 2; i++) p.again[i][0] = b->again[i];
  j->kernels->codes(codes, j->flat, &p);
}

/* Encodes the elements of one row of a tile; x is the row from column c0 on. special: there are NaN or Inf, which are encoded one at a time. */
static void row_codes(mx_job *j, const mx_block_scale *b, const float f[2], int zero, int special, const float *x, size_t row, size_t c0,
                      size_t n) {
  uint8_t codes[MX_PIECE_ELEMENTS];
  const size_t cols = j->plan->cols;
  for (size_t at = 0; at < n; at += MX_PIECE_ELEMENTS) {
    const size_t count = n - at < MX_PIECE_ELEMENTS ? n - at : MX_PIECE_ELEMENTS;
    piece_bytes(codes, j, b, f, zero, x + at, row, c0 + at, count);
    for (size_t i = 0; special && i < count && c0 + at + i < cols; i++)
      if (!isfinite(x[at + i]))
        codes[i] = (uint8_t)mxi_element_code(j->plan, b, x[at + i], (uint64_t)(j->first_row + row) * cols + c0 + at + i);
    store_bytes(j, row, c0 + at, count, codes);
  }
}

/* Whether a tile has so few columns that all its rows are done at once. */
static int is_narrow(const mx_job *j, const mx_band *b, size_t n) {
  return n < 16 && b->rows > 1 && b->rows * n <= MX_PIECE_ELEMENTS && j->stages->elem.way != MX_WAY_SR;
}

/* Computes the codes, one to a byte, of all rows of such a tile; x begins at its first column. */
static void narrow_bytes(uint8_t *codes, const mx_job *j, const mx_band *b, const mx_block_scale *scale, const float f[2], const float *x,
                         size_t c0, size_t n) {
  const size_t cols = j->plan->cols, here = cols - c0 < n ? cols - c0 : n, all = b->rows * n, whole = (all + 15) / 16 * 16;
  float gathered[MX_PIECE_ELEMENTS] = {0};
  mx_piece p;
  for (size_t r = 0; r < b->rows; r++) memcpy(gathered + r * n, x + r * b->ld, here * sizeof *gathered);
  p.x = p.next = gathered;
  p.n_blocks = 1;
  p.block = p.n = whole;
  p.by_element = 0;
  p.shift = 31;
  p.f0[0] = f[0];
  p.f1[0] = f[1];
  for (int i = 0; i < 2; i++) p.again[i][0] = scale->again[i];
  j->kernels->codes(codes, j->flat, &p);
}

/* The error of a tile under one scale, from the values of its codes. */
static float error_of(mx_job *j, const mx_band *b, const mx_block_scale *scale, const float f[2], size_t c0, size_t n) {
  const mx_plan *p = j->plan;
  uint8_t codes[MX_PIECE_ELEMENTS];
  float values[MX_SIX_VALUES], error = 0;
  mxi_six_values(values, p, scale);
  const int narrow = is_narrow(j, b, n);
  if (narrow) narrow_bytes(codes, j, b, scale, f, b->at + c0 - b->col, c0, n);
  for (size_t r = 0; r < b->rows; r++) {
    const float *x = b->at + r * b->ld + c0 - b->col;
    if (!narrow) piece_bytes(codes, j, scale, f, 0, x, b->first + r, c0, n);
    error = mxi_six_error(p, values, j->stages->form == MX_FORM_MUL ? f[0] : 1 / f[0], error, x, codes + (narrow ? r * n : 0),
                          p->cols - c0 < n ? p->cols - c0 : n, n);
  }
  return error;
}

void mxi_stages_tile(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine) {
  const mx_plan *p = j->plan;
  const mx_stages *stages = j->stages;
  const size_t n = p->block_cols, c0 = block_col * n, c1 = c0 + n < p->cols ? c0 + n : p->cols;
  const uint64_t index = (uint64_t)(j->first_row / p->block_rows + block_row) * ((p->cols + n - 1) / n) + block_col;
  const float *x = b->at + c0 - b->col;
  int32_t most = 0;
  if (!stages->usable) { /* hif4 */
    mxi_tile_scalar(j, b, block_row, block_col, mine);
    return;
  }
  for (size_t r = 0; r < b->rows; r++) {
    const int32_t m = j->kernels->amax(x + r * b->ld, c1 - c0);
    most = m > most ? m : most;
  }
  mx_block_stats stats = {0};
  mx_block_scale scale;
  float f[2] = {1, 1}, amax;
  memcpy(&amax, &most, sizeof amax);
  const int zero = most == 0 && stages->zero_known, special = most >= INF_BITS;
  int ordinary = !special || (p->spec.elem_nan != MX_ELEM_NAN_ERROR && p->spec.select != MX_SELECT_FOURSIX);
  if (zero)
    scale = stages->zero_scale;
  else if (ordinary) {
    if (special || p->spec.scale_rule == MX_SCALE_RULE_QUEST) {
      mxi_tile_stats(&stats, p, b, c0, c1);
      amax = stats.amax_finite;
    } else
      stats.amax = stats.amax_finite = amax;
    ordinary =
        (special || amax >= 0x1p-126f) && (special ? !mxi_block_scale_find(&scale, p, &stats, 0, index) && mxi_stages_factors(f, stages, &scale)
                                                   : scale_of(&scale, f, j, &stats, 0, index, mine->memo));
  }
  if (ordinary && !zero) ordinary = within(j, j->flat, f, amax);
  if (ordinary && !zero && p->spec.select == MX_SELECT_FOURSIX) {
    mx_block_scale four;
    float g[2];
    ordinary = n <= MX_PIECE_ELEMENTS && scale_of(&four, g, j, &stats, 1, index, mine->memo) && within(j, j->flat, g, amax);
    if (ordinary && error_of(j, b, &four, g, c0, n) < error_of(j, b, &scale, f, c0, n)) {
      scale = four;
      memcpy(f, g, sizeof g);
    }
  }
  if (!ordinary) {
    mxi_tile_scalar(j, b, block_row, block_col, mine);
    return;
  }
  if (!zero && !special && is_narrow(j, b, n)) {
    uint8_t codes[MX_PIECE_ELEMENTS];
    narrow_bytes(codes, j, b, &scale, f, x, c0, n);
    for (size_t r = 0; r < b->rows; r++) store_bytes(j, b->first + r, c0, n, codes + r * n);
    mxi_tile_store_scale(j, b, block_row, block_col, scale.code);
    return;
  }
  for (size_t r = 0; r < b->rows; r++) row_codes(j, &scale, f, zero, special, x + r * b->ld, b->first + r, c0, n);
  mxi_tile_store_scale(j, b, block_row, block_col, scale.code);
}

int mxi_stages_take_tiles(const mx_job *j) {
  const mx_plan *p = j->plan;
  const mx_stages *f = j->stages;
  if (!j->kernels || !f->usable) return 0;
  return f->six || (f->again && !f->select && f->elem.way != MX_WAY_SR && p->block_rows <= MX_SIX_BLOCK && p->block_cols <= MX_SIX_BLOCK &&
                    p->block_rows * p->block_cols <= MX_SIX_BLOCK);
}

/* Computes the codes of a piece, one to a byte. */
static void tile_codes(uint8_t *codes, const mx_job *j, mx_piece *p, const place *at, mx_memo *memo) {
  j->kernels->block_amax(p);
  if (j->stages->six) {
    two_candidates(codes, j, p, at, memo);
    return;
  }
  find_scales(j, p, at, memo);
  p->by_element = 0;
  p->next = p->x;
  if (p->block & (p->block - 1))
    spread(p, j->stages->form == MX_FORM_DIV_MUL);
  else
    p->shift = __builtin_ctzll(p->block / 16);
  j->kernels->codes(codes, j->flat, p);
}

void mxi_stages_tiles(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine) {
  const mx_plan *plan = j->plan;
  const size_t wide = plan->block_cols, high = plan->block_rows, whole = (high * wide + 15) / 16 * 16;
  const size_t room = MX_PIECE_ELEMENTS / whole < MX_PIECE_BLOCKS ? MX_PIECE_ELEMENTS / whole : MX_PIECE_BLOCKS;
  float x[MX_PIECE_ELEMENTS];
  uint8_t codes[MX_PIECE_ELEMENTS], rows[MX_PIECE_ELEMENTS];
  mx_piece p;
  memset(p.amax, 0, sizeof p.amax);
  p.x = x;
  p.block = whole;
  for (size_t end = first + n; first < end; first += p.n_blocks) {
    p.n_blocks = end - first < room ? end - first : room;
    p.n = p.n_blocks * whole;
    const size_t c0 = first * wide, across = p.n_blocks * wide;
    memset(x, 0, p.n * sizeof *x);
    for (size_t t = 0; t < p.n_blocks; t++) {
      const size_t c = c0 + t * wide, here = plan->cols - c < wide ? plan->cols - c : wide;
      for (size_t r = 0; r < b->rows; r++)
        for (size_t i = 0; i < here; i++) x[t * whole + r * wide + i] = b->at[r * b->ld + c - b->col + i];
    }
    const place at = {block_row, first, p.n_blocks, b->ld, b->rows, 1};
    tile_codes(codes, j, &p, &at, mine->memo);
    for (size_t r = 0; r < b->rows; r++) {
      for (size_t t = 0; t < p.n_blocks; t++)
        for (size_t i = 0; i < wide; i++) rows[t * wide + i] = p.odd[t] ? 0 : codes[t * whole + r * wide + i];
      for (size_t t = 0; t < across; t += j->stages->nibble == MX_NIBBLE_HALF_BLOCK ? wide : across)
        store_bytes(j, b->first + r, c0 + t, j->stages->nibble == MX_NIBBLE_HALF_BLOCK ? wide : across, rows + t);
    }
    for (size_t t = 0; t < p.n_blocks; t++)
      if (p.odd[t])
        mxi_stages_tile(j, b, block_row, first + t, mine);
      else
        mxi_tile_store_scale(j, b, block_row, first + t, plan->scale->bits > 8 ? p.wide[t] : p.code[t]);
  }
}
