/** Makes adversarial tiles for matrix units: a pure function of (shape, seed, index), the same on every machine.
 *
 *  tiles_fill() writes tile `index`: a [m][k], b [n][k], c [m][n] of raw bits. The family is index % TILES_FAMILIES, so that every run of that
 *  many consecutive tiles holds each family once. Most families are laid out along k: each position has an exponent relative to the tile's
 *  base, a rule for its fraction, and perhaps a partner whose product it cancels; signs, fractions and a jitter of the exponents differ from row
 *  to row, columns are scaled by small powers of two, and k is permuted last. So all m*n outputs of a tile meet the same edge with different bits.
 *  Integer types have families of their own. */
#ifndef TILES_H
#define TILES_H

#include <stdint.h>
#include <string.h>

/* name, bytes, exponent bits, fraction bits, bias, low bits that are not read, kind */
typedef struct tiles_type {
  const char *name;
  int bytes, ebits, mbits, bias, shift;
  char kind; /* 'i' IEEE, 'n' all finite but S.1..1.1..1 (e4m3), 's' signed and 'u' unsigned integer */
} tiles_type;

static const tiles_type tiles_types[] = {
    {"f16", 2, 5, 10, 15, 0, 'i'}, {"bf16", 2, 8, 7, 127, 0, 'i'}, {"tf32", 4, 8, 10, 127, 13, 'i'}, {"e4m3", 1, 4, 3, 7, 0, 'n'},
    {"e5m2", 1, 5, 2, 15, 0, 'i'}, {"f32", 4, 8, 23, 127, 0, 'i'}, {"f64", 8, 11, 52, 1023, 0, 'i'}, {"s8", 1, 0, 7, 0, 0, 's'},
    {"u8", 1, 0, 8, 0, 0, 'u'},    {"s32", 4, 0, 31, 0, 0, 's'},   {"s4", 1, 0, 3, 0, 0, 's'},       {"u4", 1, 0, 4, 0, 0, 'u'},
};

/** Returns the row of a type by its name, NULL if there is none. */
static inline const tiles_type *tiles_type_find(const char *name) {
  for (unsigned i = 0; i < sizeof tiles_types / sizeof *tiles_types; i++)
    if (!strcmp(tiles_types[i].name, name)) return &tiles_types[i];
  return NULL;
}

/** Bits of an integer type; whether two values share a byte (low nibble first). */
static inline int tiles_int_bits(const tiles_type *t) { return t->mbits + (t->kind == 's'); }
static inline int tiles_packed(const tiles_type *t) { return t->ebits == 0 && tiles_int_bits(t) == 4; }

/** Returns the bytes that n values take. */
static inline size_t tiles_bytes(const tiles_type *t, size_t n) { return tiles_packed(t) ? n / 2 : n * (size_t)t->bytes; }

typedef struct tiles_shape {
  int m, n, k; /* of the tile; k at most TILES_MAX_K, a multiple of group */
  int group;   /* k of one instruction */
  const tiles_type *a, *b, *c;
} tiles_shape;

enum { TILES_MAX_K = 256, TILES_MAX_N = 64 };

#define TILES_FAMILY_LIST(X)                                                                                                                   \
  X(BITS, "random codes")                                                                                                                      \
  X(FINITE, "random finite codes")                                                                                                             \
  X(SPREAD, "exponents spread over 0..64 binades")                                                                                             \
  X(SPREAD_C, "the same, C up to 40 binades above or below")                                                                                   \
  X(CANCEL, "pairs that cancel, some but for one ulp")                                                                                         \
  X(EDGE, "a large pair that cancels; the rest lie 0..48 binades below")                                                                       \
  X(EDGE_C, "a large product that C cancels; the rest lie 0..48 binades below")                                                                \
  X(EDGE_BELOW_C, "C large, the products 0..48 binades below")                                                                                 \
  X(TIE, "a large product, half an output ulp, and dust below it")                                                                             \
  X(TIE_C, "C large, half an output ulp, and dust below it")                                                                                   \
  X(ORDER, "equal units and one large pair at all distances")                                                                                  \
  X(ZEROS, "mostly zeros of both signs, the rest tiny")                                                                                        \
  X(FLOOR, "products around the smallest exponents, dust 5..60 binades below, no C")                                                           \
  X(SUBNORMAL, "subnormal codes and the smallest normals")                                                                                     \
  X(SPECIAL, "NaN payloads, Inf, zeros, extremes strewn in")                                                                                   \
  X(OVERFLOW, "results around the largest finite value")                                                                                       \
  X(INTEGERS, "small integers: exact in any order")

