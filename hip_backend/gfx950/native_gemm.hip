/* Multiplies MXFP4 matrices with tiles in LDS: a block of four waves makes 64 x 64 outputs, each wave 32 x 32 of them, 256 of K at a time.
 * In each step a wave runs eight v_mfma_scale_f32_16x16x128_f8f6f4. The four scale bytes of a lane, one for each half of the rows and of K,
 * come in one word of the pre-shuffled layout, and the instruction picks its byte. K ascends, so the sums are those of the instruction
 * chained along K. */
#include "native.h"

struct alignas(16) quad {
  uint32_t w[4];
};

/* acc += half i of A's rows times half j of B's, in step s of K. */
#ifdef MXH_HOST
#define STEP(acc, x, y, i, j, s)                                                                                                               \
  {                                                                                                                                            \
    gfx950_mfma_in in = {};                                                                                                                    \
    for (int w = 0; w < 4; w++) in.a[w] = x.w[w], in.b[w] = y.w[w], in.c[w] = acc.w[w];                                                        \
    in.scale_a = scale_a, in.scale_b = scale_b, in.m = 16, in.cbsz = 4, in.blgp = 4, in.select = 2 * s + i + 4 * (2 * s + j), in.env = a.env;  \
    const gfx950_mfma_out out = mxh_host::wave_op<gfx950_mfma_in, gfx950_mfma_out>(in, gfx950_mfma, "mfma", MXH_HERE);                         \
    for (int w = 0; w < 4; w++) acc.w[w] = out.d[w];                                                                                           \
  }
#else
MXH_DEVICE S32x8 widened(const quad &q) { return S32x8{(int)q.w[0], (int)q.w[1], (int)q.w[2], (int)q.w[3], 0, 0, 0, 0}; }
#define STEP(acc, x, y, i, j, s)                                                                                                               \
  put(acc.w, __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(widened(x), widened(y), take<F32x4>(acc.w), 4, 4, 2 * s + i, (int)scale_a,       \
                                                              2 * s + j, (int)scale_b));
#endif

/* LDS has 64 rows of 8 chunks of 16 bytes, and each chunk is a block of 32 along K. The chunks of a row are permuted by the row's number, so
 * that the 16 rows that a quarter of a wave reads at one K do not fall into one bank. */
enum { ROWS = 64, CHUNKS = 8 };
MXH_DEVICE uint32_t place(uint32_t row, uint32_t chunk) { return row * CHUNKS + (chunk ^ (row & 7)); }

MXH_KERNEL(native_gemm_mxfp4, native_gemm_args, a, 256) {
  MXH_SHARED(quad, tile_a, ROWS * CHUNKS);
  MXH_SHARED(quad, tile_b, ROWS * CHUNKS);
  const uint32_t thread = mxh_thread_id(), lane = thread % 64, wave = thread / 64;
  const uint32_t across = (a.n + 63) / 64, row0 = mxh_block_id() / across * 64, col0 = mxh_block_id() % across * 64;
  const uint32_t wave_row = wave / 2 * 32, wave_col = wave % 2 * 32; /* in the tile */
  const uint32_t group_a = (row0 + wave_row) / 32, group_b = (col0 + wave_col) / 32, groups_a = (a.m + 31) / 32, groups_b = (a.n + 31) / 32;
  const quad zero = {{0, 0, 0, 0}};
  quad acc[2][2] = {{zero, zero}, {zero, zero}};
  const uint32_t kb8 = (a.kb + 7) / 8;
  uint32_t one = 0x7F7F7F7F, mode_set = lane;
  set_mode(a.env.mode, &one, &mode_set);

  for (uint32_t step = 0; step < kb8; step++) {
    for (uint32_t c = thread; c < ROWS * CHUNKS; c += 256) {
      const uint32_t row = c / CHUNKS, chunk = c % CHUNKS, block = step * CHUNKS + chunk;
      quad x = zero, y = zero;
      for (uint32_t w = 0; w < 4; w++) {
        if (row0 + row < a.m && block < a.kb) x.w[w] = a.a[((uint64_t)(row0 + row) * a.kb + block) * 4 + w];
        if (col0 + row < a.n && block < a.kb) y.w[w] = a.b[((uint64_t)(col0 + row) * a.kb + block) * 4 + w];
      }
      tile_a[place(row, chunk)] = x;
      tile_b[place(row, chunk)] = y;
    }
    mxh_barrier();
    uint32_t scale_a = one, scale_b = one;
    if (group_a < groups_a) scale_a = a.scale_a[((uint64_t)group_a * kb8 + step) * 64 + lane];
    if (group_b < groups_b) scale_b = a.scale_b[((uint64_t)group_b * kb8 + step) * 64 + lane];
    const uint32_t r = lane % 16, k = lane / 16;
    const quad a00 = tile_a[place(wave_row + r, k)], a10 = tile_a[place(wave_row + 16 + r, k)];
    const quad a01 = tile_a[place(wave_row + r, 4 + k)], a11 = tile_a[place(wave_row + 16 + r, 4 + k)];
    const quad b00 = tile_b[place(wave_col + r, k)], b10 = tile_b[place(wave_col + 16 + r, k)];
    const quad b01 = tile_b[place(wave_col + r, 4 + k)], b11 = tile_b[place(wave_col + 16 + r, 4 + k)];
    STEP(acc[0][0], a00, b00, 0, 0, 0)
    STEP(acc[0][1], a00, b10, 0, 1, 0)
    STEP(acc[1][0], a10, b00, 1, 0, 0)
    STEP(acc[1][1], a10, b10, 1, 1, 0)
    STEP(acc[0][0], a01, b01, 0, 0, 1)
    STEP(acc[0][1], a01, b11, 0, 1, 1)
    STEP(acc[1][0], a11, b01, 1, 0, 1)
    STEP(acc[1][1], a11, b11, 1, 1, 1)
    mxh_barrier();
  }
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t j = 0; j < 2; j++)
      for (uint32_t reg = 0; reg < 4; reg++) {
        const uint32_t row = row0 + wave_row + 16 * i + 4 * (lane / 16) + reg, col = col0 + wave_col + 16 * j + lane % 16;
        if (row < a.m && col < a.n) a.d[(uint64_t)row * a.ldd + col] = mxh_bits<float>(acc[i][j].w[reg]);
      }
}
