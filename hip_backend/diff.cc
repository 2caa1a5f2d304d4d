/* Every portable operation against the oracle. */
#include "hip_backend/diff.h"

#include <map>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "tests/lib/mixtures.h"
#include "tests/lib/suites.h"
}
#include "hip_backend/ops.h"
#include "mxgold/rcp.h"

static mxh_row &row_of(mxh_run *run, const char *operation) {
  for (auto &r : run->rows)
    if (r.operation == operation) return r;
  mxh_row row;
  row.group = run->group;
  row.operation = operation;
  run->rows.push_back(row);
  return run->rows.back();
}
bool mxh_part(mxh_run *run, int part) {
  if (part < run->first_part || (run->counting && part > run->last_part)) return false;
  if (run->part_begun) run->part_begun(part);
  return true;
}
void mxh_begin(mxh_run *run, const std::string &operation, const std::string &what) {
  if (run->begun) run->begun(operation, what);
}
void mxh_found(mxh_run *run, const std::string &line) {
  if (run->found) run->found(line);
}
void mxh_add(mxh_run *run, const mxh_row &row) {
  run->rows.push_back(row);
  if (run->row_changed) run->row_changed(row);
}
void mxh_count(mxh_run *run, const char *operation, uint64_t n, uint64_t bad, const std::string &what) {
  mxh_row &r = row_of(run, operation);
  r.cases++;
  r.values += n;
  if (bad && !r.differences) r.first = what;
  r.differences += bad;
  if (run->row_changed) run->row_changed(r);
}
void mxh_decline(mxh_run *run, const char *operation, const std::string &why) {
  mxh_row &r = row_of(run, operation);
  const std::string said = "not run: " + why;
  r.not_run++;
  if (r.note.find(said) == std::string::npos) r.note += (r.note.empty() ? "" : "; ") + said;
  if (run->row_changed) run->row_changed(r);
}
void mxh_skip(mxh_run *run, const char *operation, const std::string &why) {
  mxh_row row;
  row.group = run->group;
  row.operation = operation;
  row.first = why;
  row.skipped = true;
  mxh_add(run, row);
}
uint64_t mxh_differ(const void *a, const void *b, size_t n, size_t unit) {
  uint64_t bad = 0;
  if (n && !memcmp(a, b, n)) return 0;
  for (size_t i = 0; i + unit <= n; i += unit) bad += memcmp((const char *)a + i, (const char *)b + i, unit) != 0;
  return bad;
}

namespace {
/* A failed call counts as a difference: nothing passes by not running. */
bool failed(mxh_run *run, const char *operation, const std::string &what) {
  mxh_count(run, operation, 1, 1, what + ": " + mxh_error(run->dev));
  return false;
}

struct tensor {
  mx_tensor t = {};
  tensor(size_t rows, size_t cols, const mx_spec *spec) {
    if (mx_tensor_alloc(&t, rows, cols, spec)) abort();
  }
  ~tensor() { mx_tensor_free(&t); }
  tensor(const tensor &) = delete;
  tensor &operator=(const tensor &) = delete;
};

uint64_t tensors_differ(const mx_tensor &a, const mx_tensor &b) {
  const size_t scales = a.scale_rows * a.scale_cols;
  uint64_t bad =
      mxh_differ(a.codes, b.codes, a.rows * a.code_stride, 1) + mxh_differ(a.scales, b.scales, scales * a.scale_bytes, a.scale_bytes);
  if (a.micro) bad += mxh_differ(a.micro, b.micro, scales * 3, 1);
  if (a.has_tensor_scale) bad += mxh_differ(&a.tensor_scale, &b.tensor_scale, 4, 4);
  return bad;
}

/* Digest lines "HEX operation preset suite ..." of golden/HASHES. */
std::map<std::string, std::string> read_hashes(const char *path) {
  std::map<std::string, std::string> all;
  FILE *f = path ? fopen(path, "r") : nullptr;
  if (!f) return all;
  char digest[64], operation[128], preset[96], suite_text[32], version[32];
  while (fscanf(f, "%63s %127s %95s %31s %31s", digest, operation, preset, suite_text, version) == 5)
    all[std::string(operation) + " " + preset + " " + suite_text] = digest;
  fclose(f);
  return all;
}
std::string digest_of(const mx_tensor &t) {
  std::string all;
  const size_t scales = t.scale_rows * t.scale_cols;
  all.append((const char *)t.codes, t.rows * t.code_stride);
  all.append((const char *)t.scales, scales * t.scale_bytes);
  if (t.micro) all.append((const char *)t.micro, scales * 3);
  if (t.has_tensor_scale) all.append((const char *)&t.tensor_scale, 4);
  char digest[33];
  mx_digest(digest, all.data(), all.size());
  return digest;
}

/* "KEY=VALUE ... preset=NAME": keys over those of the preset. */
bool read_keys(mx_spec *spec, const char *text, mx_error *err) {
  const char *preset = strstr(text, "preset=");
  if (preset && mx_preset_find(spec, preset + 7, err)) return false;
  const std::string keys(text, preset ? (size_t)(preset - text) : strlen(text));
  return !mx_spec_parse(spec, keys.c_str(), err) && !mx_spec_check(spec, err);
}

struct golden {
  mxh_run *run;
  std::map<std::string, std::string> hashes;

  void digest(const char *operation, const std::string &name, const std::string &got) {
    if (hashes.empty()) return;
    auto h = hashes.find(std::string(operation) + " " + name);
    const std::string row = std::string(operation) + ", digests of golden/HASHES";
    mxh_count(run, row.c_str(), 1, h == hashes.end() || h->second != got, name);
  }

