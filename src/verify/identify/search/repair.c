/* Repairs a spec: it changes one key at a time, or two, or a few that act together, on blocks where the spec is wrong, and keeps those right where
 * it is right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/keys.h"
#include "verify/identify/search/search.h"
#include "verify/identify/search/values.h"

/* How many moves are kept: all values of all keys, and values that are read off the wrong blocks. */
enum { MAX_MOVES = 480 };
/* How many specs are carried from one depth to the next (the beam), and how many depths there are, one key each. A wider beam finds what only a
 * detour leads to, and costs that many times more; a spec that differs from its start in more keys than depths is not found. */
enum { BEAM = 3, DEPTH = 14 };
/* On how many blocks a move must do better, and how many of each class it must not spoil. With more, each of thousands of moves is slower; with
 * fewer, moves pass that all blocks then refuse. */
enum { HARD_BLOCKS = 18, GUARDS = 4 };
/* How many moves of one round are tried on every chosen block. */
enum { TRIED_IN_FULL = 16 };
/* Specs to be tried below which one thread is done before others have started. */
enum { ONE_THREAD = 64 };

/* A move: keys that are set to the values of `with`, one or several that act together. */
typedef struct move {
  uint64_t keys;
  mx_spec with;
} move;

static size_t single_moves(move *out, const observation *o, int lenient) {
  size_t n = 0;
  key_values *v = noted(malloc(sizeof *v), o->lack);
  for (size_t i = 0; v && mx_key_name(i) && i < MX_MAX_KEYS; i++) {
    mxi_values_of(v, mx_key_name(i), o);
    for (size_t k = 0; k < v->n && n < MAX_MOVES; k++) {
      out[n] = (move){.keys = UINT64_C(1) << i};
      n += !mx_spec_set(&out[n].with, mx_key_name(i), v->text[k], NULL);
    }
  }
  free(v);
  if (lenient && n < MAX_MOVES) /* shows perhaps where a scale is too small for its format alone */
    out[n++] = (move){.keys = UINT64_C(1) << mxi_key_find("scale.round"), .with = {.scale_round = MX_SCALE_ROUND_SR}};
  return n;
}

/* Keys for a scale that leaves its range: its least byte, its largest, and which of the two it becomes tell little separately. */
static size_t limit_moves(move *out, size_t room, const observation *o) {
  size_t n = 0;
  key_values *v = noted(calloc(2, sizeof *v), o->lack);
  const uint64_t keys = UINT64_C(1) << mxi_key_find("scale.min") | UINT64_C(1) << mxi_key_find("scale.min_byte") |
                        UINT64_C(1) << mxi_key_find("scale.max_byte") | UINT64_C(1) << mxi_key_find("scale.byte_overflow");
  if (v) mxi_values_of(&v[0], "scale.min_byte", o), mxi_values_of(&v[1], "scale.max_byte", o);
  for (size_t i = 0; v && i < v[0].n; i++)
    for (size_t k = 0; k < v[1].n; k++)
      for (int overflow = 0; overflow < MX_BYTE_OVERFLOW_COUNT && n < room; overflow++) {
        out[n] = (move){.keys = keys, .with = {.scale_byte_overflow = overflow}};
        n += !mx_spec_set(&out[n].with, "scale.min_byte", v[0].text[i], NULL) &&
             !mx_spec_set(&out[n].with, "scale.max_byte", v[1].text[k], NULL);
      }
  free(v);
  return n;
}

/* Chooses blocks that spec gets wrong, some of each class, and a few that it gets right: what explains the ones must not spoil the others. */
typedef struct bench {
  block_set wrong, right;
  score bar, guard; /* what spec has there */
  uint64_t print;   /* of what it gives on the wrong ones */
  int how;          /* scales alone where elements are not at fault */
} bench;

static void bench_free(bench *b) {
  mxi_set_free(&b->wrong);
  mxi_set_free(&b->right);
}

