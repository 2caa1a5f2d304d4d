/* hip-diff's rows for gfx950: its instructions, held to the rules that the device shows, and the complete native kernels, held to the emulator. */
#include "hip_backend/diff.h"

#include <string.h>

#include "hip_backend/buffer.h"
#include "hip_backend/gfx950_profile.h"
#include "hip_backend/native.h"
#include "mxgold/layout.h"
#include "mxgold/mma.h"
#include "mxgold/verify.h"

namespace {
/* [1 1 1 -1 1 -1 -1 -1 -1 -1 -1 1 -1 1 -1 -1], TransformerEngine's, bit i set where -1. */
enum { TE_SIGNS = 0xD7E8 };
const struct quantiser {
  const char *kernel, *operation, *keys;
  uint32_t signs;
} quantisers[] = {
    {"native_mxfp4", "MXFP4, even rule", "scale.rule=even", 0},
    {"native_mxfp4_hadamard", "Hadamard-16, MXFP4", "scale.rule=even had.size=16", 0},
    {"native_mxfp4_hadamard", "Hadamard-16, MXFP4", "scale.rule=even had.size=16 had.sign=te", TE_SIGNS},
    {"native_mxfp4_sr", "MXFP4, stochastic", "scale.rule=even elem.round=sr sr.source=amd_lfsr seed=77", 0},
    {"native_mxfp4_hadamard_sr", "Hadamard-16, MXFP4, stochastic",
     "scale.rule=even had.size=16 had.sign=te elem.round=sr sr.source=amd_lfsr seed=1234567890123", TE_SIGNS},
};

struct native {
  mxh_run *run;
  const gfx950_rules *play; /* the host runtime's */

  bool failed(const std::string &row, const std::string &what) {
    mxh_count(run, row.c_str(), 1, 1, what + ": " + mxh_error(run->dev));
    return false;
  }

  /* One tensor, scales row by row or as amd_shuffle; [rows][cols] with stride ld. */
  void tensor(const quantiser &q, const mx_spec &spec, const std::string &name, const float *x, size_t rows, size_t cols, size_t ld,
              bool shuffled) {
    const std::string row = std::string(q.kernel) + ": " + q.operation;
    const size_t kb = (cols + 31) / 32, n_scales = shuffled ? mx_layout_size(MX_LAYOUT_AMD_SHUFFLE, rows, kb) : rows * kb,
                 n_codes = rows * kb * 16, n_x = ((rows - 1) * ld + cols) * 4;
    mx_tensor want = {};
    if (mx_tensor_alloc(&want, rows, cols, &spec) || run->oracle->quantize(&want, x, rows, cols, ld, &spec, nullptr, nullptr)) {
      failed(row, name + ": the oracle refuses it");
      mx_tensor_free(&want);
      return;
    }
    mxh_buffer src(run->dev, n_x), codes(run->dev, n_codes), scales(run->dev, n_scales);
    native_quantize_args a = {};
    a.src = src.as<float>();
    a.codes = codes.as<uint32_t>();
    a.scales = scales.as<uint8_t>();
    a.rows = rows;
    a.cols = cols;
    a.ld = ld;
    a.seed = spec.seed;
    a.shuffled = shuffled;
    a.signs = q.signs;
    a.env.rules = play;
    std::vector<uint8_t> got(n_codes), got_scales(n_scales), plain(rows * kb);
    if (src.put(x, n_x) || scales.fill(0, n_scales) || mxh_launch(run->dev, q.kernel, (unsigned)((rows * kb + 255) / 256), 256, &a, sizeof a) ||
        mxh_sync(run->dev) || codes.get(got.data(), n_codes) || scales.get(got_scales.data(), n_scales)) {
      failed(row, name);
    } else {
      if (shuffled)
        mx_layout_unpack(plain.data(), MX_LAYOUT_AMD_SHUFFLE, got_scales.data(), rows, kb);
      else
        plain = got_scales;
      uint64_t bad = mxh_differ(plain.data(), want.scales, rows * kb, 1);
      for (size_t r = 0; r < rows; r++) bad += mxh_differ(&got[r * kb * 16], want.codes + r * want.code_stride, kb * 16, 1);
      mxh_count(run, row.c_str(), rows * cols, bad, name);
    }
    mx_tensor_free(&want);
  }
  void quantise() {
    for (const quantiser &q : quantisers)
      for (int suite = 0; suite < MX_SUITE_COUNT; suite++) {
        mx_spec spec = {};
        mx_error err;
        mx_cases cases;
        if (mx_spec_parse(&spec, q.keys, &err) || mx_generate(&cases, suite, &spec, 0, 0, 1, &err)) {
          mxh_count(run, q.kernel, 1, 1, err.text);
          continue;
        }
        const bool pairs = spec.elem_round == MX_ROUND_SR; /* the instruction takes two elements of one row */
        for (size_t i = 0; i < cases.n && cases.rows && !(pairs && cases.cols % 2); i++)
          tensor(q, spec, std::string(q.keys) + " " + mx_suite_name(suite), cases.x + i * cases.rows * cases.ld, cases.rows, cases.cols,
                 cases.ld, i % 2 != 0);
        mx_cases_free(&cases);
      }
  }

