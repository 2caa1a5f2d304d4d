/* Finds formats that the data allow: under the right ones x / (code * scale) is one number, except for rounding. How far the values scatter is
 * called the spread, in octaves. */
#include "verify/identify/search/hypotheses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "core/sort.h"
#include "kernels/input.h"
#include "verify/identify/search/stochastic.h"
#include "verify/trial/observe.h"

/* On how many points a spread is measured, and from how many rows they are taken. With fewer, the spreads of right and wrong formats overlap; with
 * more, every pair of formats takes longer for each shape of a block. */
enum { MAX_POINTS = 1536, WANTED_ROWS = 48 };
/* Inputs of magnitudes between these are measured: beyond, the scales lie at the ends of their formats and tell little. */
static const float LEAST_X = 0x1p-100f, MOST_X = 0x1p100f;
/* Tiles of at least so many rows may be recognised by scales that differ only across a row; with fewer rows, scales are the same by chance. */
enum { ROWS_THAT_TELL = 16 };

typedef struct shape {
  size_t rows, cols;
  int whole; /* axes of which it is all, in tensors of different sizes: WHOLE_ROWS, WHOLE_COLS */
} shape;

enum { WHOLE_ROWS = 1, WHOLE_COLS = 2 };

static int fits_shape(const mx_sample *s, size_t n, size_t br, size_t bc) {
  for (size_t i = 0; i < n; i++) {
    const int whole_rows = s[i].scale_rows == s[i].rows && !(bc == 1 && br > 1);
    if (up(s[i].cols, bc) != s[i].scale_cols || (!whole_rows && up(s[i].rows, br) != s[i].scale_rows)) return 0;
  }
  return 1;
}

/* Has each tensor one scale, however often it is stored? */
static int one_scale_each(const mx_sample *s, size_t n) {
  size_t several = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i].scale_cols != 1 || (s[i].scale_rows != 1 && s[i].scale_rows != s[i].rows)) return 0;
    for (size_t r = 1; r < s[i].scale_rows; r++)
      if (memcmp(s[i].scales + r * s[i].scale_bytes, s[i].scales, s[i].scale_bytes)) return 0;
    several += s[i].rows > 1;
  }
  return several != 0;
}

/* Do the scales of each group of br rows agree, while not all scales do? */
static int repeats(const mx_sample *s, size_t n, size_t br) {
  int seen = 0, others = 0, across = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t r = 0; r < s[i].rows && s[i].scale_rows == s[i].rows; r++) {
      const size_t line = s[i].scale_cols * s[i].scale_bytes, first = r / br * br;
      const uint8_t *p = s[i].scales;
      others |= r == first && r && memcmp(p, p + r * line, line);
      across |= r == 0 && s[i].rows >= br && br >= ROWS_THAT_TELL && line > s[i].scale_bytes &&
                memcmp(p, p + s[i].scale_bytes, line - s[i].scale_bytes);
      if (r == first) continue;
      seen = 1;
      if (memcmp(p + r * line, p + first * line, line)) return 0;
    }
  return seen && (others || across);
}

/* The most rows that a tile can have if its scale is repeated in each: every row at which scales change is a multiple of it. 0: they never change. */
static size_t rows_of_tiles(const mx_sample *s, size_t n) {
  size_t tall = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t line = s[i].scale_cols * s[i].scale_bytes;
    const uint8_t *p = s[i].scales;
    for (size_t r = 1; r < s[i].rows && s[i].scale_rows == s[i].rows; r++) {
      if (!memcmp(p + r * line, p + (r - 1) * line, line)) continue;
      size_t a = r;
      while (a) {
        const size_t rest = tall % a;
        tall = a;
        a = rest;
      }
    }
  }
  return tall;
}

static void add_whole(shape *out, size_t *n, size_t br, size_t bc, int whole) {
  for (size_t i = 0; i < *n; i++)
    if (out[i].rows == br && out[i].cols == bc && out[i].whole == whole) return;
  if (*n < MAX_BLOCKS_TRIED && br && bc) out[(*n)++] = (shape){br, bc, whole};
}

static void add_shape(shape *out, size_t *n, size_t br, size_t bc) { add_whole(out, n, br, bc, 0); }

