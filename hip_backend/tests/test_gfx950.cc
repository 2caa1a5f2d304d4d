/* Every native kernel on the host runtime, every output bit against ref/: what a lane gets is put together here, from the tables of AMD's ISA, by code
 * that shares nothing with gfx950_host.c, under the suggested rules and under rules drawn at random. Products also on tiles that tell their
 * position, where no model of accumulation matters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

#include "hip_backend/gfx950/native.h"
#include "mxgold/mma.h"
#include "mxgold/spec.h"
extern "C" {
#include "ref/mma.h"
#include "ref/ref.h"
}

static int failures;
static uint64_t compared;
static void fail(const char *what, const std::string &text) {
  if (failures++ < 20) printf("FAILED: %s: %s\n", what, text.c_str());
}
static std::string hex(uint64_t v) {
  char s[20];
  snprintf(s, sizeof s, "%08llx", (unsigned long long)v);
  return s;
}

static uint64_t state = 88172645463325252u;
static uint64_t random64() {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 2685821657736338717u;
}
static uint32_t random32() { return (uint32_t)(random64() >> 32); }
static unsigned below(unsigned n) { return random32() % n; }

/* Memory of the host runtime. */
struct buffer {
  uint32_t *p;
  size_t n;
  explicit buffer(size_t words) : p((uint32_t *)mxh_host::alloc(words * 4)), n(words) {}
  ~buffer() { mxh_host::release(p); }
  buffer(const buffer &) = delete;
  buffer &operator=(const buffer &) = delete;
  uint32_t &operator[](size_t i) { return p[i]; }
  void written() { mxh_host::set_written(p, n * 4); }
};

static const mx_format *format_of(int type) {
  switch (type) {
  case GFX950_E4M3:
    return mx_elem_format(MX_ELEM_E4M3);
  case GFX950_E5M2:
    return mx_elem_format(MX_ELEM_E5M2);
  case GFX950_E2M3:
    return mx_elem_format(MX_ELEM_E2M3);
  case GFX950_E3M2:
    return mx_elem_format(MX_ELEM_E3M2);
  case GFX950_E2M1:
    return mx_elem_format(MX_ELEM_E2M1);
  case GFX950_F16:
    return mx_operand_format(MX_OPERAND_F16);
  case GFX950_BF16:
    return mx_operand_format(MX_OPERAND_BF16);
  default:
    return mx_operand_format(MX_OPERAND_F32);
  }
}

/* ---- one value, as the rules say, by ref ---- */

static bool is8(int type) { return type == GFX950_E4M3 || type == GFX950_E5M2; }

static mx_encoding how_of(const gfx950_rules &r, int type, unsigned mode, bool carried) {
  mx_encoding how = {};
  how.round = MX_ROUND_RNE;
  if (is8(type)) {
    int rule = carried && r.sr_carry != GFX950_sr_carry_OVERFLOW ? r.sr_carry : r.fp8_overflow;
    bool saturate = rule == 0 ? (mode & GFX950_MODE_OVFL) != 0 : rule == 1;
    how.overflow = saturate ? MX_OVERFLOW_SATURATE : MX_OVERFLOW_IEEE;
    how.nan = r.nan_fp8 == GFX950_nan_fp8_DROP ? MX_ELEM_NAN_POSMAX : MX_ELEM_NAN_SIGNMAX;
    if (type == GFX950_E5M2 && r.nan_bf8 == GFX950_nan_bf8_CODE_7E) how.nan = MX_ELEM_NAN_CODE, how.nan_code = 0x7E;
  } else if (type == GFX950_F16 || type == GFX950_BF16) {
    how.overflow = type == GFX950_F16 && mode & GFX950_MODE_OVFL ? MX_OVERFLOW_SATURATE : MX_OVERFLOW_IEEE;
  } else {
    int rule = type == GFX950_E2M1 ? r.nan_fp4 : r.nan_fp6;
    how.nan = rule == 0 ? MX_ELEM_NAN_SIGNMAX : rule == 1 ? MX_ELEM_NAN_POSMAX : MX_ELEM_NAN_ZERO;
  }
  return how;
}

