/* Which spec does a black box follow? Formats first, then presets, then the scale's keys, the element's, those of special blocks. A spec that fits
 * the chosen blocks is run over everything, and the blocks it gets wrong join the chosen ones. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "verify/hypotheses.h"
#include "verify/search.h"
#include "verify/values.h"

enum { ROUNDS = 10, LEARN = 12 };

typedef struct attempt {
  mx_spec spec;
  score got;             /* over everything */
  uint64_t scales_wrong; /* tensor scales */
  int any;
} attempt;

static uint64_t badness(const attempt *a) { return score_total(a->got) + a->scales_wrong; }

static int better(const attempt *a, const attempt *b) {
  if (!a->any || !b->any) return a->any > b->any;
  return badness(a) < badness(b) || (badness(a) == badness(b) && a->got.nan_codes < b->got.nan_codes);
}

static int is_exact(const attempt *a) { return a->any && !badness(a); }
static int is_perfect(const attempt *a) { return is_exact(a) && !a->got.nan_codes; }

static int clean(score s) { return !score_total(s) && !s.nan_codes; }

static void put_formats(mx_spec *s, const mx_spec *f) {
  s->elem = f->elem;
  s->scale = f->scale;
  s->block_rows = f->block_rows;
  s->block_cols = f->block_cols;
  s->had_size = f->had_size;
  s->had_sign = f->had_sign;
}

/* Does every sample state the same tensor scale? */
static int common_tensor_scale(const observation *o) {
  for (size_t i = 0; i < o->n_samples; i++)
    if (!o->samples[i].has_tensor_scale || memcmp(&o->samples[i].tensor_scale, &o->samples[0].tensor_scale, sizeof(float))) return 0;
  return 1;
}

/* What tensor.store and tensor.given make of the stored tensor scales. */
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

static void try_full(attempt *best, search *s, const mx_spec *spec, uint8_t *wrong) {
  attempt a = {.spec = *spec, .any = 1};
  a.got = full_score(s->o, spec, wrong, s->threads);
  a.scales_wrong = fit_tensor_scale(s->o, &a.spec);
  if (better(&a, best)) *best = a;
}

/* Presets with these formats as they are; and the rules of all the others under these formats. */
static void try_presets(search *s, pool *out, int same_formats) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p, f;
    const mx_preset *row = mx_preset_at(i);
    if (row->alias_of || mx_preset_find(&p, row->name, NULL)) continue;
    f = p;
    put_formats(&f, &s->o->formats);
    if (mx_spec_equal(&f, &p) != same_formats || mx_spec_check(&f, NULL)) continue;
    const score got = search_score(s, &f, EVERY);
    s->tried++;
    pool_add(out, &f, got);
  }
}

/* ---- the scale side, on blocks of ordinary numbers */

#define KEYS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

static int solved(const pool *p) { return p->n && !p->got[0].scales; }

