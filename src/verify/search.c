/* Products of values, and descent. */
#include "verify/search.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verify/values.h"

enum { FIRST_BLOCKS = 48, MAX_KEYS = 8, QUICK_BLOCKS = 20, PIECE = 4096 };

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* a busy machine must not change what is found */
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

mx_status search_begin(search *s, const observation *o, int threads, double deadline) {
  *s = (search){.o = o, .threads = threads, .deadline = deadline};
  size_t count[BLOCK_CLASSES] = {0}, seen[BLOCK_CLASSES] = {0};
  for (size_t i = 0; i < o->n_blocks; i++) count[o->blocks[i].kind]++;
  for (int k = 0; k < BLOCK_CLASSES; k++) s->sets[k].of = o;
  const size_t area = o->block_rows * o->block_cols, room = 2048 / area, first = room > FIRST_BLOCKS ? FIRST_BLOCKS : room < 12 ? 12 : room;
  for (size_t i = 0; i < o->n_blocks; i++) {
    const int k = o->blocks[i].kind;
    const size_t at = seen[k]++;
    if ((count[k] <= first || at * first / count[k] != (at + 1) * first / count[k]) && set_add(&s->sets[k], (uint32_t)i)) return MX_ERR_NOMEM;
  }
  return MX_OK;
}

void search_end(search *s) {
  for (int k = 0; k < BLOCK_CLASSES; k++) set_free(&s->sets[k]);
}

size_t search_learn(search *s, const uint8_t *wrong, size_t each) {
  size_t count[BLOCK_CLASSES] = {0}, seen[BLOCK_CLASSES] = {0}, added = 0;
  for (size_t i = 0; i < s->o->n_blocks; i++) count[s->o->blocks[i].kind] += wrong[i];
  for (size_t i = 0; i < s->o->n_blocks; i++) {
    const int k = s->o->blocks[i].kind;
    if (!wrong[i]) continue;
    const size_t at = seen[k]++;
    if (count[k] > each && at * each / count[k] == (at + 1) * each / count[k]) continue;
    const size_t before = s->sets[k].n;
    set_add(&s->sets[k], (uint32_t)i);
    added += s->sets[k].n - before;
  }
  return added;
}

score search_score(const search *s, const mx_spec *spec, unsigned classes) {
  score total = {0, 0, 0};
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    if (!(classes >> k & 1) || !s->sets[k].n) continue;
    const score one = set_score(&s->sets[k], spec, NULL, 0);
    total.scales += one.scales;
    total.codes += one.codes;
    total.nan_codes += one.nan_codes;
  }
  return total;
}

void pool_add(pool *p, const mx_spec *spec, score got) {
  size_t at = p->n;
  while (at && score_less(got, p->got[at - 1])) at--;
  if (at >= p->room) return;
  const size_t moved = (p->n < p->room ? p->n : p->room - 1) - at;
  memmove(p->spec + at + 1, p->spec + at, moved * sizeof *p->spec);
  memmove(p->got + at + 1, p->got + at, moved * sizeof *p->got);
  p->spec[at] = *spec;
  p->got[at] = got;
  if (p->n < p->room) p->n++;
}

/* "name" or "name=v|w": the key and its values. */
static void key_of(char name[32], key_values *v, const char *text, const observation *o) {
  const size_t n = strcspn(text, "=");
  memcpy(name, text, n);
  name[n] = 0;
  if (!text[n]) {
    values_of(v, name, o);
    return;
  }
  v->n = 0;
  for (const char *p = text + n + 1; *p && v->n < MAX_VALUES;) {
    const size_t m = strcspn(p, "|");
    memcpy(v->text[v->n], p, m);
    v->text[v->n++][m] = 0;
    p += m + (p[m] == '|');
  }
}

static score judge(const search *s, const mx_spec *spec, const block_set *quick, unsigned classes, int scales_only) {
  score got = quick ? set_score(quick, spec, NULL, 0) : search_score(s, spec, classes);
  if (scales_only) got.codes = got.nan_codes = 0;
  if (scales_only && !quick && s->o->n_witnesses) { /* what is stored is fitted later outside a chain */
    uint64_t least = UINT64_MAX;
    for (int store = 0; store < MX_TENSOR_STORE_COUNT && least; store++) {
      mx_spec t = *spec;
      if (store && t.chain != MX_CHAIN_EXACT) break;
      t.tensor_store = store;
      const uint64_t n = tensor_scales_wrong(s->o, &t, 0);
      least = n < least ? n : least;
    }
    got.scales += least;
  }
  return got;
}