enum {
#define X(id, doc) TILES_##id,
  TILES_FAMILY_LIST(X)
#undef X
      TILES_FAMILIES
};

static const char *const tiles_family_names[] = {
#define X(id, doc) #id,
    TILES_FAMILY_LIST(X)
#undef X
};

/** Set in an index: a family of its own, LOW_END: halves and ones of the smallest number of c's type, dust below, no C. */
#define TILES_LOW_END ((uint64_t)1 << 62)
static inline const char *tiles_family_name(uint64_t index) {
  return index & TILES_LOW_END ? "LOW_END" : tiles_family_names[index % TILES_FAMILIES];
}

/* ---- random numbers: SplitMix64 ---- */

static inline uint64_t tiles_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static inline uint64_t tiles_next(uint64_t *s) { return tiles_mix(*s += 0x9E3779B97F4A7C15u); }
/** Returns a number from 0 to n - 1; n is small, so the bias does not matter here. */
static inline int tiles_below(uint64_t *s, int n) { return (int)((tiles_next(s) >> 32) * (uint64_t)n >> 32); }
static inline int tiles_between(uint64_t *s, int lo, int hi) { return hi <= lo ? lo : lo + tiles_below(s, hi - lo + 1); }
static inline int tiles_chance(uint64_t *s, int in, int of) { return tiles_below(s, of) < in; }

/* ---- codes ---- */

static inline int tiles_emin(const tiles_type *t) { return 1 - t->bias; }
static inline int tiles_emax(const tiles_type *t) { return (1 << t->ebits) - (t->kind == 'n' ? 1 : 2) - t->bias; }
static inline int tiles_width(const tiles_type *t) { return 1 + t->ebits + t->mbits; }

/** Returns the code of +-2^e * 1.frac, with frac in the top bits of 64 and cut to what fits; subnormal below emin, clamped to emax, never NaN. */
static inline uint64_t tiles_pack(const tiles_type *t, int sign, int e, uint64_t frac) {
  const int emin = tiles_emin(t), emax = tiles_emax(t);
  uint64_t significand = (uint64_t)1 << t->mbits | frac >> (64 - t->mbits), code;
  if (e > emax) e = emax;
  if (e >= emin)
    code = (uint64_t)(e - emin) * ((uint64_t)1 << t->mbits) + significand;
  else
    code = emin - e > t->mbits ? 0 : significand >> (emin - e);
  if (t->kind == 'n' && code == ((uint64_t)1 << (t->ebits + t->mbits)) - 1) code--;
  return (code | (uint64_t)sign << (t->ebits + t->mbits)) << t->shift;
}

static inline void tiles_put(void *p, const tiles_type *t, size_t i, uint64_t code) {
  if (tiles_packed(t)) {
    uint8_t *byte = (uint8_t *)p + i / 2;
    *byte = i % 2 ? (uint8_t)((*byte & 0x0F) | (code & 0x0F) << 4) : (uint8_t)((*byte & 0xF0) | (code & 0x0F));
    return;
  }
  switch (t->bytes) {
  case 1:
    ((uint8_t *)p)[i] = (uint8_t)code;
    break;
  case 2:
    ((uint16_t *)p)[i] = (uint16_t)code;
    break;
  case 4:
    ((uint32_t *)p)[i] = (uint32_t)code;
    break;
  default:
    ((uint64_t *)p)[i] = code;
  }
}
static inline uint64_t tiles_get(const void *p, const tiles_type *t, size_t i) {
  if (tiles_packed(t)) return ((const uint8_t *)p)[i / 2] >> (i % 2 * 4) & 0x0F;
  switch (t->bytes) {
  case 1:
    return ((const uint8_t *)p)[i];
  case 2:
    return ((const uint16_t *)p)[i];
  case 4:
    return ((const uint32_t *)p)[i];
  default:
    return ((const uint64_t *)p)[i];
  }
}
static inline uint64_t tiles_sign_bit(const tiles_type *t) { return (uint64_t)1 << (tiles_width(t) - 1 + t->shift); }