static size_t find_blocks(shape out[MAX_BLOCKS_TRIED], const mx_sample *s, size_t n, const mx_identify_options *o) {
  static const size_t sizes[] = {32, 16, 64, 128, 8, 4, 2, 256, 512, 1024};
  static const size_t heights[] = {128, 64, 32, 16, 8, 4, 2};
  size_t count = 0, cols = 0, rows = 0;
  for (size_t i = 0; i < n; i++) {
    cols = s[i].cols > cols ? s[i].cols : cols;
    rows = s[i].rows > rows ? s[i].rows : rows;
  }
  if (o->block_cols > 0) {
    add_shape(out, &count, o->block_rows > 0 ? (size_t)o->block_rows : 1, (size_t)o->block_cols);
    return count;
  }
  int differ = 0, per_row = 1, per_col = 1;
  for (size_t i = 0; i < n; i++) {
    if (s[i].rows != s[0].rows) differ |= WHOLE_ROWS;
    if (s[i].cols != s[0].cols) differ |= WHOLE_COLS;
    per_row &= s[i].scale_cols == 1 && s[i].scale_rows == s[i].rows;
    per_col &= s[i].scale_rows == 1 && s[i].scale_cols == s[i].cols;
  }
  const int tensor = s[0].codes && one_scale_each(s, n);
  const size_t tall = s[0].codes ? rows_of_tiles(s, n) : 0, odd = tall & (tall - 1) ? tall : 0; /* powers of two are tried below */
  if (s[0].codes && per_row && !tensor && differ & WHOLE_COLS) add_whole(out, &count, 1, cols, WHOLE_COLS);
  if (s[0].codes && per_col && differ & WHOLE_ROWS) add_whole(out, &count, rows, 1, WHOLE_ROWS);
  if (tensor && differ) add_whole(out, &count, rows, cols, WHOLE_ROWS | WHOLE_COLS);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const size_t bc = sizes[i];
    if (s[0].codes && !fits_shape(s, n, 1, bc)) {
      for (size_t k = 0; k < sizeof heights / sizeof heights[0]; k++) /* tiles whose scale is stored once */
        if (fits_shape(s, n, heights[k], bc) && s[0].scale_rows != s[0].rows) add_shape(out, &count, heights[k], bc);
      if (s[0].scale_rows && fits_shape(s, n, up(s[0].rows, s[0].scale_rows), bc)) add_shape(out, &count, up(s[0].rows, s[0].scale_rows), bc);
      continue;
    }
    for (size_t k = 0; s[0].codes && k < sizeof heights / sizeof heights[0]; k++)
      if (heights[k] <= rows && repeats(s, n, heights[k])) {
        add_shape(out, &count, heights[k], bc);
        break;
      }
    if (odd && repeats(s, n, odd)) add_shape(out, &count, odd, bc);
    add_shape(out, &count, 1, bc);
  }
  if (tensor) add_shape(out, &count, rows, cols);
  if (s[0].codes && fits_shape(s, n, 1, cols)) add_shape(out, &count, 1, cols);
  for (size_t k = 0; s[0].codes && s[0].scale_cols == s[0].cols && k < sizeof heights / sizeof heights[0]; k++)
    if (fits_shape(s, n, heights[k], 1)) add_shape(out, &count, heights[k], 1);
  for (size_t br = up(rows, s[0].scale_rows ? s[0].scale_rows : 1); s[0].codes && !count && s[0].scale_cols == s[0].cols && br < rows; br++)
    if (fits_shape(s, n, br, 1)) add_shape(out, &count, br, 1);
  if (s[0].codes && s[0].scale_cols == s[0].cols && s[0].scale_rows == 1) add_shape(out, &count, rows, 1);
  /* Unusual sizes of blocks that the number of scales implies. */
  for (size_t bc = up(cols, s[0].scale_cols ? s[0].scale_cols : 1); s[0].codes && !count && bc <= cols; bc++)
    if (fits_shape(s, n, 1, bc)) {
      if (tall > 1 && repeats(s, n, tall)) add_shape(out, &count, tall, bc);
      add_shape(out, &count, 1, bc);
    }
  return count;
}

static void set_block(mx_spec *s, shape b, const mx_sample *samples, size_t n) {
  int all_rows = 1, all_cols = 1;
  for (size_t i = 0; i < n; i++) all_rows &= b.rows == samples[i].rows, all_cols &= b.cols == samples[i].cols;
  const int common = b.cols >= 8 && b.cols <= 128 && !(b.cols & (b.cols - 1));
  if (b.whole) {
    s->block_rows = b.whole & WHOLE_ROWS ? MX_BLOCK_WHOLE : 0;
    s->block_cols = b.whole & WHOLE_COLS ? MX_BLOCK_WHOLE : 1;
    return;
  }
  s->block_rows = b.rows == 1 ? 0 : all_rows && b.rows > 128 ? MX_BLOCK_WHOLE : (int)b.rows;
  s->block_cols = b.cols == 32 ? 0 : all_cols && !common && b.cols != 1 ? MX_BLOCK_WHOLE : (int)b.cols;
}

/* Points of the data that are used: x, and the stored code and scale. */
typedef struct point {
  float x;
  uint8_t code;
  uint32_t scale, sample;
} point;

