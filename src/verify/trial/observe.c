/* Cuts samples into blocks. */
#include "verify/trial/observe.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "kernels/dispatch.h"
#include "kernels/rows.h"
#include "verify/trial/memo.h"

const float *mxi_observation_x(const observation *o, size_t sample, size_t *ld) {
  const mx_sample *s = &o->samples[sample];
  *ld = o->own ? s->cols : s->ld;
  return o->own ? o->own[sample] : s->x;
}

void mxi_observation_extent(const observation *o, const block_at *b, size_t *rows, size_t *cols) {
  const mx_sample *s = &o->samples[b->sample];
  *rows = s->rows - b->row < o->block_rows ? s->rows - b->row : o->block_rows;
  *cols = s->cols - b->col < o->block_cols ? s->cols - b->col : o->block_cols;
}

uint32_t mxi_observation_scale(const observation *o, const mx_sample *s, size_t row, size_t col) {
  if (!s->scales) return 0;
  const size_t r = s->scale_rows == s->rows ? row : row / o->block_rows;
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)s->scales + (r * s->scale_cols + col / o->block_cols) * s->scale_bytes, s->scale_bytes);
  return code;
}

/* Population deviation of a block, missing elements being zeros: scale.rule=quest. */
static double deviation(const float *x, size_t ld, size_t rows, size_t cols, double n) {
  double sum = 0, squares = 0;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) sum += (double)x[r * ld + c];
  const double mean = sum / n;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) squares += ((double)x[r * ld + c] - mean) * ((double)x[r * ld + c] - mean);
  return sqrt((squares + (n - (double)(rows * cols)) * mean * mean) / n);
}

static void look(block_at *b, const observation *o, size_t sample, size_t row, size_t col) {
  const mx_sample *s = &o->samples[sample];
  size_t ld, rows, cols;
  const float *x = mxi_observation_x(o, sample, &ld);
  *b = (block_at){.sample = (uint32_t)sample, .row = (uint32_t)row, .col = (uint32_t)col, .scale = mxi_observation_scale(o, s, row, col)};
  mxi_observation_extent(o, b, &rows, &cols);
  x += row * ld + col;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) mx_block_stats_add(&b->stats, x[r * ld + c]);
  b->stats.amax = b->stats.has_inf ? INFINITY : b->stats.amax_finite;
  const size_t all_rows = o->formats.block_rows == MX_BLOCK_WHOLE ? rows : o->block_rows;
  const size_t all_cols = o->formats.block_cols == MX_BLOCK_WHOLE ? cols : o->block_cols;
  if (!b->stats.has_nan && !b->stats.has_inf) b->stats.std = deviation(x, ld, rows, cols, (double)(all_rows * all_cols));
  const int half = o->formats.input_dtype == MX_INPUT_DTYPE_FLOAT16; /* whose ends are near */
  const float a = b->stats.amax_finite;
  b->kind = b->stats.has_nan                    ? BLOCK_NAN
            : b->stats.has_inf                  ? BLOCK_INF
            : a == 0                            ? BLOCK_ZERO
            : a < (half ? 0x1p-12f : 0x1p-100f) ? BLOCK_SMALL
            : a > (half ? 0x1p15f : 0x1p100f)   ? BLOCK_LARGE
                                                : BLOCK_PLAIN;
}

/* Sets blocks apart whose scales lie at the ends of the range of codes that were seen, since clamps act there. */
static void set_ends(observation *o) {
  const mx_format *f = mx_scale_format(o->formats.scale);
  uint32_t least = UINT32_MAX, largest = 0;
  for (size_t i = 0; i < o->n_blocks; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind > BLOCK_LARGE || mx_format_is_nan(f, b->scale)) continue;
    least = b->scale < least ? b->scale : least;
    largest = b->scale > largest ? b->scale : largest;
  }
  o->least_scale = least;
  o->largest_scale = largest;
  if (!o->samples[0].codes) return;
  size_t inside = 0;
  for (size_t i = 0; i < o->n_blocks; i++)
    inside += o->blocks[i].kind == BLOCK_PLAIN && o->blocks[i].scale > least && o->blocks[i].scale < largest;
  for (size_t i = 0; i < o->n_blocks; i++) {
    block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_PLAIN) continue;
    const int is_nan = mx_format_is_nan(f, b->scale);
    if (b->scale == 0 || (inside && b->scale == least))
      b->kind = BLOCK_SMALL;
    else if (is_nan || b->scale == f->max_code || (inside && b->scale == largest))
      b->kind = BLOCK_LARGE;
  }
}

/* A code that stands for block maxima far apart in one tensor is a limit, wherever it lies: its blocks are put aside as well. */
typedef struct heap_item {
  uint32_t code, sample, block;
} heap_item;

