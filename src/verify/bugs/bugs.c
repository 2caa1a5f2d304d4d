/* Finds which known bug over which preset gives the bytes. Presets are ranked by what they leave; each group of bugs is tried over the best of them. */
#include "verify/bugs/bugs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "verify/bugs/base.h"
#include "verify/fault/search/search.h"
#include "verify/trial/bases.h"
#include "verify/trial/trial.h"

enum { MOST_BASES = 9, MOST_DISTINCT = 48, THREADS_FROM = 1 << 20 };

/* A preset that leaves this many times as much unexplained as another one is not a base for a bug that is only described in words. */
enum { MUCH_FARTHER = 50, MANY = 50 };

/* A preset that fits the shapes, and what it leaves unexplained. Of presets that give the same bytes here only the first is listed. */
typedef struct entry {
  const char *preset;
  mx_spec spec;
  leaves plain;
  uint64_t print, counts; /* counts: by how many codes and scales the numbers of each differ, wherever they stand */
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

/* The counts that do not depend on the order in which codes stand. */
static uint64_t counts_of(const base *b) {
  enum { CODES = 256 };
  int64_t codes[CODES] = {0}, scales[CODES] = {0};
  uint64_t n = 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->rows * p->cols; k++) codes[p->codes[k]]++, codes[p->s->codes[k]]--;
    for (size_t k = 0; k < p->down * p->across; k++) scales[p->scales[k] % CODES]++, scales[p->seen[k] % CODES]--;
  }
  for (int c = 0; c < CODES; c++) n += (uint64_t)llabs(codes[c]) + (uint64_t)llabs(scales[c]);
  return n / 2;
}

/* Counts what a preset leaves unexplained; 0 if it cannot have made these samples. */
static int look_at(entry *out, size_t preset, const mx_sample *samples, size_t n, int n_threads, shortage *lack) {
  const mx_preset *row = mx_preset_at(preset);
  base b = {0};
  *out = (entry){.preset = row->name};
  if (row->alias_of || mx_preset_find(&out->spec, row->name, NULL) || !mxi_base_fits(&out->spec, samples, n)) return 0;
  const int ok = mxi_base_open(&b, &out->spec, row->name, samples, n, n_threads, 0, lack);
  out->plain = b.plain;
  if (ok) out->print = print_of(&b), out->counts = counts_of(&b);
  mxi_base_close(&b);
  return ok;
}

/* Runs several presets in parallel, or several samples of one preset if the samples are large. */
static size_t rank_presets(entry *out, const mx_sample *samples, size_t n, const char *over, int beside, int n_threads, deadline until) {
  const size_t presets = mx_preset_count();
  entry *all = noted(calloc(presets + 1, sizeof *all), until.lack);
  uint8_t *fits = noted(calloc(presets + 1, 1), until.lack);
  size_t count = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(beside) if (beside > 1)
  for (size_t i = 0; i < presets; i++)
    if (all && fits && !deadline_over(until) && (!over || !strcmp(over, mx_preset_at(i)->name)))
      fits[i] = (uint8_t)look_at(&all[i], i, samples, n, n_threads, until.lack);
  for (int known = 1; known >= 0; known--)
    for (size_t i = 0; all && fits && i < presets && count < MOST_DISTINCT; i++) {
      size_t same = 0;
      if (!fits[i] || mxi_preset_well_known(all[i].preset) != known) continue;
      while (same < count && out[same].print != all[i].print) same++;
      if (same == count) out[count++] = all[i];
    }
  free(all);
  free(fits);
  return count;
}

/* One sample, or its first rows if rows do not depend on each other. */
static mx_sample small_part(const mx_sample *samples, size_t n, const mx_spec *spec) {
  enum { ENOUGH = 4096, ROWS = 128 };
  size_t at = 0, rows, cols;
  while (at + 1 < n && samples[at].rows * samples[at].cols < ENOUGH) at++;
  mx_sample s = samples[at];
  mx_spec_block(spec, s.rows, s.cols, &rows, &cols);
  if (s.rows <= ROWS || spec->tensor_norm != MX_TENSOR_NORM_NONE || ROWS % rows) return s;
  s.scale_rows = s.scale_rows == s.rows ? ROWS : ROWS / rows;
  s.rows = ROWS;
  return s;
}

/* Can the preset with another input have made the samples? This is decided on a small part of them, where the right preset leaves next to nothing
 * unexplained. */
