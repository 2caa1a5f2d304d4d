/* Declares cases of gfx950's instructions, how a device runs them, and what they give under a set of rules. */
#ifndef MXH_GFX950_RUN_H
#define MXH_GFX950_RUN_H

#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

#include "hip_backend/run/buffer.h"
#include "hip_backend/gfx950/profile.h"
#include "hip_backend/gfx950/native.h"
#include "mxgold/probe.h"

namespace gfx950_run {
typedef std::vector<uint32_t> words;

struct generator {
  uint64_t state;
  uint32_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(state * 2685821657736338717u >> 32);
  }
  unsigned below(unsigned n) { return next() % n; }
};

inline std::string hex(uint32_t v) {
  char s[12];
  snprintf(s, sizeof s, "%08X", v);
  return s;
}

inline const gfx950_row &row_of(int index) { return gfx950_rows[index]; }

/* Cases of one conversion: x [n][words_x], old [n][words_out]; scale and seed [n]. */
struct conversion {
  int row, select;
  uint32_t mode;
  int from; /* GFX950_FROM_* */
  words x, old, scale, seed;
  size_t n() const { return scale.size(); }
  void add(std::initializer_list<uint32_t> source, uint32_t a_scale, uint32_t a_seed, uint32_t before) {
    words all(source);
    all.resize((size_t)row_of(row).words_x, 0);
    x.insert(x.end(), all.begin(), all.end());
    old.insert(old.end(), (size_t)row_of(row).words_out, before);
    scale.push_back(a_scale);
    seed.push_back(a_seed);
  }
};
inline conversion of(int row, int select = 0, uint32_t mode = 0, int from = GFX950_FROM_VGPR) {
  return {row, select, mode, from, {}, {}, {}, {}};
}

/* Tiles of one product, as registers of lanes: [tiles][64][8], c and d [tiles][64][regs]. */
struct product {
  int edge, a_type, b_type, select;
  uint32_t mode;
  words a, b, c, scale_a, scale_b;
  size_t tiles() const { return scale_a.size() / 64; }
  int regs() const { return gfx950_result_regs(edge); }
};
inline product tiles_of(int edge, int a, int b, int select, uint32_t mode, size_t n) {
  product p = {edge,
               a,
               b,
               select,
               mode,
               words(n * 512),
               words(n * 512),
               words(n * 64 * (size_t)gfx950_result_regs(edge)),
               words(n * 64, 0x7F7F7F7F),
               words(n * 64, 0x7F7F7F7F)};
  return p;
}
inline void set_code(product *p, int side, size_t tile, int row, int k, uint32_t code) {
  const int type = side ? p->b_type : p->a_type;
  const gfx950_at at = gfx950_operand_at(p->edge, type, row, k);
  gfx950_set_field(&(side ? p->b : p->a)[tile * 512 + (size_t)at.lane * 8], at.bit, gfx950_bits(type), code);
}
inline void set_scale(product *p, int side, size_t tile, int row, int block, uint32_t byte) {
  const int which = side ? p->select / 4 : p->select % 4;
  uint32_t *w = &(side ? p->scale_b : p->scale_a)[tile * 64 + (size_t)gfx950_scale_lane(p->edge, row, block)];
  *w = (*w & ~(0xFFu << 8 * which)) | byte << 8 * which;
}
inline size_t result_at(const product &p, size_t tile, int row, int col) {
  for (int lane = 0; lane < 64; lane++)
    for (int reg = 0; reg < p.regs(); reg++) {
      int r, c;
      gfx950_result_of(p.edge, lane, reg, &r, &c);
      if (r == row && c == col) return (tile * 64 + (size_t)lane) * (size_t)p.regs() + (size_t)reg;
    }
  return 0;
}

struct device {
  mxh_device *dev;
  const gfx950_rules *play;
  std::string why;