  /* One spec over one matrix: quantise, and dequantise what should have come. */
  bool both_ways(const char *quantize, const char *dequantize, const std::string &name, const float *x, size_t rows, size_t cols, size_t ld,
                 const mx_spec *spec, bool transposed, bool digests) {
    const size_t r = transposed ? cols : rows, c = transposed ? rows : cols;
    tensor want(r, c, spec), got(r, c, spec);
    bool refused = false;
    mxh_begin(run, quantize, name);
    const mx_status status =
        (transposed ? run->oracle->quantize_transposed : run->oracle->quantize)(&want.t, x, rows, cols, ld, spec, nullptr, nullptr);
    if (status && status != MX_ERR_DATA) return failed(run, quantize, name + ": the oracle refuses it");
    if (mxh_quantize(run->dev, &got.t, x, rows, cols, ld, spec, transposed, &refused)) return failed(run, quantize, name);
    if (status == MX_ERR_DATA || refused) {
      mxh_count(run, quantize, 1, (status == MX_ERR_DATA) != refused, name + ": refusal");
      if (digests) {
        char text[33];
        mx_digest(text, "refused", 7);
        digest("quantize", name, text);
      }
      return true;
    }
    mxh_count(run, quantize, r * c, tensors_differ(want.t, got.t), name);
    if (digests) digest("quantize", name, digest_of(got.t));
    if (!dequantize) return true;
    mxh_begin(run, dequantize, name);
    std::vector<float> y(r * c + 1), z(r * c + 1);
    if (run->oracle->dequantize(y.data(), c, &want.t, spec, nullptr)) return failed(run, dequantize, name + ": the oracle refuses it");
    if (mxh_dequantize(run->dev, z.data(), &want.t, spec)) return failed(run, dequantize, name);
    mxh_count(run, dequantize, r * c, mxh_differ(y.data(), z.data(), r * c * 4, 4), name);
    if (digests) {
      char text[33];
      mx_digest(text, z.data(), r * c * 4);
      digest("dequantize", name, text);
    }
    return true;
  }

  void presets() {
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    for (size_t i = 0; i < mx_preset_count(); i++) {
      const mx_preset *p = mx_preset_at(i);
      mx_spec spec;
      if (p->alias_of || mx_preset_find(&spec, p->name, nullptr)) continue;
      for (int s = 0; s < SUITE_COUNT; s++) {
        size_t rows, cols;
        float *x = suite_make(&rows, &cols, (suite)s, &spec, &plain);
        both_ways("quantize", "dequantize", std::string(p->name) + " " + suite_name((suite)s), x, rows, cols, cols, &spec, false, true);
        free(x);
      }
    }
  }

  /* Keys in mixtures that nobody thought of: those of tests/test_quantize.c, fewer of them. */
  void mixtures() {
    enum { MIXTURES = 250 };
    static const suite some[] = {SUITE_RANDOM, SUITE_BOUNDARY, SUITE_SPECIAL, SUITE_NONFINITE, SUITE_TAILS};
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    uint64_t state = MIXTURES_SEED;
    for (int i = 0; i < MIXTURES;) {
      mx_spec spec;
      if (!mixtures_draw(&spec, &state)) continue;
      size_t rows, cols;
      float *x = suite_make(&rows, &cols, some[i % 5], &spec, &plain);
      both_ways("quantize, random mixtures of keys", "dequantize, random mixtures of keys", "mixture " + std::to_string(i), x, rows, cols, cols,
                &spec, false, false);
      free(x);
      i++;
    }
    /* And what people rarely give, on data at the ends of its types. */
    for (int i = 0; i < 2 * MIXTURES;) {
      mx_spec spec;
      if (!mixtures_draw_odd(&spec, &state)) continue;
      const size_t rows = 1 + (size_t)i % 4, cols = 1 + (size_t)i * 37 % 160;
      std::vector<float> x(rows * cols);
      mixtures_odd_data(x.data(), x.size(), &state);
      both_ways("quantize, odd mixtures", "dequantize, odd mixtures", "odd mixture " + std::to_string(i), x.data(), rows, cols, cols, &spec,
                false, false);
      i++;
    }
  }