static uint32_t scale_at(const mx_sample *s, shape b, size_t r, size_t c) {
  const size_t row = s->scale_rows == s->rows ? r : r / b.rows;
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)s->scales + (row * s->scale_cols + c / b.cols) * s->scale_bytes, s->scale_bytes);
  return code;
}

/* Chooses rows spread over the samples, rotated if the hypothesis has a rotation. */
static size_t gather(point out[MAX_POINTS], const mx_sample *samples, size_t n, shape b, const mx_spec *f, shortage *lack) {
  size_t count = 0, total_rows = 0;
  for (size_t i = 0; i < n; i++) total_rows += samples[i].rows;
  const size_t step = total_rows / WANTED_ROWS + 1;
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const mx_sample *s = &samples[i];
    float *row = noted(malloc((s->cols + 1) * sizeof *row), lack);
    for (size_t r = 0; row && r < s->rows; r++, at++) {
      if (at % step) continue;
      memcpy(row, s->x + r * s->ld, s->cols * sizeof *row);
      if (f->had_size) noted_status(mx_hadamard(row, s->cols, row, 1, s->cols, s->cols, f->had_size, f->had_sign, f->had_signs, f->seed), lack);
      const size_t per_row = MAX_POINTS / WANTED_ROWS, skip = s->cols / per_row + 1;
      for (size_t c = r % skip; c < s->cols && count < MAX_POINTS; c += skip) {
        const float a = fabsf(row[c]);
        if (isfinite(row[c]) && a > LEAST_X && a < MOST_X)
          out[count++] = (point){row[c], s->codes[r * s->cols + c], scale_at(s, b, r, c), (uint32_t)i};
      }
    }
    free(row);
  }
  return count;
}

/* Elements below one in SMALL_SHARE of the largest, and below SMALL_TIMES the smallest, are left out: their steps are as coarse as the spread of a
 * wrong format. If more are left out, data of small numbers have too few points; if fewer are, right formats seem to scatter. */
static const double SMALL_SHARE = 16, SMALL_TIMES = 4;

/* log2 of x / (code * scale), if this point is used; 0 if not. clipped: scales at the largest number are used, too, which may have been larger. */
static int log_ratio(double *out, const hypothesis *h, const mx_format *e, const mx_format *s, const point *p, int clipped) {
  const double v = mx_decode(e, p->code), sc = fabs(mx_decode(s, p->scale)), top = mx_format_max(e);
  if (!clipped && sc == mx_format_max(s)) return 0;
  if (!isfinite(v) || v == 0 || !isfinite(sc) || sc == 0 || fabs(v) >= top) return 0;
  if (fabs(v) < top / SMALL_SHARE && fabs(v) < SMALL_TIMES * mx_format_min(e)) return 0;
  *out = log2(fabs((double)p->x) / fabs(v)) + (h->formats.scale_form == MX_SCALE_FORM_ENCODE ? log2(sc) : -log2(sc));
  return 1;
}

/* From here on, of the largest value, a number may have been clipped to it or rounded up to it. */
static const double CLIPPED_FROM = 0.6;
/* A number may be so many of the smallest elements larger than its code says: one for its own rounding, one for the scale's. */
static const double STEPS_OFF = 2;

/* Is a point that log_ratio() leaves out where it should be, too small for its block or at the largest value? offset: log2 of x / (code * scale). */
static int agrees(const hypothesis *h, const mx_format *e, const mx_format *s, const point *p, double offset) {
  const double v = fabs(mx_decode(e, p->code)), sc = fabs(mx_decode(s, p->scale)), top = mx_format_max(e);
  if (!isfinite(v) || !isfinite(sc) || sc == 0) return 0;
  const double y = fabs((double)p->x) * exp2(-offset) * (h->formats.scale_form == MX_SCALE_FORM_ENCODE ? sc : 1 / sc);
  return v >= top ? y > CLIPPED_FROM * top : y < v + STEPS_OFF * mx_format_min(e);
}

/* A spread larger than that of any format: there are too few points to tell it. */
static const double NO_SPREAD = 100;
/* How many points a sample, and all of them, must have for a spread: fewer lie near their own median under any format. */
enum { FEWEST_OF_SAMPLE = 4, FEWEST_POINTS = 8 };
/* How many octaves a point counts for at most, and one of the wrong sign. With more, a few points under another rule outweigh all others; with
 * less, a wrong format is hardly worse than a right one. */
static const double MOST_OCTAVES = 4, WRONG_SIGN = 4;
/* If fewer than one in so many points are used, each of the others that does not lie where it should counts for so many octaves: otherwise a
 * format whose codes are all at its ends would fit everything. */
enum { TELLING_ONE_IN = 4 };
static const double UNEXPLAINED = 2;

