/* Chooses blocks, and tries all products of the values of some keys on them. */
#include "verify/identify/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/keys.h"
#include "verify/identify/search/values.h"

/* With how many blocks of a class a search begins, by the number of elements a block has. With more, each trial is slower; with fewer, more wrong
 * specs get as far as all blocks. Classes other than plain blocks, in which few rules differ, get half as many and a few more. */
enum { FIRST_BLOCKS = 40, FIRST_LARGE_BLOCKS = 24, FIRST_HUGE_BLOCKS = 12, SMALL_AREA = 64, LARGE_AREA = 1024, A_FEW = 4 };
/* How many plain blocks are compared by their scales alone, which costs a fraction of comparing codes. */
enum { SCALE_BLOCKS = 112 };
/* Keys of one product. */
enum { MAX_KEYS = 8 };
/* How many specs are tried in parallel: the first few soon set the limit at which the others stop early; larger pieces keep the threads busy. */
enum { FIRST_PIECE = 48, PIECE = 512 };
/* Specs to be tried below which one thread is done before others have started. */
enum { ONE_THREAD = 32 };
/* The room that a list of blocks begins with. */
enum { FIRST_ROOM = 256 };

/* About `wanted` of the blocks of each class, evenly. */
static int spread(block_set *out, const observation *o, int kind, size_t wanted, int scales_only) {
  size_t count = 0, seen = 0;
  for (size_t i = 0; i < o->n_blocks; i++) count += o->blocks[i].kind == kind;
  for (size_t i = 0; i < o->n_blocks; i++) {
    if (o->blocks[i].kind != kind) continue;
    const size_t at = seen++;
    if (count > wanted && at * wanted / count == (at + 1) * wanted / count) continue;
    if (scales_only) {
      if (out->n == out->room) {
        set_item *more = noted(realloc(out->at, (out->room ? 2 * out->room : FIRST_ROOM) * sizeof *more), o->lack);
        if (!more) return 0;
        out->room = out->room ? 2 * out->room : FIRST_ROOM;
        out->at = more;
      }
      out->at[out->n++] = (set_item){.block = (uint32_t)i};
    } else if (!mxi_set_add(out, (uint32_t)i, NULL))
      return 0;
  }
  return 1;
}

mx_status mxi_search_begin(search *s, const observation *o, int threads, search_budget *budget) {
  *s = (search){.o = o, .threads = threads, .budget = budget};
  const size_t area = o->block_rows * o->block_cols;
  const size_t wanted = area <= SMALL_AREA ? FIRST_BLOCKS : area <= LARGE_AREA ? FIRST_LARGE_BLOCKS : FIRST_HUGE_BLOCKS;
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    s->sets[k].of = o;
    if (!spread(&s->sets[k], o, k, k == BLOCK_PLAIN ? wanted : wanted / 2 + A_FEW, 0)) return MX_ERR_NOMEM;
  }
  s->scales.of = o;
  return spread(&s->scales, o, BLOCK_PLAIN, SCALE_BLOCKS, 1) ? MX_OK : MX_ERR_NOMEM;
}

void mxi_search_end(search *s) {
  for (int k = 0; k < BLOCK_CLASSES; k++) mxi_set_free(&s->sets[k]);
  mxi_set_free(&s->scales);
}

size_t mxi_search_learn(search *s, const uint8_t *wrong, const mx_spec *spec, size_t each) {
  size_t count[BLOCK_CLASSES] = {0}, seen[BLOCK_CLASSES] = {0}, added = 0;
  for (size_t i = 0; i < s->o->n_blocks; i++) count[s->o->blocks[i].kind] += wrong[i];
  for (size_t i = 0; i < s->o->n_blocks; i++) {
    const int k = s->o->blocks[i].kind;
    if (!wrong[i]) continue;
    const size_t at = seen[k]++;
    if (count[k] > each && at * each / count[k] == (at + 1) * each / count[k]) continue;
    added += (size_t)mxi_set_add(&s->sets[k], (uint32_t)i, spec);
  }
  return added;
}

