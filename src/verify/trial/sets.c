/* Chooses sets of blocks, and in each block the elements that tell most about rules. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/trial.h"

/* A block of up to so many elements is examined whole. Of larger ones the special values and the largest are, and so many elements that are
 * nearest to a tie, within NEAR_TIE of a step, and so many others spread over the block. With fewer, fewer rules are told apart at first; each
 * further one is computed for every spec that is tried. */
enum { WHOLE_BLOCK = 20, NEAR = 6, OTHERS = 8 };
static const double NEAR_TIE = 0.05;
enum { SCATTER = 7 }; /* the others lie elsewhere in each block */

/* Distance of y to the nearest midpoint of two codes, in steps there; formats of few bits. */
static double tie_distance(const mx_format *f, double y) {
  static const mx_encoding down = {.round = MX_ROUND_RTZ}, away = {.round = MX_ROUND_RTP};
  y = fabs(y);
  if (!(y > 0) || y >= mx_format_max(f)) return 1;
  const double a = mx_round_to(f, y, &down, 0), b = mx_round_to(f, y, &away, 0);
  return b > a ? fabs((y - a) / (b - a) - 0.5) : 0.5;
}

/* Chooses the elements of a large block that tell most. */
static void choose_elements(set_item *item, const observation *o) {
  const mx_format *f = mx_elem_format(o->formats.elem);
  const double scale = fabs(mx_decode(mx_scale_format(o->formats.scale), o->blocks[item->block].scale));
  const double used = o->formats.scale_form == MX_SCALE_FORM_ENCODE ? 1 / scale : scale;
  const block_at *b = &o->blocks[item->block];
  size_t ld, rows, cols;
  mxi_observation_extent(o, b, &rows, &cols);
  const float *first = mxi_observation_x(o, b->sample, &ld) + b->row * ld + b->col;
  const size_t area = rows * cols;
  size_t kinds[7], largest = SIZE_MAX, near[NEAR];
  double nearest[NEAR], most = -1;
  for (size_t i = 0; i < 7; i++) kinds[i] = SIZE_MAX;
  for (size_t i = 0; i < NEAR; i++) near[i] = SIZE_MAX, nearest[i] = NEAR_TIE;
  for (size_t k = 0; k < area; k++) {
    const float x = first[k / cols * ld + k % cols];
    const size_t at = k / cols * o->block_cols + k % cols;
    const int neg = signbit(x) != 0, kind = isnan(x) ? neg : isinf(x) ? 2 + neg : x == 0 ? 4 + neg : fabsf(x) < FLT_MIN ? 6 : 7;
    if (kind < 7 && kinds[kind] == SIZE_MAX) kinds[kind] = at;
    if (isfinite(x) && fabs((double)x) > most) most = fabs((double)x), largest = at;
    if (kind != 7 || !(used > 0) || isinf(used)) continue;
    double d = tie_distance(f, (double)x / used);
    size_t j = NEAR;
    while (j && d < nearest[j - 1]) j--;
    for (size_t m = NEAR; m-- > j + 1;) near[m] = near[m - 1], nearest[m] = nearest[m - 1];
    if (j < NEAR) near[j] = at, nearest[j] = d;
  }
  for (size_t i = 0; i < 7; i++)
    if (kinds[i] != SIZE_MAX) mxi_set_item_look_at(item, (uint32_t)kinds[i]);
  if (largest != SIZE_MAX) mxi_set_item_look_at(item, (uint32_t)largest);
  for (size_t i = 0; i < NEAR; i++)
    if (near[i] != SIZE_MAX) mxi_set_item_look_at(item, (uint32_t)near[i]);
  for (size_t i = 0; i < OTHERS; i++) {
    const size_t k = (i * area + item->block * SCATTER % area) / OTHERS % area;
    mxi_set_item_look_at(item, (uint32_t)(k / cols * o->block_cols + k % cols));
  }
}

int mxi_set_add(block_set *s, uint32_t block, const mx_spec *wrong) {
  const observation *o = s->of;
  size_t at = s->n;
  while (at && s->at[at - 1].block > block) at--;
  if (at && s->at[at - 1].block == block) {
    set_item *old = &s->at[at - 1];
    const uint32_t before = old->n;
    if (wrong && o->samples[0].codes) mxi_set_item_add_wrong(old, o, wrong);
    return old->n != before;
  }
  if (s->n == s->room) {
    const size_t room = s->room ? 2 * s->room : 64;
    set_item *more = noted(realloc(s->at, room * sizeof *more), o->lack);
    if (!more) return 0;
    s->at = more;
    s->room = room;
  }
  memmove(s->at + at + 1, s->at + at, (s->n - at) * sizeof *s->at);
  s->n++;
  s->at[at] = (set_item){.block = block};
  if (!o->samples[0].codes) return 1;
  size_t rows, cols;
  mxi_observation_extent(o, &o->blocks[block], &rows, &cols);
  if (rows * cols > WHOLE_BLOCK)
    choose_elements(&s->at[at], o);
  else
    for (size_t k = 0; k < rows * cols; k++) mxi_set_item_look_at(&s->at[at], (uint32_t)(k / cols * o->block_cols + k % cols));
  if (wrong) mxi_set_item_add_wrong(&s->at[at], o, wrong);
  return 1;
}

void mxi_set_free(block_set *s) {
  free(s->at);
  *s = (block_set){0};
}
