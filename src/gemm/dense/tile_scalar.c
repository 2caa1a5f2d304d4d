/* Compiles the float32 product in plain C, an output at a time. */
#include <math.h>
#include <stdint.h>

#define W 1
#define vf float
#define ROWS 4
#define VECTORS 4
#define A_WIDTH 4
#define TABLE mxi_dense_scalar
#define EACH_ROW(X, V) FOUR(X, V)
#define EACH_VECTOR(X) X(1) X(2) X(3) X(4)

static inline float vf_load(const float *p) { return *p; }
static inline void vf_store(float *p, float x) { *p = x; }
static inline float vf_set(float x) { return x; }
static inline float vf_fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline float vf_add(float a, float b) { return a + b; }
static inline float vf_canonical(float x) {
  const union {
    uint32_t bits;
    float x;
  } nan = {0x7FC00000};
  return x == x ? x : nan.x;
}
static inline void vf_transpose(float square[1]) { (void)square; }

#include "gemm/dense/tile.inc.h"
