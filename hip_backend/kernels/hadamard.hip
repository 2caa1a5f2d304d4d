/* Rounds the input to input.dtype, flushes subnormals and rotates: steps 1 to 3 of SPEC 3.2. */
#include "hip_backend/kernels/device/tile.h"

MXH_KERNEL(mxh_prepare, prepare_args, a, 256) {
  const uint64_t n = a.rows * a.cols, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < n; i += step) {
    float x = mxd_at(a.x, i / a.cols, i % a.cols);
    if (!mxd_isnan(x)) {
      x = (float)mxd_to_dtype((double)x, a.dtype);
      if (a.flush && mxd_abs(x) < 0x1p-126f) x = mxd_negative(x) ? -0.0f : 0.0f;
    }
    a.out[i] = x;
  }
}

MXH_DEVICE bool mxd_sign_of(const hadamard_args &a, unsigned i) {
  if (a.sign == MX_HAD_SIGN_TE) return MXD_TE_SIGNS >> i % 16 & 1;
  if (a.sign == MX_HAD_SIGN_FIXED) return a.signs[i % 128 / 8] >> i % 8 & 1;
  if (a.sign == MX_HAD_SIGN_FRESH) return mxd_random(a.seed, MX_STREAM_SIGN, i / 32) >> i % 32 & 1;
  return false;
}

/* Each lane has one element and each block block_size / size tiles, which lie in shared memory. It is launched with max(size, 256) lanes. */
MXH_KERNEL(mxh_hadamard, hadamard_args, a, 1024) {
  MXH_SHARED(float, tile, 1024);
  const unsigned t = mxh_thread_id(), i = t % a.size;
  const uint64_t per_row = (a.cols + a.size - 1) / a.size, n = a.rows * per_row, at_once = mxh_block_size() / a.size;
  for (uint64_t first = (uint64_t)mxh_block_id() * at_once; first < n; first += (uint64_t)mxh_grid_size() * at_once) {
    const uint64_t index = first + t / a.size, r = index / per_row, c = index % per_row * a.size + i;
    const bool here = index < n && c < a.cols;
    float v = 0;
    if (here) v = a.x[r * a.ld + c];
    if (mxd_sign_of(a, i)) v = -v;
    for (unsigned stride = 1; stride < a.size; stride *= 2) {
      tile[t] = v;
      mxh_barrier();
      const float other = tile[t ^ stride];
      v = i & stride ? other - v : v + other;
      mxh_barrier();
    }
    if (here) a.out[r * a.ld_out + c] = mxd_isnan(v) || mxd_isnan(v * a.factor) ? mxd_nanf(false) : v * a.factor;
  }
}
