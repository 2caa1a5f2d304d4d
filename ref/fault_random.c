/* Rounds elements by random numbers that are none of SPEC 6, as SPEC 9 has them: the words that begin with "random". */
#include <stdlib.h>
#include <string.h>

#include "fault_run.h"

static const char *const keyed[] = {"philox", "philox1", "curand", "curand4", "lfsr16", "lcg", "xorshifts", "splitmix", "numpy", "numpy32"};
static const char *const joined[] = {"pcg",       "fmix",      "golden", "lowbias", "wang",  "xorshift",
                                     "xorshift2", "xorshift3", "lcg1",   "weyl",    "mix64", "hash"};
static const char *const counted[] = {"index", "padded", "column", "row", "block", "lane", "tile", "inrow", "inblock"};

#define LENGTH(table) (sizeof table / sizeof *table)

/* The entry with which the text begins, up to a blank, a digit behind the name, or another mark; *at is put behind it. */
static const char *entry(const char *const *table, size_t n, const char **at, size_t length) {
  for (size_t k = 0; k < n; k++)
    if (strlen(table[k]) == length && !strncmp(table[k], *at, length)) {
      *at += length;
      return table[k];
    }
  return NULL;
}

static int digits(unsigned long long *out, const char **at) {
  char *end;
  const size_t n = strspn(*at, "0123456789");
  *out = strtoull(*at, &end, 10);
  *at = end;
  return n > 0 && n <= 10;
}

static int is_power(unsigned long long n, unsigned long long least, unsigned long long most) {
  return n >= least && n <= most && !(n & (n - 1));
}

/* Factors that a hash may have. */
static const char *const factors[] = {"9e3779b1", "9e3779b9", "85ebca6b", "85ebca77", "c2b2ae35", "c2b2ae3d", "27d4eb2d", "27d4eb2f",
                                      "2c1b3c6d", "297a2d39", "7feb352d", "846ca68b", "045d9f3b", "165667b1", "cc9e2d51", "1b873593",
                                      "5bd1e995", "2c9277b5", "108ef2d9", "0019660d", "41c64e6d", "0466f45d", "0127409f", "04f9ffb7",
                                      "01000193", "ed5ad4bb", "ac4c1b51", "31848bab", "b5297a4d", "68e31da5", "1b56c4e9"};

/* "-9e3779b1-15-85ebca77-13": in each of three rounds a factor, a shift, or a factor and a shift. */
static int read_steps(ref_random_source *s, const char **at) {
  int rounds = 0;
  for (s->n_steps = 0; **at == '-'; s->n_steps++) {
    ++*at;
    const char *const factor = entry(factors, LENGTH(factors), at, 8);
    unsigned long long shift = 0;
    if (!factor && (!digits(&shift, at) || shift < 4 || shift > 18)) return 0;
    if (**at != '-' && **at != ' ') return 0;
    if (factor || s->n_steps == 0 || s->step[s->n_steps - 1].is_shift) rounds++;
    if (rounds > 3) return 0;
    s->step[s->n_steps].is_shift = !factor;
    s->step[s->n_steps].by = factor ? (uint32_t)strtoul(factor, NULL, 16) : (uint32_t)shift;
  }
  return s->n_steps > 0;
}

int ref_read_random(ref_random_source *s, const char *at) {
  unsigned long long n;
  const size_t name = strcspn(at, " -");
  *s = (ref_random_source){.over = 1};
  const char *const key = entry(keyed, LENGTH(keyed), &at, name);
  s->generator = key ? key : entry(joined, LENGTH(joined), &at, name);
  if (s->generator && !strcmp(s->generator, "hash") && !read_steps(s, &at)) return 0;
  if (!s->generator || *at++ != ' ' || !digits(&n, &at) || n > UINT32_MAX) return 0;
  s->seed = (uint32_t)n;
  s->join = *at;
  if (!*at || (key ? *at != ':' : *at != '+' && *at != '^')) return 0;
  at++;
  s->count = entry(counted, LENGTH(counted), &at, strspn(at, "abcdefghijklmnopqrstuvwxyz"));
  if (!s->count || (!strncmp(s->count, "in", 2) && strcmp(s->count, "index") != 0 && !key)) return 0;
  if (!strcmp(s->count, "tile")) {
    if (!digits(&s->tile, &at) || !is_power(s->tile, 1, 32768)) return 0;
  }
  if (*at == '/' && (at++, !digits(&s->over, &at) || !is_power(s->over, 2, 128))) return 0;
  if (*at++ != ' ') return 0;
  if (!strcmp(at, "folded")) return s->folded = 1;
  if (!strncmp(at, "low", 3)) s->low = 1, at += 3;
  if (!strncmp(at, "split", 5)) s->split = 1, at += 5;
  if (!digits(&n, &at) || n < 1 || n > 32 || *at || (s->split && !is_power(n, 1, 16))) return 0;
  return s->bits = (int)n, 1;
}

