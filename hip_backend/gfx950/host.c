/* Computes the conversions of gfx950 under a set of rules, in integer arithmetic. */
#include "host.h"

#include <string.h>

/* --- the rules as a table --- */

typedef struct rule_row {
  const char *name, *doc;
  size_t offset;
} rule_row;
static const rule_row rules_table[] = {
#define GFX950_RULE(field, doc) {#field, doc, offsetof(gfx950_rules, field)},
#include "formats/gfx950_rules.def"
};
typedef struct choice_row {
  const char *rule, *name, *doc;
  int number;
} choice_row;
static const choice_row choices_table[] = {
#define GFX950_CHOICE(field, id, number, text, doc) {#field, text, doc, number},
#include "formats/gfx950_rules.def"
};
enum { N_RULES = sizeof rules_table / sizeof *rules_table, N_CHOICES = sizeof choices_table / sizeof *choices_table };

const char *gfx950_rule_name(int rule, const char **doc) {
  if (rule < 0 || rule >= N_RULES) return NULL;
  if (doc) *doc = rules_table[rule].doc;
  return rules_table[rule].name;
}

const char *gfx950_choice_name(int rule, int choice, const char **doc) {
  if (rule < 0 || rule >= N_RULES) return NULL;
  for (int i = 0; i < N_CHOICES; i++)
    if (choices_table[i].number == choice && !strcmp(choices_table[i].rule, rules_table[rule].name)) {
      if (doc) *doc = choices_table[i].doc;
      return choices_table[i].name;
    }
  return NULL;
}

int *gfx950_rule_of(gfx950_rules *rules, int rule) { return (int *)((char *)rules + rules_table[rule].offset); }

gfx950_rules gfx950_rules_default(void) {
  gfx950_rules r;
  mx_mma_model m;
  memset(&r, 0, sizeof r);
  if (mx_mma_model_find(&m, "cdna4_like_cdna3", NULL) == MX_OK) gfx950_rules_sums(&r, &m.accum);
  return r;
}
void gfx950_rules_sums(gfx950_rules *rules, const mx_accum *accum) {
  for (int pair = 0; pair < GFX950_PAIRS; pair++) rules->accum[pair] = *accum;
}

/* --- numbers --- */

typedef struct type_row {
  int bits, man, bias;
  uint32_t max, inf, nan; /* codes without the sign; 0: the type has none */
} type_row;
static const type_row types[] = {
    [GFX950_E4M3] = {8, 3, 7, 0x7E, 0, 0x7F},
    [GFX950_E5M2] = {8, 2, 15, 0x7B, 0x7C, 0x7E},
    [GFX950_E2M3] = {6, 3, 1, 0x1F, 0, 0},
    [GFX950_E3M2] = {6, 2, 3, 0x1F, 0, 0},
    [GFX950_E2M1] = {4, 1, 1, 0x7, 0, 0},
    [GFX950_F16] = {16, 10, 15, 0x7BFF, 0x7C00, 0x7E00},
    [GFX950_BF16] = {16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0},
    [GFX950_F32] = {32, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FC00000},
};

/* A sign and fraction * 2^exp, normalised so that the first bit of the fraction is bit `man` of its type; zero has fraction 0. */
typedef struct number {
  int sign, inf, nan, exp;
  uint32_t fraction, payload; /* payload: the mantissa field of a NaN */
} number;

static number read_number(int type, uint32_t code) {
  const type_row *t = &types[type];
  const uint32_t magnitude = code & (uint32_t)((UINT64_C(1) << (t->bits - 1)) - 1), field = magnitude >> t->man;
  number x = {(int)(code >> (t->bits - 1) & 1), 0, 0, 0, magnitude & ((1u << t->man) - 1), 0};
  if (t->inf && magnitude == t->inf)
    x.inf = 1;
  else if (t->nan && magnitude > t->max)
    x.nan = 1;
  x.payload = x.fraction;
  if (x.inf || x.nan) return x;
  x.exp = (field ? (int)field : 1) - t->bias - t->man;
  if (field) x.fraction |= 1u << t->man;
  while (x.fraction && !(x.fraction >> t->man)) {
    x.fraction <<= 1;
    x.exp--;
  }
  return x;
}

/* fraction / 2^shift, rounded to nearest even, for any shift. */
static uint64_t nearest(uint64_t fraction, int shift) {
  if (shift <= 0) return fraction << -shift;
  if (shift > 62) return 0;
  const uint64_t units = fraction >> shift, rest = fraction & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
  return units + (rest > half || (rest == half && units & 1));
}

