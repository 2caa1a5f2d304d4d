/* Compares gfx950's instructions and the complete native kernels with the rules that the device shows. */
#include "hip_backend/compare/diff.h"

#include <string.h>

#include "hip_backend/gfx950/native.h"
#include "hip_backend/gfx950/profile.h"
#include "hip_backend/run/args.h"
#include "hip_backend/run/buffer.h"
#include "mxgold/layout.h"
#include "mxgold/mma.h"
#include "mxgold/verify.h"

namespace {
/* signs: bit i is set where the rotation negates element i. */
const struct quantiser {
  const char *kernel, *operation, *keys;
  uint32_t signs;
} quantisers[] = {
    {"native_mxfp4", "MXFP4, even rule", "scale.rule=even", 0},
    {"native_mxfp4_hadamard", "Hadamard-16, MXFP4", "scale.rule=even had.size=16", 0},
    {"native_mxfp4_hadamard", "Hadamard-16, MXFP4", "scale.rule=even had.size=16 had.sign=te", MXD_TE_SIGNS},
    {"native_mxfp4_sr", "MXFP4, stochastic", "scale.rule=even elem.round=sr sr.source=amd_lfsr seed=77", 0},
    {"native_mxfp4_hadamard_sr", "Hadamard-16, MXFP4, stochastic",
     "scale.rule=even had.size=16 had.sign=te elem.round=sr sr.source=amd_lfsr seed=1234567890123", MXD_TE_SIGNS},
};

/* The rules of instructions on which the codes of a complete MXFP4 kernel depend. (Codes of NaN and Inf do not come from the instruction,
 * and FP4 saturates.) */
const struct {
  const char *rule;
  bool stochastic; /* only stochastic kernels depend on it */
} matters[] = {{"f32_subnormal", false}, {"scale_00", false}, {"sr_seed", true}, {"sr_next", true}, {"sr_subnormal", true}};

/* What a quantiser's codes are compared with. */
struct held_to {
  bool by_key =
      true; /* with the emulator under a spec; otherwise with gfx950_convert() under the rules found, on the emulator's scales and rotation */
  bool open = false; /* a rule on which they depend has no name */
  std::string keys;  /* more keys for the spec */
  std::string note;
};

struct native {
  mxh_run *run;
  const gfx950_rules *play; /* the host runtime's */

  held_to rules_of(const quantiser &q) const {
    held_to h;
    const bool stochastic = strstr(q.keys, "elem.round=sr"), rotated = strstr(q.keys, "had.size");
    const gfx950_profile *p = run->profile;
    for (size_t i = 0; p && i < p->answers.size(); i++) {
      const gfx950_answer &a = p->answers[i];
      gfx950_rules found = p->rules;
      for (const auto &m : matters) {
        if (a.rule != m.rule || (m.stochastic && !stochastic)) continue;
        const int answer = *gfx950_rule_of(&found, (int)i);
        const std::string named = a.rule + "=" + (a.choices.empty() ? "OTHER" : gfx950_choice_name((int)i, answer, nullptr));
        const bool flush = a.rule == "f32_subnormal" && answer == GFX950_f32_subnormal_FLUSH;
        if (!a.choices.empty() && (answer == 0 || (a.rule == "f32_subnormal" && !flush)))
          continue; /* a spec needs no key for this answer in the MODE that HIP sets */
        h.note += h.note.empty() ? "under " : ", ";
        if (a.choices.empty()) {
          h.open = true;
          h.note += named + " (open: none of the known answers)";
        } else if (flush && !rotated) { /* a rotation comes before the instruction that flushes */
          h.keys += " flush=on";
          h.note += named + " (flush=on)";
        } else {
          h.by_key = false;
          h.note += named + " (no key expresses it: compared with what the instruction gives under the rules found)";
        }
      }
    }
    if (!p) h.open = true, h.note = "there is no profile of the device: not judged";
    return h;
  }

