/* Makes the random numbers of kernels that round by chance, and rounds by them. */
#include "verify/fault/random.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/elements.h"

static const struct {
  const char *name;
  int keyed;
} generators[MXI_RANDOM_COUNT] = {
#define X(id, name, keyed) {name, keyed},
    MXI_GENERATORS(X)
#undef X
};
static const char *const counts[MXI_COUNTS] = {"index", "padded", "column", "row", "block", "lane", "tile", "inrow", "inblock"};

enum { MOST_HALVED = 7, MOST_TILE = 15, WORD = 32, LEAST_SHIFT = 4, MOST_SHIFT = LEAST_SHIFT + 14, HEX_DIGITS = 8 };

int mxi_random_is_keyed(int generator) { return generators[generator].keyed; }

/* The factors that hashes of integers have: of xxHash and of Knuth's golden ratio, of Murmur's ends, of Wellons's searches, of PCG and LCGs, of grids. */
static const uint32_t factors[MXI_HASH_FACTORS] = {
    1,          0x9E3779B1, 0x9E3779B9, 0x85EBCA6B, 0x85EBCA77, 0xC2B2AE35, 0xC2B2AE3D, 0x27D4EB2D, 0x27D4EB2F, 0x2C1B3C6D, 0x297A2D39,
    0x7FEB352D, 0x846CA68B, 0x045D9F3B, 0x165667B1, 0xCC9E2D51, 0x1B873593, 0x5BD1E995, 0x2C9277B5, 0x108EF2D9, 0x0019660D, 0x41C64E6D,
    0x0466F45D, 0x0127409F, 0x04F9FFB7, 0x01000193, 0xED5AD4BB, 0xAC4C1B51, 0x31848BAB, 0xB5297A4D, 0x68E31DA5, 0x1B56C4E9};
uint32_t mxi_hash_factor(int k) { return k < MXI_HASH_FACTORS ? factors[k] : 0; }

/* ---- as the argument of a fault: of the seed's number, which has 53 bits, those above it hold steps of a hash */

enum { STEP_BITS = 9, STEPS_BESIDE_SEED = 2 };

void mxi_random_pack(mx_fault *f, const random_source *s) {
  uint32_t step[MXI_HASH_STEPS];
  for (int k = 0; k < MXI_HASH_STEPS; k++) step[k] = (uint32_t)(s->factor[k] | (s->shift[k] ? s->shift[k] - LEAST_SHIFT + 1 : 0) << 5);
  f->number = (double)(s->seed | (uint64_t)(step[0] | step[1] << STEP_BITS) << WORD);
  const int where = s->count == MXI_COUNT_TILE ? MXI_COUNTS + s->tile : s->count;
  f->format = (int)(s->generator | s->join << 5 | where << 7 | s->halved << 12 | s->part << 15 | (s->bits - 1) << 17 | (int)(step[2] << 22));
}

random_source mxi_random_unpack(const mx_fault *f) {
  const unsigned n = (unsigned)f->format;
  const uint64_t seed = (uint64_t)f->number, steps = seed >> WORD | (uint64_t)(n >> 22) << STEPS_BESIDE_SEED * STEP_BITS;
  const unsigned where = n >> 7 & 31;
  random_source s = {.generator = n & 31,
                     .join = n >> 5 & 3,
                     .halved = n >> 12 & 7,
                     .part = n >> 15 & 3,
                     .bits = (uint8_t)((n >> 17 & 31) + 1),
                     .seed = (uint32_t)seed};
  s.count = (uint8_t)(where < MXI_COUNTS ? where : MXI_COUNT_TILE);
  s.tile = (uint8_t)(where < MXI_COUNTS ? 0 : where - MXI_COUNTS);
  for (int k = 0; k < MXI_HASH_STEPS && s.generator == MXI_RANDOM_HASH; k++) {
    const unsigned step = (unsigned)(steps >> k * STEP_BITS) & ((1u << STEP_BITS) - 1);
    s.factor[k] = step & 31;
    s.shift[k] = (uint8_t)(step >> 5 ? (step >> 5) + LEAST_SHIFT - 1 : 0);
  }
  return s;
}

