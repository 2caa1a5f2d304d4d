/* One hypothesis of formats, block, rotation and input.dtype from end to end: presets; on ordinary blocks the scale's keys from scale codes alone,
 * then the element's keys under the scales that are stored; then whatever explains zero, Inf, NaN, tiny and huge blocks. A spec that fits the chosen
 * blocks is run over everything, and blocks that it gets wrong join the chosen ones. */
#include "verify/inquiry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/keys.h"
#include "verify/memo.h"
#include "verify/values.h"

enum { ROUNDS = 10, LEARN = 12, REPAIRED = 3 };

uint64_t attempt_badness(const attempt *a) { return score_total(a->got) + a->scales_wrong; }

int attempt_better(const attempt *a, const attempt *b) {
  if (!a->any || !b->any) return a->any > b->any;
  return attempt_badness(a) < attempt_badness(b) || (attempt_badness(a) == attempt_badness(b) && a->got.nan_codes < b->got.nan_codes);
}

int attempt_exact(const attempt *a) { return a->any && !attempt_badness(a); }
static int attempt_perfect(const attempt *a) { return attempt_exact(a) && !a->got.nan_codes; }

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
uint64_t inquiry_fit_tensor_scale(const observation *o, mx_spec *s) {
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
  a.scales_wrong = inquiry_fit_tensor_scale(&q->o, &a.spec);
  if (attempt_better(&a, &q->best)) q->best = a;
}

