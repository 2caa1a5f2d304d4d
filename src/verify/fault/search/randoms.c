/* Finds the random numbers of a kernel that rounds by chance. What is likely is tried one by one: generators, seeds, what counts them. Each is held to
 * elements near the middle of a step, of which few are enough to refute it, so that a million take a fraction of a second. */
#include "verify/fault/search/randoms.h"

#include <math.h>
#include <stdlib.h>

#include "verify/fault/elements.h"
#include "verify/fault/random.h"
#include "verify/trial/shared.h"

/* So many elements must follow: by chance less than one set of wrong numbers in 2^100 does. */
enum { PROBES = 256, LOOKED_AT = 1 << 13 };

/* Rounding at random leaves at least this share of those near the middle of a step otherwise than to the nearest. */
enum { WRONG_ONE_IN = 8 };

/* Of the elements on one side of the middle, chance takes at least this share down and this share up; a rule takes all in one direction. */
enum { OTHERWISE_ONE_IN = 16 };

/* The choice among all that are tried. */
static const double BITS_OF_A_SOURCE = 25;

/* Elements that would take as long as one look. */
enum { LOOK_COSTS = 1 << 20 };

/* Seeds below the first number, and others that people type; of generators that take long, and of each hash. */
enum { SMALL_SEEDS = 2048, SEEDS_OF_SLOW = 64, SEEDS_OF_HASH = 128 };
static const uint32_t habits[] = {
    44257,      1,          1234,       1337,       2023,       2024,       2025,       2026,       12345,       123456,     1234567,
    12345678,   123456789,  1234567890, 987654321,  2463534242, 0xDEADBEEF, 0xCAFEBABE, 0xBEEF,     0xCAFE,      0xF00D,     0xC0FFEE,
    0x12345678, 0x9E3779B9, 0x9E3779B1, 0x5EED,     0xA5A5A5A5, 0x5A5A5A5A, 0xFFFF,     0xFFFFFFFF, 0x7FFFFFFF,  0x7F4A7C15, 3735928559u,
    31337,      65537,      10007,      4242,       424242,     20240101,   20250101,   314159,     3141592653u, 271828,     2718281828u,
    8675309,    1000003,    0xBADC0DE,  0x1234ABCD, 0xABCD1234, 0xABCDEF,   0x13579BDF, 2147483647, 5489,        19650218,   99999,
    6700417,    9999,       5555,       7777,       10000,      100000,     1000000,    3000,       4096,        65536,      2654435769u};
enum { HABITS = sizeof habits / sizeof *habits };

/* What is rounded by and how many bits of a word: the plainest first, of the top ones and of the low ones. Pieces are those of counts that say so. */
static const struct {
  uint8_t part, bits;
} parts[] = {{MXI_PART_TOP, 32}, {MXI_PART_TOP, 24}, {MXI_PART_TOP, 16}, {MXI_PART_TOP, 8},  {MXI_PART_TOP, 22}, {MXI_PART_TOP, 23},
             {MXI_PART_TOP, 21}, {MXI_PART_TOP, 20}, {MXI_PART_TOP, 31}, {MXI_PART_TOP, 15}, {MXI_PART_TOP, 12}, {MXI_PART_TOP, 10},
             {MXI_PART_TOP, 7},  {MXI_PART_TOP, 4},  {MXI_PART_LOW, 24}, {MXI_PART_LOW, 16}, {MXI_PART_LOW, 8},  {MXI_PART_FOLDED, 31}};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* Words of which the first 8 bits are looked at first: of all top parts at once, of each low one, folded; of a piece of a word that is split. */
enum { COARSE_TOP, COARSE_LOW24, COARSE_LOW16, COARSE_LOW8, COARSE_FOLDED, N_COARSE, CELLS = 256 };
static int coarse_of(int part, int bits) {
  if (part == MXI_PART_FOLDED) return COARSE_FOLDED;
  if (part != MXI_PART_LOW) return COARSE_TOP;
  return bits == 24 ? COARSE_LOW24 : bits == 16 ? COARSE_LOW16 : COARSE_LOW8;
}

