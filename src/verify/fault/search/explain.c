/* Finds which faults explain a sample under one preset: stage by stage, faults that explain the scales, and faults that explain the elements under the stored
 * scales. A fault that changes both is put in front of the rest. */
#include "verify/fault/search/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/search/fit.h"
#include "verify/fault/search/options.h"
#include "verify/fault/search/places.h"
#include "verify/fault/search/randoms.h"
#include "verify/fault/search/refute.h"
#include "verify/fault/search/thresholds.h"
#include "verify/fault/search/where.h"

enum { MOST_FOUND = 6 };

/* Of the cells that are wrong, a fault of its own must mend all; as the first of two, all but one in so many, or one in so many and spoil next to none
 * that are right: each of two causes may hide the other in most cells, but a cause that is there makes nothing worse. */
enum { FIRST_LEAVES_ONE_IN = 8, FIRST_MENDS_ONE_IN = 4, FIRST_SPOILS_ONE_IN = 16 };

/* What a code that is given again says in its favour: of a scale so much; of an element the bits of its format but two, which its neighbours share. */
enum { BITS_OF_A_SCALE = 3 };

/* The same of a stored tensor scale that a fault without a number gives and the preset does not: the lower half of a binary32, since the upper one is about
 * right under either. */
enum { BITS_OF_A_TENSOR = 16 };

/* Cells that are wrong with a fault and without it, without it alone, with it alone. */
typedef struct tally {
  uint64_t fails, needs, spoils;
} tally;

/* May it be one of two faults? */
static int is_part(const tally *t) {
  const uint64_t wrong = t->fails + t->needs;
  return t->fails * FIRST_LEAVES_ONE_IN <= wrong || (t->needs * FIRST_MENDS_ONE_IN >= wrong && t->spoils * FIRST_SPOILS_ONE_IN <= t->needs);
}

/* A fault and how well it does. */
typedef struct finding {
  mx_fault f;
  double cost;
  uint64_t held, wrong; /* bits for it, of cells that it was not fitted to; cells that are wrong with it */
} finding;

typedef struct findings {
  finding at[MOST_FOUND], partial[MOST_FOUND]; /* by cost; by what stays wrong */
  size_t n, n_partial;
  finding shifted[MOST_FOUND]; /* every code of the scales is the same number away: with a second fault that adds it they are right */
  int by[MOST_FOUND];
  size_t n_shifted;
} findings;

static void keep(finding *at, size_t *n, const finding *f, int by_wrong) {
  size_t i = *n;
  while (i && (by_wrong ? f->wrong < at[i - 1].wrong : f->cost < at[i - 1].cost)) i--;
  if (i >= MOST_FOUND) return;
  const size_t kept = *n < MOST_FOUND ? *n : MOST_FOUND - 1;
  memmove(at + i + 1, at + i, (kept - i) * sizeof *at);
  at[i] = *f;
  *n = kept + 1;
}

/* That a fault without a fitted number makes just these scales wrong and no other of n speaks for it, too: half of the bits that say which they are, since
 * other faults may change the same ones. */
static uint64_t bits_of_places(size_t n, uint64_t k) {
  if (!k || k >= n) return 0;
  const double all = (double)n, some = (double)k;
  return (uint64_t)((lgamma(all + 1) - lgamma(some + 1) - lgamma(all - some + 1)) / log(2) / 2);
}

/* Makes a finding from the states of the cells. */
static void judge(findings *out, const view *v, const option *o, const mx_fault *f, double bits, const uint8_t *state, int elements,
                  const tally *t) {
  finding g = {.f = *f, .wrong = t->fails + t->spoils};
  double where = 0;
  if (t->fails) {
    if (is_part(t)) keep(out->partial, &out->n_partial, &g, 1);
    return;
  }
  mx_region region[2];
  if (!mxi_where(region, &where, &g.held, v, state, elements)) return;
  if (o->placed && region->of != MX_REGION_ALL) return;
  if (!o->placed) g.f.region = region[0], g.f.also = region[1];
  const int are_words = !mxi_region_has_numbers(region[0].of) && !mxi_region_has_numbers(region[1].of);
  if (are_words && o->fit == FIT_NOT) g.held = t->needs; /* nothing was read off the data: both halves speak */
  const uint64_t places = elements || (o->fit != FIT_NOT && o->fit != FIT_PLACE) ? 0 : bits_of_places(v->r.down * v->r.across / 2, g.held);
  g.held = places + g.held * (elements ? v->r.plan.elem->bits - 2 : BITS_OF_A_SCALE);
  g.cost = mxi_option_cost(o, bits) + where;
  const int poor = (double)g.held < g.cost + BLAME_BITS;
  if (poor && (o->guess || region[1].of != MX_REGION_ALL)) return; /* two regions that little speaks for are found in anything */
  if (o->guess) g.held = 0;                                        /* it was backed well, but the next input may have another byte */
  keep(out->at, &out->n, &g, 0);
}

