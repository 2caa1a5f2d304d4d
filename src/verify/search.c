/* Products of values, and repair. */
#include "verify/search.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verify/keys.h"
#include "verify/values.h"

enum { FIRST_BLOCKS = 40, SCALE_BLOCKS = 112, MAX_KEYS = 8, FIRST_PIECE = 48, PIECE = 512 };

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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
        set_item *more = realloc(out->at, (out->room ? 2 * out->room : 256) * sizeof *more);
        if (!more) return 0;
        out->room = out->room ? 2 * out->room : 256;
        out->at = more;
      }
      out->at[out->n++] = (set_item){.block = (uint32_t)i};
    } else if (!set_add(out, (uint32_t)i, NULL))
      return 0;
  }
  return 1;
}

mx_status search_begin(search *s, const observation *o, int threads, double deadline) {
  *s = (search){.o = o, .threads = threads, .deadline = deadline};
  const size_t area = o->block_rows * o->block_cols;
  const size_t wanted = area <= 64 ? FIRST_BLOCKS : area <= 1024 ? 24 : 12;
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    s->sets[k].of = o;
    if (!spread(&s->sets[k], o, k, k == BLOCK_PLAIN ? wanted : wanted / 2 + 4, 0)) return MX_ERR_NOMEM;
  }
  s->scales.of = o;
  return spread(&s->scales, o, BLOCK_PLAIN, SCALE_BLOCKS, 1) ? MX_OK : MX_ERR_NOMEM;
}

void search_end(search *s) {
  for (int k = 0; k < BLOCK_CLASSES; k++) set_free(&s->sets[k]);
  set_free(&s->scales);
}

size_t search_learn(search *s, const uint8_t *wrong, const mx_spec *spec, size_t each) {
  size_t count[BLOCK_CLASSES] = {0}, seen[BLOCK_CLASSES] = {0}, added = 0;
  for (size_t i = 0; i < s->o->n_blocks; i++) count[s->o->blocks[i].kind] += wrong[i];
  for (size_t i = 0; i < s->o->n_blocks; i++) {
    const int k = s->o->blocks[i].kind;
    if (!wrong[i]) continue;
    const size_t at = seen[k]++;
    if (count[k] > each && at * each / count[k] == (at + 1) * each / count[k]) continue;
    added += (size_t)set_add(&s->sets[k], (uint32_t)i, spec);
  }
  return added;
}

size_t search_learn_scales(search *s, const mx_spec *spec, size_t each) {
  uint8_t *wrong = calloc(s->o->n_blocks + 1, 1);
  size_t count = 0, seen = 0, added = 0;
  if (!wrong) return 0;
  scales_score(s->o, spec, PLAIN, s->lenient ? LOOK_LENIENT : 0, wrong);
  for (size_t i = 0; i < s->o->n_blocks; i++) count += wrong[i];
  for (size_t i = 0; i < s->o->n_blocks; i++) {
    if (!wrong[i]) continue;
    const size_t at = seen++;
    if (count > each && at * each / count == (at + 1) * each / count) continue;
    added += (size_t)set_add(&s->scales, (uint32_t)i, NULL);
  }
  free(wrong);
  return added;
}

static int how_of(const search *s, int scales_only) {
  return (scales_only ? LOOK_SCALES : LOOK_BOTH) | (s->lenient ? LOOK_LENIENT : 0) | (s->either ? LOOK_EITHER : 0);
}

/* Wrong tensor scales among the witnesses; what is stored is fitted later outside a chain. */
static uint64_t witnesses_wrong(const search *s, const mx_spec *spec) {
  uint64_t least = UINT64_MAX;
  for (int store = 0; store < MX_TENSOR_STORE_COUNT && least; store++) {
    mx_spec t = *spec;
    if (store && t.chain != MX_CHAIN_EXACT) break;
    t.tensor_store = store;
    const uint64_t n = tensor_scales_wrong(s->o, &t, 0);
    least = n < least ? n : least;
  }
  return least;
}

