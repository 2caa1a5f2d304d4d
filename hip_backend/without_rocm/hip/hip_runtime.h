/* Defines the few names of HIP's header that a plain kernel uses, for machines without ROCm. A .hip source is compiled by clang -x hip for
 * its device and its host half, or by a C++ compiler (MXH_HOST) for the CPU host runtime, where the lanes of a block meet when they shuffle
 * or wait. Grids and blocks are one-dimensional. If ROCm is installed, its own header is used and this folder is not on the include path. */
#ifndef HIP_INCLUDE_HIP_HIP_RUNTIME_H
#define HIP_INCLUDE_HIP_HIP_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dim3 {
  unsigned x, y, z;
#ifdef __HIP__
  __attribute__((host, device))
#endif
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1)
      : x(a), y(b), z(c) {
  }
};
typedef enum { hipSuccess = 0, hipErrorLaunchFailure = 719 } hipError_t;
typedef void *hipStream_t;

#ifdef __HIP__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, hipStream_t stream = nullptr);
extern "C" hipError_t hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t stream);
extern "C" hipError_t hipGetLastError(void);
extern "C" const char *hipGetErrorString(hipError_t);
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define threadIdx (dim3(__builtin_amdgcn_workitem_id_x(), 0, 0))
#define blockIdx (dim3(__builtin_amdgcn_workgroup_id_x(), 0, 0))
#define blockDim (dim3(__builtin_amdgcn_workgroup_size_x(), 1, 1))
__device__ inline unsigned __shfl_xor(unsigned v, int mask) {
  const int lane = (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  return (unsigned)__builtin_amdgcn_ds_bpermute((lane ^ mask) << 2, (int)v);
}
__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#else
#include <functional>

#include "hip_backend/run/host_lanes.h"
#define __global__
#define __device__
#define __host__
#define __shared__                                                                                                                             \
  static /* blocks run one after another and find what the last one left (zeros at first), so reads of unwritten memory go unnoticed */
#define __launch_bounds__(n)
#define threadIdx (dim3(mxh_host::lane()->thread, 0, 0))
#define blockIdx (dim3(mxh_host::lane()->block, 0, 0))
#define blockDim (dim3(mxh_host::lane()->block_size, 1, 1))
#define __shfl_xor(v, mask) mxh_host::shuffle(v, (mxh_host::lane()->thread % mxh_host::wave_lanes) ^ (mask), __FILE__, __LINE__)
#define __syncthreads() mxh_host::barrier(__FILE__, __LINE__)
extern "C" int mxh_hip_failed; /* a launch failed, which is not the same as declining a spec */
struct mxh_hip_launch {
  const std::function<void()> *kernel;
  static void lane(const void *args) { (*static_cast<const mxh_hip_launch *>(args)->kernel)(); }
};
inline hipError_t &mxh_hip_status() {
  static thread_local hipError_t status = hipSuccess;
  return status;
}
inline void mxh_hip_run(dim3 grid, dim3 block, const std::function<void()> &kernel) {
  static const mxh_host::kernel_entry entry("a kernel launched by HIP's call", mxh_hip_launch::lane, sizeof(mxh_hip_launch), 1024);
  const mxh_hip_launch args = {&kernel};
  if (mxh_host::launch(entry.name, grid.x, block.x, &args, sizeof args)) mxh_hip_status() = hipErrorLaunchFailure, mxh_hip_failed = 1;
}
inline hipError_t hipGetLastError() {
  const hipError_t status = mxh_hip_status();
  mxh_hip_status() = hipSuccess;
  return status;
}
inline const char *hipGetErrorString(hipError_t status) { return status ? mxh_host::reports() : "no error"; }
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) mxh_hip_run(grid, block, [=] { kernel(__VA_ARGS__); })
#endif

__device__ inline unsigned __float_as_uint(float v) {
  unsigned bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return bits;
}
#ifdef __HIP__
#define ldexpf __builtin_ldexpf
#define fabsf __builtin_fabsf
#else
#include <math.h>
#endif

#endif