/* The rules that a stochastic conversion follows. Rules of one kind number the same choices alike (formats/gfx950_rules.def). */
typedef struct sr_rules {
  int seed, subnormal, round, wrap, carry;
} sr_rules;
static sr_rules sr_rules_of(const gfx950_rules *r, gfx950_form form) {
  if (form == GFX950_N8_SR) return (sr_rules){r->sr8_seed, r->sr8_subnormal, r->sr8_round, r->sr8_wrap, r->sr8_carry};
  if (form == GFX950_N16_SR) return (sr_rules){r->sr16_seed, r->sr16_subnormal, r->sr16_round, r->sr16_wrap, GFX950_sr_carry_OVERFLOW};
  return (sr_rules){r->sr_seed, r->sr_subnormal, GFX950_sr8_round_TRUNCATE, GFX950_sr8_wrap_KEPT, r->sr_carry};
}

/* Takes r bits of the seed, from 1 to 32. */
static uint64_t seed_bits(int rule, uint32_t seed, int r) {
  if (rule == GFX950_sr_seed_LOW) return seed & (UINT32_MAX >> (32 - r));
  if (rule == GFX950_sr_seed_LOWER) seed <<= 1;
  if (rule == GFX950_sr_seed_HALF) seed >>= 1;
  return seed >> (32 - r);
}

/* Units of 2^shift in a fraction of man bits and a hidden bit, after a random word was added below the unit. A normal number discards r
 * bits, and shift >= r. */
static uint64_t stochastic(const sr_rules *sr, uint32_t fraction, int man, int shift, int r, uint32_t seed) {
  const int before = sr->subnormal == GFX950_sr_subnormal_BEFORE, n = shift == r || sr->subnormal != GFX950_sr_subnormal_WIDE ? r
                                                                      : shift > 32                                            ? 32
                                                                                                                              : shift;
  const int at = before ? 0 : shift - n; /* where the word's last bit is added */
  const uint64_t here = at > 31 ? 0 : fraction >> at, below = fraction != (at > 31 ? 0 : here << at);
  uint64_t sum = here + seed_bits(sr->seed, seed, n);
  if (sr->wrap == GFX950_sr8_wrap_LOST && (shift == r || before) && sum >> (man + 1)) sum -= UINT64_C(1) << man;
  if (sr->round == GFX950_sr8_round_NEAREST) {
    if (shift == r && sum >> (man + 1)) /* in the next binade units are twice as large, so its code is their number plus one of our binades */
      return nearest(sum, shift + 1) + (UINT64_C(1) << (man - r));
    return nearest(sum << 1 | below, shift - at + 1);
  }
  return shift - at > 62 ? 0 : sum >> (shift - at);
}

static uint32_t nan_code(const gfx950_rules *rules, int wide, int type, const number *x) {
  const type_row *t = &types[type];
  const uint32_t sign = (uint32_t)x->sign << (t->bits - 1);
  if (type == GFX950_E4M3 || type == GFX950_E5M2) {
    const uint32_t code = type == GFX950_E5M2 && rules->nan_bf8 == GFX950_nan_bf8_CODE_7F ? 0x7F : t->nan;
    return rules->nan_fp8 == GFX950_nan_fp8_DROP ? code : rules->nan_fp8 == GFX950_nan_fp8_SET ? code | 0x80 : code | sign;
  }
  if (t->nan) { /* 16 bits */
    const uint32_t kept = rules->nan_16 == GFX950_nan_16_PAYLOAD ? x->payload >> (types[wide].man - t->man) : 0;
    return sign | t->nan | kept;
  }
  const int rule = type == GFX950_E2M1 ? rules->nan_fp4 : rules->nan_fp6; /* both rules have the same choices */
  if (rule == GFX950_nan_fp4_ZERO) return 0;
  return rule == GFX950_nan_fp4_POSMAX ? t->max : t->max | sign;
}

/* The code of a number past the largest, or of Inf. */
static uint32_t overflow_code(const gfx950_env *env, int type, int sign, int inf, int rule) {
  const type_row *t = &types[type];
  int saturate;
  if (!t->nan)
    saturate = 1;
  else if (type == GFX950_F16 || type == GFX950_BF16)
    saturate = type == GFX950_F16 && env->mode & GFX950_MODE_OVFL;
  else if (rule == GFX950_fp8_overflow_MODE || (rule == GFX950_fp8_overflow_FINITE && !inf))
    saturate = (env->mode & GFX950_MODE_OVFL) != 0;
  else
    saturate = rule == GFX950_fp8_overflow_SATURATE;
  return (saturate ? t->max : t->inf ? t->inf : t->nan) | (uint32_t)sign << (t->bits - 1);
}