static int another_input(const entry *e, const mx_sample *samples, size_t n, shortage *lack) {
  enum { ENOUGH = 100 };
  const mx_sample few = small_part(samples, n, &e->spec);
  base b = {0};
  candidate c = {0};
  int can = 1;
  if (mxi_base_open(&b, &e->spec, e->preset, &few, 1, 1, 1, lack) && left_total(b.plain) >= ENOUGH) {
    mxi_input_bugs(&c, &b);
    can = c.name != NULL;
  }
  mxi_base_close(&b);
  return can;
}

/* The rank of an entry, the lower the better, in one of four orders: by everything that it leaves unexplained, by scales, by codes, or by counts
 * that ignore places. Among equal ones well-known names come first. A tensor scale in another convention counts against a preset. */
static uint64_t merit(const entry *e, int by) {
  const leaves *l = &e->plain;
  const uint64_t other = (uint64_t)!mxi_preset_well_known(e->preset), t = l->tensor_scales ? 1 : 0;
  if (by == 0) return (left_total(*l) + 3 * l->scales) << 2 | t << 1 | other; /* a scale that is wrong is worse than a code */
  if (by == 1) return l->scales << 34 | t << 33 | other << 32 | l->codes;
  if (by == 2) return l->codes << 30 | t << 29 | other << 28 | l->scales;
  return MANY * e->counts >= left_total(*l) ? UINT64_MAX : e->counts << 2 | t << 1 | other;
}

static int better(const void *items, size_t i, size_t j, int by) {
  const entry *e = items;
  return merit(&e[i], by) < (j == MXI_NO_BASE ? UINT64_MAX : merit(&e[j], by));
}