/** Returns an unusual code: a zero, a NaN with some payload, Inf, an end of the range, or a neighbour of 1. */
static inline uint64_t tiles_special(const tiles_type *t, uint64_t *s) {
  const int top = t->ebits + t->mbits;
  const uint64_t inf = ((uint64_t)((1 << t->ebits) - 1)) << t->mbits, one = (uint64_t)t->bias << t->mbits, frac = ((uint64_t)1 << t->mbits) - 1;
  const uint64_t max = t->kind == 'n' ? inf + frac - 1 : inf - 1;
  uint64_t code;
  switch (tiles_below(s, 12)) {
  case 0:
  case 1:
  case 2:
    code = 0;
    break;
  case 3:
  case 4:
    code = t->kind == 'n' ? max : inf;
    break;
  case 5:
    code = t->kind == 'n' ? inf + frac : inf | 1 | (tiles_next(s) & frac);
    break; /* NaN, any payload */
  case 6:
    code = t->kind == 'n' ? inf + frac : inf | (uint64_t)1 << tiles_below(s, t->mbits);
    break; /* NaN, one bit */
  case 7:
    code = max;
    break;
  case 8:
    code = 1;
    break;
  case 9:
    code = frac;
    break;
  case 10:
    code = (uint64_t)1 << t->mbits;
    break;
  default:
    code = one;
    break;
  }
  code = (code | (tiles_next(s) & 1) << top) << t->shift;
  /* tf32: a payload that lies only in the bits that are not read makes an Inf of a NaN, and a zero of a subnormal */
  if (t->shift && tiles_chance(s, 1, 2)) code |= tiles_next(s) & (((uint64_t)1 << t->shift) - 1);
  return code;
}

/* ---- tiles of integers ---- */

static inline void tiles_fill_integers(const tiles_shape *q, uint64_t *s, int family, void *a, void *b, void *c) {
  const int mode = family % 4;                                                     /* random; extremes; extremes of one sign; small */
  const int reach = q->group << (tiles_int_bits(q->a) + tiles_int_bits(q->b) - 2); /* about the largest sum that one instruction can give */
  for (int side = 0; side < 2; side++) {
    const tiles_type *t = side ? q->b : q->a;
    const int extreme = tiles_below(s, 2);
    const uint64_t half = (uint64_t)1 << (tiles_int_bits(t) - 1), ones = 2 * half - 1;
    for (size_t i = 0; i < (size_t)(side ? q->n : q->m) * (size_t)q->k; i++) {
      uint64_t v = tiles_next(s);
      if (mode == 1) v = (v & 3) == 0 ? half : (v & 3) == 1 ? half - 1 : (v & 3) == 2 ? ones : v >> 8;
      if (mode == 2) v = extreme ? half : (v & 15) == 0 ? half - 2 : t->kind == 's' ? half - 1 : ones;
      if (mode == 3) v = (uint64_t)(int64_t)(tiles_between(s, -2, 2));
      tiles_put(side ? b : a, t, i, v);
    }
  }
  for (size_t i = 0; i < (size_t)q->m * (size_t)q->n; i++) {
    uint64_t v = tiles_next(s);
    if (mode == 1) v = (v & 1 ? 0x7FFFFFFFu : 0x80000000u) + (uint32_t)tiles_between(s, -reach, reach);
    if (mode == 2) v = (v & 1 ? 0x7FFFFFFFu - (uint32_t)tiles_below(s, 2 * reach) : 0x80000000u + (uint32_t)tiles_below(s, 2 * reach));
    if (mode == 3) v = (uint64_t)(int64_t)tiles_between(s, -2, 2);
    tiles_put(c, q->c, i, v);
  }
}

/* ---- tiles of floats ---- */

