/* Compiles the float32 product for AVX-512: fourteen rows of two vectors leave four of the thirty-two registers. */
#include <stdint.h>

#include "kernels/vectors_avx512.h"

#define ROWS 14
#define VECTORS 2
#define A_WIDTH 16
#define TABLE mxi_dense_avx512
#define EACH_ROW(X, V) FOUR(X, V) X(5, V) X(6, V) X(7, V) X(8, V) X(9, V) X(10, V) X(11, V) X(12, V) X(13, V) X(14, V)
#define EACH_VECTOR(X) X(1) X(2)

static inline vf vf_canonical(vf x) { return vf_blend(vf_eq(x, x), x, vi_float(vi_set(0x7FC00000))); }

#include "gemm/dense/tile.inc.h"
