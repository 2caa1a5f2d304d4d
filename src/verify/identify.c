/* Which spec does a black box follow? Formats first, then presets; then, on ordinary blocks, the scale's keys from scale codes alone, the
 * element's keys under the scales that are stored; then whatever explains zero, Inf, NaN, tiny and huge blocks. A spec that fits the chosen blocks
 * is run over everything, and blocks that it gets wrong join the chosen ones. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/hypotheses.h"
#include "verify/keys.h"
#include "verify/search.h"
#include "verify/stochastic.h"
#include "verify/values.h"

enum { ROUNDS = 10, LEARN = 12, MAX_INQUIRIES = 48, REPAIRED = 3, MAX_REPAIRED = 48 };

typedef struct attempt {
  mx_spec spec;
  score got;             /* over everything */
  uint64_t scales_wrong; /* tensor scales */
  int any;
} attempt;

/* One hypothesis of formats, block, rotation and input.dtype under inquiry. */
typedef struct inquiry {
  hypothesis h;
  observation o;
  search s;
  pool cores, specs; /* fits of the scales of ordinary blocks; of these blocks */
  pool starts, finalists;
  mx_spec repaired[MAX_REPAIRED];
  size_t n_repaired;
  double residue;  /* wrong codes and scales a block: of ordinary ones; and a little of all, once that was counted */
  double ordinary; /* of ordinary ones, before the first repair */
  int level;       /* how often it was finished */
  attempt best;
  uint8_t *wrong;         /* an entry a block */
  int stochastic, seeded; /* seeded: best has the seed */
  mx_spec random;         /* the rule of a stochastic kernel but for its seed */
  random_facts facts;
} inquiry;

static uint64_t badness(const attempt *a) { return score_total(a->got) + a->scales_wrong; }

static int better(const attempt *a, const attempt *b) {
  if (!a->any || !b->any) return a->any > b->any;
  return badness(a) < badness(b) || (badness(a) == badness(b) && a->got.nan_codes < b->got.nan_codes);
}

static int is_exact(const attempt *a) { return a->any && !badness(a); }
static int is_perfect(const attempt *a) { return is_exact(a) && !a->got.nan_codes; }

static void put_formats(mx_spec *s, const mx_spec *f) {
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

/* Does every sample state the same tensor scale? */
static int common_tensor_scale(const observation *o) {
  for (size_t i = 0; i < o->n_samples; i++)
    if (!o->samples[i].has_tensor_scale || memcmp(&o->samples[i].tensor_scale, &o->samples[0].tensor_scale, sizeof(float))) return 0;
  return 1;
}

/* What tensor.store makes of the stored tensor scales. */
static uint64_t fit_tensor_scale(const observation *o, mx_spec *s) {
  uint64_t least = tensor_scales_wrong(o, s, 1);
  if (!least || s->tensor_norm == MX_TENSOR_NORM_NONE) return least;
  for (int store = 0; store < MX_TENSOR_STORE_COUNT && least && s->chain == MX_CHAIN_EXACT; store++) {
    mx_spec t = *s;
    t.tensor_store = store;
    const uint64_t n = tensor_scales_wrong(o, &t, 1);
    if (n < least) least = n, *s = t;
  }
  return least;
}

/* Over everything. */
static void confirm(inquiry *q, const mx_spec *spec) {
  attempt a = {.spec = *spec, .any = 1};
  a.got = full_score(&q->o, spec, q->wrong, q->s.threads);
  a.scales_wrong = fit_tensor_scale(&q->o, &a.spec);
  if (better(&a, &q->best)) q->best = a;
}

/* ---- presets */

/* Presets with these formats as they are; or the rules of all the others under these formats. */
static void try_presets(search *s, pool *out, int same_formats) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p, f;
    const mx_preset *row = mx_preset_at(i);
    if (row->alias_of || mx_preset_find(&p, row->name, NULL)) continue;
    f = p;
    put_formats(&f, &s->o->formats);
    if (mx_spec_equal(&f, &p) != same_formats || mx_spec_check(&f, NULL)) continue;
    s->tried++;
    pool_add(out, &f, search_score(s, &f, EVERY));
  }
}

static void presets_as_they_are(inquiry *q) {
  pool *p = calloc(1, sizeof *p);
  if (!p) return;
  for (int round = 0; round < 4 && !is_perfect(&q->best); round++) {
    size_t learned = 0;
    p->n = 0;
    p->room = POOL;
    try_presets(&q->s, p, 1);
    for (size_t i = 0; i < p->n && !score_total(p->got[i]) && !is_perfect(&q->best); i++) {
      confirm(q, &p->spec[i]);
      learned += search_learn(&q->s, q->wrong, &p->spec[i], LEARN);
    }
    if (!learned) break;
  }
  free(p);
}

