/* Compiles the float32 product for AVX2 and FMA: six rows of two vectors leave four of the sixteen registers. */
#include <stdint.h>

#include "kernels/vectors_avx2.h"

#define ROWS 6
#define VECTORS 2
#define A_WIDTH 8
#define TABLE mxi_dense_avx2
#define EACH_ROW(X, V) FOUR(X, V) X(5, V) X(6, V)
#define EACH_VECTOR(X) X(1) X(2)

static inline vf vf_canonical(vf x) { return vf_blend(vf_eq(x, x), x, vi_float(vi_set(0x7FC00000))); }

#include "gemm/dense/tile.inc.h"
