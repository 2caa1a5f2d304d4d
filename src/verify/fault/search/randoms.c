/* Finds the random numbers of a kernel that rounds by chance. What is likely is tried one by one: generators, seeds, what counts them. Each is held to
 * elements near the middle of a step, of which few are enough to refute it, so that a million take a fraction of a second. */
#include "verify/fault/search/randoms.h"

#include <math.h>
#include <stdlib.h>

#include "verify/fault/elements.h"
#include "verify/fault/random.h"

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

/* Seeds below the first number, and others that people type. */
enum { SMALL_SEEDS = 2048, SEEDS_OF_SLOW = 64 };
static const uint32_t habits[] = {44257,      1,           12345,      123456,     1234567,   12345678,   123456789,  1234567890, 987654321,
                                  2463534242, 0xDEADBEEF,  0xCAFEBABE, 0xBEEF,     0xCAFE,    0xF00D,     0xC0FFEE,   0x12345678, 0x9E3779B9,
                                  0x9E3779B1, 0x5EED,      0xA5A5A5A5, 0x5A5A5A5A, 0xFFFF,    0xFFFFFFFF, 0x7FFFFFFF, 0x7F4A7C15, 3735928559u,
                                  31337,      65537,       10007,      4242,       424242,    20240101,   20250101,   314159,     3141592653u,
                                  271828,     2718281828u, 8675309,    1000003,    0xBADC0DE, 0x1234ABCD, 0xABCD1234, 0xABCDEF,   0x13579BDF,
                                  2147483647, 5489,        19650218,   99999,      6700417,   9999,       5555,       7777,       10000,
                                  100000,     1000000,     3000,       4096,       65536,     2654435769u};
enum { HABITS = sizeof habits / sizeof *habits };

/* What is rounded by and how many bits of a word: the plainest first, of the top ones and of the low ones. */
static const struct {
  uint8_t part, bits;
} parts[] = {{MXI_PART_TOP, 32}, {MXI_PART_TOP, 24}, {MXI_PART_TOP, 16},    {MXI_PART_TOP, 8},    {MXI_PART_TOP, 22}, {MXI_PART_TOP, 23},
             {MXI_PART_TOP, 21}, {MXI_PART_TOP, 20}, {MXI_PART_TOP, 31},    {MXI_PART_TOP, 15},   {MXI_PART_TOP, 7},  {MXI_PART_LOW, 24},
             {MXI_PART_LOW, 16}, {MXI_PART_LOW, 8},  {MXI_PART_FOLDED, 31}, {MXI_PART_SPLIT, 16}, {MXI_PART_SPLIT, 8}};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* Words of which the first 8 bits are looked at first: of all top parts at once, of each low one, folded. */
enum { COARSE_TOP, COARSE_LOW24, COARSE_LOW16, COARSE_LOW8, COARSE_FOLDED, COARSE_SPLIT16, COARSE_SPLIT8, N_COARSE, CELLS = 256 };
static int coarse_of(int k) {
  if (parts[k].part == MXI_PART_TOP) return COARSE_TOP;
  if (parts[k].part == MXI_PART_FOLDED) return COARSE_FOLDED;
  if (parts[k].part == MXI_PART_SPLIT) return parts[k].bits == 16 ? COARSE_SPLIT16 : COARSE_SPLIT8;
  return parts[k].bits == 24 ? COARSE_LOW24 : parts[k].bits == 16 ? COARSE_LOW16 : COARSE_LOW8;
}

enum { N_WAYS = 8 };
static const int ways[N_WAYS] = {MX_FAULT_ELEMENT_RANDOM_BELOW,   MX_FAULT_ELEMENT_RANDOM_ABOVE, MX_FAULT_ELEMENT_RANDOM_CARRY,
                                 MX_FAULT_ELEMENT_RANDOM_NEAREST, MX_FAULT_ELEMENT_RANDOM_FLOOR, MX_FAULT_ELEMENT_RANDOM_SIGNED,
                                 MX_FAULT_ELEMENT_RANDOM_HALF,    MX_FAULT_ELEMENT_RANDOM_OWN};

typedef struct probe {
  random_place at;
  size_t row, col;
  int steps;         /* codes that were seen above the one below */
  uint8_t ok[CELLS]; /* the ways, a bit each, in which a number of this 256th gives them */
} probe;

typedef struct look {
  probe p[PROBES];
  random_count count[PROBES]; /* of the source that is tried */
  size_t n;
} look;

