/* A CUDA kernel on device pointers under the harness: plain MXFP4 (scale.rule=floor), a thread a block of 32.
 *
 *   make device-plugin PLUGIN_SRC=examples/device_kernel_cuda.cu
 *   MXGOLD_DEVICE=cuda mxgold test --plugin build/release/device_kernel.so --preset ocp-mxfp4
 *
 * The pointers are of the primary context, which the CUDA runtime uses too. -DBUG_TIES rounds ties away from zero. */
#include <stdio.h>
#include <string.h>

#include "hip_backend/device_plugin.h"

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

extern "C" int mxgold_quantize_device(const mxgold_device_job *job) {
  if (strcmp(mxh_kind(job->device), "cuda")) {
    fprintf(stderr, "device_kernel_cuda: the pointers are of %s, this kernel needs cuda: SKIPPED\n", mxh_kind(job->device));
    return 1;
  }
  if (!strstr(job->spec, "elem=e2m1 scale=e8m0 block=1x32 scale.rule=floor")) return 1;
  const shape s = {job->rows, job->cols, job->ld, job->code_stride, job->scale_cols};
  const size_t blocks = s.rows * s.blocks;
  if (!blocks) return 0;
  quantize<<<(unsigned)((blocks + THREADS - 1) / THREADS), THREADS>>>(job->codes, job->scales, job->x, s);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    fprintf(stderr, "device_kernel_cuda: %s\n", cudaGetErrorString(status));
    __builtin_trap();
  }
  return 0;
}