enum { TILES_NONE = -1, TILES_ZERO = -100000 };
enum { TILES_POW2, TILES_RANDOM, TILES_ONES, TILES_ONE_BIT, TILES_SPARSE, TILES_LAST_BIT, TILES_POLICIES };

/* The plan of one tile, before k is permuted. */
typedef struct tiles_plan {
  int base;                                     /* exponent of the largest product */
  int rel[TILES_MAX_K];                         /* the exponent of each product, relative to base; TILES_ZERO: a zero */
  int jitter[TILES_MAX_K];                      /* rows differ by -jitter..jitter in that */
  int partner[TILES_MAX_K];                     /* an earlier position that this one cancels, or TILES_NONE */
  int a_frac[TILES_MAX_K], b_frac[TILES_MAX_K]; /* policies */
  int sign[TILES_MAX_K];                        /* 0 plus, 1 minus, 2 random */
  int nudge;                                    /* partners are off by one ulp once in so many; 0 never */
  int c_rel, c_jitter, c_frac, c_sign;          /* C, relative to base; TILES_ZERO */
  int c_cancels;                                /* position whose product C cancels, or TILES_NONE */
  int column_shift;                             /* columns are scaled by 2^0..2^column_shift */
} tiles_plan;

static inline uint64_t tiles_fraction(uint64_t *s, int policy, int mbits) {
  const uint64_t r = tiles_next(s);
  switch (policy) {
  case TILES_RANDOM:
    return r;
  case TILES_ONES:
    return ~(uint64_t)0;
  case TILES_ONE_BIT:
    return (uint64_t)1 << (63 - r % (unsigned)mbits);
  case TILES_SPARSE:
    return r & tiles_next(s) & tiles_next(s);
  case TILES_LAST_BIT:
    return (r & 1) << (64 - mbits);
  default:
    return 0;
  }
}

static inline int tiles_clamp(int x, int lo, int hi) { return x < lo ? lo : x > hi ? hi : x; }