static void scale_cores(search *s, pool *cores, const hypothesis *h) {
  mx_spec base = {0};
  put_formats(&base, &h->formats);
  const mx_format *scale = mx_scale_format(base.scale);
  if (scale->nan_code == MX_NO_CODE) base.scale_nan = MX_SCALE_NAN_IGNORE;
  if (h->formats.scale_rule == MX_SCALE_RULE_HIF4) {
    base.scale_rule = MX_SCALE_RULE_HIF4;
    pool_add(cores, &base, search_score(s, &base, PLAIN));
    return;
  }
  const int normed = s->o->samples[0].has_tensor_scale || fabs(h->offset) > 0.7;
#define TRY(...) search_product(s, cores, &base, 1, KEYS(__VA_ARGS__), PLAIN, 1)
  for (int wave = 0; wave < 2; wave++) {
    if (wave == normed) {
      TRY("scale.rule=floor|ceil|quest", "scale.log2", "input.dtype");
      TRY("scale.rule=even", "scale.even_bits", "input.dtype");
      TRY("scale.rule=value", "scale.arith", "scale.round", "scale.max", "scale.log2", "input.dtype");
      TRY("scale.rule=value", "scale.form=encode", "scale.round", "scale.max", "input.dtype");
      TRY("scale.rule=value", "chain", "scale.round", "scale.max");
      if (!solved(cores)) TRY("scale.rule=value", "select=foursix", "scale.arith", "scale.round", "scale.max", "select.error", "select.sum");
      if (!solved(cores)) TRY("scale.rule=value", "select=foursix", "chain", "scale.round", "scale.max", "select.error", "select.sum");
    } else {
      TRY("scale.rule=value", "tensor.norm=nv", "chain", "scale.round", "scale.max", "tensor.target", "scale.log2");
      TRY("scale.rule=value", "tensor.norm=unit", "scale.round", "scale.max", "scale.log2");
      TRY("scale.rule=value", "tensor.norm=unit|chmiel|seed004", "scale.form=encode", "scale.round", "scale.max", "tensor.target");
      TRY("scale.rule=floor|ceil|even|quest", "tensor.norm=unit|nv", "scale.log2", "tensor.target");
      if (!solved(cores))
        TRY("scale.rule=value", "tensor.norm=nv", "chain", "scale.round", "select=foursix", "select.error", "select.sum", "tensor.target");
      if (!solved(cores) && common_tensor_scale(s->o)) {
        mx_spec given = base;
        given.tensor_norm = MX_TENSOR_NORM_NV;
        given.scale_rule = MX_SCALE_RULE_VALUE;
        given.tensor_given = 1;
        given.tensor_given_value = s->o->samples[0].tensor_scale;
        search_product(s, cores, &given, 1, KEYS("chain", "scale.round", "scale.max", "tensor.store", "tensor.target"), PLAIN, 1);
        if (!solved(cores))
          search_product(s, cores, &given, 1, KEYS("chain", "scale.round", "tensor.target", "select=foursix", "select.error", "select.sum"),
                         PLAIN, 1);
      }
    }
    if (solved(cores)) return;
  }
#undef TRY
}

/* ---- the element side, on the same blocks */

#define COMMON_ROUNDS "elem.round=rne|rna|rtz_tie|rtz|rtp|rtn|rna_f32|rne_f32"

/* Elements see the stored scale, not the rule that gave it: cores that agree in these keys share their elements' keys. */
static int same_to_elements(const mx_spec *a, const mx_spec *b) {
  return a->chain == b->chain && a->tensor_norm == b->tensor_norm && a->input_dtype == b->input_dtype && a->scale_form == b->scale_form &&
         a->select == b->select && a->tensor_target == b->tensor_target && a->tensor_given == b->tensor_given &&
         a->tensor_store == b->tensor_store &&
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
  to->elem_inf = from->elem_inf;
  to->elem_inf_n = from->elem_inf_n;
}