/* Converts one number of type wide, divided by 2^scale_exp, to `type`; sr NULL: to nearest. */
static uint32_t narrow(const gfx950_env *env, int wide, int type, uint32_t code, int scale_exp, const sr_rules *sr, uint32_t seed) {
  const gfx950_rules *rules = env->rules;
  const type_row *from = &types[wide], *to = &types[type];
  const uint32_t sign_bit = 1u << (to->bits - 1);
  number x = read_number(wide, code);
  if (x.nan) return nan_code(rules, wide, type, &x);
  if (x.inf) return overflow_code(env, type, x.sign, 1, rules->fp8_overflow);
  const int flush = rules->f32_subnormal == GFX950_f32_subnormal_FLUSH ||
                    (rules->f32_subnormal == GFX950_f32_subnormal_MODE && env->mode & GFX950_MODE_FLUSH);
  if (wide == GFX950_F32 && flush && !(code & 0x7F800000)) x.fraction = 0;
  if (!x.fraction) return x.sign ? sign_bit : 0;
  x.exp -= scale_exp;

  const int top = x.exp + from->man, emin = 1 - to->bias; /* the exponent of the value */
  const int unit = (top < emin ? emin : top) - to->man, shift = unit - x.exp, r = from->man - to->man;
  uint64_t units, cut = nearest(x.fraction, shift);
  if (sr) {
    cut = shift > 62 ? 0 : (uint64_t)x.fraction >> shift;
    units = stochastic(sr, x.fraction, from->man, shift, r, seed);
  } else {
    if (rules->fp8_subnormal == GFX950_fp8_subnormal_TWICE && (type == GFX950_E4M3 || type == GFX950_E5M2) && shift > r)
      cut = nearest(nearest(x.fraction, r), shift - r);
    units = cut;
  }
  /* The code of `units` steps: the hidden bit adds one to the exponent field, and so does a carry into the next binade. */
  const int64_t binade = top < emin ? 0 : (int64_t)(top - emin);
  const uint64_t result = ((uint64_t)binade << to->man) + units;
  if (result <= to->max) return (uint32_t)result | (x.sign ? sign_bit : 0);
  const int carried = sr && ((uint64_t)binade << to->man) + cut <= to->max;
  return overflow_code(env, type, x.sign, 0, carried && sr->carry != GFX950_sr_carry_OVERFLOW ? sr->carry : rules->fp8_overflow);
}

/* Converts one code of `type`, times 2^scale_exp, to type wide; scale_is_nan: the product is NaN. */
static uint32_t widen(const gfx950_env *env, int wide, int type, uint32_t code, int scale_exp, int scale_is_nan) {
  const gfx950_rules *rules = env->rules;
  const int flush = env->mode & GFX950_MODE_FLUSH ? rules->widen_flush : GFX950_widen_flush_KEEP;
  const type_row *from = &types[type], *to = &types[wide];
  const uint32_t sign_bit = 1u << (to->bits - 1);
  number x = read_number(type, code);
  const uint32_t sign = x.sign ? sign_bit : 0;
  if (scale_is_nan) return sign | to->nan;
  if (x.nan && rules->nan_up == GFX950_nan_up_MINUS) return sign_bit | to->nan;
  if (x.nan) return sign | to->nan | (rules->nan_up == GFX950_nan_up_PAYLOAD ? x.payload << (to->man - from->man) : 0);
  if (x.inf) return sign | to->inf;
  if (!x.fraction || (flush == GFX950_widen_flush_SOURCE && x.exp + from->man < 1 - from->bias)) return sign;
  const int top = x.exp + from->man + scale_exp, emin = 1 - to->bias, unit = (top < emin ? emin : top) - to->man;
  const uint64_t result = ((uint64_t)(top < emin ? 0 : top - emin) << to->man) + nearest(x.fraction, unit - x.exp - scale_exp);
  if (result < UINT64_C(1) << to->man &&
      ((flush == GFX950_widen_flush_RESULT && wide == GFX950_F32) || (flush == GFX950_widen_flush_RESULT_BF16 && wide != GFX950_F16)))
    return sign;
  return sign | (result > to->max ? to->inf : (uint32_t)result);
}

/* --- operands --- */

static uint32_t element(const uint32_t *words, int bits, int i) {
  return bits == 32 ? words[i] : words[i * bits / 32] >> i * bits % 32 & ((1u << bits) - 1);
}
static void put(uint32_t *word, int bit, int bits, uint32_t value) {
  const uint32_t mask = ((1u << bits) - 1) << bit;
  *word = (*word & ~mask) | value << bit;
}