/* Tries a fault in addition to those of the view. */
static size_t with(mx_fault out[MX_FAULTS + 1], const view *v, const mx_fault *f) {
  memcpy(out, v->first, v->n_first * sizeof *out);
  out[v->n_first] = *f;
  return v->n_first + 1;
}

static int spoils_nan(const view *v, size_t k) { return v->r.stats[k].has_nan || v->r.stats[k].has_inf; }

/* ---- scales */

/* Is the difference between every code of rows [first, end) that was seen in an ordinary block and what a trial gives one number? It is put into *by,
 * which is 0 before the first. */
static int is_shifted(const view *v, size_t first, size_t end, int *by) {
  for (size_t k = first * v->r.across; k < end * v->r.across; k++) {
    const int here = (int)v->seen[k] - (int)v->trial_scales[k];
    if (spoils_nan(v, k) || v->r.stats[k].amax_finite == 0) continue;
    if (!here || (*by && here != *by)) return 0;
    *by = here;
  }
  return 1;
}

/* Compares the scales of a trial with those that were seen, in block rows [first, end). */
static void count_scales(tally *t, const view *v, size_t first, size_t end, uint8_t *state) {
  for (size_t k = first * v->r.across; k < end * v->r.across; k++) {
    const int was = v->scales[k] == v->seen[k], is = v->trial_scales[k] == v->seen[k];
    if (state) state[k] = CELL_SAME;
    if (spoils_nan(v, k)) continue;
    t->fails += !was && !is;
    t->needs += !was && is;
    t->spoils += was && !is;
    if (state && was != is) state[k] = was ? CELL_SPOILED : CELL_NEEDS;
  }
}

/* A trial of the scales is given up after so many block rows at the earliest, in which so many scales stay wrong: fewer of both, and a first fault of
 * two is lost where it does not act. */
enum { FIRST_ROWS = 4, REFUTED_BY = 16 };

/* Does the fault, which the run has, leave so much in a few rows with wrong scales that it is no part of an answer? Then the other rows need not be
 * made. */
static int scales_refuted(view *v) {
  fault_run *r = &v->r;
  tally t = {0};
  size_t wrong[VIEW_ROWS], n = 0, there = 0, seen = 0;
  if (r->down <= VIEW_ROWS || mxi_fault_moves_rows(r)) return 0;
  for (int choosing = 0; choosing < 2; choosing++)
    for (size_t d = 0; d < r->down; d++) {
      if (!memcmp(v->scales + d * r->across, v->seen + d * r->across, r->across * sizeof *v->scales)) continue;
      const size_t at = choosing ? seen++ : 0;
      if (!choosing) there++;
      if (choosing && n < VIEW_ROWS && (there <= VIEW_ROWS || at * VIEW_ROWS / there != (at + 1) * VIEW_ROWS / there)) wrong[n++] = d;
    }
  int shifted = !v->n_first, by = 0;
  for (size_t k = 0; k < n; k++) {
    const size_t d = wrong[k];
    effort_spend(v->e, SCALE_WORTH * r->across);
    if (mxi_fault_scales_of(r, v->trial_scales, d, d + 1)) return 0;
    count_scales(&t, v, d, d + 1, NULL);
    shifted = shifted && is_shifted(v, d, d + 1, &by);
    if (k + 1 >= FIRST_ROWS && !shifted && t.fails > REFUTED_BY && !is_part(&t)) return 1;
  }
  return 0;
}

static void try_scales(findings *out, view *v, const option *o, const mx_fault *f, double bits, uint8_t *state) {
  mx_fault all[MX_FAULTS + 1];
  fault_run *r = &v->r;
  const size_t blocks = r->down * r->across;
  tally t = {0};
  mxi_fault_set(r, all, with(all, v, f));
  int bad = scales_refuted(v);
  if (!bad) effort_spend(v->e, SCALE_WORTH * blocks);
  bad = bad || mxi_fault_scales(r, v->trial_scales);
  mxi_fault_set(r, v->first, v->n_first);
  if (bad) return;
  int by = 0;
  if (!v->n_first && is_shifted(v, 0, r->down, &by) && by && out->n_shifted < MOST_FOUND) {
    out->by[out->n_shifted] = by;
    out->shifted[out->n_shifted++] = (finding){.f = *f, .cost = mxi_option_cost(o, bits) + 10, .held = blocks / 2};
  }
  count_scales(&t, v, 0, r->down, state);
  judge(out, v, o, f, bits, state, 0, &t);
}