static inline void tiles_plan_fill(tiles_plan *p, const tiles_shape *q, uint64_t *s, int family) {
  const int lo = tiles_emin(q->a) + tiles_emin(q->b), hi = tiles_emax(q->a) + tiles_emax(q->b);
  const int c_lo = tiles_emin(q->c), c_hi = tiles_emax(q->c), k = q->k;
  const int top = hi < c_hi - 8 ? hi : c_hi - 8; /* high enough, and without overflow */
  const int bottom = lo > c_lo ? lo : c_lo;
  const int policy = tiles_below(s, TILES_POLICIES), depth = tiles_below(s, 49);
  const int zeros = tiles_chance(s, 1, 2) ? 0 : 4; /* one position in so many is zero; 0: none */
  memset(p, 0, sizeof *p);
  p->column_shift = tiles_below(s, 4);
  /* most bases leave room below, the others are anywhere */
  p->base = tiles_chance(s, 1, 2) ? top - tiles_below(s, 8) : tiles_between(s, bottom, top);
  p->c_cancels = TILES_NONE;
  p->c_rel = TILES_ZERO;
  p->c_frac = TILES_RANDOM;
  p->c_sign = 2;
  for (int i = 0; i < k; i++) {
    p->partner[i] = TILES_NONE;
    p->a_frac[i] = p->b_frac[i] = TILES_RANDOM;
    p->sign[i] = 2;
  }
  switch (family) {
  case TILES_SPREAD:
  case TILES_SPREAD_C:
  case TILES_SPECIAL: {
    const int w = tiles_below(s, 65);
    for (int i = 0; i < k; i++) p->rel[i] = -tiles_below(s, w + 1), p->jitter[i] = w / 4;
    p->c_rel = family == TILES_SPREAD_C ? tiles_between(s, -40, 40) : -tiles_below(s, w + 1);
    p->c_jitter = 3;
  } break;
  case TILES_CANCEL: {
    const int w = tiles_below(s, 33);
    for (int i = 0; i < k; i++) {
      p->rel[i] = -tiles_below(s, w + 1), p->jitter[i] = 1;
      p->a_frac[i] = p->b_frac[i] = policy;
      if (i % 2) p->partner[i] = i - 1;
    }
    p->nudge = tiles_between(s, 2, 8);
    if (tiles_chance(s, 3, 4)) p->c_rel = -tiles_below(s, 48), p->c_jitter = 4;
  } break;
  case TILES_EDGE:
  case TILES_EDGE_C:
  case TILES_EDGE_BELOW_C:
  case TILES_ORDER: {
    const int first = family == TILES_EDGE || family == TILES_ORDER ? 2 : family == TILES_EDGE_C ? 1 : 0;
    const int few = tiles_below(s, 3) ? k : first + 1 + tiles_below(s, 3); /* all positions that are left, or a few */
    for (int i = 0; i < k; i++) {
      if (i < first) {
        p->a_frac[i] = p->b_frac[i] = tiles_chance(s, 1, 2) ? TILES_POW2 : policy;
        continue;
      }
      p->rel[i] = i >= few || (zeros && tiles_chance(s, 1, zeros)) ? TILES_ZERO : -depth;
      p->a_frac[i] = p->b_frac[i] = policy;
      p->jitter[i] = family == TILES_ORDER ? 0 : 3;
      if (family == TILES_ORDER) p->sign[i] = tiles_chance(s, 1, 2) ? 0 : 2;
    }
    if (first == 2) p->partner[1] = 0;
    if (first == 1) {
      p->c_cancels = 0;
      if (tiles_chance(s, 1, 2)) p->b_frac[0] = TILES_POW2; /* otherwise C may not hold all bits of the product, which is a case too */
    } else if (first == 0) {
      p->c_rel = 0;
      for (int i = 0; i < k; i++)
        if (p->rel[i] != TILES_ZERO) p->rel[i] -= 1;
      p->c_frac = tiles_below(s, TILES_POLICIES);
    } else if (tiles_chance(s, 1, 2)) {
      p->c_rel = -depth, p->c_jitter = 3;
    }
  } break;
  case TILES_TIE:
  case TILES_TIE_C: {
    /* the last kept bit of f32, f16 and the 13-bit result, and one to either side */
    static const int last[] = {9, 10, 11, 12, 13, 14, 22, 23, 24, 25};
    const int half = last[tiles_below(s, 10)] + 1 - (tiles_chance(s, 1, 8) ? 1 : 0), few = tiles_chance(s, 1, 2);
    for (int i = 0; i < k; i++) p->rel[i] = i > 3 && few ? TILES_ZERO : -half - 1 - tiles_below(s, 20), p->jitter[i] = 2;
    const int at = family == TILES_TIE ? 1 : 0;
    if (at) {
      p->rel[0] = p->jitter[0] = 0;
      p->a_frac[0] = policy;
      p->b_frac[0] = tiles_chance(s, 1, 2) ? TILES_POW2 : TILES_RANDOM;
    } else {
      p->c_rel = 0, p->c_frac = tiles_chance(s, 1, 2) ? TILES_RANDOM : policy;
    }
    if (k > at) p->rel[at] = -half, p->jitter[at] = 0, p->a_frac[at] = p->b_frac[at] = tiles_chance(s, 3, 4) ? TILES_POW2 : TILES_ONES;
    p->base = tiles_between(s, bottom + half < top ? bottom + half : top, top);
  } break;
  case TILES_FLOOR: {
    /* f32's last place is 2^-149; a floor of the exponent at -133 cuts at 2^-158 */
    const int d = tiles_between(s, 5, 60), main = tiles_between(s, 1, 3);
    p->base = tiles_clamp(tiles_between(s, -152, -126), lo - q->a->mbits, hi);
    for (int i = 0; i < k; i++) {
      p->rel[i] = i < main ? -tiles_below(s, 4) : tiles_chance(s, 1, 3) ? TILES_ZERO : tiles_chance(s, 1, 2) ? -d : -158 - p->base;
      p->jitter[i] = 2;
      p->a_frac[i] = i < main ? (tiles_chance(s, 1, 2) ? TILES_POW2 : TILES_SPARSE) : policy;
      p->b_frac[i] = i < main ? TILES_POW2 : policy;
    }
  } break;
  case TILES_FAMILIES: { /* LOW_END */
    const int tie = tiles_chance(s, 2, 3), main = tie ? 1 : 2,
              last = c_lo - q->c->mbits; /* a tie: half of the smallest number, and very small products beside it */
    p->base = tiles_clamp(tie ? last - 1 : last + tiles_between(s, -2, 3), lo - q->a->mbits, hi);
    p->column_shift = tie ? 0 : tiles_below(s, 2);
    for (int i = 0; i < k; i++) {
      p->rel[i] = i < main ? 0 : tiles_chance(s, 1, 4) ? -1 - tiles_below(s, 30) : tie ? TILES_ZERO : -tiles_below(s, 40);
      p->jitter[i] = i < main ? 0 : 4;
      p->a_frac[i] = p->b_frac[i] = i < main && tie ? TILES_POW2 : policy;
    }
  } break;
  case TILES_ZEROS: {
    static const int most[] = {2, 3, 8, 64};
    const int in = most[tiles_below(s, 4)];
    for (int i = 0; i < k; i++) p->rel[i] = tiles_chance(s, in - 1, in) ? TILES_ZERO : -tiles_below(s, 12), p->jitter[i] = 6;
    p->base = tiles_between(s, lo - q->a->mbits - q->b->mbits, tiles_clamp(-90, lo + 20, hi));
    if (tiles_chance(s, 1, 4)) p->base = tiles_between(s, tiles_clamp(-160, lo, hi), tiles_clamp(-100, lo, hi));
    if (tiles_chance(s, 3, 4)) p->c_rel = tiles_clamp(tiles_between(s, -160, -110) - p->base, -60, 60), p->c_jitter = 20;
  } break;
  case TILES_OVERFLOW: {
    const int pairs = tiles_chance(s, 1, 3); /* products past the range that cancel */
    p->base = pairs ? hi - tiles_below(s, 4) : (hi < c_hi + 1 ? hi : c_hi + 1) - tiles_below(s, 6);
    for (int i = 0; i < k; i++) {
      p->rel[i] = -tiles_below(s, 5);
      if (i >= 2 && tiles_chance(s, 1, 2)) p->rel[i] = -tiles_below(s, 40);
      p->sign[i] = pairs ? 2 : tiles_chance(s, 1, 4);
      p->a_frac[i] = p->b_frac[i] = policy;
      if (pairs && i % 2) p->partner[i] = i - 1;
    }
    p->c_rel = c_hi - p->base - tiles_below(s, 3), p->c_jitter = 1, p->c_frac = tiles_chance(s, 1, 2) ? TILES_ONES : TILES_RANDOM;
  } break;
  default:
    break;
  }
}

