/* Runs conversions whose scale is in a scalar register or an inline constant, which the other kernels avoid. The ISA text and AMD's operand
 * tables disagree on whether the hardware takes them, so the device profile finds out. The scale is scale[0] for all lanes, or 4.0. */
#include "native.h"

#define LOAD                                                                                                                                   \
  const uint32_t i = mxh_block_id() * mxh_block_size() + mxh_thread_id();                                                                      \
  if (i >= a.n) return;                                                                                                                        \
  const uint32_t scale = a.scale[0];                                                                                                           \
  uint32_t x[2] = {a.x[2 * i], a.x[2 * i + 1]}, out = a.out[i];                                                                                \
  set_mode(a.env.mode, &x[0], &x[1]);

#ifdef MXH_HOST
#define PROBE(operand, value, from) gfx950_convert(&a.env, &gfx950_rows[GFX950_I_cvt_scalef32_pk_fp4_f32], 0, &out, x, value, 0, from)
#else
#define PROBE(operand, value, from) asm("v_cvt_scalef32_pk_fp4_f32 %0, %1, %2, " operand : "+v"(out) : "v"(x[0]), "v"(x[1]), "s"(value))
#endif

MXH_KERNEL(gfx950_probe_sgpr, gfx950_convert_args, a, 256) {
  LOAD PROBE("%3", scale, GFX950_FROM_SGPR);
  a.out[i] = out;
}
MXH_KERNEL(gfx950_probe_inline, gfx950_convert_args, a, 256) {
  LOAD PROBE("4.0", 0x40800000u | (scale & 0), GFX950_FROM_INLINE);
  a.out[i] = out;
}
