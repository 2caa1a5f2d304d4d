/* Continues an inquiry whose ordinary blocks follow no deterministic rule: the rule but for its seed, the seed, and what can be said without it. */
#include <math.h>
#include <stdlib.h>

#include "verify/identify/inquiry_parts.h"

int mxi_spec_random(const mx_spec *s) { return s->elem_round == MX_ROUND_SR || s->scale_round == MX_SCALE_ROUND_SR; }

int mxi_inquiry_far_off(const inquiry *q) {
  const score was = q->specs.got[0];
  return was.codes * ONE_IN >= mxi_inquiry_looked(&q->s.sets[BLOCK_PLAIN]) || was.scales * ONE_IN >= q->s.sets[BLOCK_PLAIN].n;
}

/* Random rounding allows two codes where a rule allows one, so it fits more data by itself: it must leave this many times less unexplained than
 * the best rule. */
enum { FAR_LESS = 6 };

int mxi_inquiry_looks_random(inquiry *q) {
  if (!q->specs.n || !q->o.samples[0].codes) return 0;
  if (!mxi_inquiry_far_off(q)) return 0;
  pool *before = noted(malloc(2 * sizeof *before), q->o.lack);
  if (!before) return 0;
  before[0] = q->cores;
  before[1] = q->specs;
  const double residue = q->residue;
  q->drawn = q->specs.got[0].codes * ONE_IN >= mxi_inquiry_looked(&q->s.sets[BLOCK_PLAIN]);
  q->s.lenient = 1;
  mxi_inquiry_cores(q);
  mxi_inquiry_specs(q);
  if (q->specs.n && !mxi_spec_random(&q->specs.spec[0]) && q->specs.got[0].scales) { /* foursix's two scales hide that a scale is drawn */
    q->cores.n = 0;
    q->fitted.scales = SIZE_MAX;
    mxi_cores_at_random(&q->s, &q->cores, mxi_inquiry_base(q));
    if (q->cores.n) mxi_inquiry_specs(q);
  }
  const int random = q->specs.n && mxi_spec_random(&q->specs.spec[0]) && q->residue * FAR_LESS < residue;
  if (!random) {
    q->fitted.scales = SIZE_MAX;
    q->cores = before[0];
    q->specs = before[1];
    q->residue = residue;
    q->s.lenient = 0;
  }
  free(before);
  return random;
}

/* At most one element in so many lies at the ends of the range; a rule that leaves more unexplained is not the rule. */
enum { ENDS_ONE_IN = 100 };
/* How many specs a random rule is searched from, how many are kept, and how many of those are repaired harder. Each costs a repair under random
 * rounding, the most expensive kind. */
enum { RANDOM_STARTS = 4, RANDOM_KEPT = 8, RANDOM_HARDER = 2 };
/* How many rounds follow once a seed is known; in each, blocks that it does not explain yet join. */
enum { SEED_ROUNDS = 8 };

/* Is so little left at the ends of the range that it can wait? With the seed it is repaired as under any rule. */
static int clean_enough(const search *s, const mx_spec *spec, score got) {
  uint64_t all = 0;
  for (int k = 0; k < BLOCK_CLASSES; k++) all += mxi_inquiry_looked(&s->sets[k]);
  return score_total(got) * ENDS_ONE_IN <= all && !score_total(mxi_search_score(s, spec, PLAIN));
}

int mxi_inquiry_random_rule(inquiry *q, int effort) {
  search *s = &q->s;
  pool *starts = noted(calloc(1, sizeof *starts), s->o->lack);
  if (!starts) return 0;
  starts->room = RANDOM_KEPT;
  uint64_t prints[RANDOM_STARTS];
  for (size_t i = 0, n = 0; i < q->specs.n && i < RANDOM_STARTS; i++) {
    mx_spec t = q->specs.spec[i];
    score got = mxi_search_score(s, &t, EVERY);
    if (mxi_inquiry_same_print(s, &t, got, prints, n)) continue;
    n++;
    mxi_search_repair(s, &t, &got, 0);
    mxi_pool_add(starts, &t, got);
    if (score_clean(got)) break;
  }
  const mx_spec first[RANDOM_HARDER] = {starts->spec[0], starts->spec[1]};
  const score got_first[RANDOM_HARDER] = {starts->got[0], starts->got[1]};
  for (size_t i = 0, n = starts->n; effort && i < RANDOM_HARDER && i < n && !clean_enough(s, &starts->spec[0], starts->got[0]); i++) {
    mx_spec t = first[i];
    score got = got_first[i];
    mxi_search_repair(s, &t, &got, 1);
    mxi_pool_add(starts, &t, got);
  }
  q->random = starts->spec[0];
  q->rule_lacks = score_total(starts->got[0]);
  const int clean = starts->n && clean_enough(s, &starts->spec[0], starts->got[0]);
  free(starts);
  return clean;
}

