/* Declares what the native kernels share on gfx950 itself and on the host runtime that imitates it. */
#ifndef MXH_NATIVE_H
#define MXH_NATIVE_H

#include "hip_backend/run/runtime.h"

#include "gfx950.h"
#ifdef MXH_HOST
#include "host.h"
#endif

struct gfx950_convert_args {
  mxh_ptr<uint32_t> out;
  mxh_ptr<const uint32_t> x, scale, seed;
  uint32_t n;
  gfx950_env env;
};
struct gfx950_mfma_args {
  mxh_ptr<uint32_t> d;
  mxh_ptr<const uint32_t> a, b, c, scale_a, scale_b;
  gfx950_env env;
};

/* Arguments of the complete quantisers: src is float32 [rows][ld]; codes are [rows][kb][4] words, two FP4 to a byte, low nibble first;
 * scales are E8M0, row by row or as amd_shuffle, whose padding the caller writes. */
struct native_quantize_args {
  mxh_ptr<const float> src;
  mxh_ptr<uint32_t> codes;
  mxh_ptr<uint8_t> scales;
  uint64_t rows, cols, ld, seed; /* seed: of Philox, for stochastic kernels, which need an even cols */
  uint32_t shuffled;             /* 1: scales are in layout amd_shuffle */
  uint32_t signs;                /* bit i negates element i of each tile of 16 before the rotation */
  gfx950_env env;
};
/* D[m][n] = A[m][k] B[n][k]^T in float32; a is [m][kb] and b [n][kb] blocks of four words; the scales of both are in layout amd_shuffle.
 * Padding beyond kb is read: it may be any byte but 0xFF, which would make NaN of the zeros there (mxgold convert writes 0). */
struct native_gemm_args {
  mxh_ptr<float> d;
  mxh_ptr<const uint32_t> a, b, scale_a, scale_b;
  uint32_t m, n, kb, ldd;
  gfx950_env env;
};

/* Position of a scale in layout amd_shuffle: 32 rows x 8 blocks take 256 bytes, of which lane l of a wave needs the four from 4 l on. */
MXH_DEVICE uint64_t native_shuffled(uint64_t row, uint64_t block, uint64_t blocks_padded) {
  return row / 32 * 32 * blocks_padded + block / 8 * 256 + block % 4 * 64 + row % 16 * 4 + block % 8 / 4 * 2 + row % 32 / 16;
}

#ifdef MXH_HOST
/* On the host, instructions read the mode from their environment. */
static inline void set_mode(uint32_t, uint32_t *, uint32_t *) {}
#else
#define GFX950_VECTOR(name, type, n) typedef type name __attribute__((ext_vector_type(n)))
typedef float F32;
typedef _Float16 F16;
typedef __bf16 BF16;
GFX950_VECTOR(F32x2, float, 2);
GFX950_VECTOR(F16x2, _Float16, 2);
GFX950_VECTOR(BF16x2, __bf16, 2);
GFX950_VECTOR(S16x2, short, 2);
GFX950_VECTOR(F32x4, float, 4);
GFX950_VECTOR(F32x16, float, 16);
GFX950_VECTOR(F32x32, float, 32);
GFX950_VECTOR(F16x32, _Float16, 32);
GFX950_VECTOR(BF16x32, __bf16, 32);
GFX950_VECTOR(U32x6, unsigned, 6);
GFX950_VECTOR(S32x8, int, 8);

/* Converts registers to the type that a builtin wants, and back. */
template <class T> MXH_DEVICE T take(const uint32_t *words) {
  T v;
  __builtin_memcpy(&v, words, sizeof v);
  return v;
}
template <class T> MXH_DEVICE void put(uint32_t *words, T v) { __builtin_memcpy(words, &v, sizeof v); }
MXH_DEVICE float as_f32(uint32_t v) { return __builtin_bit_cast(float, v); }

/* Sets MODE for the rest of the kernel. The operands pass through the assembly, so that what reads them comes after it; they end in vector
 * registers. */
MXH_DEVICE void set_mode(uint32_t mode, uint32_t *operand, uint32_t *other) {
  const uint32_t ovfl = mode & GFX950_MODE_OVFL, denorm = mode & GFX950_MODE_FLUSH ? 0xC : 0xF;
  asm volatile("s_setreg_b32 hwreg(HW_REG_MODE, 23, 1), %2\n\ts_setreg_b32 hwreg(HW_REG_MODE, 4, 4), %3\n\ts_nop 3"
               : "+v"(*operand), "+v"(*other)
               : "s"(ovfl), "s"(denorm));
}
#endif
#endif
