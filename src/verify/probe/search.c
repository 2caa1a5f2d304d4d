/* Searches for what the readings leave open. From many starts one parameter is moved at a time, and the model that gets fewer probes wrong wins;
 * two are moved at a time if one does not help. */
#include <stdlib.h>
#include <string.h>

#include "verify/probe/fit.h"

/* Models in the pool at once, at most. */
enum { STARTS = 20000 };
/* How many probes a model is run on, cheapest first. GLANCE: enough to find a start that gives every probe; most fail here. FIRST, then the screen
 * (one in SCREEN_ONE_IN of all, at least LEAST_SCREEN): starts are ranked by them. HARD: of the probes that a model gets wrong, those of which a move
 * must mend some. Fewer rank by chance and lose the way to the model; more make each of many thousand models slower. */
enum { GLANCE = 24, FIRST = 400, LEAST_SCREEN = 500, SCREEN_ONE_IN = 8, HARD = 96 };
/* How many models go on to the next stage: of each kind after FIRST and after the screen; DEEP starts from which the search descends by moves of
 * one key, PAIRWISE by moves of two; moves that are run on the screen and on all probes, and how many need no screen. Fewer lose a model that looks
 * worse than others at first; each further one costs a descent, or a run over all probes. */
enum { KIND_AFTER_FIRST = 6, KIND_AFTER_SCREEN = 2, DEEP = 20, PAIRWISE = 3, MOVES_SCREENED = 3000, MOVES_FULL = 160, NO_SCREEN = 48 };
/* How many steps a descent has, and after how many models no pair of keys is tried any more: a model that needs more is not one that these keys
 * describe. */
enum { SWEEPS = 60, ENOUGH = 60000 };
/* How many of the last models a new one is compared with: the same one comes again soon or not at all. */
enum { LOOK_BACK = 64 };
/* Long ranges are walked one by one within NEARBY of the present value, and in these steps elsewhere: wider steps skip a model, narrower ones take
 * longer. */
enum { NEARBY = 5, FLOOR_STEP = 4, DROP_STEP = 3 };
/* Probes that are run at once. */
enum { RUN_AT_ONCE = 256 };
/* No value: pairs of keys are walked in steps everywhere. */
enum { NOWHERE = 1 << 20 };

typedef struct scored {
  probe_guess g;
  size_t wrong;
} scored;

typedef struct search {
  const probe_list *l; /* shuffled */
  probe_list screen;   /* its first part */
  const probe_readings *r;
  scored *pool;
  size_t n, room, tried;
  int threads;
} search;

static void push(search *s, const probe_guess *g) {
  if (!mxi_probe_valid(s->l->spec, g)) return;
  for (size_t i = s->n; i-- > 0 && i + LOOK_BACK > s->n;)
    if (!memcmp(&s->pool[i].g, g, sizeof *g)) return;
  if (s->n < s->room) s->pool[s->n++] = (scored){*g, SIZE_MAX};
}

static int by_wrong(const void *x, const void *y) {
  const scored *a = x, *b = y;
  return a->wrong < b->wrong ? -1 : a->wrong > b->wrong ? 1 : memcmp(&a->g, &b->g, sizeof a->g);
}

/* Score the pool; all with one bound, so that the answer does not depend on who comes first. */
static void score_all(search *s, const probe_list *l, size_t bound) {
#pragma omp parallel for schedule(dynamic, 4) num_threads(s->threads)
  for (size_t i = 0; i < s->n; i++) s->pool[i].wrong = mxi_probe_wrong(l, &s->pool[i].g, bound, 0, NULL);
  s->tried += s->n;
}

/* --- starts --- */

/* Every row of the accumulation table with every group length that fits, and what was read in place of its own. */
static void push_lengths(search *s, probe_guess g) {
  const int K = (int)s->l->spec->K;
  int ks[PROBE_MAX_VALUES];
  const size_t n =
      g.x.join == MX_ACC_JOIN_ADD || g.x.order || g.x.op != MX_ACC_OP_FUSED ? mxi_probe_values(ks, mxi_probe_key_find("k"), s->l->spec) : 1;
  if (n == 1) ks[0] = 0;
  const int own = g.x.L;
  for (size_t i = 0; i < n; i++)
    for (int L = 1; L <= K; L *= 2) {
      g.k = ks[i];
      g.x.L = L;
      if (g.x.P && L % g.x.P) continue;
      if (g.k && g.k % L) continue;
      push(s, &g);
    }
  g.k = 0;
  if (own != 0 && own < K && (own & (own - 1))) g.x.L = own, push(s, &g);
  if (s->r->L > 0) g.x.L = s->r->L, push(s, &g);
}