size_t mxi_search_learn_scales(search *s, const mx_spec *spec, size_t each) {
  uint8_t *wrong = noted(calloc(s->o->n_blocks + 1, 1), s->o->lack);
  size_t count = 0, seen = 0, added = 0;
  if (!wrong) return 0;
  mxi_scales_score(s->o, spec, PLAIN, s->lenient ? LOOK_LENIENT : 0, wrong);
  for (size_t i = 0; i < s->o->n_blocks; i++) count += wrong[i];
  for (size_t i = 0; i < s->o->n_blocks; i++) {
    if (!wrong[i]) continue;
    const size_t at = seen++;
    if (count > each && at * each / count == (at + 1) * each / count) continue;
    added += (size_t)mxi_set_add(&s->scales, (uint32_t)i, NULL);
  }
  free(wrong);
  return added;
}

int mxi_search_how(const search *s, int scales_only) {
  return (scales_only ? LOOK_SCALES : LOOK_BOTH) | (s->lenient ? LOOK_LENIENT : 0) | (s->either ? LOOK_EITHER : 0);
}

/* Counts wrong tensor scales among the witnesses; outside a chain, what is stored is fitted later. */
static uint64_t witnesses_wrong(const search *s, const mx_spec *spec) {
  uint64_t least = UINT64_MAX;
  for (int store = 0; store < MX_TENSOR_STORE_COUNT && least; store++) {
    mx_spec t = *spec;
    if (store && t.chain != MX_CHAIN_EXACT) break;
    t.tensor_store = store;
    const uint64_t n = mxi_tensor_scales_wrong(s->o, &t, 0);
    least = n < least ? n : least;
  }
  return least;
}

/* Also counts, in every class, wrong tensor scales. */
score mxi_search_score_until(const search *s, const mx_spec *spec, unsigned classes, uint64_t limit) {
  score total = {0, 0, 0};
  if (classes == EVERY && s->o->n_witnesses && s->o->samples[s->o->witness[0]].has_tensor_scale) total.scales = witnesses_wrong(s, spec);
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    if (!(classes >> k & 1) || !s->sets[k].n) continue;
    total = score_sum(total, mxi_set_score(&s->sets[k], spec, mxi_search_how(s, 0), limit ? limit - score_total(total) + 1 : 0, NULL));
    if (limit && score_total(total) > limit) break;
  }
  return total;
}

score mxi_search_score(const search *s, const mx_spec *spec, unsigned classes) { return mxi_search_score_until(s, spec, classes, 0); }

uint64_t mxi_search_print(const search *s, const mx_spec *spec) {
  uint64_t print = 0;
  for (int k = 0; k < BLOCK_CLASSES; k++) mxi_set_score_print(&s->sets[k], spec, mxi_search_how(s, 0), 0, NULL, &print);
  return print;
}

void mxi_pool_add(pool *p, const mx_spec *spec, score got) {
  size_t at = p->n;
  while (at && score_less(got, p->got[at - 1])) at--;
  if (at >= p->room) return;
  for (size_t i = 0; i < p->n; i++)
    if (mxi_keys_same(&p->spec[i], spec)) return;
  const size_t moved = (p->n < p->room ? p->n : p->room - 1) - at;
  memmove(p->spec + at + 1, p->spec + at, moved * sizeof *p->spec);
  memmove(p->got + at + 1, p->got + at, moved * sizeof *p->got);
  p->spec[at] = *spec;
  p->got[at] = got;
  if (p->n < p->room) p->n++;
}

void mxi_search_pool(const search *s, pool *out, const mx_spec *specs, size_t n) {
  score *got = noted(calloc(n + 1, sizeof *got), s->o->lack);
  if (!got) return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads) if (n > 1)
  for (size_t i = 0; i < n; i++) got[i] = mxi_search_score(s, &specs[i], EVERY);
  for (size_t i = 0; i < n; i++) mxi_pool_add(out, &specs[i], got[i]);
  free(got);
}

/* The keys that scale.round, scale.max and the arithmetic are combined with. */
static int same_family(const mx_spec *a, const mx_spec *b) {
  return a->scale_rule == b->scale_rule && a->scale_form == b->scale_form && a->chain == b->chain && a->tensor_norm == b->tensor_norm &&
         a->select == b->select;
}

/* Keeps at most FAMILY specs of a family: many that fit alike must not crowd out another rule. */
static void pool_add_varied(pool *p, const mx_spec *spec, score got) {
  enum { FAMILY = 8 };
  size_t alike = 0, last = 0;
  for (size_t i = 0; i < p->n; i++)
    if (same_family(&p->spec[i], spec)) alike++, last = i;
  if (alike >= FAMILY) {
    if (!score_less(got, p->got[last])) return;
    p->n--;
    memmove(p->spec + last, p->spec + last + 1, (p->n - last) * sizeof *p->spec);
    memmove(p->got + last, p->got + last + 1, (p->n - last) * sizeof *p->got);
  }
  mxi_pool_add(p, spec, got);
}