/* Where every scale of an ordinary block is the same number of codes away, that number is tried, as of another bias or another largest exponent. */
static void try_shifted(findings *out, view *v, int used, uint8_t *state) {
  int by = 0;
  memcpy(v->trial_scales, v->scales, v->r.down * v->r.across * sizeof *v->scales);
  if (!is_shifted(v, 0, v->r.down, &by) || !by) return;
  const option o = {.fault = {.region = {.of = MX_REGION_ALL}, .op = used ? MX_FAULT_SCALE_PLUS : MX_FAULT_STORE_PLUS, .number = by}};
  try_scales(out, v, &o, &o.fault, 4 + log2(fabs((double)by)), state);
}

/* Fits the number of an option: to all cells, or to those that are wrong where it acts in a part of them. A plain number goes before a guess. */
static int fit_to(mx_fault *f, double *bits, option *o, view *v, int (*fit)(mx_fault *, fitted *, view *, int)) {
  int fits = 0;
  for (int only_wrong = 0; only_wrong < 2 && (!fits || o->guess); only_wrong++) {
    mx_fault own = o->fault;
    fitted got;
    if (!fit(&own, &got, v, only_wrong) || (fits && got.guessed)) continue;
    *f = own;
    *bits = got.bits;
    o->guess = got.guessed;
    fits = 1;
  }
  return fits;
}

/* With `used` the faults of the scale that the elements are divided by are tried, otherwise those of the stored scale. */
static void explain_scales(findings *out, view *v, int used, uint8_t *state) {
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), v->e->until.lack);
  *out = (findings){.n = 0};
  if (!o) return;
  const size_t n =
      mxi_fault_options(o, used ? MX_STAGE_AMAX : MX_STAGE_STORE, used ? MX_STAGE_SCALE : MX_STAGE_STORE, &v->r.spec, v->rows, v->s->cols);
  try_shifted(out, v, used, state);
  for (size_t i = 0; i < n && !effort_over(v->e); i++) {
    double bits = 4;
    if (o[i].fit == FIT_NOT) {
      try_scales(out, v, &o[i], &o[i].fault, bits, state);
      continue;
    }
    mx_fault f = o[i].fault;
    if (o[i].fit != FIT_PLACE && !fit_to(&f, &bits, &o[i], v, mxi_fit_scales)) continue;
    if (o[i].fit == FIT_PLACE && !mxi_fit_place(&f, &bits, v)) continue;
    try_scales(out, v, &o[i], &f, bits, state);
  }
  if (mxi_fault_scales(&v->r, v->trial_scales)) out->n = 0; /* r->used is that of the view again */
  free(o);
}

/* ---- elements */

/* Compares codes under the stored scales, or under the run's own; at first only in the sampled rows, until all is right there. */
static void try_codes(findings *out, view *v, int seen, const option *o, const mx_fault *f, double bits, uint8_t *state) {
  mx_fault all[MX_FAULTS + 1];
  fault_run *r = &v->r;
  const uint8_t *was = seen ? v->codes : v->by_plain;
  const uint32_t *scales = seen ? v->seen : NULL;
  tally t = {0};
  mxi_fault_set(r, all, with(all, v, f));
  for (size_t k = 0; k < v->n_sample; k++) {
    const size_t d = v->sample[k], from = d * r->block_rows * r->cols;
    const size_t end = (d + 1) * r->block_rows < r->rows ? (d + 1) * r->block_rows * r->cols : r->rows * r->cols;
    mxi_fault_codes(r, v->trial_codes, scales, d, d + 1);
    effort_spend(v->e, end - from);
    for (size_t i = from; i < end; i++) {
      const int right = was[i] == v->s->codes[i], is = v->trial_codes[i] == v->s->codes[i];
      t.fails += !right && !is;
      t.needs += !right && is;
      t.spoils += right && !is;
    }
    if (t.fails > 64 && !is_part(&t)) break;
  }
  if (t.fails) {
    mxi_fault_set(r, v->first, v->n_first);
    judge(out, v, o, f, bits, state, 1, &t);
    return;
  }
  effort_spend(v->e, 2 * r->rows * r->cols);
  mxi_fault_codes(r, v->trial_codes, scales, 0, SIZE_MAX);
  mxi_fault_set(r, v->first, v->n_first);
  memset(state, CELL_SAME, r->rows * r->cols);
  t = (tally){0};
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    const int right = was[i] == v->s->codes[i], is = v->trial_codes[i] == v->s->codes[i];
    t.fails += !right && !is;
    t.needs += !right && is;
    t.spoils += right && !is;
    if (right != is) state[i] = right ? CELL_SPOILED : CELL_NEEDS;
  }
  judge(out, v, o, f, bits, state, 1, &t);
}