static void starts(search *s) {
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++) {
    if (strchr(m.name, '/')) break;
    probe_guess g;
    memset(&g, 0, sizeof g);
    g.x = m.accum;
    g.x.nan = 0;
    push_lengths(s, g);
    if (g.x.op != MX_ACC_OP_FUSED || g.x.F < 0) continue;
    /* with the widths that were read */
    if (s->r->F >= 0) g.x.F = s->r->F > PROBE_MOST_BITS ? PROBE_MOST_BITS : s->r->F;
    if (g.x.join == MX_ACC_JOIN_AFTER && s->r->F_c > 0) g.x.c_bits = s->r->F_c > PROBE_MOST_BITS ? PROBE_MOST_BITS : s->r->F_c;
    if (s->r->out_bits) g.x.out_bits = s->r->out_bits;
    push_lengths(s, g);
    g.x.split = 0;
    push_lengths(s, g);
  }
}

static void grid_one(search *s, int F, int L, int P, int way, int zero) {
  const int K = (int)s->l->spec->K;
  probe_guess g;
  memset(&g, 0, sizeof g);
  g.x.L = L;
  g.x.F = F;
  g.x.P = P;
  g.x.zero = zero;
  g.x.align = way % 3;
  g.x.join = way / 3 % 3;
  g.x.out_round = way / 9 % 3;
  g.x.join_cut = way / 27 % 3;
  g.x.order = way / 81 % 2;
  g.x.split = way / 162;
  if (g.x.join != MX_ACC_JOIN_AFTER && (g.x.join_cut || g.x.split)) return;
  g.x.out_bits = s->r->out_bits;
  if (g.x.join == MX_ACC_JOIN_AFTER) {
    g.x.sum_bits = s->r->F_by_c > 0 && s->r->F_by_c <= PROBE_MOST_BITS ? s->r->F_by_c : PROBE_USUAL_BITS + PROBE_CARRY_BITS;
    g.x.c_bits = s->r->F_c > 0 && s->r->F_c <= PROBE_MOST_BITS ? s->r->F_c : PROBE_USUAL_BITS;
  }
  if (g.x.order && 2 * L <= K) g.k = 2 * L;
  push(s, &g);
}

/* Sums of an instruction of any length that are rounded before C is added to them: groups inside, which masks hardly show, and bits of their own. */
static void grid_add(search *s, int F) {
  int ks[PROBE_MAX_VALUES];
  const size_t n = mxi_probe_values(ks, mxi_probe_key_find("k"), s->l->spec);
  for (size_t i = 0; i < n; i++)
    for (int way = 0; way < 3 * 3 * 2 * 2; way++) {
      const int k = ks[i] ? ks[i] : (int)s->l->spec->K, alone = way / 18;
      probe_guess g;
      memset(&g, 0, sizeof g);
      g.k = ks[i];
      g.x.F = F;
      g.x.join = MX_ACC_JOIN_ADD;
      g.x.align = way % 3;
      g.x.out_round = way / 3 % 3;
      g.x.order = way / 9 % 2;
      g.x.out_bits = alone ? s->r->alone_bits : s->r->out_bits;
      if ((alone && !s->r->alone_bits) || (g.x.order && k < 4)) continue;
      for (g.x.L = 1; g.x.L <= k; g.x.L *= 2) push(s, &g);
    }
}

/* Keeps the best few models of each kind, so that many similar ones do not push out the rest. The pool is sorted. */
static void keep_of_each_kind(search *s, int most) {
  int seen[256] = {0};
  size_t keep = 0;
  for (size_t i = 0; i < s->n; i++) {
    const mx_accum *x = &s->pool[i].g.x;
    const int kind =
        x->op != MX_ACC_OP_FUSED ? 255 : x->join | x->join_cut << 2 | (x->split != 0) << 4 | (x->P != 0) << 5 | (x->order != 0) << 6;
    if (s->pool[i].wrong == SIZE_MAX || seen[kind]++ >= most) continue;
    s->pool[keep++] = s->pool[i];
  }
  s->n = keep;
}