/* A sum that two codes up or one down are seen in is one of the last three; the others share a byte. */
enum { MOST_WAYS = 8 };
static const int ways[] = {MX_FAULT_ELEMENT_RANDOM_BELOW,   MX_FAULT_ELEMENT_RANDOM_ABOVE,         MX_FAULT_ELEMENT_RANDOM_CARRY,
                           MX_FAULT_ELEMENT_RANDOM_FLOOR,   MX_FAULT_ELEMENT_RANDOM_HALF,          MX_FAULT_ELEMENT_RANDOM_OWN,
                           MX_FAULT_ELEMENT_RANDOM_CENTRED, MX_FAULT_ELEMENT_RANDOM_CENTRED_LEAST, MX_FAULT_ELEMENT_RANDOM_NEAREST,
                           MX_FAULT_ELEMENT_RANDOM_SIGNED};
enum { N_WAYS = sizeof ways / sizeof *ways };

typedef struct drawn {
  random_place at;
  uint32_t row, col;
  int steps; /* codes that were seen above the one below */
} drawn;

typedef struct probe {
  drawn of;
  uint8_t ok[CELLS]; /* the ways, a bit each, in which a number of this 256th gives its code */
} probe;

typedef struct look {
  probe p[PROBES];
  random_count count[PROBES]; /* of the source that is tried */
  size_t n;
  double *y;  /* the quotient of each element of the data */
  drawn *all; /* those that a random number decides something of */
  size_t n_all;
  shared_number *numbers; /* as many as there are elements */
  int way[MOST_WAYS], n_ways;
} look;

static void read_ways(probe *p, const look *l) {
  for (int i = 0; i < CELLS; i++) {
    const double first = (double)i / CELLS, last = (double)(i + 1) / CELLS - 0x1p-32;
    p->ok[i] = 0;
    for (int k = 0; k < l->n_ways; k++) {
      const int least = mxi_random_steps(&p->of.at, l->way[k], first), most = mxi_random_steps(&p->of.at, l->way[k], last);
      p->ok[i] |= (uint8_t)(((p->of.steps >= least && p->of.steps <= most) || (p->of.steps <= least && p->of.steps >= most)) << k);
    }
  }
}

/* Lists elements near the middle of a step, all over the data. 0: they are not rounded at random, or something else is wrong as well. */
static int read_probes(look *l, view *v) {
  const fault_run *r = &v->r;
  const mx_format *e = r->plan.elem;
  const size_t blocks = r->down * r->across, area = r->block_rows * r->block_cols;
  const size_t step = blocks * area / LOOKED_AT | 1; /* odd, so that all columns come in turn */
  size_t wrong = 0, n[2] = {0}, up[2] = {0};         /* below the middle of the step, and above it */
  size_t met = 0, each = 1;                          /* one in so many is kept */
  effort_spend(v->e, LOOKED_AT);
  l->n = 0;
  for (size_t k = 0; k < blocks; k += step) {
    const size_t d = k / r->across, a = k % r->across;
    fault_block b;
    mxi_fault_block(&b, r, d, a, v->seen[k]);
    for (size_t i = k % 7; i < area; i += 1 + area * (blocks / step + 1) / LOOKED_AT * 8) {
      const size_t row = d * r->block_rows + i / r->block_cols, col = a * r->block_cols + i % r->block_cols;
      if (row >= r->rows || col >= r->cols) continue;
      const uint32_t seen = v->s->codes[row * r->cols + col], m = mxi_fault_magnitude(e, seen);
      const double y = mxi_fault_quotient(r, &b, row, col);
      if (!isfinite(y)) continue;
      const random_place at = mxi_random_place_centred(e, y);
      const int steps = (int)m - (int)at.low;
      if (at.is_largest || at.d < 0.25 || at.d > 0.75) continue;
      if (steps < -1 || steps > 2 || (m && mxi_fault_with_sign(e, m, signbit(y) != 0) != seen)) return 0; /* a zero may have lost its sign */
      wrong += v->codes[row * r->cols + col] != seen;
      n[at.d > 0.5]++;
      up[at.d > 0.5] += steps > 0;
      if (met++ % each) continue;
      if (l->n == PROBES) { /* every second one stays */
        for (l->n = 0; l->n < PROBES / 2; l->n++) l->p[l->n] = l->p[2 * l->n];
        each *= 2;
        if ((met - 1) % each) continue;
      }
      l->p[l->n++].of = (drawn){.at = at, .row = (uint32_t)row, .col = (uint32_t)col, .steps = steps};
    }
  }
  if (met < PROBES / 2 || wrong * WRONG_ONE_IN < met) return 0;
  int by_chance = 0;
  for (int half = 0; half < 2; half++)
    by_chance |= up[half] && up[half] * OTHERWISE_ONE_IN >= n[half] && (n[half] - up[half]) * OTHERWISE_ONE_IN >= n[half] && up[half] < n[half];
  return by_chance;
}