/* ---- the scale side, on scales of ordinary blocks */

#define KEYS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)
#define TRY(...) search_product(s, cores, &base, 1, KEYS(__VA_ARGS__), PLAIN, 1)

static int solved(const pool *p) { return p->n && !p->got[0].scales; }

static void cores_without_norm(search *s, pool *cores, mx_spec base) {
  TRY("scale.rule=floor|ceil|quest", "scale.log2", "scale.round");
  TRY("scale.rule=even", "scale.even_bits", "scale.round");
  TRY("scale.rule=value", "scale.round", "scale.max", "scale.arith", "scale.log2");
  TRY("scale.rule=value", "scale.form=encode", "scale.round", "scale.max", "scale.log2");
  TRY("scale.rule=value", "chain", "scale.round", "scale.max", "scale.log2");
  if (solved(cores) || base.elem != MX_ELEM_E2M1) return;
  base.select = MX_SELECT_FOURSIX;
  TRY("scale.rule=value", "scale.round", "scale.arith", "scale.log2");
  TRY("scale.rule=value", "chain", "scale.round", "scale.log2");
}

static void cores_with_norm(search *s, pool *cores, mx_spec base) {
  TRY("scale.rule=value", "tensor.norm=nv", "chain", "scale.round", "scale.max", "tensor.target", "scale.log2");
  TRY("scale.rule=value", "tensor.norm=unit", "scale.round", "scale.max", "scale.log2", "tensor.target");
  TRY("scale.rule=value", "scale.form=encode", "tensor.norm=unit|chmiel|seed004", "scale.round", "scale.max", "tensor.target", "scale.log2");
  TRY("scale.rule=floor|ceil|quest", "tensor.norm=unit|nv", "chain=exact", "scale.log2", "tensor.target", "scale.round");
  TRY("scale.rule=even", "tensor.norm=unit|nv", "chain=exact", "scale.even_bits", "tensor.target", "scale.round");
  if (!solved(cores) && common_tensor_scale(s->o)) {
    mx_spec own = base;
    base.tensor_norm = MX_TENSOR_NORM_NV;
    base.tensor_given = 1;
    base.tensor_given_value = s->o->samples[0].tensor_scale;
    TRY("scale.rule=value", "chain", "scale.round", "scale.max", "tensor.store", "tensor.target");
    if (!solved(cores)) {
      TRY("scale.rule=floor|ceil|quest", "chain=exact", "scale.log2", "scale.round", "tensor.store", "tensor.target");
      TRY("scale.rule=even", "chain=exact", "scale.even_bits", "scale.round", "tensor.store", "tensor.target");
    }
    if (!solved(cores) && base.elem == MX_ELEM_E2M1)
      TRY("scale.rule=value", "chain", "scale.round", "tensor.target", "select=foursix", "tensor.store");
    base = own;
  }
  if (solved(cores) || base.elem != MX_ELEM_E2M1) return;
  base.select = MX_SELECT_FOURSIX;
  TRY("scale.rule=value", "tensor.norm=nv", "chain", "scale.round", "tensor.target", "scale.log2");
}

/* Scales that are rounded at random: either neighbour will do until the seed is known. */
static void cores_at_random(search *s, pool *cores, mx_spec base) {
  base.scale_round = MX_SCALE_ROUND_SR;
  TRY("scale.rule=value", "scale.max", "scale.arith");
  TRY("scale.rule=value", "scale.form=encode", "scale.max");
  TRY("scale.rule=value", "chain", "scale.max");
  if (base.input_dtype != MX_INPUT_DTYPE_FLOAT32) return;
  TRY("scale.rule=value", "tensor.norm=nv", "chain", "scale.max", "tensor.target");
  TRY("scale.rule=value", "tensor.norm=unit", "scale.max", "tensor.target");
  if (!solved(cores) && base.elem == MX_ELEM_E2M1) {
    mx_spec six = base;
    six.select = MX_SELECT_FOURSIX;
    search_product(s, cores, &six, 1, KEYS("scale.rule=value", "scale.arith", "chain", "tensor.norm=none|nv"), PLAIN, 1);
  }
  TRY("scale.rule=value", "scale.form=encode", "tensor.norm=unit|chmiel|seed004", "scale.max", "tensor.target");
}

