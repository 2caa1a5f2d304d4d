/* Shows a CUDA kernel on device pointers under the harness: plain MXFP4 (scale.rule=floor), one thread for each block of 32.
 *
 *   make device-plugin PLUGIN_SRC=examples/device_kernel_cuda.cu
 *   MXGOLD_DEVICE=cuda mxgold test --plugin build/release/device_kernel.so --preset ocp-mxfp4
 *
 * The pointers belong to the primary context, which the CUDA runtime uses too. -DBUG_TIES rounds ties away from zero. */
#include <stdio.h>
#include <string.h>

#include "hip_backend/run/device_plugin.h"
#include "mxfp4_kernel.h"

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