  /* Replaces the codes of `want` by those that gfx950_convert() gives on its scales; blocks whose scale is NaN stay as they are. */
  void convert(mx_tensor *want, const mx_spec &spec, const float *x, size_t rows, size_t cols, size_t ld) const {
    const size_t kb = (cols + 31) / 32;
    const gfx950_env env = {0, 0, &run->profile->rules};
    const bool stochastic = spec.elem_round == MX_ROUND_SR;
    const gfx950_row &row = gfx950_rows[stochastic ? GFX950_I_cvt_scalef32_sr_pk_fp4_f32 : GFX950_I_cvt_scalef32_pk_fp4_f32];
    std::vector<float> v(rows * kb * 32);
    for (size_t r = 0; r < rows; r++)
      if (spec.had_size)
        run->oracle->hadamard(&v[r * kb * 32], cols, x + r * ld, 1, cols, cols, spec.had_size, spec.had_sign, spec.had_signs, spec.seed);
      else
        memcpy(&v[r * kb * 32], x + r * ld, cols * 4);
    for (size_t r = 0; r < rows; r++)
      for (size_t block = 0; block < kb; block++) {
        const uint32_t byte = want->scales[r * kb + block];
        if (byte == 0xFF) continue;
        for (size_t w = 0; w < 4; w++) {
          uint32_t word = 0, pair[2];
          for (size_t i = 0; i < 4; i++) {
            memcpy(pair, &v[r * kb * 32 + block * 32 + w * 8 + i * 2], 8);
            const uint32_t seed = stochastic ? run->oracle->random(spec.seed, 0, (r * cols + block * 32) / 2 + w * 4 + i) : 0;
            gfx950_convert(&env, &row, (int)i, &word, pair, byte << 23, seed, GFX950_FROM_VGPR);
          }
          memcpy(want->codes + r * want->code_stride + block * 16 + w * 4, &word, 4);
        }
      }
  }
  /* Adds a note to a row that has been added, and says whether it stays open. */
  void mark(const std::string &row, const std::string &note, bool open) const {
    for (mxh_row &r : run->rows)
      if (r.operation == row) {
        r.open |= open;
        if (r.note.find(note) == std::string::npos) r.note += (r.note.empty() ? "" : "; ") + note;
        if (run->row_changed) run->row_changed(r);
      }
  }

  bool failed(const std::string &row, const std::string &what) {
    mxh_count(run, row.c_str(), 1, 1, what + ": " + mxh_error(run->dev));
    return false;
  }

  /* Compares one tensor, [rows][cols] with row stride ld; its scales are stored row by row or shuffled (amd_shuffle). */
  void tensor(const quantiser &q, const held_to &held, const mx_spec &spec, const std::string &name, const float *x, size_t rows, size_t cols,
              size_t ld, bool shuffled) {
    const std::string row = std::string(q.kernel) + ": " + q.operation;
    const size_t kb = (cols + 31) / 32, n_scales = shuffled ? mx_layout_size(MX_LAYOUT_AMD_SHUFFLE, rows, kb) : rows * kb,
                 n_codes = rows * kb * 16, n_x = ((rows - 1) * ld + cols) * 4;
    mx_tensor want = {};
    if (mx_tensor_alloc(&want, rows, cols, &spec) || run->oracle->quantize(&want, x, rows, cols, ld, &spec, nullptr, nullptr)) {
      failed(row, name + ": the oracle refuses it");
      mx_tensor_free(&want);
      return;
    }
    mxh_begin(run, row, name);
    if (!held.by_key) convert(&want, spec, x, rows, cols, ld);
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
    for (const quantiser &q : quantisers) {
      const held_to held = rules_of(q);
      for (int suite = 0; suite < MX_SUITE_COUNT; suite++) {
        mx_spec spec = {};
        mx_error err;
        mx_cases cases;
        if (mx_spec_parse(&spec, (q.keys + held.keys).c_str(), &err) || mx_generate(&cases, suite, &spec, 0, 0, 1, &err)) {
          mxh_count(run, q.kernel, 1, 1, err.text);
          continue;
        }
        const bool pairs = spec.elem_round == MX_ROUND_SR; /* the instruction takes two elements of one row */
        if (pairs && cases.cols % 2)
          mxh_decline(run, (std::string(q.kernel) + ": " + q.operation).c_str(),
                      std::string("suite ") + mx_suite_name(suite) +
                          ": its rows have an odd number of elements, and the instruction takes two of a row at a time");
        for (size_t i = 0; i < cases.n && cases.rows && !(pairs && cases.cols % 2) && !(run->quick && i == 4); i++)
          tensor(q, held, spec, std::string(q.keys) + " " + mx_suite_name(suite), cases.x + i * cases.rows * cases.ld, cases.rows, cases.cols,
                 cases.ld, i % 2 != 0);
        mx_cases_free(&cases);
      }
      mark(std::string(q.kernel) + ": " + q.operation, held.note, held.open);
    }
  }