static uint32_t narrow_ref(const gfx950_rules &r, unsigned mode, int wide, int type, uint32_t code, unsigned byte, const uint32_t *seed) {
  const mx_format *from = format_of(wide), *to = format_of(type);
  double x = ref_decode(from, code);
  const bool flush =
      r.f32_subnormal == GFX950_f32_subnormal_FLUSH || (r.f32_subnormal == GFX950_f32_subnormal_MODE && mode & GFX950_MODE_FLUSH);
  if (wide == GFX950_F32 && flush && fabs(x) < 0x1p-126) x = copysign(0, x);
  bool nan_scale = byte == 0xFF && r.scale_ff != GFX950_scale_ff_TWO128;
  if (nan_scale) x = copysign((double)NAN, x);
  int e = (int)byte - 127;
  if (byte == 0 && r.scale_00 == GFX950_scale_00_E126) e = -126;
  double y = ldexp(x, -e);
  mx_encoding how = how_of(r, type, mode, false);
  if (isnan(y) && is8(type) && r.nan_fp8 == GFX950_nan_fp8_DROP) y = fabs(y);
  if (isnan(y) && to->bits == 16) {
    uint32_t c = (uint32_t)ref_encode(to, y, &how, 0);
    if (r.nan_16 == GFX950_nan_16_PAYLOAD && !nan_scale) c |= (code & 0x7FFFFF) >> (23 - to->man_bits);
    return c;
  }
  if (isnan(y) || isinf(y) || y == 0) return (uint32_t)ref_encode(to, y, &how, 0);
  const bool subnormal = fabs(y) < ldexp(1, 1 - to->bias);
  if (!seed) {
    if (is8(type) && subnormal && r.fp8_subnormal == GFX950_fp8_subnormal_TWICE) { /* first as if the exponent had no end */
      mx_format wider = *to;
      wider.bits = (uint8_t)(1 + 9 + to->man_bits);
      wider.exp_bits = 9;
      wider.bias = 255 + 128;
      wider.max_code = (1u << (wider.bits - 1)) - 1;
      wider.inf_code = wider.nan_first = wider.nan_last = wider.nan_code = MX_NO_CODE;
      mx_encoding plain = {};
      y = ref_decode(&wider, ref_encode(&wider, y, &plain, 0));
    }
    return (uint32_t)ref_encode(to, y, &how, 0);
  }
  /* Stochastic: r bits of the seed; how many is also how many are discarded of a normal result. */
  const uint32_t word = r.sr_seed == GFX950_sr_seed_LOWER ? *seed << 1 : r.sr_seed == GFX950_sr_seed_HALF ? *seed >> 1 : *seed;
  int bits = from->man_bits - to->man_bits;
  int top;
  frexp(y, &top);
  top--;
  if (subnormal && r.sr_subnormal == GFX950_sr_subnormal_BEFORE) {
    /* A number of from's mantissa, plus bits below to's last place of a normal number, then cut. */
    double sum = fabs(y) + ldexp(word >> (32 - bits), top - from->man_bits);
    how.round = MX_ROUND_RTZ;
    return (uint32_t)ref_encode(to, copysign(sum, y), &how, 0);
  }
  if (subnormal && r.sr_subnormal == GFX950_sr_subnormal_WIDE) {
    bits = (1 - to->bias - to->man_bits) - (top - from->man_bits);
    if (bits > 32) bits = 32;
  }
  how.round = MX_ROUND_SR;
  how.sr_mode = MX_SR_FASTEST;
  how.sr_bits = bits;
  const uint32_t random = word >> (32 - bits);
  if (fabs(y) <
      ref_format_max(to) + ldexp(1, ref_format_emax(to) - to->man_bits)) { /* below the first value past the largest: that is a carry */
    mx_encoding carried = how_of(r, type, mode, true);
    how.overflow = carried.overflow;
  }
  return (uint32_t)ref_encode(to, y, &how, random);
}

static uint32_t widen_ref(const gfx950_rules &r, int wide, int type, uint32_t code, unsigned byte) {
  const mx_format *from = format_of(type), *to = format_of(wide);
  double v = ref_decode(from, code);
  const uint32_t sign = signbit(v) ? 1u << (to->bits - 1) : 0;
  if (byte == 0xFF && r.scale_ff_up == GFX950_scale_ff_up_NAN) return sign | (uint32_t)to->nan_code;
  if (isnan(v)) {
    uint32_t payload = r.nan_up == GFX950_nan_up_PAYLOAD ? (code & ((1u << from->man_bits) - 1)) << (to->man_bits - from->man_bits) : 0;
    return sign | (uint32_t)to->nan_code | payload;
  }
  int e = byte == 0 && r.scale_00 == GFX950_scale_00_E126 ? -126 : (int)byte - 127;
  mx_encoding how = {};
  how.overflow = MX_OVERFLOW_IEEE;
  return (uint32_t)ref_encode(to, ldexp(v, e), &how, 0);
}

/* ---- one case: registers in, registers out ---- */