/* Of every class also what the tensor scales say. */
static score score_classes(const search *s, const mx_spec *spec, unsigned classes, uint64_t limit) {
  score total = {0, 0, 0};
  if (classes == EVERY && s->o->n_witnesses && s->o->samples[s->o->witness[0]].has_tensor_scale) total.scales = witnesses_wrong(s, spec);
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    if (!(classes >> k & 1) || !s->sets[k].n) continue;
    total = score_sum(total, set_score(&s->sets[k], spec, how_of(s, 0), limit ? limit - score_total(total) + 1 : 0, NULL));
    if (limit && score_total(total) > limit) break;
  }
  return total;
}

score search_score(const search *s, const mx_spec *spec, unsigned classes) { return score_classes(s, spec, classes, 0); }

score search_score_until(const search *s, const mx_spec *spec, unsigned classes, uint64_t limit) {
  return score_classes(s, spec, classes, limit);
}

uint64_t search_print(const search *s, const mx_spec *spec) {
  uint64_t print = 0;
  for (int k = 0; k < BLOCK_CLASSES; k++) set_score_print(&s->sets[k], spec, how_of(s, 0), 0, NULL, &print);
  return print;
}

void pool_add(pool *p, const mx_spec *spec, score got) {
  size_t at = p->n;
  while (at && score_less(got, p->got[at - 1])) at--;
  if (at >= p->room) return;
  for (size_t i = 0; i < p->n; i++)
    if (keys_same(&p->spec[i], spec)) return;
  const size_t moved = (p->n < p->room ? p->n : p->room - 1) - at;
  memmove(p->spec + at + 1, p->spec + at, moved * sizeof *p->spec);
  memmove(p->got + at + 1, p->got + at, moved * sizeof *p->got);
  p->spec[at] = *spec;
  p->got[at] = got;
  if (p->n < p->room) p->n++;
}

/* What scale.round, scale.max and the arithmetic vary about. */
static int same_family(const mx_spec *a, const mx_spec *b) {
  return a->scale_rule == b->scale_rule && a->scale_form == b->scale_form && a->chain == b->chain && a->tensor_norm == b->tensor_norm &&
         a->select == b->select;
}

/* At most FAMILY of a family: many that fit alike must not crowd out another rule. */
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
  pool_add(p, spec, got);
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
  *f = (factor){.key = key_find(name)};
  v.n = 0;
  if (!text[n]) values_of(&v, name, o);
  for (const char *p = text + n; *p && v.n < MAX_VALUES;) {
    const size_t m = strcspn(++p, "|");
    memcpy(v.text[v.n], p, m);
    v.text[v.n++][m] = 0;
    p += m;
  }
  for (size_t i = 0; i < v.n; i++) f->n += !mx_spec_set(&f->with[f->n], name, v.text[i], NULL);
}

static score judge(const search *s, const mx_spec *spec, unsigned classes, int scales_only, uint64_t limit) {
  if (!scales_only) return score_classes(s, spec, classes, limit);
  score got = set_score(&s->scales, spec, how_of(s, 1), limit, NULL);
  got.codes = got.nan_codes = 0;
  if (s->o->n_witnesses && (!limit || score_total(got) <= limit)) got.scales += witnesses_wrong(s, spec);
  return got;
}

static void run_piece(search *s, pool *out, const mx_spec *specs, size_t n, unsigned classes, int scales_only) {
  score *got = calloc(n + 1, sizeof *got);
  if (!got) return;
  s->tried += n;
  const uint64_t limit = out->n < out->room ? 0 : score_total(out->got[out->n - 1]) + 1;
#pragma omp parallel for schedule(dynamic, 4) num_threads(s->threads) if (n > 256)
  for (size_t i = 0; i < n; i++) got[i] = judge(s, &specs[i], classes, scales_only, limit);
  for (size_t i = 0; i < n; i++) (scales_only ? pool_add_varied : pool_add)(out, &specs[i], got[i]);
  free(got);
}