static void bench_make(bench *b, const search *s, const mx_spec *spec) {
  size_t wrong_in[BLOCK_CLASSES] = {0}, classes = 0;
  uint8_t *wrong[BLOCK_CLASSES] = {NULL};
  *b = (bench){.wrong.of = s->o, .right.of = s->o};
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    wrong[k] = noted(calloc(s->sets[k].n + 1, 1), s->o->lack);
    if (!wrong[k] || !s->sets[k].n) continue;
    mxi_set_score(&s->sets[k], spec, mxi_search_how(s, 0), 0, wrong[k]);
    for (size_t i = 0; i < s->sets[k].n; i++) wrong_in[k] += wrong[k][i];
    classes += wrong_in[k] != 0;
  }
  b->wrong.at = noted(malloc((HARD_BLOCKS + BLOCK_CLASSES) * sizeof *b->wrong.at), s->o->lack);
  b->right.at = noted(malloc((GUARDS + 1) * BLOCK_CLASSES * sizeof *b->right.at), s->o->lack);
  for (int k = 0; k < BLOCK_CLASSES && b->wrong.at && b->right.at && classes; k++) {
    const size_t room = HARD_BLOCKS / classes, right_in = s->sets[k].n - wrong_in[k];
    size_t seen[2] = {0, 0};
    for (size_t i = 0; wrong[k] && i < s->sets[k].n; i++) {
      const int bad = wrong[k][i];
      const size_t at = seen[bad]++, of = bad ? wrong_in[k] : right_in, wanted = bad ? room : GUARDS;
      block_set *to = bad ? &b->wrong : &b->right;
      if (of > wanted && at * wanted / of == (at + 1) * wanted / of) continue;
      to->at[to->n++] = s->sets[k].at[i];
    }
  }
  for (int k = 0; k < BLOCK_CLASSES; k++) free(wrong[k]);
  b->bar = mxi_set_score(&b->wrong, spec, mxi_search_how(s, 0), 0, NULL);
  b->guard = mxi_set_score(&b->right, spec, mxi_search_how(s, 0), 0, NULL);
  b->how = mxi_search_how(s, s->o->samples[0].codes && !b->bar.codes && !b->bar.nan_codes);
  mxi_set_score_print(&b->wrong, spec, b->how, 0, NULL, &b->print);
}

/* For keys that take a code: lists the codes that were seen where spec gives others. */
static size_t moves_from_wrong(move *out, size_t room, const bench *b, const mx_spec *spec) {
  enum { MOST = 3 }; /* of a kind: a bug or a limit gives one or two, and each costs a trial of every key that takes a code */
  static const struct {
    const char *key, *format;
    int of_scale;
  } keys[] = {{"scale.zero", "byte=%d", 1}, {"scale.allzero", "byte=%d", 1}, {"scale.min_byte", "%d", 1},
              {"scale.max_byte", "%d", 1},  {"elem.inf", "code=%d", 0},      {"elem.nan", "code=%d", 0}};
  uint32_t count[2][256] = {{0}};
  size_t n = 0;
  mxi_set_wrong_codes(&b->wrong, spec, count[1], count[0]);
  for (int of_scale = 0; of_scale < 2; of_scale++)
    for (int i = 0; i < MOST; i++) {
      int best = 0;
      for (int k = 1; k < 256; k++)
        if (count[of_scale][k] > count[of_scale][best]) best = k;
      if (!count[of_scale][best]) break;
      count[of_scale][best] = 0;
      for (size_t k = 0; k < sizeof keys / sizeof keys[0] && n < room; k++) {
        char text[24];
        snprintf(text, sizeof text, keys[k].format, best);
        out[n] = (move){.keys = UINT64_C(1) << mxi_key_find(keys[k].key)};
        n += keys[k].of_scale == of_scale && !mx_spec_set(&out[n].with, keys[k].key, text, NULL);
      }
    }
  return n;
}

static int moved(mx_spec *out, const mx_spec *from, const move *m) {
  int changed = 0;
  *out = *from;
  for (uint64_t left = m->keys; left; left &= left - 1) {
    const size_t key = (size_t)__builtin_ctzll(left);
    changed |= !mxi_key_same(from, &m->with, key);
    mxi_key_copy(out, &m->with, key);
  }
  return changed;
}

/* Finds those of specs[n] that do better where spec is wrong and spoil little where it is right. The best of them are tried on every block, and join the
 * pool if that is better than the parent. active (may be NULL) is told which of them change anything. */