static void element_keys(search *s, pool *out, const pool *cores) {
  mx_spec done[POOL];
  size_t n_done = 0;
  for (size_t i = 0; i < cores->n && now() < s->deadline; i++) {
    if (cores->got[i].scales > cores->got[0].scales + 1) break;
    const mx_spec *base = &cores->spec[i];
    size_t like = 0;
    while (like < n_done && !same_to_elements(&done[like], base)) like++;
    if (like < n_done) {
      mx_spec t = *base;
      copy_element_keys(&t, &done[like]);
      pool_add(out, &t, search_score(s, &t, PLAIN));
      continue;
    }
    pool rounded = {.room = 4}, finished = {.room = 4};
    if (base->scale_rule == MX_SCALE_RULE_HIF4) {
      pool_add(out, base, search_score(s, base, PLAIN));
      continue;
    }
    search_product(s, &rounded, base, 1, KEYS("elem.round", "elem.arith"), PLAIN, 0);
    search_product(s, &finished, rounded.spec, rounded.n, KEYS("elem.zero_sign", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
    if (finished.n && finished.got[0].codes) {
      search_product(s, &finished, base, 1, KEYS("elem.round", "elem.arith", "elem.zero_sign", "elem.overflow"), PLAIN, 0);
      if (finished.got[0].codes)
        search_product(s, &finished, rounded.spec, 1, KEYS("elem.prescale", "elem.round", "elem.arith", "elem.zero_sign"), PLAIN, 0);
    }
    if (finished.n) done[n_done++] = finished.spec[0];
    for (size_t k = 0; k < finished.n; k++) pool_add(out, &finished.spec[k], finished.got[k]);
  }
}

/* ---- blocks of zeros, Inf, NaN and of the ends of the range */

typedef struct group {
  unsigned classes;
  const char *keys[8];
} group;

static const group groups[] = {
    {ZERO, {"scale.allzero"}},
    {ZERO | PLAIN, {"scale.allzero", "elem.zero_sign"}},
    {ZERO, {"scale.allzero=chain", "scale.zero", "scale.byte0", "scale.min"}},
    {SMALL, {"flush"}}, /* one key that explains all goes before two */
    {SMALL, {"scale.min_byte"}},
    {SMALL, {"scale.byte0"}},
    {SMALL, {"scale.zero"}},
    {SMALL, {"scale.min"}},
    {SMALL, {"scale.byte_overflow"}},
    {SMALL, {"scale.zero", "scale.byte0", "scale.used"}},
    {SMALL, {"scale.round", "scale.zero", "scale.byte0"}},
    {SMALL, {"scale.subnormal", "scale.byte0", "scale.min_byte", "flush"}},
    {SMALL, {"scale.zero", "scale.min", "scale.byte0", "scale.min_byte"}},
    {SMALL, {"scale.byte_overflow", "scale.used", "scale.zero", "flush"}},
    {SMALL, {"scale.log2", "scale.arith", "scale.subnormal", "scale.byte0", "scale.zero"}},
    {SMALL, {"elem.arith", "elem.zero_sign", "scale.byte0", "scale.zero", "scale.used"}},
    {LARGE, {"scale.carry", "scale.max_byte", "scale.byte_overflow"}},
    {LARGE, {"scale.carry", "scale.inf", "scale.nan"}},
    {LARGE, {"scale.max_byte", "scale.used", "elem.overflow", "elem.arith"}},
    {INF_, {"scale.inf", "elem.inf"}},
    {INF_, {"scale.inf", "scale.nan", "elem.inf"}},
    {INF_, {"scale.inf", "elem.overflow", "elem.saturate_to", "elem.nan"}},
    {INF_ | LARGE, {"scale.inf", "scale.carry", "elem.nan"}},
    {NAN_, {"scale.nan", "elem.nan"}},
    {NAN_ | INF_, {"scale.nan", "scale.inf", "elem.nan"}},
    {NAN_, {"scale.nan", "scale.sign", "elem.nan"}},
    {NAN_ | INF_, {"elem.nan", "elem.inf", "elem.zero_sign"}},
    {ZERO | SMALL, {"elem.zero_sign", "scale.byte0", "scale.zero"}},
};

static void special_keys(search *s, mx_spec *spec) {
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && now() < s->deadline; i++) {
      const group *g = &groups[i];
      score got = search_score(s, spec, g->classes);
      if (clean(got)) continue;
      size_t n = 0;
      while (n < 8 && g->keys[n]) n++;
      pool best = {.room = 1};
      search_product(s, &best, spec, 1, g->keys, n, g->classes, 0);
      if (best.n && score_less(best.got[0], got)) *spec = best.spec[0];
    }
    if (clean(search_score(s, spec, EVERY))) return;
  }
}

/* ---- stochastic rounding: seeds and modes that a kernel is likely to have */