/* Which candidate of select=foursix wins depends on the random draws, so it can be told only once the seed is known. */
static void find_selection(search *s, mx_spec *best) {
  pool *few = noted(calloc(1, sizeof *few), s->o->lack);
  if (few && best->select == MX_SELECT_FOURSIX) {
    few->room = 1;
    mxi_search_product(s, few, best, 1, KEYS("select.error", "select.sum"), PLAIN, 0);
    if (few->n) *best = few->spec[0];
  }
  free(few);
}

/* Finds the seed of the rule, or of other rules that a random scale allows as well: either neighbour fits, and only the seed tells them apart. */
static int solve_any(inquiry *q, mx_spec *best, int many) {
  enum { OTHERS = 6 }; /* other rules of a random scale, each of which costs a search for a seed */
  search *s = &q->s;
  *best = q->random;
  if (mxi_random_solve(s, best, many)) return 1;
  if (q->random.scale_round != MX_SCALE_ROUND_SR) return 0;
  *best = q->random;
  best->select = MX_SELECT_FOURSIX;
  if (q->random.select != MX_SELECT_FOURSIX && !mx_spec_check(best, NULL) && mxi_random_solve(s, best, many)) return 1;
  const mx_spec *last = &q->random;
  for (size_t i = 0, tried = 0; i < q->specs.n && tried < OTHERS && !many && !budget_over(s->budget); i++) {
    const mx_spec *t = &q->specs.spec[i];
    if (score_total(q->specs.got[i]) || t->scale_round != MX_SCALE_ROUND_SR) continue;
    if (mxi_same_to_elements(t, last) && t->scale_arith == last->scale_arith && t->scale_rule == last->scale_rule) continue;
    last = t;
    tried++;
    *best = *t;
    if (mxi_random_solve(s, best, many)) return 1;
  }
  return 0;
}

int mxi_inquiry_seed(inquiry *q, int many) {
  search *s = &q->s;
  mx_spec best;
  if (!solve_any(q, &best, many)) return 0;
  q->seed = best;
  q->fitted.scales = SIZE_MAX;
  q->seeded = 1;
  s->lenient = 0;
  for (int round = 0; round < SEED_ROUNDS && !mxi_attempt_exact(&q->best); round++) {
    find_selection(s, &best);
    mxi_inquiry_confirm(q, &best);
    if (!mxi_search_learn(s, q->wrong, &best, LEARN) || best.elem_round != MX_ROUND_SR || !mxi_random_settle(s, &best)) break;
  }
  if (mxi_attempt_exact(&q->best)) return 1;
  q->specs.n = 0;
  mxi_pool_add(&q->specs, &best, mxi_search_score(s, &best, PLAIN));
  mxi_search_product(s, &q->specs, &best, 1, KEYS("elem.arith", "elem.zero_sign", "elem.overflow"), PLAIN, 0);
  mxi_inquiry_finish(q, 0);
  s->lenient = 1;
  return mxi_attempt_exact(&q->best);
}

int mxi_inquiry_hidden_draws(inquiry *q) {
  search *s = &q->s;
  mx_spec t = q->best.spec;
  if (!q->best.any || !q->o.samples[0].codes || mxi_spec_random(&t) || budget_over(s->budget)) return 0;
  t.scale_round = MX_SCALE_ROUND_SR;
  mxi_full_score(&q->o, &q->best.spec, q->wrong, s->threads);
  mxi_search_learn(s, q->wrong, &q->best.spec, LEARN_MANY);
  s->lenient = 1;
  const int fits = !mx_spec_check(&t, NULL) && !score_total(mxi_search_score(s, &t, EVERY));
  s->lenient = 0;
  if (!fits || !mxi_random_solve(s, &t, 2)) return 0;
  mxi_inquiry_confirm(q, &t);
  return mxi_attempt_exact(&q->best);
}

int mxi_inquiry_estimate(inquiry *q) {
  score got = mxi_search_score(&q->s, &q->random, EVERY);
  if (q->s.lenient && !score_clean(got)) mxi_search_repair(&q->s, &q->random, &got, 1); /* no seed will help */
  q->s.lenient = 0;
  q->best.any = 0;
  mxi_inquiry_confirm(q, &q->random);
  if (q->random.elem_round == MX_ROUND_SR && q->random.scale_round != MX_SCALE_ROUND_SR) mxi_random_estimate(&q->facts, &q->o, &q->random);
  return q->stochastic = q->facts.believable;
}