  /* Keys that no preset has, and every preset transposed: on the small suites. */
  void keys() {
    static const struct {
      const char *operation, *keys;
    } rows[] = {
        {"quantize, Hadamard", "had.size=16"},
        {"quantize, Hadamard", "had.size=16 had.sign=te preset=nvfp4"},
        {"quantize, Hadamard", "had.size=128 had.sign=fresh seed=7 scale.rule=even"},
        {"quantize, Hadamard", "had.size=64 block=1x64 elem=e4m3"},
        {"quantize, stochastic", "elem.round=sr seed=1"},
        {"quantize, stochastic", "elem.round=sr sr.mode=fastest sr.bits=8 seed=2 elem=e4m3"},
        {"quantize, stochastic", "elem.round=sr sr.mode=src sr.bits=12 seed=18446744073709551615"},
        {"quantize, stochastic", "elem.round=sr sr.mode=odd sr.bits=24 seed=3 elem=e5m2"},
        {"quantize, stochastic", "elem.round=sr sr.mode=odd sr.bits=3 seed=10 elem=e4m3"},
        {"quantize, stochastic", "elem.round=sr sr.source=amd_lfsr seed=4"},
        {"quantize, stochastic", "elem.round=sr sr.source=amd_lfsr seed=5 elem=e3m2"},
        {"quantize, stochastic", "elem.round=sr seed=6 preset=nvfp4"},
        {"quantize, stochastic", "scale=ue5m3 scale.rule=value scale.round=sr seed=8"},
        {"quantize, stochastic", "scale.rule=value scale.round=sr seed=9"},
        {"quantize, 2-D and other blocks", "block=32x32"},
        {"quantize, 2-D and other blocks", "block=16x16 preset=nvfp4"},
        {"quantize, 2-D and other blocks", "block=4x8 scale=e4m3 scale.rule=value"},
        {"quantize, 2-D and other blocks", "block=row scale=fp32 scale.rule=value elem=int8"},
        {"quantize, 2-D and other blocks", "block=col scale=bf16 scale.rule=value"},
        {"quantize, 2-D and other blocks", "block=tensor scale.rule=ceil"},
        {"quantize, 2-D and other blocks", "block=32x1 elem=e2m3"},
        {"quantize, two-level", "tensor.norm=unit chain=exact scale=e4m3 scale.rule=value block=1x16"},
        {"quantize, two-level", "tensor.norm=nv chain=exact scale=e4m3 scale.rule=value block=1x16 tensor.store=divisor"},
        {"quantize, two-level", "tensor.norm=chmiel chain=exact scale=e4m3 scale.rule=value scale.form=encode block=1x16"},
        {"quantize, two-level", "tensor.norm=seed004 chain=exact scale=e4m3 scale.rule=value scale.form=encode block=1x16 tensor.store=amax"},
        {"quantize, two-level", "tensor.given=3.5 preset=nvfp4"},
        {"quantize, two-level", "deq.arith=two_step preset=torchao-nvfp4-2level"},
        {"quantize, two-level", "select=foursix tensor.norm=nv chain=exact scale=e4m3 scale.rule=value block=1x16"},
        {"quantize, two-level", "tensor.norm=nv chain=exact scale=e4m3 scale.rule=value block=1x16 scale.allzero=chain"},
        {"quantize, nibble orders", "nibble=high_first"},
        {"quantize, nibble orders", "nibble=half_block"},
        {"quantize, other formats", "elem=none"},
        {"quantize, other formats", "elem=none elem.nan=error"},
        {"quantize, other formats", "elem=e4m3fnuz"},
        {"quantize, other formats", "elem=e5m2fnuz elem.overflow=ieee"},
        {"quantize, other formats", "elem=e5m2 elem.overflow=ieee scale=fp32 scale.rule=value scale.max=100"},
        {"quantize, other formats", "elem=e4m3 elem.overflow=ieee scale=e8m3 scale.rule=value scale.round=down scale.nan=max"},
        {"quantize, other formats", "scale=ue5m3_61440 scale.rule=value scale.nan=max scale.form=encode"},
        {"quantize, other formats", "scale=ue5m3_122880 scale.rule=value scale.nan=byte=3 elem.arith=recip32"},
        {"quantize, other keys", "flush=on"},
        {"quantize, other keys", "input.dtype=float16"},
        {"quantize, other keys", "input.dtype=bfloat16 scale.rule=even"},
        {"quantize, other keys", "elem.prescale=0.75 scale.nan=tensor"},
        {"quantize, other keys", "elem.prescale=0.75 elem.arith=div32 scale.nan=clamp"},
        {"quantize, other keys", "scale.rule=value scale.round=rna scale.min_byte=100 scale.max_byte=140"},
        {"quantize, other keys", "scale.rule=value scale.round=up scale.log2=log2f scale.subnormal=bump"},
        {"quantize, other keys", "elem.round=rtz"},
        {"quantize, other keys", "elem.round=rtp elem.nan=zero"},
        {"quantize, other keys", "elem.round=rtn elem.nan=satmax elem.inf=zero scale.nan=finite"},
        {"quantize, other keys", "elem=e2m3 elem.round=scan_x"},
        {"quantize, other keys", "scale=fp32 scale.rule=value elem.round=scan_x"},
        {"quantize, other keys", "elem=e5m2 scale=fp32 scale.rule=value scale.max=0.001 elem.round=scan_x"},
        {"quantize, other keys", "scale=e4m3 block=1x16 scale.rule=value chain=autoround elem.round=scan_y tensor.norm=nv"},
        {"quantize, hif4", "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4 scale.min_byte=40 scale.nan=byte=3 elem.nan=zero"},
        {"quantize, hif4",
         "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4 scale.round=up scale.allzero=byte=7 elem.zero_sign=drop_all scale.inf=max"},
        {"quantize, quest", "scale.rule=quest"},
        {"quantize, quest", "scale.rule=quest block=1x64"},
    };
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    for (const auto &k : rows) {
      mx_spec spec = {};
      mx_error err;
      if (!read_keys(&spec, k.keys, &err)) {
        failed(run, k.operation, err.text);
        continue;
      }
      for (int s = 0; s < SUITE_COUNT; s++) {
        size_t rows_n, cols;
        float *x = suite_make(&rows_n, &cols, (suite)s, &spec, &plain);
        both_ways(k.operation, "dequantize, other keys", std::string(k.keys) + " " + suite_name((suite)s), x, rows_n, cols, cols, &spec, false,
                  false);
        free(x);
      }
      const std::vector<float> zeros(3 * 128);
      both_ways(k.operation, "dequantize, other keys", std::string(k.keys) + " zeros", zeros.data(), 3, 128, 128, &spec, false, false);
    }
    for (size_t i = 0; i < mx_preset_count(); i++) {
      const mx_preset *p = mx_preset_at(i);
      mx_spec spec;
      if (p->alias_of || mx_preset_find(&spec, p->name, nullptr)) continue;
      size_t rows_n, cols;
      float *x = suite_make(&rows_n, &cols, SUITE_TAILS, &spec, &plain);
      both_ways("quantize, transposed", nullptr, std::string(p->name) + " tails", x, rows_n, cols, cols, &spec, true, false);
      free(x);
    }
    mx_spec given = {}; /* bits from an input tensor */
    if (mx_spec_parse(&given, "elem.round=sr sr.source=given sr.bits=7", nullptr)) return;
    size_t rows_n, cols;
    const mx_spec nearest = {};
    float *x = suite_make(&rows_n, &cols, SUITE_TIES, &nearest, &plain);
    std::vector<uint32_t> bits(rows_n * cols);
    for (size_t i = 0; i < bits.size(); i++) bits[i] = run->oracle->random(11, 0, i) >> 25;
    given.given_bits = bits.data();
    both_ways("quantize, stochastic", nullptr, "given bits, ties", x, rows_n, cols, cols, &given, false, false);
    free(x);
  }

  /* Block maxima at each step of the rules of E8M0 scales: 64 floats to either side of every power of two (log2f rounds some of them there), and
   * three around the ties of amax / 6. Blocks of two, the second element 0. */
  void steps() {
    static const char *const specs[] = {"scale.rule=floor scale.log2=log2f",
                                        "scale.rule=ceil scale.log2=log2f",
                                        "scale.rule=value scale.round=up scale.log2=log2f",
                                        "scale.rule=value scale.round=down scale.log2=log2f",
                                        "scale.rule=value",
                                        "scale.rule=value scale.round=rna"};
    std::vector<float> x;
    for (uint32_t e = 0; e < 255; e++)
      for (uint32_t base : {e << 23, e << 23 | 0x100000u})
        for (int64_t d = -64; d <= 64; d++) {
          const int64_t bits = (int64_t)base + d;
          if (bits < 0 || bits > 0x7F7FFFFF || (base & 0x100000u && (d < -1 || d > 1))) continue;
          const uint32_t w = (uint32_t)bits;
          float v;
          memcpy(&v, &w, 4);
          x.push_back(v);
          x.push_back(0);
        }
    for (const char *keys : specs) {
      mx_spec spec = {};
      if (mx_spec_parse(&spec, (std::string(keys) + " block=1x2").c_str(), nullptr)) abort();
      both_ways("quantize, steps of the scale rules", nullptr, keys, x.data(), 1, x.size(), x.size(), &spec, false, false);
    }
  }