void search_product(search *s, pool *out, const mx_spec *bases, size_t n_bases, const char *const *keys, size_t n_keys, unsigned classes,
                    int scales_only) {
  if (n_keys > MAX_KEYS) n_keys = MAX_KEYS;
  factor *f = calloc(n_keys + 1, sizeof *f);
  mx_spec *specs = malloc(PIECE * sizeof *specs);
  size_t n = 0, piece = FIRST_PIECE; /* the first ones set the bar early */
  for (size_t k = 0; f && k < n_keys; k++) factor_of(&f[k], keys[k], s->o);
  for (size_t b = 0; f && specs && b < n_bases && now() < s->deadline; b++) {
    size_t at[MAX_KEYS] = {0};
    for (int more = 1; more;) {
      specs[n] = bases[b];
      for (size_t k = 0; k < n_keys; k++)
        if (f[k].n) key_copy(&specs[n], &f[k].with[at[k]], f[k].key);
      n += !mx_spec_check(&specs[n], NULL);
      more = 0;
      for (size_t k = 0; k < n_keys && !more; k++) {
        if (++at[k] < f[k].n)
          more = 1;
        else
          at[k] = 0;
      }
      if (n == piece) {
        if (now() > s->deadline) break;
        run_piece(s, out, specs, n, classes, scales_only);
        piece = 2 * piece < PIECE ? 2 * piece : PIECE;
        n = 0;
      }
    }
  }
  if (n) run_piece(s, out, specs, n, classes, scales_only);
  free(f);
  free(specs);
}

/* ---- repair */

enum { MAX_MOVES = 480, BEAM = 3, HARD_BLOCKS = 18, GUARDS = 4, DEPTH = 14, TRIED_IN_FULL = 16 };

/* Keys set to the values that `with` has: one, or several that act together. */
typedef struct move {
  uint64_t keys;
  mx_spec with;
} move;

static size_t single_moves(move *out, const observation *o, int lenient) {
  size_t n = 0;
  key_values *v = malloc(sizeof *v);
  for (size_t i = 0; v && mx_key_name(i) && i < 64; i++) {
    values_of(v, mx_key_name(i), o);
    for (size_t k = 0; k < v->n && n < MAX_MOVES; k++) {
      out[n] = (move){.keys = UINT64_C(1) << i};
      n += !mx_spec_set(&out[n].with, mx_key_name(i), v->text[k], NULL);
    }
  }
  free(v);
  if (lenient && n < MAX_MOVES) /* shows perhaps where a scale is too small for its format alone */
    out[n++] = (move){.keys = UINT64_C(1) << key_find("scale.round"), .with = {.scale_round = MX_SCALE_ROUND_SR}};
  return n;
}

/* Where a scale leaves the range: its least byte, its largest and which of the two it becomes say little apart. */
static size_t limit_moves(move *out, size_t room, const observation *o) {
  size_t n = 0;
  key_values *v = calloc(2, sizeof *v);
  const uint64_t keys = UINT64_C(1) << key_find("scale.min") | UINT64_C(1) << key_find("scale.min_byte") |
                        UINT64_C(1) << key_find("scale.max_byte") | UINT64_C(1) << key_find("scale.byte_overflow");
  if (v) values_of(&v[0], "scale.min_byte", o), values_of(&v[1], "scale.max_byte", o);
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

/* Blocks that spec gets wrong, some of each class; and a few that it gets right: what explains the ones must not spoil the others. */
typedef struct bench {
  block_set wrong, right;
  score bar, guard; /* what spec has there */
  uint64_t print;   /* of what it gives on the wrong ones */
  int how;          /* scales alone where elements are not at fault */
} bench;

static void bench_free(bench *b) {
  set_free(&b->wrong);
  set_free(&b->right);
}

static void bench_make(bench *b, const search *s, const mx_spec *spec) {
  size_t wrong_in[BLOCK_CLASSES] = {0}, classes = 0;
  uint8_t *wrong[BLOCK_CLASSES] = {NULL};
  *b = (bench){.wrong.of = s->o, .right.of = s->o};
  for (int k = 0; k < BLOCK_CLASSES; k++) {
    wrong[k] = calloc(s->sets[k].n + 1, 1);
    if (!wrong[k] || !s->sets[k].n) continue;
    set_score(&s->sets[k], spec, how_of(s, 0), 0, wrong[k]);
    for (size_t i = 0; i < s->sets[k].n; i++) wrong_in[k] += wrong[k][i];
    classes += wrong_in[k] != 0;
  }
  b->wrong.at = malloc((HARD_BLOCKS + BLOCK_CLASSES) * sizeof *b->wrong.at);
  b->right.at = malloc((GUARDS + 1) * BLOCK_CLASSES * sizeof *b->right.at);
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
  b->bar = set_score(&b->wrong, spec, how_of(s, 0), 0, NULL);
  b->guard = set_score(&b->right, spec, how_of(s, 0), 0, NULL);
  b->how = how_of(s, s->o->samples[0].codes && !b->bar.codes && !b->bar.nan_codes);
  set_score_print(&b->wrong, spec, b->how, 0, NULL, &b->print);
}

/* Keys that take a code: the codes seen where spec gives others. */
static size_t moves_from_wrong(move *out, size_t room, const bench *b, const mx_spec *spec) {
  enum { MOST = 3 };
  static const struct {
    const char *key, *format;
    int of_scale;
  } keys[] = {{"scale.zero", "byte=%d", 1}, {"scale.allzero", "byte=%d", 1}, {"scale.min_byte", "%d", 1},
              {"scale.max_byte", "%d", 1},  {"elem.inf", "code=%d", 0},      {"elem.nan", "code=%d", 0}};
  uint32_t count[2][256] = {{0}};
  size_t n = 0;
  set_wrong_codes(&b->wrong, spec, count[1], count[0]);
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
        out[n] = (move){.keys = UINT64_C(1) << key_find(keys[k].key)};
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
    changed |= !key_same(from, &m->with, key);
    key_copy(out, &m->with, key);
  }
  return changed;
}

