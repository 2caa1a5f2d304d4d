/* Tests the block-scaled products on the host runtime, every output bit against ref_mma, under the suggested rules and under rules drawn at
 * random; and with tiles whose codes tell their position, for which no accumulation model matters. What a lane gets is put together here
 * from the tables of AMD's ISA, by code that shares nothing with gfx950/host_mfma.c. */
#include "hip_backend/tests/native_test.h"

/* The lane and first bit of element (row, k), written a second time from the table in HARDWARE. F8 comes in two chunks of K. */
static void place(int m, int bits, int row, int k, int *lane, int *bit) {
  if (bits < 8) {
    *lane = row + m * (k / 32);
    *bit = bits * (k % 32);
  } else {
    const int half = m == 16 ? 64 : 32;
    *lane = row + m * ((k % half) / 16);
    *bit = 8 * (k % 16) + (k >= half ? 128 : 0);
  }
}

struct tile {
  int m, depth, blocks, type[2];
  std::vector<uint8_t> code[2], scale[2]; /* [m][depth], [m][blocks] */
  std::vector<uint32_t> c, d;             /* [m][m] */
  tile(int edge, int type_a, int type_b)
      : m(edge), depth(edge == 16 ? 128 : 64), blocks(depth / 32), type{type_a, type_b}, c((size_t)(m * m)), d((size_t)(m * m)) {
    for (int s = 0; s < 2; s++) {
      code[s].assign((size_t)(m * depth), 0);
      scale[s].assign((size_t)(m * blocks), 127);
    }
  }
  /* Run the kernel. Returns false after a report. */
  bool run(int select, const gfx950_env &env) {
    const size_t regs = m == 16 ? 4 : 16;
    buffer a(64 * 8), b(64 * 8), cc(64 * regs), dd(64 * regs), sa(64), sb(64);
    buffer *data[] = {&a, &b}, *scales[] = {&sa, &sb};
    for (int s = 0; s < 2; s++) {
      for (size_t i = 0; i < 512; i++) (*data[s])[i] = random32(); /* registers that the format does not use may hold anything */
      const int bits = format_of(type[s])->bits, byte = s ? select / 4 : select % 4;
      for (int row = 0; row < m; row++)
        for (int k = 0; k < depth; k++) {
          int lane, bit;
          place(m, bits, row, k, &lane, &bit);
          set_bits(&(*data[s])[(size_t)lane * 8], bit, bits, code[s][(size_t)(row * depth + k)]);
        }
      for (int lane = 0; lane < 64; lane++) {
        (*scales[s])[(size_t)lane] = random32(); /* and so may the bytes that are not selected */
        set_bits(&(*scales[s])[(size_t)lane], 8 * byte, 8, scale[s][(size_t)(lane % m * blocks + lane / m)]);
      }
    }
    for (int lane = 0; lane < 64; lane++)
      for (int reg = 0; reg < (int)regs; reg++) cc[(size_t)lane * regs + (size_t)reg] = c[(size_t)at(lane, reg)];
    a.written(), b.written(), cc.written(), sa.written(), sb.written();
    gfx950_mfma_args args = {};
    args.a = a.p, args.b = b.p, args.c = cc.p, args.d = dd.p, args.scale_a = sa.p, args.scale_b = sb.p, args.env = env;
    const std::string kernel = name(select);
    if (mxh_host::launch(kernel.c_str(), 1, 64, &args, sizeof args)) {
      fail(kernel.c_str(), mxh_host::reports());
      return false;
    }
    for (int lane = 0; lane < 64; lane++)
      for (int reg = 0; reg < (int)regs; reg++) d[(size_t)at(lane, reg)] = dd[(size_t)lane * regs + (size_t)reg];
    return true;
  }
  int at(int lane, int reg) const {
    const int col = m == 16 ? lane % 16 : lane % 32;
    const int row = m == 16 ? 4 * (lane / 16) + reg : 8 * (reg / 4) + 4 * (lane / 32) + reg % 4;
    return row * m + col;
  }
  std::string name(int select) const {
    return std::string("gfx950_mfma_scale_f32_") + (m == 16 ? "16x16x128" : "32x32x64") + "_f8f6f4_a" + std::to_string(type[0]) + "_b" +
           std::to_string(type[1]) + "_s" + std::to_string(select);
  }
};

static uint8_t one_of(int type) { return (uint8_t)(format_of(type)->bias << format_of(type)->man_bits); }

