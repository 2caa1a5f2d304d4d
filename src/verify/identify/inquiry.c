/* Follows one hypothesis of formats, block, rotation and input.dtype from end to end. Presets are tried first. On ordinary blocks the scale's keys
 * are found from scale codes alone, then the element's keys under the stored scales; then whatever explains zero, Inf, NaN, tiny and huge blocks. A
 * spec that fits the chosen blocks is run over everything, and blocks that it gets wrong join the chosen ones. */
#include "verify/identify/inquiry_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/keys.h"
#include "verify/trial/memo.h"
#include "verify/identify/search/values.h"

enum { ROUNDS = 10, REPAIRED = 3 };
/* How many specs are examined again in each round: a wrong one may lead on the chosen blocks until blocks that refute it have joined them. */
enum { FINALISTS = 4 };
/* How many rounds presets are tried in; in each, blocks that refute all of them join the chosen ones. */
enum { PRESET_ROUNDS = 4 };

uint64_t mxi_attempt_badness(const attempt *a) { return score_total(a->got) + a->scales_wrong; }

int mxi_attempt_better(const attempt *a, const attempt *b) {
  if (!a->any || !b->any) return a->any > b->any;
  return mxi_attempt_badness(a) < mxi_attempt_badness(b) ||
         (mxi_attempt_badness(a) == mxi_attempt_badness(b) && a->got.nan_codes < b->got.nan_codes);
}

int mxi_attempt_exact(const attempt *a) { return a->any && !mxi_attempt_badness(a); }
static int attempt_perfect(const attempt *a) { return mxi_attempt_exact(a) && !a->got.nan_codes; }

/* Finds the tensor.store under which the fewest tensor scales are wrong. */
uint64_t mxi_inquiry_fit_tensor_scale(const observation *o, mx_spec *s) {
  uint64_t least = mxi_tensor_scales_wrong(o, s, 1);
  if (!least || s->tensor_norm == MX_TENSOR_NORM_NONE) return least;
  for (int store = 0; store < MX_TENSOR_STORE_COUNT && least && s->chain == MX_CHAIN_EXACT; store++) {
    mx_spec t = *s;
    t.tensor_store = store;
    const uint64_t n = mxi_tensor_scales_wrong(o, &t, 1);
    if (n < least) least = n, *s = t;
  }
  return least;
}

/* Runs a spec over everything. */
void mxi_inquiry_confirm(inquiry *q, const mx_spec *spec) {
  attempt a = {.spec = *spec, .any = 1};
  a.got = mxi_full_score(&q->o, spec, q->wrong, q->s.threads);
  a.scales_wrong = mxi_inquiry_fit_tensor_scale(&q->o, &a.spec);
  if (mxi_attempt_better(&a, &q->best)) q->best = a;
}

void mxi_inquiry_take(inquiry *q, const mx_spec *spec) {
  q->best.any = 0;
  mxi_inquiry_confirm(q, spec);
}

/* ---- presets */

/* Tries presets that have these formats as they are, or the rules of all others under these formats. Standards come first: if a library gives the
 * same bytes, the definition is the answer. */
static void try_presets(search *s, pool *out, int same_formats) {
  mx_spec *specs = noted(malloc((mx_preset_count() + 1) * sizeof *specs), s->o->lack);
  size_t n = 0;
  for (int standard = 1; standard >= 0; standard--)
    for (size_t i = 0; specs && i < mx_preset_count(); i++) {
      mx_spec p;
      const mx_preset *row = mx_preset_at(i);
      if (row->alias_of || (row->status == MX_PRESET_STANDARD) != standard || mx_preset_find(&p, row->name, NULL)) continue;
      specs[n] = p;
      mxi_observation_put_formats(&specs[n], s->o);
      n += mx_spec_equal(&specs[n], &p) == same_formats && !mx_spec_check(&specs[n], NULL);
    }
  s->budget->tried += n;
  mxi_search_pool(s, out, specs, n);
  free(specs);
}

void mxi_inquiry_presets(inquiry *q) {
  pool *p = noted(calloc(1, sizeof *p), q->o.lack);
  if (!p) return;
  for (int round = 0; round < PRESET_ROUNDS && !attempt_perfect(&q->best); round++) {
    size_t learned = 0;
    p->n = 0;
    p->room = POOL;
    try_presets(&q->s, p, 1);
    for (size_t i = 0; i < p->n && !score_total(p->got[i]) && !attempt_perfect(&q->best); i++) {
      mxi_inquiry_confirm(q, &p->spec[i]);
      learned += mxi_search_learn(&q->s, q->wrong, &p->spec[i], LEARN);
    }
    if (!learned) break;
  }
  free(p);
}

/* ---- one inquiry from end to end */

