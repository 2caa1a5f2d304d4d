/* Compares numbers, maxima, rotations, single values and layouts. */
#include "hip_backend/compare/portable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "tests/lib/suites.h"
}
#include "mxgold/rcp.h"

namespace mxh_portable {
/* The reciprocal of every fraction in one binade and of a few in each; quotients of 53-bit operands, compared with integer arithmetic. */
void golden::numbers() {
  static const char row[] = "reciprocal of sm_90, quotient to odd";
  static const struct {
    size_t n;
    uint32_t first, step;
  } ranges[] = {{1u << 23, 0x3F800000u, 1}, {1u << 16, 0, 65521}, {1u << 8, 0x7F7FFF80u, 1}, {1u << 8, 0xFFFFFF00u, 1}};
  std::vector<uint32_t> bits(1u << 23);
  for (const auto &r : ranges) {
    if (run->quick && r.n > 1u << 16) continue;
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
    const int shift = eq + 32 - 53; /* 53 bits are kept; the last one is made odd if anything is cut */
    const uint64_t kept = (uint64_t)(whole >> shift) | ((whole << (128 - shift)) != 0 || whole * b != top);
    const double q = copysign(ldexp((double)kept, shift - 64 + ea - eb), x[2 * i] * x[2 * i + 1]);
    bad += memcmp(&q, &y[i], 8) != 0;
  }
  mxh_count(run, row, n, bad, "quotients");
}

void golden::amax() {
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

void golden::hadamard() {
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

/* Single values in every format of up to 16 bits, with every rounding. */
void golden::codec() {
  std::vector<float> x;
  for (uint32_t i = 0; i < 4096; i++) { /* all exponents and signs, with mantissas at ties and next to them */
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
      if (left_out(run, (size_t)round + (size_t)f->bits)) continue;
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

void golden::layouts() {
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
} // namespace mxh_portable