static void find_cores(inquiry *q) {
  search *s = &q->s;
  pool *cores = &q->cores;
  mx_spec base = {0};
  put_formats(&base, &q->h.formats);
  cores->n = 0;
  cores->room = POOL;
  if (mx_scale_format(base.scale)->nan_code == MX_NO_CODE) base.scale_nan = MX_SCALE_NAN_IGNORE;
  if (q->h.formats.scale_rule == MX_SCALE_RULE_HIF4) {
    base.scale_rule = MX_SCALE_RULE_HIF4;
    pool_add(cores, &base, (score){0, 0, 0});
    return;
  }
  const int normed = s->o->samples[0].has_tensor_scale || fabs(q->h.offset) > 0.7;
  for (int learning = 0; learning < 4; learning++) {
    cores->n = 0;
    for (int wave = 0; wave < 2 && !solved(cores); wave++) {
      if (wave == normed)
        cores_without_norm(s, cores, base);
      else if (base.input_dtype == MX_INPUT_DTYPE_FLOAT32)
        cores_with_norm(s, cores, base);
    }
    if (s->lenient && !solved(cores)) cores_at_random(s, cores, base);
    if (!cores->n || cores->got[0].scales || !search_learn_scales(s, &cores->spec[0], 64)) break;
  }
}

/* ---- the element side, on the same blocks */

/* Elements see the stored scale, not the rule that gave it: cores that agree in these keys share their elements' keys. */
static int same_to_elements(const mx_spec *a, const mx_spec *b) {
  return a->chain == b->chain && a->tensor_norm == b->tensor_norm && a->scale_form == b->scale_form && a->select == b->select &&
         a->tensor_target == b->tensor_target && a->tensor_given == b->tensor_given && a->tensor_store == b->tensor_store &&
         ((a->chain == MX_CHAIN_EXACT && a->tensor_norm == MX_TENSOR_NORM_NONE) ||
          (a->scale_max == b->scale_max && a->scale_max_n == b->scale_max_n));
}

static void copy_element_keys(mx_spec *to, const mx_spec *from) {
  to->elem_round = from->elem_round;
  to->elem_arith = from->elem_arith;
  to->elem_zero_sign = from->elem_zero_sign;
  to->elem_overflow = from->elem_overflow;
  to->elem_saturate_to = from->elem_saturate_to;
  to->elem_prescale = from->elem_prescale;
  to->select_error = from->select_error;
  to->select_sum = from->select_sum;
}

static uint64_t looked(const block_set *set) {
  uint64_t n = 0;
  for (size_t i = 0; i < set->n; i++) n += set->at[i].n;
  return n;
}

