/* Runs the block-scaled products of gfx950 in both shapes, for every pair of element types and of scale bytes, one tile per wave. gfx950.h
 * says how the kernels are called, layout.h what lies in which lane. Scales come from vector registers and are never constants, because LLVM
 * turns the constant 0 into the unscaled instruction. */
#include "native.h"

#ifdef MXH_HOST
#define PRODUCT(name, edge, regs, A, B, bytes)                                                                                                 \
  gfx950_mfma_in in = {};                                                                                                                      \
  for (int j = 0; j < 8; j++) in.a[j] = ra[j], in.b[j] = rb[j];                                                                                \
  for (int j = 0; j < regs; j++) in.c[j] = rc[j];                                                                                              \
  in.scale_a = scale_a, in.scale_b = scale_b, in.m = edge, in.cbsz = A, in.blgp = B, in.select = bytes, in.env = a.env;                        \
  const gfx950_mfma_out result = mxh_host::wave_op<gfx950_mfma_in, gfx950_mfma_out>(in, gfx950_mfma, #name, MXH_HERE);                         \
  for (int j = 0; j < regs; j++) rc[j] = result.d[j];
#else
#define PRODUCT(name, edge, regs, A, B, bytes)                                                                                                 \
  put(rc, __builtin_amdgcn_##name(take<S32x8>(ra), take<S32x8>(rb), take<F32x##regs>(rc), A, B, (bytes) % 4, (int)scale_a, (bytes) / 4,        \
                                  (int)scale_b));
#endif

#define KERNEL(name, edge, regs, A, B, bytes)                                                                                                  \
  MXH_KERNEL(gfx950_##name##_a##A##_b##B##_s##bytes, gfx950_mfma_args, a, 64) {                                                                \
    const uint32_t at = mxh_block_id() * 64 + mxh_thread_id();                                                                                 \
    uint32_t ra[8], rb[8], rc[regs], scale_a = a.scale_a[at], scale_b = a.scale_b[at];                                                         \
    for (uint32_t j = 0; j < 8; j++) ra[j] = a.a[at * 8 + j], rb[j] = a.b[at * 8 + j];                                                         \
    for (uint32_t j = 0; j < regs; j++) rc[j] = a.c[at * regs + j];                                                                            \
    set_mode(a.env.mode, &scale_a, &scale_b);                                                                                                  \
    PRODUCT(name, edge, regs, A, B, bytes)                                                                                                     \
    for (uint32_t j = 0; j < regs; j++) a.d[at * regs + j] = rc[j];                                                                            \
  }

#define BYTES_4(name, edge, regs, A, B, s0, s1, s2, s3)                                                                                        \
  KERNEL(name, edge, regs, A, B, s0) KERNEL(name, edge, regs, A, B, s1) KERNEL(name, edge, regs, A, B, s2) KERNEL(name, edge, regs, A, B, s3)
#define BYTES(name, edge, regs, A, B)                                                                                                          \
  BYTES_4(name, edge, regs, A, B, 0, 1, 2, 3)                                                                                                  \
  BYTES_4(name, edge, regs, A, B, 4, 5, 6, 7) BYTES_4(name, edge, regs, A, B, 8, 9, 10, 11) BYTES_4(name, edge, regs, A, B, 12, 13, 14, 15)
#define TYPES_B(name, edge, regs, A)                                                                                                           \
  BYTES(name, edge, regs, A, 0)                                                                                                                \
  BYTES(name, edge, regs, A, 1) BYTES(name, edge, regs, A, 2) BYTES(name, edge, regs, A, 3) BYTES(name, edge, regs, A, 4)
#define TYPES(name, edge, regs)                                                                                                                \
  TYPES_B(name, edge, regs, 0)                                                                                                                 \
  TYPES_B(name, edge, regs, 1) TYPES_B(name, edge, regs, 2) TYPES_B(name, edge, regs, 3) TYPES_B(name, edge, regs, 4)

TYPES(mfma_scale_f32_16x16x128_f8f6f4, 16, 4)
TYPES(mfma_scale_f32_32x32x64_f8f6f4, 32, 16)