static int by_code(const void *a, const void *b) {
  const heap_item *x = a, *y = b;
  if (x->code != y->code) return x->code < y->code ? -1 : 1;
  if (x->sample != y->sample) return x->sample < y->sample ? -1 : 1;
  return (x->block > y->block) - (x->block < y->block);
}

/* This is read from ordinary tensors only: a NaN or an Inf may decide all scales of a tensor. */
static int is_ordinary(const observation *o, const heap_item *i) {
  const mx_block_stats *w = &o->facts[i->sample].whole;
  return !w->has_nan && !w->has_inf;
}

/* Under a tensor scale a NaN or an Inf decides the scales of the whole tensor: its blocks are put aside, if there are others. */
static void set_spoilt_aside(observation *o) {
  enum { ENOUGH = 64 };
  size_t rest = 0;
  for (size_t i = 0; i < o->n_blocks; i++) {
    const mx_block_stats *w = &o->facts[o->blocks[i].sample].whole;
    rest += o->blocks[i].kind == BLOCK_PLAIN && !w->has_nan && !w->has_inf;
  }
  for (size_t i = 0; i < o->n_blocks && rest >= ENOUGH; i++) {
    const mx_block_stats *w = &o->facts[o->blocks[i].sample].whole;
    if (o->blocks[i].kind == BLOCK_PLAIN && (w->has_nan || w->has_inf)) o->blocks[i].kind = BLOCK_LARGE;
  }
}

static void set_heaps_aside(observation *o) {
  enum { APART = 64, FEW = 16 };
  heap_item *list = noted(malloc((o->n_blocks + 1) * sizeof *list), o->lack);
  size_t n = 0;
  for (size_t i = 0; list && i < o->n_blocks; i++)
    if (o->blocks[i].kind == BLOCK_PLAIN) list[n++] = (heap_item){o->blocks[i].scale, o->blocks[i].sample, (uint32_t)i};
  if (list) qsort(list, n, sizeof *list, by_code);
  size_t ordinary = 0;
  for (size_t i = 0; i < n; i++) ordinary += (size_t)is_ordinary(o, &list[i]);
  for (size_t i = 0, end; i < n; i = end) { /* one code */
    size_t heap = 0, mine = 0;
    for (end = i; end < n && list[end].code == list[i].code;) {
      float least = INFINITY, most = 0;
      for (const uint32_t sample = list[end].sample; end < n && list[end].code == list[i].code && list[end].sample == sample; end++) {
        least = fminf(least, o->blocks[list[end].block].stats.amax);
        most = fmaxf(most, o->blocks[list[end].block].stats.amax);
        mine += (size_t)is_ordinary(o, &list[end]);
      }
      heap |= most > APART * least;
    }
    if (heap && mine + FEW < ordinary) /* not where that is all there is */
      for (size_t k = i; k < end; k++) o->blocks[list[k].block].kind = i < n / 2 ? BLOCK_SMALL : BLOCK_LARGE;
  }
  free(list);
}

/* Steps 1 and 3 of SPEC 3.2. */
static mx_status change_input(observation *o, int n_threads) {
  mx_spec how = {
      .input_dtype = o->formats.input_dtype, .had_size = o->formats.had_size, .had_sign = o->formats.had_sign, .seed = o->formats.seed};
  if (how.had_size) how.flush = o->formats.flush; /* comes before the rotation */
  memcpy(how.had_signs, o->formats.had_signs, sizeof how.had_signs);
  if (!how.had_size && how.input_dtype == MX_INPUT_DTYPE_FLOAT32) return MX_OK;
  o->own = noted(calloc(o->n_samples, sizeof *o->own), o->lack);
  if (!o->own) return MX_ERR_NOMEM;
  mx_input_kernel *kernel = mxi_kernels_for(0)->input;
  for (size_t i = 0; i < o->n_samples; i++) {
    const mx_sample *s = &o->samples[i];
    float *own = o->own[i] = noted(malloc((s->rows * s->cols + 1) * sizeof(float)), o->lack);
    if (!own) return MX_ERR_NOMEM;
    mx_source src = {.at = s->x, .row_step = (ptrdiff_t)s->ld, .col_step = 1, .rows = s->rows, .cols = s->cols, .kernel = kernel};
    mxi_input_init(&src.input, &how);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (s->rows * s->cols > 65536)
    for (size_t r = 0; r < s->rows; r++) mxi_rows_load(own + r * s->cols, s->cols, &src, r, 1, 0, s->cols);
  }
  return MX_OK;
}

/* The range of ordinary blocks, whatever the scale: samples of different amax. */
static void choose_witnesses(observation *o) {
  enum { MOST = sizeof o->witness / sizeof o->witness[0] };
  for (size_t i = 0; i < o->n_samples && o->n_witnesses < MOST; i++) {
    const mx_block_stats *w = &o->facts[i].whole;
    int known = w->has_nan || w->has_inf || w->amax_finite < 0x1p-100f || w->amax_finite > 0x1p100f;
    for (size_t k = 0; k < o->n_witnesses && !known; k++) known = w->amax_finite == o->facts[o->witness[k]].whole.amax_finite;
    if (!known) o->witness[o->n_witnesses++] = (uint32_t)i;
  }
}