static void sift(search *s, pool *out, const bench *b, const mx_spec *specs, size_t n, score parent, uint8_t *active) {
  score *got = noted(calloc(n + 1, sizeof *got), s->o->lack);
  if (!got) return;
  s->budget->tried += n;
#pragma omp parallel for schedule(dynamic, 8) num_threads(s->threads) if (n > ONE_THREAD)
  for (size_t i = 0; i < n; i++) {
    const int bad = mx_spec_check(&specs[i], NULL) != MX_OK;
    uint64_t print = 0;
    const int how = specs[i].select == MX_SELECT_FOURSIX ? mxi_search_how(s, 0) : b->how; /* scales alone do not tell which of its two wins */
    got[i] =
        bad ? score_worst() : mxi_set_score_print(&b->wrong, &specs[i], how, active ? 0 : score_total(b->bar), NULL, active ? &print : NULL);
    if (active) active[i] = bad || print != b->print || score_less(got[i], b->bar) || score_less(b->bar, got[i]);
    if (!score_less(got[i], b->bar))
      got[i] = score_worst();
    else
      got[i] = score_sum(got[i], mxi_set_score(&b->right, &specs[i], mxi_search_how(s, 0), 0, NULL));
  }
  const score bar = score_sum(b->bar, b->guard);
  size_t best[TRIED_IN_FULL], n_best = 0;
  for (; n_best < TRIED_IN_FULL; n_best++) {
    size_t at = n;
    for (size_t i = 0; i < n; i++)
      if (score_less(got[i], bar) && (at == n || score_less(got[i], got[at]))) at = i;
    if (at == n) break;
    best[n_best] = at;
    got[at] = score_worst();
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads) if (n_best > 1)
  for (size_t k = 0; k < n_best; k++) got[best[k]] = mxi_search_score_until(s, &specs[best[k]], EVERY, score_total(parent) + 1);
  for (size_t k = 0; k < n_best; k++)
    if (score_less(got[best[k]], parent)) mxi_pool_add(out, &specs[best[k]], got[best[k]]);
  free(got);
}

/* Handles a spec whose keys exclude each other after a move: it may be allowed with one of its other keys set back, except the formats, which
 * belong to the search. Returns how many such specs there are. */
static size_t reconciled(mx_spec *out, size_t room, const mx_spec *spec, const move *m, const observation *o) {
  static const mx_spec plain = {0};
  size_t n = 0;
  for (size_t key = 0; key < MX_MAX_KEYS && mx_key_name(key) && n < room; key++) {
    if (m->keys >> key & 1 || mxi_key_same(spec, &plain, key)) continue;
    out[n] = *spec;
    mxi_key_copy(&out[n], &plain, key);
    mxi_observation_put_formats(&out[n], o);
    n += !mxi_key_same(spec, &out[n], key) && !mx_spec_check(&out[n], NULL);
  }
  return n;
}

static void singles(search *s, pool *out, const mx_spec *spec, score got, const move *moves, size_t n_moves, const bench *b, uint8_t *active) {
  const size_t room = 2 * n_moves + 1;
  mx_spec *specs = noted(malloc(room * sizeof *specs), s->o->lack);
  size_t *from = noted(calloc(room, sizeof *from), s->o->lack), n = 0;
  uint8_t *changes = noted(calloc(room, 1), s->o->lack);
  memset(active, 0, n_moves);
  for (size_t i = 0; specs && from && changes && i < n_moves; i++)
    if (moved(&specs[n], spec, &moves[i])) {
      const mx_spec one = specs[n];
      const size_t more = mx_spec_check(&one, NULL) ? reconciled(specs + n, room - n - (n_moves - i), &one, &moves[i], s->o) : 0;
      for (size_t k = 0; k < more || k < 1; k++) from[n++] = i;
    }
  if (specs && from && changes) sift(s, out, b, specs, n, got, changes);
  for (size_t i = 0; i < n; i++) active[from[i]] |= changes[i];
  free(specs);
  free(from);
  free(changes);
}

/* Tries two keys at once: both changed something alone, or (both = 1) at least one did, which are many more pairs. */
static void pairs(search *s, pool *out, const mx_spec *spec, score got, const move *moves, size_t n_moves, const bench *b,
                  const uint8_t *active, int both) {
  enum { ROOM = 4096 }; /* specs that are sifted at once: a mebibyte or so of them */
  mx_spec *specs = noted(malloc((ROOM + 2 * MAX_MOVES) * sizeof *specs), s->o->lack);
  size_t n = 0;
  for (size_t i = 0; specs && i < n_moves && !budget_over(s->budget); i++) {
    mx_spec one[2];
    if (!moved(&one[0], spec, &moves[i])) continue;
    const size_t allowed =
        mx_spec_check(&one[0], NULL) ? reconciled(&one[1], 1, &one[0], &moves[i], s->o) : 0; /* the second may allow it as well */
    for (size_t k = allowed ? 0 : i + 1; k < n_moves; k++) {
      if (active[i] + active[k] != both || moves[i].keys & moves[k].keys) continue;
      for (size_t a = 0; a <= allowed; a++)
        if (moved(&specs[n], &one[a], &moves[k])) n += !mx_spec_check(&specs[n], NULL);
    }
    if (n >= ROOM) sift(s, out, b, specs, n, got, NULL), n = 0;
  }
  if (n) sift(s, out, b, specs, n, got, NULL);
  free(specs);
}

/* Keys that decide about the same blocks. What one of them explains wrongly hides the others, or one shows only together with another (a scale of
 * zero, and the division that underflows to it), so two to four of them are changed at once. */