static void find_elements(inquiry *q) {
  search *s = &q->s;
  const pool *cores = &q->cores;
  mx_spec done[POOL];
  size_t n_done = 0;
  pool *few = calloc(2, sizeof *few);
  q->specs.n = 0;
  q->specs.room = POOL;
  for (size_t i = 0; few && i < cores->n && now() < s->deadline; i++) {
    if (cores->got[i].scales > cores->got[0].scales + cores->got[0].scales / 2) break;
    const mx_spec *base = &cores->spec[i];
    size_t like = 0;
    while (like < n_done && !same_to_elements(&done[like], base)) like++;
    if (like < n_done || base->scale_rule == MX_SCALE_RULE_HIF4) {
      mx_spec t = *base;
      if (like < n_done) copy_element_keys(&t, &done[like]);
      pool_add(&q->specs, &t, search_score(s, &t, PLAIN));
      continue;
    }
    few[0] = few[1] = (pool){.room = 8};
    search_product(s, few, base, 1, KEYS("elem.round", "elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
    if (few->n && few->got[0].codes)
      search_product(s, few, base, 1, KEYS("elem.prescale", "elem.round", "elem.arith", "elem.zero_sign"), PLAIN, 0);
    if (s->lenient && few->n && few->got[0].codes > looked(&s->sets[BLOCK_PLAIN]) / 50) {
      mx_spec random = *base;
      random.elem_round = MX_ROUND_SR;
      search_product(s, few, &random, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to", "elem.prescale"), PLAIN, 0);
    }
    if (base->select == MX_SELECT_FOURSIX) search_product(s, &few[1], few->spec, few->n, KEYS("select.error", "select.sum"), PLAIN, 0);
    const pool *last = few[1].n ? &few[1] : few;
    if (last->n) done[n_done++] = last->spec[0];
    for (size_t k = 0; k < last->n; k++) pool_add(&q->specs, &last->spec[k], last->got[k]);
  }
  free(few);
}

static void find_specs(inquiry *q) {
  find_elements(q);
  const size_t n = q->s.sets[BLOCK_PLAIN].n;
  q->residue = !q->specs.n ? INFINITY : n ? (double)score_total(q->specs.got[0]) / (double)n : 0;
}

/* ---- one inquiry from end to end */

static int inquiry_open(inquiry *q, const hypothesis *h, int dtype, int flush, const mx_sample *samples, size_t n, int threads,
                        double deadline) {
  *q = (inquiry){.h = *h, .residue = INFINITY};
  q->h.formats.input_dtype = dtype;
  q->h.formats.flush = flush;
  if (observation_init(&q->o, samples, n, &q->h.formats, h->block_rows, h->block_cols, threads)) return 0;
  q->o.cache = value_cache_new();
  q->wrong = calloc(q->o.n_blocks + 1, 1);
  return q->wrong && !search_begin(&q->s, &q->o, threads, deadline);
}

static void inquiry_close(inquiry *q) {
  search_end(&q->s);
  observation_free(&q->o);
  free(q->wrong);
}

/* Specs that repair may start from, best first: all of those that fit ordinary blocks, and the presets' rules. */
static void find_starts(inquiry *q) {
  q->starts.n = 0;
  q->starts.room = POOL;
  for (size_t i = 0; i < q->specs.n; i++) {
    if (score_total(q->specs.got[i]) > 2 * score_total(q->specs.got[0]) + 8) break;
    pool_add(&q->starts, &q->specs.spec[i], search_score(&q->s, &q->specs.spec[i], EVERY));
  }
  try_presets(&q->s, &q->starts, 0);
}

static int was_repaired(const inquiry *q, const mx_spec *spec) {
  for (size_t i = 0; i < q->n_repaired; i++)
    if (keys_same(&q->repaired[i], spec)) return 1;
  return 0;
}

/* Repair the next few starts that were not repaired before. */
static void repair_some(inquiry *q, int effort) {
  int n = 0;
  for (size_t i = 0; i < q->starts.n && n < REPAIRED && now() < q->s.deadline; i++) {
    if (was_repaired(q, &q->starts.spec[i])) continue;
    mx_spec t = q->starts.spec[i];
    score got = search_score(&q->s, &t, EVERY);
    q->repaired[q->n_repaired++ % MAX_REPAIRED] = t;
    if (q->n_repaired > MAX_REPAIRED) q->n_repaired = MAX_REPAIRED;
    search_repair(&q->s, &t, &got, effort);
    pool_add(&q->finalists, &t, got);
    n++;
    if (score_clean(got)) return;
  }
}

/* The best few specs, repaired on blocks of every class; then over everything, and what is wrong is learned. */
static void finish(inquiry *q, int effort) {
  search *s = &q->s;
  pool *again = calloc(1, sizeof *again);
  q->finalists.room = 4;
  q->n_repaired = 0;
  find_starts(q);
  for (int round = 0; again && round < ROUNDS && now() < s->deadline; round++) {
    *again = (pool){.room = 4};
    for (size_t i = 0; i < q->finalists.n; i++) pool_add(again, &q->finalists.spec[i], search_score(s, &q->finalists.spec[i], EVERY));
    q->finalists = *again;
    if (q->finalists.n && !score_clean(q->finalists.got[0])) {
      mx_spec t = q->finalists.spec[0];
      score got = q->finalists.got[0];
      search_repair(s, &t, &got, effort);
      pool_add(&q->finalists, &t, got);
    }
    if (!q->finalists.n || score_total(q->finalists.got[0])) {
      if (round) find_cores(q), find_specs(q), find_starts(q);
      repair_some(q, effort);
    }
    if (!q->finalists.n) break;
    confirm(q, &q->finalists.spec[0]);
    if (is_perfect(&q->best) || (is_exact(&q->best) && round > 1)) break;
    if (!search_learn(s, q->wrong, &q->finalists.spec[0], LEARN) && (!effort || q->n_repaired >= q->starts.n)) break;
  }
  free(again);
}

/* ---- stochastic rounding */

static int is_random(const mx_spec *s) { return s->elem_round == MX_ROUND_SR || s->scale_round == MX_SCALE_ROUND_SR; }

/* Is more than one in fifty of the elements, or of the scales, of ordinary blocks wrong? */
static int is_far_off(const inquiry *q) {
  const score was = q->specs.got[0];
  return was.codes * 50 >= looked(&q->s.sets[BLOCK_PLAIN]) || was.scales * 50 >= q->s.sets[BLOCK_PLAIN].n;
}

/* Do ordinary blocks lie on both sides of every rule, and between its neighbours? Then the specs become stochastic ones. */
static int looks_stochastic(inquiry *q) {
  if (!q->specs.n || !q->o.samples[0].codes) return 0;
  if (!is_far_off(q)) return 0;
  pool *before = malloc(2 * sizeof *before);
  if (!before) return 0;
  before[0] = q->cores;
  before[1] = q->specs;
  const double residue = q->residue;
  q->s.lenient = 1;
  find_cores(q);
  find_specs(q);
  const int random = q->specs.n && is_random(&q->specs.spec[0]) && q->residue * 6 < residue;
  if (!random) {
    q->cores = before[0];
    q->specs = before[1];
    q->residue = residue;
    q->s.lenient = 0;
  }
  free(before);
  return random;
}

/* The rule of every class, whatever the seed. Returns 1 if nothing but the seed is missing. */
static int find_random_rule(inquiry *q) {
  search *s = &q->s;
  pool *starts = calloc(1, sizeof *starts);
  if (!starts) return 0;
  starts->room = 8;
  for (size_t i = 0; i < q->specs.n && i < 4; i++) {
    mx_spec t = q->specs.spec[i];
    score got = search_score(s, &t, EVERY);
    search_repair(s, &t, &got, 0);
    if (!score_clean(got)) search_repair(s, &t, &got, 1);
    pool_add(starts, &t, got);
    if (score_clean(got)) break;
  }
  q->random = starts->spec[0];
  const int clean = starts->n && !score_total(starts->got[0]);
  free(starts);
  return clean;
}

/* Which candidate of select=foursix wins hangs on the draws: it can be told once the seed is known. */
static void find_selection(search *s, mx_spec *best) {
  pool *few = calloc(1, sizeof *few);
  if (few && best->select == MX_SELECT_FOURSIX) {
    few->room = 1;
    search_product(s, few, best, 1, KEYS("select.error", "select.sum"), PLAIN, 0);
    if (few->n) *best = few->spec[0];
  }
  free(few);
}

/* The seed among few or among many; with it as any spec. Returns 1 if every byte is found. */
static int finish_with_seed(inquiry *q, int many) {
  search *s = &q->s;
  mx_spec best = q->random;
  if (!random_solve(s, &best, many)) return 0;
  s->lenient = 0;
  for (int round = 0; round < 8 && !is_exact(&q->best); round++) {
    find_selection(s, &best);
    confirm(q, &best);
    if (!search_learn(s, q->wrong, &best, LEARN) || best.elem_round != MX_ROUND_SR || !random_settle(s, &best)) break;
  }
  if (is_exact(&q->best)) return 1;
  q->specs.n = 0;
  pool_add(&q->specs, &best, search_score(s, &best, PLAIN));
  search_product(s, &q->specs, &best, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow"), PLAIN, 0);
  finish(q, 1);
  s->lenient = 1;
  q->seeded = 1;
  return is_exact(&q->best);
}

/* Without the seed: what can be said of it. Returns 1 if the draws look random. */
static int estimate(inquiry *q) {
  q->s.lenient = 0;
  q->best.any = 0;
  confirm(q, &q->random);
  if (q->random.elem_round == MX_ROUND_SR && q->random.scale_round != MX_SCALE_ROUND_SR) random_estimate(&q->facts, &q->o, &q->random);
  return q->stochastic = q->facts.believable;
}

/* ---- what the data leave open */

/* Is t as good as what was found, on all of the data? Blocks that speak against it are learned. */
static int as_good(inquiry *q, const mx_spec *t) {
  mx_spec fitted = *t;
  const int here = t->input_dtype == q->o.formats.input_dtype && (!t->had_size || t->flush == q->o.formats.flush);
  const score chosen = here ? search_score(&q->s, t, EVERY) : (score){0, 0, 0};
  if (score_total(chosen) || chosen.nan_codes > q->best.got.nan_codes || fit_tensor_scale(&q->o, &fitted) || !keys_same(&fitted, t)) return 0;
  const score got = full_score(&q->o, t, q->wrong, q->s.threads);
  if (!score_total(got) && got.nan_codes <= q->best.got.nan_codes) return 1;
  search_learn(&q->s, q->wrong, t, 4);
  return 0;
}

/* Set keys back to their defaults where nothing changes, and note which keys could be otherwise. */
static void settle(mx_identity *out, inquiry *q, double deadline) {
  mx_spec *best = &q->best.spec;
  key_values *v = malloc(sizeof *v);
  for (size_t i = 0; v && mx_key_name(i) && i < 64 && now() < deadline; i++) {
    const char *key = mx_key_name(i);
    int open = 0;
    values_of(v, key, &q->o);
    if (!strcmp(key, "input.dtype")) {
      v->n = 3;
      for (int d = 0; d < 3; d++) snprintf(v->text[d], VALUE_TEXT, "%s", mx_key_choice(i, (size_t)d, &(const char *){0}, &(int){0}));
    }
    for (size_t k = 0; k < v->n && !open; k++) {
      mx_spec t = *best;
      if (mx_spec_set(&t, key, v->text[k], NULL) || keys_same(&t, best) || mx_spec_check(&t, NULL) || !as_good(q, &t)) continue;
      open = 1;
      if (k == 0 && !out->preset && t.input_dtype == q->o.formats.input_dtype) *best = t;
    }
    if (open) out->undecided |= UINT64_C(1) << i;
  }
  free(v);
}

/* Of two ways to say the same, the plainer one: a scale that stays zero for a byte 0 that multiplies by it, a least code for a least value. */
static void say_plainly(inquiry *q) {
  mx_spec *best = &q->best.spec, t = *best;
  if (t.scale_byte0 == MX_SCALE_BYTE0_TIMES0 && mx_scale_format(t.scale)->kind != MX_KIND_EXP) {
    t.scale_byte0 = MX_SCALE_BYTE0_VALUE;
    t.scale_zero = MX_SCALE_ZERO_ZERO;
    if (!mx_spec_check(&t, NULL) && as_good(q, &t)) *best = t;
  }
  t = *best;
  if (t.scale_min > 0 && !t.scale_min_byte) {
    const uint64_t code = mx_encode(mx_scale_format(t.scale), (double)t.scale_min, &(mx_encoding){0}, 0);
    t.scale_min = 0;
    t.scale_min_byte = (uint32_t)code;
    if (code && code < 256 && !mx_spec_check(&t, NULL) && as_good(q, &t)) *best = t;
  }
}

static int difference(const mx_spec *a, const mx_spec *b) {
  char x[4096], y[4096];
  int n = 0;
  mx_spec_print(x, sizeof x, a, 1);
  mx_spec_print(y, sizeof y, b, 1);
  char *sx = NULL, *sy = NULL, *p = strtok_r(x, " ", &sx), *q = strtok_r(y, " ", &sy);
  for (; p && q; p = strtok_r(NULL, " ", &sx), q = strtok_r(NULL, " ", &sy)) n += strcmp(p, q) != 0;
  return n;
}

static void name_presets(mx_identity *out) {
  int least = 1000;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    const mx_preset *row = mx_preset_at(i);
    if (row->alias_of || mx_preset_find(&p, row->name, NULL)) continue;
    if (mx_spec_equal(&p, &out->spec)) out->preset = row->name;
    if (p.elem != out->spec.elem || p.scale != out->spec.scale) continue;
    const int n = difference(&p, &out->spec);
    if (n < least) least = n, out->nearest = row->name;
  }
}

static void count(mx_identity *out, inquiry *q) {
  const mx_sample *samples = q->o.samples;
  const attempt *best = &q->best;
  out->spec = best->spec;
  out->exact = is_exact(best);
  out->scales_differ = best->got.scales;
  out->nan_codes_differ = best->got.nan_codes;
  out->tensor_scales_differ = best->scales_wrong;
  *(samples[0].codes ? &out->codes_differ : &out->values_differ) = best->got.codes;
  for (size_t i = 0; i < q->o.n_samples; i++) {
    *(samples[0].codes ? &out->n_codes : &out->n_values) += (uint64_t)samples[i].rows * samples[i].cols;
    if (samples[i].codes) out->n_scales += (uint64_t)samples[i].scale_rows * samples[i].scale_cols;
  }
  if (out->exact) return;
  full_score(&q->o, &best->spec, q->wrong, q->s.threads);
  size_t least = SIZE_MAX; /* the wrong block of fewest elements that are not zero */
  for (size_t i = 0; i < q->o.n_blocks; i++) {
    const block_at *b = &q->o.blocks[i];
    size_t ld, rows, cols, n = 0;
    const float *x = observation_x(&q->o, b->sample, &ld) + b->row * ld + b->col;
    if (!q->wrong[i]) continue;
    observation_extent(&q->o, b, &rows, &cols);
    for (size_t k = 0; k < rows * cols; k++) n += x[k / cols * ld + k % cols] != 0;
    if (n >= least) continue;
    least = n;
    out->bad_sample = b->sample;
    out->bad_row = b->row;
    out->bad_col = b->col;
  }
}

static mx_status check_samples(const mx_sample *s, size_t n, mx_error *err) {
  if (!s || !n) return mx_fail(err, MX_ERR_ARG, "mx_identify: no sample");
  for (size_t i = 0; i < n; i++) {
    if (!s[i].x || (!s[i].codes && !s[i].values) || (s[i].codes && !s[i].scales))
      return mx_fail(err, MX_ERR_ARG, "mx_identify: a sample needs x, and codes with scales, or values");
    if (!s[i].codes != !s[0].codes || s[i].scale_bytes != s[0].scale_bytes)
      return mx_fail(err, MX_ERR_ARG, "mx_identify: samples of different kinds");
    if (!s[i].rows || !s[i].cols || s[i].ld < s[i].cols || s[i].rows > UINT32_MAX || s[i].cols > UINT32_MAX)
      return mx_fail(err, MX_ERR_SHAPE, "mx_identify: %zu x %zu, row stride %zu", s[i].rows, s[i].cols, s[i].ld);
  }
  return MX_OK;
}

static int has_dtype_preset(int dtype) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    if (!mx_preset_at(i)->alias_of && !mx_preset_find(&p, mx_preset_at(i)->name, NULL) && p.input_dtype == dtype) return 1;
  }
  return 0;
}

/* The inquiry with the least that it leaves unexplained; those that were finished already must be far better than the others. */
static inquiry *most_promising(inquiry *all, size_t n) {
  inquiry *best = NULL;
  double least = INFINITY;
  for (size_t i = 0; i < n; i++) {
    const double r = all[i].residue * (1 << 2 * all[i].level);
    if (all[i].level < 2 && r < least) least = r, best = &all[i];
  }
  return best;
}

/* Keys of a spec that are not the default, and digits of its numbers: of two that allow the same draws the plainer one is right. */
static size_t length_of(const mx_spec *s) {
  char text[4096];
  mx_spec_print(text, sizeof text, s, 0);
  return strlen(text);
}

/* If ordinary blocks are rounded at random under some inquiry: that one, with its seed if there is one. Formats and types that allow the same draws
 * are told by the seed: few seeds under each of them first, then many. */
static inquiry *stochastic_inquiry(inquiry *all, size_t n, double deadline) {
  uint8_t random[MAX_INQUIRIES + 1] = {0};
  for (size_t i = 0; i < n; i++) /* a rule without chance that fits is the better explanation */
    if (all[i].residue < INFINITY && !is_far_off(&all[i])) return NULL;
  double least = INFINITY;
  for (size_t i = 0; i < n; i++) {
    random[i] = all[i].residue < INFINITY && looks_stochastic(&all[i]);
    if (random[i]) least = fmin(least, all[i].residue);
  }
  for (size_t i = 0; i < n; i++) {
    if (!random[i]) continue;
    random[i] = all[i].residue <= 4 * least + 0.1 && now() < deadline && find_random_rule(&all[i]);
    if (!random[i])
      all[i].s.lenient = 0, all[i].level = 1;
    else if (finish_with_seed(&all[i], 0))
      return &all[i];
  }
  for (size_t i = 0; i < n && now() < deadline; i++)
    if (random[i] && !all[i].seeded && finish_with_seed(&all[i], 1)) return &all[i];
  inquiry *best = NULL;
  for (size_t i = 0; i < n; i++) {
    if (!random[i]) continue;
    all[i].level = 2;
    if (all[i].seeded && badness(&all[i].best) * 50 < all[i].o.n_blocks && (!best || !best->seeded || better(&all[i].best, &best->best)))
      best = &all[i];
    if (all[i].seeded || (best && best->seeded)) continue;
    if (estimate(&all[i]) && (!best || length_of(&all[i].random) < length_of(&best->random))) best = &all[i];
  }
  return best;
}

/* Presets of formats that do not look likely: data of few numbers look like nothing. Returns the inquiry that is exact. */
static inquiry *unlikely_presets(inquiry *q, const hypothesis *h, size_t n, const mx_sample *samples, size_t n_samples,
                                 const mx_identify_options *options, int threads, double deadline) {
  hypothesis *more = calloc(MAX_HYPOTHESES, sizeof *more);
  size_t n_more = 0;
  inquiry *found = NULL;
  if (more) preset_hypotheses(more, &n_more, samples, n_samples, options, h, n);
  for (size_t i = 0; i < n_more && !found; i++) {
    if (inquiry_open(q, &more[i], more[i].formats.input_dtype, more[i].formats.flush, samples, n_samples, threads, deadline))
      presets_as_they_are(q);
    if (is_exact(&q->best))
      found = q;
    else
      inquiry_close(q);
  }
  free(more);
  return found;
}

/* Is there a subnormal number? Then flush shows, which comes before a rotation and so is supposed, not searched for. */
static int has_subnormal(const mx_sample *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t r = 0; r < s[i].rows; r++)
      for (size_t c = 0; c < s[i].cols; c++) {
        const float a = fabsf(s[i].x[r * s[i].ld + c]);
        if (a > 0 && a < 0x1p-126f) return 1;
      }
  return 0;
}

