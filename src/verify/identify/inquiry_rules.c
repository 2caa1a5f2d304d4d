/* Finds the rules of ordinary blocks: the scale's keys from scale codes alone, then the element's keys under the scales that are stored. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/identify/inquiry_parts.h"

/* ---- the scale side, on scales of ordinary blocks */

/* Does every sample state the same tensor scale? */
static int common_tensor_scale(const observation *o) {
  for (size_t i = 0; i < o->n_samples; i++)
    if (!o->samples[i].has_tensor_scale || memcmp(&o->samples[i].tensor_scale, &o->samples[0].tensor_scale, sizeof(float))) return 0;
  return 1;
}

#define TRY(...) mxi_search_product(s, cores, &base, 1, KEYS(__VA_ARGS__), PLAIN, 1)

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

/* Handles scales that are rounded at random: either neighbour is accepted until the seed is known. */
void mxi_cores_at_random(search *s, pool *cores, mx_spec base) {
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
    mxi_search_product(s, cores, &six, 1, KEYS("scale.rule=value", "scale.arith", "chain", "tensor.norm=none|nv"), PLAIN, 1);
  }
  TRY("scale.rule=value", "scale.form=encode", "tensor.norm=unit|chmiel|seed004", "scale.max", "tensor.target");
}

/* The single scale code that all ordinary blocks have although their maxima lie far apart, which makes it a limit; 0 if there is none. */
static uint32_t only_scale(const observation *o) {
  enum {
    APART = 64
  }; /* no rounding gives two maxima that lie so far apart one scale; lower, and blocks that are much alike pass for a limit */
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

mx_spec mxi_inquiry_base(const inquiry *q) {
  mx_spec base = {0};
  mxi_observation_put_formats(&base, &q->o);
  if (mx_scale_format(base.scale)->nan_code == MX_NO_CODE) base.scale_nan = MX_SCALE_NAN_IGNORE;
  return base;
}

void mxi_inquiry_refit(inquiry *q) {
  const search *s = &q->s;
  const int as_before = q->fitted.lenient == s->lenient && q->fitted.seeded == q->seeded && q->fitted.scales == s->scales.n;
  if (!as_before) mxi_inquiry_cores(q);
  if (!as_before || q->fitted.looked != mxi_inquiry_looked(&s->sets[BLOCK_PLAIN])) mxi_inquiry_specs(q);
}

/* How many rounds add plain blocks for their scales; each removes rules that fitted by luck. */
enum { CORE_ROUNDS = 4 };

void mxi_inquiry_cores(inquiry *q) {
  search *s = &q->s;
  pool *cores = &q->cores;
  mx_spec base = mxi_inquiry_base(q);
  cores->n = 0;
  cores->room = POOL;
  if (q->h.formats.scale_rule == MX_SCALE_RULE_HIF4) {
    base.scale_rule = MX_SCALE_RULE_HIF4;
    if (s->lenient) base.scale_round = MX_SCALE_ROUND_SR;
    mxi_pool_add(cores, &base, (score){0, 0, 0});
    return;
  }
  base.scale_min_byte = only_scale(s->o);
  const int normed = s->o->samples[0].has_tensor_scale || fabs(q->h.offset) > WITHOUT_NORM;
  for (int learning = 0; learning < CORE_ROUNDS; learning++) {
    q->fitted.scales = s->scales.n;
    cores->n = 0;
    for (int wave = 0; wave < 2 && !solved(cores); wave++) {
      if (wave == normed)
        cores_without_norm(s, cores, base);
      else if (base.input_dtype == MX_INPUT_DTYPE_FLOAT32)
        cores_with_norm(s, cores, base);
    }
    if (s->lenient && !solved(cores)) mxi_cores_at_random(s, cores, base);
    if (!cores->n || cores->got[0].scales || !mxi_search_learn_scales(s, &cores->spec[0], LEARN_MANY)) break;
  }
  q->fitted.lenient = s->lenient;
  q->fitted.seeded = q->seeded;
  if (budget_over(s->budget)) q->fitted.scales = SIZE_MAX; /* not all were tried */
}

/* ---- the element side, on the same blocks */

/* Do two specs look the same to elements, which see the stored scale and not the rule that gave it? Such specs share the keys of their elements. */
int mxi_same_to_elements(const mx_spec *a, const mx_spec *b) {
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

uint64_t mxi_inquiry_looked(const block_set *set) {
  uint64_t n = 0;
  for (size_t i = 0; i < set->n; i++) n += set->at[i].n;
  return n;
}

/* Is each code a neighbour of its value, under some arithmetic? */
static int beside_each(search *s, const mx_spec *base) {
  const uint64_t bar = mxi_inquiry_looked(&s->sets[BLOCK_PLAIN]) / ONE_IN;
  const int lenient = s->lenient;
  mx_spec t = *base;
  uint64_t least = UINT64_MAX;
  t.elem_round = MX_ROUND_SR;
  s->lenient = 1;
  for (t.elem_arith = 0; t.elem_arith < MX_ELEM_ARITH_COUNT && least > bar; t.elem_arith++) {
    const uint64_t n = mx_spec_check(&t, NULL) ? UINT64_MAX : mxi_search_score_until(s, &t, PLAIN, bar).codes;
    least = n < least ? n : least;
  }
  s->lenient = lenient;
  return least <= bar;
}

/* If every rule of rounding gets one element in eight wrong, and the wrong codes are neighbours of their values, the codes are drawn at random; no
 * rule for the ends of the range explains that. `before` says that it looked so under another arithmetic. */
static int looks_drawn(search *s, pool *few, const mx_spec *base, int before) {
  enum { DRAWN_ONE_IN = 8 }; /* lower, and coarse draws pass for a rule; higher, and a rule with odd ends passes for draws */
  const uint64_t bar = mxi_inquiry_looked(&s->sets[BLOCK_PLAIN]) / DRAWN_ONE_IN;
  mxi_search_product(s, few, base, 1, KEYS("elem.round", "elem.arith"), PLAIN, 0);
  if (!few->n || few->got[0].codes <= bar) return 0;
  if (before) return 1;
  if (!beside_each(s, base)) return 0;
  mxi_search_product(s, few, base, 1, KEYS("elem.prescale", "elem.round", "elem.arith"), PLAIN, 0); /* one near 1 looks so too */
  return few->got[0].codes > bar;
}

static void elements_without_chance(search *s, pool *few, const mx_spec *base, int *looked_drawn) {
  if (looks_drawn(s, few, base, *looked_drawn)) {
    *looked_drawn = 1;
    return;
  }
  mxi_search_product(s, few, base, 1, KEYS("elem.round", "elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
  if (!few->n || !few->got[0].codes) return;
  mxi_search_product(s, few, base, 1, KEYS("elem.prescale", "elem.round", "elem.arith", "elem.zero_sign"), PLAIN, 0);
  if (few->got[0].codes && few->spec[0].elem_prescale > 1) { /* which takes the largest ones out of range */
    pool *more = noted(calloc(1, sizeof *more), s->o->lack);
    if (!more) return;
    more->room = few->room;
    mxi_search_product(s, more, few->spec, few->n, KEYS("elem.arith", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
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
  mxi_search_product(s, few, &t, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to"), PLAIN, 0);
}

/* How many rules for the elements are kept for each scale rule and tried with the others. */
enum { FEW = 8 };

static void find_elements(inquiry *q) {
  search *s = &q->s;
  const pool *cores = &q->cores;
  mx_spec done[POOL];
  size_t n_done = 0;
  int looked_drawn = 0;
  pool *few = noted(calloc(2, sizeof *few), s->o->lack);
  q->specs.n = 0;
  q->specs.room = POOL;
  for (size_t i = 0; few && i < cores->n && !budget_over(s->budget); i++) {
    if (cores->got[i].scales > search_worth(cores->got[0].scales)) break;
    const mx_spec *base = &cores->spec[i];
    size_t like = 0;
    while (like < n_done && !mxi_same_to_elements(&done[like], base)) like++;
    if (like < n_done || base->scale_rule == MX_SCALE_RULE_HIF4) {
      mx_spec t = *base;
      if (like < n_done) copy_element_keys(&t, &done[like]);
      mxi_pool_add(&q->specs, &t, mxi_search_score(s, &t, PLAIN));
      continue;
    }
    few[0] = few[1] = (pool){.room = FEW};
    s->either = base->select == MX_SELECT_FOURSIX; /* a wrong select.error must not speak against the right arithmetic */
    const int drawn = s->lenient && q->drawn && base->scale_round != MX_SCALE_ROUND_SR; /* the others were tried before */
    const int seeded = q->seeded && q->seed.elem_round == MX_ROUND_SR;
    if (seeded) elements_of_seed(s, few, base, &q->seed);
    if (!drawn && !seeded) elements_without_chance(s, few, base, &looked_drawn);
    if (drawn || (s->lenient && few->n && few->got[0].codes > mxi_inquiry_looked(&s->sets[BLOCK_PLAIN]) / ONE_IN)) {
      mx_spec random = *base;
      random.elem_round = MX_ROUND_SR;
      mxi_search_product(s, few, &random, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow", "elem.saturate_to", "elem.prescale"), PLAIN,
                         0);
    }
    s->either = 0;
    if (base->select == MX_SELECT_FOURSIX) mxi_search_product(s, &few[1], few->spec, few->n, KEYS("select.error", "select.sum"), PLAIN, 0);
    const pool *last = few[1].n ? &few[1] : few;
    if (last->n) done[n_done++] = last->spec[0];
    for (size_t k = 0; k < last->n; k++) mxi_pool_add(&q->specs, &last->spec[k], last->got[k]);
  }
  free(few);
}

void mxi_inquiry_specs(inquiry *q) {
  q->fitted.looked = mxi_inquiry_looked(&q->s.sets[BLOCK_PLAIN]);
  find_elements(q);
  if (budget_over(q->s.budget)) q->fitted.scales = SIZE_MAX;
  const size_t n = q->s.sets[BLOCK_PLAIN].n;
  q->residue = !q->specs.n ? INFINITY : n ? (double)score_total(q->specs.got[0]) / (double)n : 0;
}