void inquiry_take(inquiry *q, const mx_spec *spec) {
  q->best.any = 0;
  confirm(q, spec);
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

void inquiry_presets(inquiry *q) {
  pool *p = calloc(1, sizeof *p);
  if (!p) return;
  for (int round = 0; round < 4 && !attempt_perfect(&q->best); round++) {
    size_t learned = 0;
    p->n = 0;
    p->room = POOL;
    try_presets(&q->s, p, 1);
    for (size_t i = 0; i < p->n && !score_total(p->got[i]) && !attempt_perfect(&q->best); i++) {
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
    if (!solved(cores))
      TRY("scale.rule=value", "scale.form=encode", "tensor.norm=unit", "scale.round", "scale.max", "tensor.store", "tensor.target");
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

/* The one code that all ordinary blocks have though their maxima lie far apart: a limit. 0: there is none. */
static uint32_t only_scale(const observation *o) {
  enum { APART = 64 };
  uint32_t code = 0;
  float least = INFINITY, most = 0;
  for (size_t i = 0; i < o->n_blocks; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_PLAIN) continue;
    if (code && b->scale != code) return 0;
    code = b->scale;
    least = fminf(least, b->stats.amax);
    most = fmaxf(most, b->stats.amax);
  }
  return most > APART * least && code < 256 ? code : 0;
}

static mx_spec base_of(const inquiry *q) {
  mx_spec base = {0};
  put_formats(&base, &q->h.formats);
  if (mx_scale_format(base.scale)->nan_code == MX_NO_CODE) base.scale_nan = MX_SCALE_NAN_IGNORE;
  return base;
}

void inquiry_cores(inquiry *q) {
  search *s = &q->s;
  pool *cores = &q->cores;
  mx_spec base = base_of(q);
  cores->n = 0;
  cores->room = POOL;
  if (q->h.formats.scale_rule == MX_SCALE_RULE_HIF4) {
    base.scale_rule = MX_SCALE_RULE_HIF4;
    pool_add(cores, &base, (score){0, 0, 0});
    return;
  }
  base.scale_min_byte = only_scale(s->o);
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

static void elements_without_chance(search *s, pool *few, const mx_spec *base) {
  search_product(s, few, base, 1, KEYS("elem.round", "elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
  if (!few->n || !few->got[0].codes) return;
  search_product(s, few, base, 1, KEYS("elem.prescale", "elem.round", "elem.arith", "elem.zero_sign"), PLAIN, 0);
  if (few->got[0].codes && few->spec[0].elem_prescale > 1) { /* which takes the largest ones out of range */
    pool *more = calloc(1, sizeof *more);
    if (!more) return;
    more->room = few->room;
    search_product(s, more, few->spec, few->n, KEYS("elem.arith", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
    *few = *more;
    free(more);
  }
}

/* Under the seed that was found. */
static void elements_of_seed(search *s, pool *few, const mx_spec *base, const mx_spec *seed) {
  mx_spec t = *base;
  t.seed = seed->seed;
  t.elem_round = seed->elem_round;
  t.elem_prescale = seed->elem_prescale;
  t.sr_mode = seed->sr_mode;
  t.sr_bits = seed->sr_bits;
  t.sr_source = seed->sr_source;
  search_product(s, few, &t, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
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
    s->either = base->select == MX_SELECT_FOURSIX; /* a wrong select.error must not speak against the right arithmetic */
    const int drawn = s->lenient && q->drawn && base->scale_round != MX_SCALE_ROUND_SR; /* the others were tried before */
    const int seeded = q->seeded && q->seed.elem_round == MX_ROUND_SR;
    if (seeded) elements_of_seed(s, few, base, &q->seed);
    if (!drawn && !seeded) elements_without_chance(s, few, base);
    if (drawn || (s->lenient && few->n && few->got[0].codes > looked(&s->sets[BLOCK_PLAIN]) / 50)) {
      mx_spec random = *base;
      random.elem_round = MX_ROUND_SR;
      search_product(s, few, &random, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to", "elem.prescale"), PLAIN, 0);
    }
    s->either = 0;
    if (base->select == MX_SELECT_FOURSIX) search_product(s, &few[1], few->spec, few->n, KEYS("select.error", "select.sum"), PLAIN, 0);
    const pool *last = few[1].n ? &few[1] : few;
    if (last->n) done[n_done++] = last->spec[0];
    for (size_t k = 0; k < last->n; k++) pool_add(&q->specs, &last->spec[k], last->got[k]);
  }
  free(few);
}

void inquiry_specs(inquiry *q) {
  find_elements(q);
  const size_t n = q->s.sets[BLOCK_PLAIN].n;
  q->residue = !q->specs.n ? INFINITY : n ? (double)score_total(q->specs.got[0]) / (double)n : 0;
}

/* ---- one inquiry from end to end */

int inquiry_open(inquiry *q, const hypothesis *h, int dtype, int flush, const mx_sample *samples, size_t n, int threads, double deadline) {
  *q = (inquiry){.h = *h, .residue = INFINITY};
  q->h.formats.input_dtype = dtype;
  q->h.formats.flush = flush;
  if (observation_init(&q->o, samples, n, &q->h.formats, h->block_rows, h->block_cols, threads)) return 0;
  q->o.cache = value_cache_new();
  q->o.memo = memo_new(threads);
  q->wrong = calloc(q->o.n_blocks + 1, 1);
  return q->wrong && !search_begin(&q->s, &q->o, threads, deadline);
}

void inquiry_close(inquiry *q) {
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

/* Does a spec give the same as one of those before it, as far as the chosen blocks tell? prints[n] becomes its own. */
static int same_print(const search *s, const mx_spec *spec, score got, uint64_t *prints, size_t n) {
  prints[n] = search_print(s, spec);
  if (!prints[n]) return 0;                            /* values alone have none */
  prints[n] ^= score_total(got) << 32 | got.nan_codes; /* what is drawn is judged, not printed */
  for (size_t k = 0; k < n; k++)
    if (prints[k] == prints[n]) return 1;
  return 0;
}

/* Repair the next few starts that were not repaired before; of those that give the same on every chosen block one a round. */
static void repair_some(inquiry *q, int effort) {
  uint64_t prints[REPAIRED];
  size_t n = 0;
  for (size_t i = 0; i < q->starts.n && n < REPAIRED && now() < q->s.deadline; i++) {
    if (was_repaired(q, &q->starts.spec[i])) continue;
    mx_spec t = q->starts.spec[i];
    score got = search_score(&q->s, &t, EVERY);
    if (same_print(&q->s, &t, got, prints, n)) continue;
    q->repaired[q->n_repaired++ % MAX_REPAIRED] = t;
    if (q->n_repaired > MAX_REPAIRED) q->n_repaired = MAX_REPAIRED;
    search_repair(&q->s, &t, &got, effort);
    pool_add(&q->finalists, &t, got);
    n++;
    if (score_clean(got)) return;
  }
}

/* The best few specs, repaired on blocks of every class; then over everything, and what is wrong is learned. */
void inquiry_finish(inquiry *q, int effort) {
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
      if (round) inquiry_cores(q), inquiry_specs(q), find_starts(q);
      repair_some(q, effort);
    }
    if (!q->finalists.n) break;
    confirm(q, &q->finalists.spec[0]);
    if (attempt_perfect(&q->best) || (attempt_exact(&q->best) && round > 1)) break;
    if (!search_learn(s, q->wrong, &q->finalists.spec[0], LEARN) && (!effort || q->n_repaired >= q->starts.n)) break;
  }
  free(again);
}

/* ---- stochastic rounding */

int spec_random(const mx_spec *s) { return s->elem_round == MX_ROUND_SR || s->scale_round == MX_SCALE_ROUND_SR; }

int inquiry_far_off(const inquiry *q) {
  const score was = q->specs.got[0];
  return was.codes * 50 >= looked(&q->s.sets[BLOCK_PLAIN]) || was.scales * 50 >= q->s.sets[BLOCK_PLAIN].n;
}

int inquiry_looks_random(inquiry *q) {
  if (!q->specs.n || !q->o.samples[0].codes) return 0;
  if (!inquiry_far_off(q)) return 0;
  pool *before = malloc(2 * sizeof *before);
  if (!before) return 0;
  before[0] = q->cores;
  before[1] = q->specs;
  const double residue = q->residue;
  q->drawn = q->specs.got[0].codes * 50 >= looked(&q->s.sets[BLOCK_PLAIN]);
  q->s.lenient = 1;
  inquiry_cores(q);
  inquiry_specs(q);
  if (q->specs.n && !spec_random(&q->specs.spec[0]) && q->specs.got[0].scales) { /* foursix's two scales hide that a scale is drawn */
    q->cores.n = 0;
    cores_at_random(&q->s, &q->cores, base_of(q));
    if (q->cores.n) inquiry_specs(q);
  }
  const int random = q->specs.n && spec_random(&q->specs.spec[0]) && q->residue * 6 < residue;
  if (!random) {
    q->cores = before[0];
    q->specs = before[1];
    q->residue = residue;
    q->s.lenient = 0;
  }
  free(before);
  return random;
}

/* A little at the ends of the range can wait: with the seed it is repaired as under any rule. */
static int clean_enough(const search *s, const mx_spec *spec, score got) {
  uint64_t all = 0;
  for (int k = 0; k < BLOCK_CLASSES; k++) all += looked(&s->sets[k]);
  return score_total(got) * 100 <= all && !score_total(search_score(s, spec, PLAIN));
}

int inquiry_random_rule(inquiry *q, int effort) {
  search *s = &q->s;
  pool *starts = calloc(1, sizeof *starts);
  if (!starts) return 0;
  starts->room = 8;
  uint64_t prints[4];
  for (size_t i = 0, n = 0; i < q->specs.n && i < 4; i++) {
    mx_spec t = q->specs.spec[i];
    score got = search_score(s, &t, EVERY);
    if (same_print(s, &t, got, prints, n)) continue;
    n++;
    search_repair(s, &t, &got, 0);
    pool_add(starts, &t, got);
    if (score_clean(got)) break;
  }
  const mx_spec first[2] = {starts->spec[0], starts->spec[1]};
  const score got_first[2] = {starts->got[0], starts->got[1]};
  for (size_t i = 0, n = starts->n; effort && i < 2 && i < n && !clean_enough(s, &starts->spec[0], starts->got[0]); i++) {
    mx_spec t = first[i];
    score got = got_first[i];
    search_repair(s, &t, &got, 1);
    pool_add(starts, &t, got);
  }
  q->random = starts->spec[0];
  q->rule_lacks = score_total(starts->got[0]);
  const int clean = starts->n && clean_enough(s, &starts->spec[0], starts->got[0]);
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

/* The seed of the rule; or of others that a random scale allows as well: either neighbour fits, and only the seed tells them. */
static int solve_any(inquiry *q, mx_spec *best, int many) {
  enum { OTHERS = 6 };
  search *s = &q->s;
  *best = q->random;
  if (random_solve(s, best, many)) return 1;
  if (q->random.scale_round != MX_SCALE_ROUND_SR) return 0;
  *best = q->random;
  best->select = MX_SELECT_FOURSIX;
  if (q->random.select != MX_SELECT_FOURSIX && !mx_spec_check(best, NULL) && random_solve(s, best, many)) return 1;
  const mx_spec *last = &q->random;
  for (size_t i = 0, tried = 0; i < q->specs.n && tried < OTHERS && !many && now() < s->deadline; i++) {
    const mx_spec *t = &q->specs.spec[i];
    if (score_total(q->specs.got[i]) || t->scale_round != MX_SCALE_ROUND_SR) continue;
    if (same_to_elements(t, last) && t->scale_arith == last->scale_arith && t->scale_rule == last->scale_rule) continue;
    last = t;
    tried++;
    *best = *t;
    if (random_solve(s, best, many)) return 1;
  }
  return 0;
}

int inquiry_seed(inquiry *q, int many) {
  search *s = &q->s;
  mx_spec best;
  if (!solve_any(q, &best, many)) return 0;
  q->seed = best;
  q->seeded = 1;
  s->lenient = 0;
  for (int round = 0; round < 8 && !attempt_exact(&q->best); round++) {
    find_selection(s, &best);
    confirm(q, &best);
    if (!search_learn(s, q->wrong, &best, LEARN) || best.elem_round != MX_ROUND_SR || !random_settle(s, &best)) break;
  }
  if (attempt_exact(&q->best)) return 1;
  q->specs.n = 0;
  pool_add(&q->specs, &best, search_score(s, &best, PLAIN));
  search_product(s, &q->specs, &best, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow"), PLAIN, 0);
  inquiry_finish(q, 0);
  s->lenient = 1;
  return attempt_exact(&q->best);
}

int inquiry_hidden_draws(inquiry *q) {
  search *s = &q->s;
  mx_spec t = q->best.spec;
  if (!q->best.any || !q->o.samples[0].codes || spec_random(&t) || now() > s->deadline) return 0;
  t.scale_round = MX_SCALE_ROUND_SR;
  full_score(&q->o, &q->best.spec, q->wrong, s->threads);
  search_learn(s, q->wrong, &q->best.spec, 64);
  s->lenient = 1;
  const int fits = !mx_spec_check(&t, NULL) && !score_total(search_score(s, &t, EVERY));
  s->lenient = 0;
  if (!fits || !random_solve(s, &t, 2)) return 0;
  confirm(q, &t);
  return attempt_exact(&q->best);
}

int inquiry_estimate(inquiry *q) {
  score got = search_score(&q->s, &q->random, EVERY);
  if (q->s.lenient && !score_clean(got)) search_repair(&q->s, &q->random, &got, 1); /* no seed will help */
  q->s.lenient = 0;
  q->best.any = 0;
  confirm(q, &q->random);
  if (q->random.elem_round == MX_ROUND_SR && q->random.scale_round != MX_SCALE_ROUND_SR) random_estimate(&q->facts, &q->o, &q->random);
  return q->stochastic = q->facts.believable;
}