/* Row i of one side has a single 1, at k = k0(i); element (j, k) of the other side is one bit of its own position. The outputs of a few such
 * products together say which element each lane held. Sums with one nonzero product are exact under any model. */
static void positions(int m, int type_a, int type_b, int select) {
  gfx950_rules rules = gfx950_rules_default();
  gfx950_env env = {};
  env.rules = &rules;
  const int log2k = m == 16 ? 7 : 6, log2m = m == 16 ? 4 : 5;
  for (int side = 0; side < 2; side++)
    for (int digit = 0; digit < log2k + log2m; digit++) {
      tile t(m, type_a, type_b);
      const int hot = side, told = 1 - side, shift = (int)below((unsigned)t.depth);
      for (int i = 0; i < m; i++) t.code[hot][(size_t)(i * t.depth + (i * (t.depth / m) + shift) % t.depth)] = one_of(t.type[hot]);
      for (int j = 0; j < m; j++)
        for (int k = 0; k < t.depth; k++) t.code[told][(size_t)(j * t.depth + k)] = (j * t.depth + k) >> digit & 1 ? one_of(t.type[told]) : 0;
      /* A scale tells its own position: it is 2^(row mod 8 + 8 * block). */
      for (int s = 0; s < 2; s++)
        for (int r = 0; r < m; r++)
          for (int block = 0; block < t.blocks; block++)
            t.scale[s][(size_t)(r * t.blocks + block)] = (uint8_t)(100 + (s ? r / 8 : r % 8) + 8 * block);
      if (!t.run(select, env)) return;
      for (int row = 0; row < m; row++)
        for (int col = 0; col < m; col++) {
          const int i = hot ? col : row, j = hot ? row : col, k = (i * (t.depth / m) + shift) % t.depth, block = k / 32;
          const int exp = t.scale[0][(size_t)(row * t.blocks + block)] + t.scale[1][(size_t)(col * t.blocks + block)] - 254;
          const uint32_t want = (j * t.depth + k) >> digit & 1 ? (uint32_t)(exp + 127) << 23 : 0;
          compared++;
          if (t.d[(size_t)(row * m + col)] != want) {
            fail(t.name(select).c_str(), "position: D[" + std::to_string(row) + "][" + std::to_string(col) + "] " +
                                             hex(t.d[(size_t)(row * m + col)]) + ", expected " + hex(want));
            return;
          }
        }
    }
}

static std::vector<uint8_t> packed(const tile &t, int side, int row) {
  std::vector<uint8_t> p;
  for (int k = 0; k < t.depth; k++) {
    const uint8_t c = t.code[side][(size_t)(row * t.depth + k)];
    if (format_of(t.type[side])->bits > 4)
      p.push_back(c);
    else if (k % 2)
      p.back() = (uint8_t)(p.back() | c << 4);
    else
      p.push_back(c);
  }
  return p;
}

/* One output by ref_mma, to which the rules that it does not know are added. */
static uint32_t product_ref(const tile &t, const gfx950_rules &rules, unsigned mode, int row, int col) {
  mx_mma_model model = {};
  mx_format finite = *mx_scale_format(MX_SCALE_E8M0);
  model.accum = rules.accum[gfx950_pair(t.m, t.type[0], t.type[1])];
  model.a = format_of(t.type[0]), model.b = format_of(t.type[1]);
  model.c = model.d = mx_operand_format(MX_OPERAND_F32);
  model.scale = mx_scale_format(MX_SCALE_E8M0);
  model.block = 32;
  model.k = t.depth;
  if (rules.mfma_scale_ff == GFX950_mfma_scale_ff_TWO128) { /* 0xFF is 2^128, not NaN */
    finite.max_code = 0xFF;
    finite.nan_first = finite.nan_last = finite.nan_code = MX_NO_CODE;
    model.scale = &finite;
  }
  std::vector<uint8_t> a = packed(t, 0, row), b = packed(t, 1, col), sa, sb;
  bool inf = false;
  for (int block = 0; block < t.blocks; block++) {
    uint8_t x = t.scale[0][(size_t)(row * t.blocks + block)], y = t.scale[1][(size_t)(col * t.blocks + block)];
    if (rules.mfma_scale_ff == GFX950_mfma_scale_ff_SKIP_ZERO && (x == 0xFF || y == 0xFF)) {
      bool zero = true;
      for (int k = 32 * block; k < 32 * block + 32; k++)
        zero &= ref_decode(model.a, t.code[0][(size_t)(row * t.depth + k)]) == 0 ||
                ref_decode(model.b, t.code[1][(size_t)(col * t.depth + k)]) == 0;
      if (zero) x = y = 1;
    }
    sa.push_back(x), sb.push_back(y);
  }
  for (int k = 0; k < t.depth; k++)
    inf |= isinf(ref_decode(model.a, t.code[0][(size_t)(row * t.depth + k)])) ||
           isinf(ref_decode(model.b, t.code[1][(size_t)(col * t.depth + k)]));
  const uint32_t c = t.c[(size_t)(row * t.m + col)];
  uint32_t d = 0;
  mx_mma_args args = {1, 1, 1, (size_t)t.depth, a.data(), b.data(), &c, sa.data(), sb.data()};
  if (ref_mma(&d, &model, &args) != MX_OK) fail("ref_mma", "refused");
  const double value = ref_decode(model.d, d), from = ref_decode(model.c, c);
  if (isnan(value)) {
    if (rules.mfma_nan == GFX950_mfma_nan_ONES) return 0x7FFFFFFF;
    return rules.mfma_nan == GFX950_mfma_nan_C && isnan(from) ? c | 0x00400000 : 0x7FC00000;
  }
  if (isinf(value) && !inf && !isinf(from) && rules.mfma_overflow == GFX950_mfma_overflow_MODE && mode & GFX950_MODE_OVFL) d -= 1;
  return d;
}

