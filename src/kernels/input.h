/* Declares what a spec does to its input (SPEC 3.2 steps 1 to 3), prepared once per call: round to a type, flush, rotate. */
#ifndef MX_KERNELS_INPUT_H
#define MX_KERNELS_INPUT_H

#include <stddef.h>

#include "mxgold/quantize.h"

enum { MX_HAD_MOST = 1024 };
enum { MX_TURN_AHEAD = 32 }; /* how many rows of a matrix are prefetched where it is read by columns */
enum { MX_HAD_TE = 0xD7E8 }; /* had.sign=te: [1 1 1 -1 1 -1 -1 -1 -1 -1 -1 1 -1 1 -1 -1], bit i set where element i is negated */

typedef struct mx_input {
  int dtype, flush;  /* MX_INPUT_DTYPE_*, 0 or 1 */
  unsigned had_size; /* 0: no rotation */
  float factor;      /* rnd(1 / sqrt(had_size)) */
  int signs;         /* 1: some sign is flipped */
  uint32_t
      sign[MX_HAD_MOST]; /* the sign bit for each element of a tile that is flipped; tiles of fewer than 16 elements are repeated up to 16 */
} mx_input;

/** Changes the values of a row, from a column that starts a tile, as `in` says; out may be x. A short last tile is filled up with +0, and
 *  only its own elements are stored. */
typedef void mx_input_kernel(float *out, const float *x, size_t n, const mx_input *in);
mx_input_kernel mxi_input_scalar, mxi_input_avx2, mxi_input_avx512, mxi_input_neon;

/** Transposes [n_cols][n_rows] values with row stride ld into [n_rows][n_cols] with row stride ld_out. Returns 1 if it has also done to the rows what
 *  `in` says, which some kernels do where that is a rotation alone and both sizes suit them. */
typedef int mx_turn_kernel(float *out, size_t ld_out, const float *x, size_t ld, size_t n_rows, size_t n_cols, const mx_input *in);
mx_turn_kernel mxi_turn_scalar, mxi_turn_avx2, mxi_turn_avx512, mxi_turn_neon;

/** The largest magnitude, as bits, of such a transpose after that, or -1 if this kernel does not do it; before: of x itself. Either is that of Inf or a
 *  NaN if x has one of these. */
typedef int32_t mx_turned_amax_kernel(int32_t *before, const float *x, size_t ld, size_t n_rows, size_t n_cols, const mx_input *in);
mx_turned_amax_kernel mxi_turned_amax_avx2, mxi_turned_amax_avx512, mxi_turned_amax_neon;

/** Widens n bfloat16 or binary16 numbers (MX_INPUT_DTYPE_*) to binary32; a NaN keeps its payload. */
typedef void mx_widen_kernel(float *out, const uint16_t *x, size_t n, int dtype);
mx_widen_kernel mxi_widen_scalar, mxi_widen_avx2, mxi_widen_avx512, mxi_widen_neon;

void mxi_input_init(mx_input *out, const mx_spec *spec);
/** Prepares only a rotation; sign: MX_HAD_SIGN_*. */
void mxi_input_rotation(mx_input *out, unsigned size, int sign, const uint8_t *signs, uint64_t seed);

#endif