/* A key and specs that have it set to its values: texts are read once, not for each combination. */
typedef struct factor {
  size_t key, n;
  mx_spec with[MAX_VALUES];
} factor;

/* "name", of all its values, or "name=v|w". */
static void factor_of(factor *f, const char *text, const observation *o) {
  char name[32];
  key_values v;
  const size_t n = strcspn(text, "=");
  memcpy(name, text, n);
  name[n] = 0;
  *f = (factor){.key = mxi_key_find(name)};
  v.n = 0;
  if (!text[n]) mxi_values_of(&v, name, o);
  for (const char *p = text + n; *p && v.n < MAX_VALUES;) {
    const size_t m = strcspn(++p, "|");
    memcpy(v.text[v.n], p, m);
    v.text[v.n++][m] = 0;
    p += m;
  }
  for (size_t i = 0; i < v.n; i++) f->n += !mx_spec_set(&f->with[f->n], name, v.text[i], NULL);
}

static score judge(const search *s, const mx_spec *spec, unsigned classes, int scales_only, uint64_t limit) {
  if (!scales_only) return mxi_search_score_until(s, spec, classes, limit);
  score got = mxi_set_score(&s->scales, spec, mxi_search_how(s, 1), limit, NULL);
  got.codes = got.nan_codes = 0;
  if (s->o->n_witnesses && (!limit || score_total(got) <= limit)) got.scales += witnesses_wrong(s, spec);
  return got;
}

static void run_piece(search *s, pool *out, const mx_spec *specs, size_t n, unsigned classes, int scales_only) {
  score *got = noted(calloc(n + 1, sizeof *got), s->o->lack);
  if (!got) return;
  s->budget->tried += n;
  uint64_t limit = out->n < out->room ? 0 : score_total(out->got[out->n - 1]) + 1;
  if (scales_only && out->n && (!limit || limit > search_worth(out->got[0].scales))) limit = search_worth(out->got[0].scales) + 1;
#pragma omp parallel for schedule(dynamic, 4) num_threads(s->threads) if (n > ONE_THREAD)
  for (size_t i = 0; i < n; i++) got[i] = judge(s, &specs[i], classes, scales_only, limit);
  for (size_t i = 0; i < n; i++) (scales_only ? pool_add_varied : mxi_pool_add)(out, &specs[i], got[i]);
  free(got);
}

void mxi_search_product(search *s, pool *out, const mx_spec *bases, size_t n_bases, const char *const *keys, size_t n_keys, unsigned classes,
                        int scales_only) {
  if (n_keys > MAX_KEYS) n_keys = MAX_KEYS;
  factor *f = noted(calloc(n_keys + 1, sizeof *f), s->o->lack);
  mx_spec *specs = noted(malloc(PIECE * sizeof *specs), s->o->lack);
  size_t n = 0, piece = FIRST_PIECE; /* the first ones set the bar early */
  for (size_t k = 0; f && k < n_keys; k++) factor_of(&f[k], keys[k], s->o);
  for (size_t b = 0; f && specs && b < n_bases && !budget_over(s->budget); b++) {
    size_t at[MAX_KEYS] = {0};
    for (int more = 1; more;) {
      specs[n] = bases[b];
      for (size_t k = 0; k < n_keys; k++)
        if (f[k].n) mxi_key_copy(&specs[n], &f[k].with[at[k]], f[k].key);
      n += !mx_spec_check(&specs[n], NULL);
      more = 0;
      for (size_t k = 0; k < n_keys && !more; k++) {
        if (++at[k] < f[k].n)
          more = 1;
        else
          at[k] = 0;
      }
      if (n == piece) {
        if (budget_over(s->budget)) break;
        run_piece(s, out, specs, n, classes, scales_only);
        if (out->n == out->room && score_clean(out->got[out->n - 1])) goto out; /* no other can be better than any of these */
        piece = 2 * piece < PIECE ? 2 * piece : PIECE;
        n = 0;
      }
    }
  }
  if (n) run_piece(s, out, specs, n, classes, scales_only);
out:
  free(f);
  free(specs);
}
