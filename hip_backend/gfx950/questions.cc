/* Finds the answer to each rule by running inputs on which its answers differ. */
#include <algorithm>
#include <stdlib.h>
#include <string.h>

#include "hip_backend/gfx950/run.h"

using namespace gfx950_run;

namespace {
const uint32_t ONE = 0x3F800000, OLD = 0xA5A5A5A5;
const uint32_t NANS[] = {0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF};
#define ROW(name) GFX950_I_cvt_##name

struct question {
  std::vector<conversion> conversions;
  std::vector<product> products;
  bool any_nan = false; /* any NaN of a product counts as the same, since another rule decides its payload */
  std::vector<std::string>
      together; /* rules that inputs only show together: an answer is kept if it fits with any answers to the rules asked later */
};

std::vector<int> fp8_rows() { return {ROW(scalef32_pk_fp8_f32), ROW(scalef32_pk_bf8_f32)}; }
std::vector<int> sr_fp8_rows() { return {ROW(scalef32_sr_fp8_f32), ROW(scalef32_sr_bf8_f32)}; }

question nan_narrow(std::initializer_list<int> rows, const words &nans = {NANS[0], NANS[1], NANS[2], NANS[3]}) {
  question q;
  for (int row : rows) {
    conversion c = of(row);
    for (uint32_t v : nans) {
      /* With its lowest bit set, the upper half of a binary32 NaN is a NaN of bfloat16 and of binary16. */
      const uint32_t n = row_of(row).wide == GFX950_F32 ? v : (v >> 16) * 0x10001u | 0x00010001;
      c.add({}, ONE, 0, OLD);
      for (size_t i = c.x.size() - (size_t)row_of(row).words_x; i < c.x.size(); i++) c.x[i] = n;
    }
    q.conversions.push_back(c);
  }
  return q;
}

/* Unscaled stochastic conversions: what is added, where, and how the sum is rounded only show together, so each of these rules is asked on
 * the same inputs. They are numbers and subnormals, ties, and mantissas of ones, all below the largest code, since other rules apply past
 * it. The seeds are single bits and runs of bits, and seeds for which the sum is one step from where it is cut or tied; only these show how
 * many bits are added to a subnormal. */
question unscaled_stochastic(const std::string &rule) {
  question q;
  generator g = {88172645463325252u};
  const std::string stem = rule.substr(0, rule.find('_'));
  for (const char *what : {"_seed", "_subnormal", "_round", "_wrap"}) q.together.push_back(stem + what);
  for (int row : stem == "sr8" ? std::vector<int>{ROW(sr_fp8_f32), ROW(sr_bf8_f32)} : std::vector<int>{ROW(sr_bf16_f32), ROW(sr_f16_f32)}) {
    const mx_format *to = row_of(row).elem <= GFX950_E2M1
                              ? element_format(row_of(row).elem)
                              : mx_operand_format(row_of(row).elem == GFX950_F16 ? MX_OPERAND_F16 : MX_OPERAND_BF16);
    const int man = to->man_bits, r = 23 - man, least = 127 + 1 - to->bias; /* the exponent field of the smallest normal number */
    const uint32_t cut = (1u << r) - 1;
    conversion c = of(row);
    for (int i = 0; i < 1500; i++) {
      int e = g.below(3) ? least + (int)g.below(8) : least - 1 - (int)g.below((unsigned)man + 1);
      if (e < 0) e = 0;
      uint32_t fraction = g.next() & 0x7FFFFF, seed = g.next();
      const unsigned kind = g.below(4), bits = g.below(8);
      if (kind == 0) fraction |= 0x7FFFFF & ~cut;
      if (kind == 1) fraction = (fraction & ~cut) | 1u << (r - 1);
      if (kind == 2) fraction = (fraction & ~cut) | 1u << g.below((unsigned)r);
      if (bits == 0) seed = 1u << g.below(32);
      if (bits == 1) seed = UINT32_MAX << g.below(24);
      if (bits == 2) seed = UINT32_MAX >> g.below(24);
      const int shift = e && e < least ? r + least - e : r;
      if (bits > 3 &&
          shift <= 32) { /* the bits that are cut and those of the seed add up to one step from a unit, from one and a half, or from a half */
        const uint64_t unit = UINT64_C(1) << shift, rest = (fraction | (e ? 0x800000u : 0)) & (unit - 1),
                       sums[] = {unit, unit / 2 * 3, unit / 2};
        const uint64_t sum = sums[g.below(3)] + g.below(3) - 1, word = sum - rest;
        if (sum >= rest && word < unit) {
          const uint64_t top = word << (32 - shift);
          seed = (uint32_t)(bits == 4   ? top
                            : bits == 5 ? top >> 1
                            : bits == 6 ? top << 1
                                        : word); /* placed where each answer to _seed reads it */
        }
      }
      c.add({(uint32_t)e << 23 | fraction | (g.next() & 0x80000000)}, 0, seed, OLD);
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
  if (rule == "widen_flush") {
    for (uint32_t mode : {0u, (uint32_t)GFX950_MODE_FLUSH})
      for (int row : {(int)ROW(scalef32_f32_fp8), (int)ROW(scalef32_f32_bf8), (int)ROW(scalef32_pk_f32_fp4), (int)ROW(scalef32_pk32_f32_bf6),
                      (int)ROW(scalef32_pk_bf16_fp8), (int)ROW(scalef32_pk_bf16_fp4), (int)ROW(scalef32_f16_fp8), (int)ROW(f32_fp8)}) {
        conversion c = of(row, 0, mode);
        for (uint32_t byte : {1u, 2u, 5u, 9u, 112u, 127u})
          for (uint32_t v : {0x38u, 0xB0u, 0x01u, 0x83u, 0x22u, 0x19u}) c.add({v}, byte << 23, 0, 0);
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
    for (int row : fp8_rows()) { /* times twice the smallest subnormal; both become ties if first rounded as normal numbers */
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
  if (rule == "sr_seed" || rule == "sr_next") { /* each bit of the seed on its own, at several distances from the code below */
    const bool one = rule == "sr_seed";
    for (int row :
         one ? sr_fp8_rows() : std::vector<int>{ROW(scalef32_sr_pk_fp4_f32), ROW(scalef32_sr_pk_fp4_bf16), ROW(scalef32_sr_pk32_fp6_f32)}) {
      conversion c = of(row);
      for (int bit = 0; bit < 32; bit++)
        for (uint32_t v : {0x3F900000u, 0x3FA00000u, 0x3F880000u, 0x3FAC0000u, 0x3FB7FFFFu}) {
          const uint32_t two = row_of(row).wide == GFX950_F32 ? v : (v >> 16) * 0x10001u;
          for (uint32_t seed : {1u << bit, g->next()}) {
            c.add({}, ONE, seed, 0);
            std::fill(c.x.end() - row_of(row).words_x, c.x.end(), two); /* all elements */
          }
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
      /* Values so near to the code above that only the extra bits of `wide` can keep them down, or so near to the one below that only they
       * can raise them. */
      for (uint32_t fraction : {0x7FFFFFu, 0x7FFFF0u, 1u, 3u, 0x000100u})
        for (int e = 0; e < 3; e++)
          for (uint32_t seed : {0xFFFFF7FFu, 0x000007FFu, 0xFFFFFC00u, 0x00000800u, 0xFFFFFFFFu})
            c.add({(uint32_t)(least + 127 + e) << 23 | fraction}, ONE, seed, 0);
      q.conversions.push_back(c);
    }
    return q;
  }
  if (rule.compare(0, 3, "sr8") == 0 || rule.compare(0, 4, "sr16") == 0) {
    if (rule != "sr8_carry") return unscaled_stochastic(rule);
  }
  if (rule == "sr_carry" || rule == "sr8_carry") {
    for (uint32_t mode : {0u, (uint32_t)GFX950_MODE_OVFL})
      for (int row : rule == "sr_carry" ? sr_fp8_rows() : std::vector<int>{ROW(sr_fp8_f32), ROW(sr_bf8_f32)}) {
        conversion c = of(row, 0, mode);
        const uint32_t below =
            row_of(row).elem == GFX950_E4M3 ? 0x43EFFFFF : 0x477FFFFF; /* the float just below the first value past the largest */
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
  if (rule == "mfma_scale_ff") { /* one product of 1 x 1 in block 0 or 1, of which block 0 has the NaN scale */
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

/* What the rules give: first the words of the conversions, then those of the products. */
std::vector<words> under(const question &q, const gfx950_rules &rules) {
  std::vector<words> all;
  for (const conversion &c : q.conversions) all.push_back(predicted(c, rules));
  for (const product &p : q.products) {
    all.push_back(predicted(p, rules));
    if (q.any_nan) one_nan(&all.back());
  }
  return all;
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
  std::vector<int> later; /* those of q.together that have not been asked yet */
  for (int i = rule + 1; gfx950_rule_name(i, nullptr); i++)
    for (const std::string &name : q.together)
      if (name == gfx950_rule_name(i, nullptr)) later.push_back(i);
  std::vector<std::vector<words>> would; /* what each choice gives: with answers of the others that fit, or else with their first answers */
  for (int choice = 0; gfx950_choice_name(rule, choice, nullptr); choice++) {
    *gfx950_rule_of(&rules, rule) = choice;
    for (int other : later) *gfx950_rule_of(&rules, other) = 0;
    bool fits = false;
    for (bool more = true; more && !fits;) {
      const std::vector<words> all = under(q, rules);
      fits = all == given;
      if (fits || would.size() == (size_t)choice) would.resize((size_t)choice), would.push_back(all);
      more = false;
      for (int other : later) { /* steps through the answers of the others as an odometer does */
        int *answer = gfx950_rule_of(&rules, other);
        more = gfx950_choice_name(other, ++*answer, nullptr) != nullptr;
        if (more) break;
        *answer = 0;
      }
    }
    if (fits) a.choices.push_back(choice);
  }
  /* The evidence is the first word on which not all answers agree. */
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
} // namespace

bool gfx950_run::ask_rule(gfx950_profile *out, device *d, int rule, generator *g) {
  return settle(out, d, rule, ask(gfx950_rule_name(rule, nullptr), g));
}