/* Lists all elements that a random number decides something of. */
static int read_all(look *l, view *v) {
  const fault_run *r = &v->r;
  const size_t most = r->rows * r->cols;
  l->n_all = 0;
  l->y = mxi_view_quotients(v);
  l->all = noted(malloc(most * sizeof *l->all), v->e->until.lack);
  l->numbers = noted(malloc(most * sizeof *l->numbers), v->e->until.lack);
  if (!l->y || !l->all || !l->numbers) return 0;
  for (size_t i = 0; i < most; i++) {
    if (!isfinite(l->y[i])) continue;
    drawn *const one = &l->all[l->n_all];
    *one = (drawn){.at = mxi_random_place_centred(r->plan.elem, l->y[i]), .row = (uint32_t)(i / r->cols), .col = (uint32_t)(i % r->cols)};
    one->steps = (int)mxi_fault_magnitude(r->plan.elem, v->s->codes[i]) - (int)one->at.low;
    l->n_all += !one->at.is_largest || one->steps;
  }
  return 1;
}

/* Lists the ways in which each element can have got its code by some number. */
static int find_ways(look *l) {
  size_t down = 0, two = 0;
  for (size_t i = 0; i < l->n_all; i++) down += l->all[i].steps<0, two += l->all[i].steps> 1;
  l->n_ways = 0;
  for (int w = 0; w < N_WAYS && l->n_ways < MOST_WAYS; w++) {
    int can = (ways[w] != MX_FAULT_ELEMENT_RANDOM_NEAREST || two) && (ways[w] != MX_FAULT_ELEMENT_RANDOM_SIGNED || down);
    for (size_t i = 0; i < l->n_all && can; i++) {
      const random_interval in = mxi_random_interval(&l->all[i].at, ways[w], l->all[i].steps);
      can = in.least <= in.most;
    }
    if (can) l->way[l->n_ways++] = ways[w];
  }
  for (size_t i = 0; i < l->n; i++) read_ways(&l->p[i], l);
  return l->n_ways;
}

/* So many elements must have a number that another one has too: by chance all of them agree once in 2^40 or less often. And so many bits the intervals of all
 * numbers together must say, of which the choice among all sources takes some 25: few numbers are those of some source by chance. */
enum { SHARED_BY = 512, SHARED_BITS = 64 };

/* The ways, a bit each, in which all elements of the same count can have the same number; and how many numbers there are. 0 too if hardly two
 * elements have the same count. */