/** Decode a code's exponent (of the encoding) and significand: value = significand * 2^(*e - mbits). */
static inline uint64_t tiles_significand(const tiles_type *t, uint64_t code, int *e) {
  const uint64_t bits = code >> t->shift, frac = bits & (((uint64_t)1 << t->mbits) - 1);
  const int field = (int)(bits >> t->mbits & (((uint64_t)1 << t->ebits) - 1));
  *e = (field ? field : 1) - t->bias;
  return field ? frac | (uint64_t)1 << t->mbits : frac;
}

static inline void tiles_fill_plan(const tiles_plan *p, const tiles_shape *q, uint64_t *s, uint64_t *a, uint64_t *b, uint64_t *c) {
  const int k = q->k, a_lo = tiles_emin(q->a) - q->a->mbits, b_lo = tiles_emin(q->b) - q->b->mbits;
  int b_exp[TILES_MAX_K], shift[TILES_MAX_N];
  for (int i = 0; i < k; i++) { /* b takes about half of each exponent, and more where the range of a ends */
    const int want = p->partner[i] == TILES_NONE ? p->base + (p->rel[i] == TILES_ZERO ? 0 : p->rel[i]) : 0;
    b_exp[i] = p->partner[i] != TILES_NONE ? b_exp[p->partner[i]] : tiles_clamp(want / 2 + tiles_between(s, -1, 1), b_lo, tiles_emax(q->b));
    if (want - b_exp[i] < a_lo) b_exp[i] = tiles_clamp(want - a_lo, b_lo, b_exp[i]);
    if (want - b_exp[i] > tiles_emax(q->a)) b_exp[i] = tiles_clamp(want - tiles_emax(q->a), b_exp[i], tiles_emax(q->b));
  }
  for (int n = 0; n < q->n; n++) {
    shift[n] = tiles_between(s, 0, p->column_shift);
    for (int i = 0; i < k; i++) {
      const int from = p->partner[i];
      const uint64_t code = tiles_pack(q->b, (int)(tiles_next(s) & 1), b_exp[i] - shift[n], tiles_fraction(s, p->b_frac[i], q->b->mbits));
      b[n * k + i] = from != TILES_NONE                                 ? b[n * k + from]
                     : p->rel[i] == TILES_ZERO && tiles_chance(s, 1, 2) ? code & tiles_sign_bit(q->b)
                                                                        : code;
    }
  }
  for (int m = 0; m < q->m; m++)
    for (int i = 0; i < k; i++) {
      const int sign = p->sign[i] == 2 ? (int)(tiles_next(s) & 1) : p->sign[i], from = p->partner[i];
      const int e = p->base + p->rel[i] + tiles_between(s, -p->jitter[i], p->jitter[i]) - b_exp[i];
      uint64_t code = tiles_pack(q->a, sign, e, tiles_fraction(s, p->a_frac[i], q->a->mbits));
      if (p->rel[i] == TILES_ZERO) code = (uint64_t)sign * tiles_sign_bit(q->a);
      if (from != TILES_NONE) {
        code = a[m * k + from] ^ tiles_sign_bit(q->a);
        if (p->nudge && tiles_chance(s, 1, p->nudge) && (code >> q->a->shift & 1)) code ^= (uint64_t)1 << q->a->shift;
      }
      a[m * k + i] = code;
    }
  for (int m = 0; m < q->m; m++)
    for (int n = 0; n < q->n; n++) {
      const int sign = p->c_sign == 2 ? (int)(tiles_next(s) & 1) : p->c_sign;
      uint64_t *out = &c[m * q->n + n];
      *out = (uint64_t)sign * tiles_sign_bit(q->c);
      if (p->c_cancels != TILES_NONE && q->a->mbits + q->b->mbits < 62) {
        int ea, eb;
        const uint64_t x = a[m * k + p->c_cancels], y = b[n * k + p->c_cancels];
        const uint64_t product = tiles_significand(q->a, x, &ea) * tiles_significand(q->b, y, &eb);
        if (product) {
          const int lead = 63 - __builtin_clzll(product), negative = ((x & tiles_sign_bit(q->a)) != 0) ^ ((y & tiles_sign_bit(q->b)) != 0);
          *out = tiles_pack(q->c, !negative, ea + eb - q->a->mbits - q->b->mbits + lead, lead ? product << (64 - lead) : 0);
        }
      } else if (p->c_rel != TILES_ZERO) {
        const int e = p->base + p->c_rel - shift[n] + tiles_between(s, -p->c_jitter, p->c_jitter);
        *out = tiles_pack(q->c, sign, e, tiles_fraction(s, p->c_frac, q->c->mbits));
      }
    }
}