static void products(int m, int type_a, int type_b, int select, const gfx950_rules &rules, unsigned mode, int outputs) {
  tile t(m, type_a, type_b);
  const unsigned kind = below(5);
  for (int s = 0; s < 2; s++) {
    const mx_format *f = format_of(t.type[s]);
    for (size_t i = 0; i < t.code[s].size(); i++) {
      uint32_t code = random32() & ((1u << f->bits) - 1);
      if (kind < 4 && f->bits == 8) { /* exponents close to each other, no NaN or Inf */
        code = (code & ((1u << (f->man_bits + 2)) - 1)) | (unsigned)(f->bias - 2) << f->man_bits | (random32() & 1) << 7;
        if ((code & 0x7F) > f->max_code) code = 0;
      }
      if (kind == 3 && below(4)) code = 0;
      t.code[s][i] = (uint8_t)code;
    }
    for (uint8_t &v : t.scale[s]) v = (uint8_t)(kind == 4 ? random32() : 120 + below(kind == 0 ? 2 : 14));
    if (kind == 4 || kind == 3) t.scale[s][below((unsigned)t.scale[s].size())] = 0xFF;
  }
  for (uint32_t &c : t.c) {
    c = kind == 4 ? random32() : (random32() & 0x807FFFFF) | (unsigned)(110 + below(40)) << 23;
    if (below(5) == 0) c = 0;
    if (kind == 3 && below(5) == 0) c = 0x7FA00005;
    if (kind == 2) c = 0x7F7FFFFF; /* at the edge of overflow */
  }
  if (kind == 2)
    for (int s = 0; s < 2; s++)
      for (uint8_t &v : t.scale[s]) v = (uint8_t)(178 + below(14));
  gfx950_env env = {};
  env.rules = &rules, env.mode = mode;
  if (!t.run(select, env)) return;
  for (int n = 0; n < outputs; n++) {
    const int row = (int)below((unsigned)m), col = (int)below((unsigned)m);
    const uint32_t want = product_ref(t, rules, mode, row, col), got = t.d[(size_t)(row * m + col)];
    compared++;
    if (got != want) {
      fail(t.name(select).c_str(), "kind " + std::to_string(kind) + " D[" + std::to_string(row) + "][" + std::to_string(col) + "] " + hex(got) +
                                       ", the reference has " + hex(want) + ", C " + hex(t.c[(size_t)(row * m + col)]));
      return;
    }
  }
}

int main() {
  const gfx950_rules suggested = gfx950_rules_default();
  for (int m = 16; m <= 32; m += 16)
    for (int a = 0; a < 5; a++)
      for (int b = 0; b < 5; b++) {
        positions(m, a, b, (int)below(16));
        for (int select = 0; select < 16; select++) {
          const gfx950_rules r = select % 2 ? drawn() : suggested;
          products(m, a, b, select, r, below(4), select == 0 ? 64 : 8);
        }
      }
  printf("hip native: products: 800 kernels, %llu outputs, %d differ from the reference\n", (unsigned long long)compared, failures);
  return failures != 0;
}