static int power(unsigned long n) {
  int k = 0;
  while (n > 1 && n % 2 == 0) n /= 2, k++;
  return n == 1 ? k : -1;
}

/* Reads a number of digits that is at most `most`. */
static int number(unsigned long *out, const char **at, unsigned long most) {
  char *end;
  if (**at < '0' || **at > '9') return 0;
  *out = strtoul(*at, &end, 10);
  const int ok = end - *at <= 10 && *out <= most;
  *at = end;
  return ok;
}

/* Reads the steps of a hash, "-9e3779b1-15-85ebca77-13": eight hexadecimal digits are a factor, a short number is a shift. */
static int hash_steps(random_source *s, const char **at) {
  int k = -1;
  while (**at == '-') {
    const char *const from = ++*at;
    const size_t length = strcspn(from, "- ");
    unsigned long n = 0;
    uint8_t factor = 0;
    if (length == HEX_DIGITS && strspn(from, "0123456789abcdef") >= length) {
      const uint32_t by = (uint32_t)strtoul(from, NULL, 16);
      for (int i = 1; i < MXI_HASH_FACTORS; i++)
        if (factors[i] == by) factor = (uint8_t)i;
      if (!factor) return 0;
      *at += length;
    } else if (!number(&n, at, MOST_SHIFT) || n < LEAST_SHIFT || *at != from + length) {
      return 0;
    }
    if (k < 0 || factor || s->shift[k]) k++; /* a factor begins a step, and so does a second shift */
    if (k == MXI_HASH_STEPS) return 0;
    factor ? (s->factor[k] = factor) : (s->shift[k] = (uint8_t)n);
  }
  return k >= 0;
}

static void print_steps(char out[40], const random_source *s) {
  size_t n = 0;
  *out = 0;
  for (int k = 0; s->generator == MXI_RANDOM_HASH && k < MXI_HASH_STEPS; k++) {
    if (s->factor[k]) n += (size_t)snprintf(out + n, 40 - n, "-%08x", factors[s->factor[k]]);
    if (s->shift[k]) n += (size_t)snprintf(out + n, 40 - n, "-%u", s->shift[k]);
  }
}

int mxi_random_read(mx_fault *f, const char *text) {
  random_source s = {.generator = MXI_RANDOM_COUNT};
  unsigned long n;
  const char *at = text + strcspn(text, " -");
  for (int k = 0; k < MXI_RANDOM_COUNT; k++)
    if (strlen(generators[k].name) == (size_t)(at - text) && !strncmp(generators[k].name, text, (size_t)(at - text))) s.generator = (uint8_t)k;
  if (s.generator == MXI_RANDOM_HASH && !hash_steps(&s, &at)) return 0;
  if (s.generator == MXI_RANDOM_COUNT || *at++ != ' ' || !number(&n, &at, UINT32_MAX)) return 0;
  s.seed = (uint32_t)n;
  s.join = *at == ':' ? MXI_JOIN_KEY : *at == '+' ? MXI_JOIN_PLUS : MXI_JOIN_XOR;
  if (!strchr(":+^", *at) || !*at++ || (s.join == MXI_JOIN_KEY) != mxi_random_is_keyed(s.generator)) return 0;
  s.count = MXI_COUNTS;
  for (int k = 0; k < MXI_COUNTS; k++)
    if (!strncmp(counts[k], at, strlen(counts[k]))) s.count = (uint8_t)k;
  if (s.count == MXI_COUNTS || (s.count >= MXI_COUNT_IN_ROW && s.join != MXI_JOIN_KEY)) return 0;
  at += strlen(counts[s.count]);
  if (s.count == MXI_COUNT_TILE) {
    if (!number(&n, &at, 1ul << MOST_TILE) || power(n) < 0) return 0;
    s.tile = (uint8_t)power(n);
  }
  if (*at == '/') {
    at++;
    if (!number(&n, &at, 1ul << MOST_HALVED) || power(n) < 1) return 0;
    s.halved = (uint8_t)power(n);
  }
  if (*at++ != ' ') return 0;
  s.bits = WORD - 1;
  if (!strcmp(at, "folded")) {
    s.part = MXI_PART_FOLDED;
  } else {
    if (!strncmp(at, "low", 3)) s.part = MXI_PART_LOW, at += 3;
    if (!strncmp(at, "split", 5)) s.part = MXI_PART_SPLIT, at += 5;
    if (!number(&n, &at, WORD) || !n || *at || (s.part == MXI_PART_SPLIT && (n == WORD || power(n) < 0))) return 0;
    s.bits = (uint8_t)n;
  }
  mxi_random_pack(f, &s);
  return 1;
}