static int looks_stochastic(const search *s, const mx_spec *spec) {
  const score got = search_score(s, spec, PLAIN);
  uint64_t n = 0;
  for (size_t i = 0; i < s->sets[BLOCK_PLAIN].n; i++) n += s->o->block_rows * s->o->block_cols;
  return got.codes * 50 > n;
}

static void stochastic_keys(search *s, pool *out, const pool *bases) {
  mx_spec base = bases->spec[0];
  base.elem_round = MX_ROUND_SR;
  for (base.seed = 0; base.seed < 16 && now() < s->deadline; base.seed++) {
    search_product(s, out, &base, 1,
                   KEYS("sr.mode", "sr.bits=0|8|12|10|4|20|24|23|1|2|3|5|6|7|9|11|13|14|15|17|18|19|21|22", "elem.arith=exact"), PLAIN, 0);
    base.sr_source = MX_SR_SOURCE_AMD_LFSR;
    pool_add(out, &base, search_score(s, &base, PLAIN));
    base.sr_source = MX_SR_SOURCE_PHILOX;
    if (out->n && !out->got[0].codes) return;
  }
}

/* One round: from formats to a spec that is right on the chosen blocks, or as near as it gets. */
static void one_round(search *s, pool *finalists, const hypothesis *h, int *stochastic) {
  pool *cores = calloc(1, sizeof *cores), *specs = calloc(1, sizeof *specs);
  if (cores && specs) {
    cores->room = POOL;
    specs->room = 8;
    scale_cores(s, cores, h);
    element_keys(s, specs, cores);
    if (specs->n && specs->got[0].codes && looks_stochastic(s, &specs->spec[0])) {
      pool random = {.room = 2};
      stochastic_keys(s, &random, cores);
      *stochastic = 1;
      for (size_t i = 0; i < random.n; i++) pool_add(specs, &random.spec[i], random.got[i]);
    }
    for (size_t i = 0; i < specs->n && now() < s->deadline; i++) {
      if (i && score_total(specs->got[i]) > score_total(specs->got[0])) break;
      special_keys(s, &specs->spec[i]);
      score got = search_score(s, &specs->spec[i], EVERY);
      if (!clean(got)) search_descend(s, &specs->spec[i], &got, EVERY);
      pool_add(finalists, &specs->spec[i], got);
      if (clean(got) && !tensor_scales_wrong(s->o, &specs->spec[i], 0)) break;
    }
  }
  free(cores);
  free(specs);
}

/* How well a hypothesis does on ordinary blocks: wrong codes and scales a block. */
static double probe(const hypothesis *h, const mx_sample *samples, size_t n, int threads, double deadline, uint64_t *tried) {
  observation o;
  search s;
  double result = INFINITY;
  pool *pools = calloc(3, sizeof *pools);
  if (!pools || observation_init(&o, samples, n, &h->formats, h->block_rows, h->block_cols) || search_begin(&s, &o, threads, deadline)) {
    free(pools);
    return INFINITY;
  }
  pools[0].room = pools[1].room = pools[2].room = 8;
  try_presets(&s, &pools[0], 1);
  if (!pools[0].n || score_total(pools[0].got[0])) {
    scale_cores(&s, &pools[1], h);
    element_keys(&s, &pools[2], &pools[1]);
    if (pools[2].n && s.sets[BLOCK_PLAIN].n) result = (double)score_total(pools[2].got[0]) / (double)s.sets[BLOCK_PLAIN].n;
  } else
    result = 0;
  *tried += s.tried;
  free(pools);
  search_end(&s);
  observation_free(&o);
  return result;
}

