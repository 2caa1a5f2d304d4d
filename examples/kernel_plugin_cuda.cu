/* Shows a kernel under test on a GPU: plain OCP MXFP4 behind the same C ABI as kernel_plugin.c, with one thread for each block of 32.
 *
 *   nvcc -O2 -arch=native -shared -Xcompiler -fPIC -Iinclude examples/kernel_plugin_cuda.cu -o kernel.so
 *   mxgold test --plugin ./kernel.so --preset ocp-mxfp4
 *
 * -DBUG_TIES rounds ties away from zero; nvcc -use_fast_math is a bug of its own: subnormals are flushed. mxgold loads the object in a child process for
 * each tensor, so that the device is initialised there and a fault of the kernel is a finding.
 * HIP: hipcc -x hip -O2 --offload-arch=native -shared -fPIC -Iinclude does the same from this file. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
#include "mxfp4_kernel.h"

/* Where a call of the runtime fails, the child ends by a trap: a finding, and no made-up bytes. */
static void must(cudaError_t status) {
  if (status != cudaSuccess) __builtin_trap();
}

extern "C" int mxgold_quantize(const mxgold_job *job) {
  if (!strstr(job->spec, "elem=e2m1 scale=e8m0 block=1x32 scale.rule=floor")) return 1; /* the one spec that this kernel does */
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