static void explain_codes(findings *out, view *v, int seen, uint8_t *state) {
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), v->e->until.lack);
  *out = (findings){.n = 0};
  if (!o) return;
  uint32_t *const used = v->r.used;
  if (seen && !v->n_first) v->r.used = v->seen; /* what divides by the scale of another block divides by the one that is stored there */
  const size_t n = mxi_fault_options(o, MX_STAGE_DIVISOR, MX_STAGE_CODE, &v->r.spec, v->rows, v->s->cols);
  for (size_t i = 0; i < n && !effort_over(v->e); i++) {
    double bits = 4;
    if (o[i].fit == FIT_NOT) {
      try_codes(out, v, seen, &o[i], &o[i].fault, bits, state);
      continue;
    }
    mx_fault f = o[i].fault;
    if (!seen || (o[i].fit != FIT_PLACE && !fit_to(&f, &bits, &o[i], v, mxi_fit_codes))) continue;
    if (o[i].fit == FIT_PLACE && !mxi_fit_code(&f, &bits, &o[i].guess, v)) continue;
    try_codes(out, v, seen, &o[i], &f, bits, state);
  }
  option chance = {.fit = FIT_NOT};
  double bits;
  if (seen && !out->n && mxi_find_random(&chance.fault, &bits, v)) try_codes(out, v, seen, &chance, &chance.fault, bits, state);
  v->r.used = used;
  free(o);
}

/* ---- blocks as a whole */

/* The state of each block of rows [first, end): its scale and codes with a change, compared with those without it. */
static void block_states(uint8_t *state, tally *t, const view *v, const uint32_t *scales, const uint8_t *codes, size_t first, size_t end) {
  const fault_run *r = &v->r;
  *t = (tally){0};
  for (size_t k = first * r->across; k < end * r->across; k++) {
    const size_t d = k / r->across, a = k % r->across;
    int was = v->scales[k] == v->seen[k], is = scales[k] == v->seen[k];
    for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows && (was || is); row++)
      for (size_t c = a * r->block_cols; c < r->cols && c < (a + 1) * r->block_cols; c++) {
        const size_t at = row * r->cols + c;
        was &= v->by_plain[at] == v->s->codes[at];
        is &= codes[at] == v->s->codes[at];
      }
    state[k] = CELL_SAME;
    if (spoils_nan(v, k)) continue;
    t->fails += !was && !is;
    t->needs += !was && is;
    t->spoils += was && !is;
    if (was != is) state[k] = was ? CELL_SPOILED : CELL_NEEDS;
  }
}

static void explain_layout(findings *out, view *v, uint8_t *state) {
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), v->e->until.lack);
  *out = (findings){.n = 0};
  if (!o) return;
  const fault_run *r = &v->r;
  const size_t n = mxi_fault_options(o, MX_STAGE_LAYOUT, MX_STAGE_LAYOUT, &r->spec, v->rows, v->s->cols);
  for (size_t i = 0; i < n && !effort_over(v->e); i++) {
    tally t;
    effort_spend(v->e, 2 * r->rows * r->cols);
    mx_fault all[MX_FAULTS + 1];
    memcpy(v->trial_codes, v->by_plain, r->rows * r->cols);
    memcpy(v->trial_scales, v->scales, r->down * r->across * sizeof *v->trial_scales);
    mxi_fault_set(&v->r, all, with(all, v, &o[i].fault));
    const int ok = mxi_fault_layout(r, v->trial_codes, v->trial_scales);
    mxi_fault_set(&v->r, v->first, v->n_first);
    if (!ok) continue;
    block_states(state, &t, v, v->trial_scales, v->trial_codes, 0, r->down);
    judge(out, v, &o[i], &o[i].fault, 4, state, 0, &t);
  }
  free(o);
}

/* ---- a preset with faults */

/* Codes and scales that stand in another place, or nowhere. */
static void offer_layouts(hunt *h, view *v, const base *b, double cost, findings *found, uint8_t *state) {
  mx_fault all[MX_FAULTS + 1];
  explain_layout(found, v, state);
  for (size_t k = 0; k < found->n; k++)
    mxi_hunt_offer(h, b->preset, &b->spec, all, with(all, v, &found->at[k].f), cost + found->at[k].cost, found->at[k].held);
}

/* Where the elements are right and the scales are not, those may stand in a layout, all of them or those of some tiles. Tiles are large, so all rows are
 * looked at. */