typedef struct scale_value {
  int exp, is_nan, keep_old;
} scale_value;
static scale_value read_scale(const gfx950_rules *rules, uint32_t scale, int from, int widening) {
  scale_value s = {(int)(scale >> 23 & 0xFF) - 127, 0, 0};
  if ((from == GFX950_FROM_SGPR && rules->scale_sgpr == GFX950_scale_sgpr_ONE) ||
      (from == GFX950_FROM_INLINE && rules->scale_inline == GFX950_scale_inline_ONE))
    s.exp = 0;
  if (s.exp == -127 && rules->scale_00 == GFX950_scale_00_E126) s.exp = -126;
  if (s.exp == 128) {
    s.is_nan = widening ? rules->scale_ff_up == GFX950_scale_ff_up_NAN : rules->scale_ff != GFX950_scale_ff_TWO128;
    s.keep_old = !widening && rules->scale_ff == GFX950_scale_ff_OLD;
  }
  return s;
}

static uint32_t prng(uint32_t s) { return s << 1 ^ (s >> 31 ? 197u : 0u); }

static const uint32_t ONE = 0x3F800000;

void gfx950_convert(const gfx950_env *env, const gfx950_row *row, int select, uint32_t *out, const uint32_t *x, uint32_t scale, uint32_t seed,
                    int from) {
  const gfx950_rules *rules = env->rules;
  if (row->kind == GFX950_PRNG) {
    out[0] = prng(x[0]);
    return;
  }
  const int wide_bits = gfx950_bits(row->wide), bits = gfx950_bits(row->elem);
  const int unscaled = row->form == GFX950_N8_PK || row->form == GFX950_N8_SR || row->form == GFX950_N8_UP || row->form == GFX950_N8_UP2 ||
                       row->form == GFX950_N16_SR;
  const scale_value s = read_scale(rules, unscaled ? ONE : scale, from, row->kind == GFX950_WIDEN);

  if (row->kind == GFX950_WIDEN) {
    uint32_t result[32];
    for (int i = 0; i < row->lanes; i++) {
      int bit = bits * i; /* first bit in the source; select picks a byte, or a word of two bytes */
      if (row->form == GFX950_UP4) bit += 8 * select;
      if (row->form == GFX950_UP8 || row->form == GFX950_N8_UP2) bit += 16 * select;
      if (row->form == GFX950_UP8_F32 || row->form == GFX950_UP8_F16 || row->form == GFX950_N8_UP) bit += 8 * (select % 4);
      result[i] = widen(env, row->wide, row->elem, gfx950_field(x, bit, bits), s.exp, s.is_nan);
    }
    if (row->form == GFX950_UP8_F16)
      put(out, 16 * (select / 4), 16, result[0]);
    else if (wide_bits == 32)
      for (int i = 0; i < row->lanes; i++) out[i] = result[i];
    else
      for (int i = 0; i < row->lanes; i++) put(&out[i / 2], 16 * (i % 2), 16, result[i]);
    return;
  }

  if (s.keep_old && row->has_old) return;
  const sr_rules sr = sr_rules_of(rules, row->form);
  for (int i = 0; i < row->lanes; i++) {
    const int at = row->form == GFX950_P16X2 ? i / 2 + 16 * (i % 2) : i; /* two sources of 16, interleaved */
    uint32_t code = element(x, wide_bits, at), result;
    if (i && (rules->sr_next == GFX950_sr_next_PRNG || (rules->sr_next == GFX950_sr_next_PAIR && i % 2 == 0))) seed = prng(seed);
    if (s.is_nan) {
      number nan = read_number(row->wide, code);
      result = nan_code(rules, row->wide, row->elem, &nan);
    } else
      result = narrow(env, row->wide, row->elem, code, s.exp, row->kind == GFX950_SR ? &sr : NULL, seed);
    switch (row->form) {
    case GFX950_PK4_F32:
    case GFX950_PK4_V2:
    case GFX950_SRPK4:
      put(out, 8 * select + 4 * i, 4, result);
      break;
    case GFX950_PK8_F32:
    case GFX950_PK8_V2:
    case GFX950_N8_PK:
      put(out, 16 * select + 8 * i, 8, result);
      break;
    case GFX950_SR8:
    case GFX950_N8_SR:
      put(out, 8 * select, 8, result);
      break;
    case GFX950_N16_SR:
      put(out, 16 * select, 16, result);
      break;
    default:
      gfx950_set_field(out, 6 * i, 6, result);
    }
  }
}