void mxi_random_print(char *out, size_t size, const mx_fault *f) {
  const random_source s = mxi_random_unpack(f);
  char tile[12] = "", over[16] = "", part[12] = "folded", steps[40];
  print_steps(steps, &s);
  if (s.count == MXI_COUNT_TILE) snprintf(tile, sizeof tile, "%u", 1u << s.tile);
  if (s.halved) snprintf(over, sizeof over, "/%u", 1u << s.halved);
  if (s.part != MXI_PART_FOLDED)
    snprintf(part, sizeof part, "%s%u", s.part == MXI_PART_LOW ? "low" : s.part == MXI_PART_SPLIT ? "split" : "", s.bits);
  snprintf(out, size, "%s%s %u%c%s%s%s %s", generators[s.generator].name, steps, s.seed, ":+^"[s.join], counts[s.count], tile, over, part);
}

/* ---- the word of an element */

random_count mxi_random_count(const random_source *s, const fault_run *r, size_t row, size_t col) {
  size_t n = row * r->cols + col;
  if (s->count == MXI_COUNT_PADDED) n = row * r->across * r->block_cols + col;
  if (s->count == MXI_COUNT_COLUMN) n = col;
  if (s->count == MXI_COUNT_ROW) n = row;
  if (s->count == MXI_COUNT_BLOCK) n = row / r->block_rows * r->across + col / r->block_cols;
  if (s->count == MXI_COUNT_LANE) n = row % r->block_rows * r->block_cols + col % r->block_cols;
  if (s->count == MXI_COUNT_TILE) n = row % ((size_t)1 << s->tile) * r->cols + col;
  uint32_t stream = 0;
  if (s->count == MXI_COUNT_IN_ROW) n = col, stream = (uint32_t)row;
  if (s->count == MXI_COUNT_IN_BLOCK) {
    n = row % r->block_rows * r->block_cols + col % r->block_cols;
    stream = (uint32_t)(row / r->block_rows * r->across + col / r->block_cols);
  }
  return (random_count){(uint32_t)(n >> s->halved), stream};
}

/* Word `word` of Philox4x32-10, with the seed for its key, of a counter whose words are first, 0, third and 0. */
static uint32_t philox(uint32_t seed, uint32_t first, uint32_t third, uint32_t word) {
  uint32_t c[4] = {first, 0, third}, key = seed, key1 = 0;
  for (int i = 0; i < 10; i++) {
    const uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
    c[0] = (uint32_t)(b >> 32) ^ c[1] ^ key, c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c[3] ^ key1, c[3] = (uint32_t)a;
    key += 0x9E3779B9u, key1 += 0xBB67AE85u;
  }
  return c[word];
}

/* x of s after n steps of s -> a s + c, by squaring. */
static uint32_t affine(uint32_t s, uint64_t n, uint32_t a, uint32_t c) {
  uint32_t by = 1, plus = 0;
  for (; n; n >>= 1) {
    if (n & 1) plus = a * plus + c, by *= a;
    c += a * c;
    a *= a;
  }
  return by * s + plus;
}

static uint32_t xorshift(uint32_t s) {
  s ^= s << 13;
  s ^= s >> 17;
  return s ^ s << 5;
}

/* What 2^i steps of xorshift make of each bit: a step is linear. */
static uint32_t jumps[WORD][WORD];
static void make_jumps(void) {
  for (int i = 0; i < WORD; i++)
    for (int bit = 0; bit < WORD; bit++) {
      const uint32_t half = i ? jumps[i - 1][bit] : xorshift(UINT32_C(1) << bit);
      jumps[i][bit] = i ? 0 : half;
      for (int k = 0; i && k < WORD; k++) jumps[i][bit] ^= half >> k & 1 ? jumps[i - 1][k] : 0;
    }
}

