/* Tests that the kernels on the host runtime, under the suggested rules, give what the tests of other projects say about gfx950's instructions.
 * Inputs and answers are theirs, typed here as facts without any of their code:
 *   hip-fpsan            ROCm/hip-fpsan, tests/cvt_scalef32_mx_gfx950_test.cpp and cvt_gfx950_test.cpp, which their authors ran on a gfx950;
 *   Composable Kernel    ROCm/composable_kernel, test/mx_mfma_op/mx_mfma_op.hpp: the register tables by which its tests load operands on a gfx950;
 *   rocjitsu             ROCm/rocm-systems, emulation/rocjitsu, tests of util/data_types.h: those of an emulator, not of silicon.
 * This project has run none of it on silicon. tools/check-gfx950.py has the words that rocjitsu's and LLVM's tests decode (encodings.s). */
#include "hip_backend/tests/native_test.h"

typedef std::vector<uint32_t> words;
static const uint32_t ONE = 0x3F800000, FOUR = 0x40800000, OLD = 0xABCDEF12;

/* The positive values of the formats by code: OCP MX v1.0, tables 5 and 4. */
static const float E2M1[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
static const float E2M3[32] = {0, .125f, .25f, .375f, .5f, .625f, .75f, .875f, 1, 1.125f, 1.25f, 1.375f, 1.5f, 1.625f, 1.75f, 1.875f,
                               2, 2.25f, 2.5f, 2.75f, 3,   3.25f, 3.5f, 3.75f, 4, 4.5f,   5,     5.5f,   6,    6.5f,   7,     7.5f};
static const float E3M2[32] = {0, .0625f, .125f, .1875f, .25f, .3125f, .375f, .4375f, .5f, .625f, .75f, .875f, 1,  1.25f, 1.5f, 1.75f,
                               2, 2.5f,   3,     3.5f,   4,    5,      6,     7,      8,   10,    12,   14,    16, 20,    24,   28};

static uint32_t bits_of(float f) {
  uint32_t v;
  memcpy(&v, &f, 4);
  return v;
}
static float signed_of(const float *table, int codes, int code) { return code < codes ? table[code] : copysignf(table[code - codes], -1); }

static uint64_t differ;
static void expect(const char *what, uint64_t where, uint32_t got, uint32_t want) {
  compared++;
  if (got == want) return;
  differ++;
  fail(what, "case " + std::to_string(where) + ": " + hex(got) + ", the source has " + hex(want));
}
static void source(const char *name) { /* prints what was compared since the last source */
  printf("hip native: published, %s: %llu values, %llu differ\n", name, (unsigned long long)compared, (unsigned long long)differ);
  compared = differ = 0;
}

/* Runs cases of one conversion, one in each lane. */
static words convert(int row, int select, const words &from, uint32_t scale, uint32_t seed, uint32_t old = 0, unsigned mode = 0,
                     const gfx950_rules &rules = gfx950_rules_default()) {
  const gfx950_row &r = gfx950_rows[row];
  const size_t n = from.size() / (size_t)r.words_x;
  buffer x(from.size()), out(n * (size_t)r.words_out), scales(n), seeds(n);
  for (size_t i = 0; i < from.size(); i++) x[i] = from[i];
  for (size_t i = 0; i < out.n; i++) out[i] = old;
  for (size_t i = 0; i < n; i++) scales[i] = scale, seeds[i] = seed;
  x.written(), out.written(), scales.written(), seeds.written();
  gfx950_convert_args a = {};
  a.out = out.p, a.x = x.p, a.scale = scales.p, a.seed = seeds.p, a.n = (uint32_t)n;
  a.env.mode = mode, a.env.rules = &rules;
  const std::string kernel = "gfx950_" + std::string(r.name) + "_s" + std::to_string(select);
  if (mxh_host::launch(kernel.c_str(), (unsigned)(n + 255) / 256, 256, &a, sizeof a)) fail(kernel.c_str(), mxh_host::reports());
  return words(out.p, out.p + out.n);
}
#define ROW(name) GFX950_I_cvt_##name

/* ---- hip-fpsan ---- */

static void fp4() {
  words x;
  for (uint32_t c = 0; c < 16; c++) x.push_back(c | c << 4);
  words y = convert(ROW(scalef32_pk_f32_fp4), 0, x, ONE, 0);
  for (size_t i = 0; i < y.size(); i++) expect("WidenAllCodes fp4", i, y[i], bits_of(signed_of(E2M1, 8, (int)i / 2)));
  const int pairs[] = {1, 3, 5, 7}; /* the low codes of 0x07654321's bytes */
  for (int select = 0; select < 4; select++)
    expect("WidenOpselSelectsPair", (uint64_t)select, convert(ROW(scalef32_pk_f32_fp4), select, {0x07654321}, ONE, 0)[0],
           bits_of(E2M1[pairs[select]]));
  x.clear();
  for (float a : E2M1)
    for (float b : E2M1) x.push_back(bits_of(a)), x.push_back(bits_of(b));
  for (int row : {(int)ROW(scalef32_pk_fp4_f32), (int)ROW(scalef32_sr_pk_fp4_f32)}) {
    y = convert(row, 0, x, ONE, 0xDEADBEEF);
    for (uint32_t i = 0; i < 64; i++) expect("NarrowExactBits, SrPkReversedOperandExact", i, y[i], i / 8 | i % 8 << 4);
  }
  static const uint32_t kept[] = {0xABCDEF76, 0xABCD7612, 0xAB76EF12, 0x76CDEF12};
  for (int select = 0; select < 4; select++)
    expect("NarrowOpselPlacesPairAndPreservesOld", (uint64_t)select,
           convert(ROW(scalef32_pk_fp4_f32), select, {bits_of(4), bits_of(6)}, ONE, 0, OLD)[0], kept[select]);
}

static void fp6(const float *table, int widen, int narrow, const char *name) {
  for (uint32_t base = 0; base < 64; base += 32) {
    uint32_t x[6] = {0};
    for (uint32_t i = 0; i < 32; i++) set_bits(x, 6 * (int)i, 6, base + i);
    const words y = convert(widen, 0, words(x, x + 6), ONE, 0);
    for (int i = 0; i < 32; i++) expect(name, base + (uint64_t)i, y[(size_t)i], bits_of(signed_of(table, 32, (int)base + i)));
  }
  words x;
  uint32_t want[6] = {0};
  for (int i = 0; i < 32; i++) {
    x.push_back(bits_of(table[i]));
    set_bits(want, 6 * (2 * (i % 16) + i / 16), 6, (uint32_t)i); /* interleaved: field 2k from the first source, 2k + 1 from the second */
  }
  const words y = convert(narrow, 0, x, ONE, 0);
  for (size_t i = 0; i < 6; i++) expect("NarrowExactBits 2xpk16", i, y[i], want[i]);
}

static void fp6_stochastic() {
  words x;
  uint32_t want[6] = {0};
  for (int i = 0; i < 32; i++) x.push_back(bits_of(E2M3[i])), set_bits(want, 6 * i, 6, (uint32_t)i);
  for (uint32_t seed : {0u, 0xFFFFFFFFu, 0x12345678u}) {
    const words y = convert(ROW(scalef32_sr_pk32_fp6_f32), 0, x, ONE, seed);
    for (size_t i = 0; i < 6; i++) expect("SrNarrowExactIsSeedInvariant", i, y[i], want[i]);
  }
  const words back = convert(ROW(scalef32_pk32_f32_fp6), 0, convert(ROW(scalef32_sr_pk32_fp6_f32), 0, x, ONE, 0), ONE, 0),
              by4 = convert(ROW(scalef32_pk32_f32_fp6), 0, words(want, want + 6), FOUR, 0);
  for (size_t i = 0; i < 32; i++)
    expect("RoundTripNarrowWiden", i, back[i], x[i]), expect("WidenScaleMultiplies", i, by4[i], bits_of(4 * E2M3[i]));
}

/* Widens every byte and compares with the layout of OFP8, where any NaN counts as NaN. Then packs small integers into either word and reads
 * them back. */
static void fp8(int up, int pack, int stochastic, int man, int bias, uint32_t inf, uint32_t nan) {
  words x;
  for (uint32_t b = 0; b < 256; b++) x.push_back(b);
  const words y = convert(up, 0, x, ONE, 0);
  for (uint32_t b = 0; b < 256; b++) {
    const int field = (int)(b & 0x7F) >> man;
    const double fraction = ldexp((int)b & ((1 << man) - 1), -man);
    const double v = (b & 0x7F) == inf ? INFINITY : ldexp(field ? 1 + fraction : fraction, (field ? field : 1) - bias);
    const uint32_t got = y[2 * b];
    if ((b & 0x7F) >= nan)
      expect("UnpackAllBytes NaN", b, (got & 0x7FFFFFFF) > 0x7F800000, 1);
    else
      expect("UnpackAllBytes", b, got, bits_of((float)(b & 0x80 ? -v : v)));
  }
  for (int word = 0; word < 2; word++)
    for (int a = -4; a <= 4; a++)
      for (int b = -4; b <= 4; b++) {
        const words packed = convert(pack, word, {bits_of((float)a), bits_of((float)b)}, ONE, 0);
        expect("PackWritesSameWord", (uint64_t)word, packed[0] >> (word ? 0 : 16) & 0xFFFF, 0);
        const words round = convert(up, word, packed, ONE, 0);
        expect("round trip", 0, round[0], bits_of((float)a)), expect("round trip", 1, round[1], bits_of((float)b));
      }
  for (int v = -4; v <= 4; v++) {
    const words packed = convert(stochastic, 0, {bits_of((float)v)}, ONE, 0x1234 + (uint32_t)v);
    expect("sr round-trip", 0, convert(up, 0, packed, ONE, 0)[0], bits_of((float)v));
  }
}

/* Gives the same old value to every instruction that keeps a part of it: that part must stay, and the rest must be as with an old value of
 * zeros. */
static void keeps_old() {
  for (int i = 0; i < GFX950_COUNT; i++) {
    const gfx950_row &r = gfx950_rows[i];
    if (!r.has_old) continue;
    const int elem = format_of(r.elem)->bits, n = r.kind == GFX950_WIDEN ? 16 : r.lanes * elem;
    for (int select = 0; select < r.selects; select++) {
      const int at = r.form == GFX950_UP8_F16 ? 16 * (select / 4) : n * select;
      const words x((size_t)r.words_x, r.wide == GFX950_F32     ? bits_of(1.5f)
                                       : r.kind == GFX950_WIDEN ? 0x3C3C3C3C
                                       : r.wide == GFX950_F16   ? 0x3E003E00
                                                                : 0x3FC03FC0);
      const uint32_t mask = (uint32_t)((UINT64_C(1) << n) - 1) << at, over = convert(i, select, x, ONE, 0)[0];
      expect(r.name, (uint64_t)select, convert(i, select, x, ONE, 0, OLD)[0], (OLD & ~mask) | over);
      expect(r.name, (uint64_t)select, over != 0 && !(over & ~mask), 1);
    }
  }
}

/* ---- Composable Kernel ---- */

/* The K of the first element in each register, for each group of 16 or 32 lanes. */
static const int FP8_16[8][4] = {{0, 16, 32, 48},   {4, 20, 36, 52},    {8, 24, 40, 56},    {12, 28, 44, 60},
                                 {64, 80, 96, 112}, {68, 84, 100, 116}, {72, 88, 104, 120}, {76, 92, 108, 124}};
static const int FP8_32[8][2] = {{0, 16}, {4, 20}, {8, 24}, {12, 28}, {32, 48}, {36, 52}, {40, 56}, {44, 60}};
static const int FP4_16[4][4] = {{0, 32, 64, 96}, {8, 40, 72, 104}, {16, 48, 80, 112}, {24, 56, 88, 120}};
static const int FP4_32[4][2] = {{0, 32}, {8, 40}, {16, 48}, {24, 56}};

static uint32_t hashed(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t v = (a * 0x9E3779B1 + b) * 0x85EBCA6B + c;
  v ^= v >> 15;
  v *= 0xC2B2AE35;
  return v ^ v >> 16;
}

struct operand {
  int m, type; /* E4M3 or E2M1 */
  words registers, scale;
  operand(int edge, int t) : m(edge), type(t), registers(512), scale(64, 127) {}
  /* Puts a code at (row, k), by the tables. */
  void put(int row, int k, uint32_t code) {
    const int bits = type == GFX950_E2M1 ? 4 : 8, per = 32 / bits, regs = type == GFX950_E2M1 ? 4 : 8;
    for (int reg = 0; reg < regs; reg++)
      for (int group = 0; group < 64 / m; group++) {
        const int first = bits == 4 ? (m == 16 ? FP4_16[reg][group] : FP4_32[reg][group]) : m == 16 ? FP8_16[reg][group] : FP8_32[reg][group];
        if (k >= first && k < first + per) set_bits(&registers[(size_t)(row + m * group) * 8 + (size_t)reg], bits * (k - first), bits, code);
      }
  }
  void put_scale(int row, int block, uint32_t byte) { scale[(size_t)(row + m * block)] = byte; } /* the lanes of group g hold x(M, g) */
};
static float value(int type, uint32_t code) {
  return type == GFX950_E2M1 ? E2M1[code] : ldexpf(1 + (float)(code & 7) / 8, (int)(code >> 3) - 7);
}

/* One side has a single 1 in each row, the other a code that depends on its position, so that each output is one product. The two sides have
 * different types, since an order of K that both share would go unnoticed. */
static void tables(int m, int type_a, int type_b, int pass) {
  const int depth = 2048 / m, type[2] = {type_a, type_b}, regs = m * m / 64;
  const gfx950_rules rules = gfx950_rules_default();
  for (int hot = 0; hot < 2; hot++)
    for (int turn = 0; turn < depth / m; turn++) {
      operand side[2] = {operand(m, type_a), operand(m, type_b)};
      const auto code_at = [&](int row, int k) {
        const uint32_t h = hashed((uint32_t)row, (uint32_t)k, (uint32_t)pass);
        return type[!hot] == GFX950_E2M1 ? 1 + h % 7 : 0x30 + h % 16;
      };
      const auto hot_k = [&](int row) { return (row * (depth / m) + turn) % depth; };
      const auto scale_at = [&](int s, int row, int block) { return 120 + hashed((uint32_t)row, (uint32_t)block, 77 + (uint32_t)s) % 15; };
      for (int row = 0; row < m; row++) {
        side[hot].put(row, hot_k(row), type[hot] == GFX950_E2M1 ? 2 : 0x38);
        for (int k = 0; k < depth; k++) side[!hot].put(row, k, code_at(row, k));
        for (int s = 0; s < 2; s++)
          for (int block = 0; block < depth / 32; block++) side[s].put_scale(row, block, scale_at(s, row, block));
      }
      buffer a(512), b(512), c(64 * (size_t)regs), d(64 * (size_t)regs), sa(64), sb(64);
      for (size_t i = 0; i < 512; i++) a[i] = side[0].registers[i], b[i] = side[1].registers[i];
      for (size_t i = 0; i < 64; i++) sa[i] = side[0].scale[i], sb[i] = side[1].scale[i];
      for (size_t i = 0; i < c.n; i++) c[i] = 0;
      a.written(), b.written(), c.written(), sa.written(), sb.written();
      gfx950_mfma_args args = {};
      args.a = a.p, args.b = b.p, args.c = c.p, args.d = d.p, args.scale_a = sa.p, args.scale_b = sb.p, args.env.rules = &rules;
      const std::string kernel = std::string("gfx950_mfma_scale_f32_") + (m == 16 ? "16x16x128" : "32x32x64") + "_f8f6f4_a" +
                                 std::to_string(type_a) + "_b" + std::to_string(type_b) + "_s0";
      if (mxh_host::launch(kernel.c_str(), 1, 64, &args, sizeof args)) return fail(kernel.c_str(), mxh_host::reports());
      for (int lane = 0; lane < 64; lane++)
        for (int reg = 0; reg < regs; reg++) {
          const int col = lane % m, row = m == 16 ? 4 * (lane / 16) + reg : 8 * (reg / 4) + 4 * (lane / 32) + reg % 4;
          const int one = hot ? col : row, other = hot ? row : col, k = hot_k(one), block = k / 32;
          const float want = ldexpf(value(type[!hot], code_at(other, k)), (int)scale_at(0, row, block) + (int)scale_at(1, col, block) - 254);
          expect(kernel.c_str(), (uint64_t)(row * m + col), d[(size_t)(lane * regs + reg)], bits_of(want));
        }
    }
}

/* ---- rocjitsu ---- */

/* Converts x in all elements under scale 1, and returns the code of the first. */
static uint32_t code_of(int row, float x, uint32_t seed, unsigned mode = 0, const gfx950_rules &rules = gfx950_rules_default()) {
  const gfx950_row &r = gfx950_rows[row];
  const words y = convert(row, 0, words((size_t)r.words_x, bits_of(x)), ONE, seed, 0, mode, rules);
  return y[0] & ((1u << format_of(r.elem)->bits) - 1);
}

static void rocjitsu() {
  static const struct {
    int nearest, stochastic, least; /* the smallest subnormal is 2^least */
  } formats[] = {{ROW(scalef32_pk_fp8_f32), ROW(scalef32_sr_fp8_f32), -9},
                 {ROW(scalef32_pk_bf8_f32), ROW(scalef32_sr_bf8_f32), -16},
                 {ROW(scalef32_pk_fp4_f32), ROW(scalef32_sr_pk_fp4_f32), -1},
                 {ROW(scalef32_2xpk16_fp6_f32), ROW(scalef32_sr_pk32_fp6_f32), -3},
                 {ROW(scalef32_2xpk16_bf6_f32), ROW(scalef32_sr_pk32_bf6_f32), -4}};
  for (const auto &f : formats) {
    const char *what = "DeepestSubnormalBoundary";
    const float least = ldexpf(1, f.least);
    expect(what, 0, code_of(f.nearest, .5f * least, 0), 0);
    expect(what, 1, code_of(f.nearest, .75f * least, 0), 1);
    expect(what, 2, code_of(f.stochastic, .75f * least, 0), 0);
    expect(what, 3, code_of(f.stochastic, .75f * least, 0xFFFFFFFF), 1);
  }
  gfx950_rules zero = gfx950_rules_default(); /* rocjitsu's NaN of FP4 and FP6 is not the first choice in formats/gfx950_rules.def */
  zero.nan_fp4 = GFX950_nan_fp4_ZERO, zero.nan_fp6 = GFX950_nan_fp6_ZERO;
  static const struct {
    int row;
    float x;
    uint32_t seed, code;
  } cases[] = {
      {ROW(scalef32_pk_fp4_f32), NAN, 0, 0x0},           {ROW(scalef32_pk_fp4_f32), INFINITY, 0, 0x7},
      {ROW(scalef32_pk_fp4_f32), -INFINITY, 0, 0xF},     {ROW(scalef32_pk_fp4_f32), 7, 0, 0x7},
      {ROW(scalef32_pk_fp4_f32), 100, 0, 0x7},           {ROW(scalef32_pk_fp4_f32), 4, 0, 0x6},
      {ROW(scalef32_sr_pk_fp4_f32), 1, 0, 0x2},          {ROW(scalef32_sr_pk_fp4_f32), 6, 0xFFFFFFFF, 0x7},
      {ROW(scalef32_2xpk16_fp6_f32), NAN, 0, 0x00},      {ROW(scalef32_2xpk16_fp6_f32), INFINITY, 0, 0x1F},
      {ROW(scalef32_2xpk16_fp6_f32), 10, 0, 0x1F},       {ROW(scalef32_2xpk16_fp6_f32), 4, 0, 0x18},
      {ROW(scalef32_sr_pk32_fp6_f32), 1, 0, 0x08},       {ROW(scalef32_2xpk16_bf6_f32), NAN, 0, 0x00},
      {ROW(scalef32_2xpk16_bf6_f32), INFINITY, 0, 0x1F}, {ROW(scalef32_2xpk16_bf6_f32), 50, 0, 0x1F},
      {ROW(scalef32_2xpk16_bf6_f32), 16, 0, 0x1C},       {ROW(scalef32_sr_pk32_bf6_f32), 1, 0, 0x0C},
      {ROW(scalef32_pk_fp8_f32), 272, 0, 0x78}, /* ties in E4M3's last binade */
      {ROW(scalef32_pk_fp8_f32), 280, 0, 0x79},          {ROW(scalef32_pk_fp8_f32), 304, 0, 0x7A},
      {ROW(scalef32_pk_fp8_f32), 449, 0, 0x7E},          {ROW(scalef32_pk_fp8_f32), 500, 0, 0x7E},
      {ROW(scalef32_pk_fp8_f32), 1000, 0, 0x7E},         {ROW(scalef32_pk_fp8_f32), NAN, 0, 0x7F},
      {ROW(scalef32_pk_fp8_f32), INFINITY, 0, 0x7E},     {ROW(scalef32_sr_fp8_f32), 500, 0, 0x7E},
      {ROW(scalef32_sr_fp8_f32), 500, 0xFFFFFFFF, 0x7E}, {ROW(scalef32_sr_fp8_f32), 1, 0, 0x38},
  };
  uint64_t i = 0;
  for (const auto &c : cases)
    expect("edge cases", i++, code_of(c.row, c.x, c.seed, GFX950_MODE_OVFL, zero), c.code); /* rocjitsu's FP8 saturates */
  for (uint32_t code = 0x78; code < 0x7F; code++) {
    const float x = 256 + 32 * (float)(code - 0x78);
    expect("RneExp15, SrExp15", code, code_of(ROW(scalef32_pk_fp8_f32), x, 0), code);
    expect("RneExp15, SrExp15", code, code_of(ROW(scalef32_sr_fp8_f32), x, 0), code);
  }
  for (uint32_t code = 1; code < 8; code++) {
    expect("SrDenormRoundTrip", code, code_of(ROW(scalef32_sr_fp8_f32), ldexpf((float)code, -9), 0), code);
    expect("SrDenormRoundTrip", code, code_of(ROW(scalef32_sr_pk32_fp6_f32), E2M3[code], 0), code);
    if (code < 4) expect("SrDenormRoundTrip", code, code_of(ROW(scalef32_sr_pk32_bf6_f32), E3M2[code], 0), code);
  }
}

int main() {
  fp4();
  fp6(E2M3, ROW(scalef32_pk32_f32_fp6), ROW(scalef32_2xpk16_fp6_f32), "WidenAllCodes fp6");
  fp6(E3M2, ROW(scalef32_pk32_f32_bf6), ROW(scalef32_2xpk16_bf6_f32), "WidenAllCodes bf6");
  fp6_stochastic();
  source("hip-fpsan cvt_scalef32_mx_gfx950_test");
  fp8(ROW(pk_f32_fp8), ROW(pk_fp8_f32), ROW(sr_fp8_f32), 3, 7, 0xFF, 0x7F);
  fp8(ROW(pk_f32_bf8), ROW(pk_bf8_f32), ROW(sr_bf8_f32), 2, 15, 0x7C, 0x7D);
  source("hip-fpsan cvt_gfx950_test");
  keeps_old();
  source("its old value, every conversion that keeps a part");
  for (int m : {16, 32})
    for (int a : {GFX950_E4M3, GFX950_E2M1})
      for (int b : {GFX950_E4M3, GFX950_E2M1})
        for (int pass = 0; pass < 3; pass++) tables(m, a, b, pass);
  source("Composable Kernel's register tables");
  rocjitsu();
  source("rocjitsu data_types");
  return failures != 0;
}