static unsigned share_by(size_t *n_numbers, look *l, const fault_run *r, const random_source *s) {
  unsigned left = 0;
  *n_numbers = 0;
  for (int w = 0; w < l->n_ways; w++) {
    size_t i = 0, n = 0;
    for (size_t k = 0; k < r->rows * r->cols; k++) l->numbers[k] = (shared_number){1, 0};
    for (; i < l->n_all; i++) {
      const drawn *const one = &l->all[i];
      const random_interval in = mxi_random_interval(&one->at, l->way[w], one->steps);
      shared_number *const number = &l->numbers[mxi_random_count(s, r, one->row, one->col).k];
      n += mxi_is_new(number);
      if (!mxi_may_share(number, in.least, in.most)) break;
    }
    double said = 0;
    for (size_t k = 0; k < r->rows * r->cols && i == l->n_all && said < SHARED_BITS; k++)
      said -= mxi_is_new(&l->numbers[k]) ? 0 : log2(fmin(1, fmax(0x1p-32, l->numbers[k].most - l->numbers[k].least)));
    if (i == l->n_all && n + SHARED_BY <= l->n_all && said >= SHARED_BITS) left |= 1u << w, *n_numbers = n;
  }
  return left;
}

/* Do four numbers do, by whether row and column are odd? Such a pattern is no random number, and some hash gives it in the lanes of a block. */
static int is_pattern(const look *l) {
  for (int w = 0; w < l->n_ways; w++) {
    shared_number of[4] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}};
    size_t i = 0;
    for (; i < l->n_all; i++) {
      const random_interval in = mxi_random_interval(&l->all[i].at, l->way[w], l->all[i].steps);
      if (!mxi_may_share(&of[l->all[i].row % 2 * 2 + l->all[i].col % 2], in.least, in.most)) break;
    }
    if (i == l->n_all) return 1;
  }
  return 0;
}

/* The ways that are left for a source, a byte of them for each coarse word, of those that may be. */
static uint64_t left_of(const look *l, const random_source *s, uint64_t left) {
  for (size_t i = 0; i < l->n && left; i++) {
    const uint32_t w = mxi_random_word(s, l->count[i]);
    const uint8_t *ok = l->p[i].ok;
    if (s->part == MXI_PART_SPLIT)
      left &= ok[(w >> l->p[i].of.col % (32u / s->bits) * s->bits & ((1u << s->bits) - 1)) << 16 >> s->bits >> 8 & 255];
    else
      left &= ok[w >> 24] | (uint64_t)ok[w >> 16 & 255] << 8 | (uint64_t)ok[w >> 8 & 255] << 16 | (uint64_t)ok[w & 255] << 24 |
              (uint64_t)ok[(w >> 31 ? ~w : w) >> 23] << 32;
  }
  return left;
}

/* Do all probes follow the way with this part of the word? */
static int follows(const look *l, const random_source *s, int way) {
  for (size_t i = 0; i < l->n; i++)
    if (mxi_random_steps(&l->p[i].of.at, way, mxi_random_unit(s, mxi_random_word(s, l->count[i]), l->p[i].of.col)) != l->p[i].of.steps)
      return 0;
  return 1;
}

/* And all elements of the data? */
static int follow_all(view *v, const look *l, const random_source *s, int way) {
  const fault_run *r = &v->r;
  effort_spend(v->e, r->rows * r->cols);
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    const size_t row = i / r->cols, col = i % r->cols;
    if (!isfinite(l->y[i])) continue;
    const random_place at = mxi_random_place_centred(r->plan.elem, l->y[i]);
    const int steps = mxi_random_steps(&at, way, mxi_random_unit(s, mxi_random_word(s, mxi_random_count(s, r, row, col)), col));
    if (at.low + (uint32_t)steps != mxi_fault_magnitude(r->plan.elem, v->s->codes[i])) return 0;
  }
  return 1;
}

/* Makes the fault of a source and a way, if all follow. */
static int settle_on(mx_fault *f, view *v, const look *l, const random_source *s, int way) {
  if (!follows(l, s, way) || !follow_all(v, l, s, way)) return 0;
  *f = (mx_fault){.region = {.of = MX_REGION_ALL}, .op = way};
  mxi_random_pack(f, s);
  return 1;
}