  /* Every fraction in one binade and a few in each; quotients whose operands have all 53 bits, by integers. */
  void numbers() {
    static const char row[] = "reciprocal of sm_90, quotient to odd";
    static const struct {
      size_t n;
      uint32_t first, step;
    } ranges[] = {{1u << 23, 0x3F800000u, 1}, {1u << 16, 0, 65521}, {1u << 8, 0x7F7FFF80u, 1}, {1u << 8, 0xFFFFFF00u, 1}};
    std::vector<uint32_t> bits(1u << 23);
    for (const auto &r : ranges) {
      const std::string name = "from " + std::to_string(r.first) + " by " + std::to_string(r.step);
      uint64_t bad = 0;
      mxh_begin(run, row, name);
      if (mxh_reciprocals(run->dev, bits.data(), r.n, r.first, r.step)) {
        failed(run, row, name);
        continue;
      }
      for (size_t i = 0; i < r.n; i++) bad += bits[i] != mx_rcp_approx_sm90(r.first + (uint32_t)i * r.step);
      mxh_count(run, row, r.n, bad, name);
    }
    const size_t n = 4096;
    std::vector<double> x(2 * n), y(n);
    uint64_t bad = 0;
    for (size_t i = 0; i < 2 * n; i++) {
      uint64_t m = (uint64_t)run->oracle->random(5, 3, 2 * i) << 32 | run->oracle->random(5, 3, 2 * i + 1);
      m = m >> (11 + i % 5 * 8) | 1;
      x[i] = ldexp((double)m, (int)(m % 61) - 30) * (m & 2 ? -1 : 1);
    }
    mxh_begin(run, row, "quotients");
    if (mxh_quotients(run->dev, y.data(), x.data(), n)) {
      failed(run, row, "quotients");
      return;
    }
    for (size_t i = 0; i < n; i++) {
      int ea, eb, eq;
      const uint64_t a = (uint64_t)ldexp(frexp(fabs(x[2 * i]), &ea), 53), b = (uint64_t)ldexp(frexp(fabs(x[2 * i + 1]), &eb), 53);
      const unsigned __int128 top = (unsigned __int128)a << 64, whole = top / b;
      frexp((double)(uint64_t)(whole >> 32), &eq);
      const int shift = eq + 32 - 53; /* 53 bits are kept; what is cut makes the last one odd */
      const uint64_t kept = (uint64_t)(whole >> shift) | ((whole << (128 - shift)) != 0 || whole * b != top);
      const double q = copysign(ldexp((double)kept, shift - 64 + ea - eb), x[2 * i] * x[2 * i + 1]);
      bad += memcmp(&q, &y[i], 8) != 0;
    }
    mxh_count(run, row, n, bad, "quotients");
  }

  void amax() {
    static const char *const specs[] = {"", "scale.nan=finite", "scale.nan=clamp scale.inf=clamp", "scale.inf=finite"};
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    for (const char *keys : specs)
      for (int s = 0; s < SUITE_COUNT; s++) {
        mx_spec spec = {};
        if (mx_spec_parse(&spec, keys, nullptr)) abort();
        size_t rows, cols;
        float *x = suite_make(&rows, &cols, (suite)s, &spec, &plain), a;
        uint32_t bits, want;
        if (run->oracle->amax(&a, x, rows, cols, cols, &spec, nullptr)) abort();
        memcpy(&want, &a, 4);
        if (a != a) want = 0x7FC00000u;
        mxh_begin(run, "tensor amax", keys);
        if (mxh_amax(run->dev, &bits, x, rows, cols, cols, &spec))
          failed(run, "tensor amax", keys);
        else
          mxh_count(run, "tensor amax", rows * cols, bits != want, std::string(keys) + " " + suite_name((suite)s));
        free(x);
      }
  }

  void hadamard() {
    mx_spec spec = {};
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    static const uint8_t signs[16] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 7, 77, 177, 200};
    for (unsigned size = 2; size <= 1024; size *= 2)
      for (int sign = 0; sign < MX_HAD_SIGN_COUNT; sign++)
        for (suite s : {SUITE_RANDOM, SUITE_NONFINITE, SUITE_TAILS, SUITE_COLUMN}) {
          size_t rows, cols;
          float *x = suite_make(&rows, &cols, s, &spec, &plain);
          if (rows > 32) rows = 32;
          std::vector<float> y(rows * cols + 1), z(rows * cols + 1);
          const std::string name = "size " + std::to_string(size) + " sign " + std::to_string(sign) + " " + suite_name(s);
          mxh_begin(run, "Hadamard rotation", name);
          if (run->oracle->hadamard(y.data(), cols, x, rows, cols, cols, size, sign, signs, 5))
            failed(run, "Hadamard rotation", name + ": the oracle refuses it");
          else if (mxh_hadamard(run->dev, z.data(), x, rows, cols, size, sign, signs, 5))
            failed(run, "Hadamard rotation", name);
          else
            mxh_count(run, "Hadamard rotation", rows * cols, mxh_differ(y.data(), z.data(), rows * cols * 4, 4), name);
          free(x);
        }
  }

  /* Single values: every format of up to 16 bits, every rounding of single values. */
  void codec() {
    std::vector<float> x;
    for (uint32_t i = 0; i < 4096; i++) { /* all exponents and signs, mantissas at ties and beside */
      static const uint32_t low[] = {0, 1, 0x7FFFFF, 0x400000, 0x3FFFFF, 0x400001, 0x600000, 0x5FFFFF};
      uint32_t bits = (i / 8 % 256) << 23 | low[i % 8] | (i / 2048) << 31;
      float v;
      memcpy(&v, &bits, 4);
      x.push_back(v);
    }
    for (uint32_t i = 0; i < 8192; i++) {
      uint32_t bits = run->oracle->random(1, 3, i);
      if (i % 2) bits = (bits & 0x83FFFFFFu) + 0x3C000000u; /* near 1 */
      float v;
      memcpy(&v, &bits, 4);
      x.push_back(v);
    }
    std::vector<const mx_format *> formats;
    for (int i = 0; i < MX_ELEM_COUNT; i++) formats.push_back(mx_elem_format(i));
    for (int i = 0; i < MX_SCALE_COUNT; i++) formats.push_back(mx_scale_format(i));
    formats.push_back(mx_operand_format(MX_OPERAND_F16));
    for (const mx_format *f : formats) {
      if (f->bits > 16) continue;
      const size_t width = f->bits <= 8 ? 1 : 2;
      for (int round = 0; round < MX_ROUND_COUNT; round++) {
        if (round == MX_ROUND_SCAN_X || round == MX_ROUND_SCAN_Y) continue;
        for (int overflow = 0; overflow < 2; overflow++) {
          mx_encoding how = {};
          how.round = round;
          how.overflow = overflow ? MX_OVERFLOW_IEEE : MX_OVERFLOW_SATURATE;
          how.sr_bits = 20;
          how.nan = overflow ? MX_ELEM_NAN_ZERO_FLIP : MX_ELEM_NAN_SIGNMAX;
          std::vector<uint8_t> got(x.size() * width);
          const std::string name = std::string(f->name) + " round " + std::to_string(round);
          mxh_begin(run, "encode", name);
          if (mxh_encode(run->dev, got.data(), x.data(), x.size(), f, &how, 3)) {
            failed(run, "encode", name);
            continue;
          }
          uint64_t bad = 0;
          for (size_t i = 0; i < x.size(); i++) {
            const double v = f->sign_bits ? (double)x[i] : fabs((double)x[i]);
            const uint64_t want = run->oracle->encode(f, v, &how, run->oracle->random(3, 0, i) >> 12);
            bad += want != (width == 1 ? got[i] : got[2 * i] + 256u * got[2 * i + 1]);
          }
          mxh_count(run, "encode", x.size(), bad, name);
        }
      }
      std::vector<uint8_t> codes(width << f->bits);
      std::vector<float> got((size_t)1 << f->bits);
      for (size_t i = 0; i < got.size(); i++) {
        codes[width * i] = (uint8_t)i;
        if (width == 2) codes[2 * i + 1] = (uint8_t)(i >> 8);
      }
      mxh_begin(run, "decode", f->name);
      if (mxh_decode(run->dev, got.data(), codes.data(), got.size(), f)) {
        failed(run, "decode", f->name);
        continue;
      }
      uint64_t bad = 0;
      for (size_t i = 0; i < got.size(); i++) {
        const float want = (float)run->oracle->decode(f, i);
        bad +=
            want != want ? got[i] == got[i] || (f->kind != MX_KIND_FNUZ && !signbit(want) != !signbit(got[i])) : memcmp(&want, &got[i], 4) != 0;
      }
      mxh_count(run, "decode", got.size(), bad, f->name);
    }
  }