  /* D = A B^T of MXFP4 operands; scales as amd_shuffle. model: how the sums are made, or NULL: every order gives these bits, by the emulator's exact. */
  void product(const char *row, size_t M, size_t N, size_t kb, const mx_accum *accum, uint64_t seed) {
    const size_t deep = (kb + 7) / 8 * 8, K = kb * 32; /* the kernel goes 256 of K at a time, filled with zeros */
    const std::string name = std::to_string(M) + " x " + std::to_string(N) + " x " + std::to_string(K);
    const mx_spec spec = {};
    mx_tensor t[2] = {};
    mx_error err = {};
    if (mx_tensor_alloc(&t[0], M, K, &spec) || mx_tensor_alloc(&t[1], N, K, &spec)) return mxh_count(run, row, 1, 1, "no memory");
    std::vector<uint32_t> want(M * N), got(M * N);
    std::vector<uint8_t> codes[2], scales[2], shuffled[2];
    mx_status status = MX_OK;
    if (!accum) {
      mx_gemm_options exact = {};
      exact.model = MX_GEMM_EXACT;
      status = mx_gemm_make_order_free(&t[0], &spec, &t[1], &spec, 24, seed);
      if (!status) status = run->oracle->gemm(want.data(), N, &t[0], &spec, &t[1], &spec, &exact, &err);
    } else
      for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < t[side].rows * t[side].code_stride; i++)
          t[side].codes[i] = (uint8_t)run->oracle->random(seed, (uint32_t)side, i);
        for (size_t i = 0; i < t[side].rows * kb; i++)
          t[side].scales[i] = (uint8_t)(118 + run->oracle->random(seed, 2 + (uint32_t)side, i) % 18);
      }
    for (int side = 0; side < 2; side++) {
      const size_t rows = t[side].rows;
      codes[side].assign(rows * deep * 16, 0);
      scales[side].assign(rows * deep, 127);
      for (size_t r = 0; r < rows; r++) {
        memcpy(&codes[side][r * deep * 16], t[side].codes + r * t[side].code_stride, kb * 16);
        memcpy(&scales[side][r * deep], t[side].scales + r * kb, kb);
      }
      shuffled[side].resize(mx_layout_size(MX_LAYOUT_AMD_SHUFFLE, rows, kb));
      mx_layout_pack(shuffled[side].data(), MX_LAYOUT_AMD_SHUFFLE, t[side].scales, rows, kb, 127);
    }
    if (accum && !status) {
      mx_mma_model m = {};
      status = mx_mma_model_find(&m, "cdna4_whole", &err);
      m.accum = *accum;
      m.a = m.b = mx_elem_format(MX_ELEM_E2M1);
      m.c = m.d = mx_operand_format(MX_OPERAND_F32);
      m.scale = mx_scale_format(MX_SCALE_E8M0);
      m.block = 32;
      m.k = 128;
      const std::vector<uint32_t> c(M * N, 0);
      const mx_mma_args args = {1, M, N, deep * 32, codes[0].data(), codes[1].data(), c.data(), scales[0].data(), scales[1].data()};
      if (!status) status = mx_mma(want.data(), &m, &args, nullptr, &err);
    }
    mxh_buffer d(run->dev, M * N * 4), a(run->dev, M * kb * 16), b(run->dev, N * kb * 16), sa(run->dev, shuffled[0].size()),
        sb(run->dev, shuffled[1].size());
    native_gemm_args g = {};
    g.d = d.as<float>();
    g.a = a.as<uint32_t>();
    g.b = b.as<uint32_t>();
    g.scale_a = sa.as<uint32_t>();
    g.scale_b = sb.as<uint32_t>();
    g.m = (uint32_t)M;
    g.n = g.ldd = (uint32_t)N;
    g.kb = (uint32_t)kb;
    g.env.rules = play;
    if (status)
      mxh_count(run, row, 1, 1, name + ": the oracle refuses it");
    else if (a.put(t[0].codes, M * kb * 16) || b.put(t[1].codes, N * kb * 16) || sa.put(shuffled[0].data(), shuffled[0].size()) ||
             sb.put(shuffled[1].data(), shuffled[1].size()) ||
             mxh_launch(run->dev, "native_gemm_mxfp4", (unsigned)((M + 63) / 64 * ((N + 63) / 64)), 256, &g, sizeof g) || mxh_sync(run->dev) ||
             d.get(got.data(), M * N * 4))
      failed(row, name);
    else
      mxh_count(run, row, M * N, mxh_differ(want.data(), got.data(), M * N * 4, 4), name);
    for (mx_tensor &one : t) mx_tensor_free(&one);
  }
};
} // namespace

