/* Tests every native conversion on the host runtime, every output bit against ref/: under the suggested rules, under rules drawn at random,
 * and under every combination of the rules for unscaled stochastic conversions. What a lane gets is put together here from the tables of
 * AMD's ISA, by code that shares nothing with gfx950/host.c. */
#include <utility>

#include "hip_backend/tests/native_test.h"

/* ---- one value, as the rules say, by ref ---- */

static bool is8(int type) { return type == GFX950_E4M3 || type == GFX950_E5M2; }

/* carry: what a stochastic step past the largest value does (sr_carry, sr8_carry); -1: no rule applies. */
static mx_encoding how_of(const gfx950_rules &r, int type, unsigned mode, bool inf, int carry) {
  mx_encoding how = {};
  how.round = MX_ROUND_RNE;
  if (is8(type)) {
    int rule = carry > GFX950_sr_carry_OVERFLOW ? carry : r.fp8_overflow;
    bool saturate = rule == GFX950_fp8_overflow_MODE || (rule == GFX950_fp8_overflow_FINITE && !inf) ? (mode & GFX950_MODE_OVFL) != 0
                                                                                                     : rule == GFX950_fp8_overflow_SATURATE;
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

/* a + b of positive numbers, rounded to odd in binary64, so that rounding it to fewer bits is correct. */
static double sum_odd(double a, double b) {
  if (a < b) std::swap(a, b);
  const double sum = a + b, error = b - (sum - a);
  uint64_t word;
  memcpy(&word, &sum, 8);
  return error == 0 || word & 1 ? sum : nextafter(sum, error > 0 ? INFINITY : 0);
}

static uint32_t narrow_ref(const gfx950_rules &r, unsigned mode, int wide, int type, uint32_t code, unsigned byte, const uint32_t *seed,
                           bool unscaled) {
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
  mx_encoding how = how_of(r, type, mode, isinf(y), -1);
  if (isnan(y) && is8(type) && r.nan_fp8 == GFX950_nan_fp8_DROP) y = fabs(y);
  if (isnan(y) && is8(type) && r.nan_fp8 == GFX950_nan_fp8_SET) y = copysign(y, -1);
  if (isnan(y) && to->bits == 16) {
    uint32_t c = (uint32_t)ref_encode(to, y, &how, 0);
    if (r.nan_16 == GFX950_nan_16_PAYLOAD && !nan_scale) c |= (code & 0x7FFFFF) >> (23 - to->man_bits);
    return c;
  }
  if (isnan(y) || isinf(y) || y == 0) return (uint32_t)ref_encode(to, y, &how, 0);
  const bool subnormal = fabs(y) < ldexp(1, 1 - to->bias);
  if (!seed) {
    if (is8(type) && subnormal && r.fp8_subnormal == GFX950_fp8_subnormal_TWICE) { /* first as if exponents were unbounded */
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
  /* Stochastic: takes as many bits of the seed as a normal result discards. */
  const int which = !unscaled ? 0 : is8(type) ? 1 : 2;
  const int takes[] = {r.sr_seed, r.sr8_seed, r.sr16_seed}, smalls[] = {r.sr_subnormal, r.sr8_subnormal, r.sr16_subnormal},
            rounds[] = {GFX950_sr8_round_TRUNCATE, r.sr8_round, r.sr16_round}, wraps[] = {GFX950_sr8_wrap_KEPT, r.sr8_wrap, r.sr16_wrap},
            carries[] = {r.sr_carry, r.sr8_carry, GFX950_sr_carry_OVERFLOW}, take = takes[which], small = smalls[which];
  int bits = from->man_bits - to->man_bits, top;
  frexp(y, &top);
  top--;
  const int unit = (subnormal ? 1 - to->bias : top) - to->man_bits; /* exponents of the result's last place, and of the source's */
  const int last = top - from->man_bits;
  const bool before = subnormal && small == GFX950_sr_subnormal_BEFORE;
  if (subnormal && small == GFX950_sr_subnormal_WIDE) bits = unit - last > 32 ? 32 : unit - last;
  const uint32_t random = take == GFX950_sr_seed_LOW     ? *seed & (uint32_t)((UINT64_C(1) << bits) - 1)
                          : take == GFX950_sr_seed_LOWER ? *seed << 1 >> (32 - bits)
                          : take == GFX950_sr_seed_HALF  ? *seed >> 1 >> (32 - bits)
                                                         : *seed >> (32 - bits);
  double sum = sum_odd(fabs(y), ldexp(random, before ? last : unit - bits));
  if (wraps[which] == GFX950_sr8_wrap_LOST && (!subnormal || before) && sum >= ldexp(2, top)) sum -= ldexp(1, top);
  if (fabs(y) < ref_format_max(to) + ldexp(1, ref_format_emax(to) -
                                                  to->man_bits)) /* it is below the first value past the largest, so reaching that is a carry */
    how.overflow = how_of(r, type, mode, false, carries[which]).overflow;
  if (rounds[which] != GFX950_sr8_round_NEAREST) { /* a single random bit of 0 truncates, and a sum past the largest value overflows */
    how.round = MX_ROUND_SR;
    how.sr_mode = MX_SR_FASTEST;
    how.sr_bits = 1;
  }
  return (uint32_t)ref_encode(to, copysign(sum, y), &how, 0);
}

static uint32_t widen_ref(const gfx950_rules &r, unsigned mode, int wide, int type, uint32_t code, unsigned byte) {
  const mx_format *from = format_of(type), *to = format_of(wide);
  double v = ref_decode(from, code);
  const uint32_t sign = signbit(v) ? 1u << (to->bits - 1) : 0;
  if (byte == 0xFF && r.scale_ff_up == GFX950_scale_ff_up_NAN) return sign | (uint32_t)to->nan_code;
  if (isnan(v) && r.nan_up == GFX950_nan_up_MINUS) return 1u << (to->bits - 1) | (uint32_t)to->nan_code;
  if (isnan(v)) {
    uint32_t payload = r.nan_up == GFX950_nan_up_PAYLOAD ? (code & ((1u << from->man_bits) - 1)) << (to->man_bits - from->man_bits) : 0;
    return sign | (uint32_t)to->nan_code | payload;
  }
  int e = byte == 0 && r.scale_00 == GFX950_scale_00_E126 ? -126 : (int)byte - 127;
  mx_encoding how = {};
  how.overflow = MX_OVERFLOW_IEEE;
  const int flush = mode & GFX950_MODE_FLUSH ? r.widen_flush : GFX950_widen_flush_KEEP;
  if (flush == GFX950_widen_flush_SOURCE && fabs(v) < ldexp(1, 1 - from->bias)) v = copysign(0, v);
  double wider = ldexp(v, e);
  if (((flush == GFX950_widen_flush_RESULT && wide == GFX950_F32) || (flush == GFX950_widen_flush_RESULT_BF16 && wide != GFX950_F16)) &&
      fabs(wider) < 0x1p-126)
    wider = copysign(0, v);
  return (uint32_t)ref_encode(to, wider, &how, 0);
}

/* ---- one case: registers in, registers out ---- */

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
    /* Where the source begins: byte or word `select`. For UP8_F16, 0-3 select the byte with the low half as destination, 4-7 with the high
     * half. */
    const int from = row.lanes == 32 ? 0 : strstr(row.name, "pk_") ? (e == 4 ? 8 : 16) * select : 8 * (select % 4);
    const int to = row.form == GFX950_UP8_F16 && select >= 4 ? 16 : 0;
    for (int i = 0; i < row.lanes; i++) set_bits(out, to + w * i, w, widen_ref(r, mode, row.wide, row.elem, bits_at(x, from + e * i, e), byte));
    return;
  }
  if (byte == 0xFF && r.scale_ff == GFX950_scale_ff_OLD && row.lanes < 32) return;
  /* Where the result goes, for pairs of 8 and 4 bits and for single bytes. */
  int to = 0;
  if (row.lanes == 2) to = (e == 4 ? 8 : 16) * select;
  if (row.lanes == 1) to = e == 16 ? 16 * select : 8 * select;
  for (int i = 0; i < row.lanes; i++) {
    int at = i;
    if (strstr(row.name, "2xpk16")) at = i % 2 ? 16 + i / 2 : i / 2;
    const uint32_t code = bits_at(x, w * at, w);
    set_bits(out, to + e * i, e, narrow_ref(r, mode, row.wide, row.elem, code, byte, row.kind == GFX950_SR ? &seed : nullptr, unscaled(row)));
    if (r.sr_next == GFX950_sr_next_PRNG || (r.sr_next == GFX950_sr_next_PAIR && i % 2)) seed = step(seed);
  }
}

/* An interesting value of the wide type: a special value, or one near a tie of the element format under this scale. */
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
    /* Halfway between two codes, or a code itself, times the scale, and then a few steps of the wide type to either side. */
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
  if (below(12) == 0) byte = below(24);          /* results below the smallest normal number */
  return (random32() & 0x807FFFFF) | byte << 23; /* sign and mantissa do not matter */
}

/* forms: NULL for every instruction, or only those of two forms. */
static void conversions(const gfx950_rules &rules, unsigned mode, size_t n, const gfx950_form *forms) {
  for (const gfx950_row &row : gfx950_rows)
    for (int select = 0; (!forms || row.form == forms[0] || row.form == forms[1]) && row.kind != GFX950_MFMA && select < row.selects;
         select++) {
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
      /* 1.0 -> code 2 in the low nibble; -6 -> 15 in the high nibble; the other bytes stay. */
      {"gfx950_cvt_scalef32_pk_fp4_f32_s0", 0xA5A5A5A5, {ONE, 0xC0C00000}, ONE, 0, 0xA5A5A5F2},
      {"gfx950_cvt_scalef32_pk_fp4_f32_s3", 0xA5A5A5A5, {ONE, 0xC0C00000}, ONE, 0, 0xF2A5A5A5},
      /* Narrowing divides: 8 / 4 = 2 -> code 4; 20 / 4 = 5 is a tie and goes to 4, code 6. The sign and the mantissa of the scale are
       * ignored. */
      {"gfx950_cvt_scalef32_pk_fp4_f32_s1", 0, {0x41000000, 0x41A00000}, 0xC0FFFFFF, 0, 0x00006400},
      {"gfx950_cvt_scalef32_pk_fp4_f16_s0", 0, {0x46003C00}, ONE, 0, 0x00000072},               /* 1, 6 */
      {"gfx950_cvt_scalef32_pk_fp4_bf16_s2", 0, {0xBF003F80}, ONE, 0, 0x00920000},              /* 1, -0.5 */
      {"gfx950_cvt_scalef32_pk_fp8_f32_s1", 0x12345678, {ONE, 0x43E00000}, ONE, 0, 0x7E385678}, /* 1 -> 38, 448 -> 7E */
      {"gfx950_cvt_scalef32_pk_fp8_f32_s0", 0, {0x43E80000, 0x43E80001}, ONE, 0, 0x00007F7E},   /* 464 ties to 448; above it NaN */
      {"gfx950_cvt_scalef32_pk_bf8_f32_s0", 0, {0x7F800000, 0xFF800000}, ONE, 0, 0x0000FC7C},   /* Inf */
      {"gfx950_cvt_scalef32_pk_f32_fp4_s2", 0, {0x00E10000}, 0x40000000, 0, 0},                 /* two words, checked below */
      {"gfx950_cvt_scalef32_f32_fp8_s3", 0, {0x38000000}, 0x40800000, 0, 0x40800000},           /* 1 * 4 */
      {"gfx950_cvt_scalef32_f16_fp8_s5", 0x11112222, {0x00003800}, ONE, 0, 0x3C002222},         /* byte 1 to the high half */
      /* 1.25 to E2M1 (whose steps are .5 there) is half of a step above a code. The 22 random bits are the top of the seed: it rounds up
       * from half on. */
      {"gfx950_cvt_scalef32_sr_pk_fp4_f32_s0", 0x55555500, {0x3FA00000, 0}, ONE, 0x7FFFFFFF, 0x55555502},
      {"gfx950_cvt_scalef32_sr_pk_fp4_f32_s0", 0x55555500, {0x3FA00000, 0}, ONE, 0x80000000, 0x55555503},
      /* Element 1 uses the next random word, 0x40000000 << 1, which rounds it up. */
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

/* Unscaled stochastic conversions under each combination of the rules for seed, subnormals, sum and carry. */
static void each_stochastic() {
  const gfx950_form forms[] = {GFX950_N8_SR, GFX950_N16_SR};
  for (int way = 0; way < 4 * 3 * 2 * 2; way++) {
    gfx950_rules r = drawn();
    r.sr8_seed = way % 4, r.sr8_subnormal = way / 4 % 3, r.sr8_round = way / 12 % 2, r.sr8_wrap = way / 24;
    r.sr16_seed = 3 - r.sr8_seed, r.sr16_subnormal = 2 - r.sr8_subnormal, r.sr16_round = 1 - r.sr8_round, r.sr16_wrap = r.sr8_wrap;
    conversions(r, below(4), 256, forms);
  }
}

int main() {
  by_hand();
  const gfx950_rules suggested = gfx950_rules_default();
  for (unsigned mode = 0; mode < 4; mode++) conversions(suggested, mode, 512, nullptr);
  for (int i = 0; i < 12; i++) {
    const gfx950_rules r = drawn();
    conversions(r, below(4), 256, nullptr);
  }
  each_stochastic();
  printf("hip native: conversions: %d instructions, 155 kernels, %llu words, %d differ from the reference\n", (int)GFX950_COUNT - 2,
         (unsigned long long)compared, failures);
  return failures != 0;
}