static uint32_t bits_at(const uint32_t *w, int bit, int n) { /* bit by bit: no shortcuts */
  uint32_t v = 0;
  for (int i = 0; i < n; i++) v |= (w[(bit + i) / 32] >> (bit + i) % 32 & 1) << i;
  return v;
}
static void set_bits(uint32_t *w, int bit, int n, uint32_t v) {
  for (int i = 0; i < n; i++) {
    w[(bit + i) / 32] &= ~(1u << (bit + i) % 32);
    w[(bit + i) / 32] |= (v >> i & 1) << (bit + i) % 32;
  }
}
static uint32_t step(uint32_t s) { return ref_random_lfsr(s); }

static bool unscaled(const gfx950_row &row) { return !strstr(row.name, "scalef32"); }

static void expected(const gfx950_rules &r, unsigned mode, const gfx950_row &row, int select, uint32_t *out, const uint32_t *x, uint32_t scale,
                     uint32_t seed) {
  if (row.kind == GFX950_PRNG) {
    out[0] = step(x[0]);
    return;
  }
  const unsigned byte = unscaled(row) ? 127 : scale >> 23 & 0xFF;
  const int w = format_of(row.wide)->bits, e = format_of(row.elem)->bits;
  if (row.kind == GFX950_WIDEN) {
    /* Where the source begins: byte or word `select`. UP8_F16: selects 0-3 the byte with the low half as destination, 4-7 with the high half. */
    const int from = row.lanes == 32 ? 0 : strstr(row.name, "pk_") ? (e == 4 ? 8 : 16) * select : 8 * (select % 4);
    const int to = row.form == GFX950_UP8_F16 && select >= 4 ? 16 : 0;
    for (int i = 0; i < row.lanes; i++) set_bits(out, to + w * i, w, widen_ref(r, row.wide, row.elem, bits_at(x, from + e * i, e), byte));
    return;
  }
  if (byte == 0xFF && r.scale_ff == GFX950_scale_ff_OLD && row.lanes < 32) return;
  /* Where the result goes: 8-bit and 4-bit pairs and single bytes. */
  int to = 0;
  if (row.lanes == 2) to = (e == 4 ? 8 : 16) * select;
  if (row.lanes == 1) to = e == 16 ? 16 * select : 8 * select;
  for (int i = 0; i < row.lanes; i++) {
    int at = i;
    if (strstr(row.name, "2xpk16")) at = i % 2 ? 16 + i / 2 : i / 2;
    const uint32_t code = bits_at(x, w * at, w);
    set_bits(out, to + e * i, e, narrow_ref(r, mode, row.wide, row.elem, code, byte, row.kind == GFX950_SR ? &seed : nullptr));
    if (r.sr_next == GFX950_sr_next_PRNG) seed = step(seed);
  }
}

/* A value of the wide type where something happens: specials, and the neighbourhood of ties of the element under this scale. */
static uint32_t wide_value(int wide, int elem, unsigned byte) {
  const mx_format *f = format_of(wide), *to = format_of(elem);
  const uint32_t sign = (random32() & 1) << (f->bits - 1), mask = (uint32_t)((UINT64_C(1) << f->bits) - 1);
  switch (below(8)) {
  case 0:
    return random32() & mask;
  case 1: {
    const uint32_t all[] = {0,
                            1,
                            2,
                            (uint32_t)f->inf_code,
                            (uint32_t)f->nan_code,
                            (uint32_t)f->nan_last,
                            (uint32_t)f->nan_first,
                            (uint32_t)f->max_code,
                            1u << f->man_bits,
                            (1u << f->man_bits) - 1,
                            (uint32_t)f->nan_code | 5u << (f->man_bits - 4)};
    return sign | all[below(sizeof all / sizeof *all)];
  }
  case 2:
    return sign | (random32() & ((1u << f->man_bits) - 1)); /* subnormal */
  default: {
    if (elem == GFX950_NONE) return random32() & mask;
    /* Halfway between two codes, or a code itself, times the scale; then a few steps of the wide type to either side. */
    const uint32_t code = random32() & (uint32_t)(to->max_code);
    double v = ref_decode(to, code), gap = ldexp(1, (code >> to->man_bits ? (int)(code >> to->man_bits) : 1) - to->bias - to->man_bits);
    if (!isfinite(v)) v = ref_format_max(to), gap = ldexp(1, ref_format_emax(to) - to->man_bits);
    v += gap * (below(3) ? below(9) / 8.0 : 0.5);
    mx_encoding how = {};
    uint32_t c = (uint32_t)ref_encode(f, ldexp(v, (int)byte - 127), &how, 0);
    const uint32_t steps = below(4) ? below(3) : below(1u << (f->man_bits / 2));
    c = random32() & 1 ? c + steps : c > steps ? c - steps : c;
    return sign | (c & (mask >> 1));
  }
  }
}
static uint32_t scale_value(int wide) {
  unsigned byte = below(8) ? 127 - 12 + below(24) : below(256);
  if (wide != GFX950_F16 && below(3) == 0) byte = 20 + below(220);
  if (below(12) == 0) byte = below(2) ? 0xFF : 0;
  return (random32() & 0x807FFFFF) | byte << 23; /* sign and mantissa do not matter */
}