/* Every way to cut, join and round with the widths and the length that were read. */
static void grid(search *s) {
  const int K = (int)s->l->spec->K, widths[] = {s->r->F, s->r->F_c, s->r->F_by_c, s->r->F_alone, PROBE_USUAL_BITS};
  for (int w = 0; w < 5; w++) {
    int known = widths[w] < 0 || widths[w] > PROBE_MOST_BITS;
    for (int q = 0; q < w && !known; q++) known = widths[q] == widths[w];
    if (!known) grid_add(s, widths[w]);
    for (int way = 0; way < 3 * 3 * 3 * 3 * 2 * 2 && !known; way++)
      for (int L = 1; L <= K; L *= 2) {
        if (s->r->L > 0 && L != s->r->L) continue;
        grid_one(s, widths[w], L, 0, way, MX_ACC_ZERO_SKIP);
        /* something is lost though it is alone: sums of P products are cut at a fixed place */
        for (int P = 1; P <= L && widths[w] == s->r->F_alone && way < 81; P *= 2) {
          grid_one(s, widths[w], L, P, way, MX_ACC_ZERO_SKIP);
          grid_one(s, widths[w], L, P, way, MX_ACC_ZERO_E126);
        }
      }
  }
}

/* --- moves --- */

static int moves_alone(size_t key) {
  const char *name = mxi_probe_keys[key].name;
  return strcmp(name, "op") && strcmp(name, "nan");
}

static void push_move(search *s, const probe_guess *from, size_t key, int value) {
  probe_guess g = *from;
  if (mxi_probe_field_value(from, key) == value) return;
  if (mxi_probe_set(&g, key, value, s->l->spec)) push(s, &g);
}

/* Long ranges are walked in steps, then finely about where we are. */
static int skipped(const char *name, int value, int now) {
  value = mxi_probe_number(value);
  const int far = abs(value - mxi_probe_number(now)) > NEARBY;
  return (!strcmp(name, "floor") && far && value % FLOOR_STEP) || (!strcmp(name, "c_drop") && far && value % DROP_STEP);
}

static void single_moves(search *s, const probe_guess *from) {
  int values[PROBE_MAX_VALUES];
  for (size_t key = 0; key < mxi_probe_n_keys; key++) {
    if (!moves_alone(key)) continue;
    const size_t n = mxi_probe_values(values, key, s->l->spec);
    for (size_t i = 0; i < n; i++)
      if (values[i] <= PROBE_FINE_DROP && !strcmp(mxi_probe_keys[key].name, "c_drop"))
        push_move(s, from, key, values[i]);
      else if (!skipped(mxi_probe_keys[key].name, values[i], mxi_probe_field_value(from, key)))
        push_move(s, from, key, values[i]);
  }
}