  void layouts() {
    static const size_t shapes[][2] = {{1, 1}, {128, 4}, {129, 5}, {33, 9}, {300, 17}, {256, 8}};
    for (int l = 0; l < MX_LAYOUT_COUNT; l++)
      for (const auto &s : shapes) {
        const size_t n = s[0] * s[1], size = mx_layout_size((mx_layout)l, s[0], s[1]);
        std::vector<uint8_t> in(n), want(size), got(size), back(n);
        for (size_t i = 0; i < n; i++) in[i] = (uint8_t)run->oracle->random(2, 3, i);
        const std::string name = std::string(mx_layout_name((mx_layout)l)) + " " + std::to_string(s[0]) + "x" + std::to_string(s[1]);
        run->oracle->layout_pack(want.data(), (mx_layout)l, in.data(), s[0], s[1], 127);
        mxh_begin(run, "layout of scales", name);
        if (mxh_layout_pack(run->dev, got.data(), (mx_layout)l, in.data(), s[0], s[1], 127) ||
            mxh_layout_unpack(run->dev, back.data(), (mx_layout)l, want.data(), s[0], s[1])) {
          failed(run, "layout of scales", name);
          continue;
        }
        mxh_count(run, "layout of scales", size, mxh_differ(want.data(), got.data(), size, 1), name);
        mxh_count(run, "layout of scales", n, mxh_differ(in.data(), back.data(), n, 1), name + ", back");
      }
    for (size_t n : {1u, 2u, 31u, 32u, 64u, 97u, 1000u}) {
      std::vector<uint8_t> in(n), want(n), got(n), back(n);
      for (size_t i = 0; i < n; i++) in[i] = (uint8_t)(run->oracle->random(4, 3, i) & 15);
      for (int nibble = 0; nibble < MX_NIBBLE_COUNT; nibble++) {
        const size_t bytes = (n + 1) / 2;
        const std::string name = std::to_string(n) + " codes, nibble " + std::to_string(nibble);
        run->oracle->pack4(want.data(), in.data(), n, nibble, 32);
        mxh_begin(run, "layout of codes", name);
        if (mxh_pack(run->dev, "mxh_pack4", got.data(), bytes, in.data(), n, n, nibble, 32) ||
            mxh_pack(run->dev, "mxh_unpack4", back.data(), n, want.data(), bytes, n, nibble, 32))
          failed(run, "layout of codes", name);
        else
          mxh_count(run, "layout of codes", n, mxh_differ(want.data(), got.data(), bytes, 1) + mxh_differ(in.data(), back.data(), n, 1), name);
      }
      for (size_t i = 0; i < n; i++) in[i] = (uint8_t)(run->oracle->random(4, 3, i) & 63);
      const size_t bytes = (6 * n + 7) / 8;
      run->oracle->pack6(want.data(), in.data(), n);
      mxh_begin(run, "layout of codes", "6 bits");
      if (mxh_pack(run->dev, "mxh_pack6", got.data(), bytes, in.data(), n, n, 0, 32) ||
          mxh_pack(run->dev, "mxh_unpack6", back.data(), n, want.data(), bytes, n, 0, 32))
        failed(run, "layout of codes", "6 bits");
      else
        mxh_count(run, "layout of codes", n, mxh_differ(want.data(), got.data(), bytes, 1) + mxh_differ(in.data(), back.data(), n, 1),
                  std::to_string(n) + " codes of 6 bits");
    }
  }