static void conversions(const gfx950_rules &rules, unsigned mode, size_t n) {
  for (const gfx950_row &row : gfx950_rows)
    for (int select = 0; row.kind != GFX950_MFMA && select < row.selects; select++) {
      const std::string kernel = "gfx950_" + std::string(row.name) + "_s" + std::to_string(select);
      const size_t nx = (size_t)row.words_x, no = (size_t)row.words_out;
      buffer x(n * nx), out(n * no), scale(n), seed(n);
      std::vector<uint32_t> want(n * no);
      for (size_t i = 0; i < n; i++) {
        scale[i] = scale_value(row.wide);
        seed[i] = below(8) ? random32() : below(2) ? UINT32_MAX : below(2) ? 0 : 1u << below(32);
        const unsigned byte = unscaled(row) ? 127 : scale[i] >> 23 & 0xFF;
        const int w = format_of(row.wide)->bits;
        for (size_t j = 0; j < nx; j++) x[i * nx + j] = random32();
        if (row.kind == GFX950_NARROW || row.kind == GFX950_SR)
          for (int k = 0; k < (int)nx * 32 / w; k++) set_bits(&x[i * nx], k * w, w, wide_value(row.wide, row.elem, byte));
        for (size_t j = 0; j < no; j++) out[i * no + j] = row.has_old ? random32() : 0;
      }
      for (size_t i = 0; i < n * no; i++) want[i] = out[i];
      for (size_t i = 0; i < n; i++) expected(rules, mode, row, select, &want[i * no], &x[i * nx], scale[i], seed[i]);
      x.written(), scale.written(), seed.written();
      if (row.has_old) out.written();
      gfx950_convert_args a = {};
      a.out = out.p, a.x = x.p, a.scale = scale.p, a.seed = seed.p;
      a.n = (uint32_t)n;
      a.env.mode = mode, a.env.rules = &rules;
      if (mxh_host::launch(kernel.c_str(), (unsigned)(n + 255) / 256, 256, &a, sizeof a)) fail(kernel.c_str(), mxh_host::reports());
      for (size_t i = 0; i < n * no; i++, compared++)
        if (out[i] != want[i]) {
          const size_t c = i / no;
          fail(kernel.c_str(), "case " + std::to_string(c) + " word " + std::to_string(i % no) + ": " + hex(out[i]) + ", the reference has " +
                                   hex(want[i]) + "; x " + hex(x[c * nx]) + " scale " + hex(scale[c]) + " seed " + hex(seed[c]) + " mode " +
                                   std::to_string(mode));
          break;
        }
    }
}

/* ---- by hand ---- */