void mxi_explain_scales_places(hunt *h, const base *b) {
  const mx_sample *s = &h->samples[h->largest];
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), h->e->until.lack);
  view *v = noted(malloc(sizeof *v), h->e->until.lack);
  findings *found = noted(calloc(1, sizeof *found), h->e->until.lack);
  uint8_t *state = NULL;
  if (v && o && found && mxi_view_open_whole(v, &b->spec, s, h->e)) {
    const size_t blocks = v->r.down * v->r.across, n = mxi_fault_options(o, MX_STAGE_LAYOUT, MX_STAGE_LAYOUT, &v->r.spec, s->rows, s->cols);
    state = noted(malloc(blocks + 1), h->e->until.lack);
    for (size_t i = 0; i < n && state && !effort_over(h->e); i++) {
      const mx_fault *f = &o[i].fault;
      tally t = {0};
      if (f->op != MX_FAULT_LAYOUT_SWIZZLE && f->op != MX_FAULT_LAYOUT_SWIZZLE_TWICE && f->op != MX_FAULT_LAYOUT_SCALES_TRANSPOSED &&
          !mxi_fault_is_pitch(f->op))
        continue;
      effort_spend(h->e, SCALE_WORTH * blocks);
      memcpy(v->trial_scales, v->scales, blocks * sizeof *v->trial_scales);
      mxi_fault_set(&v->r, f, 1);
      const int ok = mxi_fault_layout(&v->r, v->trial_codes, v->trial_scales);
      mxi_fault_set(&v->r, NULL, 0);
      memset(state, CELL_SAME, blocks);
      for (size_t k = 0; ok && k < blocks; k++) {
        const int was = v->scales[k] == v->seen[k], is = v->trial_scales[k] == v->seen[k];
        t.fails += !was && !is;
        t.needs += !was && is;
        t.spoils += was && !is;
        if (was != is) state[k] = was ? CELL_SPOILED : CELL_NEEDS;
      }
      if (ok) judge(found, v, &o[i], f, 4, state, 0, &t);
    }
    moved_bits m;
    if (!found->n && mxi_find_scales_bits(&m, v))
      keep(found->at, &found->n, &(finding){.f = m.fault, .cost = m.cost, .held = m.held * BITS_OF_A_SCALE}, 0);
    for (size_t k = 0; k < found->n; k++)
      mxi_hunt_offer(h, b->preset, &b->spec, &found->at[k].f, 1, b->extra + found->at[k].cost, found->at[k].held);
  }
  if (v) mxi_view_close(v);
  free(state);
  free(found);
  free(v);
  free(o);
}

/* Codes that stand with the bits of their place in another order are one more thing that explains them. */
static void add_codes_bits(findings *out, const view *v, const uint8_t *codes) {
  moved_bits m;
  if (!mxi_find_codes_bits(&m, v, codes)) return;
  keep(out->at, &out->n, &(finding){.f = m.fault, .cost = m.cost, .held = m.held * (v->r.plan.elem->bits - 2)}, 0);
}

/* What speaks for several faults together; 0: nothing was counted for the first. */
static uint64_t least_held(uint64_t held, uint64_t other) { return held && held < other ? held : other; }

/* Thresholds of the rounding that lie elsewhere, beside the faults of the view and one of the scale, if there is one. */
static void offer_thresholds(hunt *h, const view *v, const base *b, double cost, uint64_t held, const thresholds *t, const finding *scale) {
  mx_fault all[MX_FAULTS + 1];
  size_t n = v->n_first;
  memcpy(all, v->first, n * sizeof *all);
  if (n + (scale != NULL) + t->n > MX_FAULTS) return;
  if (scale) all[n++] = scale->f;
  memcpy(all + n, t->fault, t->n * sizeof *all);
  uint64_t least = least_held(held, t->held);
  if (scale && scale->held < least) least = scale->held;
  mxi_hunt_offer(h, b->preset, &b->spec, all, n + t->n, cost + t->cost + (scale ? scale->cost : 0), least);
}

/* The same with f in front of the faults that are searched for, if it can be run. */
static void explain_behind(hunt *h, const view *v, const base *b, double cost, const mx_fault *f) {
  mx_fault all[MX_FAULTS + 1];
  view *next = noted(malloc(sizeof *next), h->e->until.lack);
  const size_t n = with(all, v, f);
  if (next && mxi_view_open(next, &b->spec, v->s, all, n, h->e)) mxi_explain(h, next, b, cost + BITS_OF_A_FAULT, 0, DEPTH_ONE);
  if (next) mxi_view_close(next);
  free(next);
}