/* ---- words */

static uint32_t count_of(const ref_random_source *s, const ref_run *r, size_t row, size_t col) {
  const char *by = s->count;
  uint64_t n = (uint64_t)row * r->cols + col;
  if (!strcmp(by, "padded")) n = (uint64_t)row * (r->across * r->width) + col;
  if (!strcmp(by, "column")) n = col;
  if (!strcmp(by, "row")) n = row;
  if (!strcmp(by, "block")) n = (uint64_t)(row / r->height) * r->across + col / r->width;
  if (!strcmp(by, "inrow")) n = col;
  if (!strcmp(by, "lane") || !strcmp(by, "inblock")) n = (uint64_t)(row % r->height) * r->width + col % r->width;
  if (!strcmp(by, "tile")) n = (uint64_t)(row % s->tile) * r->cols + col;
  return (uint32_t)(n / s->over);
}

/* Rows or blocks that have numbers of their own, else 0. */
static uint32_t stream_of(const ref_random_source *s, const ref_run *r, size_t row, size_t col) {
  if (!strcmp(s->count, "inrow")) return (uint32_t)row;
  return strcmp(s->count, "inblock") == 0 ? (uint32_t)(row / r->height * r->across + col / r->width) : 0;
}

/* A linear congruential generator n steps on: of s -> a s + c half of the steps twice, and one more if they are odd. */
static void steps_of(uint32_t *a, uint32_t *c, uint64_t n) {
  uint32_t half_a, half_c;
  if (n == 0) {
    *a = 1, *c = 0;
    return;
  }
  steps_of(&half_a, &half_c, n / 2);
  *a = half_a * half_a, *c = half_a * half_c + half_c;
  if (n % 2) *c = 1664525u * *c + 1013904223u, *a *= 1664525u;
}

static uint32_t lfsr16(uint32_t seed, uint64_t steps) {
  uint32_t state = seed & 0xFFFF;
  for (steps %= 65535; steps; steps--) {
    const uint32_t in = state ^ state >> 2 ^ state >> 3 ^ state >> 5;
    state = state >> 1 | (in & 1) << 15;
  }
  return state;
}

static uint32_t xorshift(uint32_t x, int times) {
  for (; times; times--) {
    x = x ^ x << 13;
    x = x ^ x >> 17;
    x = x ^ x << 5;
  }
  return x;
}

/* So many steps one after the other, up to a few thousand; the rest as each bit alone would go and all of them together, since a step is linear. */
static uint32_t far_xorshift(uint32_t x, uint64_t steps) {
  enum { FEW = 4096 };
  if (steps <= FEW) {
    for (; steps; steps--) x = xorshift(x, 1);
    return x;
  }
  uint32_t half[32], out = 0;
  for (int bit = 0; bit < 32; bit++) half[bit] = far_xorshift(UINT32_C(1) << bit, steps / 2);
  for (int turn = 0; turn < 2; turn++, x = out) {
    out = 0;
    for (int bit = 0; bit < 32; bit++) out ^= x >> bit & 1 ? half[bit] : 0;
  }
  return steps % 2 ? xorshift(x, 1) : x;
}