  /* Compares D = A B^T of MXFP4 operands with shuffled scales. free: the sums are the same in every order, so they are compared with the
   * emulator's model exact; sums: how the device sums, or NULL if it is not known. */
  void product(const char *row, size_t M, size_t N, size_t kb, bool free, const mx_accum *sums, uint64_t seed) {
    const size_t deep = (kb + 7) / 8 * 8, K = kb * 32; /* the kernel takes 256 of K at a time, filled up with zeros */
    const std::string name = std::to_string(M) + " x " + std::to_string(N) + " x " + std::to_string(K);
    mxh_begin(run, row, name);
    const mx_spec spec = {};
    mx_tensor t[2] = {};
    mx_error err = {};
    if (mx_tensor_alloc(&t[0], M, K, &spec) || mx_tensor_alloc(&t[1], N, K, &spec)) return mxh_count(run, row, 1, 1, "no memory");
    std::vector<uint32_t> want(M * N), got(M * N), of_any_order;
    std::vector<uint8_t> codes[2], scales[2], shuffled[2];
    mx_status status = MX_OK;
    if (free) {
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
    if (free) of_any_order = want;
    if (sums && !status) {
      mx_mma_model m = {};
      status = mx_mma_model_find(&m, "cdna4_whole", &err);
      m.accum = *sums;
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
    else {
      mxh_count(run, row, M * N, mxh_differ(want.data(), got.data(), M * N * 4, 4), name);
      if (!sums) mark(row, "open: no model was found that sums as the device does; compared with the exact sums", true);
      if (free && sums && want != of_any_order) mark(row, "compared under the model that was found, which truncates some of these sums", false);
    }
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
  const gfx950_rules *play = !host ? nullptr : run->play ? run->play : &suggested;
  const size_t first = run->rows.size();
  std::string trouble;
  const auto doing = [run](const std::string &what) { mxh_begin(run, "gfx950's instructions", what); };
  const auto held = [run](const gfx950_held &h) {
    mxh_row row;
    row.group = run->group;
    row.operation = h.instruction;
    row.first = h.first;
    row.note = h.note;
    row.cases = h.cases;
    row.values = h.words;
    row.differences = h.differ;
    mxh_add(run, row);
  };
  const auto found = [run](const std::string &line) { mxh_found(run, line); };
  if (!mxh_part(run, 0) || run->counting) /* rows of the profile are added when they are complete, so a death leaves none half done */
    trouble = "its process died";
  else if (gfx950_profile_run(&profile, run->dev, {play, 1, !run->quick, run->quick ? 1 : 0, doing, found, held}, &trouble))
    run->profile = &profile;
  else
    mxh_count(run, "gfx950's instructions", 1, 1, trouble);
  run->group = "native kernel";
  native n = {run, play};
  if (mxh_part(run, 1)) n.quantise();
  static const char product[] = "native_gemm_mxfp4: product, MXFP4";
  const gfx950_sums *summed = run->profile ? profile.sums_of(GFX950_PAIR_MXFP4) : nullptr;
  const mx_accum *sums = summed && summed->fits ? &summed->accum : nullptr;
  if (!mxh_part(run, 2)) return false;
  for (uint64_t i = 0; i < 3; i++) n.product("native_gemm_mxfp4: product, free of order", 64 + 7 * i, 70, 8 + i, true, sums, i);
  if (sums || run->counting) {
    n.product(product, 80, 48, 10, false, sums, 11);
    n.product(product, 33, 95, 16, false, sums, 12);
    n.product(product, 1, 130, 9, false, sums, 13);
  } else
    mxh_skip(run, product, "no model was found that sums as the device does");
  uint64_t bad = run->profile == nullptr;
  for (size_t i = first; i < run->rows.size(); i++) bad += run->rows[i].open ? 0 : run->rows[i].differences;
  return bad == 0 && profile.complete();
}
