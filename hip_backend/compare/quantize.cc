/* Compares quantising and dequantising: presets, keys, mixtures, steps of the scale rules. */
#include "hip_backend/compare/portable.h"

#include <stdlib.h>
#include <string.h>

extern "C" {
#include "tests/lib/mixtures.h"
#include "tests/lib/suites.h"
}

namespace mxh_portable {
bool golden::both_ways(const char *quantize, const char *dequantize, const std::string &name, const float *x, size_t rows, size_t cols,
                       size_t ld, const mx_spec *spec, bool transposed, bool digests) {
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

void golden::presets() {
  const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
  for (size_t i = 0; i < mx_preset_count(); i++) {
    const mx_preset *p = mx_preset_at(i);
    mx_spec spec;
    if (p->alias_of || mx_preset_find(&spec, p->name, nullptr)) continue;
    for (int s = 0; s < SUITE_COUNT; s++) {
      if (left_out(run, i + (size_t)s)) continue;
      size_t rows, cols;
      float *x = suite_make(&rows, &cols, (suite)s, &spec, &plain);
      both_ways("quantize", "dequantize", std::string(p->name) + " " + suite_name((suite)s), x, rows, cols, cols, &spec, false, true);
      free(x);
    }
  }
}

static std::string keys_of(const mx_spec &spec) {
  char text[4096];
  mx_spec_print(text, sizeof text, &spec, 0);
  return text;
}

/* Random mixtures of keys, drawn as in tests/test_quantize.c, but fewer of them. */
void golden::mixtures() {
  const int MIXTURES = 250;
  static const suite some[] = {SUITE_RANDOM, SUITE_BOUNDARY, SUITE_SPECIAL, SUITE_NONFINITE, SUITE_TAILS};
  const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
  uint64_t state = MIXTURES_SEED;
  for (int i = 0; i < MIXTURES;) {
    mx_spec spec;
    if (!mixtures_draw(&spec, &state)) continue;
    if (left_out(run, (size_t)i)) {
      i++;
      continue;
    }
    size_t rows, cols;
    float *x = suite_make(&rows, &cols, some[i % 5], &spec, &plain);
    both_ways("quantize, random mixtures of keys", "dequantize, random mixtures of keys", "mixture " + std::to_string(i) + ", " + keys_of(spec),
              x, rows, cols, cols, &spec, false, false);
    free(x);
    i++;
  }
  /* Then keys that are rarely used, on data at the ends of the ranges of their types. */
  for (int i = 0; i < 2 * MIXTURES;) {
    mx_spec spec;
    if (!mixtures_draw_odd(&spec, &state)) continue;
    const size_t rows = 1 + (size_t)i % 4, cols = 1 + (size_t)i * 37 % 160;
    std::vector<float> x(rows * cols);
    mixtures_odd_data(x.data(), x.size(), &state); /* also of a mixture that is left out: those that follow stay the same */
    if (!left_out(run, (size_t)i))
      both_ways("quantize, odd mixtures", "dequantize, odd mixtures", "odd mixture " + std::to_string(i) + ", " + keys_of(spec), x.data(), rows,
                cols, cols, &spec, false, false);
    i++;
  }
}

/* On the small suites: keys that no preset has, and every preset transposed. */
void golden::keys() {
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
      {"quantize, stochastic", "scale=e4m3 block=1x16 scale.rule=value scale.margin=0.9411764 elem.round=sr seed=11"},
      {"quantize, 2-D and other blocks", "block=32x32"},
      {"quantize, 2-D and other blocks", "block=16x16 preset=nvfp4"},
      {"quantize, 2-D and other blocks", "block=4x8 scale=e4m3 scale.rule=value"},
      {"quantize, 2-D and other blocks", "block=row scale=fp32 scale.rule=value elem=int8"},
      {"quantize, 2-D and other blocks", "block=col scale=bf16 scale.rule=value"},
      {"quantize, 2-D and other blocks", "block=tensor scale.rule=ceil"},
      {"quantize, 2-D and other blocks", "block=32x1 elem=e2m3"},
      {"quantize, 2-D and other blocks", "hif4.ties=even preset=hif4"},
      {"quantize, two-level", "tensor.norm=unit chain=exact scale=e4m3 scale.rule=value block=1x16"},
      {"quantize, two-level", "tensor.norm=nv chain=exact scale=e4m3 scale.rule=value block=1x16 tensor.store=divisor"},
      {"quantize, two-level", "tensor.norm=chmiel chain=exact scale=e4m3 scale.rule=value scale.form=encode block=1x16"},
      {"quantize, two-level", "tensor.norm=seed004 chain=exact scale=e4m3 scale.rule=value scale.form=encode block=1x16 tensor.store=amax"},
      {"quantize, two-level", "tensor.norm=chmiel scale=e4m3 scale.rule=value scale.form=encode block=1x16 scale.margin=0.9411764"},
      {"quantize, two-level", "tensor.norm=nv chain=quartet2 scale=e4m3 scale.rule=value block=1x16 scale.max=6.0721063 scale.zero=one"},
      {"quantize, two-level", "tensor.given=3.5 preset=nvfp4"},
      {"quantize, two-level", "deq.arith=two_step preset=torchao-nvfp4-2level"},
      {"quantize, two-level", "deq.arith=scale_first preset=torchao-nvfp4-2level"},
      {"quantize, two-level", "deq.arith=scale_first preset=mlx-nvfp4-gs"},
      {"quantize, two-level", "deq.arith=scale_first preset=ct-nvfp4"},
      {"quantize, two-level", "deq.arith=scale_first tensor.norm=unit scale=ue5m3 scale.rule=value scale.form=encode block=1x16"},
      {"quantize, two-level", "deq.arith=scale_first tensor.norm=chmiel scale=e4m3 scale.rule=value scale.form=encode tensor.store=divisor"},
      {"quantize, two-level", "deq.arith=scale_first tensor.norm=seed004 scale=e4m3 scale.rule=value scale.form=encode tensor.store=amax"},
      {"quantize, two-level", "deq.arith=scale_first select=foursix tensor.norm=nv chain=exact scale=e4m3 scale.rule=value block=1x16"},
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
      {"quantize, a given NaN",
       "elem=e5m2 scale=ue5m3_61440 block=1x5 scale.rule=value scale.min_byte=39 scale.max_byte=101 scale.allzero=chain scale.nan=byte_inf=67 "
       "scale.inf=byte_zero=3 scale.sign=signed elem.round=rtz elem.saturate_to=nan tensor.norm=unit tensor.store=divisor tensor.given=nan"},
      {"quantize, a given NaN", "elem=e5m2 scale=e4m3 scale.rule=value tensor.norm=unit tensor.store=divisor tensor.given=-nan"},
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
      if (left_out(run, (size_t)(&k - rows) + (size_t)s)) continue;
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
    if (p->alias_of || left_out(run, i) || mx_preset_find(&spec, p->name, nullptr)) continue;
    size_t rows_n, cols;
    float *x = suite_make(&rows_n, &cols, SUITE_TAILS, &spec, &plain);
    both_ways("quantize, transposed", nullptr, std::string(p->name) + " tails", x, rows_n, cols, cols, &spec, true, false);
    free(x);
  }
  mx_spec given = {}; /* the random bits come from an input tensor */
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

/* Block maxima at each step of the rules for E8M0 scales: 64 floats on either side of every power of two (to which log2f rounds some of
 * them), and three around the ties of amax / 6. Blocks have two elements, of which the second is 0. */
void golden::steps() {
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
} // namespace mxh_portable
