/* Tests the complete native kernels on the host runtime: the quantisers against ref_quantize on every suite of gen, and the product against
 * ref_mma. */
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

#include "hip_backend/gfx950/native.h"
#include "mxgold/layout.h"
#include "mxgold/verify.h"
extern "C" {
#include "ref/mma.h"
#include "ref/ref.h"
}

static int failures;
static void fail(const std::string &what, const std::string &text) {
  if (failures++ < 20) printf("FAILED: %s: %s\n", what.c_str(), text.c_str());
}

static uint64_t state = 88172645463325252u;
static uint32_t random32() {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)(state * 2685821657736338717u >> 32);
}

template <class T> struct buffer {
  T *p;
  size_t n;
  explicit buffer(size_t count) : p((T *)mxh_host::alloc(count * sizeof(T))), n(count) {}
  ~buffer() { mxh_host::release(p); }
  buffer(const buffer &) = delete;
  buffer &operator=(const buffer &) = delete;
  void put(const void *from) {
    memcpy((void *)p, from, n * sizeof(T));
    mxh_host::set_written(p, n * sizeof(T));
  }
};

struct quantiser {
  const char *kernel, *keys;
  uint32_t signs;
};
static const quantiser quantisers[] = {
    {"native_mxfp4", "scale.rule=even", 0},
    {"native_mxfp4_hadamard", "scale.rule=even had.size=16", 0},
    {"native_mxfp4_hadamard", "scale.rule=even had.size=16 had.sign=te",
     0xD7E8}, /* [1 1 1 -1 1 -1 -1 -1 -1 -1 -1 1 -1 1 -1 -1], bit i set where -1 */
    {"native_mxfp4_sr", "scale.rule=even elem.round=sr sr.source=amd_lfsr seed=77", 0},
    {"native_mxfp4_hadamard_sr", "scale.rule=even had.size=16 had.sign=te elem.round=sr sr.source=amd_lfsr seed=1234567890123", 0xD7E8},
};

static uint64_t codes_compared, scales_compared;

/* One tensor, under one layout of the scales. */
static void tensor(const quantiser &q, const mx_spec &spec, const char *suite, const float *x, size_t rows, size_t cols, size_t ld,
                   int shuffled) {
  if (spec.elem_round == MX_ROUND_SR && cols % 2) return; /* the instruction takes pairs, and one would span two rows */
  mx_tensor want;
  if (ref_tensor_alloc(&want, rows, cols, &spec) || ref_quantize(&want, x, rows, cols, ld, &spec, nullptr, nullptr)) {
    fail(q.kernel, "ref_quantize refuses");
    return;
  }
  const size_t kb = (cols + 31) / 32, n_scales = shuffled ? mx_layout_size(MX_LAYOUT_AMD_SHUFFLE, rows, kb) : rows * kb;
  buffer<float> src(rows ? (rows - 1) * ld + cols : 0);
  buffer<uint32_t> codes(rows * kb * 4);
  buffer<uint8_t> scales(n_scales);
  if (src.n) src.put(x);
  native_quantize_args a = {};
  const gfx950_rules rules = gfx950_rules_default();
  a.src = src.p, a.codes = codes.p, a.scales = scales.p, a.rows = rows, a.cols = cols, a.ld = ld, a.seed = spec.seed;
  a.shuffled = (uint32_t)shuffled, a.signs = q.signs, a.env.rules = &rules;
  if (mxh_host::launch(q.kernel, (unsigned)((rows * kb + 255) / 256), 256, &a, sizeof a)) fail(q.kernel, mxh_host::reports());
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < kb; k++) {
      const size_t at = shuffled ? mx_layout_index(MX_LAYOUT_AMD_SHUFFLE, rows, kb, r, k) : r * kb + k;
      const std::string where = std::string(suite) + ", " + q.keys + ", row " + std::to_string(r) + " block " + std::to_string(k);
      scales_compared++;
      codes_compared += 32;
      if (scales.p[at] != want.scales[r * kb + k])
        fail(q.kernel, where + ": scale " + std::to_string(scales.p[at]) + ", the reference has " + std::to_string(want.scales[r * kb + k]));
      if (memcmp(codes.p + (r * kb + k) * 4, want.codes + r * want.code_stride + 16 * k, 16)) fail(q.kernel, where + ": codes");
    }
  ref_tensor_free(&want);
}

static void suites() {
  for (const quantiser &q : quantisers)
    for (int suite = 0; suite < MX_SUITE_COUNT; suite++) {
      mx_spec spec = {};
      mx_error err;
      mx_cases cases;
      if (mx_spec_parse(&spec, q.keys, &err) != MX_OK || mx_generate(&cases, suite, &spec, 0, 0, 1, &err) != MX_OK) {
        fail(q.keys, err.text);
        continue;
      }
      for (size_t i = 0; i < cases.n; i++)
        tensor(q, spec, mx_suite_name(suite), cases.x + i * cases.rows * cases.ld, cases.rows, cases.cols, cases.ld, (int)(i % 2));
      mx_cases_free(&cases);
    }
}

/* ---- the product ---- */