/* Pairs of keys that hide each other. */
static const char *const pairs[][2] = {{"join", "L"},
                                       {"join", "F"},
                                       {"join", "P"},
                                       {"L", "order"},
                                       {"L", "P"},
                                       {"L", "split"},
                                       {"F", "out_bits"},
                                       {"F", "align"},
                                       {"F", "out_round"},
                                       {"F", "L"},
                                       {"F", "P"},
                                       {"F", "via"},
                                       {"c_bits", "F"},
                                       {"sum_bits", "F"},
                                       {"c_bits", "sum_bits"},
                                       {"c_bits", "join_cut"},
                                       {"sum_bits", "join_cut"},
                                       {"c_drop", "join_cut"},
                                       {"out_round", "align"},
                                       {"out_bits", "out_round"},
                                       {"split", "join_cut"},
                                       {"order", "k"},
                                       {"join", "k"},
                                       {"join", "order"},
                                       {"split", "F"},
                                       {"floor", "zero"},
                                       {"via", "L"},
                                       {"F", "floor"},
                                       {"c_drop", "c_bits"},
                                       {"L", "k"},
                                       {"out_round", "L"},
                                       {"join", "out_round"},
                                       {"zero", "F"},
                                       {"align", "join"},
                                       {"align", "L"}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static void pair_moves(search *s, const probe_guess *from, int which) {
  int first[PROBE_MAX_VALUES], second[PROBE_MAX_VALUES];
  const size_t x = mxi_probe_key_find(pairs[which][0]), y = mxi_probe_key_find(pairs[which][1]);
  const size_t nx = mxi_probe_values(first, x, s->l->spec), ny = mxi_probe_values(second, y, s->l->spec);
  for (size_t i = 0; i < nx; i++) {
    probe_guess g = *from;
    if (skipped(mxi_probe_keys[x].name, first[i], NOWHERE) || !mxi_probe_set(&g, x, first[i], s->l->spec)) continue;
    for (size_t j = 0; j < ny; j++)
      if (!skipped(mxi_probe_keys[y].name, second[j], NOWHERE)) push_move(s, &g, y, second[j]);
  }
}

/* Things that are cut below the same exponent move together: the widths of C and of the sum, F one more or less, and however terms are cut. */
static void slide_widths(search *s, const probe_guess *from, int d) {
  for (int which = 1; which < 4; which++)
    for (int more = -1; more <= 1; more++)
      for (int align = 0; align < 3; align++) {
        probe_guess g = *from;
        if (which & 1) g.x.c_bits += d;
        if (which & 2) g.x.sum_bits += d;
        g.x.F += more;
        g.x.align = align;
        push(s, &g);
      }
}

/* Moves F and floor together. If the floor is above every term, the cut stays where it is, and only what is counted from the exponent moves;
 * c_drop, one of these, cannot be right before. */
static void slides(search *s, const probe_guess *from) {
  const size_t drop = mxi_probe_key_find("c_drop"), presum = mxi_probe_key_find("P");
  const int after = from->x.join == MX_ACC_JOIN_AFTER;
  int drops[PROBE_MAX_VALUES];
  const size_t n = mxi_probe_values(drops, drop, s->l->spec);
  if (!from->x.floor || from->x.F < 0) return;
  for (int d = -from->x.F; d <= PROBE_MOST_BITS - from->x.F; d++)
    for (size_t i = 0; i < n; i++) {
      const int c_drop = drops[i];
      if (c_drop > PROBE_FINE_DROP || (c_drop && !after)) continue;
      probe_guess g = *from;
      g.x.F += d;
      g.x.floor = mxi_probe_value(mxi_probe_number(g.x.floor) + d);
      if (d) push(s, &g);
      if (d && !c_drop && after) slide_widths(s, &g, d);
      if (d && after) push_move(s, &g, drop, c_drop);
      if (!g.x.P || !mxi_probe_set(&g, presum, 0, s->l->spec))
        continue; /* a sum of P products has the exponent of its scales: another way to slide */
      push(s, &g);
      if (after) push_move(s, &g, drop, c_drop);
    }
}

/* Sort, and drop what is not below `limit`; at most `most` stay. */
static void keep_below(search *s, size_t limit, size_t most) {
  qsort(s->pool, s->n, sizeof *s->pool, by_wrong);
  size_t keep = 0;
  while (keep < s->n && keep < most && s->pool[keep].wrong < limit) keep++;
  s->n = keep;
}

/* Lists the probes that `now` gets wrong, at most HARD of them. */
static int hard_ones(probe_list *out, const search *s, const probe_guess *now) {
  uint8_t d[RUN_AT_ONCE * 8];
  const probe_list *l = s->l;
  mxi_probe_list_init(out, l->spec, l->lack);
  for (size_t first = 0; first < l->n && out->n < HARD; first += RUN_AT_ONCE) {
    const size_t n = l->n - first < RUN_AT_ONCE ? l->n - first : RUN_AT_ONCE;
    if (!mxi_probe_run(d, l, first, n, now)) break;
    for (size_t i = 0; i < n && out->n < HARD; i++)
      if (mxi_probe_differs(l->spec->d, mxi_probe_bits(d, l->d_bytes, i), mxi_probe_bits(l->d, l->d_bytes, first + i), 0))
        mxi_probe_list_copy(out, l, first + i);
  }
  return !out->failed;
}

/* The best of the pool, if it is better than `now`. A move must mend some of what is wrong; then it is run on part of the probes, then on all. */
static int take_best(search *s, scored *now, const probe_list *hard) {
  score_all(s, hard, hard->n);
  keep_below(s, hard->n, MOVES_SCREENED);
  if (s->n > NO_SCREEN) {
    const size_t on_screen = mxi_probe_wrong(&s->screen, &now->g, SIZE_MAX - 1, 0, NULL);
    score_all(s, &s->screen, on_screen);
    keep_below(s, on_screen + 1, MOVES_FULL);
  }
  score_all(s, s->l, now->wrong);
  keep_below(s, now->wrong, 1);
  if (!s->n) return 0;
  *now = s->pool[0];
  return 1;
}

/* A start that gives every probe, if there is one. Most starts fail at the first few probes, so this costs little beside ranking them all. Of
 * several the first in the order of by_wrong() is taken. */
static int exact_start(const search *s, probe_found *out) {
  size_t n = 0;
  unsigned char *right = noted(calloc(s->n + 1, 1), s->l->lack);
  if (!right) return 0;
#pragma omp parallel for schedule(dynamic, 16) num_threads(s->threads) reduction(+ : n)
  for (size_t i = 0; i < s->n; i++) {
    probe_list few = *s->l;
    if (few.n > GLANCE) few.n = GLANCE;
    right[i] = !mxi_probe_wrong(&few, &s->pool[i].g, 0, 0, NULL) && !mxi_probe_wrong(s->l, &s->pool[i].g, 0, 0, NULL);
    n += right[i];
  }
  for (size_t i = 0; i < s->n; i++)
    if (right[i] && (out->wrong || memcmp(&s->pool[i].g, &out->g, sizeof out->g) < 0)) out->wrong = 0, out->g = s->pool[i].g;
  free(right);
  return n != 0;
}

/* Descends by moves of one key, and of two if `pairwise`. */
static void descend(search *s, scored *now, int pairwise) {
  for (int sweep = 0; sweep < SWEEPS && now->wrong; sweep++) {
    probe_list hard;
    int better = hard_ones(&hard, s, &now->g);
    if (better) {
      mxi_probe_list_keep(&hard);
      s->n = 0;
      single_moves(s, &now->g);
      better = take_best(s, now, &hard);
      if (pairwise && !better) {
        s->n = 0;
        slides(s, &now->g);
        better = take_best(s, now, &hard);
      }
      for (int p = 0; p < PAIRS && pairwise && !better && s->tried < ENOUGH; p++) {
        s->n = 0;
        pair_moves(s, &now->g, p);
        better = take_best(s, now, &hard);
      }
    }
    mxi_probe_list_free(&hard);
    if (!better) return;
  }
}

/* Puts the probes in an order that does not follow their families. */
static int shuffle(probe_list *out, const probe_list *l) {
  mxi_probe_list_init(out, l->spec, l->lack);
  size_t step = l->n * 5 / 8 | 1;
  for (size_t a = l->n, b = step; b;) { /* until coprime */
    const size_t r = a % b;
    a = b, b = r;
    if (!b && a != 1) step += 2, a = l->n, b = step;
  }
  for (size_t i = 0, at = 0; i < l->n; i++, at = (at + step) % l->n) mxi_probe_list_copy(out, l, at);
  return !out->failed;
}

int mxi_probe_search(probe_found *out, const probe_list *l, const probe_readings *r, int threads) {
  probe_list shuffled;
  search s = {.r = r, .room = STARTS, .threads = threads};
  memset(out, 0, sizeof *out);
  s.pool = noted(malloc(s.room * sizeof *s.pool), l->lack);
  scored *best = noted(malloc(DEEP * sizeof *best), l->lack);
  int ok = shuffle(&shuffled, l) && s.pool && best;
  if (ok) {
    mxi_probe_list_keep(&shuffled);
    s.l = &shuffled;
    s.screen = shuffled;
    s.screen.n = shuffled.n / SCREEN_ONE_IN > LEAST_SCREEN ? shuffled.n / SCREEN_ONE_IN : shuffled.n < LEAST_SCREEN ? shuffled.n : LEAST_SCREEN;
    out->wrong = SIZE_MAX;
    starts(&s);
    grid(&s);
    s.tried = s.n;
  }
  if (ok && !exact_start(&s, out)) {
    /* none: on a few probes, on part of them, on all */
    s.tried = 0;
    probe_list few = shuffled;
    if (few.n > FIRST) few.n = FIRST;
    score_all(&s, &few, few.n);
    keep_below(&s, SIZE_MAX, s.n);
    keep_of_each_kind(&s, KIND_AFTER_FIRST);
    score_all(&s, &s.screen, s.screen.n);
    keep_below(&s, SIZE_MAX, s.n);
    keep_of_each_kind(&s, KIND_AFTER_SCREEN);
    size_t n = 0;
    for (size_t i = 0; i < s.n && n < DEEP; i++) best[n++] = s.pool[i];
    for (size_t i = 0; i < n; i++) best[i].wrong = mxi_probe_wrong(&shuffled, &best[i].g, shuffled.n, 0, NULL);
    for (int pairwise = 0; pairwise < 2 && out->wrong; pairwise++) {
      qsort(best, n, sizeof *best, by_wrong);
      for (size_t i = 0; i < (pairwise && n > PAIRWISE ? PAIRWISE : n) && out->wrong; i++) {
        if (i && !memcmp(&best[i].g, &best[i - 1].g, sizeof best[i].g)) continue;
        descend(&s, &best[i], pairwise);
        if (best[i].wrong < out->wrong) out->wrong = best[i].wrong, out->g = best[i].g;
      }
    }
  }
  out->tried = s.tried;
  free(s.pool);
  free(best);
  mxi_probe_list_free(&shuffled);
  return ok;
}