/* Of specs[n], which do better where spec is wrong, and spoil little where it is right? The best of them are tried on every block, and join the
 * pool if that is better than the parent. active (may be NULL) is told which of them change anything. */
static void sift(search *s, pool *out, const bench *b, const mx_spec *specs, size_t n, score parent, uint8_t *active) {
  score *got = calloc(n + 1, sizeof *got);
  if (!got) return;
  s->tried += n;
#pragma omp parallel for schedule(dynamic, 16) num_threads(s->threads) if (n > 1024)
  for (size_t i = 0; i < n; i++) {
    const int bad = mx_spec_check(&specs[i], NULL) != MX_OK;
    uint64_t print = 0;
    const int how = specs[i].select == MX_SELECT_FOURSIX ? how_of(s, 0) : b->how; /* scales alone do not tell which of its two wins */
    got[i] = bad ? score_worst() : set_score_print(&b->wrong, &specs[i], how, active ? 0 : score_total(b->bar), NULL, active ? &print : NULL);
    if (active) active[i] = bad || print != b->print || score_less(got[i], b->bar) || score_less(b->bar, got[i]);
    if (!score_less(got[i], b->bar))
      got[i] = score_worst();
    else
      got[i] = score_sum(got[i], set_score(&b->right, &specs[i], how_of(s, 0), 0, NULL));
  }
  const score bar = score_sum(b->bar, b->guard);
  for (int k = 0; k < TRIED_IN_FULL; k++) {
    size_t best = n;
    for (size_t i = 0; i < n; i++)
      if (score_less(got[i], bar) && (best == n || score_less(got[i], got[best]))) best = i;
    if (best == n) break;
    const score all = score_classes(s, &specs[best], EVERY, score_total(parent) + 1);
    if (score_less(all, parent)) pool_add(out, &specs[best], all);
    got[best] = score_worst();
  }
  free(got);
}

/* A spec whose keys exclude each other after a move: with one of its other keys set back it may be allowed. Returns how many of these there are. */
static size_t reconciled(mx_spec *out, size_t room, const mx_spec *spec, const move *m) {
  static const mx_spec plain = {0};
  size_t n = 0;
  for (size_t key = 0; key < 64 && mx_key_name(key) && n < room; key++) {
    if (m->keys >> key & 1 || key_same(spec, &plain, key)) continue;
    out[n] = *spec;
    key_copy(&out[n], &plain, key);
    n += !mx_spec_check(&out[n], NULL);
  }
  return n;
}

