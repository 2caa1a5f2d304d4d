/* The probes of gfx950_profile.h. gfx950_report.cc writes what they find. */
#include "hip_backend/gfx950_profile.h"

#include <stdlib.h>
#include <string.h>

#include "hip_backend/gfx950_run.h"
#include "mxgold/verify.h"

using namespace gfx950_run;

namespace {

/* --- questions: for each rule, inputs on which its answers differ --- */

const uint32_t ONE = 0x3F800000, OLD = 0xA5A5A5A5;
const uint32_t NANS[] = {0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF};
#define ROW(name) GFX950_I_cvt_##name

struct question {
  std::vector<conversion> conversions;
  std::vector<product> products;
  bool any_nan = false; /* the payload of a product's NaN is another rule's */
};

std::vector<int> fp8_rows() { return {ROW(scalef32_pk_fp8_f32), ROW(scalef32_pk_bf8_f32)}; }
std::vector<int> sr_fp8_rows() { return {ROW(scalef32_sr_fp8_f32), ROW(scalef32_sr_bf8_f32)}; }

question nan_narrow(std::initializer_list<int> rows, const words &nans = {NANS[0], NANS[1], NANS[2], NANS[3]}) {
  question q;
  for (int row : rows) {
    conversion c = of(row);
    for (uint32_t v : nans) {
      /* With the lowest bit, the upper half of a binary32 NaN is one of bfloat16 and of binary16. */
      const uint32_t n = row_of(row).wide == GFX950_F32 ? v : (v >> 16) * 0x10001u | 0x00010001;
      c.add({}, ONE, 0, OLD);
      for (size_t i = c.x.size() - (size_t)row_of(row).words_x; i < c.x.size(); i++) c.x[i] = n;
    }
    q.conversions.push_back(c);
  }
  return q;
}

question ask(const std::string &rule, generator *g) {
  question q;
  if (rule == "nan_fp4")
    return nan_narrow({ROW(scalef32_pk_fp4_f32), ROW(scalef32_pk_fp4_f16), ROW(scalef32_pk_fp4_bf16), ROW(scalef32_sr_pk_fp4_f32)});
  if (rule == "nan_fp6")
    return nan_narrow({ROW(scalef32_2xpk16_fp6_f32), ROW(scalef32_2xpk16_bf6_f32), ROW(scalef32_pk32_fp6_f16), ROW(scalef32_pk32_bf6_bf16)});
  if (rule == "nan_fp8")
    return nan_narrow(
        {ROW(scalef32_pk_fp8_f32), ROW(scalef32_pk_fp8_f16), ROW(scalef32_pk_fp8_bf16), ROW(scalef32_sr_fp8_f32), ROW(pk_fp8_f32)});
  if (rule == "nan_bf8") return nan_narrow({ROW(scalef32_pk_bf8_f32), ROW(scalef32_pk_bf8_f16), ROW(scalef32_pk_bf8_bf16), ROW(pk_bf8_f32)});
  if (rule == "nan_16") return nan_narrow({ROW(sr_bf16_f32), ROW(sr_f16_f32)}, {0x7FC00000, 0xFFF5A000, 0x7FABC000});
  if (rule == "scale_ff" || rule == "scale_00") {
    const uint32_t byte = rule == "scale_ff" ? 0xFF : 0;
    for (int row : {(int)ROW(scalef32_pk_fp4_f32), (int)ROW(scalef32_pk_fp8_f32), (int)ROW(scalef32_sr_fp8_f32),
                    (int)ROW(scalef32_sr_pk_fp4_f32), (int)ROW(scalef32_2xpk16_fp6_f32)}) {
      conversion c = of(row);
      if (byte) {
        for (uint32_t v : {0x7F7FFFFFu, 0xFF7FFFFFu, 0x7F000000u, ONE, 0u}) c.add({v, v}, 0x7F800000, 0, OLD);
      } else {
        for (uint32_t v : {0x00C00000u, 0x80800000u, 0x01000000u}) c.add({v, v}, 0, 0, OLD);
      }
      q.conversions.push_back(c);
    }
    if (!byte) {
      conversion c = of(ROW(scalef32_f32_fp8));
      c.add({0x38}, 0, 0, 0), c.add({0xB9}, 0, 0, 0);
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule == "scale_ff_up") {
    for (int row :
         {(int)ROW(scalef32_f32_fp8), (int)ROW(scalef32_pk_f32_fp4), (int)ROW(scalef32_pk_bf16_bf8), (int)ROW(scalef32_pk32_f32_fp6)}) {
      conversion c = of(row);
      for (uint32_t v : {0x01u, 0x81u, 0x21u, 0x00u}) c.add({v}, 0x7F800000, 0, 0);
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule == "nan_up") {
    for (int row : {(int)ROW(scalef32_f32_fp8), (int)ROW(scalef32_f32_bf8), (int)ROW(scalef32_pk_bf16_bf8), (int)ROW(f32_bf8)}) {
      conversion c = of(row);
      for (uint32_t v : {0x7Fu, 0xFFu, 0x7Du, 0xFEu}) c.add({v}, ONE, 0, 0);
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule == "f32_subnormal") {
    for (uint32_t mode : {0u, (uint32_t)GFX950_MODE_FLUSH})
      for (int row : {(int)ROW(scalef32_pk_fp4_f32), (int)ROW(scalef32_pk_bf8_f32)}) {
        conversion c = of(row, 0, mode);
        for (uint32_t byte = 0; byte < 4; byte++)
          for (uint32_t v : {0x007FFFFFu, 0x80400000u, 0x00700001u}) c.add({v, v}, byte << 23, 0, OLD);
        q.conversions.push_back(c);
      }
    return q;
  }
  if (rule == "fp8_subnormal") {
    for (
        int row :
        fp8_rows()) { /* 1.25 + 1/64 and 1.75 - 1/64 of twice the smallest subnormal: rounded at a normal number's place first, they are ties */
      const int least = row_of(row).elem == GFX950_E4M3 ? -9 : -16;
      conversion c = of(row);
      for (int scale = 100; scale < 150; scale += 7)
        for (uint32_t fraction = 0; fraction < 0x800000; fraction += 0x8000) {
          const uint32_t v = (uint32_t)(least + 1 + scale) << 23 | fraction;
          c.add({v, v | 0x80000000}, (uint32_t)scale << 23, 0, 0);
        }
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule == "fp8_overflow") {
    for (uint32_t mode : {0u, (uint32_t)GFX950_MODE_OVFL})
      for (int row : fp8_rows()) {
        conversion c = of(row, 0, mode);
        for (uint32_t v : {0x47C35000u, 0xC7C35000u, 0x7F800000u, 0xFF800000u}) c.add({v, v}, ONE, 0, OLD);
        q.conversions.push_back(c);
      }
    return q;
  }
  if (rule == "sr_seed" || rule == "sr_next") { /* each bit of the seed alone, over several distances from the code below */
    const bool one = rule == "sr_seed";
    for (int row :
         one ? sr_fp8_rows() : std::vector<int>{ROW(scalef32_sr_pk_fp4_f32), ROW(scalef32_sr_pk_fp4_bf16), ROW(scalef32_sr_pk32_fp6_f32)}) {
      conversion c = of(row);
      for (int bit = 0; bit < 32; bit++)
        for (uint32_t v : {0x3F900000u, 0x3FA00000u, 0x3F880000u, 0x3FAC0000u, 0x3FB7FFFFu}) {
          const uint32_t two = row_of(row).wide == GFX950_F32 ? v : (v >> 16) * 0x10001u;
          c.add({two, two}, ONE, 1u << bit, 0);
          c.add({two, two}, ONE, g->next(), 0);
        }
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule == "sr_subnormal") {
    for (int row : sr_fp8_rows()) {
      const int least = row_of(row).elem == GFX950_E4M3 ? -9 : -16;
      conversion c = of(row);
      for (int i = 0; i < 600; i++) {
        const uint32_t v = (uint32_t)(least + 127 + (int)g->below(3)) << 23 | (g->next() & 0x807FFFFF);
        c.add({v}, ONE, i % 3 ? g->next() : UINT32_MAX << g->below(12), 0);
      }
      /* So near to the code above that only the extra bits of `wide` can keep it down, and so near to the one below that only they lift it. */
      for (uint32_t fraction : {0x7FFFFFu, 0x7FFFF0u, 1u, 3u, 0x000100u})
        for (int e = 0; e < 3; e++)
          for (uint32_t seed : {0xFFFFF7FFu, 0x000007FFu, 0xFFFFFC00u, 0x00000800u, 0xFFFFFFFFu})
            c.add({(uint32_t)(least + 127 + e) << 23 | fraction}, ONE, seed, 0);
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule == "sr_carry") {
    for (uint32_t mode : {0u, (uint32_t)GFX950_MODE_OVFL})
      for (int row : sr_fp8_rows()) {
        conversion c = of(row, 0, mode);
        const uint32_t below = row_of(row).elem == GFX950_E4M3 ? 0x43EFFFFF : 0x477FFFFF; /* the float below the first value past the largest */
        c.add({below}, ONE, UINT32_MAX, 0), c.add({below | 0x80000000}, ONE, UINT32_MAX, 0), c.add({below}, ONE, 0, 0);
        q.conversions.push_back(c);
      }
    return q;
  }
  if (rule == "scale_sgpr" || rule == "scale_inline") {
    conversion c = of(ROW(scalef32_pk_fp4_f32), 0, 0, rule == "scale_sgpr" ? GFX950_FROM_SGPR : GFX950_FROM_INLINE);
    for (uint32_t v : {0x40800000u, 0x41000000u, 0xC1800000u, 0x3F800000u}) c.add({v, v}, 0x40800000, 0, OLD);
    q.conversions.push_back(c);
    return q;
  }
  if (rule == "mfma_scale_ff") { /* one product of 1 x 1 in block 0 or 1; block 0 has the NaN scale */
    q.any_nan = true;
    for (int edge : {16, 32}) {
      product p = tiles_of(edge, GFX950_E2M1, GFX950_E2M1, 9, 0, 1);
      for (int i = 0; i < edge; i++) {
        set_code(&p, 0, 0, i, i % 2 ? 32 : 0, 2);
        for (int k : {0, 32}) set_code(&p, 1, 0, i, k, 2);
        if (i % 4 < 2) set_scale(&p, 0, 0, i, 0, 0xFF);
        set_scale(&p, 1, 0, i, 0, i % 3 ? 0 : 1); /* 2^-127, 2^-126 */
      }
      q.products.push_back(p);
    }
    return q;
  }
  if (rule == "mfma_nan") {
    for (int edge : {16, 32}) {
      product p = tiles_of(edge, GFX950_E4M3, GFX950_E5M2, 0, 0, 1);
      for (int i = 0; i < edge; i++) {
        set_code(&p, 0, 0, i, i, i % 5 == 0 ? 0xFF : 0x38);
        set_code(&p, 1, 0, i, i, i % 7 == 0 ? 0x7D : 0x3C);
      }
      for (size_t i = 0; i < p.c.size(); i++) p.c[i] = i % 3 == 0 ? 0x7FA00005 : i % 3 == 1 ? 0xFFC01234 : 0;
      q.products.push_back(p);
    }
    return q;
  }
  if (rule == "mfma_overflow") {
    for (uint32_t mode : {0u, (uint32_t)GFX950_MODE_OVFL}) {
      product p = tiles_of(16, GFX950_E2M1, GFX950_E2M1, 0, mode, 1);
      for (int i = 0; i < 16; i++) {
        set_code(&p, 0, 0, i, 0, i % 2 ? 2 : 10), set_code(&p, 1, 0, i, 0, 2);
        for (int block = 0; block < 4; block++) set_scale(&p, 0, 0, i, block, 254);
      }
      for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) p.c[result_at(p, 0, i, j)] = i % 2 ? 0x7F7FFFFF : 0xFF7FFFFF;
      q.products.push_back(p);
    }
    return q;
  }
  return q;
}

bool settle(gfx950_profile *out, device *d, int rule, const question &q) {
  gfx950_answer a;
  a.rule = gfx950_rule_name(rule, nullptr);
  a.words = 0;
  words got;
  std::vector<words> given;
  for (const conversion &c : q.conversions) {
    if (!d->run(c, &got)) return false;
    given.push_back(got);
    a.words += got.size();
  }
  for (const product &p : q.products) {
    if (!d->run(p, &got)) return false;
    if (q.any_nan) one_nan(&got);
    given.push_back(got);
    a.words += got.size();
  }
  gfx950_rules rules = out->rules;
  std::vector<std::vector<words>> would;
  for (int choice = 0; gfx950_choice_name(rule, choice, nullptr); choice++) {
    *gfx950_rule_of(&rules, rule) = choice;
    std::vector<words> all;
    for (const conversion &c : q.conversions) all.push_back(predicted(c, rules));
    for (const product &p : q.products) {
      all.push_back(predicted(p, rules));
      if (q.any_nan) one_nan(&all.back());
    }
    would.push_back(all);
    if (all == given) a.choices.push_back(choice);
  }
  /* The first word on which not all answers agree. */
  for (size_t b = 0; b < given.size() && a.evidence.empty(); b++)
    for (size_t i = 0; i < given[b].size() && a.evidence.empty(); i++) {
      bool differ = false;
      for (const auto &w : would) differ |= w[b][i] != would[0][b][i];
      bool none = a.choices.empty();
      for (const auto &w : would) none &= w[b][i] != given[b][i];
      if (!(a.choices.empty() ? none : differ)) continue;
      if (b < q.conversions.size()) {
        const conversion &c = q.conversions[b];
        const size_t n = i / (size_t)row_of(c.row).words_out;
        a.evidence = std::string(row_of(c.row).name) + " x " + hex(c.x[n * (size_t)row_of(c.row).words_x]) + " scale " + hex(c.scale[n]) +
                     " seed " + hex(c.seed[n]) + " old " + hex(c.old[i]) + " mode " + std::to_string(c.mode) + ": ";
      } else
        a.evidence = "product " + std::to_string(b - q.conversions.size()) + " word " + std::to_string(i) + ": ";
      a.evidence += hex(given[b][i]) + " (";
      for (size_t c = 0; c < would.size(); c++)
        a.evidence += (c ? ", " : "") + std::string(gfx950_choice_name(rule, (int)c, nullptr)) + " " + hex(would[c][b][i]);
      a.evidence += ")";
    }
  if (!a.choices.empty()) *gfx950_rule_of(&out->rules, rule) = a.choices[0];
  out->answers.push_back(a);
  return true;
}

/* --- everything else, held to what was found --- */

uint32_t wide_value(generator *g, int wide, unsigned byte) {
  static const uint32_t specials[] = {0, 1, 0x7F800000, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x7FFFFFFF};
  const uint32_t sign = g->next() & 0x80000000;
  uint32_t v = g->next();
  const unsigned kind = g->below(8);
  if (kind == 0)
    v = specials[g->below(9)] | sign;
  else if (kind < 7) { /* near the scale; few bits, for ties */
    int e = (int)byte + (int)g->below(kind < 5 ? 12 : 24) - (kind < 5 ? 6 : 18);
    e = e < 0 ? 0 : e > 254 ? 254 : e;
    v = sign | (uint32_t)e << 23 | (g->below(2) ? g->next() & 0x7FFFFF : (g->next() & 0x700000) | g->below(3));
  }
  if (wide == GFX950_F32) return v;
  if (wide == GFX950_BF16) return v >> 16;
  mx_encoding how = {};
  how.overflow = MX_OVERFLOW_IEEE;
  float f;
  memcpy(&f, &v, 4);
  return kind == 7 ? v >> 16 : (uint32_t)mx_encode(mx_operand_format(MX_OPERAND_F16), (double)f, &how, 0);
}

/* A float in the type that an instruction takes, to nearest. */
uint32_t wide_of(int wide, float v) {
  mx_encoding how = {};
  how.overflow = MX_OVERFLOW_IEEE;
  if (wide == GFX950_F32) { /* a NaN keeps its payload */
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits;
  }
  return (uint32_t)mx_encode(mx_operand_format(wide == GFX950_F16 ? MX_OPERAND_F16 : MX_OPERAND_BF16), (double)v, &how, 0);
}

/* A suite of gen as cases of one conversion: narrowing gets the numbers with the scales that the emulator gives their blocks, widening the codes that
 * it makes of them. The select operand goes round. */
bool hold_suite(gfx950_profile *out, device *d, int index, int suite, gfx950_held *h, generator *g) {
  const gfx950_row &row = row_of(index);
  const bool narrow = row.kind == GFX950_NARROW || row.kind == GFX950_SR;
  const int type = row.elem <= GFX950_E2M1 ? row.elem : (int)GFX950_E2M1, bits = gfx950_bits(type), select = suite % row.selects;
  mx_spec spec = {};
  mx_cases cases = {};
  mx_error err;
  if (mx_spec_parse(&spec, ("elem=" + std::string(gfx950_type_name(type))).c_str(), &err) || mx_generate(&cases, suite, &spec, 0, 0, 1, &err)) {
    d->why = err.text;
    return false;
  }
  conversion c = of(index, select);
  mx_tensor t = {};
  bool fine = mx_tensor_alloc(&t, cases.rows, cases.cols, &spec) == MX_OK;
  const mx_exec one = {.n_threads = 1, .isa_mask = 0, .first_row = 0, .amax_known = 0, .amax = 0};
  const size_t per_word = (size_t)(32 / bits), step = row.lanes == 32 ? 32 : narrow ? (size_t)row.lanes : per_word;
  for (size_t i = 0; fine && i < cases.n && c.n() < 1 << 14; i++) {
    const float *x = cases.x + i * cases.rows * cases.ld;
    fine = mx_quantize(&t, x, cases.rows, cases.cols, cases.ld, &spec, &one, nullptr) == MX_OK;
    for (size_t r = 0; fine && r < cases.rows; r++)
      for (size_t k = 0; k < cases.cols; k += step) {
        c.add({}, (uint32_t)t.scales[r * t.scale_cols + k / 32] << 23, g->next(), row.has_old ? g->next() : 0);
        uint32_t *to = &c.x[c.x.size() - (size_t)row.words_x];
        for (size_t j = 0; j < step && k + j < cases.cols; j++) {
          if (narrow)
            gfx950_set_field(to, (int)j * (row.wide == GFX950_F32 ? 32 : 16), row.wide == GFX950_F32 ? 32 : 16,
                             wide_of(row.wide, x[r * cases.ld + k + j]));
          else
            gfx950_set_field(to, (int)j * bits, bits, mx_code_at(&t, &spec, r, k + j));
        }
      }
  }
  words got;
  fine = fine && d->run(c, &got);
  if (fine) count(h, c.n(), got, predicted(c, out->rules), std::string("suite ") + mx_suite_name(suite) + " select " + std::to_string(select));
  mx_tensor_free(&t);
  mx_cases_free(&cases);
  return fine;
}

bool hold(gfx950_profile *out, device *d, uint64_t seed, bool suites, const gfx950_profile_options &o) {
  generator g = {seed * 2 + 1};
  for (int index = 0; index < GFX950_COUNT; index++) {
    const gfx950_row &row = row_of(index);
    gfx950_held h = {row.mnemonic, 0, 0, 0, "", ""};
    words got;
    if (o.doing) o.doing(row.mnemonic);
    if (row.kind == GFX950_MFMA) {
      if (!hold_products(out, d, index, suites, &g, &h)) return false;
      out->held.push_back(h);
      if (o.held) o.held(h);
      continue;
    }
    for (int select = 0; select < row.selects; select++)
      for (uint32_t mode = 0; mode < 4; mode++) {
        conversion c = of(index, select, mode);
        const size_t n = row.lanes == 32 ? 64 : 512;
        for (size_t i = 0; i < n; i++) {
          const unsigned byte = strncmp(row.name, "cvt_scalef32", 12) ? 127
                                : g.below(10)                         ? 117 + g.below(20)
                                : g.below(4)                          ? g.below(256)
                                : g.below(2)                          ? 255
                                                                      : 0;
          c.add({}, (g.next() & 0x807FFFFF) | byte << 23, g.below(8) ? g.next() : UINT32_MAX << g.below(20), row.has_old ? g.next() : 0);
          for (size_t j = 0; j < (size_t)row.words_x; j++) {
            uint32_t v = g.next();
            if (row.kind == GFX950_NARROW || row.kind == GFX950_SR)
              v = row.wide == GFX950_F32 ? wide_value(&g, row.wide, byte)
                                         : wide_value(&g, row.wide, byte) | wide_value(&g, row.wide, byte) << 16;
            c.x[i * (size_t)row.words_x + j] = v;
          }
        }
        if (!d->run(c, &got)) return false;
        count(&h, c.n(), got, predicted(c, out->rules), "select " + std::to_string(select) + " mode " + std::to_string(mode));
      }
    for (int suite = 0; suites && row.kind != GFX950_PRNG && suite < MX_SUITE_COUNT; suite++)
      if (!hold_suite(out, d, index, suite, &h, &g)) return false;
    out->held.push_back(h);
    if (o.held) o.held(h);
  }
  return true;
}

} // namespace

void gfx950_run::count(gfx950_held *h, size_t cases, const words &got, const words &want, const std::string &where) {
  h->cases += cases;
  for (size_t i = 0; i < got.size(); i++, h->words++)
    if (got[i] != want[i]) {
      if (!h->differ++) h->first = where + ", word " + std::to_string(i) + ": " + hex(got[i]) + ", expected " + hex(want[i]);
    }
}

bool gfx950_profile::complete() const {
  for (const gfx950_answer &a : answers)
    if (a.choices.empty()) return false;
  for (const gfx950_sums &s : sums)
    if (!s.fits) return false;
  return differ() == 0;
}
const gfx950_sums *gfx950_profile::sums_of(int pair) const {
  for (const gfx950_sums &s : sums)
    for (int p : s.pairs)
      if (p == pair) return &s;
  return nullptr;
}
uint64_t gfx950_profile::words() const {
  uint64_t n = 0;
  for (const gfx950_held &h : held) n += h.words;
  return n;
}
uint64_t gfx950_profile::differ() const {
  uint64_t n = 0;
  for (const gfx950_held &h : held) n += h.differ;
  return n;
}

bool gfx950_profile_run(gfx950_profile *out, mxh_device *dev, const gfx950_profile_options &o, std::string *why) {
  device d = {dev, o.play, ""};
  generator g = {o.seed * 2 + 1};
  *out = gfx950_profile();
  out->rules = gfx950_rules_default();
  bool fine = true;
  for (int rule = 0; fine && gfx950_rule_name(rule, nullptr); rule++) {
    const char *name = gfx950_rule_name(rule, nullptr);
    if (o.doing) o.doing(std::string("the probes of ") + name);
    fine = settle(out, &d, rule, ask(name, &g));
    if (!fine || !o.found) continue;
    const gfx950_answer &a = out->answers.back();
    o.found(a.rule + ": " + (a.choices.empty() ? "OTHER" : gfx950_choice_name(rule, a.choices[0], nullptr)) + ", " + a.evidence);
  }
  fine = fine && find_sums(out, &d, o);
  for (const gfx950_sums &s : out->sums)
    if (o.found) o.found("sums of " + gfx950_sums_pairs(s) + ": " + gfx950_sums_text(s));
  fine = fine && hold(out, &d, o.seed + 1, o.suites, o);
  if (!fine) *why = d.why;
  return fine;
}