int mxi_inquiry_open(inquiry *q, const hypothesis *h, int dtype, int flush, const mx_sample *samples, size_t n, int threads,
                     search_budget *budget) {
  *q = (inquiry){.h = *h, .residue = INFINITY};
  q->h.formats.input_dtype = dtype;
  q->h.formats.flush = flush;
  if (mxi_observation_init(&q->o, samples, n, &q->h.formats, h->block_rows, h->block_cols, threads, budget->until.lack)) return 0;
  q->o.cache = mxi_value_cache_new();
  q->o.memo = mxi_memo_new(threads);
  q->wrong = noted(calloc(q->o.n_blocks + 1, 1), q->o.lack);
  return q->wrong && !mxi_search_begin(&q->s, &q->o, threads, budget);
}

void mxi_inquiry_close(inquiry *q) {
  mxi_search_end(&q->s);
  mxi_observation_free(&q->o);
  free(q->wrong);
}

/* A spec is repaired if it leaves at most START_TIMES as many codes as the best one, and START_BY more. A wider choice costs further repairs; a
 * narrower one loses the rule that has a single wrong key which shows in many blocks. */
enum { START_TIMES = 2, START_BY = 8 };

/* Lists the specs from which repair may start, best first: all that fit ordinary blocks, and the presets' rules. */
static void find_starts(inquiry *q) {
  q->starts.n = 0;
  q->starts.room = POOL;
  size_t n = 0;
  while (n < q->specs.n && score_total(q->specs.got[n]) <= START_TIMES * score_total(q->specs.got[0]) + START_BY) n++;
  mxi_search_pool(&q->s, &q->starts, q->specs.spec, n);
  try_presets(&q->s, &q->starts, 0);
}

static int was_repaired(const inquiry *q, const mx_spec *spec) {
  for (size_t i = 0; i < q->n_repaired; i++)
    if (mxi_keys_same(&q->repaired[i], spec)) return 1;
  return 0;
}

/* Does a spec give the same codes as one of those before it on the chosen blocks? prints[n] becomes its fingerprint. */
int mxi_inquiry_same_print(const search *s, const mx_spec *spec, score got, uint64_t *prints, size_t n) {
  prints[n] = mxi_search_print(s, spec);
  if (!prints[n]) return 0;                            /* values alone have none */
  prints[n] ^= score_total(got) << 32 | got.nan_codes; /* what is drawn is judged, not printed */
  for (size_t k = 0; k < n; k++)
    if (prints[k] == prints[n]) return 1;
  return 0;
}

/* Repairs the next few starts that were not repaired before; of those that give the same on every chosen block, one in each round. */
static void repair_some(inquiry *q, int effort) {
  uint64_t prints[REPAIRED];
  size_t n = 0;
  for (size_t i = 0; i < q->starts.n && n < REPAIRED && !budget_over(q->s.budget); i++) {
    if (was_repaired(q, &q->starts.spec[i])) continue;
    mx_spec t = q->starts.spec[i];
    score got = mxi_search_score(&q->s, &t, EVERY);
    if (mxi_inquiry_same_print(&q->s, &t, got, prints, n)) continue;
    q->repaired[q->n_repaired++ % MAX_REPAIRED] = t;
    if (q->n_repaired > MAX_REPAIRED) q->n_repaired = MAX_REPAIRED;
    mxi_search_repair(&q->s, &t, &got, effort);
    mxi_pool_add(&q->finalists, &t, got);
    n++;
    if (score_clean(got)) return;
  }
}

/* Repairs the best few specs on blocks of every class, then runs them over everything; blocks that are wrong join the chosen ones. */
void mxi_inquiry_finish(inquiry *q, int effort) {
  search *s = &q->s;
  pool *again = noted(calloc(1, sizeof *again), q->o.lack);
  q->finalists.room = FINALISTS;
  q->n_repaired = 0;
  find_starts(q);
  for (int round = 0; again && round < ROUNDS && !budget_over(s->budget); round++) {
    *again = (pool){.room = FINALISTS};
    for (size_t i = 0; i < q->finalists.n; i++) mxi_pool_add(again, &q->finalists.spec[i], mxi_search_score(s, &q->finalists.spec[i], EVERY));
    q->finalists = *again;
    if (q->finalists.n && !score_clean(q->finalists.got[0])) {
      mx_spec t = q->finalists.spec[0];
      score got = q->finalists.got[0];
      mxi_search_repair(s, &t, &got, effort);
      mxi_pool_add(&q->finalists, &t, got);
    }
    if (!q->finalists.n || score_total(q->finalists.got[0])) {
      if (round) mxi_inquiry_refit(q), find_starts(q);
      repair_some(q, effort);
    }
    if (!q->finalists.n) break;
    mxi_inquiry_confirm(q, &q->finalists.spec[0]);
    if (attempt_perfect(&q->best) || (mxi_attempt_exact(&q->best) && round > 1)) break;
    if (!mxi_search_learn(s, q->wrong, &q->finalists.spec[0], LEARN) && (!effort || q->n_repaired >= q->starts.n)) break;
  }
  free(again);
}