static void groups(search *s, pool *out, const mx_spec *spec, score got, const move *moves, size_t n_moves, const bench *b) {
  enum { GROUPS = 6, OF = 4, ROOM = 4096 }; /* groups, keys of one, and specs that are sifted at once */
  static const char *const names[GROUPS][OF] = {{"scale.allzero", "scale.min_byte", "scale.byte0", "elem.zero_sign"},
                                                {"scale.zero", "scale.min", "scale.min_byte", "scale.byte0"},
                                                {"scale.max_byte", "scale.byte_overflow", "scale.used", "elem.inf"},
                                                {"elem.inf", "elem.nan", "elem.overflow", "elem.saturate_to"},
                                                {"scale.arith", "scale.zero", "scale.round", "scale.form"},
                                                {"scale.max_byte", "scale.used", "scale.inf", "scale.byte_overflow"}};
  mx_spec *specs = noted(malloc(ROOM * sizeof *specs), s->o->lack);
  for (size_t g = 0; specs && g < GROUPS && !out->n; g++) {
    size_t at[OF], n = 0; /* the move of each key; n_moves: as it is */
    uint64_t key[OF];
    for (size_t k = 0; k < OF; k++) at[k] = n_moves, key[k] = UINT64_C(1) << mxi_key_find(names[g][k]);
    for (int more = !budget_over(s->budget); more;) {
      int changed = 0;
      mx_spec t = *spec;
      for (size_t k = 0; k < OF; k++)
        if (at[k] < n_moves) changed += !mxi_key_same(spec, &moves[at[k]].with, mxi_key_find(names[g][k])), moved(&t, &t, &moves[at[k]]);
      specs[n] = t;
      n += changed > 1 && !mx_spec_check(&t, NULL);
      if (n == ROOM) {
        sift(s, out, b, specs, n, got, NULL), n = 0;
        if (budget_over(s->budget)) break; /* a call of the system, which is too slow for each combination */
      }
      more = 0;
      for (size_t k = 0; k < OF && !more; k++) {
        at[k] = at[k] == n_moves ? 0 : at[k] + 1;
        while (at[k] < n_moves && moves[at[k]].keys != key[k]) at[k]++;
        more = at[k] < n_moves;
      }
    }
    if (n) sift(s, out, b, specs, n, got, NULL);
  }
  free(specs);
}

void mxi_search_repair(search *s, mx_spec *spec, score *got, int effort) {
  move *moves = noted(malloc(MAX_MOVES * sizeof *moves), s->o->lack);
  uint8_t *active = noted(calloc(MAX_MOVES, 1), s->o->lack), *first = noted(calloc(MAX_MOVES, 1), s->o->lack);
  pool *beam = noted(calloc(2, sizeof *beam), s->o->lack), *next = beam + 1;
  if (!moves || !active || !first || !beam) goto out;
  const size_t n_values = single_moves(moves, s->o, s->lenient);
  beam->room = next->room = BEAM;
  mxi_pool_add(beam, spec, *got);
  for (int depth = 0; depth < DEPTH && !score_clean(beam->got[0]) && !budget_over(s->budget); depth++) {
    size_t n_single = n_values, n_moves = 0;
    next->n = 0;
    for (size_t i = 0; i < beam->n; i++) {
      bench b;
      bench_make(&b, s, &beam->spec[i]);
      if (!i) {
        n_single += moves_from_wrong(moves + n_values, MAX_MOVES - n_values, &b, &beam->spec[0]);
        n_moves = n_single + limit_moves(moves + n_single, MAX_MOVES - n_single, s->o);
      }
      singles(s, next, &beam->spec[i], beam->got[i], moves, n_moves, &b, i ? active : first);
      bench_free(&b);
    }
    for (size_t i = 0; i < beam->n && !next->n && effort; i++) { /* of those that do as well, one may be a single key off */
      bench b;
      if (score_less(beam->got[0], beam->got[i])) break;
      bench_make(&b, s, &beam->spec[i]);
      pairs(s, next, &beam->spec[i], beam->got[i], moves, n_single, &b, first, 2);
      if (!i && !next->n) groups(s, next, &beam->spec[0], beam->got[0], moves, n_single, &b);
      if (!next->n) pairs(s, next, &beam->spec[i], beam->got[i], moves, n_single, &b, first, 1);
      bench_free(&b);
    }
    if (!next->n || !score_less(next->got[0], beam->got[0])) break;
    *beam = *next;
  }
  if (score_less(beam->got[0], *got)) *spec = beam->spec[0], *got = beam->got[0];
out:
  free(moves);
  free(active);
  free(first);
  free(beam);
}
