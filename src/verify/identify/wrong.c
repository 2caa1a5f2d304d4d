/* Tells of blocks that are wrong which is the smallest, and whether they lie here and there, without a rule, as a race leaves them. */
#include "verify/identify/wrong.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of fewer blocks nothing can be said, and more than one in so many are no exceptions. */
enum { FEWEST = 8, AT_MOST_ONE_IN = 50 };

/* That all wrong blocks lie in a part of the places, one that was not known before, is no chance if it is rarer than this. */
static const double BY_CHANCE = 1e-3;

/* Lanes are told one by one in blocks of so many elements. */
enum { MOST_LANES = 1024, MOST_MODULUS = 128 };

/* The number of a block in one of three orders: rows of blocks, columns of blocks, all of them. */
static size_t place_of(const observation *o, size_t k, int by) {
  const block_at *b = &o->blocks[k];
  return by == 0 ? b->row / o->block_rows : by == 1 ? b->col / o->block_cols : k - o->facts[b->sample].first_block;
}

/* Do all wrong blocks lie in an interval of the places, or in some of the classes modulo a number, that is too small for chance? */
static int has_rule(const observation *o, const uint8_t *wrong, size_t n_wrong, int by) {
  size_t first = SIZE_MAX, last = 0, most = 0;
  for (size_t k = 0; k < o->n_blocks; k++) {
    const size_t at = place_of(o, k, by);
    if (at > most) most = at;
    if (wrong[k] && at < first) first = at;
    if (wrong[k] && at > last) last = at;
  }
  const double n = (double)n_wrong;
  if (n * log((double)(last - first + 1) / (double)(most + 1)) + 2 * log(n) < log(BY_CHANCE)) return 1;
  for (size_t m = 2; m <= MOST_MODULUS && m <= most; m++) {
    uint8_t seen[MOST_MODULUS] = {0};
    size_t classes = 0;
    for (size_t k = 0; k < o->n_blocks; k++) {
      if (!wrong[k] || seen[place_of(o, k, by) % m]) continue;
      seen[place_of(o, k, by) % m] = 1;
      classes++;
    }
    /* So many classes of m could have been chosen in 2^m ways, of which those of few are the likelier rules. */
    if (n * log((double)classes / (double)m) + (double)classes * log((double)m) < log(BY_CHANCE)) return 1;
  }
  return 0;
}

/* By how many steps the stored scale of a block is off, and the steps of an element between its code and that of the spec. */
static int steps_of_scale(const block_at *b, const mx_tensor *t, size_t block_rows, size_t block_cols) {
  return t->scale_bytes == 1 ? (int)b->scale - (int)t->scales[b->row / block_rows * t->scale_cols + b->col / block_cols] : 0;
}
static unsigned steps_of_code(const mx_format *f, uint32_t is, uint32_t was) {
  const uint32_t sign = f->sign_bits ? UINT32_C(1) << (f->bits - 1) : 0;
  if (f->kind == MX_KIND_INT) return (unsigned)abs((int)(int8_t)is - (int)(int8_t)was);
  return (is ^ was) & sign ? f->max_code : (unsigned)abs((int)(is & ~sign) - (int)(was & ~sign));
}

/* What is wrong as numbers: codes to a neighbour alone, scales all in one direction and not far. Then it is no place that decides it. */
typedef struct steps {
  int up, down, far;
} steps;
enum { FAR_POWERS = 4 };

static void note_scale(steps *s, int by, const mx_format *scale) {
  s->up |= by > 0;
  s->down |= by < 0;
  s->far |= abs(by) > FAR_POWERS << scale->man_bits;
}