/* Another rounding makes few codes wrong, or hides among those that another fault of the codes makes wrong. */
static void explain_rounded(hunt *h, const view *v, const base *b, double cost) {
  static const int ops[] = {MX_FAULT_ELEMENT_TRUNCATE, MX_FAULT_ELEMENT_TIES_AWAY, MX_FAULT_ELEMENT_TIES_ZERO, MX_FAULT_ELEMENT_AWAY};
  for (size_t i = 0; i < sizeof ops / sizeof *ops && !sure(h->best); i++)
    explain_behind(h, v, b, cost, &(mx_fault){.region = {.of = MX_REGION_ALL}, .op = ops[i]});
}

/* Faults of the scales: each alone where no element is wrong under them, and each with one of the elements where some are. */
static void offer_scales(hunt *h, const view *v, const base *b, double cost, uint64_t held, const findings *scales, const findings *elements,
                         uint64_t wrong) {
  mx_fault all[MX_FAULTS + 1];
  for (size_t i = 0; i < scales->n; i++) {
    const finding *scale = &scales->at[i];
    const size_t n = with(all, v, &scale->f);
    if (!wrong) mxi_hunt_offer(h, b->preset, &b->spec, all, n, cost + scale->cost, least_held(held, scale->held));
    for (size_t k = 0; k < elements->n && n < MX_FAULTS && wrong; k++) {
      const finding *element = &elements->at[k];
      all[n] = element->f;
      mxi_hunt_offer(h, b->preset, &b->spec, all, n + 1, cost + scale->cost + element->cost, fmin(scale->held, element->held));
    }
  }
}

void mxi_explain(hunt *h, view *v, const base *b, double cost, uint64_t held, depth deeper) {
  const size_t cells = v->rows * v->s->cols;
  uint8_t *state = noted(malloc(cells + 1), h->e->until.lack);
  findings *found = noted(calloc(5, sizeof *found), h->e->until.lack), *used = found, *stored = found + 1, *codes = found + 2,
           *plain = found + 3;
  mx_fault all[MX_FAULTS + 1];
  if (state && found) {
    mxi_view_all_codes(v);
    const int scales_right = !v->scales_wrong, room = v->n_first < MX_FAULTS;
    if (scales_right && !v->codes_wrong) mxi_hunt_offer(h, b->preset, &b->spec, v->first, v->n_first, cost, held);
    if (!scales_right && room) explain_scales(used, v, 1, state);
    if (!scales_right && room) explain_scales(stored, v, 0, state);
    if (v->codes_wrong && room && (scales_right || used->n)) explain_codes(codes, v, 1, state);
    if (v->codes_wrong && room && (scales_right || used->n)) add_codes_bits(codes, v, v->codes);
    if (v->plain_wrong && room && !scales_right && stored->n) add_codes_bits(plain, v, v->by_plain);
    thresholds t = {.n = 0};
    if (v->codes_wrong && room && (scales_right || used->n)) mxi_find_thresholds(&t, v);
    if (t.n && scales_right) offer_thresholds(h, v, b, cost, held, &t, NULL);
    for (size_t i = 0; t.n && i < used->n; i++) offer_thresholds(h, v, b, cost, held, &t, &used->at[i]);
    if (v->plain_wrong && room && stored->n) explain_codes(plain, v, 0, state);
    offer_scales(h, v, b, cost, held, used, codes, v->codes_wrong);
    for (size_t i = 0; i < used->n_shifted; i++)
      for (int stored_alone = 0; stored_alone < 2; stored_alone++) {
        const int op = stored_alone ? MX_FAULT_STORE_PLUS : MX_FAULT_SCALE_PLUS;
        all[0] = used->shifted[i].f;
        all[1] = (mx_fault){.region = {.of = MX_REGION_ALL}, .op = op, .number = used->by[i]};
        mxi_hunt_offer(h, b->preset, &b->spec, all, 2, used->shifted[i].cost + b->extra, used->shifted[i].held);
      }
    offer_scales(h, v, b, cost, held, stored, plain, v->plain_wrong);
    for (size_t k = 0; k < codes->n && scales_right; k++)
      mxi_hunt_offer(h, b->preset, &b->spec, all, with(all, v, &codes->at[k].f), cost + codes->at[k].cost, least_held(held, codes->at[k].held));
    if (!sure(h->best) && room && deeper == DEPTH_ALL) offer_layouts(h, v, b, cost, &found[4], state);
    /* Elements may be divided by what the fault of a maximum makes of it before it is rounded. */
    if (deeper && used->n && !codes->n && v->codes_wrong && v->n_first + 1 < MX_FAULTS && !sure(h->best) &&
        mx_fault_row_at(used->at[0].f.op)->stage == MX_STAGE_AMAX)
      explain_behind(h, v, b, cost, &used->at[0].f);
    /* Two of one side: the one that mends most first. */
    for (size_t s = 0; s < 5 && deeper && !sure(h->best) && v->n_first + 1 < MX_FAULTS; s++)
      for (size_t i = 0; i < found[s].n_partial && i < (size_t)deeper && !sure(h->best); i++)
        if (mx_fault_row_at(found[s].partial[i].f.op)->stage != MX_STAGE_LAYOUT) explain_behind(h, v, b, cost, &found[s].partial[i].f);
    if (deeper == DEPTH_ALL && !sure(h->best) && v->codes_wrong && v->n_first + 1 < MX_FAULTS) explain_rounded(h, v, b, cost);
  }
  free(found);
  free(state);
}

