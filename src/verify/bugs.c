/* Which known bug over which preset? Presets are ranked by what they leave; each group of bugs is tried over the best of them. */
#include "verify/bugs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "verify/bugs_base.h"
#include "verify/search.h"

enum { MOST_BASES = 8, MOST_DISTINCT = 48, THREADS_FROM = 1 << 20 };

/* A preset that fits the shapes, and what it leaves; of those that give the same bytes here the first. */
typedef struct entry {
  const char *preset;
  mx_spec spec;
  leaves plain;
  uint64_t print;
} entry;

static uint64_t print_of(const base *b) {
  uint64_t h = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    h = XXH3_64bits_withSeed(p->codes, p->rows * p->cols, h);
    h = XXH3_64bits_withSeed(p->scales, p->down * p->across * sizeof *p->scales, h);
    h = XXH3_64bits_withSeed(&p->tensor_scale, sizeof p->tensor_scale, h);
  }
  return h ^ (uint64_t)b->spec.elem << 8 ^ (uint64_t)b->spec.scale;
}

/* Names that people know come first among presets that give the same bytes. */
static int well_known(const char *name) { return !strncmp(name, "ocp-", 4) || !strcmp(name, "te-nvfp4") || !strcmp(name, "te-nvfp4-2d"); }

static size_t rank_presets(entry *out, const mx_sample *samples, size_t n, int n_threads, double deadline) {
  size_t count = 0;
  for (int known = 1; known >= 0; known--)
    for (size_t i = 0; i < mx_preset_count() && count < MOST_DISTINCT && now() < deadline; i++) {
      const mx_preset *row = mx_preset_at(i);
      entry e = {.preset = row->name};
      base b;
      if (row->alias_of || well_known(row->name) != known || mx_preset_find(&e.spec, row->name, NULL) || !base_fits(&e.spec, samples, n))
        continue;
      if (base_open(&b, &e.spec, row->name, samples, n, n_threads, 0)) {
        size_t same = 0;
        e.plain = b.plain;
        e.print = print_of(&b);
        while (same < count && out[same].print != e.print) same++;
        if (same == count) out[count++] = e;
      }
      base_close(&b);
    }
  return count;
}

/* By everything, by scales, by codes; names that people know first among those that are alike. A tensor scale in another convention is a reason to
 * look elsewhere. */
static uint64_t merit(const entry *e, int by) {
  const leaves *l = &e->plain;
  const uint64_t other = (uint64_t)!well_known(e->preset), t = l->tensor_scales ? 1 : 0;
  if (by == 0) return left_total(*l) << 2 | t << 1 | other;
  if (by == 1) return l->scales << 34 | t << 33 | other << 32 | l->codes;
  return l->codes << 30 | t << 29 | other << 28 | l->scales;
}

static size_t choose(size_t out[MOST_BASES], const entry *e, size_t n) {
  static const size_t of_each[] = {3, 3, 2};
  size_t chosen = 0;
  for (int by = 0; by < 3; by++)
    for (size_t k = 0; k < of_each[by] && chosen < MOST_BASES; k++) {
      size_t best = n;
      for (size_t i = 0; i < n; i++) {
        int taken = 0;
        for (size_t j = 0; j < chosen; j++) taken |= out[j] == i;
        if (!taken && (best == n || merit(&e[i], by) < merit(&e[best], by))) best = i;
      }
      if (best < n) out[chosen++] = best;
    }
  return chosen;
}

static void found(mx_bug *out, const entry *e, const candidate *c) {
  out->name = c->name;
  snprintf(out->text, sizeof out->text, "%s", c->text);
  out->preset = e->preset;
  out->spec = e->spec;
  out->preset_codes = e->plain.codes;
  out->preset_scales = e->plain.scales;
  out->preset_tensor = e->plain.tensor_scales;
  out->codes = c->l.codes;
  out->scales = c->l.scales;
  out->tensor_scales = c->l.tensor_scales;
}

int name_bug(mx_bug *out, const mx_sample *samples, size_t n, int n_threads, double deadline) {
  static void (*const groups[])(candidate *, const base *) = {tensor_bugs, map_bugs, step_bugs, input_bugs, twist_bugs};
  enum { GROUPS = sizeof groups / sizeof *groups };
  *out = (mx_bug){0};
  if (!samples[0].codes) return 0;
  size_t elements = 0;
  for (size_t i = 0; i < n; i++) elements = samples[i].rows * samples[i].cols > elements ? samples[i].rows * samples[i].cols : elements;
  if (elements < THREADS_FROM) n_threads = 1; /* threads that wait for each other cost more than the work */
  entry *e = calloc(MOST_DISTINCT, sizeof *e);
  if (!e) return 0;
  const size_t count = rank_presets(e, samples, n, n_threads, deadline);
  size_t chosen[MOST_BASES], best_at = 0;
  const size_t n_bases = choose(chosen, e, count);
  base bases[MOST_BASES];
  candidate best = {0};
  if (count) {
    found(out, &e[chosen[0]], &(candidate){.l = e[chosen[0]].plain});
    out->name = NULL;
  }
  memset(bases, 0, sizeof bases);
  const int right = count && !left_total(e[chosen[0]].plain);
  for (size_t k = 0; k < n_bases && !right && now() < deadline; k++)
    if (!base_open(&bases[k], &e[chosen[k]].spec, e[chosen[k]].preset, samples, n, n_threads, 1)) base_close(&bases[k]);
  for (size_t g = 0; g < GROUPS && !right; g++)
    for (size_t k = 0; k < n_bases && now() < deadline; k++) {
      const candidate before = best;
      if (!bases[k].parts || is_found(&best) || (g && !left_total(best.l) && best.name && best.weak < 2 && chosen[k] != best_at))
        continue; /* a cause, of the same preset */
      groups[g](&best, &bases[k]);
      if (best.name != before.name || strcmp(best.text, before.text) || left_total(best.l) != left_total(before.l)) best_at = chosen[k];
    }
  /* Another rotation or type of the input leaves no preset that comes near: all of them, then. */
  int scales_right = 0; /* under a preset: then it is not the input */
  for (size_t k = 0; k < n_bases; k++) scales_right |= !e[chosen[k]].plain.scales;
  for (size_t i = 0; i < count && !right && !scales_right && !best.name && now() < deadline; i++) {
    base b;
    const candidate before = best;
    if (base_open(&b, &e[i].spec, e[i].preset, samples, n, n_threads, 1)) input_bugs(&best, &b);
    base_close(&b);
    if (best.name != before.name) best_at = i;
  }
  if (best.name) found(out, &e[best_at], &best);
  for (size_t k = 0; k < n_bases; k++) base_close(&bases[k]);
  free(e);
  return is_found(&best);
}