/* Each sample has its own tensor scale, so the spread is measured about each sample's median. */
static void measure_points(hypothesis *h, const point *p, size_t n, int clipped) {
  const mx_format *e = mx_elem_format(h->formats.elem), *s = mx_scale_format(h->formats.scale);
  double logs[MAX_POINTS], sum = 0, unused;
  size_t used = 0, crossed = 0, largest = 0, agreeing = 0;
  h->spread = NO_SPREAD;
  h->offset = 0;
  for (size_t i = 0, end; i < n; i = end) {
    size_t m = 0;
    for (end = i; end < n && p[end].sample == p[i].sample; end++) {
      if (!log_ratio(&logs[m], h, e, s, &p[end], clipped)) continue;
      crossed += (mx_decode(e, p[end].code) < 0) != (p[end].x < 0);
      m++;
    }
    if (m < FEWEST_OF_SAMPLE) continue;
    mxi_sort_numbers(logs, m);
    if (m > largest) largest = m, h->offset = logs[m / 2];
    for (size_t k = 0; k < m; k++) sum += fmin(fabs(logs[k] - logs[m / 2]), MOST_OCTAVES);
    used += m;
    for (size_t k = i; k < end; k++) agreeing += !log_ratio(&unused, h, e, s, &p[k], clipped) && agrees(h, e, s, &p[k], logs[m / 2]);
  }
  if (used < FEWEST_POINTS) return;
  h->spread = (sum + WRONG_SIGN * (double)crossed) / (double)used +
              (used * TELLING_ONE_IN < n ? UNEXPLAINED * (double)(n - used - agreeing) / (double)n : 0);
}

/* Of both readings the better one: where most scales are the largest, those tell as well as others. */
static void measure(hypothesis *h, const point *p, size_t n) {
  hypothesis with = *h;
  measure_points(h, p, n, 0);
  measure_points(&with, p, n, 1);
  if (with.spread <= h->spread) *h = with;
}

static int better(const void *a, const void *b) {
  const hypothesis *x = a, *y = b;
  if (x->spread != y->spread) return (x->spread > y->spread) - (x->spread < y->spread);
  return (x->order > y->order) - (x->order < y->order);
}

static unsigned bits_needed(const mx_sample *s, size_t n) {
  uint8_t all = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < s[i].rows * s[i].cols; k++) all |= s[i].codes[k];
  return all >= 64 ? 8 : all >= 16 ? 6 : 4;
}

/* log2 of amax / (largest element * largest scale) of the first sample. */
static double normed_offset(const mx_sample *s, size_t n, const mx_format *e, const mx_format *sc) {
  float amax = 0;
  const mx_spec skip = {.scale_nan = MX_SCALE_NAN_IGNORE};
  for (size_t i = 0; i < n && amax == 0; i++) mx_tensor_amax(&amax, s[i].x, s[i].rows, s[i].cols, s[i].ld, &skip, &(mx_exec){.n_threads = 1});
  return amax > 0 && isfinite(amax) ? log2((double)amax) - log2(mx_format_max(e) * mx_format_max(sc)) : 0;
}

/* How many negative numbers, none of them with the sign bit, refute a format: fewer may come from a bug, such as a lost sign. */
enum { ENOUGH_NEGATIVE = 8 };

/* Can the codes belong to a format? They must fit its bits, and a negative number that is not zero must have the sign bit. */
static int codes_allow(const mx_sample *s, size_t n, const mx_format *f, unsigned bits) {
  size_t negative = 0, signed_codes = 0;
  if (f->bits < bits) return 0;
  if (!f->sign_bits || f->bits == bits) return 1;
  const uint32_t sign = 1u << (f->bits - 1);
  for (size_t i = 0; i < n; i++)
    for (size_t r = 0; r < s[i].rows; r++)
      for (size_t c = 0; c < s[i].cols; c++) {
        const uint32_t code = s[i].codes[r * s[i].cols + c];
        if (!(s[i].x[r * s[i].ld + c] < 0) || !(code & (sign - 1))) continue;
        negative++;
        signed_codes += (code & sign) != 0;
      }
  return negative < ENOUGH_NEGATIVE || signed_codes;
}

/* The largest code of a scale of one byte in tensors of numbers alone. */
static uint32_t largest_scale(const mx_sample *s, size_t n) {
  uint32_t most = 0;
  for (size_t i = 0; i < n && s[0].scale_bytes == 1; i++) {
    int finite = 1;
    for (size_t k = 0; k < s[i].rows * s[i].cols && finite; k++) finite = isfinite(s[i].x[k / s[i].cols * s[i].ld + k % s[i].cols]) != 0;
    const uint8_t *codes = s[i].scales;
    for (size_t k = 0; finite && k < s[i].scale_rows * s[i].scale_cols; k++) most = codes[k] > most ? codes[k] : most;
  }
  return most;
}