  bool launch(const std::string &kernel, unsigned grid, unsigned block, const void *args, size_t n_args) {
    if (!mxh_launch(dev, kernel.c_str(), grid, block, args, n_args) && !mxh_sync(dev)) return true;
    why = kernel + ": " + mxh_error(dev);
    return false;
  }
  bool run(const conversion &q, words *out) {
    const gfx950_row &row = row_of(q.row);
    const std::string kernel = q.from == GFX950_FROM_SGPR     ? "gfx950_probe_sgpr"
                               : q.from == GFX950_FROM_INLINE ? "gfx950_probe_inline"
                                                              : "gfx950_" + std::string(row.name) + "_s" + std::to_string(q.select);
    mxh_buffer x(dev, q.x.size() * 4), y(dev, q.old.size() * 4), scale(dev, q.n() * 4), seed(dev, q.n() * 4);
    if (x.put(q.x.data(), q.x.size() * 4) || y.put(q.old.data(), q.old.size() * 4) || scale.put(q.scale.data(), q.n() * 4) ||
        seed.put(q.seed.data(), q.n() * 4)) {
      why = mxh_error(dev);
      return false;
    }
    gfx950_convert_args a = {};
    a.out = y.as<uint32_t>(), a.x = x.as<uint32_t>(), a.scale = scale.as<uint32_t>(), a.seed = seed.as<uint32_t>();
    a.n = (uint32_t)q.n(), a.env.mode = q.mode, a.env.rules = play;
    if (!launch(kernel, (unsigned)(q.n() + 255) / 256, 256, &a, sizeof a)) return false;
    out->resize(q.old.size());
    if (!y.get(out->data(), out->size() * 4)) return true;
    why = mxh_error(dev);
    return false;
  }
  bool run(const product &p, words *out) {
    const std::string kernel = std::string("gfx950_mfma_scale_f32_") + (p.edge == 16 ? "16x16x128" : "32x32x64") + "_f8f6f4_a" +
                               std::to_string(p.a_type) + "_b" + std::to_string(p.b_type) + "_s" + std::to_string(p.select);
    mxh_buffer a(dev, p.a.size() * 4), b(dev, p.b.size() * 4), c(dev, p.c.size() * 4), d(dev, p.c.size() * 4), sa(dev, p.scale_a.size() * 4),
        sb(dev, p.scale_b.size() * 4);
    if (a.put(p.a.data(), p.a.size() * 4) || b.put(p.b.data(), p.b.size() * 4) || c.put(p.c.data(), p.c.size() * 4) ||
        sa.put(p.scale_a.data(), p.scale_a.size() * 4) || sb.put(p.scale_b.data(), p.scale_b.size() * 4)) {
      why = mxh_error(dev);
      return false;
    }
    gfx950_mfma_args args = {};
    args.d = d.as<uint32_t>(), args.a = a.as<uint32_t>(), args.b = b.as<uint32_t>(), args.c = c.as<uint32_t>(),
    args.scale_a = sa.as<uint32_t>(), args.scale_b = sb.as<uint32_t>();
    args.env.mode = p.mode, args.env.rules = play;
    if (!launch(kernel, (unsigned)p.tiles(), 64, &args, sizeof args)) return false;
    out->resize(p.c.size());
    if (!d.get(out->data(), out->size() * 4)) return true;
    why = mxh_error(dev);
    return false;
  }
};

inline words predicted(const conversion &q, const gfx950_rules &rules) {
  const gfx950_row &row = row_of(q.row);
  const gfx950_env env = {q.mode, 0, &rules};
  words out = q.old;
  for (size_t i = 0; i < q.n(); i++)
    gfx950_convert(&env, &row, q.select, &out[i * (size_t)row.words_out], &q.x[i * (size_t)row.words_x],
                   q.from == GFX950_FROM_INLINE ? 0x40800000
                   : q.from == GFX950_FROM_SGPR ? q.scale[0]
                                                : q.scale[i],
                   q.seed[i], q.from);
  return out;
}
inline words predicted(const product &p, const gfx950_rules &rules) {
  words out(p.c.size());
  std::vector<gfx950_mfma_in> in(64);
  std::vector<gfx950_mfma_out> result(64);
  const size_t regs = (size_t)p.regs();
  for (size_t tile = 0; tile < p.tiles(); tile++) {
    for (size_t lane = 0; lane < 64; lane++) {
      gfx950_mfma_in &l = in[lane];
      l = gfx950_mfma_in();
      memcpy(l.a, &p.a[tile * 512 + lane * 8], 32);
      memcpy(l.b, &p.b[tile * 512 + lane * 8], 32);
      memcpy(l.c, &p.c[(tile * 64 + lane) * regs], 4 * regs);
      l.scale_a = p.scale_a[tile * 64 + lane], l.scale_b = p.scale_b[tile * 64 + lane];
      l.m = (uint32_t)p.edge, l.cbsz = (uint32_t)p.a_type, l.blgp = (uint32_t)p.b_type, l.select = (uint32_t)p.select;
      l.env = {p.mode, 0, &rules};
    }
    gfx950_mfma(in.data(), result.data());
    for (size_t lane = 0; lane < 64; lane++) memcpy(&out[(tile * 64 + lane) * regs], result[lane].d, 4 * regs);
  }
  return out;
}

inline bool is_nan(uint32_t f) { return (f & 0x7FFFFFFF) > 0x7F800000; }
inline void one_nan(words *w) {
  for (uint32_t &v : *w)
    if (is_nan(v)) v = 0x7FC00000;
}

/* Finds which answers to a rule the device gives, and puts them into out->answers and out->rules. */
bool ask_rule(gfx950_profile *out, device *d, int rule, generator *g);

/* Checks every instruction under out->rules, and puts the results into out->held. */
bool hold(gfx950_profile *out, device *d, uint64_t seed, bool suites, const gfx950_profile_options &o);

/* Adds compared words to a record. */
void count(gfx950_held *h, size_t cases, const words &got, const words &want, const std::string &where);

/* What a pair as numbered by gfx950_pair() consists of. */
inline int edge_of(int pair) { return pair < 25 ? 16 : 32; }
inline int a_of(int pair) { return pair / 5 % 5; }
inline int b_of(int pair) { return pair % 5; }
inline const mx_format *element_format(int type) { return mx_format_find(gfx950_type_name(type)); }

/* Fill tiles that are zero: fill_chains() the first chains * steps, all but C, which whoever runs them sets; fill_ties() those from `first`
 * on. */
void fill_chains(mx_probe *p, int pair, size_t chains, size_t steps, generator *g);
void fill_ties(mx_probe *p, int pair, size_t first, generator *g);

/* find_sums() finds a model for each pair of types, for out->sums and out->rules; hold_products() checks every product's kernel against
 * them. */
bool find_sums(gfx950_profile *out, device *d, const gfx950_profile_options &o);
bool hold_products(gfx950_profile *out, device *d, int index, bool suites, generator *g, gfx950_held *h);
} // namespace gfx950_run
#endif
