/* Finds how gfx950's products are summed for each pair of types, and checks all 800 kernels against that. */
#include <stdlib.h>

#include "hip_backend/gfx950/run.h"
#include "mxgold/verify.h"

using namespace gfx950_run;

namespace {
/* Turns tiles of mx_probe into registers. */
product registers(const mx_probe &probe, int pair) {
  const int edge = edge_of(pair), a_type = a_of(pair), b_type = b_of(pair);
  product p = tiles_of(edge, a_type, b_type, 0, 0, probe.T);
  const size_t depth = probe.spec.K, blocks = depth / 32;
  for (size_t t = 0; t < probe.T; t++)
    for (int side = 0; side < 2; side++) {
      const uint8_t *codes = side ? probe.b : probe.a, *scales = side ? probe.scale_b : probe.scale_a;
      const int type = side ? b_type : a_type;
      const size_t row_bytes = side ? probe.b_bytes : probe.a_bytes;
      for (size_t r = 0; r < (size_t)edge; r++) {
        const uint8_t *row = codes + (t * (size_t)edge + r) * row_bytes;
        for (size_t k = 0; k < depth; k++) {
          const uint32_t code = gfx950_bits(type) == 4 ? row[k / 2] >> (k % 2 * 4) & 15 : row[k];
          if (code) set_code(&p, side, t, (int)r, (int)k, code); /* the registers start as zeros */
        }
        for (size_t b = 0; b < blocks; b++) set_scale(&p, side, t, (int)r, (int)b, scales[(t * (size_t)edge + r) * blocks + b]);
      }
    }
  for (size_t t = 0; t < probe.T; t++)
    for (int lane = 0; lane < 64; lane++)
      for (int reg = 0; reg < p.regs(); reg++) {
        int row, col;
        gfx950_result_of(edge, lane, reg, &row, &col);
        memcpy(&p.c[(t * 64 + (size_t)lane) * (size_t)p.regs() + (size_t)reg],
               probe.c + ((t * (size_t)edge + (size_t)row) * (size_t)edge + (size_t)col) * 4, 4);
      }
  return p;
}
words matrix(const product &p, const words &d) {
  words out(d.size());
  const size_t edge = (size_t)p.edge;
  for (size_t t = 0; t < p.tiles(); t++)
    for (int lane = 0; lane < 64; lane++)
      for (int reg = 0; reg < p.regs(); reg++) {
        int row, col;
        gfx950_result_of(p.edge, lane, reg, &row, &col);
        out[(t * edge + (size_t)row) * edge + (size_t)col] = d[(t * 64 + (size_t)lane) * (size_t)p.regs() + (size_t)reg];
      }
  one_nan(&out); /* the rule mfma_nan decides the payload */
  return out;
}

/* The tiles first .. first + n - 1 of a batch. */
mx_probe part_of(const mx_probe &p, size_t first, size_t n) {
  mx_probe part = p;
  part.T = n;
  part.a += first * p.spec.M * p.a_bytes;
  part.b += first * p.spec.N * p.b_bytes;
  part.c += first * p.spec.M * p.spec.N * p.c_bytes;
  part.scale_a += first * p.spec.M * p.s_bytes;
  part.scale_b += first * p.spec.N * p.s_bytes;
  return part;
}

mx_probe_spec spec_of(int pair, uint64_t seed) {
  const size_t edge = (size_t)edge_of(pair);
  const mx_format *f32 = mx_operand_format(MX_OPERAND_F32);
  return {element_format(a_of(pair)),
          element_format(b_of(pair)),
          f32,
          f32,
          mx_scale_format(MX_SCALE_E8M0),
          32,
          edge,
          edge,
          (size_t)gfx950_depth((int)edge),
          seed};
}

/* A group is at most as long as the instruction. */
mx_accum accum_for(int pair, mx_accum accum) {
  if (accum.L >= gfx950_depth(edge_of(pair))) accum.L = 0;
  return accum;
}

struct searcher {
  device *d;
  uint64_t seed;
  mx_exec exec;

