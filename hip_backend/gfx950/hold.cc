/* Checks every instruction against the rules that were found. */
#include <stdlib.h>
#include <string.h>

#include "hip_backend/gfx950/run.h"
#include "mxgold/verify.h"

using namespace gfx950_run;

namespace {
uint32_t wide_value(generator *g, int wide, unsigned byte) {
  static const uint32_t specials[] = {0, 1, 0x7F800000, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x7FFFFFFF};
  const uint32_t sign = g->next() & 0x80000000;
  uint32_t v = g->next();
  const unsigned kind = g->below(8);
  if (kind == 0)
    v = specials[g->below(9)] | sign;
  else if (kind < 7) { /* near the scale, with few bits so that ties occur */
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

/* A float rounded to nearest in the type that an instruction takes. */
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

/* Turns a suite of gen into cases of one conversion: narrowing gets the numbers with the scales that the emulator gives their blocks,
 * widening gets the codes that the emulator makes of them. The select operand takes its values in turn. */
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
  const mx_exec one = {.n_threads = 1, .isa_mask = 0, .first_row = 0, .amax_known = 0, .amax = 0, .workspace = NULL};
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
} // namespace

bool gfx950_run::hold(gfx950_profile *out, device *d, uint64_t seed, bool suites, const gfx950_profile_options &o) {
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