bool mxh_run_native(mxh_run *run) {
  const bool host = !strcmp(mxh_kind(run->dev), "host");
  const std::string why = std::string(mxh_name(run->dev)) + " is " + mxh_arch(run->dev) + ", not gfx950";
  run->group = "instruction";
  if (!host && strncmp(mxh_arch(run->dev), "gfx950", 6)) {
    mxh_skip(run, "gfx950's 62 instructions", why);
    run->group = "native kernel";
    mxh_skip(run, "complete kernels on gfx950's instructions", why);
    return true;
  }
  static gfx950_profile profile;
  static const gfx950_rules suggested = gfx950_rules_default();
  const size_t first = run->rows.size();
  std::string trouble;
  if (gfx950_profile_run(&profile, run->dev, {host ? &suggested : nullptr, 1, true, 0}, &trouble)) {
    run->profile = &profile;
    for (const gfx950_held &h : profile.held) {
      mxh_row row;
      row.group = run->group;
      row.operation = h.instruction;
      row.first = h.first;
      row.cases = h.cases;
      row.values = h.words;
      row.differences = h.differ;
      run->rows.push_back(row);
    }
  } else
    mxh_count(run, "gfx950's instructions", 1, 1, trouble);
  run->group = "native kernel";
  native n = {run, host ? &suggested : nullptr};
  n.quantise();
  static const char product[] = "native_gemm_mxfp4: product, MXFP4";
  for (uint64_t i = 0; i < 3; i++) n.product("native_gemm_mxfp4: product, free of order", 64 + 7 * i, 70, 8 + i, nullptr, i);
  if (run->profile && profile.sums[0].fits) {
    n.product(product, 80, 48, 10, &profile.rules.accum, 11);
    n.product(product, 33, 95, 16, &profile.rules.accum, 12);
    n.product(product, 1, 130, 9, &profile.rules.accum, 13);
  } else
    mxh_skip(run, product, "no model was found for the sums");
  uint64_t bad = run->profile == nullptr;
  for (size_t i = first; i < run->rows.size(); i++) bad += run->rows[i].differences;
  return bad == 0 && profile.complete();
}