  bool fine(mx_status status, const mx_error &err) {
    if (status) d->why = err.text;
    return status == MX_OK;
  }
  /* The probe tiles of a pair: cancellation, joining with C and edge cases, made for its types. */
  bool tiles(mx_probe *p, int pair) {
    const mx_probe_spec spec = spec_of(pair, seed);
    mx_error err;
    if (!fine(mx_probe_make(p, &spec, &err), err)) return false;
    return plain_scales(p);
  }
  /* Replaces scale 0xFF, whose effect the rule mfma_scale_ff decides. */
  static bool plain_scales(mx_probe *p) {
    for (size_t i = 0; i < p->T * p->spec.M * p->s_bytes; i++) {
      if (p->scale_a[i] == 0xFF) p->scale_a[i] = 0xFE;
      if (p->scale_b[i] == 0xFF) p->scale_b[i] = 0xFE;
    }
    return true;
  }
  bool run(const mx_probe &p, int pair, words *got) {
    const product q = registers(p, pair);
    words raw;
    if (!d->run(q, &raw)) return false;
    *got = matrix(q, raw);
    return true;
  }
  /* Makes chains and ties and runs them: the D of a step is the C of the next. They are not probes of a search; the fit is given what a
   * model gets wrong there. */
  bool join(mx_probe *p, int pair, size_t chains, size_t steps, size_t ties, uint64_t from, words *got) {
    const size_t edge = (size_t)edge_of(pair), n = chains * steps;
    const mx_probe_spec spec = spec_of(pair, from);
    mx_error err;
    if (!fine(mx_probe_alloc(p, &spec, n + ties, n + ties, &err), err)) return false;
    p->n = 0;
    generator g = {from * 2 + 0x9E3779B97F4A7C15u + (uint64_t)pair * 978};
    fill_chains(p, pair, chains, steps, &g);
    fill_ties(p, pair, n, &g);
    got->clear();
    for (size_t step = 0; step <= steps; step++) {
      const mx_probe part = part_of(*p, step * chains, step < steps ? chains : ties);
      words results;
      if (step && step < steps) memcpy(part.c, got->data() + got->size() - chains * edge * edge, chains * edge * edge * 4);
      if (part.T && !run(part, pair, &results)) return false;
      got->insert(got->end(), results.begin(), results.end());
    }
    return true;
  }
  bool explains(const mx_accum &accum, const mx_probe &p, int pair, const words &got) {
    mx_mma_model m = {};
    m.accum = accum_for(pair, accum);
    m.a = p.spec.a, m.b = p.spec.b, m.c = p.spec.c, m.d = p.spec.d, m.scale = p.spec.scale;
    m.block = p.spec.block;
    m.k = (int)p.spec.K;
    const mx_mma_args args = mx_probe_args(&p);
    words want(got.size());
    if (mx_mma(want.data(), &m, &args, &exec, nullptr)) return false;
    one_nan(&want);
    return want == got;
  }
  /* Fits a model to one pair, whose first tiles, chains and ties are given with their results; the fit asks for more batches as it needs
   * them. */
  bool fit(gfx950_sums *s, int pair, const mx_probe *first, const words &given, const mx_probe &joins, const words &joined) {
    enum { GIVEN = 2, BATCHES = 7 };
    mx_probe probes[BATCHES] = {*first, joins};
    std::vector<words> results = {given, joined};
    std::vector<const void *> bits;
    mx_probe_fit fit = {};
    mx_error err = {};
    bool good = true;
    size_t n = GIVEN;
    for (; good; n++) {
      if (n > GIVEN) {
        words got;
        plain_scales(&probes[n - 1]);
        good = run(probes[n - 1], pair, &got);
        if (!good) break;
        results.push_back(got);
      }
      bits.clear();
      for (const words &w : results) bits.push_back(w.data());
      good = fine(mx_probe_fit_run(&fit, probes, bits.data(), n, &exec, &err), err);
      if (!good || !fit.fits || !fit.next.T || n == BATCHES) break;
      probes[n] = fit.next;
      fit.next = mx_probe();
      mx_probe_fit_free(&fit);
      fit = mx_probe_fit();
    }
    if (good) {
      s->fits = fit.fits;
      s->accum = fit.model.accum;
      for (size_t i = 0; i < fit.n_names; i++) s->same.push_back(fit.names[i]);
    }
    mx_probe_fit_free(&fit);
    for (size_t i = GIVEN; i < n && i < BATCHES; i++) mx_probe_free(&probes[i]);
    return good;
  }
};

std::string model_text(int pair, const mx_accum &accum) {
  char keys[400], rest[120];
  const mx_accum own = accum_for(pair, accum);
  mx_accum_text(keys, sizeof keys, &own);
  snprintf(rest, sizeof rest, ",a=%s,b=%s,c=f32,d=f32,scale=e8m0,block=32,k=%d", gfx950_type_name(a_of(pair)), gfx950_type_name(b_of(pair)),
           gfx950_depth(edge_of(pair)));
  return std::string("fused:") + keys + rest;
}
} // namespace