mx_status mxi_observation_init(observation *o, const mx_sample *samples, size_t n, const mx_spec *formats, size_t block_rows, size_t block_cols,
                               int n_threads, shortage *lack) {
  *o = (observation){.samples = samples, .n_samples = n, .formats = *formats, .block_rows = block_rows, .block_cols = block_cols, .lack = lack};
  o->facts = noted(calloc(n, sizeof *o->facts), o->lack);
  if (!o->facts || change_input(o, n_threads)) return MX_ERR_NOMEM;
  size_t total = 0;
  for (size_t i = 0; i < n; i++) {
    o->facts[i].first_block = total;
    total += up(samples[i].rows, block_rows) * up(samples[i].cols, block_cols);
  }
  o->n_blocks = total;
  o->blocks = noted(malloc((total + 1) * sizeof *o->blocks), o->lack);
  if (!o->blocks) return MX_ERR_NOMEM;
  for (size_t i = 0; i < n; i++) {
    const size_t down = up(samples[i].rows, block_rows), across = up(samples[i].cols, block_cols), first = o->facts[i].first_block;
#pragma omp parallel for schedule(static) num_threads(n_threads) if (samples[i].rows * samples[i].cols > 65536)
    for (size_t k = 0; k < down * across; k++) look(&o->blocks[first + k], o, i, k / across * block_rows, k % across * block_cols);
    mx_block_stats *w = &o->facts[i].whole;
    for (size_t k = 0; k < down * across; k++) {
      const mx_block_stats *st = &o->blocks[first + k].stats;
      w->has_nan |= st->has_nan;
      w->has_inf |= st->has_inf;
      if (st->amax_finite > w->amax_finite) w->amax_finite = st->amax_finite;
    }
  }
  set_ends(o);
  if (samples[0].codes && samples[0].has_tensor_scale) set_spoilt_aside(o);
  if (samples[0].codes) set_heaps_aside(o);
  choose_witnesses(o);
  return MX_OK;
}

void mxi_observation_free(observation *o) {
  for (size_t i = 0; o->own && i < o->n_samples; i++) free(o->own[i]);
  free(o->own);
  free(o->blocks);
  free(o->facts);
  free(o->cache);
  mxi_memo_free(o->memo);
  *o = (observation){0};
}

void mxi_observation_put_formats(mx_spec *s, const observation *o) {
  const mx_spec *f = &o->formats;
  s->elem = f->elem;
  s->scale = f->scale;
  s->block_rows = f->block_rows;
  s->block_cols = f->block_cols;
  s->had_size = f->had_size;
  s->had_sign = f->had_sign;
  memcpy(s->had_signs, f->had_signs, sizeof s->had_signs);
  s->input_dtype = f->input_dtype;
  if (f->had_size) s->flush = f->flush;
  if (f->had_size && f->had_sign == MX_HAD_SIGN_FRESH) s->seed = f->seed;
}

float mxi_observation_amax(const observation *o, size_t sample, const mx_spec *spec) {
  const mx_block_stats *w = &o->facts[sample].whole;
  const int skip_nan = spec->scale_nan == MX_SCALE_NAN_IGNORE || spec->scale_nan == MX_SCALE_NAN_CLAMP;
  const int inf = spec->scale_inf == MX_SCALE_INF_AS_NAN ? spec->scale_nan : spec->scale_inf - 1; /* rows of SCALE_NAN */
  if (w->has_nan && !skip_nan) return NAN;
  if (w->has_inf && inf == MX_SCALE_NAN_CLAMP) return FLT_MAX;
  if (w->has_inf && inf != MX_SCALE_NAN_IGNORE) return INFINITY;
  return spec->flush == MX_SWITCH_ON && !o->formats.had_size && w->amax_finite < FLT_MIN ? 0 : w->amax_finite;
}

int mxi_sample_fits(const mx_spec *spec, const mx_sample *s) {
  const mx_format *f = mx_elem_format(spec->elem);
  mx_tensor t;
  size_t block_rows, block_cols;
  if (mx_tensor_layout(&t, s->rows, s->cols, spec)) return 0;
  mx_spec_block(spec, s->rows, s->cols, &block_rows, &block_cols);
  if (t.scale_cols != s->scale_cols || t.scale_bytes != s->scale_bytes) return 0;
  if (t.scale_rows != s->scale_rows && up(s->rows, block_rows) != s->scale_rows) return 0;
  uint8_t all = 0;
  for (size_t k = 0; f->bits < 8 && k < s->rows * s->cols; k++) all |= s->codes[k];
  return f->bits >= 8 || !(all >> f->bits);
}
