/* Finds which faults over which preset give every byte. Presets are ranked by what they leave unexplained, scales and elements separately, and the nearest
 * ones are searched in passes, what is likely and soon tried first. */
#include "verify/fault/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/search/answers.h"
#include "verify/fault/search/bases.h"
#include "verify/fault/search/behind.h"
#include "verify/fault/search/explain.h"
#include "verify/fault/search/known.h"
#include "verify/fault/search/randoms.h"
#include "verify/trial/bases.h"

/* Elements that a search runs at most: two seconds or so on a processor of 2020. More finds few faults more, and keeps those waiting who have none. */
static const uint64_t ALL_WORK = UINT64_C(80000000);

/* The same where a spec explains everything already and a rival is looked for. */
static const uint64_t RIVAL_WORK = UINT64_C(20000000);

/* How far each pass goes, and over how many bases. */
typedef enum pass { PASS_PLAIN, PASS_TENSOR, PASS_EARLY, PASS_DEEP, PASS_LAYOUT, PASSES } pass;
static const size_t bases_of_pass[PASSES] = {MOST_BASES, MOST_BASES, 4, 3, 2};

/* Over so many bases two faults of one side are looked for before faults of the input, which take longest. */
enum { OF_LIKELY = 2 };

/* An answer of so many bits, one fault without a constant, is not made better by another base. */
static const double CHEAP = 20;

/* Over each of the chosen bases; the cheapest answer of the first pass that has one. */
static void search_bases(hunt *h, const base *b, const size_t *chosen, size_t n, pass how) {
  const mx_sample *s = &h->samples[h->largest];
  for (size_t k = 0; k < n && k < bases_of_pass[how] && !effort_over(h->e); k++) {
    if (h->best->n == 1 && h->best->cost <= CHEAP && mxi_blame_confirmed(h->best)) return;
    const base *at = &b[chosen[k]];
    if (at->other_tensor && how != PASS_EARLY && how != PASS_TENSOR) continue;
    if (how == PASS_PLAIN && at->by_plain == 0 && at->scales > 0) mxi_explain_scales_places(h, at);
    view *v = noted(malloc(sizeof *v), h->e->until.lack);
    if (v && mxi_view_open(v, &at->spec, s, NULL, 0, h->e)) {
      if (how == PASS_TENSOR)
        mxi_explain_early(h, at, v, MX_STAGE_TENSOR, MX_STAGE_TENSOR);
      else if (how == PASS_EARLY) /* a fault of the tensor scale may change the stored one, too */
        mxi_explain_early(h, at, v, MX_STAGE_INPUT, at->other_tensor ? MX_STAGE_TENSOR : MX_STAGE_TENSOR_AMAX);
      else if (how == PASS_LAYOUT)
        mxi_explain_moved(h, at, v);
      else
        mxi_explain(h, v, at, at->extra, 0, how == PASS_DEEP ? DEPTH_ALL : k < OF_LIKELY ? DEPTH_LIKELY : DEPTH_ONE);
    }
    if (v) mxi_view_close(v);
    free(v);
  }
}

/* A rotation is tried in front only if at most this share of the scales, or of the elements, is wrong with it. A larger share admits rotations
 * that are not there, each of which costs a whole search; a smaller one loses rotated kernels whose fault acts widely. */
static const double MOST_WRONG_ROTATED = 0.02;

/* The same behind a rotation that the tensor's maximum does not know: the stored tensor scale, to the last bit, says that it is so. */
static void search_rotated_late(hunt *h, const base *at) {
  const mx_fault f = {.region = {.of = MX_REGION_ALL}, .op = MX_FAULT_TENSOR_AS_GIVEN};
  view *v = noted(malloc(sizeof *v), h->e->until.lack);
  if (v && mxi_view_open_early(v, &at->spec, &h->samples[h->largest], &f, 1, h->e)) {
    const double scales = (double)v->scales_wrong / (double)(v->r.down * v->r.across), codes = (double)v->codes_wrong / (double)v->looked;
    if (fmin(scales, codes) <= MOST_WRONG_ROTATED) mxi_explain(h, v, at, at->extra + BITS_OF_A_FAULT, 0, DEPTH_ONE);
  }
  if (v) mxi_view_close(v);
  free(v);
}

/* Tries the chosen bases with a rotation in front, if scales or elements then come near. */
static void search_rotated(hunt *h, const base *b, const size_t *chosen, size_t n) {
  static const uint32_t sizes[] = {16, 32, 64, 128};
  const mx_sample *s = &h->samples[h->largest];
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !sure(h->best) && !effort_over(h->e); i++) {
      base at = b[chosen[k]];
      at.spec.had_size = sizes[i];
      at.extra += 6;
      if (s->cols % sizes[i] || !mxi_fault_base_look_at(&at, s, h->e)) continue;
      if (at.other_tensor && s->has_tensor_scale) search_rotated_late(h, &at);
      if (fmin(at.scales, at.codes) > MOST_WRONG_ROTATED) continue;
      search_bases(h, &at, &(size_t){0}, 1, PASS_PLAIN);
    }
}