std::string gfx950_profile_accum(const gfx950_profile &p, int pair) {
  const gfx950_sums *s = p.sums_of(pair);
  return s && s->fits ? model_text(pair, s->accum) : "";
}

namespace {
/* The results of each pair: on the tiles made for its types, and on chains and ties. */
struct asked {
  words tiles, joined;
  mx_probe joins = {};
};
bool explains(searcher &find, const mx_accum &accum, const mx_probe &tiles, int pair, const asked &q) {
  return find.explains(accum, tiles, pair, q.tiles) && find.explains(accum, q.joins, pair, q.joined);
}
/* A later model replaces an earlier one if it explains everything that the earlier one does, since types of a wider range show more. */
bool replace(searcher &find, gfx950_sums *s, std::vector<gfx950_sums> *sums, const std::vector<asked> &all) {
  for (size_t i = 0; s->fits && i < sums->size(); i++) {
    const gfx950_sums old = (*sums)[i];
    bool every = old.fits != 0;
    for (size_t j = 0; every && j < old.pairs.size(); j++) {
      mx_probe p = {};
      if (!find.tiles(&p, old.pairs[j])) return false;
      every = explains(find, s->accum, p, old.pairs[j], all[(size_t)old.pairs[j]]);
      mx_probe_free(&p);
    }
    if (!every) continue;
    s->pairs.insert(s->pairs.begin(), old.pairs.begin(), old.pairs.end());
    s->words += old.words;
    sums->erase(sums->begin() + (long)i--);
  }
  return true;
}
/* Every pair runs tiles made for its types, chains and ties. If a model that was found on another pair explains its bits, the pair joins
 * that model; otherwise a model is searched for it. */
bool find_all(gfx950_profile *out, searcher &find, std::vector<asked> *all, const gfx950_profile_options &o) {
  enum {
    SEARCHES = 8,
    FAILURES = 2
  }; /* a search that finds nothing takes minutes, so after two of them there is no third, and such pairs get no model */
  enum { CHAINS = 5, STEPS = 8, TIES = 16 };
  int searches = 0, failures = 0;
  for (int pair = 0; pair < GFX950_PAIRS; pair++) {
    mx_probe p = {};
    asked &q = (*all)[(size_t)pair];
    if (o.doing) o.doing("the sums of " + gfx950_pair_name(pair));
    bool fine = find.tiles(&p, pair) && find.run(p, pair, &q.tiles) && find.join(&q.joins, pair, CHAINS, STEPS, TIES, find.seed, &q.joined);
    gfx950_sums *known = nullptr;
    const size_t words_run = q.tiles.size() + q.joined.size();
    for (gfx950_sums &s : out->sums)
      if (fine && !known && s.fits && explains(find, s.accum, p, pair, q)) known = &s;
    if (known) {
      known->pairs.push_back(pair);
      known->words += words_run;
    } else if (fine) {
      gfx950_sums s = {{pair}, gfx950_pair_name(pair), 0, words_run, "", {}, out->rules.accum[pair]};
      if (searches < SEARCHES && failures < FAILURES) {
        searches++;
        fine = find.fit(&s, pair, &p, q.tiles, q.joins, q.joined);
        failures += !s.fits;
        s.model = model_text(pair, s.accum);
      }
      fine = fine && replace(find, &s, &out->sums, *all);
      out->sums.push_back(s);
    }
    mx_probe_free(&p);
    if (!fine) return false;
  }
  return true;
}
} // namespace