static void by_hand() {
  const gfx950_rules rules = gfx950_rules_default();
  struct one {
    const char *kernel;
    uint32_t old, x[2], scale, seed, want;
  };
#define ONE 0x3F800000u
  const one all[] = {
      /* 1.0 -> code 2, low nibble; -6 -> 15, high nibble; the other bytes stay. */
      {"gfx950_cvt_scalef32_pk_fp4_f32_s0", 0xA5A5A5A5, {ONE, 0xC0C00000}, ONE, 0, 0xA5A5A5F2},
      {"gfx950_cvt_scalef32_pk_fp4_f32_s3", 0xA5A5A5A5, {ONE, 0xC0C00000}, ONE, 0, 0xF2A5A5A5},
      /* Narrowing divides: 8 / 4 = 2 -> 4, 5 * ... 20 / 4 = 5, a tie, -> 4 (code 6). The scale's sign and mantissa do not count. */
      {"gfx950_cvt_scalef32_pk_fp4_f32_s1", 0, {0x41000000, 0x41A00000}, 0xC0FFFFFF, 0, 0x00006400},
      {"gfx950_cvt_scalef32_pk_fp4_f16_s0", 0, {0x46003C00}, ONE, 0, 0x00000072},               /* 1, 6 */
      {"gfx950_cvt_scalef32_pk_fp4_bf16_s2", 0, {0xBF003F80}, ONE, 0, 0x00920000},              /* 1, -0.5 */
      {"gfx950_cvt_scalef32_pk_fp8_f32_s1", 0x12345678, {ONE, 0x43E00000}, ONE, 0, 0x7E385678}, /* 1 -> 38, 448 -> 7E */
      {"gfx950_cvt_scalef32_pk_fp8_f32_s0", 0, {0x43E80000, 0x43E80001}, ONE, 0, 0x00007F7E},   /* 464 ties to 448; above it NaN */
      {"gfx950_cvt_scalef32_pk_bf8_f32_s0", 0, {0x7F800000, 0xFF800000}, ONE, 0, 0x0000FC7C},   /* Inf */
      {"gfx950_cvt_scalef32_pk_f32_fp4_s2", 0, {0x00E10000}, 0x40000000, 0, 0},                 /* two words: below */
      {"gfx950_cvt_scalef32_f32_fp8_s3", 0, {0x38000000}, 0x40800000, 0, 0x40800000},           /* 1 * 4 */
      {"gfx950_cvt_scalef32_f16_fp8_s5", 0x11112222, {0x00003800}, ONE, 0, 0x3C002222},         /* byte 1 to the high half */
      /* 1.25 to E2M1 (steps of .5 there): d = 1/2 of a step. 22 random bits at the top of the seed: up from half on. */
      {"gfx950_cvt_scalef32_sr_pk_fp4_f32_s0", 0x55555500, {0x3FA00000, 0}, ONE, 0x7FFFFFFF, 0x55555502},
      {"gfx950_cvt_scalef32_sr_pk_fp4_f32_s0", 0x55555500, {0x3FA00000, 0}, ONE, 0x80000000, 0x55555503},
      /* Element 1 uses the next word: 0x40000000 << 1 is up there. */
      {"gfx950_cvt_scalef32_sr_pk_fp4_f32_s0", 0, {0x3FA00000, 0x3FA00000}, ONE, 0x40000000, 0x00000032},
      {"gfx950_cvt_scalef32_sr_fp8_f32_s2", 0, {0x3F880000}, ONE, 0x7FFFFFFF, 0x00380000}, /* 1.0625, a tie of E4M3 */
      {"gfx950_cvt_scalef32_sr_fp8_f32_s2", 0, {0x3F880000}, ONE, 0x80000000, 0x00390000},
      {"gfx950_cvt_pk_fp8_f32_s1", 0x0000BEEF, {ONE, 0xBF800000}, 0, 0, 0xB838BEEF},
      {"gfx950_cvt_f32_bf8_s1", 0, {0x00003C00}, 0, 0, ONE},
      {"gfx950_cvt_sr_bf16_f32_s1", 0x00001234, {0x3F808000}, 0, 0x80000000, 0x3F811234},
      {"gfx950_cvt_sr_bf16_f32_s0", 0x12340000, {0x3F808000}, 0, 0x7FFFFFFF, 0x12343F80},
      {"gfx950_prng_b32_s0", 0, {0x80000001}, 0, 0, 0x000000C7},
  };
  for (const one &t : all) {
    const gfx950_row *row = nullptr;
    for (const gfx950_row &r : gfx950_rows)
      if (std::string(t.kernel).compare(7, strlen(r.name) + 2, std::string(r.name) + "_s") == 0) row = &r;
    if (!row || row->words_out != 1) continue;
    buffer x((size_t)row->words_x), out(1), scale(1), seed(1);
    for (int i = 0; i < row->words_x; i++) x[(size_t)i] = t.x[i];
    out[0] = t.old, scale[0] = t.scale, seed[0] = t.seed;
    x.written(), out.written(), scale.written(), seed.written();
    gfx950_convert_args a = {};
    a.out = out.p, a.x = x.p, a.scale = scale.p, a.seed = seed.p, a.n = 1, a.env.rules = &rules;
    if (mxh_host::launch(t.kernel, 1, 64, &a, sizeof a)) fail(t.kernel, mxh_host::reports());
    compared++;
    if (out[0] != t.want) fail(t.kernel, hex(out[0]) + ", by hand " + hex(t.want));
  }
  /* Both codes of byte 2 (1 low: 0.5, E high: -4), times 2. */
  buffer x(1), out(2), one(1);
  x[0] = 0x00E10000, one[0] = 0x40000000;
  x.written(), one.written();
  gfx950_convert_args a = {};
  a.out = out.p, a.x = x.p, a.scale = one.p, a.seed = one.p, a.n = 1, a.env.rules = &rules;
  if (mxh_host::launch("gfx950_cvt_scalef32_pk_f32_fp4_s2", 1, 64, &a, sizeof a)) fail("pk_f32_fp4", mxh_host::reports());
  if (out[0] != ONE || out[1] != 0xC1000000) fail("pk_f32_fp4 by hand", hex(out[0]) + " " + hex(out[1]));
  compared += 2;
}

/* ---- products ---- */

/* The lane and first bit of element (row, k): HARDWARE table, written out again. F8 comes in two chunks of K. */
static void place(int m, int bits, int row, int k, int *lane, int *bit) {
  if (bits < 8) {
    *lane = row + m * (k / 32);
    *bit = bits * (k % 32);
  } else {
    const int half = m == 16 ? 64 : 32;
    *lane = row + m * ((k % half) / 16);
    *bit = 8 * (k % 16) + (k >= half ? 128 : 0);
  }
}

