/* Encodes and decodes arrays of single values (SPEC 2), one value in each lane. */
#include "hip_backend/run/args.h"
#include "hip_backend/kernels/device/chain.h"
#include "hip_backend/kernels/device/codec.h"
#include "hip_backend/kernels/device/random.h"

MXH_KERNEL(mxh_encode, codec_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n; i += step) {
    const uint32_t random = a.how.round == MX_ROUND_SR ? mxd_random(a.seed, MX_STREAM_ELEMENT, i) >> (32 - a.how.sr_bits) : 0;
    double x = mxd_widen(a.x[i]);
    if (!a.format.sign_bits) x = mxd_abs(x);
    const uint32_t code = mxd_encode(a.format, x, a.how, random);
    if (a.format.bits <= 8)
      a.codes[i] = (uint8_t)code;
    else {
      a.codes[2 * i] = (uint8_t)code;
      a.codes[2 * i + 1] = (uint8_t)(code >> 8);
    }
  }
}
MXH_KERNEL(mxh_decode, codec_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n; i += step) {
    const uint32_t code = a.format.bits <= 8 ? (uint32_t)a.codes[i] : (uint32_t)a.codes[2 * i] | (uint32_t)a.codes[2 * i + 1] << 8;
    a.y[i] = mxd_narrow(mxd_decode(a.format, code));
  }
}
/* Computes the quotient that is rounded to odd, and the approximate reciprocal. */
MXH_KERNEL(mxh_numbers, numbers_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n; i += step) {
    if (a.what == MXD_NUMBERS_QUOTIENT)
      a.y[i] = mxd_quotient(a.x[2 * i], a.x[2 * i + 1]);
    else
      a.bits[i] = mxh_bits<uint32_t>(mxd_rcpa(mxh_bits<float>(a.first + (uint32_t)i * a.step)));
  }
}
