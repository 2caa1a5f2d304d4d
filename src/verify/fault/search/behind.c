/* Finds faults behind those that move codes or scales. What was moved is put back; if the elements then follow their scales far better than before, a
 * preset and one more fault are looked for in what there was before. */
#include "verify/fault/search/behind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/bases.h"

/* Of the elements that do not follow their scales at most this share may be left when what was moved is back; with a larger one everything is looked
 * into, with a smaller one a second fault that most elements have is not found. */
static const double LEFT_OF_WRONG = 0.6;
/* What a fault that moves things costs, with its choice among the rows of `movers`. */
static const double BITS_OF_A_MOVE = 14;
/* Elements are worth looking at for a second fault where at most this share of them is wrong. */
static const double MOST_WRONG = 0.5;

static const mx_fault movers[] = {{.op = MX_FAULT_LAYOUT_DOWN},
                                  {.op = MX_FAULT_LAYOUT_DOWN_SCALES},
                                  {.op = MX_FAULT_STORE_BLOCK_XOR, .number = 1},
                                  {.op = MX_FAULT_STORE_BLOCK_XOR, .number = 3},
                                  {.op = MX_FAULT_STORE_BLOCK_XOR, .number = 7},
                                  {.op = MX_FAULT_STORE_BLOCK_XOR, .number = 2},
                                  {.op = MX_FAULT_STORE_ROW_XOR, .number = 1},
                                  {.op = MX_FAULT_LAYOUT_SCALES_TRANSPOSED},
                                  {.op = MX_FAULT_LAYOUT_SWIZZLE, .format = MX_LAYOUT_NV128X4},
                                  {.op = MX_FAULT_LAYOUT_CODES_ROW_XOR, .number = 1},
                                  {.op = MX_FAULT_CODE_REVERSE, .number = 2},
                                  {.op = MX_FAULT_CODE_REVERSE, .number = 4},
                                  {.op = MX_FAULT_CODE_REVERSE, .number = 8},
                                  {.op = MX_FAULT_CODE_REVERSE, .number = 16},
                                  {.op = MX_FAULT_CODE_COLUMN_XOR, .number = 2},
                                  {.op = MX_FAULT_CODE_COLUMN_XOR, .number = 6},
                                  {.op = MX_FAULT_CODE_COLUMN_XOR, .number = 16},
                                  {.op = MX_FAULT_LAYOUT_CODES_TRANSPOSED, .number = 16},
                                  {.op = MX_FAULT_LAYOUT_CODES_TRANSPOSED, .number = 32},
                                  {.op = MX_FAULT_LAYOUT_CODES_TRANSPOSED, .number = 64}};

/* Beside what was moved another tensor scale is stored. */
static void offer_stored(hunt *h, const mx_fault *mover, const base *b, uint64_t held) {
  for (int op = 1; op < MX_FAULT_COUNT; op++) {
    const mx_fault both[MX_FAULTS] = {{.op = op}, *mover};
    if (!mxi_fault_stores_tensor_alone(op)) continue;
    mxi_hunt_offer(h, b->preset, &b->spec, both, 2, BITS_OF_A_FAULT + BITS_OF_A_MOVE + b->extra, held + BITS_OF_STORED);
  }
}

/* With a fault before what was moved, or without one. */
static void offer_behind(hunt *h, const mx_fault *mover, const base *b, const mx_sample *before, explain_view *explain) {
  blame best = {.n = 0};
  hunt inner = {.samples = before, .n = 1, .best = &best, .e = h->e};
  view *v = noted(malloc(sizeof *v), h->e->until.lack);
  const size_t blocks = before->scale_rows * before->scale_cols;
  if (b->scales == 0 && b->by_plain == 0 && b->other_tensor)
    offer_stored(h, mover, b, blocks / 2);
  else if (b->scales == 0 && b->by_plain == 0)
    mxi_hunt_offer(h, b->preset, &b->spec, mover, 1, BITS_OF_A_MOVE + b->extra, blocks / 2);
  else if (v && mxi_view_open(v, &b->spec, before, NULL, 0, h->e))
    explain(&inner, v, b);
  if (v && !(b->scales == 0 && b->by_plain == 0)) mxi_view_close(v);
  free(v);
  for (size_t i = 0; i < inner.n_all; i++) {
    const blame *one = &inner.all[i];
    mx_fault both[MX_FAULTS] = {one->fault[0], *mover};
    if (one->n == 1) mxi_hunt_offer(h, one->preset, &one->spec, both, 2, one->cost + BITS_OF_A_MOVE, one->held);
  }
}