struct tile {
  int m, depth, blocks, type[2];
  std::vector<uint8_t> code[2], scale[2]; /* [m][depth], [m][blocks] */
  std::vector<uint32_t> c, d;             /* [m][m] */
  tile(int edge, int type_a, int type_b)
      : m(edge), depth(edge == 16 ? 128 : 64), blocks(depth / 32), type{type_a, type_b}, c((size_t)(m * m)), d((size_t)(m * m)) {
    for (int s = 0; s < 2; s++) {
      code[s].assign((size_t)(m * depth), 0);
      scale[s].assign((size_t)(m * blocks), 127);
    }
  }
  /* Run the kernel. Returns false after a report. */
  bool run(int select, const gfx950_env &env) {
    const size_t regs = m == 16 ? 4 : 16;
    buffer a(64 * 8), b(64 * 8), cc(64 * regs), dd(64 * regs), sa(64), sb(64);
    buffer *data[] = {&a, &b}, *scales[] = {&sa, &sb};
    for (int s = 0; s < 2; s++) {
      for (size_t i = 0; i < 512; i++) (*data[s])[i] = random32(); /* registers that the format does not use hold anything */
      const int bits = format_of(type[s])->bits, byte = s ? select / 4 : select % 4;
      for (int row = 0; row < m; row++)
        for (int k = 0; k < depth; k++) {
          int lane, bit;
          place(m, bits, row, k, &lane, &bit);
          set_bits(&(*data[s])[(size_t)lane * 8], bit, bits, code[s][(size_t)(row * depth + k)]);
        }
      for (int lane = 0; lane < 64; lane++) {
        (*scales[s])[(size_t)lane] = random32(); /* so do the bytes that are not selected */
        set_bits(&(*scales[s])[(size_t)lane], 8 * byte, 8, scale[s][(size_t)(lane % m * blocks + lane / m)]);
      }
    }
    for (int lane = 0; lane < 64; lane++)
      for (int reg = 0; reg < (int)regs; reg++) cc[(size_t)lane * regs + (size_t)reg] = c[(size_t)at(lane, reg)];
    a.written(), b.written(), cc.written(), sa.written(), sb.written();
    gfx950_mfma_args args = {};
    args.a = a.p, args.b = b.p, args.c = cc.p, args.d = dd.p, args.scale_a = sa.p, args.scale_b = sb.p, args.env = env;
    const std::string kernel = name(select);
    if (mxh_host::launch(kernel.c_str(), 1, 64, &args, sizeof args)) {
      fail(kernel.c_str(), mxh_host::reports());
      return false;
    }
    for (int lane = 0; lane < 64; lane++)
      for (int reg = 0; reg < (int)regs; reg++) d[(size_t)at(lane, reg)] = dd[(size_t)lane * regs + (size_t)reg];
    return true;
  }
  int at(int lane, int reg) const {
    const int col = m == 16 ? lane % 16 : lane % 32;
    const int row = m == 16 ? 4 * (lane / 16) + reg : 8 * (reg / 4) + 4 * (lane / 32) + reg % 4;
    return row * m + col;
  }
  std::string name(int select) const {
    return std::string("gfx950_mfma_scale_f32_") + (m == 16 ? "16x16x128" : "32x32x64") + "_f8f6f4_a" + std::to_string(type[0]) + "_b" +
           std::to_string(type[1]) + "_s" + std::to_string(select);
  }
};

static uint8_t one_of(int type) { return (uint8_t)(format_of(type)->bias << format_of(type)->man_bits); }

/* Row i of one side has a single 1, at k = k0(i); the other side's element (j, k) is one bit of its own position. The sum of a few such products says
 * which element each lane held. Sums of one product are exact under any model. */