/* Inquiries under the formats that fit about as well, each with every input.dtype; the first that is exact ends it. */
static inquiry *inquire(inquiry *all, size_t *n_all, const hypothesis *h, size_t n, const mx_sample *samples, size_t n_samples,
                        const mx_identify_options *options, int threads, double deadline) {
  const double begun = now();
  int rotated = 0;
  for (size_t i = 0; i < n; i++) rotated |= h[i].formats.had_size != 0;
  const int flushes = rotated && has_subnormal(samples, n_samples);
  for (int dtype = 0; dtype < MX_INPUT_DTYPE_COUNT; dtype++) /* presets first: most kernels are one */
    for (size_t k = 0; k < n * (1 + (size_t)flushes) && *n_all < MAX_INQUIRIES; k++) {
      inquiry *q = &all[*n_all];
      const int flush = k >= n;
      if (flush && !h[k % n].formats.had_size) continue;
      ++*n_all;
      if (!inquiry_open(q, &h[k % n], dtype, flush, samples, n_samples, threads, deadline)) return NULL;
      if (!dtype || has_dtype_preset(dtype)) presets_as_they_are(q);
      if (is_exact(&q->best)) return q;
    }
  inquiry *preset = unlikely_presets(&all[*n_all], h, n, samples, n_samples, options, threads, deadline);
  *n_all += preset != NULL;
  if (preset) return preset;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < *n_all; i++) {
    find_cores(&all[i]);
    if (all[i].cores.n && all[i].cores.got[0].scales < least) least = all[i].cores.got[0].scales;
  }
  for (size_t i = 0; i < *n_all; i++)
    if (all[i].cores.n && all[i].cores.got[0].scales <= 2 * least + 16) find_specs(&all[i]);
  inquiry *random = stochastic_inquiry(all, *n_all, deadline - 0.3 * (deadline - begun));
  if (random) return random;
  for (inquiry *q; now() < deadline && (q = most_promising(all, *n_all));) {
    const double ordinary = q->level ? q->ordinary : q->residue;
    q->ordinary = ordinary;
    finish(q, q->level++ > 0);
    if (is_exact(&q->best)) return q;
    /* What fits ordinary blocks is right there; the others are few, and one key makes many of them wrong. */
    if (q->best.any) q->residue = ordinary + 0.01 * (double)badness(&q->best) / (double)(q->o.n_blocks + 1);
  }
  inquiry *best = NULL;
  for (size_t i = 0; i < *n_all; i++)
    if (all[i].best.any && (!best || better(&all[i].best, &best->best))) best = &all[i];
  return best;
}

