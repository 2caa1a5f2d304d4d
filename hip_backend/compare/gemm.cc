/* Compares products. */
#include "hip_backend/compare/portable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "tests/lib/product_inputs.h"
#include "tests/lib/suites.h"
}

namespace mxh_portable {
void golden::one_gemm(const char *operation, const std::string &name, const tensor &a, const mx_spec *sa, const tensor &b, const mx_spec *sb,
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

void golden::gemm() {
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
      if (left_out(run, (size_t)(&pair - pairs) + (size_t)s)) continue;
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

/* Operands for which every order of summation gives the same bits. */
void golden::free_of_order(const std::string &name, const mx_spec *spec) {
  static const char row[] = "product, free of order, against exact";
  enum { N = 16, K = 256 };
  tensor a(N, K, &spec[0]), b(N, K, &spec[1]);
  a.t.tensor_scale = b.t.tensor_scale = 1;
  mx_gemm_options o = {};
  mx_error err = {};
  std::vector<float> want(N * N), got(N * N);
  if (spec[0].tensor_norm || spec[1].tensor_norm) return mxh_decline(run, row, name + ": the tensor scales round once more, after the sum");
  o.model = MX_GEMM_EXACT;
  const mx_status status = mx_gemm_make_order_free(&a.t, &spec[0], &b.t, &spec[1], 24, 3);
  if (status)
    return mxh_decline(
        run, row, name + (status == MX_ERR_UNSUPPORTED ? ": its elements are wider than a byte, or K is too large for them" : ": no operands"));
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

/* Ties that are decided by a sum far below them: one block of +-2^-140, then one of 448 * 448 + 2^-7 (or + 2^-6 more). */
void golden::gemm_sticky() {
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

/* The same for a sum that is divided: (3 + 3 * 2^-24 +- tiny) / 3, with tiny among the bits that are divided, just below them, and far below
 * them. Then 1 - 1 + tiny, of which only the lowest bits remain. */
void golden::gemm_wide_sticky() {
  mx_spec none = {}, encode = {};
  if (mx_spec_parse(&none, "elem=none", nullptr) || mx_spec_parse(&encode, "elem=e4m3 scale=fp32 scale.rule=value scale.form=encode", nullptr))
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

/* The products of golden/HASHES under the two models, by digest. */
void golden::golden_products() {
  static const char row[] = "product, digests of golden/HASHES";
  enum { M = PRODUCT_M, N = PRODUCT_N, K = PRODUCT_K };
  if (hashes.empty()) return;
  for (const product_mix &mix : product_mixes)
    for (int kind = 0; kind < PRODUCT_KINDS; kind++) {
      mx_spec spec[2] = {};
      mx_tensor t[2];
      for (int side = 0; side < 2; side++) {
        const size_t rows = side ? N : M;
        if (mx_spec_parse(&spec[side], mix.keys[side], nullptr)) abort();
        float *x = product_operand(kind, rows, side);
        if (mx_tensor_alloc(&t[side], rows, K, &spec[side]) || run->oracle->quantize(&t[side], x, rows, K, K, &spec[side], nullptr, nullptr))
          abort();
        free(x);
      }
      for (int model : {(int)MX_GEMM_F32_BLOCK, (int)MX_GEMM_F32_SEQ}) {
        const std::string name = std::string(mix.name) + " " + product_kinds[kind];
        mx_gemm_options o = {};
        o.model = model;
        product_after(&o, kind);
        float d[M * N];
        char text[33];
        mxh_begin(run, row, name);
        if (mxh_gemm(run->dev, d, &t[0], &spec[0], &t[1], &spec[1], &o)) {
          failed(run, row, name);
          continue;
        }
        mx_digest(text, d, M * N * mx_dtype_bytes(o.out));
        auto h = hashes.find(std::string("gemm:") + mx_gemm_model_name(model) + " " + name);
        mxh_count(run, row, 1, h == hashes.end() || h->second != text, name);
      }
      for (auto &one : t) mx_tensor_free(&one);
    }
}
} // namespace mxh_portable