typedef struct list {
  hypothesis *at;
  size_t n, room;
  shortage *lack; /* of the call */
} list;

/* Is this reading of the block less likely than an earlier one? So are single rows if rows of scales repeat as they do in tiles of this width, and
 * widths of which every row has one block. */
static int is_unlikely(const shape *blocks, size_t i, const mx_sample *s, size_t n) {
  int one = 1;
  if (!i) return 0;
  for (size_t k = 0; k < n; k++) one &= s[k].cols <= blocks[i].cols && s[k].cols <= blocks[0].cols;
  return (one && blocks[i].rows == blocks[0].rows) || (blocks[i].rows == 1 && blocks[i - 1].rows > 1 && blocks[i].cols == blocks[i - 1].cols);
}

/* What is added to the spread, in octaves, of rare readings, so that of two that fit about equally the common one is tried first. As much as the
 * spreads of right and wrong formats differ would put the right one behind; nothing would leave it to the order of the tables. */
static const double RARE_GRID = 0.15, UNLIKELY_BLOCK = 0.1, RARE_FORM = 0.02, UNEXPLAINED_NORM = 0.03, OTHER_NORM = 0.06, FULL_RANGE = 0.001;
/* With more points than this, codes that fit 5 bits do not belong to an 8-bit format; fewer may all be small ones. */
enum { SMALL_BY_CHANCE = 64 };
/* HiFloat4's micro-scales cannot be seen, so its spread tells little: it counts as at most this. */
static const double MICRO_SPREAD = 0.6;
/* log2 of a tensor scale that is this far from amax / (largest element * largest scale) follows another rule. */
static const double FROM_NORM = 1.6;
/* With a larger spread than this no format fits the input as it lies. A rotation is then looked for, and tried if every element of its tile
 * correlates at least this much with what is stored. Lower limits cost a search for rotations on plain data; higher ones lose rotated data that a
 * format fits by luck. */
static const double NOTHING_FITS = 0.5, ROTATION_FITS = 0.3;

static void consider(list *l, const mx_sample *samples, size_t n, shape b, const mx_spec *rotation, unsigned bits, int unlikely) {
  const uint32_t largest = largest_scale(samples, n);
  point *p = noted(malloc(MAX_POINTS * sizeof *p), l->lack);
  const size_t n_points = p ? gather(p, samples, n, b, rotation, l->lack) : 0;
  int allowed[MX_ELEM_COUNT];
  for (int e = 0; e < MX_ELEM_NONE; e++) allowed[e] = rotation->had_size || codes_allow(samples, n, mx_elem_format(e), bits);
  for (int e = 0; e < MX_ELEM_NONE; e++)
    for (int sc = 0; sc < MX_SCALE_COUNT; sc++)
      for (int form = 0; form < 2; form++) {
        const mx_format *ef = mx_elem_format(e), *sf = mx_scale_format(sc);
        const size_t bytes = sf->bits <= 8 ? 1 : sf->bits <= 16 ? 2 : 4;
        const int hif4 = e == MX_ELEM_E1M2 && sc == MX_SCALE_E6M2;
        if (ef->bits < bits || bytes != samples[0].scale_bytes || (hif4 ? form || b.cols != 64 || b.rows != 1 : sc == MX_SCALE_E6M2)) continue;
        if (ef->bits == 8 && bits < 6 && n_points > SMALL_BY_CHANCE) continue;
        if (!allowed[e]) continue;
        hypothesis h = {.formats = *rotation, .block_rows = b.rows, .block_cols = b.cols};
        h.formats.elem = e;
        h.formats.scale = sc;
        h.formats.scale_form = form;
        if (hif4) h.formats.scale_rule = MX_SCALE_RULE_HIF4;
        set_block(&h.formats, b, samples, n);
        measure(&h, p, n_points);
        if (e == MX_ELEM_E1M2 && !hif4) h.spread += RARE_GRID; /* an even grid fits e2m1's codes nearly as well, and is rare */
        if (unlikely) h.spread += UNLIKELY_BLOCK;
        if (form) h.spread += RARE_FORM;                   /* of two readings that fit alike, the common one */
        if (hif4) h.spread = fmin(h.spread, MICRO_SPREAD); /* micro-scales of 1, 2 and 4 are not in sight */
        /* Formats that differ only by a power of two fit equally: the offset that the common targets give decides. */
        const double expected = normed_offset(samples, n, ef, sf);
        if (!samples[0].has_tensor_scale)
          h.spread += UNEXPLAINED_NORM * (fabs(h.offset) > WITHOUT_NORM);
        else
          h.spread += OTHER_NORM * (fabs(h.offset - expected) > FROM_NORM);
        if (largest == sf->max_code && !sf->sign_bits) h.spread -= FULL_RANGE; /* of formats that differ in their largest code alone */
        if (l->n == l->room) {
          const size_t room = l->room ? 2 * l->room : 256;
          hypothesis *more = noted(realloc(l->at, room * sizeof *more), l->lack);
          if (!more) {
            free(p);
            return;
          }
          l->at = more;
          l->room = room;
        }
        h.order = l->n;
        l->at[l->n++] = h;
      }
  free(p);
}

