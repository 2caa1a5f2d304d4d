/* Runs every conversion of gfx950, registers in and registers out, with a kernel for each value of the select operand; gfx950.h says how
 * they are called. Scale and seed are in vector registers, because the ISA text and the machine-readable tables disagree on scalar ones
 * (native_probe.hip tries those). MODE is set first; the instruction takes an operand from that assembly, so that the compiler cannot move
 * it before it. */
#include "native.h"

#define OP_PK4_F32(name, wide, select) out[0] = __builtin_amdgcn_##name(out[0], as_f32(x[0]), as_f32(x[1]), as_f32(scale), select)
#define OP_PK4_V2(name, wide, select) out[0] = __builtin_amdgcn_##name(out[0], take<wide##x2>(x), as_f32(scale), select)
/* Two instructions are inline assembly, because clang 22 gives their builtins a destination that does not work on the hardware. sr_pk_fp4:
 * the destination is not tied to the old value, so that the part it keeps is garbage. 2xpk16: the destination may overlap a source, which an
 * instruction of several passes still reads when it writes its first result; that is undefined on the device and invisible to the host
 * runtime (llvm/llvm-project pull requests 117822, 188809; tools/check-gfx950.py tests every such instruction). The & keeps the destination
 * off the sources. Assembly that writes part of a register needs its own wait state before the register is read. */