/* The rows before the last ones, in which nothing was written: codes and scales are zero and the input is not. 0: there are none, or no others. */
static size_t written_rows(const mx_sample *s, size_t block_rows) {
  const size_t of_scales = s->scale_cols * s->scale_bytes, each = s->scale_rows == s->rows ? 1 : block_rows;
  size_t rows = s->rows, zero = 1;
  int any = 0;
  while (rows && zero) {
    const size_t row = rows - 1;
    for (size_t c = 0; c < s->cols && zero; c++) zero = s->codes[row * s->cols + c] == 0;
    for (size_t k = 0; k < of_scales && zero; k++) zero = ((const uint8_t *)s->scales)[row / each * of_scales + k] == 0;
    for (size_t c = 0; c < s->cols && zero && !any; c++) any = s->x[row * s->ld + c] != 0;
    rows -= zero;
  }
  return any ? rows / block_rows * block_rows : 0;
}

/* Where the last rows were not written, one more fault is looked for in the others. */
static void explain_written(hunt *h, const base *plain, explain_view *explain, size_t block_rows) {
  const mx_sample *s = &h->samples[h->largest];
  mx_sample before = *s;
  base at = {.preset = plain->preset, .spec = plain->spec};
  before.rows = written_rows(s, block_rows);
  if (!before.rows || plain->spec.tensor_norm) return;
  before.scale_rows = s->scale_rows == s->rows ? before.rows : before.rows / block_rows;
  const mx_fault mover = {.region = {.of = MX_REGION_ROWS, .first = before.rows, .last = UINT64_MAX}, .op = MX_FAULT_LAYOUT_ZERO};
  if (mxi_fault_base_look_at(&at, &before, h->e) && at.codes <= MOST_WRONG) offer_behind(h, &mover, &at, &before, explain);
}

void mxi_search_behind(hunt *h, const char *over, explain_view *explain, int written) {
  const mx_sample *s = &h->samples[h->largest];
  unsigned bits = 0;
  for (size_t i = 0; i < s->rows * s->cols; i++) bits |= s->codes[i];
  bits = bits >= 64 ? 8 : bits >= 16 ? 6 : 4;
  if (written && !written_rows(s, 1)) return;
  for (size_t i = 0; i < mx_preset_count() && h->n == 1; i++) {
    const mx_preset *row = mx_preset_at(i);
    base plain;
    if (row->alias_of || (over ? strcmp(over, row->name) != 0 : row->status != MX_PRESET_STANDARD && !mxi_preset_well_known(row->name)))
      continue;
    if (!mxi_fault_base_fits(&plain, row, h->samples, 1) || plain.extra > 0 || mx_elem_format(plain.spec.elem)->bits != bits) continue;
    if (plain.spec.block_rows > 1 || !mxi_fault_base_look_at(&plain, s, h->e)) continue;
    size_t block_rows, width;
    mx_spec_block(&plain.spec, s->rows, s->cols, &block_rows, &width);
    if (written) explain_written(h, &plain, explain, block_rows);
    for (size_t k = 0; !written && k < sizeof movers / sizeof *movers && !sure(h->best) && !effort_over(h->e); k++) {
      moved_back m;
      base at = {.preset = plain.preset, .spec = plain.spec};
      const int ok = mxi_move_back(&m, s, &movers[k], width, h->e->until.lack) && mxi_view_fits(&at.spec, &m.s) &&
                     mxi_fault_base_look_at(&at, &m.s, h->e) && at.codes <= LEFT_OF_WRONG * plain.codes && at.codes <= MOST_WRONG;
      if (ok) offer_behind(h, &movers[k], &at, &m.s, explain);
      mxi_moved_back_close(&m);
    }
  }
}