static uint32_t xorshifted(uint32_t state, uint64_t n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_jumps);
  for (int i = 0; i < WORD && n >> i; i++) {
    if (!(n >> i & 1)) continue;
    uint32_t next = 0;
    for (int bit = 0; bit < WORD; bit++) next ^= state >> bit & 1 ? jumps[i][bit] : 0;
    state = next;
  }
  return state;
}

/* The state of a shift register of 16 bits with taps at 0, 2, 3 and 5, n steps on: a step is linear, so powers of it are applied bit by bit. */
static uint32_t shifted_register(uint32_t state, uint64_t n) {
  uint16_t step[16], s = (uint16_t)state;
  for (unsigned i = 0; i < 16; i++) {
    const unsigned one = 1u << i;
    step[i] = (uint16_t)(one >> 1 | ((one ^ one >> 2 ^ one >> 3 ^ one >> 5) & 1) << 15);
  }
  for (n %= 65535; n; n >>= 1) { /* all states but 0 come round after as many steps */
    uint16_t next = 0, twice[16];
    for (unsigned i = 0; n & 1 && i < 16; i++) next ^= s >> i & 1 ? step[i] : 0;
    if (n & 1) s = next;
    for (unsigned i = 0; i < 16; i++) {
      twice[i] = 0;
      for (unsigned k = 0; k < 16; k++) twice[i] ^= step[i] >> k & 1 ? step[k] : 0;
    }
    memcpy(step, twice, sizeof step);
  }
  return s;
}

/* n through shifts and products: x ^= x >> a, x *= m, x ^= x >> b, x *= p, x ^= x >> c. */
static uint32_t mixed(uint32_t x, int a, uint32_t m, int b, uint32_t p, int c) {
  x = (x ^ x >> a) * m;
  x = (x ^ x >> b) * p;
  return x ^ x >> c;
}

static uint32_t splitmix(uint64_t z) {
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return (uint32_t)((z ^ z >> 31) >> 32);
}

/* The entropy pool of NumPy's SeedSequence of one word, and 256 bits from it. */
static uint32_t stirred(uint32_t x, uint32_t *by, uint32_t mult) {
  x ^= *by;
  *by *= mult;
  x *= *by;
  return x ^ x >> 16;
}

static void seed_sequence(uint64_t out[4], uint32_t seed) {
  uint32_t pool[4], by = 0x43B0D7E5;
  for (int i = 0; i < 4; i++) pool[i] = stirred(i ? 0 : seed, &by, 0x931E8875);
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 4; k++) {
      if (i == k) continue;
      const uint32_t mixed_in = 0xCA01F9DDu * pool[k] - 0x4973F715u * stirred(pool[i], &by, 0x931E8875);
      pool[k] = mixed_in ^ mixed_in >> 16;
    }
  by = 0x8B51F9DD;
  for (int i = 0; i < 4; i++) {
    const uint32_t low = stirred(pool[2 * i % 4], &by, 0x58F38DED);
    out[i] = low | (uint64_t)stirred(pool[2 * i % 4 + 1], &by, 0x58F38DED) << WORD;
  }
}

/* Output k of NumPy's PCG64 (XSL-RR 128/64) behind a SeedSequence. */
static uint64_t pcg64(uint32_t seed, uint64_t k) {
  typedef unsigned __int128 wide;
  const wide step = (wide)UINT64_C(0x2360ED051FC65DA4) << 64 | UINT64_C(0x4385DF649FCCF645);
  uint64_t from[4];
  seed_sequence(from, seed);
  const wide add = ((wide)from[2] << 64 | from[3]) << 1 | 1;
  wide a = step, c = add, by = 1, plus = 0;
  wide state = (add + ((wide)from[0] << 64 | from[1])) * step + add;
  for (uint64_t n = k + 1; n; n >>= 1) { /* so many steps, by squaring */
    if (n & 1) plus = a * plus + c, by *= a;
    c += a * c;
    a *= a;
  }
  state = by * state + plus;
  const uint64_t folded = (uint64_t)(state >> 64) ^ (uint64_t)state;
  const unsigned turn = (unsigned)(state >> 122);
  return folded >> turn | folded << (64 - turn) % 64;
}

