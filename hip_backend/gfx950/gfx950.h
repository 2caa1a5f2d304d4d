/** Declares the native kernels of gfx950 for host programs: a table of instructions and the arguments of their kernels.
 *
 *  The kernel of a conversion is gfx950_NAME_sN, where N is the value of the select operand; its arguments are gfx950_convert_args; each lane
 *  does one case. The kernel of a product is gfx950_NAME_aX_bY_sN, where X and Y are the format codes (cbsz, blgp) and N = byte of A's scale +
 *  4 * byte of B's; each wave of 64 lanes does one tile, in blocks of 64; its arguments are gfx950_mfma_args, with operands as the registers of
 *  each lane (layout.h says which element lies where). The rows are those of formats/gfx950.def.
 *  Oracle: hip_backend/tests/test_gfx950.cc (host runtime), tools/check-gfx950.py (disassembly). Not run on silicon. */
#ifndef MXH_GFX950_H
#define MXH_GFX950_H

#include <stddef.h>
#include <stdint.h>

typedef enum gfx950_kind { GFX950_NARROW, GFX950_SR, GFX950_WIDEN, GFX950_PRNG, GFX950_MFMA } gfx950_kind;
typedef enum gfx950_form {
  GFX950_PK4_F32,
  GFX950_PK4_V2,
  GFX950_SRPK4,
  GFX950_PK8_F32,
  GFX950_PK8_V2,
  GFX950_SR8,
  GFX950_P16X2,
  GFX950_P32,
  GFX950_SRP32,
  GFX950_UP4,
  GFX950_UP8,
  GFX950_UP8_F32,
  GFX950_UP8_F16,
  GFX950_UP32,
  GFX950_N8_PK,
  GFX950_N8_SR,
  GFX950_N8_UP,
  GFX950_N8_UP2,
  GFX950_N16_SR,
  GFX950_STEP,
  GFX950_MFMA16,
  GFX950_MFMA32
} gfx950_form;
typedef enum gfx950_type {
  GFX950_E4M3, /* the first five in the order of the products' format codes */
  GFX950_E5M2,
  GFX950_E2M3,
  GFX950_E3M2,
  GFX950_E2M1,
  GFX950_F16,
  GFX950_BF16,
  GFX950_F32,
  GFX950_NONE
} gfx950_type;

/* How many 32-bit words a case of a conversion reads from x and writes to out. */
#define GFX950_BITS_F32 32
#define GFX950_BITS_F16 16
#define GFX950_BITS_BF16 16
#define GFX950_WORDS(wide, lanes) (((lanes)*GFX950_BITS_##wide + 31) / 32)
#define GFX950_X_NARROW(wide, lanes) GFX950_WORDS(wide, lanes)
#define GFX950_X_SR(wide, lanes) GFX950_WORDS(wide, lanes)
#define GFX950_X_WIDEN(wide, lanes) ((lanes) == 32 ? 6 : 1)
#define GFX950_X_PRNG(wide, lanes) 1
#define GFX950_X_MFMA(wide, lanes) 0
#define GFX950_OUT_NARROW(wide, lanes) ((lanes) == 32 ? 6 : 1)
#define GFX950_OUT_SR(wide, lanes) ((lanes) == 32 ? 6 : 1)
#define GFX950_OUT_WIDEN(wide, lanes) GFX950_WORDS(wide, lanes)
#define GFX950_OUT_PRNG(wide, lanes) 1
#define GFX950_OUT_MFMA(wide, lanes) 0

/* Whether the destination keeps a part of its old value; out is then read as well as written. */
enum {
  GFX950_OLD_PK4_F32 = 1,
  GFX950_OLD_PK4_V2 = 1,
  GFX950_OLD_SRPK4 = 1,
  GFX950_OLD_PK8_F32 = 1,
  GFX950_OLD_PK8_V2 = 1,
  GFX950_OLD_SR8 = 1,
  GFX950_OLD_P16X2 = 0,
  GFX950_OLD_P32 = 0,
  GFX950_OLD_SRP32 = 0,
  GFX950_OLD_UP4 = 0,
  GFX950_OLD_UP8 = 0,
  GFX950_OLD_UP8_F32 = 0,
  GFX950_OLD_UP8_F16 = 1,
  GFX950_OLD_UP32 = 0,
  GFX950_OLD_N8_PK = 1,
  GFX950_OLD_N8_SR = 1,
  GFX950_OLD_N8_UP = 0,
  GFX950_OLD_N8_UP2 = 0,
  GFX950_OLD_N16_SR = 1,
  GFX950_OLD_STEP = 0,
  GFX950_OLD_MFMA16 = 0,
  GFX950_OLD_MFMA32 = 0
};

/* Parts of the wave's MODE register that the kernels set before the instruction; 0 is what HIP sets. */
enum {
  GFX950_MODE_OVFL = 1, /* FP16_OVFL: FP8 values past the largest become the largest */
  GFX950_MODE_FLUSH = 2 /* FP_DENORM: binary32 subnormals are read as zero */
};

struct gfx950_rules;
/** What a kernel runs under. rules tells the host runtime which device to imitate (host.h); a device ignores it. */
typedef struct gfx950_env {
  uint32_t mode, reserved;
  const struct gfx950_rules *rules;
} gfx950_env;

typedef enum gfx950_index {
#define GFX950(name, ...) GFX950_I_##name,
#include "formats/gfx950.def"
  GFX950_COUNT
} gfx950_index;

typedef struct gfx950_row {
  const char *name, *mnemonic;
  gfx950_kind kind;
  gfx950_form form;
  gfx950_type wide, elem;
  int lanes, selects;
  int words_x, words_out; /* 32-bit words per case; 0 for products */
  int has_old;
} gfx950_row;

static const gfx950_row gfx950_rows[] __attribute__((unused)) = {
#define GFX950(name, mnemonic, kind, form, wide, elem, lanes, selects)                                                                         \
  {#name,                                                                                                                                      \
   mnemonic,                                                                                                                                   \
   GFX950_##kind,                                                                                                                              \
   GFX950_##form,                                                                                                                              \
   GFX950_##wide,                                                                                                                              \
   GFX950_##elem,                                                                                                                              \
   lanes,                                                                                                                                      \
   selects,                                                                                                                                    \
   GFX950_X_##kind(wide, lanes),                                                                                                               \
   GFX950_OUT_##kind(wide, lanes),                                                                                                             \
   GFX950_OLD_##form},
#include "formats/gfx950.def"
};
#endif