static size_t choose(size_t out[MOST_BASES], const entry *e, size_t n) {
  static const size_t of_each[] = {3, 3, 2, 1};
  return mxi_choose_bases(out, 0, MOST_BASES, e, n, of_each, 4, better);
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

/* The answer of the search for faults, as a bug. */
static void blamed(mx_bug *out, const blame *b) {
  *out = (mx_bug){.name = mx_fault_row_at(b->fault[0].op)->name, .preset = b->preset, .spec = b->spec, .n_faults = b->n};
  memcpy(out->fault, b->fault, sizeof out->fault);
  size_t at = 0;
  for (size_t i = 0; i < b->n && at < sizeof out->text; i++) {
    if (i) at += (size_t)snprintf(out->text + at, sizeof out->text - at, "; and it ");
    if (at < sizeof out->text) at += mx_fault_words(out->text + at, sizeof out->text - at, &b->fault[i]);
  }
  out->preset_codes = b->codes;
  out->preset_scales = b->scales;
  out->preset_tensor = b->tensor_scales;
  out->least = b->least;
  out->most = b->most;
  out->confirmed = mxi_blame_confirmed(b);
  memcpy(out->rival, b->rival, sizeof out->rival);
  out->rival_preset = b->rival_preset;
  out->n_rival = b->n_rival;
}

/* Faults that act everywhere and that keys of a spec can express as well: rounding, types, rotations, a factor or a floor of the maximum, signs of
 * zeros. */
static int says_a_key(const mx_fault *f) {
  static const int ops[] = {MX_FAULT_INPUT_BF16,
                            MX_FAULT_INPUT_F16,
                            MX_FAULT_ROTATION_HADAMARD,
                            MX_FAULT_AMAX_TIMES,
                            MX_FAULT_AMAX_LEAST,
                            MX_FAULT_SCALE_PLUS,
                            MX_FAULT_SCALE_LARGEST,
                            MX_FAULT_SCALE_FLUSH,
                            MX_FAULT_SCALE_LOG2,
                            MX_FAULT_STORE_VALUE,
                            MX_FAULT_DIVISOR_FLUSH,
                            MX_FAULT_DIVISOR_UNROUNDED,
                            MX_FAULT_DIVISOR_UNROUNDED_TIMES,
                            MX_FAULT_ELEMENT_TIMES,
                            MX_FAULT_ELEMENT_TRUNCATE,
                            MX_FAULT_ELEMENT_AWAY,
                            MX_FAULT_ELEMENT_TIES_AWAY,
                            MX_FAULT_ELEMENT_TIES_ZERO,
                            MX_FAULT_ELEMENT_TIES_UP,
                            MX_FAULT_ELEMENT_TIES_DOWN,
                            MX_FAULT_CODE_NO_NEGATIVE_ZERO,
                            MX_FAULT_CODE_NEGATIVE_ZERO,
                            MX_FAULT_CODE_LOWEST,
                            MX_FAULT_TENSOR_TIMES,
                            MX_FAULT_TENSOR_VALUE,
                            MX_FAULT_AMAX_BF16,
                            MX_FAULT_AMAX_F16,
                            MX_FAULT_DIVISOR_BITS,
                            MX_FAULT_DIVISOR_BITS_NEAREST,
                            MX_FAULT_DIVISOR_BF16,
                            MX_FAULT_DIVISOR_RCP_BF16,
                            MX_FAULT_ELEMENT_BF16,
                            MX_FAULT_ELEMENT_F16};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (f->op == ops[i]) return 1;
  return 0;
}

/* The faults as a bug, its name that of `known` where that gives every byte as well: it says what someone did, the faults run. */
static void say_faults(mx_bug *out, const blame *found, const mx_bug *known) {
  *out = (mx_bug){0};
  if (!found->n) return;
  blamed(out, found);
  const int plain = known && !strcmp(known->name, BUG(CODES_RENAMED)); /* which faults say in fewer words */
  if (known && !plain && strcmp(known->name, out->name) != 0) {
    out->name = known->name;
    memcpy(out->text, known->text, sizeof out->text);
  }
  if (out->n_faults > 1 && !out->preset_codes && !out->preset_scales)
    out->confirmed = 0; /* the stored tensor scale alone takes no two faults */
}

static int are_key_like(const blame *found) {
  int all = found->n != 0;
  for (size_t i = 0; i < found->n; i++) all &= says_a_key(&found->fault[i]);
  return all;
}

int mxi_name_faults(mx_bug *out, const keyed_spec *keyed, size_t n_keyed, const mx_sample *samples, size_t n, deadline until) {
  blame found;
  mxi_find_faults(&found, samples, n, NULL, keyed, n_keyed, until);
  say_faults(out, &found, NULL);
  return out->confirmed;
}

/* Faults that hold and that no keys say are the answer; the list of bugs is then asked over their preset alone, for a name. */
int mxi_name_cause(mx_bug *bug, mx_bug *faulty, const keyed_spec *keyed, size_t n_keyed, const mx_sample *samples, size_t n, int n_threads,
                   double seconds, deadline until) {
  blame found, over = {0};
  mx_bug known;
  mxi_find_faults(&found, samples, n, NULL, keyed, n_keyed, mxi_deadline_within(until, seconds));
  say_faults(faulty, &found, NULL);
  if (faulty->confirmed && !are_key_like(&found)) {
    if (mxi_name_bug(&known, samples, n, found.preset, n_threads, mxi_deadline_within(until, seconds))) say_faults(faulty, &found, &known);
    *bug = *faulty;
    return 1;
  }
  const int told = mxi_name_bug(bug, samples, n, NULL, n_threads, mxi_deadline_within(until, seconds));
  if (told) mxi_find_faults(&over, samples, n, bug->preset, NULL, 0, mxi_deadline_within(until, seconds));
  const int over_known = over.n && (mxi_blame_confirmed(&over) || !found.n || !mxi_blame_confirmed(&found));
  if (over_known) say_faults(faulty, &over, bug);
  const int backed = found.n && (double)found.held >= found.cost + BLAME_BITS;   /* only a rival is in the way */
  if (told && !over_known && !faulty->confirmed && !backed) faulty->name = NULL; /* what is known says more */
  const int learned = faulty->most > 0; /* a number, for which specs have another one, and say no more */
  if (told ? faulty->name != NULL : learned) *bug = *faulty;
  return told || learned;
}

size_t mxi_bug_numbers(double out[MX_FAULTS], const mx_bug *bug) {
  size_t n = 0;
  for (size_t i = 0; i < bug->n_faults; i++)
    if (mx_fault_row_at(bug->fault[i].op)->arg == MX_FAULT_ARG_NUMBER) out[n++] = bug->fault[i].number;
  return n;
}

/* 0: none; 1: it is as likely as a spec of so many bits; 2: it is much likelier. */
static int rival(mx_bug *out, const blame *found, double bits) {
  if (!found->n) return 0;
  blamed(out, found);
  return out->confirmed && found->cost + RIVAL_BITS < bits ? 2 : 1;
}

int mxi_rival_of_spec(mx_bug *out, const mx_spec *spec, double bits, double rare_bits, const mx_sample *samples, size_t n, deadline until) {
  blame found = {0};
  mxi_find_rival(&found, samples, n, NULL, spec, bits, until);
  return rival(out, &found, rare_bits);
}

int mxi_plain_rival_of_spec(mx_bug *out, const mx_spec *spec, double rare_bits, const char *preset, const char *keys_from,
                            const mx_sample *samples, size_t n, deadline until) {
  blame found = {0};
  mxi_find_plain_rival(&found, samples, n, preset, spec, keys_from, rare_bits, until);
  found.held = found.scales + found.codes; /* at least a bit of each cell that it mends */
  return rival(out, &found, rare_bits);
}

uint64_t mxi_open_keys_of_bug(const mx_bug *b, const mx_spec *other, const size_t *key, size_t n_other, const mx_sample *samples, size_t n,
                              deadline until) {
  return mxi_find_open_keys(&b->spec, b->fault, b->n_faults, other, key, n_other, samples, n, until);
}

size_t mxi_alternatives(mx_alternative out[MX_ALTERNATIVES], const mx_spec *spec, const mx_fault *faults, size_t n_faults,
                        const mx_sample *samples, size_t n, deadline until) {
  return mxi_find_alternatives(out, spec, faults, n_faults, samples, n, until);
}

int mxi_name_bug(mx_bug *out, const mx_sample *samples, size_t n, const char *over, int n_threads, deadline until) {
  static void (*const groups[])(candidate *, const base *) = {mxi_tensor_bugs, mxi_map_bugs, mxi_step_bugs, mxi_input_bugs, mxi_twist_bugs};
  enum { GROUPS = sizeof groups / sizeof *groups };
  *out = (mx_bug){0};
  if (!samples[0].codes) return 0;
  size_t elements = 0;
  for (size_t i = 0; i < n; i++) elements = samples[i].rows * samples[i].cols > elements ? samples[i].rows * samples[i].cols : elements;
  const int beside = elements < THREADS_FROM ? n_threads : 1; /* threads that wait for each other cost more than the work */
  if (beside > 1) n_threads = 1;
  entry *e = noted(calloc(MOST_DISTINCT, sizeof *e), until.lack);
  if (!e) return 0;
  const size_t count = rank_presets(e, samples, n, over, beside, n_threads, until);
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
#pragma omp parallel for schedule(dynamic, 1) num_threads(beside) if (beside > 1)
  for (size_t k = 0; k < n_bases; k++) {
    if (right || deadline_over(until)) continue;
    if (!mxi_base_open(&bases[k], &e[chosen[k]].spec, e[chosen[k]].preset, samples, n, n_threads, 1, until.lack)) mxi_base_close(&bases[k]);
  }
  for (size_t g = 0; g < GROUPS && !right; g++)
    for (size_t k = 0; k < n_bases && !deadline_over(until); k++) {
      const candidate before = best;
      if (!bases[k].parts || is_found(&best) || (g && !left_total(best.l) && best.name && best.weak < 2 && chosen[k] != best_at))
        continue; /* a cause, of the same preset */
      groups[g](&best, &bases[k]);
      if (best.weak && left_total(bases[k].plain) > MUCH_FARTHER * left_total(e[chosen[0]].plain)) best = before;
      if (best.name != before.name || strcmp(best.text, before.text) || left_total(best.l) != left_total(before.l)) best_at = chosen[k];
    }
  /* If no preset comes near even with another rotation or type of the input, all presets are tried. */
  int scales_right = 0; /* under a preset: then it is not the input */
  for (size_t k = 0; k < n_bases; k++) scales_right |= !e[chosen[k]].plain.scales;
  const int elsewhere = !right && !scales_right && !best.name && !over;
  uint8_t can[MOST_DISTINCT] = {0};
#pragma omp parallel for schedule(dynamic, 1) num_threads(beside) if (beside > 1)
  for (size_t i = 0; i < count; i++)
    if (elsewhere && !deadline_over(until)) can[i] = (uint8_t)another_input(&e[i], samples, n, until.lack);
  for (size_t i = 0; i < count && elsewhere && !best.name && !deadline_over(until); i++) {
    if (!can[i]) continue;
    base b;
    const candidate before = best;
    if (mxi_base_open(&b, &e[i].spec, e[i].preset, samples, n, n_threads, 1, until.lack)) mxi_input_bugs(&best, &b);
    mxi_base_close(&b);
    if (best.name != before.name) best_at = i;
  }
  if (best.name && 2 * left_total(best.l) > left_total(e[chosen[0]].plain)) best.name = NULL; /* hardly less than the nearest preset as it is */
  if (best.name) found(out, &e[best_at], &best);
  for (size_t k = 0; k < n_bases; k++) mxi_base_close(&bases[k]);
  free(e);
  return is_found(&best);
}