bool gfx950_run::find_sums(gfx950_profile *out, device *d, const gfx950_profile_options &o) {
  searcher find = {d, o.seed, {.n_threads = o.threads, .isa_mask = 0, .first_row = 0, .amax_known = 0, .amax = 0, .workspace = NULL}};
  std::vector<asked> all(GFX950_PAIRS);
  const bool fine = find_all(out, find, &all, o);
  for (asked &q : all) mx_probe_free(&q.joins);
  for (const gfx950_sums &s : out->sums)
    for (int pair : s.pairs) out->rules.accum[pair] = s.accum;
  return fine;
}

/* --- every kernel --- */

namespace {
/* Blocks of 32 elements with their scales, which the emulator makes from a suite of gen. */
struct block {
  uint8_t code[32], scale;
};
bool blocks_of(std::vector<block> *out, int type, int suite, std::string *why) {
  enum { ENOUGH = 512 };
  mx_spec spec = {};
  mx_cases cases = {};
  mx_error err;
  mx_tensor t = {};
  const mx_exec one = {.n_threads = 1, .isa_mask = 0, .first_row = 0, .amax_known = 0, .amax = 0, .workspace = NULL};
  if (mx_spec_parse(&spec, ("elem=" + std::string(gfx950_type_name(type))).c_str(), &err) || mx_generate(&cases, suite, &spec, 0, 0, 1, &err)) {
    *why = err.text;
    return false;
  }
  bool fine = mx_tensor_alloc(&t, cases.rows, cases.cols, &spec) == MX_OK;
  for (size_t i = 0; fine && i < cases.n && out->size() < ENOUGH; i++) {
    fine = mx_quantize(&t, cases.x + i * cases.rows * cases.ld, cases.rows, cases.cols, cases.ld, &spec, &one, nullptr) == MX_OK;
    for (size_t r = 0; fine && r < cases.rows && out->size() < ENOUGH; r++)
      for (size_t k = 0; k < cases.cols; k += 32) {
        block b = {};
        b.scale = (uint8_t)t.scales[r * t.scale_cols + k / 32];
        for (size_t j = 0; j < 32 && k + j < cases.cols; j++) b.code[j] = (uint8_t)mx_code_at(&t, &spec, r, k + j);
        out->push_back(b);
      }
  }
  if (!fine || out->empty()) *why = std::string("suite ") + mx_suite_name(suite) + " gives no blocks";
  mx_tensor_free(&t);
  mx_cases_free(&cases);
  return fine && !out->empty();
}

/* A C whose distance from a sum of products of that exponent is within the range in which the way of joining the two can matter. */
uint32_t c_near(generator *g, int exponent) {
  int e = exponent + (int)g->below(82) - 41;
  e = e < 0 ? 0 : e > 254 ? 254 : e;
  return g->below(16) ? (g->next() & 0x807FFFFF) | (uint32_t)e << 23 : g->next() & 0x80000000;
}
} // namespace