static uint32_t murmur_end(uint32_t x, int first) {
  x = (x ^ x >> first) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

/* The upper half of what SplitMix64 makes of a state. */
static uint32_t mix64(uint64_t z) {
  z ^= z >> 30;
  z *= UINT64_C(13787848793156543929);
  z ^= z >> 27;
  z *= UINT64_C(10723151780598845931);
  return (uint32_t)((z ^ z >> 31) >> 32);
}

/* ---- NumPy's default_rng: 32 bits of seed make 256, which make state and increment of a linear congruential generator of 128 bits */

typedef unsigned __int128 wide;

static uint32_t hashed(uint32_t value, uint32_t *constant, uint32_t factor) {
  const uint32_t mixed = value ^ *constant;
  *constant = *constant * factor;
  const uint32_t product = mixed * *constant;
  return product ^ product / 65536;
}

static void numpy_seed(uint32_t words[8], uint32_t seed) {
  uint32_t pool[4] = {seed}, constant = 0x43B0D7E5;
  for (int i = 0; i < 4; i++) pool[i] = hashed(pool[i], &constant, 0x931E8875);
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      if (to != from) {
        uint32_t r = pool[to] * 0xCA01F9DDu;
        r -= hashed(pool[from], &constant, 0x931E8875) * 0x4973F715u;
        pool[to] = r ^ r / 65536;
      }
  constant = 0x8B51F9DD;
  for (int i = 0; i < 8; i++) words[i] = hashed(pool[i % 4], &constant, 0x58F38DED);
}

/* a and c of n steps s -> a s + c in one. */
static void wide_steps(wide *a, wide *c, wide increment, uint64_t n) {
  if (n == 0) {
    *a = 1, *c = 0;
    return;
  }
  wide half_a, half_c;
  wide_steps(&half_a, &half_c, increment, n / 2);
  *a = half_a * half_a, *c = half_a * half_c + half_c;
  if (n % 2 == 0) return;
  const wide multiplier = ((wide)UINT64_C(2549297995355413924) << 64) + UINT64_C(4865540595714422341);
  *c = multiplier * *c + increment, *a *= multiplier;
}

static uint64_t numpy_output(uint32_t seed, uint64_t k) {
  uint32_t w[8];
  wide a, c, part[2] = {0, 0};
  numpy_seed(w, seed);
  for (int i = 0; i < 2; i++) /* the upper 64 bits first, of them the lower 32 */
    for (int j = 0; j < 4; j++) part[i] += (wide)w[4 * i + j] << (j < 2 ? 64 + 32 * j : 32 * (j - 2));
  const wide increment = part[1] * 2 + 1;
  wide_steps(&a, &c, increment, k + 2); /* one is made before the first output, from the increment and the state together */
  const wide state = a * (increment + part[0]) + c;
  const uint64_t x = (uint64_t)(state >> 64) ^ (uint64_t)state;
  const int by = (int)(state >> 122);
  return by ? x >> by | x << (64 - by) : x;
}

static uint32_t word_of(const ref_random_source *s, uint32_t k, uint32_t stream) {
  static const uint64_t golden = UINT64_C(11400714819323198485);
  const char *g = s->generator;
  const uint32_t seed = s->seed + stream;
  const int streams = !strcmp(s->count, "inrow") || !strcmp(s->count, "inblock");
  const uint32_t n = s->join == '^' ? k ^ s->seed : k + s->seed;
  if (!strcmp(g, "philox")) return ref_random(seed, 0, k);
  if (!strcmp(g, "philox1")) return ref_random(seed, 0, (uint64_t)k * 4);
  if (!strcmp(g, "curand")) return streams ? ref_random(s->seed, stream, (uint64_t)k * 4) : ref_random(s->seed, k, 0);
  if (!strcmp(g, "curand4")) return streams ? ref_random(s->seed, stream, k) : ref_random(s->seed, k / 4, k % 4);
  if (!strcmp(g, "lfsr16")) return lfsr16(seed, (uint64_t)k + 1) << 16;
  if (!strcmp(g, "lcg")) {
    uint32_t a, c;
    steps_of(&a, &c, (uint64_t)k + 1);
    return a * seed + c;
  }
  if (!strcmp(g, "xorshifts")) return far_xorshift(seed, (uint64_t)k + 1);
  if (!strcmp(g, "splitmix")) return mix64(seed + golden * ((uint64_t)k + 1));
  if (!strcmp(g, "numpy")) return (uint32_t)(numpy_output(seed, k) / (UINT64_C(1) << 32));
  if (!strcmp(g, "numpy32")) return k % 2 ? (uint32_t)(numpy_output(seed, k / 2) / (UINT64_C(1) << 32)) : (uint32_t)numpy_output(seed, k / 2);
  if (!strcmp(g, "pcg")) {
    const uint32_t state = 747796405u * n + 2891336453u;
    const uint32_t word = 277803737u * (state ^ state >> (4 + (state >> 28)));
    return word ^ word >> 22;
  }
  if (!strcmp(g, "fmix")) return murmur_end(n, 16);
  if (!strcmp(g, "golden")) return murmur_end(0x9E3779B1u * n, 15);
  if (!strcmp(g, "lowbias")) {
    uint32_t x = 0x7FEB352Du * (n ^ n >> 16);
    x = 0x846CA68Bu * (x ^ x >> 15);
    return x ^ x >> 16;
  }
  if (!strcmp(g, "wang")) {
    uint32_t x = 9 * ((n ^ 61) ^ n >> 16);
    x = 0x27D4EB2Du * (x ^ x >> 4);
    return x ^ x >> 15;
  }
  if (!strcmp(g, "lcg1")) return 1664525u * n + 1013904223u;
  if (!strcmp(g, "weyl")) return 0x9E3779B9u * n;
  if (!strcmp(g, "hash")) {
    uint32_t x = n;
    for (int i = 0; i < s->n_steps; i++) x = s->step[i].is_shift ? x ^ x >> s->step[i].by : s->step[i].by * x;
    return x;
  }
  if (!strcmp(g, "mix64")) return mix64(golden + n);
  return xorshift(n, !strcmp(g, "xorshift") ? 1 : !strcmp(g, "xorshift2") ? 2 : 3);
}

/* From 0 to 1, times 2^exp. */
static num unit_of(const ref_random_source *s, uint32_t word, size_t col, int exp) {
  uint64_t part = word;
  int bits = s->bits;
  if (s->folded) {
    if (part >> 31) part = UINT32_MAX - part;
    bits = 31;
  } else if (s->split) {
    for (size_t piece = col % (32 / (size_t)bits); piece; piece--) part >>= bits;
    part %= UINT64_C(1) << bits;
  } else if (s->low) {
    part %= UINT64_C(1) << bits;
  } else {
    part /= UINT64_C(1) << (32 - bits);
  }
  num u = num_int(part);
  if (u.kind == NUM_FINITE) u.exp += exp - bits;
  return u;
}

/* ---- rounding */

int ref_is_random(const ref_fault *f) { return !strncmp(f->op, "random", 6); }

/* The code of the largest number that is not above a magnitude. */
static uint64_t below(const mx_format *format, num a) {
  uint64_t low = 0;
  while (low < format->max_code && num_cmp(ref_value(format, low + 1), a) <= 0) low++;
  return low;
}

uint64_t ref_random_code(const ref_run *r, const mx_format *format, const ref_fault *f, num y, size_t row, size_t col) {
  const ref_random_source *s = &f->random;
  const uint32_t word = word_of(s, count_of(s, r, row, col), stream_of(s, r, row, col));
  const num a = num_abs(y), u = unit_of(s, word, col, 0);
  const int upper = num_cmp(u, num_pow2(-1)) >= 0;
  uint64_t code = below(format, a);
  if (code == format->max_code) {
    code -= IS(f, "random signed") && upper;
  } else {
    const num from = ref_value(format, code), to = ref_value(format, code + 1);
    const int step = num_add(to, num_neg(from)).exp;
    const int own = num_is_zero(a) || format->kind != MX_KIND_FLOAT ? step : a.exp - format->man_bits;
    const num added = num_add(a, unit_of(s, word, col, step));
    const int carries = num_cmp(added, to) >= 0, is_below = num_cmp(num_add(from, unit_of(s, word, col, step)), a) < 0;
    if (IS(f, "random below")) code += (uint64_t)is_below;
    if (IS(f, "random above")) code += (uint64_t)(num_cmp(num_add(from, unit_of(s, word, col, step)), a) >= 0);
    if (IS(f, "random carry")) code += (uint64_t)carries;
    if (IS(f, "random floor")) code += (uint64_t)(y.sign ? is_below : carries);
    if (IS(f, "random carry of half")) code += num_cmp(num_add(a, unit_of(s, word, col, step - 1)), to) >= 0;
    if (IS(f, "random of own step")) code += num_cmp(num_add(a, unit_of(s, word, col, own)), to) >= 0;
    if (IS(f, "random centred") || IS(f, "random centred of least step")) {
      const int breadth = IS(f, "random centred") ? step : ref_value(format, 1).exp;
      const num noisy = num_add(num_add(a, unit_of(s, word, col, breadth)), num_neg(num_pow2(breadth - 1))), most = ref_format_largest(format);
      code = noisy.sign || num_is_zero(noisy) ? 0 : num_cmp(noisy, most) >= 0 ? format->max_code : ref_code(format, noisy, &(ref_how){0}, 0);
    }
    if (IS(f, "random then nearest")) {
      const num most = ref_format_largest(format);
      code = num_cmp(added, most) >= 0 ? format->max_code : ref_code(format, added, &(ref_how){0}, 0);
    }
    if (IS(f, "random signed") && !upper) code += (uint64_t)carries;
    if (IS(f, "random signed") && upper) code -= code > 0 && num_cmp(added, to) < 0;
  }
  if (format->kind == MX_KIND_INT) return (y.sign ? 0 - code : code) & ((UINT64_C(1) << format->bits) - 1);
  return code + (y.sign ? UINT64_C(1) << (format->bits - 1) : 0);
}