static void positions(int m, int type_a, int type_b, int select) {
  gfx950_rules rules = gfx950_rules_default();
  gfx950_env env = {};
  env.rules = &rules;
  const int log2k = m == 16 ? 7 : 6, log2m = m == 16 ? 4 : 5;
  for (int side = 0; side < 2; side++)
    for (int digit = 0; digit < log2k + log2m; digit++) {
      tile t(m, type_a, type_b);
      const int hot = side, told = 1 - side, shift = (int)below((unsigned)t.depth);
      for (int i = 0; i < m; i++) t.code[hot][(size_t)(i * t.depth + (i * (t.depth / m) + shift) % t.depth)] = one_of(t.type[hot]);
      for (int j = 0; j < m; j++)
        for (int k = 0; k < t.depth; k++) t.code[told][(size_t)(j * t.depth + k)] = (j * t.depth + k) >> digit & 1 ? one_of(t.type[told]) : 0;
      /* Scales tell theirs: 2^(their row's number, mod 8, plus 8 times the block's). */
      for (int s = 0; s < 2; s++)
        for (int r = 0; r < m; r++)
          for (int block = 0; block < t.blocks; block++)
            t.scale[s][(size_t)(r * t.blocks + block)] = (uint8_t)(100 + (s ? r / 8 : r % 8) + 8 * block);
      if (!t.run(select, env)) return;
      for (int row = 0; row < m; row++)
        for (int col = 0; col < m; col++) {
          const int i = hot ? col : row, j = hot ? row : col, k = (i * (t.depth / m) + shift) % t.depth, block = k / 32;
          const int exp = t.scale[0][(size_t)(row * t.blocks + block)] + t.scale[1][(size_t)(col * t.blocks + block)] - 254;
          const uint32_t want = (j * t.depth + k) >> digit & 1 ? (uint32_t)(exp + 127) << 23 : 0;
          compared++;
          if (t.d[(size_t)(row * m + col)] != want) {
            fail(t.name(select).c_str(), "position: D[" + std::to_string(row) + "][" + std::to_string(col) + "] " +
                                             hex(t.d[(size_t)(row * m + col)]) + ", expected " + hex(want));
            return;
          }
        }
    }
}

static std::vector<uint8_t> packed(const tile &t, int side, int row) {
  std::vector<uint8_t> p;
  for (int k = 0; k < t.depth; k++) {
    const uint8_t c = t.code[side][(size_t)(row * t.depth + k)];
    if (format_of(t.type[side])->bits > 4)
      p.push_back(c);
    else if (k % 2)
      p.back() = (uint8_t)(p.back() | c << 4);
    else
      p.push_back(c);
  }
  return p;
}

/* One output by ref_mma, with the rules that it does not know put around it. */
static uint32_t product_ref(const tile &t, const gfx950_rules &rules, unsigned mode, int row, int col) {
  mx_mma_model model = {};
  mx_format finite = *mx_scale_format(MX_SCALE_E8M0);
  model.accum = rules.accum[gfx950_pair(t.m, t.type[0], t.type[1])];
  model.a = format_of(t.type[0]), model.b = format_of(t.type[1]);
  model.c = model.d = mx_operand_format(MX_OPERAND_F32);
  model.scale = mx_scale_format(MX_SCALE_E8M0);
  model.block = 32;
  model.k = t.depth;
  if (rules.mfma_scale_ff == GFX950_mfma_scale_ff_TWO128) { /* E8M0 without its NaN */
    finite.max_code = 0xFF;
    finite.nan_first = finite.nan_last = finite.nan_code = MX_NO_CODE;
    model.scale = &finite;
  }
  std::vector<uint8_t> a = packed(t, 0, row), b = packed(t, 1, col), sa, sb;
  bool inf = false;
  for (int block = 0; block < t.blocks; block++) {
    uint8_t x = t.scale[0][(size_t)(row * t.blocks + block)], y = t.scale[1][(size_t)(col * t.blocks + block)];
    if (rules.mfma_scale_ff == GFX950_mfma_scale_ff_SKIP_ZERO && (x == 0xFF || y == 0xFF)) {
      bool zero = true;
      for (int k = 32 * block; k < 32 * block + 32; k++)
        zero &= ref_decode(model.a, t.code[0][(size_t)(row * t.depth + k)]) == 0 ||
                ref_decode(model.b, t.code[1][(size_t)(col * t.depth + k)]) == 0;
      if (zero) x = y = 1;
    }
    sa.push_back(x), sb.push_back(y);
  }
  for (int k = 0; k < t.depth; k++)
    inf |= isinf(ref_decode(model.a, t.code[0][(size_t)(row * t.depth + k)])) ||
           isinf(ref_decode(model.b, t.code[1][(size_t)(col * t.depth + k)]));
  const uint32_t c = t.c[(size_t)(row * t.m + col)];
  uint32_t d = 0;
  mx_mma_args args = {1, 1, 1, (size_t)t.depth, a.data(), b.data(), &c, sa.data(), sb.data()};
  if (ref_mma(&d, &model, &args) != MX_OK) fail("ref_mma", "refused");
  const double value = ref_decode(model.d, d), from = ref_decode(model.c, c);
  if (isnan(value)) {
    if (rules.mfma_nan == GFX950_mfma_nan_ONES) return 0x7FFFFFFF;
    return rules.mfma_nan == GFX950_mfma_nan_C && isnan(from) ? c | 0x00400000 : 0x7FC00000;
  }
  if (isinf(value) && !inf && !isinf(from) && rules.mfma_overflow == GFX950_mfma_overflow_MODE && mode & GFX950_MODE_OVFL) d -= 1;
  return d;
}

