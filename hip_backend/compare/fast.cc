/* Compares the fast kernels, and matrices of many elements. */
#include "hip_backend/compare/portable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "tests/lib/suites.h"
}

namespace mxh_portable {
/* The fast kernels: every suite that fits them, long rows with special blocks among plain ones, and blocks whose elements differ widely in
 * size. */
void golden::fast() {
  static const char *const others[] = {"elem.zero_sign=drop_input",          "elem.zero_sign=drop_input scale.rule=even",
                                       "tensor.given=1e-38 preset=nvfp4",    "tensor.given=3e38 preset=nvfp4",
                                       "tensor.given=0 preset=nvfp4",        "tensor.given=nan preset=nvfp4",
                                       "deq.arith=two_step preset=nvfp4",    "deq.arith=two_step tensor.given=0 preset=nvfp4",
                                       "deq.arith=scale_first preset=nvfp4", "deq.arith=scale_first tensor.given=3e38 preset=nvfp4"};
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

void golden::fast_suites(const std::string &of, const mx_spec *spec) {
  const suite_oracle plain = {run->oracle->quantize, run->oracle->dequantize};
  for (int s = 0; s < SUITE_COUNT; s++) {
    if (left_out(run, of.size() + (size_t)s)) continue;
    size_t rows, cols;
    float *x = suite_make(&rows, &cols, (suite)s, spec, &plain);
    const std::string name = of + " " + suite_name((suite)s);
    if (cols % 32 == 0 && rows) {
      fast_one(name, x, rows, cols, spec);
      if (spec->scale == MX_SCALE_E8M0) both(name, x, rows / 32 * 32, cols, spec);
    } else
      mxh_decline(run, "quantize, fast", std::string("suite ") + suite_name((suite)s) + ": its rows are not a multiple of 32 long");
    free(x);
  }
  std::vector<float> far(32 * 64);
  for (size_t i = 0; i < far.size(); i++) /* quotients that underflow and zeros, each of both signs */
    far[i] = (i & 1 ? -1.0f : 1.0f) * (i % 16 < 2 ? 0x1p100f : i % 7 == 0 ? 0.0f : ldexpf(1, -(int)(i * 37 % 150)));
  fast_one(of + " far apart", far.data(), 32, 64, spec);
}

void golden::fast_one(const std::string &name, const float *x, size_t rows, size_t cols, const mx_spec *spec) {
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

void golden::both(const std::string &name, const float *x, size_t rows, size_t cols, const mx_spec *spec) {
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

/* Many elements: any random words, including NaN and Inf, in every preset in turn, and by the fast kernels if they take the preset. */
void golden::large() {
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
      if (!wild || i / 64 % 4) w = (w & 0x80FFFFFFu) + ((100u + (uint32_t)(i / 128 % 40)) << 23 & 0x7F000000u); /* two binades for each block */
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
} // namespace mxh_portable