static void read_ways(probe *p) {
  for (int i = 0; i < CELLS; i++) {
    const double first = (double)i / CELLS, last = (double)(i + 1) / CELLS - 0x1p-32;
    p->ok[i] = 0;
    for (int k = 0; k < N_WAYS; k++) {
      const int least = mxi_random_steps(&p->at, ways[k], first), most = mxi_random_steps(&p->at, ways[k], last);
      p->ok[i] |= (uint8_t)(((p->steps >= least && p->steps <= most) || (p->steps <= least && p->steps >= most)) << k);
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
  effort_spend(v->e, LOOKED_AT);
  l->n = 0;
  for (size_t k = 0; k < blocks && l->n < PROBES; k += step) {
    const size_t d = k / r->across, a = k % r->across;
    fault_block b;
    mxi_fault_block(&b, r, d, a, v->seen[k]);
    for (size_t i = k % 7; i < area && l->n < PROBES; i += 1 + area * (blocks / step + 1) / LOOKED_AT * 8) {
      const size_t row = d * r->block_rows + i / r->block_cols, col = a * r->block_cols + i % r->block_cols;
      if (row >= r->rows || col >= r->cols) continue;
      const uint32_t seen = v->s->codes[row * r->cols + col], m = mxi_fault_magnitude(e, seen);
      const double y = mxi_fault_quotient(r, &b, row, col);
      if (!isfinite(y)) continue;
      probe *p = &l->p[l->n];
      *p = (probe){.at = mxi_random_place(e, y), .row = row, .col = col};
      if (p->at.is_largest || p->at.d < 0.25 || p->at.d > 0.75) continue;
      p->steps = (int)m - (int)p->at.low;
      if (p->steps < -1 || p->steps > 2 || mxi_fault_with_sign(e, m, signbit(y) != 0) != seen) return 0;
      wrong += v->codes[row * r->cols + col] != seen;
      n[p->at.d > 0.5]++;
      up[p->at.d > 0.5] += p->steps > 0;
      l->n++;
    }
  }
  if (l->n < PROBES / 2 || wrong * WRONG_ONE_IN < l->n) return 0;
  int by_chance = 0;
  for (int half = 0; half < 2; half++)
    by_chance |= up[half] && up[half] * OTHERWISE_ONE_IN >= n[half] && (n[half] - up[half]) * OTHERWISE_ONE_IN >= n[half] && up[half] < n[half];
  if (!by_chance) return 0;
  for (size_t i = 0; i < l->n; i++) read_ways(&l->p[i]);
  return 1;
}

/* The ways that are left for a source, a byte of them for each coarse word. */
static uint64_t left_of(const look *l, const random_source *s) {
  uint64_t left = (UINT64_C(1) << 8 * N_COARSE) - 1;
  for (size_t i = 0; i < l->n && left; i++) {
    const uint32_t w = mxi_random_word(s, l->count[i]);
    const uint8_t *ok = l->p[i].ok;
    left &= ok[w >> 24] | (uint64_t)ok[w >> 16 & 255] << 8 | (uint64_t)ok[w >> 8 & 255] << 16 | (uint64_t)ok[w & 255] << 24 |
            (uint64_t)ok[(w >> 31 ? ~w : w) >> 23] << 32 | (uint64_t)ok[w >> (l->p[i].col % 2 * 16 + 8) & 255] << 40 |
            (uint64_t)ok[w >> l->p[i].col % 4 * 8 & 255] << 48;
  }
  return left;
}

/* Do all probes follow the way with this part of the word? */
static int follows(const look *l, const random_source *s, int way) {
  for (size_t i = 0; i < l->n; i++)
    if (mxi_random_steps(&l->p[i].at, way, mxi_random_unit(s, mxi_random_word(s, l->count[i]), l->p[i].col)) != l->p[i].steps) return 0;
  return 1;
}

/* And all elements of the data? */
static int follow_all(view *v, const random_source *s, int way) {
  const fault_run *r = &v->r;
  effort_spend(v->e, r->rows * r->cols);
  for (size_t k = 0; k < r->down * r->across; k++) {
    const size_t d = k / r->across, a = k % r->across;
    fault_block b;
    mxi_fault_block(&b, r, d, a, v->seen[k]);
    for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
      for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++) {
        const double y = mxi_fault_quotient(r, &b, row, col);
        const random_place at = mxi_random_place(r->plan.elem, y);
        if (!isfinite(y)) continue;
        const int steps = mxi_random_steps(&at, way, mxi_random_unit(s, mxi_random_word(s, mxi_random_count(s, r, row, col)), col));
        if (at.low + (uint32_t)steps != mxi_fault_magnitude(r->plan.elem, v->s->codes[row * r->cols + col])) return 0;
      }
  }
  return 1;
}

/* The plainest part of the word with which all follow. */
static int settle(mx_fault *f, view *v, const look *l, random_source s, uint64_t left) {
  for (int k = 0; k < N_PARTS; k++)
    for (int w = 0; w < N_WAYS; w++) {
      s.part = parts[k].part, s.bits = parts[k].bits;
      if (!(left >> (8 * coarse_of(k) + w) & 1) || !follows(l, &s, ways[w]) || !follow_all(v, &s, ways[w])) continue;
      *f = (mx_fault){.region = {.of = MX_REGION_ALL}, .op = ways[w]};
      mxi_random_pack(f, &s);
      return 1;
    }
  return 0;
}

/* All generators and seeds for what counts them. */
static int try_count(mx_fault *f, view *v, look *l, random_source s) {
  for (size_t i = 0; i < l->n; i++) l->count[i] = mxi_random_count(&s, &v->r, l->p[i].row, l->p[i].col);
  for (int g = 0; g < MXI_RANDOM_COUNT; g++) {
    const int slow = g == MXI_RANDOM_LFSR16 || g == MXI_RANDOM_XORSHIFT_STEPS, streams = s.count >= MXI_COUNT_IN_ROW,
              small = slow ? SEEDS_OF_SLOW : SMALL_SEEDS, keyed = mxi_random_is_keyed(g);
    if (streams && !keyed) continue;
    s.generator = (uint8_t)g;
    for (int join = keyed ? MXI_JOIN_KEY : MXI_JOIN_PLUS; join <= (keyed ? MXI_JOIN_KEY : MXI_JOIN_XOR); join++)
      for (int i = 0; i < small + (g == MXI_RANDOM_LFSR16 ? 1 : HABITS); i++) {
        s.join = (uint8_t)join;
        s.seed = i < small ? (uint32_t)i : habits[i - small];
        if (join == MXI_JOIN_XOR && !s.seed) continue;
        const uint64_t left = left_of(l, &s);
        if (left && settle(f, v, l, s, left)) return 1;
      }
  }
  return 0;
}

int mxi_find_random(mx_fault *f, double *bits, view *v) {
  static const struct {
    uint8_t count, halved, tile;
  } counts[] = {{MXI_COUNT_INDEX, 0, 0},   {MXI_COUNT_COLUMN, 0, 0}, {MXI_COUNT_INDEX, 1, 0},  {MXI_COUNT_INDEX, 2, 0},
                {MXI_COUNT_BLOCK, 0, 0},   {MXI_COUNT_LANE, 0, 0},   {MXI_COUNT_ROW, 0, 0},    {MXI_COUNT_INDEX, 3, 0},
                {MXI_COUNT_INDEX, 4, 0},   {MXI_COUNT_INDEX, 5, 0},  {MXI_COUNT_COLUMN, 1, 0}, {MXI_COUNT_COLUMN, 2, 0},
                {MXI_COUNT_TILE, 0, 4},    {MXI_COUNT_TILE, 0, 5},   {MXI_COUNT_TILE, 0, 3},   {MXI_COUNT_TILE, 0, 2},
                {MXI_COUNT_TILE, 0, 6},    {MXI_COUNT_TILE, 0, 7},   {MXI_COUNT_PADDED, 0, 0}, {MXI_COUNT_IN_ROW, 0, 0},
                {MXI_COUNT_IN_BLOCK, 0, 0}};
  const fault_run *r = &v->r;
  int found = 0;
  if (v->n_first || !v->e->random_looks) return 0;
  look *l = noted(malloc(sizeof *l), v->e->until.lack);
  if (l && read_probes(l, v)) {
    v->e->random_looks--;
    for (size_t k = 0; k < sizeof counts / sizeof *counts && !found && !effort_over(v->e); k++) {
      if (counts[k].count == MXI_COUNT_TILE && r->rows >> counts[k].tile == 0) continue;
      if (counts[k].count == MXI_COUNT_PADDED && r->cols % r->block_cols == 0) continue;
      effort_spend(v->e, LOOK_COSTS / 8);
      found = try_count(f, v, l, (random_source){.count = counts[k].count, .halved = counts[k].halved, .tile = counts[k].tile});
    }
    *bits = BITS_OF_A_SOURCE;
  }
  free(l);
  return found;
}

int mxi_random_of_bits(mx_fault *out, const mx_fault *f, int k) {
  static const uint8_t usual[] = {32, 24, 16, 15, 8};
  random_source s = mxi_random_unpack(f);
  *out = *f;
  if (k >= (int)sizeof usual || s.part == MXI_PART_FOLDED || s.part == MXI_PART_SPLIT) return 0;
  s.bits = usual[k];
  mxi_random_pack(out, &s);
  return 1;
}