  /* The fast kernels: every suite that fits them, long rows with special blocks among plain ones, and blocks whose elements lie far apart. */
  void fast() {
    static const char *const others[] = {"elem.zero_sign=drop_input",       "elem.zero_sign=drop_input scale.rule=even",
                                         "tensor.given=1e-38 preset=nvfp4", "tensor.given=3e38 preset=nvfp4",
                                         "tensor.given=0 preset=nvfp4",     "tensor.given=nan preset=nvfp4"};
    for (size_t i = 0; i < mx_preset_count(); i++) {
      const mx_preset *p = mx_preset_at(i);
      mx_spec spec;
      if (!p->alias_of && !mx_preset_find(&spec, p->name, nullptr) && mxh_fast(&spec)) fast_suites(p->name, &spec);
    }
    for (const char *keys : others) {
      mx_spec spec = {};
      if (!read_keys(&spec, keys, nullptr) || !mxh_fast(&spec))
        failed(run, "quantize, fast", std::string(keys) + ": not for the fast kernels");
      else
        fast_suites(keys, &spec);
    }
  }
  void fast_suites(const std::string &of, const mx_spec *spec) {
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    for (int s = 0; s < SUITE_COUNT; s++) {
      size_t rows, cols;
      float *x = suite_make(&rows, &cols, (suite)s, spec, &plain);
      const std::string name = of + " " + suite_name((suite)s);
      if (cols % 32 == 0 && rows) {
        fast_one(name, x, rows, cols, spec);
        if (spec->scale == MX_SCALE_E8M0) both(name, x, rows / 32 * 32, cols, spec);
      } else
        mxh_decline(run, "quantize, fast", std::string("suite ") + suite_name((suite)s) + ": its rows are no multiple of 32");
      free(x);
    }
    std::vector<float> far(32 * 64);
    for (size_t i = 0; i < far.size(); i++) /* quotients that underflow, of either sign, and zeros of either sign */
      far[i] = (i & 1 ? -1.0f : 1.0f) * (i % 16 < 2 ? 0x1p100f : i % 7 == 0 ? 0.0f : ldexpf(1, -(int)(i * 37 % 150)));
    fast_one(of + " far apart", far.data(), 32, 64, spec);
  }
  void fast_one(const std::string &name, const float *x, size_t rows, size_t cols, const mx_spec *spec) {
    tensor want(rows, cols, spec), got(rows, cols, spec);
    std::vector<float> y(rows * cols), z(rows * cols);
    mxh_begin(run, "quantize, fast", name);
    if (run->oracle->quantize(&want.t, x, rows, cols, cols, spec, nullptr, nullptr) ||
        run->oracle->dequantize(y.data(), cols, &want.t, spec, nullptr))
      failed(run, "quantize, fast", name + ": the oracle refuses it");
    else if (mxh_quantize_fast(run->dev, &got.t, x, rows, cols, spec))
      failed(run, "quantize, fast", name);
    else {
      mxh_count(run, "quantize, fast", rows * cols, tensors_differ(want.t, got.t), name);
      mxh_begin(run, "dequantize, fast", name);
      if (mxh_dequantize_fast(run->dev, z.data(), &want.t, spec))
        failed(run, "dequantize, fast", name);
      else
        mxh_count(run, "dequantize, fast", rows * cols, mxh_differ(y.data(), z.data(), rows * cols * 4, 4), name);
    }
  }
  void both(const std::string &name, const float *x, size_t rows, size_t cols, const mx_spec *spec) {
    if (!rows) return;
    tensor want(rows, cols, spec), got(rows, cols, spec), want_t(cols, rows, spec), got_t(cols, rows, spec);
    mxh_begin(run, "quantize, both directions", name);
    if (run->oracle->quantize(&want.t, x, rows, cols, cols, spec, nullptr, nullptr) ||
        run->oracle->quantize_transposed(&want_t.t, x, rows, cols, cols, spec, nullptr, nullptr))
      failed(run, "quantize, both directions", name + ": the oracle refuses it");
    else if (mxh_quantize_both(run->dev, &got.t, &got_t.t, x, rows, cols, spec))
      failed(run, "quantize, both directions", name);
    else
      mxh_count(run, "quantize, both directions", 2 * rows * cols, tensors_differ(want.t, got.t) + tensors_differ(want_t.t, got_t.t), name);
  }

  void one_gemm(const char *operation, const std::string &name, const tensor &a, const mx_spec *sa, const tensor &b, const mx_spec *sb,
                const mx_gemm_options *o) {
    const size_t n = a.t.rows * b.t.rows, size = mx_dtype_bytes(o->out);
    std::vector<float> want(n), got(n);
    mx_error err;
    mxh_begin(run, operation, name);
    if (run->oracle->gemm(want.data(), b.t.rows, &a.t, sa, &b.t, sb, o, &err))
      failed(run, operation, name + ": the oracle refuses it");
    else if (mxh_gemm(run->dev, got.data(), &a.t, sa, &b.t, sb, o))
      failed(run, operation, name);
    else
      mxh_count(run, operation, n, mxh_differ(want.data(), got.data(), n * size, size), name);
  }
  void gemm() {
    static const char *const pairs[][2] = {
        {"", ""},
        {"elem=e4m3", ""},
        {"elem=e5m2 elem.overflow=ieee", "elem=e4m3 elem.overflow=ieee"},
        {"elem=e5m2", "elem=e5m2"},
        {"elem=e2m3", "elem=e3m2"},
        {"elem=int8", "elem=int8"},
        {"scale=e4m3 scale.rule=value", "scale=ue5m3 scale.rule=value"},
        {"block=1x16 preset=nvfp4", "block=1x16 preset=nvfp4"},
        {"scale=bf16 scale.rule=value scale.nan=max", "scale=e4m3 scale.rule=value"},
        {"elem=none", "elem=none"},
        {"elem=none", "scale=fp32 scale.rule=value"},
        {"elem=e5m2 elem.overflow=ieee", "elem=none"},
        {"elem=int8 scale=fp32 scale.rule=value", "elem=e5m2 scale=fp32 scale.rule=value scale.form=encode"},
        {"scale=e4m3 scale.rule=value scale.form=encode", "elem=e3m2 scale=bf16 scale.rule=value scale.form=encode"},
        {"elem=none", "elem=e4m3 scale=fp32 scale.rule=value scale.form=encode scale.nan=max"},
    };
    const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
    for (const auto &pair : pairs) {
      mx_spec spec[2] = {};
      for (int i = 0; i < 2; i++)
        if (!read_keys(&spec[i], pair[i], nullptr)) abort();
      for (suite s : {SUITE_RANDOM, SUITE_TIES, SUITE_SPECIAL, SUITE_NONFINITE, SUITE_TAILS}) {
        size_t rows, cols, rows_b, cols_b;
        float *x = suite_make(&rows, &cols, s, &spec[0], &plain),
              *y = suite_make(&rows_b, &cols_b, s == SUITE_SPECIAL ? SUITE_RANDOM : s, &spec[1], &plain);
        const size_t K = cols < cols_b ? cols : cols_b, M = rows < 11 ? rows : 11, N = rows_b < 9 ? rows_b : 9;
        tensor a(M, K, &spec[0]), b(N, K, &spec[1]);
        mx_error err = {};
        if (mx_quantize(&a.t, x, M, K, cols, &spec[0], nullptr, &err) || mx_quantize(&b.t, y, N, K, cols_b, &spec[1], nullptr, &err))
          mxh_decline(run, "product, f32_block", std::string(pair[0]) + " x " + pair[1] + " " + suite_name(s) + ": " + err.text);
        else
          for (int model : {(int)MX_GEMM_F32_BLOCK, (int)MX_GEMM_F32_SEQ}) {
            mx_gemm_options o = {};
            o.model = model;
            const std::string name = std::string(pair[0]) + " x " + pair[1] + " " + suite_name(s);
            const char *operation = model == MX_GEMM_F32_SEQ ? "product, f32_seq" : "product, f32_block";
            one_gemm(operation, name, a, &spec[0], b, &spec[1], &o);
            const float alpha = -1.7f, beta = 0.3f, zero = 0;
            o.alpha = &alpha;
            o.beta = &beta;
            o.c = x;
            o.bias = y;
            one_gemm(operation, name + ", alpha, beta, C, bias", a, &spec[0], b, &spec[1], &o);
            for (mx_dtype out : {MX_F16, MX_BF16}) { /* small: subnormal in binary16 */
              const float small = 0x1p-22f;
              o.out = out;
              one_gemm(operation, name + ", 16 bits out", a, &spec[0], b, &spec[1], &o);
              o.alpha = o.beta = &small;
              o.bias = nullptr;
              one_gemm(operation, name + ", 16 bits out, small", a, &spec[0], b, &spec[1], &o);
              o.alpha = &alpha;
              o.beta = &beta;
              o.bias = y;
            }
            o.out = MX_F32;
            o.alpha = &zero;
            one_gemm(operation, name + ", alpha 0", a, &spec[0], b, &spec[1], &o);
          }
        free(x);
        free(y);
      }
      free_of_order(std::string(pair[0]) + " x " + pair[1], spec);
    }
  }
  /* Every order of summation gives these bits. */
  void free_of_order(const std::string &name, const mx_spec *spec) {
    static const char row[] = "product, free of order, against exact";
    enum { N = 16, K = 256 };
    tensor a(N, K, &spec[0]), b(N, K, &spec[1]);
    a.t.tensor_scale = b.t.tensor_scale = 1;
    mx_gemm_options o = {};
    mx_error err = {};
    std::vector<float> want(N * N), got(N * N);
    o.model = MX_GEMM_EXACT;
    const mx_status status = mx_gemm_make_order_free(&a.t, &spec[0], &b.t, &spec[1], 24, 3);
    if (status)
      return mxh_decline(run, row,
                         name + (status == MX_ERR_UNSUPPORTED ? ": elements wider than a byte, or K leaves them no room" : ": no operands"));
    if (run->oracle->gemm(want.data(), N, &a.t, &spec[0], &b.t, &spec[1], &o, &err))
      return mxh_decline(run, row, name + ": model exact: " + err.text);
    for (int model : {(int)MX_GEMM_F32_BLOCK, (int)MX_GEMM_F32_SEQ}) {
      o.model = model;
      mxh_begin(run, row, name);
      if (mxh_gemm(run->dev, got.data(), &a.t, &spec[0], &b.t, &spec[1], &o))
        failed(run, row, name);
      else
        mxh_count(run, row, N * N, mxh_differ(want.data(), got.data(), N * N * 4, 4), name);
    }
  }