static uint32_t wang(uint32_t x) {
  x = (x ^ 61 ^ x >> 16) * 9;
  x = (x ^ x >> 4) * 0x27D4EB2Du;
  return x ^ x >> 15;
}

static uint32_t pcg(uint32_t n) {
  const uint32_t s = n * 747796405u + 2891336453u, w = (s >> ((s >> 28) + 4) ^ s) * 277803737u;
  return w >> 22 ^ w;
}

static uint32_t hash(const random_source *s, uint32_t x) {
  for (int k = 0; k < MXI_HASH_STEPS; k++) {
    x *= factors[s->factor[k]];
    x ^= s->shift[k] ? x >> s->shift[k] : 0;
  }
  return x;
}

uint32_t mxi_random_word(const random_source *s, random_count at) {
  const uint32_t count = at.k, seed = s->seed + at.stream;
  const uint32_t n = s->join == MXI_JOIN_XOR ? s->seed ^ count : s->seed + count;
  switch (s->generator) {
  case MXI_RANDOM_PHILOX:
    return philox(seed, count / 4, 0, count % 4);
  case MXI_RANDOM_PHILOX1:
    return philox(seed, count, 0, 0);
  case MXI_RANDOM_CURAND:
    return philox(s->seed, s->count >= MXI_COUNT_IN_ROW ? count : 0, s->count >= MXI_COUNT_IN_ROW ? at.stream : count, 0);
  case MXI_RANDOM_CURAND4:
    return philox(s->seed, s->count >= MXI_COUNT_IN_ROW ? count / 4 : 0, s->count >= MXI_COUNT_IN_ROW ? at.stream : count / 4, count % 4);
  case MXI_RANDOM_LFSR16:
    return shifted_register(seed, (uint64_t)count + 1) << 16;
  case MXI_RANDOM_LCG_STEPS:
    return affine(seed, (uint64_t)count + 1, 1664525, 1013904223);
  case MXI_RANDOM_XORSHIFT_STEPS:
    return xorshifted(seed, (uint64_t)count + 1);
  case MXI_RANDOM_SPLITMIX:
    return splitmix(seed + ((uint64_t)count + 1) * UINT64_C(0x9E3779B97F4A7C15));
  case MXI_RANDOM_NUMPY:
    return (uint32_t)(pcg64(seed, count) >> WORD);
  case MXI_RANDOM_NUMPY32:
    return (uint32_t)(pcg64(seed, count / 2) >> (count % 2 ? WORD : 0));
  case MXI_RANDOM_PCG:
    return pcg(n);
  case MXI_RANDOM_FMIX:
    return mixed(n, 16, 0x85EBCA6B, 13, 0xC2B2AE35, 16);
  case MXI_RANDOM_GOLDEN:
    return mixed(n * 0x9E3779B1u, 15, 0x85EBCA6B, 13, 0xC2B2AE35, 16);
  case MXI_RANDOM_LOWBIAS:
    return mixed(n, 16, 0x7FEB352D, 15, 0x846CA68B, 16);
  case MXI_RANDOM_WANG:
    return wang(n);
  case MXI_RANDOM_XORSHIFT:
    return xorshift(n);
  case MXI_RANDOM_XORSHIFT2:
    return xorshift(xorshift(n));
  case MXI_RANDOM_XORSHIFT3:
    return xorshift(xorshift(xorshift(n)));
  case MXI_RANDOM_LCG:
    return n * 1664525u + 1013904223u;
  case MXI_RANDOM_WEYL:
    return n * 0x9E3779B9u;
  case MXI_RANDOM_MIX64: /* the 64 bits of the sum, mixed */
    return splitmix(n + UINT64_C(0x9E3779B97F4A7C15));
  default:
    return hash(s, n);
  }
}