bool gfx950_run::hold_products(gfx950_profile *out, device *d, int index, bool suites, generator *g, gfx950_held *h) {
  const gfx950_row &row = row_of(index);
  const int edge = row.form == GFX950_MFMA16 ? 16 : 32, depth = gfx950_depth(edge);
  int launched = 0;
  std::string open;
  words got;
  std::vector<block> pool[5][MX_SUITE_COUNT];
  for (int type = 0; suites && type < 5; type++)
    for (int suite = 0; suite < MX_SUITE_COUNT; suite++)
      if (!blocks_of(&pool[type][suite], type, suite, &d->why)) return false;
  for (int types = 0; types < 25; types++) {
    const int pair = gfx950_pair(edge, types / 5, types % 5);
    const gfx950_sums *s = out->sums_of(pair);
    const bool judged = s && s->fits;
    if (!judged) open += (open.empty() ? "" : ", ") + gfx950_pair_name(pair);
    auto hold = [&](const product &p, const std::string &what) {
      if (!d->run(p, &got)) return false;
      if (judged)
        count(h, p.tiles(), got, predicted(p, out->rules),
              std::string(gfx950_type_name(p.a_type)) + " x " + gfx950_type_name(p.b_type) + " scale bytes " + std::to_string(p.select % 4) +
                  " and " + std::to_string(p.select / 4) + ", " + what);
      return true;
    };
    for (int select = 0; select < 16; select++, launched++) /* every scale register holds four different bytes */
      for (int i = 0; i < 2; i++) {
        product p = tiles_of(edge, types / 5, types % 5, select, i && select % 2 ? GFX950_MODE_OVFL : 0, 1);
        for (words *w : {&p.a, &p.b}) {
          for (uint32_t &v : *w) v = g->next();
          if (i == 0) /* the first tile has no NaN or Inf; FP6 and FP4 have none anyway */
            for (uint32_t &v : *w) v &= gfx950_bits(w == &p.a ? p.a_type : p.b_type) == 8 ? 0xB7B7B7B7 : 0xFFFFFFFF;
        }
        for (uint32_t &v : p.c) v = i ? g->next() : c_near(g, 130);
        for (words *w : {&p.scale_a, &p.scale_b})
          for (uint32_t &v : *w) v = i ? g->next() : (g->next() & 0x07070707) + 0x7C7C7C7C;
        if (!hold(p, i ? "any bits" : "random")) return false;
      }
    mx_probe joins = {}; /* tiles that no search has seen */
    searcher make = {d, 0, {}};
    bool fine = make.join(&joins, pair, 2, 5, 4, g->next(), &got);
    if (fine && judged) {
      const product p = registers(joins, pair);
      count(h, p.tiles(), got, matrix(p, predicted(p, out->rules)), gfx950_pair_name(pair) + " chained along K, or a tie");
    }
    mx_probe_free(&joins);
    if (!fine) return false;
    for (int suite = 0; suites && suite < MX_SUITE_COUNT; suite++) {
      const std::vector<block> &a = pool[types / 5][suite], &b = pool[types % 5][suite];
      product p = tiles_of(edge, types / 5, types % 5, (suite + 5 * types) % 16, 0, 1);
      for (words *w : {&p.scale_a, &p.scale_b})
        for (uint32_t &v : *w) v = g->next();
      for (int side = 0; side < 2; side++)
        for (int r = 0; r < edge; r++)
          for (int k = 0; k < depth / 32; k++) {
            const std::vector<block> &from = side ? b : a;
            const block &it = from[((size_t)(r * (depth / 32) + k) * (side ? 7 : 1)) % from.size()];
            for (int j = 0; j < 32; j++) set_code(&p, side, 0, r, 32 * k + j, it.code[j]);
            set_scale(&p, side, 0, r, k, it.scale);
          }
      for (uint32_t &v : p.c) v = c_near(g, (int)a[g->below((unsigned)a.size())].scale + b[g->below((unsigned)b.size())].scale - 127);
      if (!hold(p, std::string("suite ") + mx_suite_name(suite))) return false;
    }
  }
  h->note = std::to_string(launched) + " of 400 kernels launched: 25 pairs of types, 16 pairs of scale bytes";
  if (!open.empty()) h->note += "; not judged, since no model of their sums was found: " + open;
  return true;
}