static void judge_all(const search *s, score *got, const mx_spec *specs, const uint8_t *skip, size_t n, const block_set *quick,
                      unsigned classes, int scales_only) {
#pragma omp parallel for schedule(dynamic, 4) num_threads(s->threads)
  for (size_t i = 0; i < n; i++)
    if (!skip[i]) got[i] = judge(s, &specs[i], quick, classes, scales_only);
}

/* The specs of one piece: first on a few blocks; those that do as well as the best there (or the best few) on all. */
static void run_piece(search *s, pool *out, const mx_spec *specs, size_t n, const block_set *quick, unsigned classes, int scales_only) {
  score *got = calloc(n, sizeof *got);
  uint8_t *skip = calloc(n, 1);
  if (!got || !skip) {
    free(got);
    free(skip);
    return;
  }
  s->tried += n;
  if (quick && n > 48) {
    judge_all(s, got, specs, skip, n, quick, classes, scales_only);
    uint64_t bar = UINT64_MAX;
    size_t kept = n;
    for (uint64_t next = 0; kept > 48 && next != bar;) { /* the lowest score that leaves at least a few */
      uint64_t least = UINT64_MAX;
      size_t under = 0;
      for (size_t i = 0; i < n; i++)
        if (score_total(got[i]) >= next && score_total(got[i]) < least) least = score_total(got[i]);
      for (size_t i = 0; i < n; i++) under += score_total(got[i]) <= least;
      if (under >= 24 || least == 0 || least == UINT64_MAX)
        bar = least, kept = under, next = bar;
      else
        next = least + 1;
      if (least == 0) break;
    }
    for (size_t i = 0; i < n; i++) skip[i] = score_total(got[i]) > bar;
  }
  judge_all(s, got, specs, skip, n, NULL, classes, scales_only);
  for (size_t i = 0; i < n; i++)
    if (!skip[i]) pool_add(out, &specs[i], got[i]);
  free(got);
  free(skip);
}

/* Some blocks of the one class that is asked for. */
static block_set quick_set(const search *s, unsigned classes) {
  block_set q = {.of = s->o};
  for (int k = 0; k < BLOCK_CLASSES; k++)
    if (classes == 1u << k && s->sets[k].n > 2 * QUICK_BLOCKS)
      for (size_t i = 0; i < QUICK_BLOCKS; i++) set_add(&q, s->sets[k].index[i * s->sets[k].n / QUICK_BLOCKS]);
  return q;
}

size_t search_product(search *s, pool *out, const mx_spec *bases, size_t n_bases, const char *const *keys, size_t n_keys, unsigned classes,
                      int scales_only) {
  char name[MAX_KEYS][32];
  key_values *values = malloc(MAX_KEYS * sizeof *values);
  mx_spec *specs = malloc(PIECE * sizeof *specs);
  size_t n = 0, total = 0;
  block_set quick = quick_set(s, classes);
  if (n_keys > MAX_KEYS) n_keys = MAX_KEYS;
  for (size_t k = 0; values && k < n_keys; k++) key_of(name[k], &values[k], keys[k], s->o);
  for (size_t b = 0; values && specs && b < n_bases && now() < s->deadline; b++) {
    size_t at[MAX_KEYS] = {0};
    for (int more = 1; more;) {
      mx_spec spec = bases[b];
      int bad = 0;
      for (size_t k = 0; k < n_keys; k++) bad |= values[k].n && mx_spec_set(&spec, name[k], values[k].text[at[k]], NULL);
      if (!bad && !mx_spec_check(&spec, NULL)) specs[n++] = spec;
      more = 0;
      for (size_t k = 0; k < n_keys && !more; k++) {
        if (++at[k] < values[k].n)
          more = 1;
        else
          at[k] = 0;
      }
      if (n == PIECE || (!more && b + 1 == n_bases)) {
        run_piece(s, out, specs, n, quick.n ? &quick : NULL, classes, scales_only);
        total += n;
        n = 0;
      }
    }
  }
  if (n && specs) {
    run_piece(s, out, specs, n, quick.n ? &quick : NULL, classes, scales_only);
    total += n;
  }
  set_free(&quick);
  free(values);
  free(specs);
  return total;
}

void search_descend(search *s, mx_spec *spec, score *got, unsigned classes) {
  for (int improved = 1; improved && score_total(*got) + got->nan_codes && now() < s->deadline;) {
    improved = 0;
    for (size_t i = 0; mx_key_name(i); i++) {
      const char *key = mx_key_name(i);
      pool best = {.room = 1};
      search_product(s, &best, spec, 1, &key, 1, classes, 0);
      if (best.n && score_less(best.got[0], *got)) {
        *spec = best.spec[0];
        *got = best.got[0];
        improved = 1;
      }
    }
  }
}