/* The lanes, row by row in the block, whose codes are wrong somewhere: how many, and the first and the last. 0: there is no memory, or none. */
static size_t find_lanes(size_t *first, size_t *last, steps *by, const observation *o, const mx_spec *spec, const uint8_t *wrong) {
  static const mx_exec one = {.n_threads = 1};
  uint8_t seen[MOST_LANES] = {0};
  size_t n = 0;
  for (size_t i = 0; i < o->n_samples && o->block_rows * o->block_cols <= MOST_LANES; i++) {
    const mx_sample *s = &o->samples[i];
    const size_t end = i + 1 < o->n_samples ? o->facts[i + 1].first_block : o->n_blocks;
    mx_tensor t = {0};
    mx_spec run = *spec;
    run.nibble = MX_NIBBLE_LOW_FIRST;
    if (!noted_status(mx_tensor_alloc(&t, s->rows, s->cols, &run), o->lack) &&
        !mx_quantize(&t, s->x, s->rows, s->cols, s->ld, &run, &one, NULL))
      for (size_t k = o->facts[i].first_block; k < end; k++) {
        size_t rows, cols;
        mxi_observation_extent(o, &o->blocks[k], &rows, &cols);
        const int off = wrong[k] ? steps_of_scale(&o->blocks[k], &t, o->block_rows, o->block_cols) : 0;
        if (o->blocks[k].kind != BLOCK_ZERO) note_scale(by, off, mx_scale_format(run.scale));
        for (size_t e = 0; wrong[k] && e < rows * cols; e++) {
          const size_t row = o->blocks[k].row + e / cols, col = o->blocks[k].col + e % cols;
          const uint32_t is = s->codes[row * s->cols + col], was = mx_code_at(&t, &run, row, col);
          seen[e / cols * o->block_cols + e % cols] |= is != was;
          by->far |= !off && steps_of_code(mx_elem_format(run.elem), is, was) > 1;
        }
      }
    mx_tensor_free(&t);
  }
  for (size_t e = 0; e < MOST_LANES; e++) {
    if (!seen[e]) continue;
    if (!n++) *first = e;
    *last = e;
  }
  return n;
}

void mxi_note_scattered(mx_bug *bug, const inquiry *q, const uint8_t *wrong) {
  const observation *o = &q->o;
  size_t n = 0, first = 0, last = 0;
  for (size_t k = 0; k < o->n_blocks; k++) n += wrong[k];
  if (n < FEWEST || n * AT_MOST_ONE_IN > o->n_blocks || q->stochastic || mxi_spec_random(&q->best.spec)) return;
  for (int order = 0; order < 3; order++)
    if (has_rule(o, wrong, n, order)) return;
  steps by = {0};
  const size_t lanes = find_lanes(&first, &last, &by, o, &q->best.spec, wrong);
  if (!by.far && !(by.up && by.down)) return;
  char where[80] = "in some of their lanes";
  if (!q->best.got.codes)
    snprintf(where, sizeof where, "in no code, but their scale alone");
  else if (lanes == 1)
    snprintf(where, sizeof where, "in lane %zu", first);
  else if (lanes)
    snprintf(where, sizeof where, "in %zu lanes from %zu to %zu", lanes, first, last);
  *bug = (mx_bug){.name = MX_BUG_RACE, .preset = bug->preset, .spec = q->best.spec, .codes = q->best.got.codes, .scales = q->best.got.scales};
  bug->preset_codes = bug->codes, bug->preset_scales = bug->scales;
  snprintf(bug->text, sizeof bug->text,
           "has other bytes in %zu of %zu blocks (%.2g %%), %s; their rows, columns and numbers follow no rule, as of a race, or of a cause "
           "that other things than places decide",
           n, o->n_blocks, 100 * (double)n / (double)o->n_blocks, where);
}

void mxi_smallest_wrong(mx_identity *out, const inquiry *q, const uint8_t *wrong) {
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < q->o.n_blocks; i++) {
    const block_at *b = &q->o.blocks[i];
    size_t ld, rows, cols, n = 0;
    const float *x = mxi_observation_x(&q->o, b->sample, &ld) + b->row * ld + b->col;
    if (!wrong[i]) continue;
    mxi_observation_extent(&q->o, b, &rows, &cols);
    for (size_t k = 0; k < rows * cols; k++) n += x[k / cols * ld + k % cols] != 0;
    if (n >= least) continue;
    least = n;
    out->bad_sample = b->sample;
    out->bad_row = b->row;
    out->bad_col = b->col;
  }
}
