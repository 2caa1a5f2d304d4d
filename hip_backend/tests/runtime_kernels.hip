/* Defines kernels that are wrong on purpose, which the host runtime must report, and correct ones, which it must not. */
#include "hip_backend/run/runtime.h"

struct runtime_args {
  mxh_ptr<const uint32_t> src;
  mxh_ptr<uint32_t> dst;
  uint32_t n;
};

/* A correct kernel: it reverses a block through shared memory and then adds up across 32 lanes. */
MXH_KERNEL(mxh_rt_sum, runtime_args, a, 256) {
  MXH_SHARED(uint32_t, xs, 256);
  unsigned t = mxh_thread_id(), i = mxh_block_id() * mxh_block_size() + t;
  xs[t] = i < a.n ? uint32_t(a.src[i]) : 0u;
  mxh_barrier();
  uint32_t v = xs[mxh_block_size() - 1 - t];
  for (unsigned m = 1; m < 32; m *= 2) v += mxh_shfl_xor(v, m);
  uint64_t odd = mxh_ballot(v & 1);
  if (i < a.n) a.dst[i] = v + (odd ? 0x80000000u : 0u);
}
MXH_KERNEL(mxh_rt_barrier_divergent, runtime_args, a, 256) {
  if (mxh_thread_id() < 100) mxh_barrier();
  a.dst[mxh_thread_id()] = 1;
}
MXH_KERNEL(mxh_rt_shuffle_divergent, runtime_args, a, 256) {
  uint32_t v = mxh_thread_id();
  if (v == 7)
    v = mxh_shfl(v, 0);
  else
    v = mxh_shfl(v, 1);
  a.dst[mxh_thread_id()] = v;
}
MXH_KERNEL(mxh_rt_shuffle_absent, runtime_args, a, 256) { a.dst[mxh_thread_id()] = mxh_shfl(mxh_thread_id(), 63); }
MXH_KERNEL(mxh_rt_read_beyond, runtime_args, a, 256) { a.dst[mxh_thread_id()] = a.src[mxh_thread_id() + 1]; }
MXH_KERNEL(mxh_rt_write_beyond, runtime_args, a, 256) { a.dst[mxh_thread_id() + 1] = 1; }
MXH_KERNEL(mxh_rt_read_uninitialised, runtime_args, a, 256) { a.dst[mxh_thread_id()] = a.dst[mxh_thread_id()] + 1; }
MXH_KERNEL(mxh_rt_shared_uninitialised, runtime_args, a, 256) {
  MXH_SHARED(uint32_t, xs, 256);
  if (mxh_thread_id()) xs[mxh_thread_id()] = 1;
  mxh_barrier();
  a.dst[mxh_thread_id()] = xs[mxh_thread_id()];
}
MXH_KERNEL(mxh_rt_shared_beyond, runtime_args, a, 256) {
  MXH_SHARED(uint32_t, xs, 16);
  xs[mxh_thread_id()] = 1;
  a.dst[mxh_thread_id()] = xs[0];
}