static void products(int m, int type_a, int type_b, int select, const gfx950_rules &rules, unsigned mode, int outputs) {
  tile t(m, type_a, type_b);
  const unsigned kind = below(5);
  for (int s = 0; s < 2; s++) {
    const mx_format *f = format_of(t.type[s]);
    for (size_t i = 0; i < t.code[s].size(); i++) {
      uint32_t code = random32() & ((1u << f->bits) - 1);
      if (kind < 4 && f->bits == 8) { /* exponents near each other, no specials */
        code = (code & ((1u << (f->man_bits + 2)) - 1)) | (unsigned)(f->bias - 2) << f->man_bits | (random32() & 1) << 7;
        if ((code & 0x7F) > f->max_code) code = 0;
      }
      if (kind == 3 && below(4)) code = 0;
      t.code[s][i] = (uint8_t)code;
    }
    for (uint8_t &v : t.scale[s]) v = (uint8_t)(kind == 4 ? random32() : 120 + below(kind == 0 ? 2 : 14));
    if (kind == 4 || kind == 3) t.scale[s][below((unsigned)t.scale[s].size())] = 0xFF;
  }
  for (uint32_t &c : t.c) {
    c = kind == 4 ? random32() : (random32() & 0x807FFFFF) | (unsigned)(110 + below(40)) << 23;
    if (below(5) == 0) c = 0;
    if (kind == 3 && below(5) == 0) c = 0x7FA00005;
    if (kind == 2) c = 0x7F7FFFFF; /* at the edge of overflow */
  }
  if (kind == 2)
    for (int s = 0; s < 2; s++)
      for (uint8_t &v : t.scale[s]) v = (uint8_t)(178 + below(14));
  gfx950_env env = {};
  env.rules = &rules, env.mode = mode;
  if (!t.run(select, env)) return;
  for (int n = 0; n < outputs; n++) {
    const int row = (int)below((unsigned)m), col = (int)below((unsigned)m);
    const uint32_t want = product_ref(t, rules, mode, row, col), got = t.d[(size_t)(row * m + col)];
    compared++;
    if (got != want) {
      fail(t.name(select).c_str(), "kind " + std::to_string(kind) + " D[" + std::to_string(row) + "][" + std::to_string(col) + "] " + hex(got) +
                                       ", the reference has " + hex(want) + ", C " + hex(t.c[(size_t)(row * m + col)]));
      return;
    }
  }
}

/* A device that no document describes: each rule by chance, and one of the candidates for the sums. */
static gfx950_rules drawn() {
  static const char *const sums[] = {
      "cdna4_like_cdna3", "cdna4_like_cdna3_rz",        "cdna4_block32",          "cdna4_block32_evenodd", "cdna4_whole",
      "cdna4_exact32",    "fused:L=16,F=25,out=f32rne", "fused:L=4,F=30,join=add"};
  gfx950_rules r = gfx950_rules_default();
  for (int i = 0; gfx950_rule_name(i, nullptr); i++) {
    unsigned n = 0;
    while (gfx950_choice_name(i, (int)n, nullptr)) n++;
    *gfx950_rule_of(&r, i) = (int)below(n);
  }
  const bool each = below(2) != 0; /* each pair of types sums in its own way */
  for (int pair = 0; pair < GFX950_PAIRS; pair++) {
    mx_mma_model m;
    if (pair && !each) break;
    if (mx_mma_model_find(&m, sums[below(8)], nullptr) != MX_OK) fail("model", "not found");
    if (each)
      r.accum[pair] = m.accum;
    else
      gfx950_rules_sums(&r, &m.accum);
  }
  return r;
}

int main() {
  by_hand();
  const gfx950_rules suggested = gfx950_rules_default();
  for (unsigned mode = 0; mode < 4; mode++) conversions(suggested, mode, 512);
  for (int i = 0; i < 12; i++) {
    const gfx950_rules r = drawn();
    conversions(r, below(4), 256);
  }
  const uint64_t converted = compared;
  for (int m = 16; m <= 32; m += 16)
    for (int a = 0; a < 5; a++)
      for (int b = 0; b < 5; b++) {
        positions(m, a, b, (int)below(16));
        for (int select = 0; select < 16; select++) {
          const gfx950_rules r = select % 2 ? drawn() : suggested;
          products(m, a, b, select, r, below(4), select == 0 ? 64 : 8);
        }
      }
  printf("hip native: %d instructions, 955 kernels, %llu words of conversions and %llu outputs of products, %d differ from the reference\n",
         (int)GFX950_COUNT, (unsigned long long)converted, (unsigned long long)(compared - converted), failures);
  return failures != 0;
}
