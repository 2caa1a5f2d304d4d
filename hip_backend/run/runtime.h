/** Lets one kernel source run on AMD, on NVIDIA and on the CPU host runtime; every kernel and every header of kernels/device/ includes it.
 *
 *  One macro chooses between them; it is set here from the compiler if the Makefile does not set it:
 *    MXH_HIP    clang -x hip --offload-arch=gfx950 -nogpulib -nogpuinc: AMD, no ROCm headers or libraries needed to compile
 *    MXH_CUDA   nvcc -x cu: NVIDIA
 *    MXH_HOST   a plain C++17 compiler: the CPU host runtime of host_lanes.h
 *
 *  A kernel has one argument, a plain struct passed by value, and a one-dimensional grid of one-dimensional blocks:
 *
 *      struct scale_args { mxh_ptr<const float> src; mxh_ptr<float> dst; unsigned n; float by; };
 *      MXH_KERNEL(mxh_scale, scale_args, a, 256) {          // 256: the largest block it is launched with
 *        unsigned i = mxh_block_id() * mxh_block_size() + mxh_thread_id();
 *        if (i < a.n) a.dst[i] = a.src[i] * a.by;
 *      }
 *
 *  and is launched by name from the host program (device_api.h): mxh_launch(dev, "mxh_scale", grid, block, &args, sizeof args).
 *
 *  mxh_ptr<T> is T * on a device. On the host runtime it is a pointer of the same size that checks every access: reads of bytes that nothing
 *  wrote, and accesses outside the allocation, are reported with kernel, block and lane. Allocations are a MiB apart; an index that is too
 *  large by more than that may hit another allocation unnoticed, and races between lanes are not noticed either. Use only p[i], p + n and
 *  copies, and read and write whole values (T v = p[i]; v.x). mxh_ref(p) is a plain reference to one object, which is checked once as a whole.
 *  MXH_SHARED(T, name, N) declares memory that a block shares, which is checked likewise. Declare it at the top of a kernel or of an MXH_DEVICE
 *  function.
 *
 *  Waves: mxh_wave_size() is 64 on AMD and on the host runtime, and 32 on NVIDIA. Portable kernels shuffle among at most 32 lanes, or use
 *  mxh_wave_size(). Every lane of a wave must reach every wave operation, and every lane of a block every mxh_barrier(): the host runtime
 *  reports a lane that does not (or has returned before) as divergent. This is stricter than the hardware, on purpose.
 *
 *  On the host runtime each lane is a fiber that runs until it reaches a wave operation or a barrier. There it leaves its operand and waits;
 *  when all lanes of the wave have reached the same place, the operation is computed for all 64 at once and they go on. A new operation, such
 *  as a matrix instruction, is a function over the operands of the whole wave:
 *
 *      #ifdef MXH_HOST
 *      struct mfma_in { int a[8], b[8]; float c[4]; };  struct mfma_out { float d[4]; };
 *      static void mfma(const mfma_in *in, mfma_out *out) { ... for each lane 0..63 ... }        // in[64], out[64]
 *      #define my_mfma(in) mxh_host::wave_op<mfma_in, mfma_out>(in, mfma, "mfma", MXH_HERE)
 *      #endif
 *
 *  Instructions of one lane, such as a conversion, are plain functions. Arithmetic is compiled with -ffp-contract=off (nvcc: -fmad=false
 *  -prec-div=true -prec-sqrt=true -ftz=false), so that +, -, *, / and mxh_fma() round once and keep subnormals on all three. */
#ifndef MXH_RUNTIME_H
#define MXH_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if !defined(MXH_HIP) && !defined(MXH_CUDA) && !defined(MXH_HOST)
#if defined(__CUDACC__) && !defined(__HIP__)
#define MXH_CUDA 1
#elif defined(__HIP__)
#define MXH_HIP 1
#else
#define MXH_HOST 1
#endif
#endif

/* ---------------------------------------------------------------- AMD ---------------------------------------------------------------- */
#if defined(MXH_HIP)
#define MXH_DEVICE __attribute__((device)) inline
#define MXH_CONSTANT __attribute__((constant)) const
#define MXH_KERNEL(name, args_t, a, max_block)                                                                                                 \
  extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, max_block))) void name(const args_t a)
#define MXH_SHARED(T, name, N) __attribute__((shared)) static T name[N]

template <class T> using mxh_ptr = T *;
template <class T> MXH_DEVICE T &mxh_ref(T *p) { return *p; }

