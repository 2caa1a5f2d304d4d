/* Declares what a spec asks of its input (SPEC 3.2 steps 1 to 3), prepared once a call: rounded to a type, flushed, rotated. */
#ifndef MX_KERNELS_INPUT_H
#define MX_KERNELS_INPUT_H

#include <stddef.h>

#include "mxgold/quantize.h"

enum { MX_HAD_MOST = 1024 };

typedef struct mx_input {
  int dtype, flush;           /* MX_INPUT_DTYPE_*, 0 or 1 */
  unsigned had_size;          /* 0: no rotation */
  float factor;               /* rnd(1 / sqrt(had_size)) */
  int signs;                  /* is any of them flipped? */
  uint32_t sign[MX_HAD_MOST]; /* the sign bit of each element of a tile to be flipped; tiles of less than 16 repeat up to there */
} mx_input;

/** Values of a row from a column that starts a tile, changed as `in` says; out may be x. A short last tile is filled with +0, its first elements
 *  alone are stored. */
typedef void mx_input_kernel(float *out, const float *x, size_t n, const mx_input *in);
mx_input_kernel mxi_input_scalar, mxi_input_avx2, mxi_input_avx512, mxi_input_neon;

/** The transpose of [n_cols][n_rows] values, row stride ld, as [n_rows][n_cols], row stride ld_out. */
typedef void mx_turn_kernel(float *out, size_t ld_out, const float *x, size_t ld, size_t n_rows, size_t n_cols);
mx_turn_kernel mxi_turn_scalar, mxi_turn_avx2, mxi_turn_avx512, mxi_turn_neon;

/** binary32 values of n bfloat16 or binary16 numbers (MX_INPUT_DTYPE_*); a NaN keeps its payload. */
typedef void mx_widen_kernel(float *out, const uint16_t *x, size_t n, int dtype);
mx_widen_kernel mxi_widen_scalar, mxi_widen_avx2, mxi_widen_avx512, mxi_widen_neon;

void mxi_input_init(mx_input *out, const mx_spec *spec);
/** A rotation alone; sign MX_HAD_SIGN_*. */
void mxi_input_rotation(mx_input *out, unsigned size, int sign, const uint8_t *signs, uint64_t seed);

#endif