double mxi_random_unit(const random_source *s, uint32_t word, size_t col) {
  if (s->part == MXI_PART_FOLDED) return ldexp(word >> 31 ? ~word : word, 1 - WORD);
  if (s->part == MXI_PART_SPLIT) word >>= col % (WORD / s->bits) * s->bits;
  const uint32_t part = s->part == MXI_PART_TOP ? word >> (WORD - s->bits) : s->bits < WORD ? word & ((UINT32_C(1) << s->bits) - 1) : word;
  return ldexp(part, -(int)s->bits);
}

/* ---- rounding by it */

int mxi_fault_is_random(int op) {
  switch (op) {
  case MX_FAULT_ELEMENT_RANDOM_BELOW:
  case MX_FAULT_ELEMENT_RANDOM_ABOVE:
  case MX_FAULT_ELEMENT_RANDOM_CARRY:
  case MX_FAULT_ELEMENT_RANDOM_HALF:
  case MX_FAULT_ELEMENT_RANDOM_FLOOR:
  case MX_FAULT_ELEMENT_RANDOM_NEAREST:
  case MX_FAULT_ELEMENT_RANDOM_SIGNED:
  case MX_FAULT_ELEMENT_RANDOM_OWN:
  case MX_FAULT_ELEMENT_RANDOM_CENTRED:
  case MX_FAULT_ELEMENT_RANDOM_CENTRED_LEAST:
    return 1;
  default:
    return 0;
  }
}

random_place mxi_random_place(const mx_format *f, double y) {
  static const mx_encoding down = {.round = MX_ROUND_RTZ};
  const double a = fabs(y);
  random_place p = {.low = f->max_code, .is_largest = a >= mx_format_max(f), .negative = signbit(y) != 0, .under = -INFINITY};
  if (p.is_largest) return p;
  p.low = (uint32_t)mx_encode(f, a, &down, 0);
  const double v0 = mx_decode(f, p.low), v1 = mx_decode(f, p.low + 1);
  p.d = (a - v0) / (v1 - v0);
  p.second = p.low + 2 > f->max_code ? INFINITY : 1 + (mx_decode(f, p.low + 2) - v1) / (v1 - v0) / 2;
  p.own = a == 0 ? 0 : f->kind == MX_KIND_FLOAT ? ldexp(1, ilogb(a) - (int)f->man_bits) / (v1 - v0) : 1;
  return p;
}

random_place mxi_random_place_centred(const mx_format *f, double y) {
  random_place p = mxi_random_place(f, y);
  if (p.is_largest) return p;
  const double v0 = mx_decode(f, p.low), step = mx_decode(f, p.low + 1) - v0;
  if (p.low) p.under = (mx_decode(f, p.low - 1) - v0) / step / 2;
  p.least = (mx_decode(f, 1) - mx_decode(f, 0)) / step;
  return p;
}

/* To the nearest, ties to even. Sums are compared without being rounded: numbers of 32 bits are taken from 1/2, 3/2 and 2, which is exact. */
static int to_nearest(const random_place *p, double u) {
  const int even = p->low % 2 == 0;
  if (p->d > p->second - u || (p->d == p->second - u && even)) return 2;
  return p->d > 0.5 - u || (p->d == 0.5 - u && !even);
}

/* The nearest with a number from -1/2 to 1/2 of a share of the step added, which is exact. */
static int centred(const random_place *p, double share, double u) {
  const double add = (u - 0.5) * share;
  const int odd = p->low % 2;
  if (p->d > 0.5 - add || (p->d == 0.5 - add && odd)) return 1;
  return -(p->d < p->under - add || (p->d == p->under - add && odd));
}