/* The plainest part of the word with which all follow. */
static int settle(mx_fault *f, view *v, const look *l, random_source s, uint64_t left) {
  const int split = s.part == MXI_PART_SPLIT;
  for (int k = 0; k < (split ? 1 : N_PARTS); k++)
    for (int w = 0; w < l->n_ways; w++) {
      if (!split) s.part = parts[k].part, s.bits = parts[k].bits;
      if (left >> (8 * (split ? 0 : coarse_of(s.part, s.bits)) + w) & 1 && settle_on(f, v, l, &s, l->way[w])) return 1;
    }
  return 0;
}

/* What an odd factor is undone by, modulo 2^32. */
static uint32_t inverse(uint32_t a) {
  uint32_t x = a;
  for (int i = 0; i < 5; i++) x *= 2 - a * x;
  return x;
}

/* The seeds of one generator, added and xored, or as its key. A seed that is added behind the first factor is another one before it, and kernels have
 * a seed times the golden ratio as well. */
static int try_seeds(mx_fault *f, view *v, const look *l, random_source s, uint32_t small, uint64_t may) {
  const int keyed = mxi_random_is_keyed(s.generator);
  const uint32_t undone[] = {1, s.generator == MXI_RANDOM_HASH ? inverse(mxi_hash_factor(s.factor[0])) : 1, 0x9E3779B9};
  for (int join = keyed ? MXI_JOIN_KEY : MXI_JOIN_PLUS; join <= (keyed ? MXI_JOIN_KEY : MXI_JOIN_XOR); join++)
    for (int by = 0; by < 3; by++) {
      const uint32_t few = by ? SEEDS_OF_SLOW : small, n = few + (s.generator == MXI_RANDOM_LFSR16 ? 1 : HABITS);
      if (by && (keyed || undone[by] == 1 || (by == 1 && join == MXI_JOIN_XOR))) continue;
      for (uint32_t i = by != 0 || join == MXI_JOIN_XOR; i < n; i++) {
        s.join = (uint8_t)join;
        s.seed = (i < few ? i : habits[i - few]) * undone[by];
        const uint64_t left = left_of(l, &s, may);
        if (left && settle(f, v, l, s, left)) return 1;
      }
    }
  return 0;
}

/* Hashes that kernels have: with a first factor or none, a shift, a factor, and mostly a second shift; or with two more products. */
static int try_hashes(mx_fault *f, view *v, const look *l, random_source s, uint64_t may) {
  static const uint8_t shifts[] = {0, 15, 13, 16}, firsts[] = {16, 15, 13}; /* of the table of factors: */
  static const uint8_t with[] = {0, 1, 2, 3, 18}, by[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1, 2, 17, 26};
  static const uint8_t three[][5] = {{16, 3, 13, 5, 16}, {16, 4, 13, 6, 16},   {15, 3, 13, 5, 16},  {15, 4, 13, 6, 16},   {15, 4, 13, 6, 15},
                                     {16, 5, 15, 7, 16}, {16, 13, 16, 13, 16}, {15, 9, 12, 10, 15}, {16, 11, 15, 12, 16}, {17, 26, 11, 27, 15},
                                     {16, 3, 15, 5, 16}, {15, 3, 12, 5, 15},   {16, 3, 16, 5, 16}};
  s.generator = MXI_RANDOM_HASH;
  for (size_t a = 0; a < sizeof with; a++) {
    s.factor[0] = with[a];
    for (size_t i = 0; i < sizeof three / sizeof *three; i++) {
      s.shift[0] = three[i][0], s.factor[1] = three[i][1], s.shift[1] = three[i][2], s.factor[2] = three[i][3], s.shift[2] = three[i][4];
      if (try_seeds(f, v, l, s, SEEDS_OF_HASH, may)) return 1;
    }
    s.factor[2] = s.shift[2] = 0;
    for (size_t i = 0; i < sizeof firsts; i++)
      for (size_t b = 0; b < sizeof by; b++)
        for (size_t k = 0; k < sizeof shifts; k++) {
          s.shift[0] = firsts[i], s.factor[1] = by[b], s.shift[1] = shifts[k];
          if (try_seeds(f, v, l, s, SEEDS_OF_HASH, may)) return 1;
        }
    s.factor[1] = s.shift[1] = 0;
  }
  return 0;
}