static void under_hypothesis(attempt *best, const hypothesis *h, const mx_sample *samples, size_t n, int threads, double deadline,
                             uint64_t *tried, int *stochastic) {
  observation o;
  search s;
  pool *finalists = calloc(1, sizeof *finalists);
  if (!finalists || observation_init(&o, samples, n, &h->formats, h->block_rows, h->block_cols) || search_begin(&s, &o, threads, deadline)) {
    free(finalists);
    return;
  }
  finalists->room = POOL;
  uint8_t *wrong = calloc(o.n_blocks + 1, 1);
  attempt mine = {0};
  for (int round = 0; wrong && round < ROUNDS && now() < deadline; round++) {
    pool *presets = calloc(1, sizeof *presets);
    attempt last = {0};
    if (!presets) break;
    presets->room = POOL;
    try_presets(&s, presets, 1);
    for (size_t i = 0; i < presets->n && !score_total(presets->got[i]) && !is_exact(&last); i++) try_full(&last, &s, &presets->spec[i], wrong);
    if (!is_exact(&last)) {
      for (size_t i = 0; i < finalists->n; i++) finalists->got[i] = search_score(&s, &finalists->spec[i], EVERY);
      pool again = {.room = POOL};
      for (size_t i = 0; i < finalists->n; i++) pool_add(&again, &finalists->spec[i], finalists->got[i]);
      *finalists = again;
      if (!finalists->n || !clean(finalists->got[0])) {
        try_presets(&s, presets, 0);
        for (size_t i = 0; i < presets->n && i < 3; i++) pool_add(finalists, &presets->spec[i], presets->got[i]);
        one_round(&s, finalists, h, stochastic);
        if (finalists->n && !clean(finalists->got[0])) {
          special_keys(&s, &finalists->spec[0]);
          finalists->got[0] = search_score(&s, &finalists->spec[0], EVERY);
          search_descend(&s, &finalists->spec[0], &finalists->got[0], EVERY);
        }
      }
      if (finalists->n) try_full(&last, &s, &finalists->spec[0], wrong);
    }
    free(presets);
    if (better(&last, &mine)) mine = last;
    if (is_perfect(&mine) || (is_exact(&mine) && round > 1) || !search_learn(&s, wrong, LEARN)) break;
    if (is_exact(&mine) && !finalists->n) break; /* a preset, but for what NaN codes are */
  }
  if (better(&mine, best)) {
    *best = mine;
  }
  *tried += s.tried;
  free(wrong);
  free(finalists);
  search_end(&s);
  observation_free(&o);
}

/* ---- what the data leave open */