/* Makes the families that are drawn code by code. */
static inline uint64_t tiles_code(const tiles_type *t, uint64_t *s, int family) {
  const uint64_t r = tiles_next(s), mask = tiles_width(t) + t->shift == 64 ? ~(uint64_t)0 : ((uint64_t)1 << (tiles_width(t) + t->shift)) - 1;
  const int emin = tiles_emin(t), emax = tiles_emax(t), sign = (int)(tiles_next(s) & 1);
  switch (family) {
  case TILES_FINITE:
    return tiles_pack(t, sign, tiles_between(s, emin - t->mbits, emax), r);
  case TILES_SUBNORMAL:
    return tiles_chance(s, 1, 8) ? tiles_pack(t, sign, tiles_between(s, emin, emax), r)
                                 : tiles_pack(t, sign, tiles_between(s, emin - t->mbits, emin + 2), r);
  case TILES_INTEGERS: {
    const int v = tiles_between(s, 0, t->mbits < 3 ? 4 : 8);
    if (v == 0) return (uint64_t)sign * tiles_sign_bit(t);
    const int lead = 31 - __builtin_clz((unsigned)v);
    return tiles_pack(t, sign, lead, lead ? (uint64_t)v << (64 - lead) : 0);
  }
  default:
    return r & mask;
  }
}