/* One fault, of a sample in which something was put back. */
void mxi_explain_one(hunt *h, view *v, const base *b) { mxi_explain(h, v, b, b->extra, 0, DEPTH_ONE); }

/* What is moved alone: of codes and scales that are both wrong it may be the plainer answer. */
void mxi_explain_moved(hunt *h, const base *b, view *v) {
  uint8_t *state = noted(malloc(v->rows * v->s->cols + 1), h->e->until.lack);
  findings *found = noted(calloc(1, sizeof *found), h->e->until.lack);
  if (state && found) {
    mxi_view_all_codes(v);
    offer_layouts(h, v, b, b->extra, found, state);
  }
  free(state);
  free(found);
}

void mxi_explain_number(blame *out, const hunt *h) {
  view *v = noted(malloc(sizeof *v), h->e->until.lack);
  for (size_t i = 0; v && i < out->n; i++) {
    mx_fault f = out->fault[i];
    const int stage = mx_fault_row_at(f.op)->stage, of_scales = stage >= MX_STAGE_AMAX && stage <= MX_STAGE_STORE;
    fitted got = {0};
    if (mx_fault_row_at(f.op)->arg != MX_FAULT_ARG_NUMBER || !(of_scales || stage == MX_STAGE_CLAMP || stage == MX_STAGE_ELEMENT)) continue;
    if (mxi_view_open(v, &out->spec, &h->samples[h->largest], &out->fault[!i], out->n - 1, h->e)) {
      mxi_view_all_codes(v);
      const int a_part = !mxi_fault_is_everywhere(&f);
      if ((of_scales ? mxi_fit_scales : mxi_fit_codes)(&f, &got, v, a_part) && got.guessed) out->least = got.low, out->most = got.high;
    }
    mxi_view_close(v);
  }
  free(v);
}

/* Is there a block, among those that were counted, which is wrong without the faults of v and with them? Then no part of the data is theirs alone. */
static int leaves_some(uint8_t *state, const view *plain, const view *v) {
  tally t = {0};
  for (size_t k = 0; k < v->r.down * v->r.across; k++)
    if (plain->scales[k] != plain->seen[k] && v->scales[k] != v->seen[k] && !spoils_nan(plain, k)) return 1;
  const size_t step = mxi_view_step(v);
  for (size_t d = 0; d < v->r.down && !t.fails; d += step) block_states(state, &t, plain, v->scales, v->by_plain, d, d + 1);
  return t.fails != 0;
}

/* The view with the fault in front; or, where the tensor scale is that of the input without it, as where one kernel takes the maximum and another reads
 * wrongly, with both. */
static int open_early(view *v, const base *b, const mx_sample *s, const mx_fault *f, effort *e) {
  const mx_fault both[] = {*f, {.region = {.of = MX_REGION_ALL}, .op = MX_FAULT_TENSOR_AS_GIVEN}};
  if (mxi_view_open_early(v, &b->spec, s, f, 1, e)) return 1;
  mxi_view_close(v);
  return b->spec.tensor_norm && !b->other_tensor && mx_fault_row_at(f->op)->stage < MX_STAGE_TENSOR_AMAX &&
         mxi_view_open_early(v, &b->spec, s, both, 2, e);
}

/* Does the fault in front of v change nothing of what the blocks are made of? */
static int is_nothing(const view *plain, const view *v) {
  const fault_run *r = &v->r, *p = &plain->r;
  return !r->groups && !memcmp(&r->amax, &p->amax, sizeof r->amax) && !memcmp(&r->plan, &p->plan, sizeof r->plan) &&
         !memcmp(r->x, p->x, r->rows * r->cols * sizeof *r->x);
}

