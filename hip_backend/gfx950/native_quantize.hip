/* Quantises to MXFP4 as a training step does on gfx950: it rotates tiles of 16 (or not), uses the even scale rule, and converts the elements
 * by v_cvt_scalef32, to nearest or stochastically, with a block of 32 in each lane. The spec is `scale.rule=even`, with `had.size=16` if it
 * rotates and `elem.round=sr sr.source=amd_lfsr` if it is stochastic. The codes of blocks with a NaN or Inf do not come from the
 * instruction, since what it gives for scale byte 0xFF is not known. */
#include "native.h"

/* Converts a pair of elements to nearest, into byte `select` of *out, which keeps its other bytes. */
#ifdef MXH_HOST
#define PAIR(out, x, scale, select)                                                                                                            \
  gfx950_convert(&a.env, &gfx950_rows[GFX950_I_cvt_scalef32_pk_fp4_f32], select, &out, x, scale, 0, GFX950_FROM_VGPR)
#define PAIR_SR(out, x, scale, seed, select)                                                                                                   \
  gfx950_convert(&a.env, &gfx950_rows[GFX950_I_cvt_scalef32_sr_pk_fp4_f32], select, &out, x, scale, seed, GFX950_FROM_VGPR)
#else
#define PAIR(out, x, scale, select) out = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(out, as_f32((x)[0]), as_f32((x)[1]), as_f32(scale), select)
#define SELECT_0 "op_sel:[0,0,0,0]"
#define SELECT_1 "op_sel:[0,0,1,0]"
#define SELECT_2 "op_sel:[0,0,0,1]"
#define SELECT_3 "op_sel:[0,0,1,1]"
/* The & keeps the destination off the sources, as in native_convert.hip. */
#define PAIR_SR(out, x, scale, seed, select)                                                                                                   \
  asm("v_cvt_scalef32_sr_pk_fp4_f32 %0, %1, %2, %3 " SELECT_##select "\n\ts_nop 0" : "+&v"(out) : "v"(take<F32x2>(x)), "v"(seed), "v"(scale))
#endif

enum { NAN_BYTE = 0xFF, INF_BITS = 0x7F800000 };

MXH_DEVICE uint32_t bits_of(float v) { return mxh_bits<uint32_t>(v); }

/* Word i of stream 0 by Philox4x32-10: SPEC 6. */
MXH_DEVICE uint32_t random_word(uint64_t seed, uint64_t i) {
  uint32_t c0 = (uint32_t)(i / 4), c1 = (uint32_t)(i / 4 >> 32), c2 = 0, c3 = 0, k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
  }
  return i % 4 == 0 ? c0 : i % 4 == 1 ? c1 : i % 4 == 2 ? c2 : c3;
}

/* H_16 by butterflies of stride 1, 2, 4 and 8, each rounded, and then a factor of 1/4, which is exact except for subnormals. */
MXH_DEVICE void rotate16(float *v, uint32_t signs) {
  for (int i = 0; i < 16; i++)
    if (signs >> i & 1) v[i] = -v[i];
  for (int stride = 1; stride < 16; stride *= 2)
    for (int i = 0; i < 16; i++)
      if (!(i & stride)) {
        const float low = v[i], high = v[i + stride];
        v[i] = low + high;
        v[i + stride] = low - high;
      }
  for (int i = 0; i < 16; i++) {
    v[i] *= 0.25f;
    if (v[i] != v[i]) v[i] = mxh_bits<float>(0x7FC00000u);
  }
}

struct block32 {
  float v[32];
};

template <bool Rotate, class Args> MXH_DEVICE void load(block32 *b, const Args &a, uint64_t row, uint64_t block) {
  const auto from = a.src + row * a.ld + block * 32;
  const uint64_t left = a.cols - block * 32;
  const int here = left < 32 ? (int)left : 32;
  for (int i = 0; i < 32; i++) b->v[i] = 0;
  if (here == 32) {
    for (int i = 0; i < 32; i++) b->v[i] = from[i];
  } else {
    for (int i = 0; i < 32; i++)
      if (i < here) b->v[i] = from[i];
  }
  if (!Rotate) return;
  rotate16(b->v, a.signs);
  rotate16(b->v + 16, a.signs);
  for (int i = 0; i < 32; i++)
    if (i >= here) b->v[i] = 0;
}

