/** Draws random words by Philox4x32-10 (Salmon et al., SC 2011), numbered as in SPEC 6, and by gfx950's v_prng_b32. */
#ifndef MXD_RANDOM_H
#define MXD_RANDOM_H

#include "hip_backend/run/runtime.h"

MXH_DEVICE uint32_t mxd_mulhi32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }

/* The four words with indices 4 * block .. 4 * block + 3. */
MXH_DEVICE void mxd_philox(uint32_t out[4], uint64_t seed, uint32_t stream, uint64_t block) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = stream, c3 = 0, k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    uint32_t h0 = mxd_mulhi32(0xD2511F53u, c0), l0 = 0xD2511F53u * c0, h1 = mxd_mulhi32(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}
MXH_DEVICE uint32_t mxd_random(uint64_t seed, uint32_t stream, uint64_t index) {
  uint32_t w[4];
  mxd_philox(w, seed, stream, index / 4);
  unsigned i = (unsigned)(index % 4);
  return i == 0 ? w[0] : i == 1 ? w[1] : i == 2 ? w[2] : w[3];
}
MXH_DEVICE uint32_t mxd_lfsr(uint32_t s) { return (s << 1) ^ (s >> 31 ? 197u : 0u); }
#endif