/* Set keys back to their defaults where nothing changes, and note which keys could be otherwise. */
static void settle(mx_identity *out, attempt *best, const hypothesis *h, const mx_sample *samples, size_t n, int threads, double deadline) {
  observation o;
  search s;
  if (observation_init(&o, samples, n, &h->formats, h->block_rows, h->block_cols)) return;
  if (search_begin(&s, &o, threads, deadline)) {
    observation_free(&o);
    return;
  }
  uint8_t *wrong = calloc(o.n_blocks + 1, 1);
  for (size_t i = 0; wrong && mx_key_name(i) && i < 64; i++) {
    const char *key = mx_key_name(i);
    key_values v;
    values_of(&v, key, &o);
    int open = 0;
    for (size_t k = 0; k < v.n && !open; k++) {
      mx_spec t = best->spec;
      if (mx_spec_set(&t, key, v.text[k], NULL) || mx_spec_equal(&t, &best->spec) || mx_spec_check(&t, NULL)) continue;
      if (!clean(search_score(&s, &t, EVERY)) || fit_tensor_scale(&o, &t)) continue;
      const score got = full_score(&o, &t, wrong, threads);
      if (!clean(got)) {
        search_learn(&s, wrong, 4);
        continue;
      }
      open = 1;
      if (k == 0 && !out->preset) best->spec = t;
    }
    if (open) out->undecided |= UINT64_C(1) << i;
    if (now() > deadline) break;
  }
  free(wrong);
  search_end(&s);
  observation_free(&o);
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

static void count(mx_identity *out, const attempt *best, const hypothesis *h, const mx_sample *samples, size_t n, int threads) {
  observation o;
  out->spec = best->spec;
  out->exact = is_exact(best);
  out->scales_differ = best->got.scales;
  out->nan_codes_differ = best->got.nan_codes;
  out->tensor_scales_differ = best->scales_wrong;
  *(samples[0].codes ? &out->codes_differ : &out->values_differ) = best->got.codes;
  for (size_t i = 0; i < n; i++) {
    *(samples[0].codes ? &out->n_codes : &out->n_values) += (uint64_t)samples[i].rows * samples[i].cols;
    if (samples[i].codes) out->n_scales += (uint64_t)samples[i].scale_rows * samples[i].scale_cols;
  }
  if (out->exact || observation_init(&o, samples, n, &h->formats, h->block_rows, h->block_cols)) return;
  uint8_t *wrong = calloc(o.n_blocks + 1, 1);
  if (wrong) full_score(&o, &best->spec, wrong, threads);
  for (size_t i = 0; wrong && i < o.n_blocks; i++)
    if (wrong[i]) {
      out->bad_sample = o.blocks[i].sample;
      out->bad_row = o.blocks[i].row;
      out->bad_col = o.blocks[i].col;
      break;
    }
  free(wrong);
  observation_free(&o);
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

mx_status mx_identify(mx_identity *out, const mx_sample *samples, size_t n, const mx_identify_options *options, mx_error *err) {
  static const mx_identify_options none = {0};
  if (!out) return mx_fail(err, MX_ERR_ARG, "mx_identify: NULL argument");
  *out = (mx_identity){0};
  if (!options) options = &none;
  mx_status status = check_samples(samples, n, err);
  if (status) return status;
  hypothesis *h = calloc(MAX_HYPOTHESES, sizeof *h);
  size_t n_hypotheses = 0, chosen = 0;
  if (!h) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  status = find_hypotheses(h, &n_hypotheses, samples, n, options, err);
  const int threads = options->n_threads > 0 ? options->n_threads : omp_get_max_threads();
  const double start = now(), allowed = (options->seconds > 0 ? options->seconds : 10) * threads;
  attempt best = {0};
  /* Formats that fit about as well are told apart by how far a search gets under each. */
  if (!status && samples[0].codes) {
    size_t close = 1;
    while (close < n_hypotheses && close < 8 && h[close].spread < 1.3 * h[0].spread + 0.1) close++;
    double got[8];
    for (size_t i = 0; i < close; i++) {
      got[i] = close == 1 ? 0 : probe(&h[i], samples, n, threads, now() + 0.08 * allowed, &out->specs_tried);
      if (got[i] == 0) close = i + 1;
    }
    for (size_t i = 1; i < close; i++) /* insertion sort by result */
      for (size_t k = i; k && got[k] < got[k - 1]; k--) {
        const hypothesis th = h[k];
        const double tg = got[k];
        h[k] = h[k - 1], got[k] = got[k - 1];
        h[k - 1] = th, got[k - 1] = tg;
      }
    n_hypotheses = close < 3 ? close : 3;
  }
  for (size_t i = 0; i < n_hypotheses && !status && !is_exact(&best); i++) {
    if (i && best.any && now() - start > 0.8 * allowed) break;
    attempt mine = {0};
    const double share = i + 1 < n_hypotheses ? 0.6 : 1;
    under_hypothesis(&mine, &h[i], samples, n, threads, now() + share * (allowed - (now() - start)), &out->specs_tried, &out->stochastic);
    if (better(&mine, &best)) best = mine, chosen = i;
  }
  if (!status && best.any) {
    out->spec = best.spec;
    name_presets(out);
    if (is_exact(&best) && !options->no_undecided) settle(out, &best, &h[chosen], samples, n, threads, now() + 0.3 * allowed);
    count(out, &best, &h[chosen], samples, n, threads);
    name_presets(out);
    if (out->exact) out->stochastic = out->spec.elem_round == MX_ROUND_SR;
  } else if (!status)
    status = mx_fail(err, MX_ERR_NOMEM, "identify: no spec could be tried");
  free(h);
  return status;
}