/** Writes tile `index` of a seed: a [m][k], b [n][k], c [m][n], raw bits as wide as the types. */
static inline void tiles_fill(const tiles_shape *q, uint64_t seed, uint64_t index, void *a, void *b, void *c) {
  const int k = q->k, family = index & TILES_LOW_END ? TILES_FAMILIES : (int)(index % TILES_FAMILIES);
  uint64_t state = tiles_mix(seed + 0x632BE59BD9B4E019u) + tiles_mix(index), *s = &state;
  if (q->a->ebits == 0) {
    tiles_fill_integers(q, s, family, a, b, c);
    return;
  }
  static _Thread_local uint64_t wa[64 * TILES_MAX_K], wb[TILES_MAX_N * TILES_MAX_K], wc[64 * TILES_MAX_N];
  if (family == TILES_BITS || family == TILES_FINITE || family == TILES_SUBNORMAL || family == TILES_INTEGERS) {
    const int c_family =
        family == TILES_SUBNORMAL && tiles_chance(s, 1, 3) ? TILES_INTEGERS : family; /* sometimes C is an integer from 1 to 8, or zero */
    for (int i = 0; i < q->m * k; i++) wa[i] = tiles_code(q->a, s, family);
    for (int i = 0; i < q->n * k; i++) wb[i] = tiles_code(q->b, s, family);
    for (int i = 0; i < q->m * q->n; i++) wc[i] = tiles_code(q->c, s, c_family);
  } else {
    tiles_plan plan;
    tiles_plan_fill(&plan, q, s, family);
    tiles_fill_plan(&plan, q, s, wa, wb, wc);
  }
  if (family == TILES_SPECIAL) {
    static const int rates[] = {4, 16, 64, 256};
    const int rate = rates[tiles_below(s, 4)];
    for (int i = 0; i < q->m * k; i++)
      if (tiles_chance(s, 1, rate)) wa[i] = tiles_special(q->a, s);
    for (int i = 0; i < q->n * k; i++)
      if (tiles_chance(s, 1, rate)) wb[i] = tiles_special(q->b, s);
    for (int i = 0; i < q->m * q->n; i++)
      if (tiles_chance(s, 1, rate)) wc[i] = tiles_special(q->c, s);
  }
  /* Permutes k over the whole tile or within each instruction. In every other tile the bits that a type does not read are noise. */
  int order[TILES_MAX_K];
  const int span = tiles_chance(s, 1, 2) ? k : q->group;
  for (int i = 0; i < k; i++) order[i] = i;
  for (int i = 0; i < k; i++) {
    const int start = i - i % span, j = start + tiles_below(s, i - start + 1), swap = order[i];
    order[i] = order[j], order[j] = swap;
  }
  const int noise = tiles_chance(s, 1, 2);
  const uint64_t a_noise = noise && q->a->shift ? ((uint64_t)1 << q->a->shift) - 1 : 0,
                 b_noise = noise && q->b->shift ? ((uint64_t)1 << q->b->shift) - 1 : 0;
  for (int m = 0; m < q->m; m++)
    for (int i = 0; i < k; i++) tiles_put(a, q->a, (size_t)m * k + order[i], wa[m * k + i] | (a_noise ? tiles_next(s) & a_noise : 0));
  for (int n = 0; n < q->n; n++)
    for (int i = 0; i < k; i++) tiles_put(b, q->b, (size_t)n * k + order[i], wb[n * k + i] | (b_noise ? tiles_next(s) & b_noise : 0));
  for (int i = 0; i < q->m * q->n; i++) tiles_put(c, q->c, i, wc[i]);
}

#endif