/* Values alone: every pair of formats that a preset has, any block. */
static void from_presets(list *l, const mx_sample *samples, size_t n, const shape *blocks, size_t n_blocks) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    hypothesis h = {.spread = 0};
    mx_spec s;
    if (mx_preset_find(&s, mx_preset_at(i)->name, NULL)) continue;
    mx_spec_block(&s, 1, samples[0].cols, &h.block_rows, &h.block_cols);
    int known = 0, allowed = 0;
    for (size_t k = 0; k < l->n; k++)
      known |= l->at[k].formats.elem == s.elem && l->at[k].formats.scale == s.scale && l->at[k].block_cols == h.block_cols &&
               l->at[k].block_rows == h.block_rows;
    for (size_t k = 0; k < n_blocks; k++) allowed |= blocks[k].cols == h.block_cols;
    if (known || !allowed) continue;
    h.formats.elem = s.elem;
    h.formats.scale = s.scale;
    if (s.scale_rule == MX_SCALE_RULE_HIF4) h.formats.scale_rule = s.scale_rule;
    set_block(&h.formats, (shape){h.block_rows, h.block_cols, 0}, samples, n);
    if (l->n == l->room) {
      const size_t room = l->room ? 2 * l->room : 64;
      hypothesis *more = noted(realloc(l->at, room * sizeof *more), l->lack);
      if (!more) return;
      l->at = more;
      l->room = room;
    }
    l->at[l->n++] = h;
  }
}

void mxi_preset_hypotheses(hypothesis out[MAX_HYPOTHESES], size_t *n, const mx_sample *samples, size_t n_samples,
                           const mx_identify_options *options, const hypothesis *known, size_t n_known) {
  *n = 0;
  if (!samples[0].codes) return;
  const unsigned bits = bits_needed(samples, n_samples);
  for (size_t i = 0; i < mx_preset_count() && *n < MAX_HYPOTHESES; i++) {
    mx_spec s;
    hypothesis h = {.spread = NO_SPREAD};
    if (mx_preset_at(i)->alias_of || mx_preset_find(&s, mx_preset_at(i)->name, NULL)) continue;
    const mx_format *e = mx_elem_format(s.elem), *sf = mx_scale_format(s.scale);
    const size_t bytes = sf->bits <= 8 ? 1 : sf->bits <= 16 ? 2 : 4;
    mx_spec_block(&s, samples[0].rows, samples[0].cols, &h.block_rows, &h.block_cols);
    if (e->kind == MX_KIND_NONE || bytes != samples[0].scale_bytes || !fits_shape(samples, n_samples, h.block_rows, h.block_cols)) continue;
    if (options->block_cols > 0 && h.block_cols != (size_t)options->block_cols) continue;
    if (!codes_allow(samples, n_samples, e, bits)) continue;
    h.formats = (mx_spec){.elem = s.elem,
                          .scale = s.scale,
                          .scale_form = s.scale_form,
                          .input_dtype = s.input_dtype,
                          .had_size = s.had_size,
                          .had_sign = s.had_sign,
                          .block_rows = s.block_rows,
                          .block_cols = s.block_cols};
    if (s.scale_rule == MX_SCALE_RULE_HIF4) h.formats.scale_rule = s.scale_rule;
    int is_known = 0;
    for (size_t k = 0; k < n_known + *n && !is_known; k++) {
      const hypothesis *o = k < n_known ? &known[k] : &out[k - n_known];
      const mx_spec *f = &o->formats;
      is_known = f->elem == s.elem && f->scale == s.scale && f->had_size == s.had_size && f->had_sign == s.had_sign &&
                 o->block_rows == h.block_rows && o->block_cols == h.block_cols &&
                 (k < n_known || (f->input_dtype == s.input_dtype && f->scale_form == s.scale_form));
    }
    if (!is_known) out[(*n)++] = h;
  }
}

/* ---- rotations: under the right size the rotated values, rotated back, are x but for signs */

typedef struct rotation {
  unsigned size;
  uint8_t signs[16];
  double fit;   /* least correlation of any element of the tile */
  double share; /* of the tiles looked at, those that were numbers in range: a wrong scale format leaves few, and few correlate by chance */
} rotation;