  /* A sum far below the tie that the next block makes decides it: one block of +-2^-140, then 448 * 448 + 2^-7 (or + 2^-6 more). */
  void gemm_sticky() {
    mx_spec spec = {};
    if (mx_spec_parse(&spec, "elem=e4m3", nullptr)) abort();
    tensor a(4, 64, &spec), b(1, 64, &spec);
    for (size_t r = 0; r < 4; r++) {
      uint8_t *row = a.t.codes + r * a.t.code_stride;
      row[0] = r & 1 ? 0xB8 : 0x38; /* -1, 1 */
      row[32] = 0x7E;
      row[33] = 0x08; /* 2^-6 */
      row[34] = r & 2 ? 0x10 : 0;
      a.t.scales[2 * r] = 57; /* 2^-70 */
      a.t.scales[2 * r + 1] = 127;
    }
    b.t.codes[0] = 0x38;
    b.t.codes[32] = 0x7E;
    b.t.codes[33] = b.t.codes[34] = 0x30; /* 0.5 */
    b.t.scales[0] = 57;
    b.t.scales[1] = 127;
    const mx_gemm_options o = {};
    one_gemm("product, f32_block", "ties that a tiny sum decides", a, &spec, b, &spec, &o);
  }

  /* The same where the sum is divided: (3 + 3 * 2^-24 +- tiny) / 3, tiny within the bits that are divided, just below them, and far below. Then the
   * sum that only the lowest bits of what cancels leave: 1 - 1 + tiny. */
  void gemm_wide_sticky() {
    mx_spec none = {}, encode = {};
    if (mx_spec_parse(&none, "elem=none", nullptr) ||
        mx_spec_parse(&encode, "elem=e4m3 scale=fp32 scale.rule=value scale.form=encode", nullptr))
      abort();
    static const float tiny[] = {0x1p-77f, -0x1p-77f, 0x1p-78f, -0x1p-78f, 0x1p-79f, 0x1p-80f, 0x1p-140f, -0x1p-140f, 0};
    const size_t n = sizeof tiny / sizeof *tiny;
    tensor a(2 * n, 64, &none), b(1, 64, &encode);
    for (size_t r = 0; r < 2 * n; r++) {
      const float first = r < n ? 3 : 0x1p100f, row[64] = {first, r < n ? 0x3p-24f : -first, tiny[r % n]};
      memcpy(a.t.codes + r * a.t.code_stride, row, sizeof row);
    }
    const float scales[2] = {3, 1};
    b.t.codes[0] = b.t.codes[1] = b.t.codes[2] = 0x38;
    memcpy(b.t.scales, scales, sizeof scales);
    const mx_gemm_options o = {};
    one_gemm("product, f32_block", "quotients at ties", a, &none, b, &encode, &o);
  }