/* All generators and seeds for what counts them, in the ways that may be. */
static int try_count(mx_fault *f, view *v, look *l, random_source s, unsigned of_ways) {
  uint64_t may = 0;
  for (int k = 0; k < N_COARSE; k++) may |= (uint64_t)of_ways << 8 * k;
  if (s.part == MXI_PART_SPLIT) may = of_ways;
  effort_spend(v->e, LOOK_COSTS / 8);
  for (size_t i = 0; i < l->n; i++) l->count[i] = mxi_random_count(&s, &v->r, l->p[i].of.row, l->p[i].of.col);
  for (int g = 0; g < MXI_RANDOM_HASH; g++) {
    const int slow = g == MXI_RANDOM_LFSR16 || g == MXI_RANDOM_XORSHIFT_STEPS;
    if (s.count >= MXI_COUNT_IN_ROW && !mxi_random_is_keyed(g)) continue;
    s.generator = (uint8_t)g;
    if (try_seeds(f, v, l, s, slow ? SEEDS_OF_SLOW : SMALL_SEEDS, may)) return 1;
  }
  return s.count < MXI_COUNT_IN_ROW && try_hashes(f, v, l, s, may);
}

/* Where elements share numbers: by the counts that have the fewest of those that agree with the data. */
static int try_shared(mx_fault *f, view *v, look *l) {
  static const struct {
    uint8_t count, halved, tile;
  } counts[] = {{MXI_COUNT_ROW, 4, 0},    {MXI_COUNT_ROW, 3, 0},    {MXI_COUNT_ROW, 2, 0},    {MXI_COUNT_ROW, 1, 0},
                {MXI_COUNT_ROW, 0, 0},    {MXI_COUNT_LANE, 3, 0},   {MXI_COUNT_LANE, 2, 0},   {MXI_COUNT_LANE, 1, 0},
                {MXI_COUNT_LANE, 0, 0},   {MXI_COUNT_COLUMN, 5, 0}, {MXI_COUNT_COLUMN, 4, 0}, {MXI_COUNT_COLUMN, 3, 0},
                {MXI_COUNT_COLUMN, 2, 0}, {MXI_COUNT_COLUMN, 1, 0}, {MXI_COUNT_COLUMN, 0, 0}, {MXI_COUNT_TILE, 0, 2},
                {MXI_COUNT_TILE, 0, 3},   {MXI_COUNT_TILE, 0, 4},   {MXI_COUNT_TILE, 0, 5},   {MXI_COUNT_TILE, 0, 6},
                {MXI_COUNT_TILE, 0, 7},   {MXI_COUNT_BLOCK, 2, 0},  {MXI_COUNT_BLOCK, 1, 0},  {MXI_COUNT_BLOCK, 0, 0},
                {MXI_COUNT_INDEX, 7, 0},  {MXI_COUNT_INDEX, 6, 0},  {MXI_COUNT_INDEX, 5, 0},  {MXI_COUNT_INDEX, 4, 0},
                {MXI_COUNT_INDEX, 3, 0},  {MXI_COUNT_INDEX, 2, 0},  {MXI_COUNT_INDEX, 1, 0}};
  enum { COUNTS = sizeof counts / sizeof *counts, TRIED = 2 };
  const fault_run *r = &v->r;
  size_t numbers[COUNTS], n_tried = 0;
  unsigned of_ways[COUNTS];
  effort_spend(v->e, COUNTS / 4 * l->n_all);
  for (size_t k = 0; k < COUNTS; k++) {
    const random_source s = {.count = counts[k].count, .halved = counts[k].halved, .tile = counts[k].tile};
    of_ways[k] = s.count == MXI_COUNT_TILE && r->rows >> s.tile < 2 ? 0 : share_by(&numbers[k], l, r, &s);
  }
  for (; n_tried < TRIED && !effort_over(v->e); n_tried++) {
    size_t best = COUNTS;
    for (size_t k = 0; k < COUNTS; k++)
      if (of_ways[k] && (best == COUNTS || numbers[k] < numbers[best])) best = k;
    if (best == COUNTS) return 0;
    const random_source s = {.count = counts[best].count, .halved = counts[best].halved, .tile = counts[best].tile};
    if (try_count(f, v, l, s, of_ways[best])) return 1;
    if (counts[best].count == MXI_COUNT_COLUMN && !s.halved) { /* pieces of a word for columns beside each other */
      for (uint8_t halved = 1; halved <= 3; halved++)
        if (try_count(f, v, l,
                      (random_source){.count = MXI_COUNT_COLUMN, .halved = halved, .part = MXI_PART_SPLIT, .bits = (uint8_t)(32 >> halved)},
                      of_ways[best]))
          return 1;
    }
    of_ways[best] = 0;
  }
  return 0;
}