#define SELECT_0 "op_sel:[0,0,0,0]"
#define SELECT_1 "op_sel:[0,0,1,0]"
#define SELECT_2 "op_sel:[0,0,0,1]"
#define SELECT_3 "op_sel:[0,0,1,1]"
#define OP_SRPK4(name, wide, select)                                                                                                           \
  asm("v_" #name " %0, %1, %2, %3 " SELECT_##select "\n\ts_nop 0" : "+&v"(out[0]) : "v"(take<wide##x2>(x)), "v"(seed), "v"(scale))
#define OP_PK8_F32(name, wide, select) put(out, __builtin_amdgcn_##name(take<S16x2>(out), as_f32(x[0]), as_f32(x[1]), as_f32(scale), select))
#define OP_PK8_V2(name, wide, select) put(out, __builtin_amdgcn_##name(take<S16x2>(out), take<wide##x2>(x), as_f32(scale), select))
#define OP_SR8(name, wide, select) out[0] = (uint32_t)__builtin_amdgcn_##name((int)out[0], take<wide>(x), seed, as_f32(scale), select)
/* A vector of six words has the size of eight, so its elements are copied, not its bytes. */
#define PUT6(value)                                                                                                                            \
  const auto six = value;                                                                                                                      \
  for (int word = 0; word < 6; word++) out[word] = six[word]
#define OP_P16X2(name, wide, select)                                                                                                           \
  U32x6 result;                                                                                                                                \
  asm("v_" #name " %0, %1, %2, %3" : "=&v"(result) : "v"(take<wide##x16>(x)), "v"(take<wide##x16>(x + 16)), "v"(scale));                       \
  PUT6(result)
#define OP_P32(name, wide, select) PUT6(__builtin_amdgcn_##name(take<wide##x32>(x), as_f32(scale)))
#define OP_SRP32(name, wide, select) PUT6(__builtin_amdgcn_##name(take<wide##x32>(x), seed, as_f32(scale)))
#define OP_UP4(name, wide, select) put(out, __builtin_amdgcn_##name(x[0], as_f32(scale), select))
#define OP_UP8(name, wide, select) put(out, __builtin_amdgcn_##name(x[0], as_f32(scale), select))
#define OP_UP8_F32(name, wide, select) put(out, __builtin_amdgcn_##name((int)x[0], as_f32(scale), select))
#define OP_UP8_F16(name, wide, select) put(out, __builtin_amdgcn_##name(take<F16x2>(out), (int)x[0], as_f32(scale), (select) % 4, (select) / 4))
#define OP_UP32(name, wide, select) put(out, __builtin_amdgcn_##name((U32x6){x[0], x[1], x[2], x[3], x[4], x[5]}, as_f32(scale)))
#define OP_N8_PK(name, wide, select) out[0] = (uint32_t)__builtin_amdgcn_##name(as_f32(x[0]), as_f32(x[1]), (int)out[0], select)
#define OP_N8_SR(name, wide, select) out[0] = (uint32_t)__builtin_amdgcn_##name(as_f32(x[0]), (int)seed, (int)out[0], select)
#define OP_N8_UP(name, wide, select) put(out, __builtin_amdgcn_##name((int)x[0], select))
#define OP_N8_UP2(name, wide, select) put(out, __builtin_amdgcn_##name((int)x[0], select))
#define OP_N16_SR(name, wide, select) put(out, __builtin_amdgcn_##name(take<N16_##name>(out), as_f32(x[0]), seed, select))
#define OP_STEP(name, wide, select) out[0] = __builtin_amdgcn_##name(x[0])

#ifdef MXH_HOST
#define CONVERT(name, form, wide, select) gfx950_convert(&a.env, &gfx950_rows[GFX950_I_##name], select, out, x, scale, seed, GFX950_FROM_VGPR)
#else
typedef BF16x2 N16_cvt_sr_bf16_f32;
typedef F16x2 N16_cvt_sr_f16_f32;
#define CONVERT(name, form, wide, select) OP_##form(name, wide, select)
#endif

/* Case i: x [n][words], out [n][words], scale and seed [n]. */
#define KERNEL(name, kind, form, wide, lanes, select)                                                                                          \
  MXH_KERNEL(gfx950_##name##_s##select, gfx950_convert_args, a, 256) {                                                                         \
    const uint32_t i = mxh_block_id() * mxh_block_size() + mxh_thread_id();                                                                    \
    if (i >= a.n) return;                                                                                                                      \
    uint32_t x[GFX950_X_##kind(wide, lanes)], out[GFX950_OUT_##kind(wide, lanes)] = {0};                                                       \
    const auto from = a.x + (size_t)i * (sizeof x / 4);                                                                                        \
    const auto to = a.out + (size_t)i * (sizeof out / 4);                                                                                      \
    for (uint32_t j = 0; j < sizeof x / 4; j++) x[j] = from[j];                                                                                \
    uint32_t scale = a.scale[i], seed = a.seed[i];                                                                                             \
    if (GFX950_OLD_##form) out[0] = to[0];                                                                                                     \
    set_mode(a.env.mode, &scale, sizeof x <= 8 ? &x[0] : &seed);                                                                               \
    CONVERT(name, form, wide, select);                                                                                                         \
    for (uint32_t j = 0; j < sizeof out / 4; j++) to[j] = out[j];                                                                              \
  }

#define SELECTS_1(name, kind, form, wide, lanes) KERNEL(name, kind, form, wide, lanes, 0)
#define SELECTS_2(name, kind, form, wide, lanes) SELECTS_1(name, kind, form, wide, lanes) KERNEL(name, kind, form, wide, lanes, 1)
#define SELECTS_4(name, kind, form, wide, lanes)                                                                                               \
  SELECTS_2(name, kind, form, wide, lanes) KERNEL(name, kind, form, wide, lanes, 2) KERNEL(name, kind, form, wide, lanes, 3)
#define SELECTS_8(name, kind, form, wide, lanes)                                                                                               \
  SELECTS_4(name, kind, form, wide, lanes)                                                                                                     \
  KERNEL(name, kind, form, wide, lanes, 4)                                                                                                     \
  KERNEL(name, kind, form, wide, lanes, 5) KERNEL(name, kind, form, wide, lanes, 6) KERNEL(name, kind, form, wide, lanes, 7)
#define SELECTS_16(name, kind, form, wide, lanes) /* products have kernels of their own */

#define GFX950(name, mnemonic, kind, form, wide, elem, lanes, selects) SELECTS_##selects(name, kind, form, wide, lanes)
#include "formats/gfx950.def"