/* Values, and squared norms of tiles, that are in reach of binary32 and binary64 with room for the rotation's sums: others are left out. */
static const double LEAST_Y = 0x1p-100, MOST_Y = 0x1p100, LEAST_NORM = 0x1p-120;
/* From about how many rows correlations are taken, and how many tiles are needed for one. With fewer, elements correlate by chance; with more,
 * each pair of formats takes longer for each size. */
enum { ROTATED_ROWS = 96, FEWEST_TILES = 4 };
/* Sizes of rotations that are tried: the smallest and the largest in use. */
enum { LEAST_SIZE = 16, MOST_SIZE = 128 };

/* Values as they were stored, up to the tensor scale; 0 where there are none. */
static void read_row(float *out, const mx_sample *s, shape b, size_t r, const mx_format *e, const mx_format *sf, int encode) {
  for (size_t c = 0; c < s->cols; c++) {
    const double scale = fabs(mx_decode(sf, scale_at(s, b, r, c))), v = mx_decode(e, s->codes[r * s->cols + c]);
    const double y = encode ? v / scale : v * scale;
    out[c] = isfinite(y) && fabs(y) < MOST_Y && (y == 0 || fabs(y) > LEAST_Y) ? (float)y : 0;
  }
}

/* Rows that were read under one pair of formats: rotations of every size ask for the same ones. */
typedef struct rows_read {
  size_t width; /* of the widest sample */
  struct {
    size_t sample, row; /* row + 1; 0: none */
  } at[2 * ROTATED_ROWS + 1];
  float *y;
} rows_read;

static const float *read_once(rows_read *seen, size_t k, const mx_sample *samples, size_t i, shape b, size_t r, const mx_format *e,
                              const mx_format *sf, int encode) {
  float *y = seen->y + k * seen->width;
  if (seen->at[k].row != r + 1 || seen->at[k].sample != i) read_row(y, &samples[i], b, r, e, sf, encode);
  seen->at[k].sample = i;
  seen->at[k].row = r + 1;
  return y;
}

/* Computes the correlation of x with the values rotated back, for each element of the tile. */
static void try_rotation(rotation *best, rows_read *seen, const mx_sample *samples, size_t n, shape b, unsigned size, const mx_format *e,
                         const mx_format *sf, int encode, shortage *lack) {
  double xy[MOST_SIZE] = {0}, xx[MOST_SIZE] = {0}, yy[MOST_SIZE] = {0};
  size_t rows = 0, tiles = 0, total = 0, looked = 0;
  for (size_t i = 0; i < n; i++) total += samples[i].cols < size ? 0 : samples[i].rows; /* short tiles cannot be rotated back */
  const size_t step = total / ROTATED_ROWS + 1;
  for (size_t i = 0, at = 0; i < n; i++) {
    const mx_sample *s = &samples[i];
    if (s->cols < size) continue;
    float *y = noted(malloc((s->cols + size) * sizeof *y), lack);
    for (size_t r = 0; y && r < s->rows; r++, at++) {
      if (at % step || rows > 2 * ROTATED_ROWS) continue;
      memcpy(y, read_once(seen, rows++, samples, i, b, r, e, sf, encode), s->cols * sizeof *y);
      noted_status(mx_hadamard(y, s->cols, y, 1, s->cols, s->cols, size, MX_HAD_SIGN_NONE, NULL, 0), lack);
      for (size_t c = 0; c + size <= s->cols; c += size) {
        const float *x = s->x + r * s->ld + c;
        double norm_x = 0, norm_y = 0;
        looked++;
        for (unsigned k = 0; k < size; k++) norm_x += (double)x[k] * (double)x[k], norm_y += (double)y[c + k] * (double)y[c + k];
        if (!(norm_x > LEAST_NORM) || !(norm_y > LEAST_NORM) || isinf(norm_x) || isinf(norm_y)) continue;
        tiles++;
        for (unsigned k = 0; k < size; k++) { /* each tile counts alike */
          xy[k] += (double)x[k] * (double)y[c + k] / sqrt(norm_x * norm_y);
          xx[k] += (double)x[k] * (double)x[k] / norm_x;
          yy[k] += (double)y[c + k] * (double)y[c + k] / norm_y;
        }
      }
    }
    free(y);
  }
  rotation mine = {.size = size, .fit = tiles < FEWEST_TILES ? 0 : 1, .share = (double)tiles / (double)(looked + 1)};
  for (unsigned k = 0; k < size; k++) {
    const double corr = xx[k] > 0 && yy[k] > 0 ? xy[k] / sqrt(xx[k] * yy[k]) : 0;
    mine.fit = fmin(mine.fit, fabs(corr));
    if (corr < 0) mine.signs[k / 8] |= (uint8_t)(1 << k % 8);
  }
  if (mine.fit * mine.share > best->fit * best->share) *best = mine;
}