MXH_DEVICE unsigned mxh_thread_id() { return __builtin_amdgcn_workitem_id_x(); }
MXH_DEVICE unsigned mxh_block_id() { return __builtin_amdgcn_workgroup_id_x(); }
MXH_DEVICE unsigned mxh_block_size() { return __builtin_amdgcn_workgroup_size_x(); }
MXH_DEVICE unsigned mxh_grid_size() { return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); } /* in blocks */
MXH_DEVICE unsigned mxh_wave_size() { return 64; }
MXH_DEVICE unsigned mxh_lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
MXH_DEVICE void mxh_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
/* The value of lane `from` of the wave; all lanes take part. */
MXH_DEVICE uint32_t mxh_shfl(uint32_t v, unsigned from) { return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(from << 2), (int)v); }
MXH_DEVICE uint32_t mxh_shfl_xor(uint32_t v, unsigned mask) { return mxh_shfl(v, mxh_lane_id() ^ mask); }
/* Bit l is what lane l passed. */
MXH_DEVICE uint64_t mxh_ballot(bool v) { return __builtin_amdgcn_ballot_w64(v); }
/* Memory seen as another type. */
template <class T, class F> MXH_DEVICE mxh_ptr<T> mxh_as(F *p) { return (T *)p; }
MXH_DEVICE uint32_t mxh_atomic_max(mxh_ptr<uint32_t> p, uint32_t v) {
  return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
MXH_DEVICE uint32_t mxh_atomic_or(mxh_ptr<uint32_t> p, uint32_t v) {
  return __hip_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
MXH_DEVICE uint32_t mxh_atomic_add(mxh_ptr<uint32_t> p, uint32_t v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class To, class From> MXH_DEVICE To mxh_bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  return __builtin_bit_cast(To, v);
}

/* ---------------------------------------------------------------- NVIDIA ------------------------------------------------------------- */
#elif defined(MXH_CUDA)
#define MXH_DEVICE __device__ inline
#define MXH_CONSTANT __constant__ const
#define MXH_KERNEL(name, args_t, a, max_block) extern "C" __global__ __launch_bounds__(max_block) void name(const __grid_constant__ args_t a)
#define MXH_SHARED(T, name, N) __shared__ T name[N]

template <class T> using mxh_ptr = T *;
template <class T> MXH_DEVICE T &mxh_ref(T *p) { return *p; }

MXH_DEVICE unsigned mxh_thread_id() { return threadIdx.x; }
MXH_DEVICE unsigned mxh_block_id() { return blockIdx.x; }
MXH_DEVICE unsigned mxh_block_size() { return blockDim.x; }
MXH_DEVICE unsigned mxh_grid_size() { return gridDim.x; }
MXH_DEVICE unsigned mxh_wave_size() { return 32; }
MXH_DEVICE unsigned mxh_lane_id() { return threadIdx.x & 31; }
MXH_DEVICE void mxh_barrier() { __syncthreads(); }
MXH_DEVICE uint32_t mxh_shfl(uint32_t v, unsigned from) { return __shfl_sync(0xffffffffu, v, (int)from); }
MXH_DEVICE uint32_t mxh_shfl_xor(uint32_t v, unsigned mask) { return __shfl_xor_sync(0xffffffffu, v, (int)mask); }
MXH_DEVICE uint64_t mxh_ballot(bool v) { return __ballot_sync(0xffffffffu, v); }
/* Memory seen as another type. */
template <class T, class F> MXH_DEVICE mxh_ptr<T> mxh_as(F *p) { return (T *)p; }
MXH_DEVICE uint32_t mxh_atomic_max(mxh_ptr<uint32_t> p, uint32_t v) { return atomicMax(p, v); }
MXH_DEVICE uint32_t mxh_atomic_or(mxh_ptr<uint32_t> p, uint32_t v) { return atomicOr(p, v); }
MXH_DEVICE uint32_t mxh_atomic_add(mxh_ptr<uint32_t> p, uint32_t v) { return atomicAdd(p, v); }
MXH_DEVICE float mxh_fma(float a, float b, float c) { return fmaf(a, b, c); }
MXH_DEVICE double mxh_fma(double a, double b, double c) { return fma(a, b, c); }
MXH_DEVICE double mxh_sqrt(double a) { return sqrt(a); }
MXH_DEVICE float mxh_floor(float a) { return floorf(a); }
MXH_DEVICE double mxh_floor(double a) { return floor(a); }
MXH_DEVICE int mxh_clz(uint32_t v) { return __clz((int)v); }
MXH_DEVICE int mxh_clz(uint64_t v) { return __clzll((long long)v); }
MXH_DEVICE uint64_t mxh_mul_hi(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
template <class To, class From> MXH_DEVICE To mxh_bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To out;
  memcpy(&out, &v, sizeof out);
  return out;
}

/* ---------------------------------------------------------------- CPU ---------------------------------------------------------------- */
#else
#include <string.h>

#include "host_lanes.h"

#define MXH_DEVICE static inline __attribute__((unused))
#define MXH_CONSTANT static const __attribute__((unused))
/* A kernel is a function of one lane, which the host runtime finds by name. */
#define MXH_KERNEL(name, args_t, a, max_block)                                                                                                 \
  static void name(const args_t &a);                                                                                                           \
  static void name##_lane(const void *args) { name(*static_cast<const args_t *>(args)); }                                                      \
  static mxh_host::kernel_entry name##_entry(#name, name##_lane, sizeof(args_t), max_block);                                                   \
  static void name(const args_t &a)
#define MXH_HERE __FILE__, __LINE__
#define MXH_SHARED(T, name, N)                                                                                                                 \
  static const int name##_slot = mxh_host::new_shared_slot();                                                                                  \
  const mxh_host::ptr<T> name = mxh_host::shared<T>(name##_slot, N, #name)

template <class T> using mxh_ptr = mxh_host::ptr<T>;
template <class T> inline T &mxh_ref(mxh_host::ptr<T> p) { return mxh_host::whole(p); }

MXH_DEVICE unsigned mxh_thread_id() { return mxh_host::lane()->thread; }
MXH_DEVICE unsigned mxh_block_id() { return mxh_host::lane()->block; }
MXH_DEVICE unsigned mxh_block_size() { return mxh_host::lane()->block_size; }
MXH_DEVICE unsigned mxh_grid_size() { return mxh_host::lane()->grid_size; }
MXH_DEVICE unsigned mxh_wave_size() { return mxh_host::wave_lanes; }
MXH_DEVICE unsigned mxh_lane_id() { return mxh_host::lane()->thread % mxh_host::wave_lanes; }
/* These are macros so that they know where they are called. */
#define mxh_barrier() mxh_host::barrier(MXH_HERE)
#define mxh_shfl(v, from) mxh_host::shuffle(v, from, MXH_HERE)
#define mxh_shfl_xor(v, mask) mxh_host::shuffle(v, mxh_lane_id() ^ (mask), MXH_HERE)
#define mxh_ballot(v) mxh_host::ballot(v, MXH_HERE)
/* Memory seen as another type. */
template <class T, class F> inline mxh_ptr<T> mxh_as(mxh_host::ptr<F> p) {
  return (T *)(typename std::conditional<std::is_const<T>::value, const void *, void *>::type)p.p;
}
MXH_DEVICE uint32_t mxh_atomic_max(mxh_ptr<uint32_t> p, uint32_t v) { return mxh_host::atomic_max(p, v); }
MXH_DEVICE uint32_t mxh_atomic_or(mxh_ptr<uint32_t> p, uint32_t v) { return mxh_host::atomic_or(p, v); }
MXH_DEVICE uint32_t mxh_atomic_add(mxh_ptr<uint32_t> p, uint32_t v) { return mxh_host::atomic_add(p, v); }
template <class To, class From> inline To mxh_bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To out;
  memcpy(&out, &v, sizeof out);
  return out;
}
#endif

/* ---------------------------------------------------------------- AMD and CPU -------------------------------------------------------- */
#ifndef MXH_CUDA
MXH_DEVICE float mxh_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MXH_DEVICE double mxh_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
MXH_DEVICE double mxh_sqrt(double a) { return __builtin_sqrt(a); }
MXH_DEVICE float mxh_floor(float a) { return __builtin_floorf(a); }
MXH_DEVICE double mxh_floor(double a) { return __builtin_floor(a); }
MXH_DEVICE int mxh_clz(uint32_t v) { return v ? __builtin_clz(v) : 32; }
MXH_DEVICE int mxh_clz(uint64_t v) { return v ? __builtin_clzll(v) : 64; }
MXH_DEVICE uint64_t mxh_mul_hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
#endif
#endif
