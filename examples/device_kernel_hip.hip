/* Shows a HIP kernel on device pointers under the harness: plain MXFP4 (scale.rule=floor), one lane for each element and 32 lanes for each block. On a
 * gfx950 the codes come from its own v_cvt_scalef32_pk_fp4_f32, elsewhere from comparisons.
 *
 *   make device-plugin PLUGIN_SRC=examples/device_kernel_hip.hip
 *   MXGOLD_DEVICE=hip mxgold test --plugin build/release/device_kernel.so --preset ocp-mxfp4
 *
 * Without ROCm: PLUGIN_ON=host compiles it for the CPU host runtime (MXGOLD_DEVICE=host). -DBUG_TIES rounds ties away from zero. */
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <string.h>

#include "hip_backend/run/device_plugin.h"

enum { BLOCK = 32, THREADS = 256 };

/* E2M1, ties to even; q >= 0. */
__device__ static unsigned code_of(float q) {
#ifdef BUG_TIES
  return (q >= 0.25f) + (q >= 0.75f) + (q >= 1.25f) + (q >= 1.75f) + (q >= 2.5f) + (q >= 3.5f) + (q >= 5.0f);
#else
  return q != q ? 7 : (q > 0.25f) + (q >= 0.75f) + (q > 1.25f) + (q >= 1.75f) + (q > 2.5f) + (q >= 3.5f) + (q > 5.0f);
#endif
}

/* x [rows][ld]; codes [rows][code_stride], low nibble first; scales [rows][blocks]. */
__global__ static void __launch_bounds__(THREADS)
    mxfp4(uint8_t *codes, uint8_t *scales, const float *x, size_t rows, size_t cols, size_t ld, size_t code_stride, size_t blocks) {
  const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, block = at / BLOCK, lane = at % BLOCK;
  const size_t row = block / blocks, col = block % blocks * BLOCK + lane;
  const bool live = row < rows && col < cols; /* every lane of a wave shuffles */
  const float v = live ? x[row * ld + col] : 0.0f;
  unsigned most = __float_as_uint(v) & 0x7FFFFFFFu; /* |v| in the order of its bits: NaN above Inf above the rest */
  for (int mask = BLOCK / 2; mask; mask /= 2) {
    const unsigned other = __shfl_xor(most, mask);
    most = other > most ? other : most;
  }
  const bool special = most >= 0x7F800000u;
  const int exponent = (int)(most >> 23) - 2, byte = special ? 255 : exponent > 0 ? exponent : 0;
  const float q = special ? v : ldexpf(v, 127 - byte);
  unsigned code = code_of(fabsf(q)) | __float_as_uint(v) >> 31 << 3;
#if defined(__gfx950__) && !defined(BUG_TIES)
  if (!special) code = (unsigned)__builtin_amdgcn_cvt_scalef32_pk_fp4_f32(0, q, 0.0f, 1.0f, 0) & 15;
#endif
  const unsigned next = __shfl_xor(live ? code : 0, 1);
  if (live && lane % 2 == 0) codes[row * code_stride + col / 2] = (uint8_t)(code | next << 4);
  if (live && lane == 0) scales[block] = (uint8_t)byte;
}

extern "C" int mxgold_quantize_device(const mxgold_device_job *job) {
#ifdef MXH_HOST
  const char *const needed = "host";
#else
  const char *const needed = "hip";
#endif
  if (strcmp(mxh_kind(job->device), needed)) {
    fprintf(stderr, "device_kernel_hip: the pointers are of %s, this build needs %s: SKIPPED\n", mxh_kind(job->device), needed);
    return 1;
  }
  if (!strstr(job->spec, "elem=e2m1 scale=e8m0 block=1x32 scale.rule=floor")) return 1; /* the one spec that this kernel does */
  const size_t lanes = job->rows * job->scale_cols * BLOCK;
  if (!lanes) return 0;
  hipLaunchKernelGGL(mxfp4, dim3((unsigned)((lanes + THREADS - 1) / THREADS)), dim3(THREADS), 0, 0, job->codes, job->scales, job->x, job->rows,
                     job->cols, job->ld, job->code_stride, job->scale_cols);
  const hipError_t status = hipGetLastError();
  if (status != hipSuccess) {
    fprintf(stderr, "device_kernel_hip: %s\n", hipGetErrorString(status));
    __builtin_trap();
  }
  return 0;
}