mx_status mx_identify(mx_identity *out, const mx_sample *samples, size_t n, const mx_identify_options *options, mx_error *err) {
  static const mx_identify_options none = {0};
  if (!out) return mx_fail(err, MX_ERR_ARG, "mx_identify: NULL argument");
  *out = (mx_identity){0};
  if (!options) options = &none;
  mx_status status = check_samples(samples, n, err);
  if (status) return status;
  hypothesis *h = calloc(MAX_HYPOTHESES, sizeof *h);
  inquiry *all = calloc(MAX_INQUIRIES + 1, sizeof *all), *best = NULL;
  size_t n_hypotheses = 0, close = 1, n_all = 0;
  if (!h || !all) {
    free(h);
    free(all);
    return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  }
  status = find_hypotheses(h, &n_hypotheses, samples, n, options, err);
  const int threads = options->n_threads > 0 ? options->n_threads : omp_get_max_threads();
  const double allowed = (options->seconds > 0 ? options->seconds : 10) * threads, deadline = now() + allowed;
  const size_t most = samples[0].codes ? 8 : 16; /* values alone: nothing tells formats but the presets */
  while (close < n_hypotheses && close < most && (!samples[0].codes || h[close].spread < 1.3 * h[0].spread + 0.1)) close++;
  if (!status) best = inquire(all, &n_all, h, close, samples, n, options, threads, deadline);
  if (best) {
    out->spec = best->best.spec;
    name_presets(out);
    if (is_exact(&best->best) && !out->preset) say_plainly(best);
    if (is_exact(&best->best) && !options->no_undecided) settle(out, best, now() + 0.3 * allowed);
    count(out, best);
    name_presets(out);
    if (!out->exact) out->preset = NULL; /* it is the nearest one, not the name */
    out->stochastic = out->exact ? is_random(&out->spec) : best->stochastic;
    out->random_bits_least = best->facts.bits_least;
    out->random_bits_most = best->facts.bits_most;
    out->random_bias = best->facts.bias;
    out->random_n = best->facts.n;
    out->random_beyond = best->facts.beyond;
  } else if (!status)
    status = mx_fail(err, MX_ERR_NOMEM, "identify: no spec could be tried");
  for (size_t i = 0; i < n_all; i++) {
    out->specs_tried += all[i].s.tried;
    inquiry_close(&all[i]);
  }
  free(all);
  free(h);
  return status;
}