/* A fault of an early stage that may be an answer gives the rest of the search another start. */
static void try_early(hunt *h, const base *b, view *plain, const option *o, const mx_fault *f, double bits, uint8_t *state, findings *found) {
  view *v = noted(malloc(sizeof *v), h->e->until.lack);
  const int stage = mx_fault_row_at(f->op)->stage;
  if (v && open_early(v, b, plain->s, f, h->e) && !is_nothing(plain, v)) {
    const double cost = mxi_option_cost(o, bits) + b->extra + (v->n_first > 1 ? BITS_OF_A_FAULT : 0);
    tally t;
    if (!v->scales_wrong && !v->codes_wrong) {
      mxi_view_all_codes(v);
      block_states(state, &t, plain, v->scales, v->by_plain, 0, v->r.down);
      uint64_t held = 0;
      for (size_t k = 0; k < v->r.down * v->r.across; k++) held += state[k] == CELL_NEEDS && !mxi_is_for_fit(k / v->r.across, k % v->r.across);
      const int tells = stage == MX_STAGE_TENSOR && b->other_tensor && o->fit == FIT_NOT;
      const uint64_t told = !tells ? 0 : mxi_fault_stores_tensor_alone(f->op) ? BITS_OF_STORED : BITS_OF_A_TENSOR;
      mxi_hunt_offer(h, b->preset, &b->spec, v->first, v->n_first, cost, held * 2 * BITS_OF_A_SCALE + told);
      if (!sure(h->best)) mxi_explain(h, v, b, cost, 0, DEPTH_ONE);
    } else if (!v->scales_wrong || !v->codes_wrong) {
      if (!sure(h->best) || h->best->n > 1) mxi_explain(h, v, b, cost, 0, DEPTH_ONE);
    } else if (!o->placed && v->n_first == 1 && !leaves_some(state, plain, v)) { /* in a part of it? */
      mxi_view_all_codes(v);
      block_states(state, &t, plain, v->scales, v->by_plain, 0, v->r.down);
      *found = (findings){.n = 0};
      judge(found, plain, o, f, bits, state, 0, &t);
      for (size_t k = 0; k < found->n; k++)
        mxi_hunt_offer(h, b->preset, &b->spec, &found->at[k].f, 1, found->at[k].cost + b->extra, found->at[k].held);
    }
  }
  if (v) mxi_view_close(v);
  free(v);
}

/* Tries faults of stages [first, last], of the input up to the tensor scale. */
void mxi_explain_early(hunt *h, const base *b, view *plain, int first, int last) {
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), h->e->until.lack);
  uint8_t *state = noted(malloc(plain->rows * plain->s->cols + 1), h->e->until.lack);
  findings *found = noted(calloc(1, sizeof *found), h->e->until.lack);
  refuter by;
  const size_t n = o ? mxi_fault_options(o, first, last, &b->spec, plain->s->rows, plain->s->cols) : 0;
  if (state && found) mxi_view_all_codes(plain);
  mxi_refuter_open(&by, plain, &b->spec, b->other_tensor);
  for (size_t i = 0; i < n && state && found && !effort_over(h->e); i++) {
    mx_fault f = o[i].fault;
    const int stage = mx_fault_row_at(f.op)->stage;
    double bits = 4;
    fitted got;
    if ((stage == MX_STAGE_TENSOR_AMAX || stage == MX_STAGE_TENSOR) && b->spec.tensor_norm == MX_TENSOR_NORM_NONE) continue;
    if (stage == MX_STAGE_TENSOR && b->other_tensor && !mxi_fault_stores_tensor(f.op)) continue;
    if (b->spec.had_size && stage == MX_STAGE_ROTATION) continue;
    if (o[i].fit == FIT_ZERO && !mxi_fit_zero(&f, &bits, plain)) continue;
    if (o[i].fit == FIT_ROWS && !mxi_fits_rows(&f, plain)) continue;
    if (o[i].fit == FIT_TENSOR && !mxi_fit_tensor_scale(&f, &bits, plain)) continue;
    if (o[i].fit == FIT_CODES && (!mxi_fit_codes(&f, &got, plain, 1) || got.guessed)) continue;
    if (o[i].fit == FIT_CODES) bits = got.bits;
    if (o[i].fit == FIT_PITCH ? !mxi_fit_pitch(&f, &bits, plain) : f.op == MX_FAULT_INPUT_TRANSPOSED && !mxi_signs_allow(&f, plain)) continue;
    if (o[i].fit == FIT_SCALES && plain->r.plan.has_tensor_scale) {
      if (!mxi_fit_tensor(&f, &bits, plain)) continue;
    } else if (o[i].fit == FIT_SCALES) {
      f.op = MX_FAULT_AMAX_MOST;
      if (!mxi_fit_scales(&f, &got, plain, 1) || got.guessed) continue;
      bits = got.bits;
      f.op = MX_FAULT_INPUT_CLIP;
    }
    if (!mxi_refuted(&by, &f)) try_early(h, b, plain, &o[i], &f, bits, state, found);
  }
  mxi_refuter_close(&by);
  free(o);
  free(state);
  free(found);
}
