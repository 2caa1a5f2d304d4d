/* A kernel under test on a GPU: plain OCP MXFP4 behind the same C ABI as kernel_plugin.c. One thread a block of 32.
 *
 *   nvcc -O2 -arch=native -shared -Xcompiler -fPIC -Iinclude examples/kernel_plugin_cuda.cu -o kernel.so
 *   mxgold test --plugin ./kernel.so --preset ocp-mxfp4
 *
 * -DBUG_TIES rounds ties away from zero; nvcc -use_fast_math is a bug of its own: subnormals are flushed. mxgold loads the object in a child process for
 * each tensor, so that the device is initialised there and a fault of the kernel is a finding.
 * HIP: hipcc -x hip -O2 --offload-arch=native -shared -fPIC -Iinclude does the same from this file. */
#include <stdio.h>
#include <stdint.h>

#include "mxgold/plugin.h"

#ifdef __HIP__
#include <hip/hip_runtime.h>
#define cudaError_t hipError_t
#define cudaSuccess hipSuccess
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaMalloc hipMalloc
#define cudaMemcpy hipMemcpy
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaFree hipFree
#endif

enum { BLOCK = 32, THREADS = 128 };

struct shape {
  size_t rows, cols, ld, code_stride, blocks;
};

__device__ static unsigned code_of(float x, float scale) {
  const float values[8] = {0.f, .5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f};
  const float q = fabsf(x) / scale;
  unsigned c = 0;
  while (c < 7) {
    const float middle = (values[c] + values[c + 1]) / 2;
#ifdef BUG_TIES
    if (q < middle) break;
#else
    if (q < middle || (q == middle && c % 2 == 0)) break;
#endif
    c++;
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

/* Where a call of the runtime fails, the child ends by a trap: a finding, and no made-up bytes. */
static void must(cudaError_t status) {
  if (status != cudaSuccess) __builtin_trap();
}

static bool has(const char *text, const char *word) {
  for (; *text; text++) {
    size_t n = 0;
    while (word[n] && text[n] == word[n]) n++;
    if (!word[n]) return true;
  }
  return false;
}

extern "C" int mxgold_quantize(const mxgold_job *job) {
  if (!has(job->spec, "elem=e2m1 scale=e8m0 block=1x32 scale.rule=floor")) return 1; /* the one spec that this kernel does */
  int n_devices = 0;
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || !n_devices) {
    fprintf(stderr, "no device\n");
    return 1;
  }
  const shape s = {job->rows, job->cols, job->ld, job->code_stride, job->scale_cols};
  const size_t n_x = s.rows * s.ld * sizeof(float), n_codes = s.rows * s.code_stride, n_scales = s.rows * s.blocks;
  if (!n_scales) return 0;
  uint8_t *codes, *scales;
  float *x;
  must(cudaMalloc((void **)&x, n_x));
  must(cudaMalloc((void **)&codes, n_codes));
  must(cudaMalloc((void **)&scales, n_scales));
  must(cudaMemcpy(x, job->x, n_x, cudaMemcpyHostToDevice));
  must(cudaMemcpy(codes, job->codes, n_codes, cudaMemcpyHostToDevice));
  quantize<<<(unsigned)((n_scales + THREADS - 1) / THREADS), THREADS>>>(codes, scales, x, s);
  must(cudaDeviceSynchronize());
  must(cudaMemcpy(job->codes, codes, n_codes, cudaMemcpyDeviceToHost));
  must(cudaMemcpy(job->scales, scales, n_scales, cudaMemcpyDeviceToHost));
  must(cudaFree(x));
  must(cudaFree(codes));
  must(cudaFree(scales));
  return 0;
}