/* Where each element has a number of its own, which may be a piece of a word. */
static int try_own(mx_fault *f, view *v, look *l) {
  static const random_source counts[] = {{.count = MXI_COUNT_INDEX},
                                         {.count = MXI_COUNT_PADDED},
                                         {.count = MXI_COUNT_IN_ROW},
                                         {.count = MXI_COUNT_IN_BLOCK},
                                         {.count = MXI_COUNT_INDEX, .halved = 1, .part = MXI_PART_SPLIT, .bits = 16},
                                         {.count = MXI_COUNT_INDEX, .halved = 2, .part = MXI_PART_SPLIT, .bits = 8},
                                         {.count = MXI_COUNT_INDEX, .halved = 3, .part = MXI_PART_SPLIT, .bits = 4}};
  for (size_t k = 0; k < sizeof counts / sizeof *counts && !effort_over(v->e); k++) {
    if (counts[k].count == MXI_COUNT_PADDED && v->r.cols % v->r.block_cols == 0) continue;
    if (try_count(f, v, l, counts[k], (1u << l->n_ways) - 1)) return 1;
  }
  return 0;
}

int mxi_find_random(mx_fault *f, double *bits, view *v) {
  int found = 0;
  if (v->n_first || !v->e->random_looks) return 0;
  look *l = noted(calloc(1, sizeof *l), v->e->until.lack);
  if (l && read_probes(l, v) && read_all(l, v) && find_ways(l) && !is_pattern(l)) {
    v->e->random_looks--;
    found =
        try_shared(f, v, l) || try_own(f, v, l); /* of a linear generator, neighbours have numbers so near each other that they look like one */
    *bits = BITS_OF_A_SOURCE;
  }
  if (l) free(l->y), free(l->all), free(l->numbers);
  free(l);
  return found;
}

int mxi_random_near(mx_fault *out, const mx_fault *f, int k) {
  static const uint8_t usual[] = {32, 24, 16, 15, 8}, shifts[] = {0, 12, 13, 14, 15, 16, 17}, firsts[] = {13, 15, 16, 17};
  enum { USUAL = sizeof usual, SHIFTS = sizeof shifts, ENDS = USUAL * SHIFTS, FIRSTS = sizeof firsts };
  random_source s = mxi_random_unpack(f);
  const int is_hash = s.generator == MXI_RANDOM_HASH;
  int last = 0;
  *out = *f;
  if (k >= (is_hash ? ENDS + FIRSTS : USUAL) || s.part == MXI_PART_FOLDED || (s.part == MXI_PART_SPLIT && !is_hash)) return 0;
  for (int i = 0; i < MXI_HASH_STEPS; i++) last = s.factor[i] || s.shift[i] ? i : last;
  if (k < ENDS && s.part != MXI_PART_SPLIT) s.bits = usual[k % USUAL];
  if (is_hash && k < ENDS && s.factor[last]) s.shift[last] = shifts[k / USUAL];
  if (k >= ENDS && last) s.shift[0] = firsts[k - ENDS];
  mxi_random_pack(out, &s);
  return 1;
}