static void singles(search *s, pool *out, const mx_spec *spec, score got, const move *moves, size_t n_moves, const bench *b, uint8_t *active) {
  const size_t room = 2 * n_moves + 1;
  mx_spec *specs = malloc(room * sizeof *specs);
  size_t *from = calloc(room, sizeof *from), n = 0;
  uint8_t *changes = calloc(room, 1);
  memset(active, 0, n_moves);
  for (size_t i = 0; specs && from && changes && i < n_moves; i++)
    if (moved(&specs[n], spec, &moves[i])) {
      const mx_spec one = specs[n];
      const size_t more = mx_spec_check(&one, NULL) ? reconciled(specs + n, room - n - (n_moves - i), &one, &moves[i]) : 0;
      for (size_t k = 0; k < more || k < 1; k++) from[n++] = i;
    }
  if (specs && from && changes) sift(s, out, b, specs, n, got, changes);
  for (size_t i = 0; i < n; i++) active[from[i]] |= changes[i];
  free(specs);
  free(from);
  free(changes);
}

/* Two at once: where both change something alone, or (both = 1) where one does, which are many more. */
static void pairs(search *s, pool *out, const mx_spec *spec, score got, const move *moves, size_t n_moves, const bench *b,
                  const uint8_t *active, int both) {
  enum { ROOM = 4096 };
  mx_spec *specs = malloc((ROOM + 2 * MAX_MOVES) * sizeof *specs);
  size_t n = 0;
  for (size_t i = 0; specs && i < n_moves && now() < s->deadline; i++) {
    mx_spec one[2];
    if (!moved(&one[0], spec, &moves[i])) continue;
    const size_t allowed = mx_spec_check(&one[0], NULL) ? reconciled(&one[1], 1, &one[0], &moves[i]) : 0; /* the second may allow it as well */
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

/* Keys that decide of the same blocks: what one of them explains wrongly hides the others, or shows only beside another (a scale of zero, and the
 * division that underflows to it), so that two to four of them are changed at once. */
static void groups(search *s, pool *out, const mx_spec *spec, score got, const move *moves, size_t n_moves, const bench *b) {
  enum { GROUPS = 6, OF = 4, ROOM = 4096 };
  static const char *const names[GROUPS][OF] = {{"scale.allzero", "scale.min_byte", "scale.byte0", "elem.zero_sign"},
                                                {"scale.zero", "scale.min", "scale.min_byte", "scale.byte0"},
                                                {"scale.max_byte", "scale.byte_overflow", "scale.used", "elem.inf"},
                                                {"elem.inf", "elem.nan", "elem.overflow", "elem.saturate_to"},
                                                {"scale.arith", "scale.zero", "scale.round", "scale.form"},
                                                {"scale.max_byte", "scale.used", "scale.inf", "scale.byte_overflow"}};
  mx_spec *specs = malloc(ROOM * sizeof *specs);
  for (size_t g = 0; specs && g < GROUPS && !out->n; g++) {
    size_t at[OF], n = 0; /* the move of each key; n_moves: as it is */
    uint64_t key[OF];
    for (size_t k = 0; k < OF; k++) at[k] = n_moves, key[k] = UINT64_C(1) << key_find(names[g][k]);
    for (int more = 1; more && now() < s->deadline;) {
      int changed = 0;
      mx_spec t = *spec;
      for (size_t k = 0; k < OF; k++)
        if (at[k] < n_moves) changed += !key_same(spec, &moves[at[k]].with, key_find(names[g][k])), moved(&t, &t, &moves[at[k]]);
      specs[n] = t;
      n += changed > 1 && !mx_spec_check(&t, NULL);
      if (n == ROOM) sift(s, out, b, specs, n, got, NULL), n = 0;
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

void search_repair(search *s, mx_spec *spec, score *got, int effort) {
  move *moves = malloc(MAX_MOVES * sizeof *moves);
  uint8_t *active = calloc(MAX_MOVES, 1), *first = calloc(MAX_MOVES, 1);
  pool *beam = calloc(2, sizeof *beam), *next = beam + 1;
  if (!moves || !active || !first || !beam) goto out;
  const size_t n_values = single_moves(moves, s->o, s->lenient);
  beam->room = next->room = BEAM;
  pool_add(beam, spec, *got);
  for (int depth = 0; depth < DEPTH && !score_clean(beam->got[0]) && now() < s->deadline; depth++) {
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