static uint64_t outputs_compared;
static void product(const char *accum, uint32_t m, uint32_t n, uint32_t kb, bool positions) {
  gfx950_rules rules = gfx950_rules_default();
  mx_mma_model model;
  mx_error err;
  if (mx_mma_model_find(&model, accum, &err) != MX_OK) return fail(accum, err.text);
  gfx950_rules_sums(&rules, &model.accum);
  const uint32_t kb8 = (kb + 7) / 8 * 8, depth = kb8 * 32;
  std::vector<uint8_t> code[2], scale[2]; /* padded with zeros along K, as the kernel does */
  std::vector<uint32_t> packed[2];
  std::vector<uint8_t> shuffled[2];
  for (int s = 0; s < 2; s++) {
    const uint32_t rows = s ? n : m;
    code[s].assign((size_t)rows * depth / 2, 0);
    scale[s].assign((size_t)rows * kb8, 127);
    packed[s].resize((size_t)rows * kb * 4);
    std::vector<uint8_t> plain((size_t)rows * kb);
    for (uint32_t r = 0; r < rows; r++)
      for (uint32_t k = 0; k < kb; k++) {
        for (uint32_t w = 0; w < 4; w++) {
          uint32_t v = random32();
          if (positions) { /* A has a single 1 in each row; an element of B is the bit of its position that m selects */
            v = 0;
            for (uint32_t i = 0; i < 8; i++) {
              const uint32_t at = k * 32 + w * 8 + i;
              if (s == 0 ? at == r * 7 % (kb * 32) : (r * (kb * 32) + at) >> (m % 16) & 1) v |= 2u << 4 * i;
            }
          }
          packed[s][((size_t)r * kb + k) * 4 + w] = v;
          memcpy(&code[s][(size_t)r * depth / 2 + k * 16 + w * 4], &v, 4);
        }
        const uint8_t byte = (uint8_t)(positions ? 120 + (s ? r % 11 : r % 13) + k % 5 : 118 + random32() % 18);
        plain[(size_t)r * kb + k] = scale[s][(size_t)r * kb8 + k] = byte;
      }
    shuffled[s].resize(mx_layout_size(MX_LAYOUT_AMD_SHUFFLE, rows, kb));
    mx_layout_pack(shuffled[s].data(), MX_LAYOUT_AMD_SHUFFLE, plain.data(), rows, kb, 127);
  }
  buffer<uint32_t> a(packed[0].size()), b(packed[1].size()), sa(shuffled[0].size() / 4), sb(shuffled[1].size() / 4);
  buffer<float> d((size_t)m * n);
  a.put(packed[0].data()), b.put(packed[1].data()), sa.put(shuffled[0].data()), sb.put(shuffled[1].data());
  native_gemm_args args = {};
  args.d = d.p, args.a = a.p, args.b = b.p, args.scale_a = sa.p, args.scale_b = sb.p, args.m = m, args.n = n, args.kb = kb, args.ldd = n,
  args.env.rules = &rules;
  if (mxh_host::launch("native_gemm_mxfp4", (m + 63) / 64 * ((n + 63) / 64), 256, &args, sizeof args))
    return fail("native_gemm_mxfp4", mxh_host::reports());

  std::vector<uint32_t> want((size_t)m * n, 0), c((size_t)m * n, 0);
  if (positions) { /* what the positions alone give */
    for (uint32_t i = 0; i < m; i++)
      for (uint32_t j = 0; j < n; j++) {
        const uint32_t k = i * 7 % (kb * 32), block = k / 32;
        const uint32_t exp = (120 + i % 13 + block % 5) + (120 + j % 11 + block % 5) - 254 + 127;
        want[(size_t)i * n + j] = (j * (kb * 32) + k) >> (m % 16) & 1 ? exp << 23 : 0;
      }
  } else {
    model.a = model.b = mx_elem_format(MX_ELEM_E2M1);
    model.c = model.d = mx_operand_format(MX_OPERAND_F32);
    model.scale = mx_scale_format(MX_SCALE_E8M0);
    model.block = 32;
    model.k = 128;
    mx_mma_args ref = {1, m, n, depth, code[0].data(), code[1].data(), c.data(), scale[0].data(), scale[1].data()};
    if (ref_mma(want.data(), &model, &ref) != MX_OK) return fail(accum, "ref_mma refuses");
  }
  for (size_t i = 0; i < want.size(); i++, outputs_compared++) {
    uint32_t got;
    memcpy(&got, d.p + i, 4);
    if (got != want[i])
      return fail("native_gemm_mxfp4",
                  std::string(accum) + (positions ? ", positions" : "") + ": D[" + std::to_string(i / n) + "][" + std::to_string(i % n) + "]");
  }
}

int main() {
  suites();
  for (uint32_t m = 64; m < 80; m++) product("cdna4_like_cdna3", m, 70, 21, true);
  product("cdna4_like_cdna3", 66, 48, 10, false);
  product("cdna4_block32", 33, 70, 16, false);
  product("cdna4_exact32", 64, 64, 8, false);
  product("fused:L=16,F=25,out=f32rne", 1, 130, 9, false);
  printf("hip native: complete kernels: %llu codes and %llu scales of %d quantisers on every suite, %llu outputs of products, %d differ from "
         "the reference\n",
         (unsigned long long)codes_compared, (unsigned long long)scales_compared, (int)(sizeof quantisers / sizeof *quantisers),
         (unsigned long long)outputs_compared, failures);
  return failures != 0;
}