  /* The products of golden/HASHES (tests/lib/products.c makes the same operands) under the two models, by digest. */
  void golden_products() {
    enum { M = 3, N = 4, K = 104 };
    static const char *const nvfp4 = "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv",
                             *const hif4 = "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4";
    static const struct {
      const char *name, *keys[2];
    } mixes[] = {{"mxfp4*mxfp4", {"", ""}},
                 {"nvfp4*nvfp4", {nvfp4, nvfp4}},
                 {"mxfp8-e4m3*mxfp8-e5m2", {"elem=e4m3", "elem=e5m2"}},
                 {"mxfp6-e2m3*mxfp6-e3m2", {"elem=e2m3", "elem=e3m2"}},
                 {"mxint8*mxfp8-e4m3", {"elem=int8", "elem=e4m3"}},
                 {"e2m1-e4m3*e2m1-ue5m3", {"scale=e4m3 scale.rule=value", "scale=ue5m3 scale.rule=value"}},
                 {"e4m3fnuz*mxfp4", {"elem=e4m3fnuz", ""}},
                 {"hif4*hif4", {hif4, hif4}},
                 {"none*mxfp8-e4m3", {"elem=none", "elem=e4m3"}},
                 {"e2m1-fp32*e2m1-e4m3-encode", {"scale=fp32 scale.rule=value", "scale=e4m3 scale.rule=value scale.form=encode"}}};
    static const char *const inputs[] = {"near", "cancel", "wide", "nonfinite", "after"};
    enum { NEAR, CANCEL, WIDE, NONFINITE, AFTER };
    static const float alpha = 0.75f, beta = -1.5f, bias[N] = {1, -2, 0.3f, 1e-3f}, c[M * N] = {1, 2, 3, 4, -5, 6, 7, 8, 9, 1e-4f, 1e6f, -0.0f};
    if (hashes.empty()) return;
    for (const auto &mix : mixes)
      for (int kind = NEAR; kind <= AFTER; kind++) {
        mx_spec spec[2] = {};
        mx_tensor t[2];
        for (int side = 0; side < 2; side++) {
          const size_t rows = side ? N : M;
          if (mx_spec_parse(&spec[side], mix.keys[side], nullptr)) abort();
          std::vector<float> x(rows * K);
          uint64_t state = 0x6D6D6178 + 2 * (uint64_t)kind + (uint64_t)side;
          auto draw = [&state] {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            return (uint32_t)(state >> 33);
          };
          for (size_t i = 0, size = 0; i < x.size(); i++) {
            const size_t k = i % K;
            int sum = -2 * 0x7FFF;
            for (int n = 0; n < 4; n++) sum += (int)(draw() & 0x7FFF);
            if (k % 16 == 0) size = draw() % (kind == WIDE ? 68 : 14);
            x[i] = ldexpf((float)sum, (kind == WIDE ? 16 : -14) - (int)size * (kind == WIDE ? 2 : 1));
            if (kind == CANCEL && k >= K / 2 && draw() % 8) x[i] = side ? x[i - K / 2] : -x[i - K / 2];
            if (kind == NONFINITE && i == (side ? 80u : 50u)) x[i] = side ? INFINITY : NAN;
          }
          if (mx_tensor_alloc(&t[side], rows, K, &spec[side]) ||
              run->oracle->quantize(&t[side], x.data(), rows, K, K, &spec[side], nullptr, nullptr))
            abort();
        }
        for (int model : {(int)MX_GEMM_F32_BLOCK, (int)MX_GEMM_F32_SEQ}) {
          const std::string name = std::string(mix.name) + " " + inputs[kind];
          mx_gemm_options o = {};
          o.model = model;
          if (kind == AFTER) {
            o.alpha = &alpha;
            o.beta = &beta;
            o.c = c;
            o.bias = bias;
            o.out = MX_F16;
          }
          float d[M * N];
          char text[33];
          mxh_begin(run, "product, digests of golden/HASHES", name);
          if (mxh_gemm(run->dev, d, &t[0], &spec[0], &t[1], &spec[1], &o)) {
            failed(run, "product, digests of golden/HASHES", name);
            continue;
          }
          mx_digest(text, d, M * N * mx_dtype_bytes(o.out));
          auto h = hashes.find(std::string("gemm:") + mx_gemm_model_name(model) + " " + name);
          mxh_count(run, "product, digests of golden/HASHES", 1, h == hashes.end() || h->second != text, name);
        }
        for (auto &one : t) mx_tensor_free(&one);
      }
  }

  /* Many elements: random words as they come, NaN and Inf among them, in every preset by turns; the fast kernels too where they are to be had. */
  void large() {
    const size_t rows = 8192, cols = 4096; /* 2^25 */
    std::vector<float> x(rows * cols);
    for (uint64_t done = 0, turn = 0; done < run->large; turn++) {
      const mx_preset *p = mx_preset_at(turn % mx_preset_count());
      mx_spec spec;
      if (p->alias_of || mx_preset_find(&spec, p->name, nullptr)) continue;
      const int wild = turn / mx_preset_count() % 2 != 0;
#pragma omp parallel for schedule(static)
      for (size_t i = 0; i < x.size(); i++) {
        uint32_t w = mx_random(turn, MX_STREAM_DATA, i);
        if (!wild || i / 64 % 4) w = (w & 0x80FFFFFFu) + ((100u + (uint32_t)(i / 128 % 40)) << 23 & 0x7F000000u); /* two binades a block */
        memcpy(&x[i], &w, 4);
      }
      tensor want(rows, cols, &spec), got(rows, cols, &spec);
      bool refused = false;
      mxh_begin(run, "quantize, large", p->name);
      const mx_status status = mx_quantize(&want.t, x.data(), rows, cols, cols, &spec, nullptr, nullptr);
      if (mxh_quantize(run->dev, &got.t, x.data(), rows, cols, cols, &spec, false, &refused)) {
        failed(run, "quantize, large", p->name);
        return;
      }
      mxh_count(run, "quantize, large", x.size(), status || refused ? (status == MX_ERR_DATA) != refused : tensors_differ(want.t, got.t),
                p->name);
      done += x.size();
      if (status || !mxh_fast(&spec)) continue;
      mxh_begin(run, "quantize, large, fast", p->name);
      memset(got.t.codes, 0xAA, rows * got.t.code_stride);
      if (mxh_quantize_fast(run->dev, &got.t, x.data(), rows, cols, &spec)) {
        failed(run, "quantize, large, fast", p->name);
        return;
      }
      mxh_count(run, "quantize, large, fast", x.size(), tensors_differ(want.t, got.t), p->name);
      std::vector<float> y(rows * cols), z(rows * cols);
      mxh_begin(run, "dequantize, large, fast", p->name);
      if (mx_dequantize(y.data(), cols, &want.t, &spec, nullptr) || mxh_dequantize_fast(run->dev, z.data(), &want.t, &spec)) {
        failed(run, "dequantize, large, fast", p->name);
        return;
      }
      mxh_count(run, "dequantize, large, fast", x.size(), mxh_differ(y.data(), z.data(), y.size() * 4, 4), p->name);
    }
  }
};
} // namespace

bool mxh_run_portable(mxh_run *run) {
  run->group = "portable";
  golden g = {run, read_hashes(run->hashes)};
  void (golden::*const parts[])() = {&golden::presets,
                                     &golden::keys,
                                     &golden::mixtures,
                                     &golden::steps,
                                     &golden::numbers,
                                     &golden::amax,
                                     &golden::hadamard,
                                     &golden::codec,
                                     &golden::layouts,
                                     &golden::fast,
                                     &golden::gemm,
                                     &golden::gemm_sticky,
                                     &golden::gemm_wide_sticky,
                                     &golden::golden_products,
                                     &golden::large};
  int n = 0;
  for (const auto part : parts)
    if (mxh_part(run, n++)) (g.*part)();
  uint64_t bad = 0;
  for (const auto &r : run->rows) bad += r.differences;
  return bad == 0;
}
