/* Defines the kernel of both CUDA examples: plain MXFP4 (scale.rule=floor), one thread for each block of 32. -DBUG_TIES rounds ties away from zero. */
#ifndef EXAMPLES_MXFP4_KERNEL_H
#define EXAMPLES_MXFP4_KERNEL_H

#include <stdint.h>

enum { BLOCK = 32, THREADS = 128 };

struct shape {
  size_t rows, cols, ld, code_stride, blocks;
};

__device__ static unsigned code_of(float x, float scale) {
  const float values[8] = {0.f, .5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f};
  const float q = fabsf(x) / scale;
  unsigned c = 0;
  for (; c < 7; c++) {
    const float middle = (values[c] + values[c + 1]) / 2;
#ifdef BUG_TIES
    if (q < middle) break;
#else
    if (q < middle || (q == middle && c % 2 == 0)) break;
#endif
  }
  return c | (__float_as_uint(x) >> 31 << 3);
}

/* x [rows][ld]; codes [rows][code_stride], zeroed; scales [rows][blocks]. */
__global__ static void quantize(uint8_t *codes, uint8_t *scales, const float *x, shape s) {
  const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= s.rows * s.blocks) return;
  const size_t row = at / s.blocks, first = at % s.blocks * BLOCK, end = first + BLOCK < s.cols ? first + BLOCK : s.cols;
  const float *v = x + row * s.ld;
  float amax = 0;
  bool special = false;
  for (size_t c = first; c < end; c++) {
    special |= !isfinite(v[c]);
    amax = fmaxf(amax, fabsf(v[c]));
  }
  int e = 0;
  frexpf(amax, &e);
  int byte = special ? 255 : amax == 0 ? 0 : e - 1 - 2 + 127;
  if (byte < 0) byte = 0;
  scales[at] = (uint8_t)byte;
  const float scale = special ? 1.f : ldexpf(1.f, byte - 127);
  for (size_t c = first; c < end; c++) codes[row * s.code_stride + c / 2] |= (uint8_t)(code_of(v[c], scale) << (c % 2 * 4));
}

#endif