#define BODY(Rotate, CONVERT)                                                                                                                  \
  const uint64_t kb = (a.cols + 31) / 32, index = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id();                               \
  if (index >= a.rows * kb) return;                                                                                                            \
  const uint64_t row = index / kb, block = index % kb;                                                                                         \
  block32 b;                                                                                                                                   \
  load<Rotate>(&b, a, row, block);                                                                                                             \
  uint32_t amax = 0;                                                                                                                           \
  for (int i = 0; i < 32; i++) {                                                                                                               \
    const uint32_t m = bits_of(b.v[i]) & 0x7FFFFFFF;                                                                                           \
    amax = m > amax ? m : amax;                                                                                                                \
  }                                                                                                                                            \
  /* even: half of the last kept bit of amax is added; the exponent that results, less that of 6. */                                           \
  const uint32_t exponent = (amax + 0x200000) >> 23;                                                                                           \
  uint32_t byte = exponent > 2 ? exponent - 2 : 0, scale = byte << 23, spare = scale, word[4] = {0, 0, 0, 0};                                  \
  set_mode(a.env.mode, &scale, &spare);                                                                                                        \
  CONVERT                                                                                                                                      \
  if (amax >= INF_BITS) {                                                                                                                      \
    byte = NAN_BYTE;                                                                                                                           \
    for (int i = 0; i < 32; i++) {                                                                                                             \
      const uint32_t nan = (bits_of(b.v[i]) & 0x7FFFFFFF) > INF_BITS ? bits_of(b.v[i]) >> 31 << 3 : 0;                                         \
      word[i / 8] = (word[i / 8] & ~(15u << 4 * (i % 8))) | (7 | nan) << 4 * (i % 8);                                                          \
    }                                                                                                                                          \
  }                                                                                                                                            \
  const auto to = a.codes + index * 4;                                                                                                         \
  for (int i = 0; i < 4; i++) to[i] = word[i];                                                                                                 \
  a.scales[a.shuffled ? native_shuffled(row, block, (kb + 7) / 8 * 8) : index] = (uint8_t)byte;

#define QUAD(w)                                                                                                                                \
  for (int i = 0; i < 8; i++) x[i] = bits_of(b.v[8 * w + i]);                                                                                  \
  PAIR(word[w], x, scale, 0);                                                                                                                  \
  PAIR(word[w], x + 2, scale, 1);                                                                                                              \
  PAIR(word[w], x + 4, scale, 2);                                                                                                              \
  PAIR(word[w], x + 6, scale, 3);
#define NEAREST                                                                                                                                \
  uint32_t x[8];                                                                                                                               \
  QUAD(0) QUAD(1) QUAD(2) QUAD(3)
/* Each pair has one random word, from which the instruction makes that of the second element. */
#define QUAD_SR(w)                                                                                                                             \
  for (int i = 0; i < 8; i++) x[i] = bits_of(b.v[8 * w + i]);                                                                                  \
  for (int i = 0; i < 4; i++) seed[i] = random_word(a.seed, first + 4 * w + (uint32_t)i);                                                      \
  PAIR_SR(word[w], x, scale, seed[0], 0);                                                                                                      \
  PAIR_SR(word[w], x + 2, scale, seed[1], 1);                                                                                                  \
  PAIR_SR(word[w], x + 4, scale, seed[2], 2);                                                                                                  \
  PAIR_SR(word[w], x + 6, scale, seed[3], 3);
#define STOCHASTIC                                                                                                                             \
  uint32_t x[8], seed[4];                                                                                                                      \
  const uint64_t first = (row * a.cols + block * 32) / 2;                                                                                      \
  QUAD_SR(0) QUAD_SR(1) QUAD_SR(2) QUAD_SR(3)

MXH_KERNEL(native_mxfp4, native_quantize_args, a, 256){BODY(false, NEAREST)} MXH_KERNEL(native_mxfp4_hadamard, native_quantize_args, a, 256){
    BODY(true, NEAREST)} MXH_KERNEL(native_mxfp4_sr, native_quantize_args, a,
                                    256){BODY(false, STOCHASTIC)} MXH_KERNEL(native_mxfp4_hadamard_sr, native_quantize_args, a, 256) {
  BODY(true, STOCHASTIC)
}
