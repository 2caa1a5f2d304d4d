/* Compiles the float32 product for NEON: eight rows of three vectors leave eight of the thirty-two registers. */
#include <stdint.h>

#include "kernels/vectors_neon.h"

#define ROWS 8
#define VECTORS 3
#define A_WIDTH 8
#define TABLE mxi_dense_neon
#define EACH_ROW(X, V) FOUR(X, V) X(5, V) X(6, V) X(7, V) X(8, V)
#define EACH_VECTOR(X) X(1) X(2) X(3)

static inline vf vf_canonical(vf x) { return vf_blend(vf_eq(x, x), x, vi_float(vi_set(0x7FC00000))); }

#include "gemm/dense/tile.inc.h"