static rotation find_rotation(const mx_sample *samples, size_t n, shape b, unsigned bits, shortage *lack) {
  rotation best = {.fit = 0};
  rows_read seen = {.width = 0};
  for (size_t i = 0; i < n; i++) seen.width = samples[i].cols > seen.width ? samples[i].cols : seen.width;
  seen.y = noted(malloc(sizeof seen.at / sizeof *seen.at * seen.width * sizeof *seen.y), lack);
  for (int e = 0; e < MX_ELEM_NONE && seen.y; e++)
    for (int sc = 0; sc < MX_SCALE_COUNT; sc++)
      for (int encode = 0; encode < 2; encode++) {
        const mx_format *ef = mx_elem_format(e), *sf = mx_scale_format(sc);
        const size_t bytes = sf->bits <= 8 ? 1 : sf->bits <= 16 ? 2 : 4;
        if (ef->bits < bits || (ef->bits == 8 && bits < 6) || bytes != samples[0].scale_bytes || sc == MX_SCALE_E6M2) continue;
        memset(seen.at, 0, sizeof seen.at);
        for (unsigned size = LEAST_SIZE; size <= MOST_SIZE; size *= 2) try_rotation(&best, &seen, samples, n, b, size, ef, sf, encode, lack);
      }
  free(seen.y);
  return best;
}

/* Signs by name where they have one. */
static mx_spec spec_of_rotation(const rotation *r, int n_threads) {
  mx_spec s = {.had_size = r->size, .had_sign = MX_HAD_SIGN_FIXED};
  int none = 1, te = 1;
  for (unsigned k = 0; k < r->size; k++) {
    const int negative = r->signs[k / 8] >> (k % 8) & 1;
    none &= !negative;
    te &= negative == (MX_HAD_TE >> k % 16 & 1);
  }
  if (none)
    s.had_sign = MX_HAD_SIGN_NONE;
  else if (te)
    s.had_sign = MX_HAD_SIGN_TE;
  else if (mxi_random_solve_signs(&s.seed, r->signs, r->size, n_threads))
    s.had_sign = MX_HAD_SIGN_FRESH;
  else
    memcpy(s.had_signs, r->signs, sizeof s.had_signs);
  return s;
}

mx_status mxi_find_hypotheses(hypothesis out[MAX_HYPOTHESES], size_t *n, const mx_sample *samples, size_t n_samples,
                              const mx_identify_options *options, shortage *lack, mx_error *err) {
  shape blocks[MAX_BLOCKS_TRIED];
  const size_t n_blocks = find_blocks(blocks, samples, n_samples, options);
  *n = 0;
  if (samples[0].codes && options->block_cols > 0 && !fits_shape(samples, n_samples, blocks[0].rows, blocks[0].cols))
    return mx_fail(err, MX_ERR_ARG, "blocks of %zu columns were asked for: scales of %zu x %zu do not fit them in a %zu x %zu tensor",
                   blocks[0].cols, samples[0].scale_rows, samples[0].scale_cols, samples[0].rows, samples[0].cols);
  if (!n_blocks)
    return mx_fail(err, MX_ERR_SHAPE, "scales of %zu x %zu fit no block shape of a %zu x %zu tensor", samples[0].scale_rows,
                   samples[0].scale_cols, samples[0].rows, samples[0].cols);
  list l = {.lack = lack};
  if (!samples[0].codes)
    from_presets(&l, samples, n_samples, blocks, n_blocks);
  else {
    const unsigned bits = bits_needed(samples, n_samples);
    const mx_spec none = {0};
    double least = NO_SPREAD;
    for (size_t i = 0; i < n_blocks; i++) /* tiles come before rows where scales repeat, so among equals they win */
      consider(&l, samples, n_samples, blocks[i], &none, bits, is_unlikely(blocks, i, samples, n_samples));
    for (size_t i = 0; i < l.n; i++) least = fmin(least, l.at[i].formats.scale_rule == MX_SCALE_RULE_HIF4 ? NO_SPREAD : l.at[i].spread);
    if (least > NOTHING_FITS) { /* nothing fits as it lies: perhaps the input was rotated */
      const rotation r = find_rotation(samples, n_samples, blocks[0], bits, lack);
      if (r.fit > ROTATION_FITS) {
        const mx_spec rotated = spec_of_rotation(&r, mx_thread_count(options->n_threads > 0 ? options->n_threads : 1));
        consider(&l, samples, n_samples, blocks[0], &rotated, bits, 0);
      }
    }
    qsort(l.at, l.n, sizeof *l.at, better);
  }
  while (*n < l.n && *n < MAX_HYPOTHESES) {
    out[*n] = l.at[*n];
    ++*n;
  }
  free(l.at);
  if (short_of_memory(lack)) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  return *n ? MX_OK : mx_fail(err, MX_ERR_SHAPE, "no element and scale format fit the codes");
}