/* Two faults, of which keys say one. A number that was fitted beside keys is left to the search for specs, which has more of them. */
static void search_keyed(hunt *h, const keyed_spec *keyed, size_t n) {
  for (size_t k = 0; k < n && !sure(h->best) && !effort_over(h->e); k++) {
    blame best = {.n = 0};
    hunt inner = {.samples = h->samples, .n = h->n, .largest = h->largest, .best = &best, .e = h->e};
    base at = {.preset = keyed[k].preset, .spec = keyed[k].spec, .extra = BITS_OF_A_KEY * keyed[k].keys};
    int fits = !at.spec.had_size;
    for (size_t i = 0; i < h->n && fits; i++) fits = mxi_view_fits(&at.spec, &h->samples[i]);
    if (fits && mxi_fault_base_look_at(&at, &h->samples[h->largest], h->e)) search_bases(&inner, &at, &(size_t){0}, 1, PASS_PLAIN);
    for (size_t i = 0; i < inner.n_all; i++) {
      const blame *b = &inner.all[i];
      if (!mxi_has_number(b)) mxi_hunt_offer(h, b->preset, &b->spec, b->fault, b->n, b->cost, b->held);
    }
  }
}

static void note_rival(blame *out, const blame *rival) {
  out->rival_preset = rival->preset;
  memcpy(out->rival, rival->fault, sizeof out->rival);
  out->n_rival = rival->n;
}

void mxi_find_faults(blame *out, const mx_sample *samples, size_t n, const char *over, const keyed_spec *keyed, size_t n_keyed,
                     deadline until) {
  *out = (blame){.n = 0};
  effort e = {.left = ALL_WORK, .until = until, .random_looks = RANDOM_LOOKS};
  hunt h = {.samples = samples, .n = n, .best = out, .e = &e};
  if (!n || !samples[0].codes) return;
  h.largest = mxi_largest_sample(samples, n);
  base *b = noted(calloc(MXI_ROOM_FOR_BASES, sizeof *b), until.lack);
  const size_t count = b ? mxi_fault_bases(b, samples, n, h.largest, over, &e) : 0;
  size_t chosen[MOST_BASES];
  const size_t n_chosen = mxi_fault_bases_choose(chosen, b, count);
  search_bases(&h, b, chosen, n_chosen, PASS_TENSOR); /* soon done: of most kernels the tensor scale itself says that it is none of these */
  search_bases(&h, b, chosen, n_chosen, PASS_PLAIN);
  if (!sure(out)) mxi_search_behind(&h, over, mxi_explain_one, 1);
  if (out->n && !sure(out)) mxi_explain_number(out, &h);
  const int learned = out->n == 1 && out->most > 0; /* a number that nobody typed, and every byte with it: two faults would say no more */
  if (!learned && (!sure(out) || out->n > 1)) search_bases(&h, b, chosen, n_chosen, PASS_EARLY);
  if (!learned && !sure(out) && !over) search_keyed(&h, keyed, n_keyed);
  if (!learned && !sure(out) && !over) search_rotated(&h, b, chosen, n_chosen);
  if (!learned && !sure(out)) mxi_search_behind(&h, over, mxi_explain_one, 0);
  if (!learned && !sure(out)) search_bases(&h, b, chosen, n_chosen, PASS_DEEP);
  if (sure(out) && out->n > 1) search_bases(&h, b, chosen, n_chosen, PASS_LAYOUT);
  if (out->n) mxi_prefer_known(&h, out), mxi_drop_needless_keys(&h, out);
  for (size_t i = 0; out->n && i < n; i++) mxi_gives_all(&samples[i], &out->spec, NULL, 0, out, &e);
  if (out->n && mx_fault_row_at(out->fault[0].op)->stage == MX_STAGE_TENSOR_AMAX && h.n_tensor > 1) out->held = 0;
  if (out->n && out->fault[0].op == MX_FAULT_TENSOR_ONLY)
    out->held = (uint64_t)fmin((double)out->held, (double)mxi_larger_outside(&samples[h.largest], out));
  if (out->n && mxi_clips_at_the_data(&samples[h.largest], out)) out->held = 0;
  blame rival = {.n = 0};
  h.best = &rival; /* out is done */
  if (out->n && mxi_blame_confirmed(out) &&
      (mxi_hunt_rival(&rival, &h, &out->spec, out->fault, out->n, out->cost) || mxi_rival_of_base(&rival, &h, out, mxi_find_rival))) {
    note_rival(out, &rival);
  }
  if (out->n && !mxi_preset_well_known(out->preset) && deadline_over(until))
    out->held = 0; /* rivals over known ones may not have been looked for */
  free(b);
}

void mxi_find_rival(blame *out, const mx_sample *samples, size_t n, const char *preset, const mx_spec *spec, double bits, deadline until) {
  blame best = {.n = 0};
  effort e = {.left = RIVAL_WORK, .until = until};
  hunt h = {.samples = samples, .n = n, .best = &best, .e = &e, .largest = mxi_largest_sample(samples, n)};
  *out = (blame){.n = 0};
  base *b = noted(calloc(MXI_ROOM_FOR_BASES, sizeof *b), until.lack);
  const size_t count = b ? mxi_fault_bases(b, samples, n, h.largest, preset, &e) : 0;
  size_t chosen[MOST_BASES];
  search_bases(&h, b, chosen, mxi_fault_bases_choose(chosen, b, count), PASS_PLAIN);
  free(b);
  blame other;
  if (mxi_hunt_rival(out, &h, spec, NULL, 0, bits) && mxi_hunt_rival(&other, &h, &out->spec, out->fault, out->n, out->cost))
    note_rival(out, &other);
  for (size_t i = 0; out->n && i < n; i++) mxi_gives_all(&samples[i], &out->spec, NULL, 0, out, &e);
}