int mxi_random_steps(const random_place *p, int op, double u) {
  if (p->is_largest) return op == MX_FAULT_ELEMENT_RANDOM_SIGNED && u >= 0.5 ? -1 : 0;
  switch (op) {
  case MX_FAULT_ELEMENT_RANDOM_BELOW:
    return u < p->d;
  case MX_FAULT_ELEMENT_RANDOM_ABOVE:
    return u >= p->d;
  case MX_FAULT_ELEMENT_RANDOM_CARRY:
    return p->d >= 1 - u;
  case MX_FAULT_ELEMENT_RANDOM_HALF:
    return p->d >= 1 - u / 2;
  case MX_FAULT_ELEMENT_RANDOM_FLOOR:
    return p->negative ? u < p->d : p->d >= 1 - u;
  case MX_FAULT_ELEMENT_RANDOM_NEAREST:
    return to_nearest(p, u);
  case MX_FAULT_ELEMENT_RANDOM_SIGNED:
    return u < 0.5 ? p->d >= 1 - u : -(p->d < 1 - u && p->low > 0);
  case MX_FAULT_ELEMENT_RANDOM_CENTRED:
    return centred(p, 1, u);
  case MX_FAULT_ELEMENT_RANDOM_CENTRED_LEAST:
    return centred(p, p->least, u);
  default: /* random of own step */
    return p->d >= 1 - u * p->own;
  }
}

/* Rounded down below the first border, one up from it on, two up from the second one. */
static random_interval between(double first, double second, int steps) {
  if (steps < 0 || steps > 2) return (random_interval){1, 0};
  return (random_interval){steps == 0 ? 0 : steps == 1 ? first : second, steps == 0 ? first : steps == 1 ? second : 1};
}

random_interval mxi_random_interval(const random_place *p, int op, int steps) {
  const random_interval any = {0, 1}, none = {1, 0};
  const double share = op == MX_FAULT_ELEMENT_RANDOM_CENTRED ? 1 : p->least, d = p->d;
  random_interval i;
  if (p->is_largest) return steps == 0 ? any : op == MX_FAULT_ELEMENT_RANDOM_SIGNED && steps == -1 ? (random_interval){0.5, 1} : none;
  switch (op) {
  case MX_FAULT_ELEMENT_RANDOM_BELOW:
    i = (random_interval){steps ? 0 : d, steps ? d : 1};
    return steps == 0 || steps == 1 ? i : none;
  case MX_FAULT_ELEMENT_RANDOM_ABOVE:
    return between(d, INFINITY, steps);
  case MX_FAULT_ELEMENT_RANDOM_CARRY:
    return between(1 - d, INFINITY, steps);
  case MX_FAULT_ELEMENT_RANDOM_HALF:
    return between(2 - 2 * d, INFINITY, steps);
  case MX_FAULT_ELEMENT_RANDOM_FLOOR:
    return mxi_random_interval(p, p->negative ? MX_FAULT_ELEMENT_RANDOM_BELOW : MX_FAULT_ELEMENT_RANDOM_CARRY, steps);
  case MX_FAULT_ELEMENT_RANDOM_NEAREST:
    return between(0.5 - d, p->second - d, steps);
  case MX_FAULT_ELEMENT_RANDOM_SIGNED:
    return steps == 1 ? (random_interval){1 - d, 0.5 - 0x1p-33} : steps == -1 && p->low ? (random_interval){0.5, 1 - d} : steps ? none : any;
  case MX_FAULT_ELEMENT_RANDOM_CENTRED:
  case MX_FAULT_ELEMENT_RANDOM_CENTRED_LEAST:
    return between(0.5 + (p->under - d) / share, 0.5 + (0.5 - d) / share, steps + 1);
  default:
    return between(p->own > 0 ? (1 - d) / p->own : INFINITY, INFINITY, steps);
  }
}

uint32_t mxi_random_code(const fault_run *r, const mx_format *format, const mx_fault *f, double y, size_t row, size_t col) {
  const random_source s = mxi_random_unpack(f);
  const int is_centred = f->op == MX_FAULT_ELEMENT_RANDOM_CENTRED || f->op == MX_FAULT_ELEMENT_RANDOM_CENTRED_LEAST;
  const random_place p = is_centred ? mxi_random_place_centred(format, y) : mxi_random_place(format, y);
  const double u = mxi_random_unit(&s, mxi_random_word(&s, mxi_random_count(&s, r, row, col)), col);
  return mxi_fault_with_sign(format, p.low + (uint32_t)mxi_random_steps(&p, f->op, u), (unsigned)p.negative);
}
